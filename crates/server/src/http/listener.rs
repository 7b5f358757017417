//! The port of an HTTP server.

use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};

use socket2::{Domain, Protocol, Socket, Type};

use crate::config::is_wildcard;

/// Length of the accept queue.
const BACKLOG: i32 = 128;

/// A port that was opened.
#[derive(Debug)]
pub struct HttpListener {
    pub(super) socket: TcpListener,
}

impl HttpListener {
    /// Opens a port; 0 lets the system choose. Without an address, or with one that stands for all, on all of them, IPv4
    /// and IPv6.
    ///
    /// # Errors
    /// The address cannot be resolved, or the port cannot be had.
    pub fn bind(address: Option<&str>, port: u16) -> io::Result<HttpListener> {
        let socket = match address.filter(|address| !is_wildcard(address)) {
            None => on_all(port)?,
            Some(address) => on_first((address, port).to_socket_addrs()?)?,
        };
        socket.set_nonblocking(true)?;
        Ok(HttpListener { socket })
    }

    /// The port.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn port(&self) -> io::Result<u16> {
        Ok(self.socket.local_addr()?.port())
    }
}

fn on_all(port: u16) -> io::Result<TcpListener> {
    match listen(SocketAddr::from(([0u16; 8], port))) {
        // A machine without IPv6.
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
            listen(SocketAddr::from(([0u8; 4], port)))
        }
        opened => opened,
    }
}

fn on_first(candidates: impl Iterator<Item = SocketAddr>) -> io::Result<TcpListener> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the address has no entry");
    for candidate in candidates {
        match listen(candidate) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}
