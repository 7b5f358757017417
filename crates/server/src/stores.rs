//! Key stores, trust stores and logins in files, for the command line: it reads the same formats as the server.

use std::path::Path;

use rustls::pki_types::CertificateDer;
use rustls::sign::CertifiedKey;

use crate::config::{Password, StoreFormat, StoreSettings};
use crate::sasl::jaas;
use crate::secrets_file;
use crate::tls::{self, Problem, TlsError};

/// A store whose format shows in what it holds.
///
/// # Errors
/// The file cannot be read.
pub fn recognise(path: &Path, password: Password) -> Result<StoreSettings, TlsError> {
    let bytes = secrets_file::read(path).map_err(|error| Problem::from(error).of(path))?;
    let format = match bytes.first() {
        Some(0x30) => StoreFormat::Pkcs12,
        Some(0xfe) => StoreFormat::Jks,
        _ => StoreFormat::Pem,
    };
    Ok(StoreSettings {
        keys: String::new(),
        path: path.to_owned(),
        format,
        password,
    })
}

/// The key of a store and its certificates, valid now and of one pair.
///
/// # Errors
/// They are not, or cannot be read.
pub fn key(store: &StoreSettings) -> Result<CertifiedKey, TlsError> {
    tls::certified_key(store)
}

/// The same from two files in PEM.
///
/// # Errors
/// As [`key`].
pub fn key_pair(
    certificates: &Path,
    key: &Path,
    password: &Password,
) -> Result<CertifiedKey, TlsError> {
    tls::certified_pair(certificates, key, password)
}

/// The certificates of a store that may sign others.
///
/// # Errors
/// There are none, or they cannot be read.
pub fn trusted(store: &StoreSettings) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    tls::read_trusted(store)
}

/// Why there is no login in a JAAS file.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The system does not give it.
    #[error("{0}: cannot be read: {1}")]
    Unreadable(String, std::io::Error),
    /// It is not of the grammar.
    #[error("{0}: {1}")]
    Malformed(String, String),
    /// It has no such section, or one that does not say who logs in.
    #[error(
        "{file}: wanted a section {section} with DigestLoginModule, username=\"…\" and password=\"…\" (other login \
         modules, Kerberos among them, are not there)"
    )]
    NoLogin {
        /// The file.
        file: String,
        /// The section.
        section: String,
    },
}

/// User and password of a client's section of a JAAS file, such as `Client`.
///
/// # Errors
/// There are none.
pub fn login(path: &Path, section: &str) -> Result<(String, String), LoginError> {
    let file = path.display().to_string();
    let bytes = secrets_file::read(path);
    let bytes = bytes.map_err(|error| LoginError::Unreadable(file.clone(), error))?;
    let sections = jaas::parse(&String::from_utf8_lossy(&bytes));
    let sections =
        sections.map_err(|error| LoginError::Malformed(file.clone(), error.to_string()))?;
    let entries = sections.get(section).into_iter().flatten();
    let mut logins = entries
        .filter(|entry| entry.module.ends_with("DigestLoginModule"))
        .filter_map(|entry| {
            let option = |name: &str| entry.options.get(name).cloned();
            Some((option("username")?, option("password")?))
        });
    logins.next().ok_or_else(|| LoginError::NoLogin {
        file: file.clone(),
        section: section.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_found_by_its_section() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("jaas.conf");
        let module = "org.apache.zookeeper.server.auth.DigestLoginModule required";
        let text = format!(
            "Client {{ {module} username=\"bob\" password=\"secret\"; }};\nServer {{ {module} user_a=\"b\"; }};"
        );
        std::fs::write(&path, text).expect("written");
        let login = |section| super::login(&path, section);
        let (user, password) = login("Client").expect("a login");
        assert_eq!((user.as_str(), password.as_str()), ("bob", "secret"));
        let error = login("Server").expect_err("no login").to_string();
        assert!(error.contains("a section Server"), "{error}");
    }

    #[test]
    fn formats_show_in_what_stores_hold() {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tls/golden");
        let given = || Password::Given(crate::config::Secret("secret".to_owned()));
        for (name, format) in [
            ("keystore.pem", StoreFormat::Pem),
            ("keystore.p12", StoreFormat::Pkcs12),
            ("keystore.jks", StoreFormat::Jks),
        ] {
            let store = recognise(&golden.join(name), given()).expect("a store");
            assert_eq!(store.format, format, "{name}");
            key(&store).expect("a key");
        }
        let pair = key_pair(
            &golden.join("client.pem"),
            &golden.join("client.key"),
            &given(),
        );
        assert_eq!(pair.expect("a pair").cert.len(), 1);
        let others = key_pair(
            &golden.join("client.pem"),
            &golden.join("client-self.key"),
            &given(),
        );
        assert!(others.is_err(), "of two pairs");
    }
}
