//! TLS in front of the handshake of the members, and in words what is wrong with it.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};

use rustls::pki_types::CertificateDer;
use rustls::{AlertDescription, CertificateError, Error};
use tokio::net::TcpStream;

use super::context::Context;
use super::resolve::resolve_all;
use super::wire::Wire;
use crate::limits::PEER_HANDSHAKE_PATIENCE;
use crate::tls::{self, Accepted, Refusal};

/// Finds out whether who has connected speaks TLS, and shakes hands if TLS is to be had.
///
/// # Errors
/// Why it is turned away.
pub(super) async fn accept(
    stream: TcpStream,
    address: SocketAddr,
    context: &Context,
) -> Result<Wire, Refusal> {
    let Some(tls) = &context.tls else {
        return Ok(Wire::Plain(stream));
    };
    let may_be_plain = tls.settings.unified;
    let patience = PEER_HANDSHAKE_PATIENCE;
    match tls::accept(stream, address.ip(), tls, may_be_plain, patience).await? {
        Accepted::Plain(stream) => Ok(Wire::Plain(stream)),
        Accepted::Secure { stream, .. } => Ok(Wire::Secure(stream)),
    }
}

/// Shakes hands with a peer that was dialed at this address and goes by these hosts, if members are dialed with TLS.
///
/// # Errors
/// There is no TLS with it.
pub(super) async fn dial(
    stream: TcpStream,
    hosts: &[String],
    address: IpAddr,
    context: &Context,
) -> Result<Wire, Refusal> {
    match &context.tls {
        Some(tls) if tls.settings.dialing.is_some() => {
            let patience = PEER_HANDSHAKE_PATIENCE;
            let stream = tls::connect(stream, hosts, address, tls, patience).await?;
            Ok(Wire::Secure(stream))
        }
        Some(_) | None => Ok(Wire::Plain(stream)),
    }
}

/// Whether the certificate of one who has connected as this member is that member's: as when it is dialed it has to name the
/// host of the server line or an address behind it. Of those who are not dialed, and of those who were not asked for a
/// certificate, nothing is known.
pub(super) async fn fits(
    certificate: Option<CertificateDer<'static>>,
    member: u64,
    from: IpAddr,
    context: &Context,
) -> bool {
    let dialing = context.tls.as_ref().and_then(|tls| tls.settings.dialing);
    let is_asked = dialing.is_some_and(|dialing| dialing.verify_host);
    let Some(certificate) = certificate.filter(|_| is_asked) else {
        return true;
    };
    let Some(names) = context.names.lock().get(&member).cloned() else {
        return true;
    };
    let hosts: Vec<String> = names.iter().map(|(host, _)| host.clone()).collect();
    if tls::is_of_host(&certificate, &hosts, from) {
        return true;
    }
    // It may come from another of its addresses than it is dialed at.
    let addresses = resolve_all(&context.resolver, &names).await;
    let mut addresses = addresses.unwrap_or_default().into_iter();
    addresses.any(|address| tls::is_of_host(&certificate, &[], address.ip()))
}

/// Why who has connected is turned away, for the log; `None` for one that only looked whether the port is open.
pub(super) fn explain_accepted(refusal: &Refusal) -> Option<String> {
    Some(match refusal {
        Refusal::Lost(_) => return None,
        Refusal::NoTls => {
            "it does not speak TLS, and this port takes TLS alone: set sslQuorum=true there, or \
                           portUnification=true here until all members have it"
                .to_owned()
        }
        Refusal::Address(subject) => format!(
            "its certificate ({subject}) does not name its address: have one signed with that in subjectAltName, or \
             set ssl.quorum.clientHostnameVerification=false here"
        ),
        Refusal::Failed(error) => explain(error),
        Refusal::TimedOut | Refusal::Exceeded(_) => late(),
    })
}

/// Why there is no TLS with a peer that was dialed by these hosts, for the log.
pub(super) fn explain_dialed(refusal: &Refusal, hosts: &[String]) -> String {
    let closes = || {
        "it ends the TLS handshake; if it does not speak TLS yet, set portUnification=true there before sslQuorum=true \
         here"
            .to_owned()
    };
    match refusal {
        Refusal::NoTls => closes(),
        Refusal::Lost(error) => match error.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
                closes()
            }
            _ => format!("the connection was lost in the TLS handshake: {error}"),
        },
        Refusal::Failed(Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        )) => format!(
            "its certificate names neither {} nor its address: have one signed with that in subjectAltName, or set \
             ssl.quorum.hostnameVerification=false here",
            hosts.join(" nor ")
        ),
        Refusal::Failed(error) => explain(error),
        Refusal::Address(subject) => {
            format!("its certificate ({subject}) does not name its address")
        }
        Refusal::TimedOut | Refusal::Exceeded(_) => late(),
    }
}

/// What TLS has to say of a connection that broke later: the other side may refuse a certificate after the handshake.
pub(super) fn explain_broken(error: &std::io::Error) -> Option<String> {
    let error = error.get_ref()?.downcast_ref::<Error>()?;
    Some(explain(error))
}

fn late() -> String {
    let seconds = PEER_HANDSHAKE_PATIENCE.as_secs();
    format!("it did not finish the TLS handshake within {seconds} s")
}

fn explain(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(error) => of_certificate(error),
        Error::NoCertificatesPresented => {
            "it shows no certificate, which ssl.quorum.clientAuth asks for".to_owned()
        }
        Error::AlertReceived(alert) => of_alert(*alert),
        Error::PeerIncompatible(_) => nothing_in_common(),
        error => format!("the TLS handshake failed: {error}"),
    }
}

fn of_certificate(error: &CertificateError) -> String {
    match error {
        CertificateError::UnknownIssuer => {
            "its certificate is signed by nobody in ssl.quorum.trustStore of this member: add who signed it there, or \
             have it signed by one who stands there"
                .to_owned()
        }
        CertificateError::BadSignature => {
            "its certificate is signed by nobody in ssl.quorum.trustStore of this member, though one there has the \
             signer's name: an authority that was made anew is another one"
                .to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired: have a new one signed, and put it into ssl.quorum.keyStore there".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet: check the clocks of both machines".to_owned()
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "its certificate is not for this use: a member both dials and is dialed, so extendedKeyUsage, where there \
             is one, must have serverAuth and clientAuth"
                .to_owned()
        }
        error => format!("its certificate is not accepted: {error}"),
    }
}

fn of_alert(alert: AlertDescription) -> String {
    let why = match alert {
        AlertDescription::UnknownCA => {
            ": who signed it does not stand in ssl.quorum.trustStore there"
        }
        AlertDescription::DecryptError => {
            ": who signed it is not the one of that name in ssl.quorum.trustStore there"
        }
        AlertDescription::CertificateExpired => ": it has expired, or a clock is wrong",
        AlertDescription::BadCertificate => ": it names neither its host nor its address",
        AlertDescription::UnsupportedCertificate => {
            ": its extendedKeyUsage lacks serverAuth or clientAuth"
        }
        AlertDescription::CertificateUnknown
        | AlertDescription::CertificateRequired
        | AlertDescription::AccessDenied => ": see the log there",
        AlertDescription::ProtocolVersion
        | AlertDescription::HandshakeFailure
        | AlertDescription::InsufficientSecurity => return nothing_in_common(),
        other => {
            return format!(
                "it ends the TLS handshake with the alert {other:?}: see the log there"
            );
        }
    };
    format!("it does not accept the certificate of this member{why}")
}

fn nothing_in_common() -> String {
    "no version of TLS or no cipher suite is there on both sides: compare ssl.quorum.enabledProtocols and \
     ssl.quorum.ciphersuites"
        .to_owned()
}
