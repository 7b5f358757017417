//! Stores in Java's own format.
//!
//! Own code: the format is small, and no kept library reads it. All numbers are big-endian; texts have their length in two
//! bytes. Keys are encrypted with a stream of SHA-1 sums that is chained from the password and a salt; one more sum over
//! password and key tells whether the password was right, and one over password and file whether the file is whole.

use der::asn1::ObjectIdentifier;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use sha1::{Digest, Sha1};

use super::der::{OCTET_STRING, SEQUENCE, Value};
use super::error::Problem;
use super::store::{KeyEntry, Source};

const FORMAT: &str = "JKS";
const MAGIC: [u8; 4] = [0xfe, 0xed, 0xfe, 0xed];
const JCEKS_MAGIC: [u8; 4] = [0xce, 0xce, 0xce, 0xce];
const KEY_ENTRY: u32 = 1;
const TRUSTED_ENTRY: u32 = 2;
const SUM: usize = 20;
/// Stands between the password and the file in the sum over both.
const WHITENER: &[u8] = b"Mighty Aphrodite";
/// The way in which keys are encrypted.
const KEY_PROTECTOR: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.42.2.17.1.1");

/// Whether a file is one of Java's own kinds.
pub(super) fn is_store(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC) || bytes.starts_with(&JCEKS_MAGIC)
}

/// The first private key.
pub(super) fn key(source: &Source<'_>) -> Result<KeyEntry, Problem> {
    let mut entries = entries(source)?.into_iter();
    let found = entries.find_map(|entry| match entry {
        Entry::Key { protected, chain } => Some((protected, chain)),
        Entry::Trusted(_) => None,
    });
    let (protected, chain) = found.ok_or(Problem::NoKey)?;
    if chain.is_empty() {
        return Err(Problem::NoCertificate);
    }
    let key = unprotect(protected, source)?;
    Ok(KeyEntry {
        chain: chain.into_iter().map(CertificateDer::into_owned).collect(),
        key: PrivatePkcs8KeyDer::from(key).into(),
    })
}

/// The certificates that are trusted by themselves.
pub(super) fn trusted(source: &Source<'_>) -> Result<Vec<CertificateDer<'static>>, Problem> {
    let entries = entries(source)?.into_iter();
    let trusted = entries.filter_map(|entry| match entry {
        Entry::Trusted(certificate) => Some(certificate.into_owned()),
        Entry::Key { .. } => None,
    });
    Ok(trusted.collect())
}

enum Entry<'a> {
    Key {
        protected: &'a [u8],
        chain: Vec<CertificateDer<'a>>,
    },
    Trusted(CertificateDer<'a>),
}

fn entries<'a>(source: &'a Source<'_>) -> Result<Vec<Entry<'a>>, Problem> {
    if source.bytes.starts_with(&JCEKS_MAGIC) {
        return Err(Problem::Jceks(source.name()));
    }
    let truncated = || Problem::malformed(FORMAT, "it ends in the middle of an entry");
    let length = source.bytes.len().checked_sub(SUM).ok_or_else(truncated)?;
    let (content, sum) = source.bytes.split_at(length);
    // Without a password Java does not look at the sum either.
    let is_checked = !source.password.is_empty();
    if is_checked && password_sum(source, &[WHITENER, content]) != sum {
        return Err(source.wrong_password());
    }
    let mut reader = Reader(content);
    read_entries(&mut reader).ok_or_else(truncated)?
}

fn read_entries<'a>(reader: &mut Reader<'a>) -> Option<Result<Vec<Entry<'a>>, Problem>> {
    if reader.take(4)? != MAGIC {
        return Some(Err(Problem::malformed(
            FORMAT,
            "it begins with other bytes",
        )));
    }
    let version = reader.number()?;
    if !matches!(version, 1 | 2) {
        let detail = format!("version {version} is unknown");
        return Some(Err(Problem::malformed(FORMAT, detail)));
    }
    let count = reader.number()?;
    let mut entries = Vec::new();
    for _ in 0..count {
        let kind = reader.number()?;
        let _alias = reader.text()?;
        let _created = reader.take(8)?;
        entries.push(match kind {
            KEY_ENTRY => {
                let protected = reader.block()?;
                let count = reader.number()?;
                let chain = (0..count).map(|_| reader.certificate(version));
                Entry::Key {
                    protected,
                    chain: chain.collect::<Option<_>>()?,
                }
            }
            TRUSTED_ENTRY => Entry::Trusted(reader.certificate(version)?),
            _ => {
                let detail = format!("an entry of kind {kind}");
                return Some(Err(Problem::malformed(FORMAT, detail)));
            }
        });
    }
    Some(Ok(entries))
}

/// Decrypts a key.
fn unprotect(protected: &[u8], source: &Source<'_>) -> Result<Vec<u8>, Problem> {
    let data = protected_data(protected)
        .ok_or_else(|| Problem::malformed(FORMAT, "its key is not encrypted in the known way"))?;
    if data.len() < 2 * SUM {
        return Err(Problem::malformed(FORMAT, "its key is too short"));
    }
    let (salt, rest) = data.split_at(SUM);
    let (encrypted, expected) = rest.split_at(rest.len() - SUM);
    let mut key = Vec::with_capacity(encrypted.len());
    let mut link: [u8; SUM] = password_sum(source, &[salt]);
    for block in encrypted.chunks(SUM) {
        key.extend(block.iter().zip(link).map(|(byte, pad)| byte ^ pad));
        link = password_sum(source, &[&link]);
    }
    match password_sum(source, &[&key]) == expected {
        true => Ok(key),
        false => Err(source.wrong_password()),
    }
}

/// The encrypted bytes in their envelope: how they are encrypted, and they themselves.
fn protected_data(envelope: &[u8]) -> Option<&[u8]> {
    let mut parts = Value::first(envelope)?.values_of(SEQUENCE)?;
    let mut algorithm = parts.next_values(SEQUENCE)?;
    if algorithm.next()?.identifier()? != KEY_PROTECTOR {
        return None;
    }
    parts.next()?.content_of(OCTET_STRING)
}

/// The sum over the password, two bytes a character, and what follows.
fn password_sum(source: &Source<'_>, parts: &[&[u8]]) -> [u8; SUM] {
    let mut sum = Sha1::new();
    for unit in source.password.encode_utf16() {
        sum.update(unit.to_be_bytes());
    }
    for part in parts {
        sum.update(part);
    }
    sum.finalize().into()
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        let bytes = self.take(4)?.first_chunk()?;
        Some(u32::from_be_bytes(*bytes))
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let length = u16::from_be_bytes(*self.take(2)?.first_chunk()?);
        self.take(usize::from(length))
    }

    fn block(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(usize::try_from(length).ok()?)
    }

    fn certificate(&mut self, version: u32) -> Option<CertificateDer<'a>> {
        if version > 1 {
            let _kind = self.text()?;
        }
        self.block().map(CertificateDer::from)
    }
}
