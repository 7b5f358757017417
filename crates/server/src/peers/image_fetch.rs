//! Fetches an image from a peer: on a connection of its own, dialed again when it breaks, going on where it was.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

use super::complaints::About as Subject;
use super::context::Context;
use super::dialer::{DialError, Dialer};
use super::frame::{FrameError, Kind};
use super::handshake::Channel;
use super::identity::Facts;
use super::image_wire::{IMAGE_FRAME_MAX, Want, split_chunk};
use super::images::{ImageError, ImageSink};
use super::reader::Reader;
use super::wire::Wire;
use super::writer::Writer;
use crate::limits::IMAGE_IDLE_MAX;

/// Pause before an attempt to go on.
const RETRY: Duration = Duration::from_millis(100);

/// Pause before a source that feeds another member is asked again.
const BUSY_RETRY: Duration = Duration::from_millis(500);

/// Why one connection did not bring the image to its end.
#[derive(Debug, thiserror::Error)]
enum Break {
    #[error("{0}")]
    Dial(#[from] DialError),
    #[error("the connection broke: {0}")]
    Io(#[from] std::io::Error),
    #[error("the source closed the connection")]
    Closed,
    #[error("the source sent nothing for {} s", IMAGE_IDLE_MAX.as_secs())]
    Silent,
    #[error("the source sent {0}")]
    Garbage(#[from] FrameError),
    #[error("the source feeds another member")]
    Busy,
    /// Nothing will bring it to its end.
    #[error(transparent)]
    Image(#[from] ImageError),
}

/// What is to be fetched, and how far it is.
struct Fetch {
    index: u64,
    dialer: Dialer,
    /// What the member that offers it says of itself.
    offered_by: Option<Facts>,
    /// `None` only while a blocking call has it, and when that panicked.
    sink: Option<Box<dyn ImageSink>>,
    received: u64,
}

/// Fetches the image at `index`, which `manifest` describes.
///
/// # Errors
/// The image is gone, the store failed, the dialed server is of another cluster than the member that offers the image
/// and is connected here, or there was no progress for as long as the settings allow.
pub(super) async fn fetch(
    index: u64,
    manifest: Bytes,
    dialer: Dialer,
    context: &Context,
) -> Result<(), ImageError> {
    let images = Arc::clone(&context.images);
    let sink = blocking(move || images.receive(&manifest)).await?;
    let fetch = Fetch {
        index,
        offered_by: context.roster.facts(dialer.peer()),
        dialer,
        sink: Some(sink),
        received: 0,
    };
    let sink = fetch.run(context).await?;
    blocking(move || sink.finish()).await
}

impl Fetch {
    async fn run(mut self, context: &Context) -> Result<Box<dyn ImageSink>, ImageError> {
        let mut progress = Instant::now();
        loop {
            let before = self.received;
            let Err(reason) = self.attempt(context).await else {
                return self.sink.ok_or_else(sink_lost);
            };
            if let Break::Image(error) = reason {
                return Err(error);
            }
            let is_busy = matches!(reason, Break::Busy);
            if self.received > before || is_busy {
                progress = Instant::now();
            }
            if progress.elapsed() >= context.links.image_patience {
                return Err(ImageError::Failed(reason.to_string()));
            }
            let subject = Subject::Image(self.dialer.peer());
            if context
                .complaints
                .is_news_but_for_numbers(subject, &reason.to_string())
            {
                info!(index = self.index, received = self.received, %reason, "the transfer of a snapshot goes on soon");
            }
            sleep(if is_busy { BUSY_RETRY } else { RETRY }).await;
        }
    }

    async fn attempt(&mut self, context: &Context) -> Result<(), Break> {
        if self.missing()?.is_none() {
            return Ok(());
        }
        let (wire, about) = self.dialer.dial(Channel::Image, context).await?;
        if self
            .offered_by
            .is_some_and(|offered_by| !offered_by.may_talk_to(about.facts))
        {
            return Err(ImageError::Failed(other_server(self.dialer.peer())).into());
        }
        self.pull_over(wire).await
    }

    fn missing(&self) -> Result<Option<(u32, u64, usize)>, ImageError> {
        Ok(self.sink.as_ref().ok_or_else(sink_lost)?.next())
    }

    async fn pull_over(&mut self, wire: Wire) -> Result<(), Break> {
        match wire {
            Wire::Plain(mut stream) => {
                let (read_half, write_half) = stream.split();
                self.pull(read_half, write_half).await
            }
            Wire::Secure(stream) => {
                let (read_half, write_half) = tokio::io::split(stream);
                self.pull(read_half, write_half).await
            }
        }
    }

    async fn pull(
        &mut self,
        read_half: impl AsyncRead + Unpin,
        write_half: impl AsyncWrite + Unpin,
    ) -> Result<(), Break> {
        let mut reader = Reader::new(read_half, IMAGE_FRAME_MAX);
        let mut writer = Writer::new(write_half);
        while let Some((file, offset, length)) = self.missing()? {
            let want = Want {
                index: self.index,
                file,
                offset,
                length: length as u64,
            };
            self.pull_part(want, &mut reader, &mut writer).await?;
        }
        Ok(())
    }

    async fn pull_part(
        &mut self,
        want: Want,
        reader: &mut Reader<impl AsyncRead + Unpin>,
        writer: &mut Writer<impl AsyncWrite + Unpin>,
    ) -> Result<(), Break> {
        writer.frame(Kind::Want, want.encode());
        writer.flush().await?;
        let end = want.offset.saturating_add(want.length);
        let mut offset = want.offset;
        while offset < end {
            let (kind, payload) = next(reader).await?;
            match kind {
                Kind::Chunk => {}
                Kind::Gone => return Err(ImageError::Gone.into()),
                Kind::Failed => {
                    let text = "the source cannot read the image".to_owned();
                    return Err(ImageError::Failed(text).into());
                }
                Kind::Busy => return Err(Break::Busy),
                other => return Err(FrameError::Unexpected(other).into()),
            }
            let unexpected = FrameError::Unexpected(Kind::Chunk);
            let (file, at, bytes) = split_chunk(payload).ok_or(unexpected)?;
            let length = bytes.len() as u64;
            if file != want.file || at != offset || length > end - offset {
                return Err(unexpected.into());
            }
            self.keep(file, at, bytes).await?;
            offset += length;
        }
        Ok(())
    }

    async fn keep(&mut self, file: u32, offset: u64, bytes: Bytes) -> Result<(), ImageError> {
        let mut sink = self.sink.take().ok_or_else(sink_lost)?;
        self.received += bytes.len() as u64;
        let kept = blocking(move || {
            sink.write(file, offset, &bytes)?;
            Ok(sink)
        });
        self.sink = Some(kept.await?);
        Ok(())
    }
}

async fn next(reader: &mut Reader<impl AsyncRead + Unpin>) -> Result<(Kind, Bytes), Break> {
    loop {
        if let Some(frame) = reader.next()? {
            return Ok(frame);
        }
        match timeout(IMAGE_IDLE_MAX, reader.fill()).await {
            Err(_) => return Err(Break::Silent),
            Ok(Ok(0)) => return Err(Break::Closed),
            Ok(read) => {
                read?;
            }
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ImageError> + Send + 'static,
) -> Result<T, ImageError> {
    match spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => {
            warn!(%error, "the store failed on an image");
            Err(ImageError::Failed(error.to_string()))
        }
    }
}

/// An empty member is in no cluster, and talks to whoever calls itself a member.
fn other_server(peer: u64) -> String {
    format!(
        "the server at the address of member {peer} belongs to another cluster than the member {peer} that offers the \
         snapshot; check the server lines of this member"
    )
}

fn sink_lost() -> ImageError {
    ImageError::Failed("the store failed on an image".to_owned())
}
