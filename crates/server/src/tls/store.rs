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
    pub(super) keys: &'a str,
}

impl Source<'_> {
    pub(super) fn wrong_password(&self) -> Problem {
        Problem::Password(match self.keys {
            "" => String::new(),
            keys => {
                format!(". Check {keys}.password, or the file that {keys}.passwordPath names")
            }
        })
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
    let source = open(settings)?;
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
    let source = open(settings)?;
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

/// Reads a key from one file in PEM and its certificates from another.
///
/// # Errors
/// As [`read_key`].
pub fn read_pair(
    certificates: &Path,
    key: &Path,
    password: &Password,
) -> Result<KeyEntry, TlsError> {
    let mut bytes = read(key)?;
    bytes.push(b'\n');
    bytes.extend(read(certificates)?);
    let source = Source {
        path: key,
        bytes,
        password: text_of(password)?,
        keys: "",
    };
    pem::key(&source).map_err(|problem| problem.of(key))
}

fn open(settings: &StoreSettings) -> Result<Source<'_>, TlsError> {
    Ok(Source {
        password: text_of(&settings.password)?,
        path: &settings.path,
        bytes: read(&settings.path)?,
        keys: &settings.keys,
    })
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    secrets_file::read(path).map_err(|error| Problem::from(error).of(path))
}

fn text_of(password: &Password) -> Result<String, TlsError> {
    match password {
        Password::Given(secret) => Ok(secret.0.clone()),
        Password::File(path) => {
            let text = String::from_utf8_lossy(&read(path)?).into_owned();
            // Editors end the last line.
            Ok(text.trim_end_matches(['\r', '\n']).to_owned())
        }
    }
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
