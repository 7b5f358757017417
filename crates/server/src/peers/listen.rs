//! The quorum port's sockets.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

use socket2::{Domain, Protocol, Socket, Type};
use tracing::warn;

use super::resolve::Resolve;

/// Length of the accept queue.
const BACKLOG: i32 = 128;

/// Where to listen: a host, or all addresses, and a port.
pub type Own = (Option<String>, u16);

/// Opens the quorum ports of this member's own server line: on the addresses of its hosts, or on all addresses
/// if that is asked for or a host has no address of this machine (behind a translated address, or known under
/// another name here).
///
/// # Errors
/// A port is taken, or the system gives no socket.
pub fn listen(own: &[Own], resolver: &dyn Resolve) -> io::Result<Vec<TcpListener>> {
    let mut listeners = Vec::new();
    for (host, port) in own {
        let found = match host {
            None => Vec::new(),
            Some(host) => on_host(host, *port, resolver)?,
        };
        if found.is_empty() {
            listeners.extend(on_all(*port)?);
        } else {
            listeners.extend(found);
        }
    }
    Ok(listeners)
}

fn on_host(host: &str, port: u16, resolver: &dyn Resolve) -> io::Result<Vec<TcpListener>> {
    let addresses = match resolver.resolve(host, port) {
        Ok(addresses) => addresses,
        Err(error) => {
            warn!(host, port, %error, "own name not found: the quorum port is opened on all addresses");
            return Ok(Vec::new());
        }
    };
    let mut listeners = Vec::new();
    for address in addresses {
        match bind(address) {
            Ok(listener) => listeners.push(listener),
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {}
            Err(error) => return Err(explain(address, &error)),
        }
        let is_name = host != "localhost" && host.parse::<IpAddr>().is_err();
        if address.ip().is_loopback() && is_name {
            warn!(host, %address, "own name leads to this machine only: members elsewhere cannot reach it");
        }
    }
    if listeners.is_empty() {
        warn!(
            host,
            port, "own name has no address of this machine: the quorum port is opened on all"
        );
    }
    Ok(listeners)
}

fn on_all(port: u16) -> io::Result<Option<TcpListener>> {
    let address = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
    let listener = match bind(address) {
        // A machine without IPv6.
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
            bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)))
        }
        bound => bound,
    };
    match listener {
        Ok(listener) => Ok(Some(listener)),
        Err(error) => Err(explain(address, &error)),
    }
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    if address.ip() == IpAddr::from(Ipv6Addr::UNSPECIFIED) {
        socket.set_only_v6(false)?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

fn explain(address: SocketAddr, error: &io::Error) -> io::Error {
    let text = format!("the quorum port cannot be opened on {address}: {error}");
    io::Error::new(error.kind(), text)
}

#[cfg(test)]
mod tests {
    use super::super::resolve::SystemResolver;
    use super::*;

    fn on(host: &str, port: u16) -> Own {
        (Some(host.to_owned()), port)
    }

    fn addresses(own: &[Own]) -> Vec<SocketAddr> {
        let listeners = listen(own, &SystemResolver).expect("listen");
        let addresses = listeners.iter().map(TcpListener::local_addr);
        addresses.collect::<Result<_, _>>().expect("addresses")
    }

    #[test]
    fn the_own_host_is_listened_on() {
        let bound = addresses(&[on("127.0.0.1", 0), on("127.0.0.2", 0)]);
        assert_eq!(bound.len(), 2);
        assert_eq!(bound[0].ip(), IpAddr::from([127, 0, 0, 1]));
        assert_eq!(bound[1].ip(), IpAddr::from([127, 0, 0, 2]));
    }

    #[test]
    fn a_foreign_host_or_the_setting_means_all_addresses() {
        for own in [on("192.0.2.1", 0), (None, 0)] {
            assert!(addresses(&[own])[0].ip().is_unspecified());
        }
    }

    #[test]
    fn a_port_that_is_taken_is_an_error() {
        let first = listen(&[on("127.0.0.1", 0)], &SystemResolver).expect("listen");
        let port = first[0].local_addr().expect("address").port();
        let error =
            listen(&[on("127.0.0.1", port)], &SystemResolver).expect_err("the port is taken");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }
}
