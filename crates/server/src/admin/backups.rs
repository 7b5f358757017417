//! Snapshots on their way out and in. [`crate::backup`] makes and restores them; here are the ways of their bytes.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use axum::http::{HeaderName, Response};
use hyper::body::{Frame, SizeHint};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tracing::{debug, info};

use super::Admin;
use super::command::Command;
use super::json::field;
use super::limiter::{Limiter, Turn};
use super::query::Query;
use super::routes::{complaint, told};
use crate::backup::{BackupError, Destination, Intake, Restored, Snapshot, snapshot};
use crate::config::WITH_ZXID;

const LAST_ZXID: HeaderName = HeaderName::from_static("last_zxid");
const SNAPSHOT_SIZE: HeaderName = HeaderName::from_static("snapshot_size");

/// `snapshot`: as a stream, or with `streaming=false` into the data directory.
pub(super) async fn take(admin: &Arc<Admin>, query: &Query) -> Response<Body> {
    let command = Command::Snapshot;
    if !admin.settings().snapshot {
        return disabled(command, "admin.snapshot.enabled");
    }
    if !admin.shared.config.backup.with_zxid {
        return without_zxid(command);
    }
    let turn = match turn(&admin.snapshots, command) {
        Ok(turn) => turn,
        Err(refused) => {
            admin.shared.admin.snapshots_limited.add(1);
            return *refused;
        }
    };
    let streaming = query
        .get("streaming")
        .is_none_or(|value| value.eq_ignore_ascii_case("true"));
    let destination = match streaming {
        true => Destination::Stream,
        false => Destination::DataDirectory,
    };
    let compression = admin.shared.config.backup.compression;
    let snapshot = match snapshot(&admin.shared, compression, destination).await {
        Ok(snapshot) => snapshot,
        Err(error) => return failed(command, &error),
    };
    turn.keep();
    let zxid = format!("{:#x}", snapshot.last_zxid);
    let size = HeaderValue::from(snapshot.size);
    let mut response = match streaming {
        true => stream(snapshot),
        false => told(200, command, Vec::new(), None),
    };
    let headers = response.headers_mut();
    if let Ok(zxid) = HeaderValue::from_str(&zxid) {
        headers.insert(LAST_ZXID, zxid);
    }
    headers.insert(SNAPSHOT_SIZE, size);
    response
}

/// `restore`: the body takes the place of everything in the tree, on all members.
pub(super) async fn restore(admin: &Arc<Admin>, body: Body) -> Response<Body> {
    let command = Command::Restore;
    if !admin.settings().restore {
        return disabled(command, "admin.restore.enabled");
    }
    if !admin.shared.config.backup.with_zxid {
        return without_zxid(command);
    }
    let turn = match turn(&admin.restores, command) {
        Ok(turn) => turn,
        Err(refused) => {
            admin.shared.admin.restores_limited.add(1);
            return *refused;
        }
    };
    match receive(admin, body).await {
        Ok(restored) => {
            turn.keep();
            info!(?restored, "a snapshot was restored, as the operator wishes");
            told(
                200,
                command,
                vec![field("last_zxid", restored.last_zxid)],
                None,
            )
        }
        Err(IntakeError::Lost(why)) => {
            complaint(400, command.name(), &format!("{why}; nothing was changed"))
        }
        Err(IntakeError::Refused(error)) => failed(command, &error),
    }
}

/// Why nothing was restored.
enum IntakeError {
    /// The bytes did not come.
    Lost(&'static str),
    Refused(BackupError),
}

impl From<BackupError> for IntakeError {
    fn from(error: BackupError) -> IntakeError {
        IntakeError::Refused(error)
    }
}

async fn receive(admin: &Admin, mut body: Body) -> Result<Restored, IntakeError> {
    let patience = Duration::from_millis(admin.settings().idle_ms);
    let mut intake = Intake::begin(&admin.shared).await?;
    loop {
        let piece = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx));
        let piece = match timeout(patience, piece).await {
            Err(_) => return Err(IntakeError::Lost("the rest of the snapshot does not come")),
            Ok(Some(Err(_))) => return Err(IntakeError::Lost("the snapshot was broken off")),
            Ok(None) => break,
            Ok(Some(Ok(piece))) => piece,
        };
        if let Ok(bytes) = piece.into_data() {
            intake.write(&bytes).await?;
        }
    }
    Ok(intake.finish().await?)
}

fn turn<'a>(limiter: &'a Limiter, command: Command) -> Result<Turn<'a>, Box<Response<Body>>> {
    limiter.turn(Instant::now()).map_err(|wait| {
        let seconds = wait.as_secs() + 1;
        let name = command.name();
        let text = format!(
            "one {name} in {} s at most (admin.rateLimiterIntervalInMS); try again in {seconds} s",
            limiter.interval().as_secs_f64()
        );
        let mut response = complaint(429, name, &text);
        let after = HeaderValue::from(seconds);
        response.headers_mut().insert(RETRY_AFTER, after);
        Box::new(response)
    })
}

fn disabled(command: Command, key: &str) -> Response<Body> {
    let text = format!("turned off by {key}");
    complaint(503, command.name(), &text)
}

/// ZooKeeper's status.
fn without_zxid(command: Command) -> Response<Body> {
    let text = format!("turned off by {WITH_ZXID}=false");
    complaint(500, command.name(), &text)
}

fn failed(command: Command, error: &BackupError) -> Response<Body> {
    complaint(error.status(), command.name(), &error.to_string())
}

/// A file on its way out.
struct Stream {
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    left: u64,
}

/// The file as an answer. It is read as fast as it is taken, a few pieces ahead.
fn stream(mut snapshot: Snapshot) -> Response<Body> {
    let left = snapshot.size;
    let (sender, pieces) = mpsc::channel(2);
    tokio::spawn(async move {
        while let Some(piece) = snapshot.next().await.transpose() {
            let is_last = piece.is_err();
            if sender.send(piece).await.is_err() || is_last {
                debug!("a snapshot was not taken to its end");
                return;
            }
        }
    });
    let mut response = Response::new(Body::new(Stream { pieces, left }));
    let octets = HeaderValue::from_static("application/octet-stream");
    response.headers_mut().insert(CONTENT_TYPE, octets);
    response
}

impl HttpBody for Stream {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let piece = std::task::ready!(self.pieces.poll_recv(cx));
        Poll::Ready(piece.map(|piece| {
            piece.map(|bytes| {
                self.left = self.left.saturating_sub(bytes.len() as u64);
                Frame::data(bytes)
            })
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
