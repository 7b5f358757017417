//! A connection between members: a plain socket, or one over TLS.
//!
//! What is done often is compiled for the plain socket by itself: each user takes the wire apart once.

use std::io::{self, IoSlice};
use std::ops::DerefMut;
use std::pin::Pin;
use std::task::{Context, Poll};

use rustls::pki_types::CertificateDer;
use rustls::{ConnectionCommon, SideData};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::tls::TlsStream;

/// A connection over TLS, whichever side has dialed.
pub(super) trait Secure: AsyncRead + AsyncWrite + Send + Unpin {
    /// The socket below.
    fn socket(&self) -> &TcpStream;

    /// The certificate that the other side has proved, if it has shown one.
    fn certificate(&self) -> Option<CertificateDer<'static>>;
}

impl<C, D> Secure for TlsStream<C>
where
    C: DerefMut<Target = ConnectionCommon<D>> + Send + Unpin,
    D: SideData,
{
    fn socket(&self) -> &TcpStream {
        TlsStream::socket(self)
    }

    fn certificate(&self) -> Option<CertificateDer<'static>> {
        TlsStream::certificate(self)
    }
}

/// A connection between members.
pub(super) enum Wire {
    Plain(TcpStream),
    Secure(Box<dyn Secure>),
}

impl Wire {
    /// The socket below.
    pub(super) fn socket(&self) -> &TcpStream {
        match self {
            Wire::Plain(stream) => stream,
            Wire::Secure(stream) => stream.socket(),
        }
    }

    /// The certificate that the other side has proved, if it has shown one.
    pub(super) fn certificate(&self) -> Option<CertificateDer<'static>> {
        match self {
            Wire::Plain(_) => None,
            Wire::Secure(stream) => stream.certificate(),
        }
    }
}

// For the handshake of the members.
impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Wire::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Wire::Secure(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Wire::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Wire::Secure(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Wire::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
            Wire::Secure(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Wire::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Wire::Secure(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Wire::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Wire::Secure(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
