//! Names to addresses. Asked at every dial: in a container's life the address behind a name changes.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::limits::PEER_DIAL_PATIENCE;

/// Looks names up.
pub trait Resolve: Send + Sync {
    /// All addresses behind a name; may block.
    ///
    /// # Errors
    /// The name is not known, or nobody can be asked.
    fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;
}

/// The system's resolver.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok((host, port).to_socket_addrs()?.collect())
    }
}

/// All addresses of all names, each once, in order. Those that cannot be looked up are left out.
///
/// # Errors
/// Nothing was found: why, for the last name.
pub(super) async fn resolve_all(
    resolver: &Arc<dyn Resolve>,
    names: &[(String, u16)],
) -> io::Result<Vec<SocketAddr>> {
    let mut found = Vec::new();
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the peer has no address");
    for (host, port) in names {
        match resolve(resolver, host, *port).await {
            Ok(addresses) => {
                for address in addresses {
                    if !found.contains(&address) {
                        found.push(address);
                    }
                }
            }
            Err(error) => {
                let text = format!("the name {host} cannot be looked up: {error}");
                last = io::Error::new(error.kind(), text);
            }
        }
    }
    if found.is_empty() {
        Err(last)
    } else {
        Ok(found)
    }
}

async fn resolve(
    resolver: &Arc<dyn Resolve>,
    host: &str,
    port: u16,
) -> io::Result<Vec<SocketAddr>> {
    let resolver = Arc::clone(resolver);
    let name = host.to_owned();
    let asked = spawn_blocking(move || resolver.resolve(&name, port));
    match timeout(PEER_DIAL_PATIENCE, asked).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(panic)) => Err(io::Error::other(panic)),
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}
