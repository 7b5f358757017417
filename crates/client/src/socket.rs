//! A connection's bytes, with TLS or without.

use std::io::{self, BufRead, IoSlice, Read, Write};

use bytes::{Buf, BytesMut};
use rustls::ClientConnection;
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::tls;
use crate::{Error, Tls};

/// Bytes that TLS keeps encrypted for a socket that takes no more.
const UNSENT_BYTES: usize = 64 * 1024;
/// Bytes that are decrypted in one go.
const READ_BYTES: usize = 256 * 1024;

/// A connected socket.
#[derive(Debug)]
pub(crate) enum Socket {
    Plain(TcpStream),
    Tls(Box<TlsSocket>),
}

impl Socket {
    /// Connects, and shakes hands where TLS is asked for.
    pub async fn connect(address: &str, tls: Option<&Tls>) -> Result<Socket, Error> {
        let cannot = |reason| Error::Connect {
            address: address.to_owned(),
            reason: std::sync::Arc::new(reason),
        };
        let stream = TcpStream::connect(address).await.map_err(cannot)?;
        stream.set_nodelay(true).map_err(cannot)?;
        let Some(tls) = tls else {
            return Ok(Socket::Plain(stream));
        };
        let mut socket = TlsSocket {
            socket: stream,
            tls: tls.connection(address)?,
            ended: false,
        };
        socket.tls.set_buffer_limit(Some(UNSENT_BYTES));
        socket.handshake().await.map_err(|error| Error::Tls {
            address: address.to_owned(),
            reason: tls::handshake_reason(&error),
        })?;
        Ok(Socket::Tls(Box::new(socket)))
    }

    /// Writes what the socket takes of the output, without waiting. True if something of it, or of what TLS has made of
    /// it, is left.
    pub fn flush(&mut self, out: &mut BytesMut) -> io::Result<bool> {
        match self {
            Socket::Plain(stream) => {
                while !out.is_empty() {
                    match stream.try_write(out) {
                        Ok(count) => out.advance(count),
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                        Err(error) => return Err(error),
                    }
                }
                Ok(false)
            }
            Socket::Tls(socket) => socket.flush(out),
        }
    }

    /// Waits until bytes can move.
    pub async fn ready(&self, interest: Interest) -> io::Result<tokio::io::Ready> {
        match self {
            Socket::Plain(stream) => stream.ready(interest).await,
            Socket::Tls(socket) => socket.socket.ready(interest).await,
        }
    }

    /// Reads what has arrived; 0 at the end.
    pub fn try_read_buf(&mut self, input: &mut BytesMut) -> io::Result<usize> {
        match self {
            Socket::Plain(stream) => stream.try_read_buf(input),
            Socket::Tls(socket) => socket.try_read_buf(input),
        }
    }

    /// Whether this is TLS.
    pub fn is_tls(&self) -> bool {
        matches!(self, Socket::Tls(_))
    }
}

/// A socket with TLS.
#[derive(Debug)]
pub(crate) struct TlsSocket {
    socket: TcpStream,
    tls: ClientConnection,
    ended: bool,
}

impl TlsSocket {
    async fn handshake(&mut self) -> io::Result<()> {
        while self.tls.is_handshaking() {
            let unsent = self.try_flush()?;
            if !self.tls.is_handshaking() {
                break;
            }
            let interest = match unsent {
                true => Interest::READABLE | Interest::WRITABLE,
                false => Interest::READABLE,
            };
            let ready = self.socket.ready(interest).await?;
            if ready.is_readable() {
                self.read_some()?;
                if self.ended && self.tls.is_handshaking() {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
        }
        self.try_flush().map(|_| ())
    }

    /// Reads and decrypts once, if there is something.
    fn read_some(&mut self) -> io::Result<bool> {
        match self.tls.read_tls(&mut Bare(&self.socket)) {
            Ok(0) => {
                self.ended = true;
                Ok(false)
            }
            Ok(_) => {
                let state = self.tls.process_new_packets().map_err(|error| {
                    // Tells the server why, if the socket takes it.
                    let _unsent = self.tls.write_tls(&mut Bare(&self.socket));
                    io::Error::new(io::ErrorKind::InvalidData, error)
                })?;
                self.ended |= state.peer_has_closed();
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn flush(&mut self, out: &mut BytesMut) -> io::Result<bool> {
        loop {
            let unsent = self.try_flush()?;
            if unsent || out.is_empty() {
                return Ok(unsent);
            }
            let count = self.tls.writer().write(out)?;
            out.advance(count);
        }
    }

    /// True if the socket did not take all of it.
    fn try_flush(&mut self) -> io::Result<bool> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut Bare(&self.socket)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    fn try_read_buf(&mut self, input: &mut BytesMut) -> io::Result<usize> {
        let mut taken = self.take_decrypted(input)?;
        while taken < READ_BYTES && !self.ended && self.read_some()? {
            taken += self.take_decrypted(input)?;
        }
        match taken {
            0 if !self.ended => Err(io::ErrorKind::WouldBlock.into()),
            taken => Ok(taken),
        }
    }

    fn take_decrypted(&mut self, input: &mut BytesMut) -> io::Result<usize> {
        let mut taken = 0;
        loop {
            let mut reader = self.tls.reader();
            let piece = match reader.fill_buf() {
                Ok(piece) => piece,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(taken),
                // Closed without a word of farewell, as many do.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(taken),
                Err(error) => return Err(error),
            };
            let length = piece.len();
            if length == 0 {
                return Ok(taken);
            }
            input.extend_from_slice(piece);
            reader.consume(length);
            taken += length;
        }
    }
}

/// The socket as the library wants it.
struct Bare<'a>(&'a TcpStream);

impl Read for Bare<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(buffer)
    }
}

impl Write for Bare<'_> {
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
