//! A stream to a server for those who block: plain, or TLS.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use rustls::{ClientConnection, StreamOwned};

use crate::{Tls, tls};

/// A stream in both directions.
pub trait Stream: Read + Write + Send {}

impl<S: Read + Write + Send> Stream for S {}

/// Connects to the first address of `host:port` that takes it. No single read or write waits longer than
/// `patience`.
///
/// # Errors
/// Nobody listens there, or TLS is not agreed on.
pub fn connect(
    address: &str,
    tls: Option<&Tls>,
    patience: Duration,
) -> io::Result<Box<dyn Stream>> {
    let mut socket = dial(address, patience)?;
    socket.set_read_timeout(Some(patience))?;
    socket.set_write_timeout(Some(patience))?;
    socket.set_nodelay(true)?;
    let Some(tls) = tls else {
        return Ok(Box::new(socket));
    };
    let mut connection: ClientConnection = tls.connection(address).map_err(io::Error::other)?;
    while connection.is_handshaking() {
        connection
            .complete_io(&mut socket)
            .map_err(|error| io::Error::new(error.kind(), tls::handshake_reason(&error)))?;
    }
    Ok(Box::new(Secure(StreamOwned::new(connection, socket))))
}

/// TLS, whose failures say what to do: a server tells only after the handshake that it does not take this client.
struct Secure(StreamOwned<ClientConnection, TcpStream>);

impl Read for Secure {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(explained)
    }
}

impl Write for Secure {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.0.write(bytes);
        written.map_err(|error| explained(self.last_word(error)))
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.0.flush();
        flushed.map_err(|error| explained(self.last_word(error)))
    }
}

impl Secure {
    /// Why the server has closed the connection under a write, if it said so before.
    fn last_word(&mut self, error: io::Error) -> io::Error {
        if !matches!(
            error.kind(),
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
        ) {
            return error;
        }
        let StreamOwned { conn, sock } = &mut self.0;
        while conn.read_tls(sock).is_ok_and(|length| length > 0) {
            if let Err(failure) = conn.process_new_packets() {
                return io::Error::new(error.kind(), failure);
            }
        }
        error
    }
}

fn explained(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), tls::reason(&error))
}

fn dial(address: &str, patience: Duration) -> io::Result<TcpStream> {
    let mut failure = io::Error::other("the name has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, patience) {
            Ok(socket) => return Ok(socket),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}
