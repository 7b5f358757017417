//! A connection over TLS, with the face of a plain socket.

use std::io::{self, BufRead, IoSlice, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use rustls::ServerConnection;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::runtime::Handle;

use crate::limits::{READ_BYTES, TLS_UNSENT_BYTES};
use crate::transport::Transport;

/// A socket whose handshake is done.
#[derive(Debug)]
pub struct TlsStream {
    socket: TcpStream,
    tls: ServerConnection,
    /// Bytes that were decrypted and not read.
    readable: usize,
    /// Nothing comes any more.
    ended: bool,
}

impl TlsStream {
    /// Takes over behind the handshake.
    pub(super) fn new(socket: TcpStream, mut tls: ServerConnection) -> io::Result<TlsStream> {
        tls.set_buffer_limit(Some(TLS_UNSENT_BYTES));
        let mut stream = TlsStream {
            socket,
            tls,
            readable: 0,
            ended: false,
        };
        // The client may have sent its first request together with the end of the handshake.
        stream.decrypt()?;
        Ok(stream)
    }

    /// Decrypts what has been read from the socket.
    fn decrypt(&mut self) -> io::Result<()> {
        match self.tls.process_new_packets() {
            Ok(state) => {
                self.readable = state.plaintext_bytes_to_read();
                self.ended |= state.peer_has_closed();
                Ok(())
            }
            Err(error) => {
                // Tells the client why, if the socket takes it.
                let _unsent = self.try_flush();
                Err(io::Error::new(io::ErrorKind::InvalidData, error))
            }
        }
    }

    /// Moves decrypted bytes to the input.
    fn take_readable(&mut self, input: &mut BytesMut) -> io::Result<usize> {
        let mut taken = 0;
        while self.readable > 0 {
            let mut reader = self.tls.reader();
            let piece = reader.fill_buf()?;
            let length = piece.len();
            if length == 0 {
                self.readable = 0;
                break;
            }
            input.extend_from_slice(piece);
            reader.consume(length);
            self.readable = self.readable.saturating_sub(length);
            taken += length;
        }
        Ok(taken)
    }
}

impl Transport for TlsStream {
    fn move_to(self, runtime: &Handle) -> io::Result<TlsStream> {
        let socket = self.socket.move_to(runtime)?;
        Ok(TlsStream { socket, ..self })
    }

    async fn ready(&self, interest: Interest) -> io::Result<()> {
        // Much may come that holds nothing to serve. Who sends it must not keep this thread from the others.
        tokio::task::coop::consume_budget().await;
        if interest.is_readable() && (self.readable > 0 || self.ended) {
            return Ok(());
        }
        self.socket.ready(interest).await.map(|_| ())
    }

    fn try_read_buf(&mut self, input: &mut BytesMut) -> io::Result<usize> {
        let mut taken = self.take_readable(input)?;
        while taken < READ_BYTES && !self.ended {
            match self.tls.read_tls(&mut Socket(&self.socket)) {
                Ok(0) => self.ended = true,
                Ok(_) => {
                    self.decrypt()?;
                    taken += self.take_readable(input)?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        match taken {
            0 if !self.ended => Err(io::ErrorKind::WouldBlock.into()),
            taken => Ok(taken),
        }
    }

    fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.tls.writer().write(bytes)?;
        self.try_flush()?;
        match taken {
            0 if !bytes.is_empty() => Err(io::ErrorKind::WouldBlock.into()),
            taken => Ok(taken),
        }
    }

    fn has_unsent(&self) -> bool {
        self.tls.wants_write()
    }

    fn try_flush(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut Socket(&self.socket)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() || self.has_unsent() {
            match self.try_write(bytes) {
                Ok(taken) => bytes = &bytes[taken..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            if self.has_unsent() {
                self.socket.writable().await?;
            }
        }
        Ok(())
    }

    async fn shutdown(&mut self) -> io::Result<()> {
        self.tls.send_close_notify();
        Transport::write_all(self, &[]).await?;
        AsyncWriteExt::shutdown(&mut self.socket).await
    }
}

impl AsyncRead for TlsStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            if self.readable > 0 {
                let mut reader = self.tls.reader();
                let piece = reader.fill_buf()?;
                let length = piece.len().min(buffer.remaining());
                buffer.put_slice(&piece[..length]);
                reader.consume(length);
                self.readable = match length {
                    0 => 0,
                    length => self.readable.saturating_sub(length),
                };
                if length > 0 {
                    return Poll::Ready(Ok(()));
                }
            }
            if self.ended {
                return Poll::Ready(Ok(()));
            }
            ready!(self.socket.poll_read_ready(cx))?;
            let stream = &mut *self;
            match stream.tls.read_tls(&mut Socket(&stream.socket)) {
                Ok(0) => self.ended = true,
                Ok(_) => self.decrypt()?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for TlsStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            match Transport::try_write(&mut *self, bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready!(self.socket.poll_write_ready(cx))?;
                }
                outcome => return Poll::Ready(outcome),
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            self.try_flush()?;
            if !self.has_unsent() {
                return Poll::Ready(Ok(()));
            }
            ready!(self.socket.poll_write_ready(cx))?;
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.tls.send_close_notify();
        ready!(self.as_mut().poll_flush(cx))?;
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

/// The socket as the library wants it.
pub(super) struct Socket<'a>(pub(super) &'a TcpStream);

impl Read for Socket<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(buffer)
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(pieces)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
