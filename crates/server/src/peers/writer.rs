//! Frames into a socket: many small ones with one system call, long ones without a copy.

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::frame::{self, Kind};

/// Payloads up to this length are copied next to each other; longer ones are written from where they are.
const COPY_MAX: usize = 8 << 10;

/// Pieces of memory in one system call.
const SLICES: usize = 64;

/// Gathers frames and writes them.
pub(super) struct Writer<W> {
    stream: W,
    small: BytesMut,
    pieces: VecDeque<Bytes>,
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    pub(super) fn new(stream: W) -> Writer<W> {
        Writer {
            stream,
            small: BytesMut::new(),
            pieces: VecDeque::new(),
        }
    }

    /// Adds a frame to what [`Writer::flush`] writes.
    pub(super) fn frame(&mut self, kind: Kind, payload: Bytes) {
        self.frame_of_two(kind, &[], payload);
    }

    /// Adds a frame whose payload is `head` and `tail` one after the other.
    pub(super) fn frame_of_two(&mut self, kind: Kind, head: &[u8], tail: Bytes) {
        frame::put_header(&mut self.small, kind, &[head, &tail]);
        self.small.extend_from_slice(head);
        if tail.len() <= COPY_MAX {
            self.small.extend_from_slice(&tail);
        } else {
            self.end_small();
            self.pieces.push_back(tail);
        }
    }

    /// Adds the rest of a frame whose beginning was written elsewhere; nothing else may have been added before it.
    pub(super) fn rest(&mut self, rest: Bytes) {
        debug_assert!(self.small.is_empty() && self.pieces.is_empty());
        self.pieces.push_back(rest);
    }

    /// Writes all that was added.
    ///
    /// # Errors
    /// The connection broke.
    pub(super) async fn flush(&mut self) -> io::Result<()> {
        self.end_small();
        while !self.pieces.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let mut count = 0;
            for (slice, piece) in slices.iter_mut().zip(&self.pieces) {
                *slice = IoSlice::new(piece);
                count += 1;
            }
            let written = self.stream.write_vectored(&slices[..count]).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.advance(written);
        }
        // What is encrypted may still wait for room in the socket.
        self.stream.flush().await
    }

    /// Tells the other side that nothing more comes.
    ///
    /// # Errors
    /// The connection broke.
    pub(super) async fn shutdown(&mut self) -> io::Result<()> {
        self.stream.shutdown().await
    }

    fn end_small(&mut self) {
        if !self.small.is_empty() {
            self.pieces.push_back(self.small.split().freeze());
        }
    }

    fn advance(&mut self, mut written: usize) {
        while let Some(piece) = self.pieces.front_mut() {
            if written < piece.len() {
                piece.advance(written);
                return;
            }
            written -= piece.len();
            self.pieces.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn frames_of_all_lengths_come_out_in_order() {
        // A narrow pipe, so that every kind of partial write happens.
        let (near, mut far) = tokio::io::duplex(777);
        let payloads: Vec<Bytes> = [0, 1, COPY_MAX, COPY_MAX + 1, 100_000, 3, 50_000]
            .iter()
            .enumerate()
            .map(|(at, length)| Bytes::from(vec![at as u8; *length]))
            .collect();
        let sent = payloads.clone();
        let writing = tokio::spawn(async move {
            let mut writer = Writer::new(near);
            for payload in sent {
                writer.frame(Kind::Data, payload);
            }
            writer.flush().await.expect("flush");
            writer.shutdown().await.expect("shutdown");
        });
        let mut all = Vec::new();
        far.read_to_end(&mut all).await.expect("read");
        writing.await.expect("writer");
        let mut all = BytesMut::from(&all[..]);
        for payload in payloads {
            let read = frame::cut(&mut all, 1 << 20).expect("a frame");
            assert_eq!(read, Some((Kind::Data, payload)));
        }
        assert!(all.is_empty());
    }

    #[tokio::test]
    async fn nothing_stays_behind_in_a_stream_that_gathers() {
        // As one that encrypts does while its socket takes nothing.
        let (near, mut far) = tokio::io::duplex(1 << 10);
        let mut writer = Writer::new(tokio::io::BufWriter::with_capacity(1 << 20, near));
        writer.frame(Kind::Data, Bytes::from_static(b"word"));
        writer.flush().await.expect("flush");
        let mut there = [0; frame::HEADER + 4];
        let read = far.read_exact(&mut there);
        let read = tokio::time::timeout(std::time::Duration::from_secs(20), read).await;
        read.expect("it comes at once").expect("read");
        assert!(there.ends_with(b"word"));
    }
}
