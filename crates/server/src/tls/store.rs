//! Stores: files with the server's key, or with the certificates that are trusted.

use std::path::Path;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::error::{Problem, TlsError};
use super::{jks, pem, pkcs12};
use crate::config::{Password, StoreFormat, StoreSettings};
use crate::secrets_file;

/// A private key with its certificates: its own first, the ones that signed it behind.
pub struct KeyEntry {
    /// The chain, not empty.
    pub chain: Vec<CertificateDer<'static>>,
    /// The key.
    pub key: PrivateKeyDer<'static>,
}

/// A file that was read, with what opens it.
pub(super) struct Source<'a> {
    pub(super) path: &'a Path,
    pub(super) bytes: Vec<u8>,
    pub(super) password: String,
    /// The beginning of the keys of the configuration, for messages.
    pub(super) keys: &'static str,
}

impl Source<'_> {
    pub(super) fn wrong_password(&self) -> Problem {
        Problem::Password(self.keys)
    }

    pub(super) fn name(&self) -> String {
        self.path.display().to_string()
    }
}

/// Reads the server's key and certificates.
///
/// # Errors
/// The file cannot be read, or is not what it should be.
pub fn read_key(settings: &StoreSettings) -> Result<KeyEntry, TlsError> {
    let source = open(settings, "ssl.keyStore")?;
    let entry = match actual_format(settings.format, &source.bytes) {
        StoreFormat::Pem => pem::key(&source),
        StoreFormat::Pkcs12 => pkcs12::key(&source),
        StoreFormat::Jks => jks::key(&source),
    };
    entry.map_err(|problem| problem.of(&settings.path))
}

/// Reads the certificates that may sign others.
///
/// # Errors
/// As [`read_key`].
pub fn read_trusted(settings: &StoreSettings) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let source = open(settings, "ssl.trustStore")?;
    let trusted = match actual_format(settings.format, &source.bytes) {
        StoreFormat::Pem => pem::certificates(&source),
        StoreFormat::Pkcs12 => pkcs12::trusted(&source),
        StoreFormat::Jks => jks::trusted(&source),
    };
    match trusted {
        Ok(trusted) if trusted.is_empty() => Err(Problem::NoTrusted(source.name()).of(source.path)),
        trusted => trusted.map_err(|problem| problem.of(&settings.path)),
    }
}

fn open<'a>(settings: &'a StoreSettings, keys: &'static str) -> Result<Source<'a>, TlsError> {
    let read =
        |path: &Path| secrets_file::read(path).map_err(|error| Problem::from(error).of(path));
    let password = match &settings.password {
        Password::Given(secret) => secret.0.clone(),
        Password::File(path) => {
            let text = String::from_utf8_lossy(&read(path)?).into_owned();
            // Editors end the last line.
            text.trim_end_matches(['\r', '\n']).to_owned()
        }
    };
    Ok(Source {
        path: &settings.path,
        bytes: read(&settings.path)?,
        password,
        keys,
    })
}

/// Java reads PKCS#12 where JKS is expected, and the other way round: its tool has made the one under the name of the
/// other for years.
fn actual_format(given: StoreFormat, bytes: &[u8]) -> StoreFormat {
    match given {
        StoreFormat::Pem => StoreFormat::Pem,
        StoreFormat::Pkcs12 | StoreFormat::Jks if jks::is_store(bytes) => StoreFormat::Jks,
        StoreFormat::Pkcs12 | StoreFormat::Jks if bytes.first() == Some(&0x30) => {
            StoreFormat::Pkcs12
        }
        StoreFormat::Pkcs12 | StoreFormat::Jks => given,
    }
}
