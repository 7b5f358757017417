//! Who the other side is, by the certificate that it has proved.

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

/// Whether a certificate names this address: among its alternative names, or as its common name if it has none.
pub(super) fn names(certificate: &CertificateDer<'_>, address: IpAddr) -> bool {
    let by_alternative_name = || {
        let parsed = ParsedCertificate::try_from(certificate).ok()?;
        verify_server_name(&parsed, &ServerName::IpAddress(address.into())).ok()
    };
    let by_common_name = || {
        let certificate = Certificate::parse(certificate).ok()?;
        if certificate.has_alternative_names() {
            return None;
        }
        let mut names = certificate.common_names();
        names.find(|name| name.parse() == Ok(address)).map(|_| ())
    };
    by_alternative_name().or_else(by_common_name).is_some()
}

/// Whether a certificate names one of these hosts, or this address: among its alternative names, or as its common name if
/// it has none.
pub fn is_of_host(certificate: &CertificateDer<'_>, hosts: &[String], address: IpAddr) -> bool {
    names(certificate, address) || hosts.iter().any(|host| names_host(certificate, host))
}

fn names_host(certificate: &CertificateDer<'_>, host: &str) -> bool {
    if let Ok(address) = host.parse() {
        return names(certificate, address);
    }
    let by_alternative_name = || {
        let parsed = ParsedCertificate::try_from(certificate).ok()?;
        let name = ServerName::try_from(host).ok()?;
        verify_server_name(&parsed, &name).ok()
    };
    let by_common_name = || {
        let certificate = Certificate::parse(certificate).ok()?;
        if certificate.has_alternative_names() {
            return None;
        }
        let mut names = certificate.common_names();
        names
            .find(|name| name.eq_ignore_ascii_case(host))
            .map(|_| ())
    };
    by_alternative_name().or_else(by_common_name).is_some()
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::pem::PemObject;

    use super::*;

    #[test]
    fn the_common_name_counts_where_there_is_no_other() {
        let here = IpAddr::from([127, 0, 0, 1]);
        let elsewhere = IpAddr::from([10, 0, 0, 1]);
        for (pem, expected) in [
            (&include_bytes!("golden/client.pem")[..], [true, false]),
            (include_bytes!("golden/named-here.pem"), [true, false]),
            (include_bytes!("golden/named-elsewhere.pem"), [false, true]),
            (include_bytes!("golden/client-old.pem"), [false, false]),
        ] {
            let certificate = CertificateDer::from_pem_slice(pem).expect("a certificate");
            let found = [here, elsewhere].map(|address| names(&certificate, address));
            assert_eq!(found, expected, "{:?}", subject(&certificate));
        }
    }

    #[test]
    fn one_of_the_hosts_or_the_address_is_enough() {
        let elsewhere = IpAddr::from([192, 0, 2, 1]);
        let is_of = |pem: &[u8], hosts: &[&str], address| {
            let certificate = CertificateDer::from_pem_slice(pem).expect("a certificate");
            let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
            is_of_host(&certificate, &hosts, address)
        };
        // It names localhost and 127.0.0.1.
        let server = include_bytes!("golden/keystore.pem");
        assert!(is_of(server, &["zoo1", "LOCALHOST"], elsewhere));
        assert!(is_of(server, &["127.0.0.1"], elsewhere));
        assert!(is_of(server, &["zoo1"], [127, 0, 0, 1].into()));
        assert!(!is_of(
            server,
            &["zoo1", "localhost.example", ""],
            elsewhere
        ));
        assert!(!is_of(server, &[], elsewhere));
        // Only the common name, `self`; another has a name, and its common name does not count.
        assert!(is_of(
            include_bytes!("golden/client-self.pem"),
            &["Self"],
            elsewhere
        ));
        assert!(!is_of(
            include_bytes!("golden/client.pem"),
            &["client"],
            elsewhere
        ));
    }
}
