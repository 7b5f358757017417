//! Identities that a connection has proved.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use quenda_proto::acl::{AUTH, DIGEST, IP, SUPER, WORLD};
use quenda_proto::jute::text_from_utf8;
use sha1::{Digest, Sha1};

/// Who somebody is, under which scheme that was proved.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// digest, ip, sasl, x509 or super.
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
        !matches!(&*self.scheme, IP | SUPER | WORLD | AUTH)
    }
}

/// The identity that a digest credential `user:password` proves: `user:` and the base64 of the SHA-1 of
/// the whole credential. Without a colon all of it is the user.
pub fn digest_identity(credential: &[u8]) -> Identity {
    let credential = text_from_utf8(credential);
    let user = credential.split(':').next().unwrap_or_default();
    let hash = STANDARD.encode(Sha1::digest(credential.as_bytes()));
    Identity::new(DIGEST, &format!("{user}:{hash}"))
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
            assert_eq!(&*digest_identity(credential.as_bytes()).id, id);
        }
    }

    #[test]
    fn a_credential_without_colon_is_all_user() {
        let identity = digest_identity(b"nocolon");
        assert!(identity.id.starts_with("nocolon:"), "{}", identity.id);
        assert!(identity.is_proved());
    }
}
