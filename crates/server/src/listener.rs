//! The client port.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use quenda_frontend::Connection;
use tokio::net::{TcpListener, TcpSocket, TcpStream, lookup_host};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

use crate::calm::Calm;
use crate::config::is_wildcard;
use crate::connection_task;
use crate::registry::Handle;
use crate::shared::Shared;

/// Length of the accept queue when the configuration does not say.
const BACKLOG: u32 = 1024;

/// Opens the client port. Without an address, or with one that stands for all, it listens on all of them, IPv4 and IPv6: a
/// server line with a client port alone says `0.0.0.0`, and clients that come by IPv6 are served as ZooKeeper serves them.
///
/// # Errors
/// The address cannot be resolved, or the port cannot be had.
pub async fn bind(
    address: Option<&str>,
    port: u16,
    backlog: Option<u32>,
) -> io::Result<TcpListener> {
    let backlog = backlog.unwrap_or(BACKLOG);
    let Some(address) = address.filter(|address| !is_wildcard(address)) else {
        let all_ipv6 = SocketAddr::from(([0u16; 8], port));
        return match listen(all_ipv6, backlog) {
            // A machine without IPv6.
            Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
                listen(SocketAddr::from(([0u8; 4], port)), backlog)
            }
            listener => listener,
        };
    };
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the address has no entry");
    for candidate in lookup_host((address, port)).await? {
        match listen(candidate, backlog) {
            Ok(listener) => return Ok(listener),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn listen(address: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
    let socket = if address.is_ipv6() {
        TcpSocket::new_v6()?
    } else {
        TcpSocket::new_v4()?
    };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(backlog)
}

/// Accepts connections until the server stops.
pub async fn accept(
    listener: TcpListener,
    shared: Arc<Shared>,
    tasks: TaskTracker,
    stop: CancellationToken,
) {
    let mut refused = Calm::new();
    let mut failed = Calm::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => admit(stream, peer, &shared, &tasks, &mut refused),
            Err(error) => {
                // Out of descriptors, or the peer is gone already: neither is a reason to spin or to stop.
                if let Some(count) = failed.turn(Instant::now()) {
                    warn!(count, %error, "connections could not be accepted");
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

fn admit(
    stream: TcpStream,
    peer: SocketAddr,
    shared: &Arc<Shared>,
    tasks: &TaskTracker,
    refused: &mut Calm,
) {
    let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
    let config = &shared.config;
    if let Err(error) = shared
        .registry
        .admit(peer.ip(), config.max_client_cnxns, config.max_cnxns)
    {
        if let Some(count) = refused.turn(Instant::now()) {
            warn!(count, %peer, %error, "connections refused");
        }
        return;
    }
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%peer, %error, "no TCP_NODELAY");
    }
    let id = shared.next_connection();
    let now_ms = shared.clock.now_ms();
    let settings = Arc::clone(&shared.settings);
    let handle = Arc::new(Handle {
        id,
        peer,
        connection: Mutex::new(Connection::new(
            id,
            shared.member,
            peer.ip(),
            now_ms,
            settings,
        )),
        wake: Notify::new(),
        marked: false.into(),
        unsent: 0.into(),
    });
    shared.registry.insert(Arc::clone(&handle));
    tasks.spawn(connection_task::serve(stream, handle, Arc::clone(shared)));
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream as Client;

    use super::*;

    #[tokio::test]
    async fn an_address_that_stands_for_all_takes_ipv4_and_ipv6() {
        // A machine without IPv6 has nothing to show here.
        let ipv6 = std::net::TcpListener::bind("[::1]:0").is_ok();
        for address in [None, Some("0.0.0.0"), Some("::")] {
            let listener = bind(address, 0, None).await.expect("a free port");
            let port = listener.local_addr().expect("bound").port();
            Client::connect(("127.0.0.1", port)).expect("by IPv4");
            if ipv6 {
                Client::connect(("::1", port)).expect("by IPv6");
            }
        }
        let listener = bind(Some("127.0.0.1"), 0, None).await.expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        Client::connect(("::1", port)).expect_err("one address is not all of them");
    }
}
