//! Identities that a connection has proved.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use quenda_proto::acl::{ANY_SASL_USER, AUTH, DIGEST, IP, SUPER, WORLD};
use quenda_proto::jute::text_from_utf8;
use sha1::{Digest, Sha1};
use sha2::{Sha224, Sha256, Sha384, Sha512, Sha512_224, Sha512_256};
use sha3::{Sha3_224, Sha3_256, Sha3_384, Sha3_512};

/// Who somebody is, under which scheme that was proved.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// digest, ip, sasl, x509, super or anysasl.
    pub scheme: Box<str>,
    /// The identity in the scheme's own notation; a digest is `user:hash`.
    pub id: Box<str>,
}

impl Identity {
    /// An identity from its two parts.
    pub fn new(scheme: &str, id: &str) -> Identity {
        Identity {
            scheme: scheme.into(),
            id: id.into(),
        }
    }

    /// Whether this identity passes every check.
    pub fn is_super(&self) -> bool {
        &*self.scheme == SUPER
    }

    /// Whether an `auth` entry of a list stands for this identity: all proved ones, not the address.
    pub fn is_proved(&self) -> bool {
        !matches!(&*self.scheme, IP | ANY_SASL_USER | SUPER | WORLD | AUTH)
    }
}

/// The hash in identities of the digest scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DigestAlgorithm {
    /// SHA-1, which nearly every ensemble has.
    #[default]
    Sha1,
    /// SHA-224.
    Sha224,
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
    /// SHA-512 cut to 224 bits.
    Sha512To224,
    /// SHA-512 cut to 256 bits.
    Sha512To256,
    /// SHA3-224.
    Sha3To224,
    /// SHA3-256.
    Sha3To256,
    /// SHA3-384.
    Sha3To384,
    /// SHA3-512.
    Sha3To512,
}

impl DigestAlgorithm {
    /// The algorithm that Java knows by this name.
    pub fn from_name(name: &str) -> Option<DigestAlgorithm> {
        match name.to_ascii_uppercase().as_str() {
            "SHA1" | "SHA-1" | "SHA" => Some(DigestAlgorithm::Sha1),
            "SHA-224" | "SHA224" => Some(DigestAlgorithm::Sha224),
            "SHA-256" | "SHA256" => Some(DigestAlgorithm::Sha256),
            "SHA-384" | "SHA384" => Some(DigestAlgorithm::Sha384),
            "SHA-512" | "SHA512" => Some(DigestAlgorithm::Sha512),
            "SHA-512/224" | "SHA512/224" => Some(DigestAlgorithm::Sha512To224),
            "SHA-512/256" | "SHA512/256" => Some(DigestAlgorithm::Sha512To256),
            "SHA3-224" => Some(DigestAlgorithm::Sha3To224),
            "SHA3-256" => Some(DigestAlgorithm::Sha3To256),
            "SHA3-384" => Some(DigestAlgorithm::Sha3To384),
            "SHA3-512" => Some(DigestAlgorithm::Sha3To512),
            _ => None,
        }
    }

    fn hash(self, text: &[u8]) -> Vec<u8> {
        match self {
            DigestAlgorithm::Sha1 => Sha1::digest(text).to_vec(),
            DigestAlgorithm::Sha224 => Sha224::digest(text).to_vec(),
            DigestAlgorithm::Sha256 => Sha256::digest(text).to_vec(),
            DigestAlgorithm::Sha384 => Sha384::digest(text).to_vec(),
            DigestAlgorithm::Sha512 => Sha512::digest(text).to_vec(),
            DigestAlgorithm::Sha512To224 => Sha512_224::digest(text).to_vec(),
            DigestAlgorithm::Sha512To256 => Sha512_256::digest(text).to_vec(),
            DigestAlgorithm::Sha3To224 => Sha3_224::digest(text).to_vec(),
            DigestAlgorithm::Sha3To256 => Sha3_256::digest(text).to_vec(),
            DigestAlgorithm::Sha3To384 => Sha3_384::digest(text).to_vec(),
            DigestAlgorithm::Sha3To512 => Sha3_512::digest(text).to_vec(),
        }
    }
}

/// The identity that a digest credential `user:password` proves: `user:` and the base64 of the hash of
/// the whole credential. Without a colon all of it is the user.
pub fn digest_identity(algorithm: DigestAlgorithm, credential: &[u8]) -> Identity {
    let credential = text_from_utf8(credential);
    let user = credential.split(':').next().unwrap_or_default();
    let hash = STANDARD.encode(algorithm.hash(credential.as_bytes()));
    Identity::new(DIGEST, &format!("{user}:{hash}"))
}

/// Whether a text can be the name of a SASL user: without `@`, or `name@realm`, or `name/host@realm`.
pub fn is_principal(text: &str) -> bool {
    match text.split_once('@') {
        None => true,
        Some((name, realm)) => {
            !realm.contains(['/', '@']) && name.bytes().filter(|byte| *byte == b'/').count() <= 1
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_digests() {
        for (credential, id) in [
            ("super:test", "super:D/InIHSb7yEEbrWz8b9l71RjZJU="),
            ("u:p", "u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ="),
        ] {
            let identity = digest_identity(DigestAlgorithm::Sha1, credential.as_bytes());
            assert_eq!(&*identity.id, id);
        }
    }

    /// As Java 17 hashes the credential `a:b`.
    #[test]
    fn other_algorithms_by_their_names_in_java() {
        for (name, hash) in [
            ("sha", "3OptnM09ILoVSfbZtd3mB0IViII="),
            ("SHA-224", "NO5ox74+wWKYdzIKr5itkCWCbJdqfZxBpaBhqg=="),
            ("SHA-256", "Z4OjHqv2jMwGYPk1wIJigr3SJB86gKny0Q1Zrqnrtdg="),
            (
                "SHA-384",
                "M/NiZn7HTqhVZ8t77kPIHIPTVGoTvNRnilTr5ieaJY334TdVUc5jsR1iIyM0tnOD",
            ),
            (
                "sha-512",
                "mdoaJYs51sQ7xY1yh5/CxU2MLd6OyA+mb0neO06R7P3yavbdaDJ9XFm/4RaKEBLXUxeYO/0qTS5uXf3tYf0Smw==",
            ),
            ("SHA-512/224", "8b/dvq349B+GhaRmjmmEuURLjeEv8qp/LLJLww=="),
            ("SHA512/256", "OZzjuYX0pZ3N7Wm6zdI/j+Of9drLfO2EMf9IylYc9kQ="),
            ("SHA3-224", "xUG45FovgCHfY6uJPFHPSB/BTsoY27AAOeVvgg=="),
            ("sha3-256", "ejvga8z66+WtMLJrmlP4mB2ikyi0ZnEdX7dJ2QqhVbg="),
            (
                "SHA3-384",
                "XCsbsbQ8VMzkEzd3pfBut1KO09iPMOdqmY+VjSDBbQ2U6jtPU5iTtajvXRaQYUgK",
            ),
            (
                "SHA3-512",
                "+iQ01vZsS/KKa3tYbcDQCiSvKFghApgRg4c0xnxZ04YdCCoLNpe8Cd6ADfwYSBvLIcDub+4ghTFvLGxjcX0IgQ==",
            ),
        ] {
            let algorithm = DigestAlgorithm::from_name(name).expect("an algorithm");
            let id = digest_identity(algorithm, b"a:b").id;
            assert_eq!(*id, format!("a:{hash}"), "{name}");
        }
        for name in ["MD5", "SHA3256", "SHA3_256"] {
            assert_eq!(DigestAlgorithm::from_name(name), None, "{name}");
        }
    }

    /// As `new KerberosName` of ZooKeeper 3.9.5 judges them.
    #[test]
    fn names_of_sasl_users() {
        for name in [
            "", "bob", "a/b", "a/b/c", "bob@R", "a/b@R", "@", "a@", "/@", "a b@c\nd",
        ] {
            assert!(is_principal(name), "{name:?}");
        }
        for name in ["a@b@c", "a@b/c", "a/b/c@R", "@@", "a/b@c/d"] {
            assert!(!is_principal(name), "{name:?}");
        }
    }

    #[test]
    fn a_credential_without_colon_is_all_user() {
        let identity = digest_identity(DigestAlgorithm::Sha1, b"nocolon");
        assert!(identity.id.starts_with("nocolon:"), "{}", identity.id);
        assert!(identity.is_proved());
    }
}
