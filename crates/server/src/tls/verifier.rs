//! The judge over the certificates of clients, and over who has signed those of servers that are dialed.
//!
//! The library's own judge does nearly all of it. Two kinds of certificates that Java takes, and that are common for
//! clients, it does not: one that stands in the trust store itself but may sign others (what `openssl req -x509` makes),
//! and one of the form without extensions (what `openssl x509 -req` makes, unless told otherwise). The first is trusted
//! because its owner is; the second where one of the trust store has signed it. In both cases the handshake proves, as
//! always, that the client has the key. And one thing that Java refuses it would take: the signature of somebody who is
//! trusted, but not to sign others.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{
    WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
    verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{CertificateDer, SignatureVerificationAlgorithm, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore,
    SignatureScheme,
};
use tracing::warn;

use super::certificate::{Certificate, Signed};
use crate::limits::CLIENT_CERTIFICATES_MAX;

/// Judges by a trust store.
#[derive(Debug)]
pub(super) struct Verifier {
    /// The library's judge, by those of the trust store who may sign others, if there are any.
    inner: Option<Arc<dyn ClientCertVerifier>>,
    demand: bool,
    algorithms: WebPkiSupportedAlgorithms,
    /// Those who may sign others.
    signers: Vec<CertificateDer<'static>>,
    /// The same as the library has them.
    roots: Arc<RootCertStore>,
    /// All of the trust store.
    trusted: HashSet<CertificateDer<'static>>,
    /// By these a client chooses among its certificates.
    hints: Vec<DistinguishedName>,
}

impl Verifier {
    /// A judge who trusts these, and asks for a certificate or demands one.
    ///
    /// # Errors
    /// None of the certificates can be read.
    pub(super) fn new(
        trusted: Vec<CertificateDer<'static>>,
        demand: bool,
        algorithms: WebPkiSupportedAlgorithms,
        provider: Arc<rustls::crypto::CryptoProvider>,
    ) -> Result<Verifier, Error> {
        let mut readable = RootCertStore::empty();
        for certificate in &trusted {
            if let Err(error) = readable.add(certificate.clone()) {
                warn!(%error, "a certificate of the trust store is passed over");
            }
        }
        if readable.is_empty() {
            return Err(Error::General("none of them can be read".to_owned()));
        }
        let signers: Vec<_> = trusted
            .iter()
            .filter(|one| may_sign(one))
            .cloned()
            .collect();
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(signers.iter().cloned());
        let roots = Arc::new(roots);
        Ok(Verifier {
            inner: judge_by(&roots, provider)?,
            roots,
            demand,
            algorithms,
            signers,
            trusted: trusted.into_iter().collect(),
            hints: readable.subjects(),
        })
    }

    /// Judges who has signed the certificate of a server, and whether it is valid; not what it names.
    ///
    /// # Errors
    /// Nobody whom the trust store allows to, or it is not valid now.
    pub(super) fn verify_server(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        if self.verify_alone(end_entity, now)? {
            return Ok(());
        }
        demand_few(intermediates, "server")?;
        let parsed = ParsedCertificate::try_from(end_entity)?;
        let algorithms = self.algorithms.all;
        verify_server_cert_signed_by_trust_anchor(
            &parsed,
            &self.roots,
            intermediates,
            now,
            algorithms,
        )
    }

    /// Judges those that the library does not take; false for all others.
    fn verify_alone(&self, end_entity: &CertificateDer<'_>, now: UnixTime) -> Result<bool, Error> {
        let certificate = parse(end_entity)?;
        if self.trusted.contains(end_entity) {
            Self::verify_trusted(&certificate, now)?;
        } else if certificate.is_without_extensions() {
            self.verify_old(&certificate, now)?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Judges one that stands in the trust store itself.
    fn verify_trusted(certificate: &Certificate<'_>, now: UnixTime) -> Result<(), Error> {
        match certificate.is_valid_at(Duration::from_secs(now.as_secs())) {
            true => Ok(()),
            false => Err(CertificateError::Expired.into()),
        }
    }

    /// Judges one without extensions.
    fn verify_old(&self, certificate: &Certificate<'_>, now: UnixTime) -> Result<(), Error> {
        Self::verify_trusted(certificate, now)?;
        let signed = certificate.signed();
        let is_signer = |signer: &CertificateDer<'static>| {
            Certificate::parse(signer).is_ok_and(|signer| {
                signer.subject() == certificate.issuer() && self.has_signed(&signer, signed)
            })
        };
        match self.signers.iter().any(is_signer) {
            true => Ok(()),
            false => Err(CertificateError::UnknownIssuer.into()),
        }
    }

    fn has_signed(&self, signer: &Certificate<'_>, signed: &Signed<'_>) -> bool {
        let algorithms = self.algorithms.all.iter().copied();
        let of_kind = algorithms
            .filter(|algorithm| algorithm.signature_alg_id().as_ref() == signed.algorithm);
        is_signature(of_kind, signer, signed.message, signed.signature)
    }
}

/// The library's judge; `None` if nobody may sign. It takes everybody whom it is given for an authority.
fn judge_by(
    roots: &Arc<RootCertStore>,
    provider: Arc<rustls::crypto::CryptoProvider>,
) -> Result<Option<Arc<dyn ClientCertVerifier>>, Error> {
    if roots.is_empty() {
        return Ok(None);
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), provider);
    let judge = builder.build();
    let judge = judge.map_err(|error| Error::General(error.to_string()))?;
    Ok(Some(judge))
}

fn may_sign(certificate: &CertificateDer<'_>) -> bool {
    Certificate::parse(certificate).is_ok_and(|certificate| certificate.may_sign())
}

/// Whether this is the signature of the owner of a certificate, by one of some algorithms.
fn is_signature(
    mut algorithms: impl Iterator<Item = &'static dyn SignatureVerificationAlgorithm>,
    owner: &Certificate<'_>,
    message: &[u8],
    signature: &[u8],
) -> bool {
    let Some((kind, key)) = owner.raw_key() else {
        return false;
    };
    algorithms.any(|algorithm| {
        algorithm.public_key_alg_id().as_ref() == kind
            && algorithm.verify_signature(key, message, signature).is_ok()
    })
}

fn parse<'a>(certificate: &'a CertificateDer<'_>) -> Result<Certificate<'a>, Error> {
    Certificate::parse(certificate).map_err(|_| CertificateError::BadEncoding.into())
}

fn demand_few(intermediates: &[CertificateDer<'_>], of: &str) -> Result<(), Error> {
    match intermediates.len() < CLIENT_CERTIFICATES_MAX {
        true => Ok(()),
        false => Err(Error::General(format!(
            "the {of} has sent more than {CLIENT_CERTIFICATES_MAX} certificates"
        ))),
    }
}

impl ClientCertVerifier for Verifier {
    fn offer_client_auth(&self) -> bool {
        true
    }

    fn client_auth_mandatory(&self) -> bool {
        self.demand
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.hints
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        if self.verify_alone(end_entity, now)? {
            return Ok(ClientCertVerified::assertion());
        }
        demand_few(intermediates, "client")?;
        let unknown = CertificateError::UnknownIssuer;
        let judge = self.inner.as_ref().ok_or(unknown)?;
        judge.verify_client_cert(end_entity, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let certificate = parse(cert)?;
        if !certificate.is_without_extensions() {
            return verify_tls12_signature(message, cert, dss, &self.algorithms);
        }
        let schemes = self.algorithms.mapping.iter();
        let algorithms = schemes
            .filter(|(scheme, _)| *scheme == dss.scheme)
            .flat_map(|(_, algorithms)| algorithms.iter().copied());
        match is_signature(algorithms, &certificate, message, dss.signature()) {
            true => Ok(HandshakeSignatureValid::assertion()),
            false => Err(CertificateError::BadSignature.into()),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let certificate = parse(cert)?;
        if !certificate.is_without_extensions() {
            return verify_tls13_signature(message, cert, dss, &self.algorithms);
        }
        let key = certificate.public_key();
        verify_tls13_signature_with_raw_key(message, &key, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rustls::crypto::ring::default_provider;
    use rustls::pki_types::pem::PemObject;

    use super::*;

    fn certificate(pem: &[u8]) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(pem).expect("a certificate")
    }

    #[test]
    fn a_client_may_send_so_many_certificates() {
        let authority = certificate(include_bytes!("golden/ca.pem"));
        let client = certificate(include_bytes!("golden/client.pem"));
        let provider = Arc::new(default_provider());
        let algorithms = provider.signature_verification_algorithms;
        let verifier = Verifier::new(vec![authority.clone()], true, algorithms, provider);
        let verifier = verifier.expect("a judge");
        let verdict = |count: usize| {
            let others = vec![authority.clone(); count - 1];
            verifier.verify_client_cert(&client, &others, UnixTime::now())
        };
        verdict(CLIENT_CERTIFICATES_MAX).expect("taken");
        let refusal = verdict(CLIENT_CERTIFICATES_MAX + 1).expect_err("taken");
        assert!(refusal.to_string().contains("more than 8"), "{refusal}");
    }
}
