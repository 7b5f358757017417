//! Why TLS cannot be had from the files that were given, and what to do.

use std::io;
use std::path::{Path, PathBuf};

use crate::config::StoreSettings;

/// Why a server with TLS does not start, or goes on with the certificates that it has.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file is not what it should be.
    #[error("{}{}: {problem}", in_front(.key), path.display())]
    File {
        /// The key of the configuration that names it; empty for none.
        key: String,
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: Problem,
    },
    /// None of the cipher suites that were asked for is there.
    #[error(
        "{0}.ciphersuites names none that is there for the enabled versions; there are {1}. Without the key all of them are used"
    )]
    CipherSuites(String, String),
    /// The TLS library does not take the settings.
    #[error("TLS: {0}")]
    Library(#[from] rustls::Error),
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The system does not give it.
    #[error("cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// The password is wrong, or missing.
    #[error("the password does not open it{0}")]
    Password(String),
    /// It is not in the format.
    #[error("is no {format} file: {detail}")]
    Malformed {
        /// The format.
        format: &'static str,
        /// What the reader says.
        detail: String,
    },
    /// It is a store of Java's second own kind.
    #[error(
        "is a JCEKS store, which is not read. Copy it: keytool -importkeystore -srckeystore {0} -srcstoretype JCEKS -destkeystore store.p12 -deststoretype PKCS12"
    )]
    Jceks(String),
    /// A key is encrypted in a way that is not read.
    #[error(
        "its key is encrypted in a way that is not read here. Encrypt it anew: openssl pkcs8 -topk8 -v2 aes-256-cbc -in {0} -out key.pem, and put the certificates behind it: openssl x509 -in {0} >> key.pem"
    )]
    KeyEncryption(String),
    /// There is no key.
    #[error(
        "has no private key. A key store holds the server's key and certificate: cat server.pem ca.pem server.key > keystore.pem, or openssl pkcs12 -export -in server.pem -inkey server.key -out keystore.p12"
    )]
    NoKey,
    /// There is no certificate.
    #[error("has no certificate")]
    NoCertificate,
    /// There is no certificate to trust.
    #[error(
        "has no trusted certificate. Add one: keytool -importcert -file ca.pem -keystore {0} -alias ca"
    )]
    NoTrusted(String),
    /// The key is of a kind that is not there.
    #[error(
        "its key cannot be used: {0}. RSA from 2048 bits, EC P-256 and P-384, and Ed25519 keys can. A new one: openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out server.key"
    )]
    UnusableKey(String),
    /// The key and the certificate are not of one pair.
    #[error(
        "its private key does not belong to its first certificate ({0}). The server's own certificate must stand first, the ones that signed it behind; compare: openssl x509 -noout -pubkey -in server.pem, openssl pkey -pubout -in server.key"
    )]
    KeyMismatch(String),
    /// The certificate is not valid any more.
    #[error(
        "the certificate of {subject} expired on {until}. Have a new one signed, and put it there"
    )]
    Expired {
        /// Whose it is.
        subject: String,
        /// When it ended.
        until: String,
    },
    /// The certificate is not valid yet.
    #[error("the certificate of {subject} is not valid before {from}. Check this machine's clock")]
    NotYetValid {
        /// Whose it is.
        subject: String,
        /// When it begins.
        from: String,
    },
}

fn in_front(key: &str) -> String {
    match key {
        "" => String::new(),
        key => format!("{key}: "),
    }
}

impl TlsError {
    /// The same with the key of the configuration that names the file: that of a store, or of its password.
    pub(super) fn named(self, store: &StoreSettings) -> TlsError {
        match self {
            TlsError::File { path, problem, .. } if !store.keys.is_empty() => {
                let suffix = match path == store.path {
                    true => "location",
                    false => "passwordPath",
                };
                TlsError::File {
                    key: format!("{}.{suffix}", store.keys),
                    path,
                    problem,
                }
            }
            other => other,
        }
    }

    /// Whether it may be otherwise the next time although the files stay as they are.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            TlsError::File { problem, .. } => matches!(
                problem,
                Problem::Unreadable(_) | Problem::NotYetValid { .. }
            ),
            TlsError::CipherSuites(..) | TlsError::Library(_) => false,
        }
    }
}

impl Problem {
    /// The problem with its file.
    pub fn of(self, path: &Path) -> TlsError {
        TlsError::File {
            key: String::new(),
            path: path.to_owned(),
            problem: self,
        }
    }

    pub(super) fn malformed(format: &'static str, detail: impl ToString) -> Problem {
        Problem::Malformed {
            format,
            detail: detail.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_and_the_system_may_mend_what_files_do_not() {
        let (subject, day) = ("CN=a".to_owned(), "2020-01-01".to_owned());
        let cases = [
            (Problem::from(io::Error::other("busy")), true),
            (
                Problem::NotYetValid {
                    subject: subject.clone(),
                    from: day.clone(),
                },
                true,
            ),
            (
                Problem::Expired {
                    subject,
                    until: day,
                },
                false,
            ),
            (Problem::NoKey, false),
        ];
        for (problem, expected) in cases {
            let error = problem.of(Path::new("store.pem"));
            assert_eq!(error.may_pass(), expected, "{error}");
        }
    }
}
