//! From a dialed socket to a connection whose other side has proved who it is.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConnection;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::accept::Refusal;
use super::context::Tls;
use super::shake::shake_hands;
use super::stream::TlsStream;

/// Carries out the handshake with the server that was dialed, within `patience`. It goes by `hosts`, and `address` is
/// where it was found.
///
/// # Errors
/// There is no connection, or the settings have nobody dialed with TLS.
pub async fn connect(
    socket: TcpStream,
    hosts: &[String],
    address: IpAddr,
    tls: &Tls,
    patience: Duration,
) -> Result<Box<TlsStream<ClientConnection>>, Refusal> {
    let dialing = tls.dialing();
    let none = || {
        Refusal::Failed(rustls::Error::General(
            "nobody is dialed with TLS".to_owned(),
        ))
    };
    let config = dialing.ok_or_else(none)?.for_server(hosts, address);
    let named = hosts.first().map(|host| ServerName::try_from(host.clone()));
    let name = match named {
        Some(Ok(name)) => name,
        Some(Err(_)) | None => ServerName::IpAddress(address.into()),
    };
    let handshake = async {
        let mut connection =
            ClientConnection::new(Arc::new(config), name).map_err(Refusal::Failed)?;
        shake_hands(&socket, &mut connection, &tls.turns, false).await?;
        Ok(Box::new(TlsStream::new(socket, connection)?))
    };
    let outcome = timeout(patience, handshake).await;
    let outcome = outcome.unwrap_or(Err(Refusal::TimedOut));
    match outcome {
        Ok(_) => tls.dialed.complete(),
        Err(_) => tls.dialed.fail(),
    }
    outcome
}
