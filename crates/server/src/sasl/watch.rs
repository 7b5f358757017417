//! Reading the users again when their file changes.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::accounts::{Accounts, Change};
use super::source::SourceError;
use crate::complaint::Complaint;
use crate::limits::SASL_RELOAD_INTERVAL;
use crate::shared::Shared;

/// Looks at the file of users until the server stops. A file that is not usable leaves the users as they are.
pub async fn watch(shared: Arc<Shared>, stop: CancellationToken) {
    let complaint = Arc::new(Mutex::new(Complaint::default()));
    while shared.accounts.is_some() {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(SASL_RELOAD_INTERVAL) => {}
        }
        let theirs = Arc::clone(&shared);
        let said = Arc::clone(&complaint);
        let refreshed = tokio::task::spawn_blocking(move || {
            let accounts = theirs.accounts.as_ref();
            accounts.map(|accounts| report(accounts, accounts.refresh(), &mut said.lock()))
        });
        if refreshed.await.is_err() {
            error!("reading the SASL users again failed; they stay as they are");
        }
    }
}

fn report(accounts: &Accounts, refreshed: Result<Change, SourceError>, complaint: &mut Complaint) {
    let source = accounts.source();
    if let Ok(Change::Read(_)) = refreshed {
        complaint.settle();
    }
    match refreshed {
        Ok(Change::None) => {}
        Ok(Change::Read(Some(users))) => info!(%source, users, "the SASL users were read again"),
        Ok(Change::Read(None)) => warn!(%source, "has no login module any more: SASL is off"),
        Err(error) if complaint.is_new(&error) => {
            error!("the SASL users have changed and stay as they were: {error}");
        }
        Err(_) => {}
    }
}
