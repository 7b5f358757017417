//! Sends the files of an image to the one member that is being fed.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
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
use super::wire::Wire;
use super::writer::Writer;
use crate::limits::{IMAGE_CHUNK_BYTES, IMAGE_PATIENCE};

/// Whose turn it is to be fed: so many members at a time, each by its newest connection.
#[derive(Debug)]
pub(super) struct Turn {
    places: Arc<Semaphore>,
    holders: Mutex<HashMap<u64, Arc<CancellationToken>>>,
}

/// A member's turn, until it is dropped.
struct Held<'a> {
    turn: &'a Turn,
    peer: u64,
    token: Arc<CancellationToken>,
    _place: OwnedSemaphorePermit,
}

impl Turn {
    pub(super) fn new(feeds: usize) -> Turn {
        Turn {
            places: Arc::new(Semaphore::new(feeds.min(Semaphore::MAX_PERMITS))),
            holders: Mutex::default(),
        }
    }

    /// Takes a turn; `None` while others have all of them.
    async fn take(&self, peer: u64, token: CancellationToken) -> Option<Held<'_>> {
        let held = self.holders.lock().get(&peer).map(Arc::clone);
        let places = Arc::clone(&self.places);
        let place = match held {
            Some(token) => {
                token.cancel();
                places.acquire_owned().await
            }
            None => return self.hold(peer, token, places.try_acquire_owned().ok()?),
        };
        self.hold(peer, token, place.ok()?)
    }

    fn hold(
        &self,
        peer: u64,
        token: CancellationToken,
        place: OwnedSemaphorePermit,
    ) -> Option<Held<'_>> {
        let token = Arc::new(token);
        self.holders.lock().insert(peer, Arc::clone(&token));
        Some(Held {
            turn: self,
            peer,
            token,
            _place: place,
        })
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut holders = self.turn.holders.lock();
        let newest = holders.get(&self.peer);
        if newest.is_some_and(|newest| Arc::ptr_eq(newest, &self.token)) {
            holders.remove(&self.peer);
        }
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
pub(super) async fn serve(mut wire: Wire, peer: u64, context: &Context) {
    let token = context.stop.child_token();
    let Some(_turn) = context.image_turn.take(peer, token.clone()).await else {
        let mut writer = Writer::new(&mut wire);
        writer.frame(Kind::Busy, Bytes::new());
        if let Err(error) = writer.flush().await {
            debug!(peer, %error, "the receiver was gone before it had its answer");
        }
        return;
    };
    tokio::select! {
        end = answer(wire, peer, context) => {
            if let Err(end) = end {
                debug!(peer, reason = %end, "connection for an image ended");
            }
        }
        () = token.cancelled() => debug!(peer, "connection for an image replaced"),
        () = context.closing.cancelled() => {}
    }
}

async fn answer(wire: Wire, peer: u64, context: &Context) -> Result<(), End> {
    match wire {
        Wire::Plain(mut stream) => {
            let (read_half, write_half) = stream.split();
            answer_all(read_half, write_half, peer, context).await
        }
        Wire::Secure(stream) => {
            let (read_half, write_half) = tokio::io::split(stream);
            answer_all(read_half, write_half, peer, context).await
        }
    }
}

async fn answer_all(
    read_half: impl AsyncRead + Unpin,
    write_half: impl AsyncWrite + Unpin,
    peer: u64,
    context: &Context,
) -> Result<(), End> {
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
