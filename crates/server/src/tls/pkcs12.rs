//! Stores in PKCS#12 (RFC 7292), as Java's keytool and OpenSSL make them.
//!
//! Own code on the library's ciphers: the crates that read the format as a whole rest on unreleased ones, and bring four
//! dozen others with them.

use der::Decode;
use der::asn1::ObjectIdentifier;
use pkcs8::pkcs5::EncryptionScheme;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

use super::certificate::Certificate;
use super::der::{CONTEXT_0, CONTEXT_0_PRIMITIVE, OCTET_STRING, SEQUENCE, Value, Values};
use super::effort;
use super::error::Problem;
use super::pkcs12_crypto::{self as crypto, Password};
use super::store::{KeyEntry, Source};

const FORMAT: &str = "PKCS12";

const DATA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.1");
const ENCRYPTED_DATA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.6");
const KEY_BAG: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.12.10.1.1");
const SHROUDED_KEY_BAG: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("1.2.840.113549.1.12.10.1.2");
const CERTIFICATE_BAG: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("1.2.840.113549.1.12.10.1.3");
const X509: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.22.1");
/// The attribute that binds a key and its certificate to each other.
const LOCAL_KEY_ID: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.21");
/// The attribute by which Java marks a certificate that is trusted by itself.
const TRUSTED: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.113894.746875.1.1");

/// The first private key, with the certificates that belong to it.
pub(super) fn key(source: &Source<'_>) -> Result<KeyEntry, Problem> {
    let contents = open(source)?;
    let key = contents.keys.into_iter().next().ok_or(Problem::NoKey)?;
    let mut certificates = contents.certificates;
    let own = certificates.iter().position(|one| one.mark == key.mark);
    let own = own.ok_or(Problem::NoCertificate)?;
    let own = certificates.remove(own).der;
    let others = certificates.into_iter().map(|one| one.der).collect();
    Ok(KeyEntry {
        chain: chain(own, others)?,
        key: PrivatePkcs8KeyDer::from(key.der).into(),
    })
}

/// The certificates that are marked as trusted; all of them where the store has no key, because tools other than Java's
/// set no mark.
pub(super) fn trusted(source: &Source<'_>) -> Result<Vec<CertificateDer<'static>>, Problem> {
    let contents = open(source)?;
    let is_marked = contents.certificates.iter().any(|one| one.trusted);
    let all = contents.keys.is_empty() && !is_marked;
    let certificates = contents.certificates.into_iter();
    let trusted = certificates.filter(|one| all || one.trusted);
    Ok(trusted.map(|one| one.der).collect())
}

/// The certificate with those that signed it, as far as they are there.
fn chain(
    own: CertificateDer<'static>,
    mut others: Vec<CertificateDer<'static>>,
) -> Result<Vec<CertificateDer<'static>>, Problem> {
    let mut chain = vec![own];
    loop {
        let last = Certificate::parse(&chain[chain.len() - 1])?;
        let signs = |other: &CertificateDer<'static>| {
            Certificate::parse(other).is_ok_and(|other| other.subject() == last.issuer())
        };
        let next = others.iter().position(signs);
        match next.filter(|_| !last.is_self_signed()) {
            Some(next) => chain.push(others.remove(next)),
            None => return Ok(chain),
        }
    }
}

/// What lies in the bags of a store.
#[derive(Default)]
struct Contents {
    keys: Vec<Key>,
    certificates: Vec<Marked>,
}

struct Key {
    der: Vec<u8>,
    mark: Option<Vec<u8>>,
}

struct Marked {
    der: CertificateDer<'static>,
    mark: Option<Vec<u8>>,
    trusted: bool,
}

fn malformed() -> Problem {
    Problem::malformed(FORMAT, "its structure is another one")
}

fn open(source: &Source<'_>) -> Result<Contents, Problem> {
    let mut outer = Value::first(&source.bytes)
        .and_then(|value| value.values_of(SEQUENCE))
        .ok_or_else(malformed)?;
    let _version = outer.next().ok_or_else(malformed)?;
    let safe = outer.next().and_then(data).ok_or_else(malformed)?;
    let password = Password::new(&source.password);
    if let Some(mac) = outer.next() {
        let is_right = crypto::is_mac_right(mac, safe, &password).map_err(unsupported)?;
        if !is_right {
            return Err(source.wrong_password());
        }
    }
    let mut contents = Contents::default();
    let parts = Value::first(safe).and_then(|safe| safe.values_of(SEQUENCE));
    for part in parts.ok_or_else(malformed)? {
        let opened = open_part(part, source, &password)?;
        let bags = Value::first(&opened).and_then(|bags| bags.values_of(SEQUENCE));
        for bag in bags.ok_or_else(malformed)? {
            contents.add(bag, source, &password)?;
        }
    }
    Ok(contents)
}

fn unsupported(what: crypto::Unsupported) -> Problem {
    Problem::malformed(FORMAT, what)
}

/// The bytes in a record of kind `data`.
fn data(value: Value<'_>) -> Option<&[u8]> {
    let mut fields = value.values_of(SEQUENCE)?;
    if fields.next()?.identifier()? != DATA {
        return None;
    }
    fields
        .next_values(CONTEXT_0)?
        .next()?
        .content_of(OCTET_STRING)
}

/// The bags of one part, decrypted.
fn open_part(
    part: Value<'_>,
    source: &Source<'_>,
    password: &Password,
) -> Result<Vec<u8>, Problem> {
    if let Some(bytes) = data(part) {
        return Ok(bytes.to_vec());
    }
    let (algorithm, bytes) = encrypted_data(part).ok_or_else(malformed)?;
    decrypt(algorithm, &bytes, source, password)
}

/// The algorithm and the bytes in a record of kind `encryptedData`.
fn encrypted_data(part: Value<'_>) -> Option<(Value<'_>, Vec<u8>)> {
    let mut fields = part.values_of(SEQUENCE)?;
    if fields.next()?.identifier()? != ENCRYPTED_DATA {
        return None;
    }
    let mut record = fields.next_values(CONTEXT_0)?.next_values(SEQUENCE)?;
    let _version = record.next()?;
    let mut content = record.next_values(SEQUENCE)?;
    let _kind = content.next()?;
    let (algorithm, bytes) = (content.next()?, content.next()?);
    let bytes = match bytes.kind() {
        CONTEXT_0_PRIMITIVE => bytes.content.to_vec(),
        // In pieces.
        CONTEXT_0 => Values(bytes.content)
            .flat_map(|piece| piece.content.to_vec())
            .collect(),
        _ => return None,
    };
    Some((algorithm, bytes))
}

fn decrypt(
    algorithm: Value<'_>,
    bytes: &[u8],
    source: &Source<'_>,
    password: &Password,
) -> Result<Vec<u8>, Problem> {
    let scheme = EncryptionScheme::from_der(algorithm.whole).ok();
    let plain = match scheme.as_ref().and_then(EncryptionScheme::pbes2) {
        Some(way) if !effort::may_derive(&way.kdf) => {
            return Err(unsupported(crypto::too_costly("its encryption")));
        }
        Some(way) => way.decrypt(&source.password, bytes).ok(),
        None => crypto::decrypt(algorithm, bytes, password).map_err(unsupported)?,
    };
    plain.ok_or_else(|| source.wrong_password())
}

/// A key that is encrypted as in this format, but stands by itself; `None` if the password is wrong.
///
/// # Errors
/// It is encrypted in another way.
pub(super) fn decrypt_key(
    bytes: &[u8],
    source: &Source<'_>,
) -> Result<Option<Vec<u8>>, crypto::Unsupported> {
    let key = Value::first(bytes).and_then(shrouded);
    let (algorithm, bytes) = key.ok_or_else(crypto::Unsupported::form)?;
    crypto::decrypt(algorithm, bytes, &Password::new(&source.password))
}

impl Contents {
    /// Takes what lies in a bag; bags of other kinds are passed over.
    fn add(
        &mut self,
        bag: Value<'_>,
        source: &Source<'_>,
        password: &Password,
    ) -> Result<(), Problem> {
        let mut fields = bag.values_of(SEQUENCE).ok_or_else(malformed)?;
        let kind = fields.next().and_then(|kind| kind.identifier());
        let content = fields.next_values(CONTEXT_0);
        let content = content.and_then(|mut content| content.next());
        let (Some(kind), Some(content)) = (kind, content) else {
            return Err(malformed());
        };
        let attributes = Attributes::read(fields.next());
        let mark = attributes.mark;
        match kind {
            KEY_BAG => self.keys.push(Key {
                der: content.whole.to_vec(),
                mark,
            }),
            SHROUDED_KEY_BAG => {
                let (algorithm, bytes) = shrouded(content).ok_or_else(malformed)?;
                let der = decrypt(algorithm, bytes, source, password)?;
                self.keys.push(Key { der, mark });
            }
            CERTIFICATE_BAG => {
                let der = certificate(content).ok_or_else(malformed)?;
                self.certificates.push(Marked {
                    der: der.to_vec().into(),
                    mark,
                    trusted: attributes.trusted,
                });
            }
            _ => {}
        }
        Ok(())
    }
}

fn shrouded(content: Value<'_>) -> Option<(Value<'_>, &[u8])> {
    let mut fields = content.values_of(SEQUENCE)?;
    Some((fields.next()?, fields.next()?.content_of(OCTET_STRING)?))
}

fn certificate(content: Value<'_>) -> Option<&[u8]> {
    let mut fields = content.values_of(SEQUENCE)?;
    if fields.next()?.identifier()? != X509 {
        return None;
    }
    fields
        .next_values(CONTEXT_0)?
        .next()?
        .content_of(OCTET_STRING)
}

/// What is said of a bag.
#[derive(Default)]
struct Attributes {
    mark: Option<Vec<u8>>,
    trusted: bool,
}

impl Attributes {
    fn read(set: Option<Value<'_>>) -> Attributes {
        let mut attributes = Attributes::default();
        for attribute in set.into_iter().flat_map(|set| Values(set.content)) {
            let mut fields = Values(attribute.content);
            match fields.next().and_then(|kind| kind.identifier()) {
                Some(LOCAL_KEY_ID) => {
                    let value = fields.next().and_then(|set| Value::first(set.content));
                    attributes.mark = value.map(|value| value.content.to_vec());
                }
                Some(TRUSTED) => attributes.trusted = true,
                _ => {}
            }
        }
        attributes
    }
}
