//! From an accepted socket to a connection that is served.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use rustls::ServerConnection;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::context::Tls;
use super::identity;
use super::shake::shake_hands;
use super::stream::TlsStream;

/// The first byte of a TLS connection; the first of any other is that of a length below 16 MiB or a small letter.
const HANDSHAKE_RECORD: u8 = 0x16;

/// What a client turned out to be.
#[derive(Debug)]
pub enum Accepted {
    /// It does not speak TLS.
    Plain(TcpStream),
    /// It does.
    Secure {
        /// The connection.
        stream: Box<TlsStream>,
        /// Subject of the certificate that it has proved, if it has one.
        subject: Option<String>,
    },
}

/// Why there was no handshake.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Too many others are under way.
    #[error("too many handshakes are under way (netty.server.outstandingHandshake.limit is {0})")]
    Exceeded(u32),
    /// The client has not finished in time.
    #[error("the client did not finish its handshake in time")]
    TimedOut,
    /// The client does not speak TLS.
    #[error(
        "the client does not speak TLS: its connection belongs on the port without it (clientPort)"
    )]
    NoTls,
    /// The client does not accept this server's certificate, or has a certificate that is not accepted, or none.
    #[error("the handshake failed: {0}")]
    Failed(rustls::Error),
    /// The client's certificate is not for its address.
    #[error("the client's certificate ({0}) does not name its address")]
    Address(String),
    /// The client has gone.
    #[error("the connection was lost: {0}")]
    Lost(#[from] io::Error),
}

/// Carries out the handshake, within `patience`. `may_be_plain` is said of a port that is for both kinds of clients.
///
/// # Errors
/// There is no connection to serve.
pub async fn accept(
    socket: TcpStream,
    peer: IpAddr,
    tls: &Tls,
    may_be_plain: bool,
    patience: Duration,
) -> Result<Accepted, Refusal> {
    if may_be_plain && is_plain(&socket, Duration::from_millis(tls.settings.detection_ms)).await? {
        return Ok(Accepted::Plain(socket));
    }
    let bound = tls.settings.handshakes_max;
    let _place = tls.counters.begin(bound).ok_or(Refusal::Exceeded(bound))?;
    let handshake = secure(socket, peer, tls);
    let outcome = timeout(patience, handshake).await;
    let outcome = outcome.unwrap_or(Err(Refusal::TimedOut));
    match outcome {
        Ok(_) => tls.counters.complete(),
        Err(_) => tls.counters.fail(),
    }
    outcome
}

/// Whether a client does not speak TLS, by its first byte. One that keeps silent for `patience` does not: its first word
/// would be the server's, were it not for the client.
async fn is_plain(socket: &TcpStream, patience: Duration) -> io::Result<bool> {
    let mut first = [0];
    match timeout(patience, socket.peek(&mut first)).await {
        Ok(seen) => Ok(seen? == 0 || first[0] != HANDSHAKE_RECORD),
        Err(_) => Ok(true),
    }
}

async fn secure(socket: TcpStream, peer: IpAddr, tls: &Tls) -> Result<Accepted, Refusal> {
    let mut connection = ServerConnection::new(tls.current()).map_err(Refusal::Failed)?;
    shake_hands(&socket, &mut connection, &tls.turns, true).await?;
    let certificate = connection.peer_certificates().and_then(<[_]>::first);
    let subject = match certificate {
        None => None,
        // What the library has taken can be read; if not, nobody may be taken for another one.
        Some(certificate) => {
            let unreadable = rustls::CertificateError::BadEncoding;
            let subject = identity::subject(certificate);
            let subject = subject.ok_or(Refusal::Failed(unreadable.into()))?;
            if tls.settings.verify_client_host && !identity::names(certificate, peer) {
                return Err(Refusal::Address(subject));
            }
            Some(subject)
        }
    };
    let stream = Box::new(TlsStream::new(socket, connection)?);
    Ok(Accepted::Secure { stream, subject })
}
