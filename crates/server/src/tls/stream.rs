//! A connection over TLS, with the face of a plain socket.

use std::io::{self, BufRead, IoSlice, Read, Write};
use std::ops::DerefMut;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use rustls::pki_types::CertificateDer;
use rustls::{ConnectionCommon, ServerConnection, SideData};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::runtime::Handle;

use crate::limits::{READ_BYTES, TLS_UNSENT_BYTES};
use crate::transport::Transport;

/// A socket whose handshake is done, on the side that was dialed or, with [`rustls::ClientConnection`], on the other.
#[derive(Debug)]
pub struct TlsStream<C = ServerConnection> {
    socket: TcpStream,
    tls: C,
    /// Bytes that were decrypted and not read.
    readable: usize,
    /// Nothing comes any more.
    ended: bool,
}

impl<C, D> TlsStream<C>
where
    C: DerefMut<Target = ConnectionCommon<D>>,
    D: SideData,
{
    /// Takes over behind the handshake.
    pub(super) fn new(socket: TcpStream, mut tls: C) -> io::Result<TlsStream<C>> {
        tls.set_buffer_limit(Some(TLS_UNSENT_BYTES));
        let mut stream = TlsStream {
            socket,
            tls,
            readable: 0,
            ended: false,
        };
        // The other side may have sent its first request together with the end of the handshake.
        stream.decrypt()?;
        Ok(stream)
    }

    /// The certificate that the other side has proved, if it has shown one.
    pub fn certificate(&self) -> Option<CertificateDer<'static>> {
        self.tls.peer_certificates()?.first().cloned()
    }

    /// The socket below.
    pub fn socket(&self) -> &TcpStream {
        &self.socket
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
                // Tells the other side why, if the socket takes it.
                let _unsent = self.flush_socket();
                Err(io::Error::new(io::ErrorKind::InvalidData, error))
            }
        }
    }

    /// Encrypts as much as there is room for.
    fn encrypt(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let taken = self.tls.writer().write_vectored(pieces)?;
        self.flush_socket()?;
        match taken {
            0 if pieces.iter().any(|piece| !piece.is_empty()) => {
                Err(io::ErrorKind::WouldBlock.into())
            }
            taken => Ok(taken),
        }
    }

    /// Sends as much of what is encrypted as the socket takes.
    fn flush_socket(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut Socket(&self.socket)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
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
        self.encrypt(&[IoSlice::new(bytes)])
    }

    fn has_unsent(&self) -> bool {
        self.tls.wants_write()
    }

    fn try_flush(&mut self) -> io::Result<()> {
        self.flush_socket()
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

impl<C, D> AsyncRead for TlsStream<C>
where
    C: DerefMut<Target = ConnectionCommon<D>> + Unpin,
    D: SideData,
{
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

impl<C, D> AsyncWrite for TlsStream<C>
where
    C: DerefMut<Target = ConnectionCommon<D>> + Unpin,
    D: SideData,
{
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            match self.encrypt(pieces) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready!(self.socket.poll_write_ready(cx))?;
                }
                outcome => return Poll::Ready(outcome),
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            self.flush_socket()?;
            if !self.tls.wants_write() {
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
