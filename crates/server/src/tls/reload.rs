//! Looking at the files, and reading them again when they have changed.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use super::context::Tls;
use crate::complaint::Complaint;
use crate::config::{Password, StoreSettings, TlsSettings};
use crate::limits::TLS_RELOAD_INTERVAL;

/// What tells whether the files are those that were read: links are followed, as a mounted secret is changed by them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Fingerprint(Vec<Option<Mark>>);

/// Device, number, length and time of a file.
#[derive(Debug, PartialEq, Eq)]
struct Mark(u64, u64, u64, i64, i64);

impl Fingerprint {
    pub(super) fn take(settings: &TlsSettings) -> Fingerprint {
        let stores = [Some(&settings.key_store), settings.trust_store.as_ref()];
        let files = stores.into_iter().flatten().flat_map(files);
        Fingerprint(files.map(mark).collect())
    }
}

fn files(store: &StoreSettings) -> Vec<&PathBuf> {
    match &store.password {
        Password::Given(_) => vec![&store.path],
        Password::File(password) => vec![&store.path, password],
    }
}

fn mark(path: &PathBuf) -> Option<Mark> {
    let data = fs::metadata(path).ok()?;
    Some(Mark(
        data.dev(),
        data.ino(),
        data.len(),
        data.mtime(),
        data.mtime_nsec(),
    ))
}

/// Reads the files again whenever they have changed, until the server stops. What is not usable leaves the certificates
/// as they are. `of` is whose port it is, for the log.
pub async fn watch(of: &'static str, tls: Arc<Tls>, stop: CancellationToken) {
    let mut complaint = Complaint::default();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(TLS_RELOAD_INTERVAL) => {}
        }
        let theirs = Arc::clone(&tls);
        // Opening a store may take a noticeable time.
        match tokio::task::spawn_blocking(move || theirs.refresh()).await {
            Ok(Ok(false)) => {}
            Ok(Ok(true)) => {
                complaint.settle();
                info!(
                    port = of,
                    "the TLS files have changed; new connections use what they hold now"
                );
            }
            Ok(Err(error)) if complaint.is_new(&error) => {
                error!(
                    port = of,
                    "the TLS files have changed and are not used: {error}"
                );
            }
            Ok(Err(_)) => {}
            Err(error) => error!(port = of, %error, "the TLS files could not be read again"),
        }
    }
}
