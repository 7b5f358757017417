//! Stores in PEM.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pkcs8::EncryptedPrivateKeyInfoRef;
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer,
};

use super::effort;
use super::error::Problem;
use super::pkcs12;
use super::store::{KeyEntry, Source};

const FORMAT: &str = "PEM";
const BEGIN: &str = "-----BEGIN ";
/// Stands in a key that is encrypted in OpenSSL's old way.
const OLD_ENCRYPTION: &str = "Proc-Type: 4,ENCRYPTED";

/// All certificates of the file.
pub(super) fn certificates(source: &Source<'_>) -> Result<Vec<CertificateDer<'static>>, Problem> {
    let sections = sections(source)?.into_iter();
    let certificates = sections.filter(|section| is_certificate(&section.label));
    Ok(certificates.map(|section| section.content.into()).collect())
}

/// The first private key of the file, with all its certificates.
pub(super) fn key(source: &Source<'_>) -> Result<KeyEntry, Problem> {
    let sections = sections(source)?;
    let mut keys = sections
        .into_iter()
        .filter_map(|section| decode_key(section, source));
    let key = keys.next().ok_or(Problem::NoKey)??;
    let chain = certificates(source)?;
    if chain.is_empty() {
        return Err(Problem::NoCertificate);
    }
    Ok(KeyEntry { chain, key })
}

/// What stands between a BEGIN and an END line.
struct Section {
    label: String,
    content: Vec<u8>,
}

/// The sections of a file, whatever stands around them.
fn sections(source: &Source<'_>) -> Result<Vec<Section>, Problem> {
    let text = String::from_utf8_lossy(&source.bytes);
    let mut sections = Vec::new();
    let mut rest = &*text;
    while let Some(begin) = rest.find(BEGIN) {
        let section = &rest[begin + BEGIN.len()..];
        let cut = |what| Problem::malformed(FORMAT, format!("a section has no {what} line"));
        let (label, body) = section
            .split_once("-----")
            .ok_or_else(|| cut("whole BEGIN"))?;
        let end = format!("-----END {label}-----");
        let (body, behind) = body.split_once(&*end).ok_or_else(|| cut("END"))?;
        sections.push(Section {
            label: label.to_owned(),
            content: decode(label, body, source)?,
        });
        rest = behind;
    }
    match sections.is_empty() {
        true => Err(Problem::malformed(FORMAT, "it has no -----BEGIN line")),
        false => Ok(sections),
    }
}

fn decode(label: &str, body: &str, source: &Source<'_>) -> Result<Vec<u8>, Problem> {
    if body.contains(OLD_ENCRYPTION) {
        return Err(Problem::KeyEncryption(source.name()));
    }
    let body: String = body.split_whitespace().collect();
    let content = STANDARD.decode(body);
    content.map_err(|error| Problem::malformed(FORMAT, format!("the {label}: {error}")))
}

fn is_certificate(label: &str) -> bool {
    matches!(label, "CERTIFICATE" | "X509 CERTIFICATE")
}

/// The key in a section; `None` if it holds none.
fn decode_key(
    section: Section,
    source: &Source<'_>,
) -> Option<Result<PrivateKeyDer<'static>, Problem>> {
    let content = section.content;
    match &*section.label {
        "PRIVATE KEY" => Some(Ok(PrivatePkcs8KeyDer::from(content).into())),
        "RSA PRIVATE KEY" => Some(Ok(PrivatePkcs1KeyDer::from(content).into())),
        "EC PRIVATE KEY" => Some(Ok(PrivateSec1KeyDer::from(content).into())),
        "ENCRYPTED PRIVATE KEY" => Some(decrypt(&content, source)),
        _ => None,
    }
}

fn decrypt(bytes: &[u8], source: &Source<'_>) -> Result<PrivateKeyDer<'static>, Problem> {
    let other_way = || Problem::KeyEncryption(source.name());
    // A wrong password shows in bytes that make no key.
    let key = match EncryptedPrivateKeyInfoRef::try_from(bytes) {
        Ok(encrypted) if encrypted.encryption_algorithm.pbes2().is_some() => {
            let way = encrypted.encryption_algorithm.pbes2();
            way.filter(|way| effort::may_derive(&way.kdf))
                .ok_or_else(other_way)?;
            let key = encrypted.decrypt(&source.password).ok();
            key.map(|key| key.as_bytes().to_vec())
        }
        _ => pkcs12::decrypt_key(bytes, source).map_err(|_| other_way())?,
    };
    let key = key.ok_or_else(|| source.wrong_password())?;
    Ok(PrivatePkcs8KeyDer::from(key).into())
}
