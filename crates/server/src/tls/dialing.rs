//! The judge over the certificates of servers that are dialed: who may have signed them is judged as for those who connect
//! ([`super::verifier`]); and they must name whom was dialed.

use std::net::IpAddr;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::sign::SingleCertAndKey;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme,
    SupportedProtocolVersion,
};

use super::identity;
use super::verifier::Verifier;

/// What servers are dialed with.
#[derive(Debug)]
pub(super) struct Dialing {
    config: ClientConfig,
    judge: Arc<Verifier>,
    verify_host: bool,
}

impl Dialing {
    pub(super) fn new(
        key: Arc<SingleCertAndKey>,
        judge: Arc<Verifier>,
        verify_host: bool,
        provider: Arc<CryptoProvider>,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Result<Dialing, Error> {
        let nobody = ServerJudge {
            judge: Arc::clone(&judge),
            expected: Some((Vec::new(), IpAddr::from([0, 0, 0, 0]))),
        };
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(nobody))
            .with_client_cert_resolver(key);
        // Every connection proves its certificate anew: one that is not trusted any more is out at once.
        config.resumption = Resumption::disabled();
        Ok(Dialing {
            config,
            judge,
            verify_host,
        })
    }

    /// The same for one server, which goes by these hosts and was found at this address.
    pub(super) fn for_server(&self, hosts: &[String], address: IpAddr) -> ClientConfig {
        let judge = ServerJudge {
            judge: Arc::clone(&self.judge),
            expected: self.verify_host.then(|| (hosts.to_vec(), address)),
        };
        let mut config = self.config.clone();
        config.dangerous().set_certificate_verifier(Arc::new(judge));
        config
    }
}

/// Judges the certificate of one server.
#[derive(Debug)]
struct ServerJudge {
    judge: Arc<Verifier>,
    /// One of these the certificate must name, if it has to name anything.
    expected: Option<(Vec<String>, IpAddr)>,
}

impl ServerCertVerifier for ServerJudge {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.judge.verify_server(end_entity, intermediates, now)?;
        match &self.expected {
            Some((hosts, address)) if !identity::is_of_host(end_entity, hosts, *address) => {
                Err(CertificateError::NotValidForName.into())
            }
            Some(_) | None => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.judge.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.judge.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.judge.supported_verify_schemes()
    }
}
