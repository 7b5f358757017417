//! Opening the ports that a configuration asks for.

use std::io;
use std::net::TcpListener as QuorumListener;

use tokio::net::TcpListener;
use tracing::warn;

use crate::config::{ServerConfig, TlsSettings};
use crate::http::HttpListener;
use crate::limits::QUORUM_BIND_PAUSE;
use crate::listener::{self, Listeners};
use crate::metrics::MetricsPorts;
use crate::peers::{self, SystemResolver};
use crate::serve_error::{ServeError, admin_remedy};

/// The ports for Prometheus, as many as there are to be.
pub(crate) fn open_metrics_ports(config: &ServerConfig) -> Result<MetricsPorts, ServeError> {
    let Some(endpoint) = &config.metrics.endpoint else {
        return Ok(MetricsPorts::default());
    };
    let open = |port: Option<u16>| {
        let listener = port.map(|port| {
            HttpListener::bind(Some(&endpoint.address), port).map_err(|cause| ServeError::Listen {
                address: format!("{}:{port}", endpoint.address),
                cause,
            })
        });
        listener.transpose()
    };
    Ok(MetricsPorts {
        plain: open(endpoint.port)?,
        secure: open(endpoint.secure_port)?,
    })
}

/// The ports for clients.
pub(crate) async fn open_ports(config: &ServerConfig) -> Result<Listeners, ServeError> {
    let tls = config.tls.as_ref();
    let secure = tls.and_then(|tls: &TlsSettings| Some((tls.address.as_deref(), tls.port?)));
    let client = config.client_port;
    let client = client.map(|port| (config.client_address.as_deref(), port));
    if client.is_none() && secure.is_none() {
        warn!("neither a client port nor another listener is configured: no client can connect");
    }
    Ok(Listeners {
        client: open_port(config, client).await?,
        secure: open_port(config, secure).await?,
    })
}

/// Opens a port at an address, if there is one to open.
async fn open_port(
    config: &ServerConfig,
    place: Option<(Option<&str>, u16)>,
) -> Result<Option<TcpListener>, ServeError> {
    let Some((address, port)) = place else {
        return Ok(None);
    };
    let backlog = config.client_port_listen_backlog;
    match listener::bind(address, port, backlog).await {
        Ok(listener) => Ok(Some(listener)),
        Err(cause) => Err(ServeError::Listen {
            address: format!("{}:{port}", address.unwrap_or("*")),
            cause,
        }),
    }
}

/// The port for the other members, if there are any.
pub(crate) fn open_quorum_port(config: &ServerConfig) -> Result<Vec<QuorumListener>, ServeError> {
    let mut listeners = Vec::new();
    for (host, port) in &config.quorum_listen {
        let opened = bind_quorum(&(host.clone(), *port), config.quorum_bind_attempts);
        listeners.extend(opened.map_err(|cause| ServeError::ListenQuorum {
            address: format!("{}:{port}", host.as_deref().unwrap_or("*")),
            cause,
        })?);
    }
    Ok(listeners)
}

/// The port for administration, if there is one. Whoever shares a machine with others that have one, and has not asked for
/// it, goes on without.
pub(crate) fn open_admin_port(config: &ServerConfig) -> Result<Option<HttpListener>, ServeError> {
    let settings = &config.admin;
    let Some(port) = settings.port else {
        return Ok(None);
    };
    let cause = match HttpListener::bind(settings.address.as_deref(), port) {
        Ok(listener) => return Ok(Some(listener)),
        Err(cause) => cause,
    };
    let address = format!("{}:{port}", settings.address.as_deref().unwrap_or("*"));
    if settings.demanded && config.ensemble.is_empty() {
        return Err(ServeError::Admin { address, cause });
    }
    warn!(
        "there is no administration over HTTP: cannot listen on {address}: {cause}{}",
        admin_remedy(&cause)
    );
    Ok(None)
}

/// While another process has the port it is tried again: what runs there may be the server before this one.
fn bind_quorum(place: &peers::Own, attempts: u32) -> io::Result<Vec<QuorumListener>> {
    let mut left = attempts;
    loop {
        match peers::listen(std::slice::from_ref(place), &SystemResolver) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && left != 1 => {
                warn!(%error, "another process has the quorum port: it is tried again");
                left = left.saturating_sub(1);
                std::thread::sleep(QUORUM_BIND_PAUSE);
            }
            other => return other,
        }
    }
}
