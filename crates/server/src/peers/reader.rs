//! Frames out of a socket.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::frame::{self, FrameError, Kind};
use crate::limits::PEER_READ_BYTES;

/// Room that one read has at least.
const ROOM_MIN: usize = 16 << 10;

/// Reads frames of at most `max` bytes of payload. A frame shares the buffer that it was read into.
pub(super) struct Reader<R> {
    stream: R,
    buffer: BytesMut,
    max: usize,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    pub(super) fn new(stream: R, max: usize) -> Reader<R> {
        Reader {
            stream,
            buffer: BytesMut::new(),
            max,
        }
    }

    /// The next frame that is here already.
    ///
    /// # Errors
    /// What is here is not a frame.
    pub(super) fn next(&mut self) -> Result<Option<(Kind, Bytes)>, FrameError> {
        frame::cut(&mut self.buffer, self.max)
    }

    /// Reads more: how many bytes, 0 at the end of the stream. To be called when [`Reader::next`] has nothing.
    ///
    /// # Errors
    /// The connection broke.
    pub(super) async fn fill(&mut self) -> io::Result<usize> {
        self.make_room();
        self.stream.read_buf(&mut self.buffer).await
    }

    fn make_room(&mut self) {
        // The rest of a long frame goes into one piece of memory, whose length is known to be in bounds:
        // `next` has refused it otherwise.
        let missing = match frame::length(&self.buffer, self.max) {
            Ok(Some(length)) => length.saturating_sub(self.buffer.len()),
            Ok(None) | Err(_) => 0,
        };
        let room = self.buffer.capacity() - self.buffer.len();
        if room < missing.max(ROOM_MIN) {
            self.buffer.reserve(missing.max(PEER_READ_BYTES));
        }
    }
}
