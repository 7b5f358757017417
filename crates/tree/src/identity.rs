//! Identities that a connection has proved.

use quenda_proto::acl::{AUTH, IP, SUPER, WORLD};

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
