//! TLS from the client's side: whom it trusts and what it shows.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ClientConfig, ClientConnection, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{
    AlertDescription, CertificateError, DigitallySignedStruct, RootCertStore, SignatureScheme,
};

use crate::Error;

/// What a client decides about TLS.
#[derive(Debug, Default)]
pub struct TlsOptions {
    /// Certificates that may sign a server's, or are a server's own.
    pub trusted: Vec<CertificateDer<'static>>,
    /// What this client shows a server that asks who it is.
    pub key: Option<CertifiedKey>,
    /// Takes every server's certificate of one of the trusted, whatever host it names.
    pub any_host_name: bool,
    /// Takes every certificate: nobody knows who listens.
    pub insecure: bool,
}

/// Why there is no TLS with these options.
#[derive(Debug, thiserror::Error)]
pub enum TlsOptionsError {
    /// Nobody is trusted.
    #[error("no certificate to trust was given")]
    NobodyTrusted,
    /// The library does not take them.
    #[error("TLS: {0}")]
    Library(#[from] rustls::Error),
}

/// TLS, ready for handshakes. Clones share it.
#[derive(Debug, Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
}

impl Tls {
    /// Makes ready.
    ///
    /// # Errors
    /// Nobody is trusted, or a certificate cannot be read.
    pub fn new(options: TlsOptions) -> Result<Tls, TlsOptionsError> {
        let provider = Arc::new(default_provider());
        let verifier = Verifier::new(&options, &provider)?;
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let config = match options.key {
            Some(key) => builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(key))),
            None => builder.with_no_client_auth(),
        };
        Ok(Tls {
            config: Arc::new(config),
        })
    }

    /// One side of a handshake with `address` (`host:port`).
    pub(crate) fn connection(&self, address: &str) -> Result<ClientConnection, Error> {
        let failed = |reason: String| Error::Tls {
            address: address.to_owned(),
            reason,
        };
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name =
            ServerName::try_from(host.to_owned()).map_err(|error| failed(error.to_string()))?;
        ClientConnection::new(Arc::clone(&self.config), name)
            .map_err(|error| failed(error.to_string()))
    }
}

/// Judges a server's certificate.
#[derive(Debug)]
struct Verifier {
    chains: Option<Arc<WebPkiServerVerifier>>,
    trusted: Vec<CertificateDer<'static>>,
    any_host_name: bool,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    fn new(options: &TlsOptions, provider: &Arc<CryptoProvider>) -> Result<Self, TlsOptionsError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(options.trusted.iter().cloned());
        if roots.is_empty() && !options.insecure {
            return Err(TlsOptionsError::NobodyTrusted);
        }
        let chains = (!options.insecure).then(|| {
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
                .build()
        });
        let chains = chains.transpose();
        Ok(Verifier {
            chains: chains.map_err(|error| rustls::Error::General(error.to_string()))?,
            trusted: options.trusted.clone(),
            any_host_name: options.any_host_name,
            provider: Arc::clone(provider),
        })
    }

    /// Whether a certificate that stands among the trusted itself was turned away for no other reason than that
    /// authorities sign it or that it is one.
    fn is_trusted_itself(&self, certificate: &CertificateDer<'_>, refusal: &rustls::Error) -> bool {
        let rustls::Error::InvalidCertificate(reason) = refusal else {
            return false;
        };
        let unsigned = match reason {
            CertificateError::UnknownIssuer => true,
            // The library looks at the dates before it says so.
            CertificateError::Other(other) => other.to_string().contains("CaUsedAsEndEntity"),
            _ => false,
        };
        unsigned && self.trusted.iter().any(|one| one == certificate)
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(chains) = &self.chains else {
            return Ok(ServerCertVerified::assertion());
        };
        let verdict =
            chains.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        let refusal = match verdict {
            Ok(verified) => return Ok(verified),
            Err(refusal) => refusal,
        };
        if self.is_trusted_itself(end_entity, &refusal) {
            if !self.any_host_name {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
            }
            return Ok(ServerCertVerified::assertion());
        }
        // The name is the last thing that is looked at.
        let only_the_name = matches!(
            refusal,
            rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
            )
        );
        match only_the_name && self.any_host_name {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(refusal),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// Why a handshake failed, and what to do.
pub(crate) fn handshake_reason(error: &std::io::Error) -> String {
    use std::io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    match error.kind() {
        UnexpectedEof | ConnectionReset | BrokenPipe => {
            "the connection was closed: this port may not speak TLS".to_owned()
        }
        _ => reason(error),
    }
}

/// Why a connection failed, and what to do.
pub(crate) fn reason(error: &std::io::Error) -> String {
    use CertificateError as Bad;
    use rustls::Error as Failure;
    let inner = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<Failure>());
    let Some(failure) = inner else {
        return error.to_string();
    };
    match failure {
        Failure::InvalidCertificate(Bad::UnknownIssuer | Bad::BadSignature) => {
            "none of the trusted certificates has signed the server's: check the file of trusted certificates".to_owned()
        }
        Failure::InvalidCertificate(Bad::NotValidForName | Bad::NotValidForNameContext { .. }) => format!(
            "the server's certificate does not name this host ({failure}): connect by a name that it holds as a subject \
             alternative name, or leave the check of host names out"
        ),
        Failure::InvalidCertificate(Bad::Expired | Bad::ExpiredContext { .. }) => {
            "the server's certificate has expired".to_owned()
        }
        Failure::InvalidCertificate(Bad::Other(other))
            if other.to_string().contains("UnsupportedCertVersion") =>
        {
            "the server's certificate has no extensions (version 1), which are needed for the host name".to_owned()
        }
        Failure::AlertReceived(
            AlertDescription::CertificateRequired | AlertDescription::HandshakeFailure,
        ) => format!("{failure}: the server may want a client certificate (--cert, --key)"),
        Failure::AlertReceived(
            AlertDescription::BadCertificate
            | AlertDescription::DecryptError
            | AlertDescription::UnknownCA
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateExpired
            | AlertDescription::AccessDenied,
        ) => format!(
            "{failure}: the server does not take the client certificate, or wants one and was shown none (--cert, --key)"
        ),
        Failure::InvalidMessage(_) => "what answers is no TLS: this port may not speak it".to_owned(),
        _ => failure.to_string(),
    }
}
