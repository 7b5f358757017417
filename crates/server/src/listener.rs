//! The client ports.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use quenda_frontend::{Connection, ServiceMode};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpSocket, TcpStream, lookup_host};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::calm::Calm;
use crate::config::is_wildcard;
use crate::connection_task::{self, Quarters};
use crate::registry::{Admitted, Door, Handle};
use crate::shared::Shared;
use crate::tls::{self, Accepted, Refusal};
use crate::transport::Transport;

/// Length of the accept queue when the configuration does not say.
const BACKLOG: u32 = 1024;

/// Opens a client port. Without an address, or with one that stands for all, it listens on all of them, IPv4 and IPv6: a
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

/// The ports for clients, open.
#[derive(Debug, Default)]
pub struct Listeners {
    /// The client port.
    pub client: Option<TcpListener>,
    /// The client port with TLS.
    pub secure: Option<TcpListener>,
}

/// Accepts the connections of one port.
pub struct Acceptor {
    /// Which port.
    pub door: Door,
    /// The server.
    pub shared: Arc<Shared>,
    /// Where the connections are served.
    pub quarters: Quarters,
    /// The end of accepting.
    pub stop: CancellationToken,
}

impl Acceptor {
    /// Accepts connections until the server stops.
    pub async fn run(self, listener: TcpListener) {
        let mut refused = Calm::new();
        let mut failed = Calm::new();
        loop {
            let accepted = tokio::select! {
                () = self.stop.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => self.admit(stream, peer, &mut refused),
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

    fn admit(&self, stream: TcpStream, peer: SocketAddr, refused: &mut Calm) {
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        let admitted = match Admitted::new(&self.shared, self.door, peer.ip()) {
            Ok(admitted) => admitted,
            Err(error) => {
                self.shared.metrics.clients.rejected.add(1);
                if let Some(count) = refused.turn(Instant::now()) {
                    warn!(count, %peer, %error, "connections refused");
                }
                return;
            }
        };
        if let Err(error) = stream.set_nodelay(true) {
            debug!(%peer, %error, "no TCP_NODELAY");
        }
        if self.shared.config.client_keep_alive
            && let Err(error) = SockRef::from(&stream).set_keepalive(true)
        {
            debug!(%peer, %error, "no keep-alive");
        }
        let newcomer = Newcomer {
            peer,
            admitted,
            shared: Arc::clone(&self.shared),
            quarters: self.quarters.clone(),
        };
        // In this runtime, not in that of the clients, until they begin to speak the protocol.
        let tasks = &self.quarters.tasks;
        if self.speaks_tls() {
            let stop = self.stop.clone();
            tasks.spawn(newcomer.greet(stream, self.door, stop));
        } else {
            tasks.spawn(newcomer.serve(stream, None));
        }
    }

    fn speaks_tls(&self) -> bool {
        let tls = self.shared.tls.as_ref();
        tls.is_some_and(|tls| self.door == Door::Secure || tls.settings.unified)
    }
}

/// How often clients failed to speak TLS with the server.
static FAILED_HANDSHAKES: Mutex<Calm> = Mutex::new(Calm::new());

/// A connection that was admitted and is not served yet.
struct Newcomer {
    peer: SocketAddr,
    admitted: Admitted,
    shared: Arc<Shared>,
    quarters: Quarters,
}

impl Newcomer {
    /// Serves it. `subject` is that of the certificate that the client has proved.
    fn serve(
        self,
        stream: impl Transport,
        subject: Option<String>,
    ) -> impl Future<Output = ()> + Send {
        let Newcomer {
            peer,
            admitted,
            shared,
            quarters,
        } = self;
        let handle = register(&shared, peer, admitted.door(), subject.as_deref());
        connection_task::serve(stream, handle, admitted, shared, quarters)
    }

    /// Finds out whether the client speaks TLS, shakes hands, and serves.
    async fn greet(self, stream: TcpStream, door: Door, stop: CancellationToken) {
        let shared = Arc::clone(&self.shared);
        let Some(tls) = &shared.tls else {
            return;
        };
        let is_early = tls.settings.drop_while_not_serving && door == Door::Secure;
        if is_early && shared.service() == ServiceMode::NotServing {
            return;
        }
        let patience = Duration::from_millis(shared.config.sessionless_timeout_ms);
        let accept = tls::accept(stream, self.peer.ip(), tls, door == Door::Client, patience);
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = accept => accepted,
        };
        match accepted {
            Ok(Accepted::Plain(stream)) => self.serve(stream, None).await,
            Ok(Accepted::Secure { stream, subject }) => self.serve(*stream, subject).await,
            // Who only looks whether the port is open is no fault.
            Err(Refusal::Lost(error)) => debug!(peer = %self.peer, %error, "no TLS handshake"),
            Err(refusal) => {
                if let Some(count) = FAILED_HANDSHAKES.lock().turn(Instant::now()) {
                    warn!(count, peer = %self.peer, "TLS clients turned away: {refusal}");
                }
            }
        }
    }
}

/// Makes a connection known to the rest of the server.
fn register(
    shared: &Arc<Shared>,
    peer: SocketAddr,
    door: Door,
    subject: Option<&str>,
) -> Arc<Handle> {
    let id = shared.next_connection();
    let now_ms = shared.clock.now_ms();
    let settings = Arc::clone(&shared.settings);
    let mut connection = Connection::new(id, shared.member, peer.ip(), now_ms, settings);
    if subject.is_some_and(|subject| !connection.certify(subject)) {
        warn!(%peer, "the subject of the client's certificate is too long");
    }
    let handle = Arc::new(Handle {
        id,
        peer,
        door,
        connection: Mutex::new(connection),
        wake: Notify::new(),
        marked: false.into(),
        waiting: Default::default(),
        unsent: 0.into(),
    });
    shared.registry.insert(Arc::clone(&handle));
    handle
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
