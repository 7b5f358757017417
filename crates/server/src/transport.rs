//! What a connection's task needs of its socket: a plain one and one over TLS are served by the same code, which is
//! compiled for each of them.

use std::future::Future;
use std::io;

use bytes::BytesMut;
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::TcpStream;
use tokio::runtime::Handle;

/// A connection to a client.
pub trait Transport: Send + Sync + Sized + 'static {
    /// Goes on in another runtime.
    ///
    /// # Errors
    /// The system refuses it.
    fn move_to(self, runtime: &Handle) -> io::Result<Self>;

    /// Waits until it may be possible to do what is of interest.
    fn ready(&self, interest: Interest) -> impl Future<Output = io::Result<()>> + Send;

    /// Reads what has come behind the input's end; 0 at the end of the stream.
    ///
    /// # Errors
    /// `WouldBlock` if nothing has come; others when the connection is lost.
    fn try_read_buf(&mut self, input: &mut BytesMut) -> io::Result<usize>;

    /// Takes as many bytes as there is room for.
    ///
    /// # Errors
    /// `WouldBlock` if there is none; others when the connection is lost.
    fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Whether bytes that were taken wait for room in the socket.
    fn has_unsent(&self) -> bool;

    /// Sends as many of them as there is room for.
    ///
    /// # Errors
    /// The connection is lost.
    fn try_flush(&mut self) -> io::Result<()>;

    /// Sends all of it.
    fn write_all(&mut self, bytes: &[u8]) -> impl Future<Output = io::Result<()>> + Send;

    /// Ends the output.
    fn shutdown(&mut self) -> impl Future<Output = io::Result<()>> + Send;
}

impl Transport for TcpStream {
    fn move_to(self, runtime: &Handle) -> io::Result<TcpStream> {
        let socket = self.into_std()?;
        let _there = runtime.enter();
        TcpStream::from_std(socket)
    }

    async fn ready(&self, interest: Interest) -> io::Result<()> {
        TcpStream::ready(self, interest).await.map(|_| ())
    }

    fn try_read_buf(&mut self, input: &mut BytesMut) -> io::Result<usize> {
        TcpStream::try_read_buf(self, input)
    }

    fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        TcpStream::try_write(self, bytes)
    }

    fn has_unsent(&self) -> bool {
        false
    }

    fn try_flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        AsyncWriteExt::write_all(self, bytes).await
    }

    async fn shutdown(&mut self) -> io::Result<()> {
        AsyncWriteExt::shutdown(self).await
    }
}
