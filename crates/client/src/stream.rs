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
            .map_err(|error| io::Error::new(error.kind(), tls::reason(&error)))?;
    }
    Ok(Box::new(StreamOwned::new(connection, socket)))
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
