//! Who a client is, by the certificate that it has proved.

use std::net::IpAddr;

use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;

use super::certificate::Certificate;

/// The subject of a certificate, as Java writes it; `None` if it cannot be read.
pub(super) fn subject(certificate: &CertificateDer<'_>) -> Option<String> {
    let certificate = Certificate::parse(certificate).ok()?;
    Some(certificate.subject_text().to_owned())
}

/// Whether a certificate names this address: among its alternative names, or as its common name if it can have none.
pub(super) fn names(certificate: &CertificateDer<'_>, address: IpAddr) -> bool {
    let by_alternative_name = || {
        let parsed = ParsedCertificate::try_from(certificate).ok()?;
        verify_server_name(&parsed, &ServerName::IpAddress(address.into())).ok()
    };
    let by_common_name = || {
        let certificate = Certificate::parse(certificate).ok()?;
        let mut names = certificate.common_names();
        names.find(|name| name.parse() == Ok(address)).map(|_| ())
    };
    by_alternative_name().or_else(by_common_name).is_some()
}
