//! The cryptography of PKCS#12 (RFC 7292): keys from passwords, the sum that tells whether a password is right, and the
//! ciphers from before PBES2.

use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockModeDecrypt, InnerIvInit, KeyInit};
use der::asn1::ObjectIdentifier;
use hmac::digest::core_api::BlockSizeUser;
use hmac::digest::{Digest, FixedOutputReset};
use hmac::{Mac, SimpleHmac};
use rc2::Rc2;
use sha1::Sha1;
use sha2::{Sha256, Sha384, Sha512};

use super::der::{OCTET_STRING, SEQUENCE, Value};
use super::effort;
use crate::limits::STORE_ITERATIONS_MAX;

const SHA1: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.14.3.2.26");
const SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.1");
const SHA384: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.2");
const SHA512: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.3");
const THREE_DES: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.12.1.3");
const RC2_128: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.12.1.5");
const RC2_40: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.12.1.6");

/// What a derived key is for.
const FOR_KEY: u8 = 1;
const FOR_IV: u8 = 2;
const FOR_MAC: u8 = 3;
/// Bytes of a block of the old ciphers.
const BLOCK: usize = 8;

/// A password as the format wants it: two bytes a character, with an end.
pub(super) struct Password(Vec<u8>);

impl Password {
    pub(super) fn new(text: &str) -> Password {
        let units = text.encode_utf16().chain([0]);
        Password(units.flat_map(u16::to_be_bytes).collect())
    }
}

/// Something of the format that is not read.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0} is not read here; copy the store: keytool -importkeystore -srckeystore OLD -destkeystore NEW -deststoretype PKCS12"
)]
pub(super) struct Unsupported(String);

impl Unsupported {
    /// The encryption is not described as it has to be.
    pub(super) fn form() -> Unsupported {
        unsupported("the form of its encryption", None)
    }
}

fn unsupported(what: &str, kind: Option<ObjectIdentifier>) -> Unsupported {
    Unsupported(match kind {
        Some(kind) => format!("{what} {kind}"),
        None => what.to_owned(),
    })
}

/// For what would take too much calculation.
pub(super) fn too_costly(what: &str) -> Unsupported {
    Unsupported(format!(
        "{what} with more than {STORE_ITERATIONS_MAX} iterations"
    ))
}

/// Whether the sum over the contents was made with this password.
pub(super) fn is_mac_right(
    mac: Value<'_>,
    contents: &[u8],
    password: &Password,
) -> Result<bool, Unsupported> {
    let sum = MacData::read(mac).ok_or_else(|| unsupported("the form of its sum", None))?;
    if !effort::may_repeat(sum.iterations) {
        return Err(too_costly("its sum"));
    }
    match sum.digest {
        SHA1 => Ok(sum.is_of::<Sha1>(contents, password)),
        SHA256 => Ok(sum.is_of::<Sha256>(contents, password)),
        SHA384 => Ok(sum.is_of::<Sha384>(contents, password)),
        SHA512 => Ok(sum.is_of::<Sha512>(contents, password)),
        other => Err(unsupported("its sum", Some(other))),
    }
}

struct MacData<'a> {
    digest: ObjectIdentifier,
    sum: &'a [u8],
    salt: &'a [u8],
    iterations: u32,
}

impl<'a> MacData<'a> {
    fn read(value: Value<'a>) -> Option<MacData<'a>> {
        let mut fields = value.values_of(SEQUENCE)?;
        let mut info = fields.next_values(SEQUENCE)?;
        let digest = info.next_values(SEQUENCE)?.next()?.identifier()?;
        Some(MacData {
            digest,
            sum: info.next()?.content_of(OCTET_STRING)?,
            salt: fields.next()?.content_of(OCTET_STRING)?,
            iterations: fields.next().map_or(Some(1), |count| count.number())?,
        })
    }

    fn is_of<D>(&self, contents: &[u8], password: &Password) -> bool
    where
        D: Digest + BlockSizeUser + FixedOutputReset + Clone,
    {
        let length = <D as Digest>::output_size();
        let key = derive::<D>(FOR_MAC, password, self.salt, self.iterations, length);
        let mac = <SimpleHmac<D> as Mac>::new_from_slice(&key);
        mac.is_ok_and(|mac| mac.chain_update(contents).verify_slice(self.sum).is_ok())
    }
}

/// Decrypts with one of the ciphers from before PBES2; `None` if the password is wrong.
pub(super) fn decrypt(
    algorithm: Value<'_>,
    bytes: &[u8],
    password: &Password,
) -> Result<Option<Vec<u8>>, Unsupported> {
    let (kind, salt, iterations) = parameters(algorithm).ok_or_else(Unsupported::form)?;
    if !effort::may_repeat(iterations) {
        return Err(too_costly("its encryption"));
    }
    let derived = |purpose, length| derive::<Sha1>(purpose, password, salt, iterations, length);
    let iv = derived(FOR_IV, BLOCK);
    let plain = match kind {
        THREE_DES => {
            let cipher = des::TdesEde3::new_from_slice(&derived(FOR_KEY, 24)).ok();
            cipher.and_then(|cipher| unchain(cipher, &iv, bytes))
        }
        RC2_128 => unchain(
            Rc2::new_with_eff_key_len(&derived(FOR_KEY, 16), 128),
            &iv,
            bytes,
        ),
        RC2_40 => unchain(
            Rc2::new_with_eff_key_len(&derived(FOR_KEY, 5), 40),
            &iv,
            bytes,
        ),
        other => return Err(unsupported("its encryption", Some(other))),
    };
    Ok(plain)
}

fn parameters(algorithm: Value<'_>) -> Option<(ObjectIdentifier, &[u8], u32)> {
    let mut fields = algorithm.values_of(SEQUENCE)?;
    let kind = fields.next()?.identifier()?;
    let mut parameters = fields.next_values(SEQUENCE)?;
    let salt = parameters.next()?.content_of(OCTET_STRING)?;
    Some((kind, salt, parameters.next()?.number()?))
}

/// Cipher block chaining, backwards.
fn unchain<C>(cipher: C, iv: &[u8], bytes: &[u8]) -> Option<Vec<u8>>
where
    C: cbc::cipher::BlockCipherDecrypt,
{
    let mode = cbc::Decryptor::inner_iv_slice_init(cipher, iv).ok()?;
    mode.decrypt_padded_vec::<Pkcs7>(bytes).ok()
}

/// The key derivation of RFC 7292, appendix B.2.
fn derive<D>(
    purpose: u8,
    password: &Password,
    salt: &[u8],
    iterations: u32,
    length: usize,
) -> Vec<u8>
where
    D: Digest + BlockSizeUser,
{
    let block = D::block_size();
    let filled = |bytes: &[u8]| -> Vec<u8> {
        let length = bytes.len().div_ceil(block) * block;
        bytes.iter().copied().cycle().take(length).collect()
    };
    let mut input = [filled(salt), filled(&password.0)].concat();
    let mut derived = Vec::new();
    while derived.len() < length {
        let first = D::new()
            .chain_update(vec![purpose; block])
            .chain_update(&input);
        let mut sum = first.finalize();
        for _ in 1..iterations {
            sum = D::digest(&sum);
        }
        derived.extend_from_slice(&sum);
        let addend: Vec<u8> = sum.iter().copied().cycle().take(block).collect();
        input
            .chunks_mut(block)
            .for_each(|piece| add_and_one(piece, &addend));
    }
    derived.truncate(length);
    derived
}

/// Adds a number of the same length, and one more; what goes beyond the length is dropped.
fn add_and_one(piece: &mut [u8], addend: &[u8]) {
    let mut carry = 1;
    for (byte, add) in piece.iter_mut().zip(addend).rev() {
        let sum = u16::from(*byte) + u16::from(*add) + carry;
        *byte = sum as u8;
        carry = sum >> 8;
    }
}
