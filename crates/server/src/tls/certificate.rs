//! A certificate, as far as this server looks into it itself.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use der::asn1::{GeneralizedTime, ObjectIdentifier, UtcTime};
use der::{DateTime, Decode};
use rustls::pki_types::SubjectPublicKeyInfoDer;

use super::der::{
    BIT_STRING, BOOLEAN, CONTEXT_0, CONTEXT_3, OBJECT_IDENTIFIER, OCTET_STRING, SEQUENCE, Value,
};
use super::error::Problem;
use super::subject;

/// Type of the common name.
const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");
/// The extension that says whether the owner may sign others.
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 19];
/// The extension that says what the owner's key is for.
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 15];
/// The bit of it, in its first byte, for signatures of certificates.
const SIGNS_CERTIFICATES: u8 = 0x04;
/// The extension with the owner's other names.
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 17];
/// The version with extensions, as it is written.
const VERSION_3: [u8; 3] = [0x02, 0x01, 0x02];

/// A parsed certificate.
pub(super) struct Certificate<'a> {
    version: Option<Value<'a>>,
    issuer: Value<'a>,
    not_before: DateTime,
    not_after: DateTime,
    subject: Value<'a>,
    subject_text: String,
    public_key: Value<'a>,
    /// The bytes of each one's kind, and its content. Kinds may be longer numbers than the library reads.
    extensions: Vec<(&'a [u8], &'a [u8])>,
    signed: Signed<'a>,
}

/// What a signature is checked with: all of it as it stands in the certificate.
pub(super) struct Signed<'a> {
    /// The bytes that were signed.
    pub(super) message: &'a [u8],
    /// Content of the record that names the algorithm.
    pub(super) algorithm: &'a [u8],
    /// The signature.
    pub(super) signature: &'a [u8],
}

impl<'a> Certificate<'a> {
    /// Reads one.
    pub(super) fn parse(der: &'a [u8]) -> Result<Certificate<'a>, Problem> {
        read(der).ok_or_else(|| Problem::malformed("X.509", "its structure is another one"))
    }

    /// The owner's name as encoded.
    pub(super) fn subject(&self) -> &'a [u8] {
        self.subject.whole
    }

    /// The signer's name as encoded.
    pub(super) fn issuer(&self) -> &'a [u8] {
        self.issuer.whole
    }

    /// Whether it names itself as its signer.
    pub(super) fn is_self_signed(&self) -> bool {
        self.subject() == self.issuer()
    }

    /// The owner's name as Java writes it.
    pub(super) fn subject_text(&self) -> &str {
        &self.subject_text
    }

    /// Whether it has the form that was there before extensions: it cannot say what it is for.
    pub(super) fn is_without_extensions(&self) -> bool {
        self.version
            .is_none_or(|version| version.content != VERSION_3)
    }

    /// Whether certificates that its owner has signed count where it is trusted. As in Java it has to say so, unless it has
    /// the form that cannot: who is trusted as a client is not trusted to name others.
    pub(super) fn may_sign(&self) -> bool {
        self.is_without_extensions() || (self.is_authority() && self.has_signing_key())
    }

    fn is_authority(&self) -> bool {
        let content = self.extension(BASIC_CONSTRAINTS).and_then(Value::first);
        let first = content.and_then(|content| content.values_of(SEQUENCE)?.next());
        first.is_some_and(|first| matches!(first.content_of(BOOLEAN), Some([1..=0xff])))
    }

    fn has_signing_key(&self) -> bool {
        let Some(usage) = self.extension(KEY_USAGE) else {
            return true;
        };
        let bits = Value::first(usage).and_then(|usage| usage.content_of(BIT_STRING));
        matches!(bits, Some([_, first, ..]) if first & SIGNS_CERTIFICATES != 0)
    }

    /// Whether it has other names of the owner than the subject.
    pub(super) fn has_alternative_names(&self) -> bool {
        self.extension(ALTERNATIVE_NAMES).is_some()
    }

    fn extension(&self, kind: &[u8]) -> Option<&'a [u8]> {
        let mut extensions = self.extensions.iter();
        let found = extensions.find(|(found, _)| *found == kind);
        found.map(|(_, content)| *content)
    }

    /// The owner's public key, with its algorithm.
    pub(super) fn public_key(&self) -> SubjectPublicKeyInfoDer<'static> {
        SubjectPublicKeyInfoDer::from(self.public_key.whole.to_vec())
    }

    /// The algorithm of the owner's public key (content of the record that names it), and the key.
    pub(super) fn raw_key(&self) -> Option<(&'a [u8], &'a [u8])> {
        let mut parts = self.public_key.values_of(SEQUENCE)?;
        let algorithm = parts.next()?.content_of(SEQUENCE)?;
        Some((algorithm, bits(parts.next()?)?))
    }

    /// The common names of the owner.
    pub(super) fn common_names(&self) -> impl Iterator<Item = &'a str> {
        let parts = subject::parts(self.subject).unwrap_or_default();
        let names = parts
            .into_iter()
            .flatten()
            .filter(|(kind, _)| *kind == COMMON_NAME);
        names.filter_map(|(_, value)| std::str::from_utf8(value.content).ok())
    }

    /// What its signer has signed.
    pub(super) fn signed(&self) -> &Signed<'a> {
        &self.signed
    }

    /// Whether it is valid at a time after 1970.
    pub(super) fn is_valid_at(&self, time: Duration) -> bool {
        (self.not_before.unix_duration()..=self.not_after.unix_duration()).contains(&time)
    }

    /// Complains about a certificate that is not valid now.
    pub(super) fn demand_validity(&self) -> Result<(), Problem> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        if now > self.not_after.unix_duration() {
            return Err(Problem::Expired {
                subject: self.subject_text().to_owned(),
                until: self.valid_until(),
            });
        }
        if now < self.not_before.unix_duration() {
            return Err(Problem::NotYetValid {
                subject: self.subject_text().to_owned(),
                from: self.not_before.to_string(),
            });
        }
        Ok(())
    }

    /// Until when it is valid, in seconds since 1970.
    pub(super) fn expires_s(&self) -> u64 {
        self.not_after.unix_duration().as_secs()
    }

    /// Until when it is valid.
    pub(super) fn valid_until(&self) -> String {
        self.not_after.to_string()
    }
}

fn read(der: &[u8]) -> Option<Certificate<'_>> {
    let mut outer = Value::first(der)?.values_of(SEQUENCE)?;
    let (message, algorithm, signature) = (outer.next()?, outer.next()?, outer.next()?);
    let mut fields = message.values_of(SEQUENCE)?;
    let first = fields.next()?;
    let version = (first.kind() == CONTEXT_0).then_some(first);
    let _serial = match version {
        Some(_) => fields.next()?,
        None => first,
    };
    let _algorithm = fields.next()?;
    let issuer = fields.next()?;
    let mut validity = fields.next_values(SEQUENCE)?;
    let (subject, public_key) = (fields.next()?, fields.next()?);
    Some(Certificate {
        version,
        issuer,
        not_before: time(validity.next()?)?,
        not_after: time(validity.next()?)?,
        subject,
        subject_text: subject::text(subject)?,
        public_key,
        extensions: extensions(fields.find(|field| field.kind() == CONTEXT_3))?,
        signed: Signed {
            message: message.whole,
            algorithm: algorithm.content_of(SEQUENCE)?,
            signature: bits(signature)?,
        },
    })
}

/// `None` if any of them cannot be read.
fn extensions(field: Option<Value<'_>>) -> Option<Vec<(&[u8], &[u8])>> {
    let Some(field) = field else {
        return Some(Vec::new());
    };
    let all = Value::first(field.content)?.values_of(SEQUENCE)?.all()?;
    all.into_iter().map(extension).collect()
}

/// Its kind and its content, between which may stand whether it is critical.
fn extension(value: Value<'_>) -> Option<(&[u8], &[u8])> {
    let parts = value.values_of(SEQUENCE)?.all()?;
    let (kind, content) = (parts.first()?, parts.last()?);
    Some((
        kind.content_of(OBJECT_IDENTIFIER)?,
        content.content_of(OCTET_STRING)?,
    ))
}

/// A moment, in one of the two ways to write it.
fn time(value: Value<'_>) -> Option<DateTime> {
    let short = UtcTime::from_der(value.whole).map(|time| time.to_date_time());
    let time = short.or_else(|_| {
        let long = GeneralizedTime::from_der(value.whole);
        long.map(|time| time.to_date_time())
    });
    time.ok()
}

/// The bytes of a string of bits that fills them.
fn bits(value: Value<'_>) -> Option<&[u8]> {
    match value.content_of(BIT_STRING)? {
        [0, bytes @ ..] => Some(bytes),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;

    use super::*;

    fn der(pem: &[u8]) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(pem).expect("a certificate")
    }

    #[test]
    fn who_may_sign_says_so_or_cannot_say() {
        for (pem, expected) in [
            (&include_bytes!("golden/ca.pem")[..], true),
            (include_bytes!("golden/client-self.pem"), true),
            (include_bytes!("golden/client-old.pem"), true),
            (include_bytes!("golden/client-leaf.pem"), false),
            (include_bytes!("golden/client-by-leaf.pem"), false),
            (include_bytes!("golden/client-server.pem"), false),
        ] {
            let der = der(pem);
            let certificate =
                Certificate::parse(&der).unwrap_or_else(|problem| panic!("{problem}"));
            assert_eq!(
                certificate.may_sign(),
                expected,
                "{}",
                certificate.subject_text()
            );
        }
    }

    /// Clients send them before anything is known of them.
    #[test]
    fn no_certificate_breaks_the_server() {
        for pem in [
            &include_bytes!("golden/ca.pem")[..],
            include_bytes!("golden/client.pem"),
            include_bytes!("golden/client-old.pem"),
            include_bytes!("golden/named-here.pem"),
        ] {
            let whole = der(pem);
            let changes = [0x00, 0x01, 0x30, 0x7f, 0x80, 0x81, 0x84, 0xff];
            let changed = (0..whole.len()).flat_map(|at| changes.map(|byte| (at, byte)));
            for (at, byte) in changed {
                let mut bytes = whole.to_vec();
                bytes[at] = byte;
                for bytes in [&bytes[..], &bytes[..at]] {
                    if let Ok(certificate) = Certificate::parse(bytes) {
                        let _ = (certificate.may_sign(), certificate.raw_key());
                        let _ = (
                            certificate.common_names().count(),
                            certificate.valid_until(),
                        );
                    }
                }
            }
        }
    }
}
