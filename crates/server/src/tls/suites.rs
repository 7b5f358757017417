//! Versions of TLS and cipher suites, by the names of Java.

use rustls::SupportedCipherSuite;
use rustls::crypto::ring::ALL_CIPHER_SUITES;
use rustls::version::{TLS12, TLS13};
use tracing::warn;

use super::error::TlsError;
use crate::config::{Protocol, TlsSettings};

/// Suites in the order in which they are preferred, and versions that one of them is of.
pub(super) struct Choice {
    pub(super) suites: Vec<SupportedCipherSuite>,
    pub(super) versions: Vec<&'static rustls::SupportedProtocolVersion>,
}

/// What the settings leave of all there is.
pub(super) fn choose(settings: &TlsSettings) -> Result<Choice, TlsError> {
    let enabled = |suite: &SupportedCipherSuite| settings.protocols.contains(&protocol(*suite));
    let all: Vec<_> = ALL_CIPHER_SUITES.iter().copied().filter(enabled).collect();
    let mut suites = all.clone();
    if !settings.cipher_suites.is_empty() {
        suites = named(settings, &all);
    }
    if suites.is_empty() {
        let names: Vec<_> = all.iter().map(|suite| name(*suite)).collect();
        return Err(TlsError::CipherSuites(
            settings.prefix().to_owned(),
            names.join(", "),
        ));
    }
    let has = |wanted| suites.iter().any(|suite| protocol(*suite) == wanted);
    let versions = [(Protocol::Tls13, &TLS13), (Protocol::Tls12, &TLS12)];
    let versions = versions.into_iter().filter(|(protocol, _)| has(*protocol));
    let versions = versions.map(|(_, version)| version).collect();
    Ok(Choice { suites, versions })
}

fn named(settings: &TlsSettings, all: &[SupportedCipherSuite]) -> Vec<SupportedCipherSuite> {
    let keys = settings.prefix();
    let mut suites: Vec<SupportedCipherSuite> = Vec::new();
    for wanted in &settings.cipher_suites {
        match all.iter().find(|suite| name(**suite) == *wanted) {
            Some(suite) if suites.contains(suite) => {}
            Some(suite) => suites.push(*suite),
            None => warn!("{keys}.ciphersuites: {wanted} is not there for the enabled versions"),
        }
    }
    suites
}

fn protocol(suite: SupportedCipherSuite) -> Protocol {
    match suite {
        SupportedCipherSuite::Tls12(_) => Protocol::Tls12,
        SupportedCipherSuite::Tls13(_) => Protocol::Tls13,
    }
}

/// The name that the register, and Java, have for a suite. The library calls those of TLS 1.3 otherwise.
fn name(suite: SupportedCipherSuite) -> String {
    let name = suite.suite().as_str().unwrap_or_default();
    name.replacen("TLS13_", "TLS_", 1)
}
