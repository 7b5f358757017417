//! EC keys as Java writes them: without their public half, which stands in the certificate and which signing asks for.

use der::asn1::ObjectIdentifier;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer};

use super::der::{BIT_STRING, OCTET_STRING, SEQUENCE, Value};

const EC_PUBLIC_KEY: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
/// The public half, in a tag of its own.
const CONTEXT_1: u8 = 0xa1;

/// The key with the public half of a certificate's key; `None` if it is of another kind, or has one already. Whether the
/// halves belong together is seen when the key is put to use.
pub(super) fn completed(
    key: &PrivateKeyDer<'_>,
    certificate_key: &[u8],
) -> Option<PrivateKeyDer<'static>> {
    let public = Value::first(certificate_key)?.values_of(SEQUENCE)?.nth(1)?;
    public.content_of(BIT_STRING)?;
    match key {
        PrivateKeyDer::Pkcs8(key) => {
            let whole = completed_pkcs8(key.secret_pkcs8_der(), public)?;
            Some(PrivatePkcs8KeyDer::from(whole).into())
        }
        PrivateKeyDer::Sec1(key) => {
            let whole = completed_sec1(key.secret_sec1_der(), public)?;
            Some(PrivateSec1KeyDer::from(whole).into())
        }
        _ => None,
    }
}

fn completed_pkcs8(key: &[u8], public: Value<'_>) -> Option<Vec<u8>> {
    let mut parts = Value::first(key)?.values_of(SEQUENCE)?;
    let (version, algorithm) = (parts.next()?, parts.next()?);
    let name = algorithm.values_of(SEQUENCE)?.next()?.identifier()?;
    if name != EC_PUBLIC_KEY {
        return None;
    }
    let inner = completed_sec1(parts.next()?.content_of(OCTET_STRING)?, public)?;
    let inner = encoded(OCTET_STRING, &inner);
    Some(encoded(
        SEQUENCE,
        &[version.whole, algorithm.whole, &inner].concat(),
    ))
}

fn completed_sec1(key: &[u8], public: Value<'_>) -> Option<Vec<u8>> {
    let parts = Value::first(key)?.values_of(SEQUENCE)?.all()?;
    if parts.iter().any(|part| part.kind() == CONTEXT_1) {
        return None;
    }
    let mut content: Vec<u8> = parts.iter().flat_map(|part| part.whole).copied().collect();
    content.extend(encoded(CONTEXT_1, public.whole));
    Some(encoded(SEQUENCE, &content))
}

/// One value, of less than 64 KiB as all keys are.
fn encoded(kind: u8, content: &[u8]) -> Vec<u8> {
    let [.., high, low] = content.len().to_be_bytes();
    let mut value = match content.len() {
        0..0x80 => vec![kind, low],
        0x80..0x100 => vec![kind, 0x81, low],
        _ => vec![kind, 0x82, high, low],
    };
    value.extend_from_slice(content);
    value
}

#[cfg(test)]
mod tests {
    use rustls::crypto::ring::sign::any_supported_type;
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivatePkcs1KeyDer};

    use super::*;
    use crate::tls::certificate::Certificate;

    const KEY: &[u8] = include_bytes!("golden/client.key");
    const CERTIFICATE: &[u8] = include_bytes!("golden/client.pem");
    const OF_ANOTHER: &[u8] = include_bytes!("golden/client-self.pem");

    fn key() -> PrivateKeyDer<'static> {
        PrivateKeyDer::from_pem_slice(KEY).expect("a key")
    }

    fn public_key(certificate: &[u8]) -> Vec<u8> {
        let certificate = CertificateDer::from_pem_slice(certificate).expect("a certificate");
        let certificate = Certificate::parse(&certificate).unwrap_or_else(|_| panic!("parses"));
        certificate.public_key().to_vec()
    }

    /// An EC private key without its last part, which is the public half.
    fn halved_sec1(key: &[u8]) -> Vec<u8> {
        let parts = Value::first(key).and_then(|key| key.values_of(SEQUENCE)?.all());
        let mut parts = parts.expect("a key");
        assert_eq!(parts.pop().expect("parts").kind(), CONTEXT_1);
        let content: Vec<u8> = parts.iter().flat_map(|part| part.whole).copied().collect();
        encoded(SEQUENCE, &content)
    }

    fn halved(key: &PrivateKeyDer<'_>) -> PrivateKeyDer<'static> {
        let parts = Value::first(key.secret_der()).and_then(|key| key.values_of(SEQUENCE)?.all());
        let parts = parts.expect("a key");
        let inner = halved_sec1(parts[2].content_of(OCTET_STRING).expect("a key"));
        let inner = encoded(OCTET_STRING, &inner);
        let whole = encoded(SEQUENCE, &[parts[0].whole, parts[1].whole, &inner].concat());
        PrivatePkcs8KeyDer::from(whole).into()
    }

    #[test]
    fn a_key_gets_its_public_half_back() {
        let (whole, public) = (key(), public_key(CERTIFICATE));
        let half = halved(&whole);
        any_supported_type(&half).expect_err("signing asks for the public half");
        let again = completed(&half, &public).expect("an EC key");
        assert_eq!(again.secret_der(), whole.secret_der());
        let signing = any_supported_type(&again).expect("a key that signs");
        assert_eq!(signing.public_key().expect("EC").as_ref(), public);
    }

    #[test]
    fn the_form_without_a_frame_gets_it_too() {
        let parts = Value::first(key().secret_der()).map(|value| value.content.to_vec());
        let parts = parts.expect("a key");
        let inner = der_part(&parts, 2);
        let half: PrivateKeyDer<'_> = PrivateSec1KeyDer::from(halved_sec1(&inner)).into();
        let again = completed(&half, &public_key(CERTIFICATE)).expect("an EC key");
        assert_eq!(again.secret_der(), inner);
    }

    fn der_part(values: &[u8], number: usize) -> Vec<u8> {
        let part = crate::tls::der::Values(values).nth(number);
        part.expect("so many parts").content.to_vec()
    }

    #[test]
    fn the_half_of_another_key_does_not_fit() {
        let other = completed(&halved(&key()), &public_key(OF_ANOTHER)).expect("an EC key");
        any_supported_type(&other).expect_err("the halves do not belong together");
    }

    #[test]
    fn nothing_else_is_touched() {
        let public = public_key(CERTIFICATE);
        assert!(completed(&key(), &public).is_none(), "it has its half");
        let rsa: PrivateKeyDer<'_> = PrivatePkcs1KeyDer::from(vec![0x30, 0]).into();
        assert!(completed(&rsa, &public).is_none());
        for length in 0..key().secret_der().len() {
            let cut = key().secret_der()[..length].to_vec();
            let cut: PrivateKeyDer<'_> = PrivatePkcs8KeyDer::from(cut).into();
            assert!(completed(&cut, &public).is_none(), "{length} bytes of it");
        }
    }

    #[test]
    fn lengths_of_all_sizes_read_back() {
        for length in [0, 1, 0x7f, 0x80, 0xff, 0x100, 0xffff] {
            let content = vec![7; length];
            let value = encoded(OCTET_STRING, &content);
            let read = Value::first(&value).expect("a value");
            assert_eq!((read.whole, read.content), (&value[..], &content[..]));
        }
    }
}
