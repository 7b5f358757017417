//! Sends the files of an image to the one member that is being fed.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::complaints::About as Subject;
use super::context::Context;
use super::frame::{FrameError, Kind};
use super::image_wire::{IMAGE_FRAME_MAX, Want, chunk_head};
use super::images::{ImageError, Images};
use super::reader::Reader;
use super::writer::Writer;
use crate::limits::{IMAGE_CHUNK_BYTES, IMAGE_PATIENCE};

/// Whose turn it is to be fed: one member at a time, by its newest connection.
#[derive(Debug, Default)]
pub(super) struct Turn {
    lock: Arc<AsyncMutex<()>>,
    holder: Mutex<Option<(u64, CancellationToken)>>,
}

impl Turn {
    /// Takes the turn; `None` while another member has it.
    async fn take(&self, peer: u64, token: CancellationToken) -> Option<OwnedMutexGuard<()>> {
        let is_own = {
            let holder = self.holder.lock();
            let own = holder.as_ref().filter(|(held_by, _)| *held_by == peer);
            own.inspect(|(_, token)| token.cancel()).is_some()
        };
        let lock = Arc::clone(&self.lock);
        let guard = if is_own {
            lock.lock_owned().await
        } else {
            lock.try_lock_owned().ok()?
        };
        *self.holder.lock() = Some((peer, token));
        Some(guard)
    }
}

/// Why a connection has ended.
#[derive(Debug, thiserror::Error)]
enum End {
    #[error("the receiver has closed it")]
    Closed,
    #[error("nothing was heard for {} s", IMAGE_PATIENCE.as_secs())]
    Silent,
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the receiver sent {0}")]
    Garbage(#[from] FrameError),
}

/// Serves an accepted connection until it ends.
pub(super) async fn serve(mut stream: TcpStream, peer: u64, context: &Context) {
    let token = context.stop.child_token();
    let Some(_turn) = context.image_turn.take(peer, token.clone()).await else {
        let mut writer = Writer::new(&mut stream);
        writer.frame(Kind::Busy, Bytes::new());
        if let Err(error) = writer.flush().await {
            debug!(peer, %error, "the receiver was gone before it had its answer");
        }
        return;
    };
    tokio::select! {
        end = answer_all(&mut stream, peer, context) => {
            if let Err(end) = end {
                debug!(peer, reason = %end, "connection for an image ended");
            }
        }
        () = token.cancelled() => debug!(peer, "connection for an image replaced"),
        () = context.closing.cancelled() => {}
    }
}

async fn answer_all(stream: &mut TcpStream, peer: u64, context: &Context) -> Result<(), End> {
    let (read_half, write_half) = stream.split();
    let mut reader = Reader::new(read_half, IMAGE_FRAME_MAX);
    let mut writer = Writer::new(write_half);
    loop {
        let want = match reader.next()? {
            Some((Kind::Want, payload)) => {
                Want::decode(&payload).ok_or(FrameError::Unexpected(Kind::Want))?
            }
            Some((kind, _)) => return Err(FrameError::Unexpected(kind).into()),
            None => match timeout(IMAGE_PATIENCE, reader.fill()).await {
                Err(_) => return Err(End::Silent),
                Ok(read) => match read? {
                    0 => return Err(End::Closed),
                    _ => continue,
                },
            },
        };
        match send(want, &mut writer, &context.images).await? {
            Ok(()) => {}
            Err(error) => {
                let kind = match &error {
                    ImageError::Gone => Kind::Gone,
                    ImageError::Failed(_) => Kind::Failed,
                };
                let subject = Subject::Image(peer);
                let text = error.to_string();
                if context.complaints.is_news_but_for_numbers(subject, &text) {
                    warn!(peer, index = want.index, %error, "a snapshot cannot be sent");
                }
                writer.frame(kind, Bytes::new());
                writer.flush().await?;
            }
        }
    }
}

/// Sends a part of a file; reads the next piece while the last one is written.
async fn send(
    want: Want,
    writer: &mut Writer<impl AsyncWrite + Unpin>,
    images: &Arc<dyn Images>,
) -> io::Result<Result<(), ImageError>> {
    let mut left = want.length;
    let mut offset = want.offset;
    let mut reading = (left > 0).then(|| read(want, offset, left, images));
    while let Some(piece) = reading.take() {
        let bytes = match piece.await.map_err(io::Error::other)? {
            Ok(bytes) if bytes.is_empty() => {
                let text = format!("file {} ends at {offset}", want.file);
                return Ok(Err(ImageError::Failed(text)));
            }
            Ok(bytes) => bytes,
            Err(error) => return Ok(Err(error)),
        };
        let head = chunk_head(want.file, offset);
        let length = bytes.len() as u64;
        offset = offset.saturating_add(length);
        left = left.saturating_sub(length);
        if left > 0 {
            reading = Some(read(want, offset, left, images));
        }
        writer.frame_of_two(Kind::Chunk, &head, bytes);
        writer.flush().await?;
    }
    Ok(Ok(()))
}

fn read(
    want: Want,
    offset: u64,
    left: u64,
    images: &Arc<dyn Images>,
) -> JoinHandle<Result<Bytes, ImageError>> {
    let images = Arc::clone(images);
    let most = usize::try_from(left).map_or(IMAGE_CHUNK_BYTES, |left| left.min(IMAGE_CHUNK_BYTES));
    spawn_blocking(move || images.read(want.index, want.file, offset, most))
}
