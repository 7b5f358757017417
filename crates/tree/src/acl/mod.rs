//! Access control lists: what znodes carry, whom they let in, what clients may set.

mod ip;
mod matcher;
mod request;
mod store;
mod x500;

pub(crate) use request::resolve;
pub(crate) use store::{AclLoader, AclStore};

/// Number of a list in the tree. Lists with the same entries share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AclId(pub(crate) u32);

impl AclId {
    /// `world:anyone` with all permissions; always there.
    pub const OPEN: AclId = AclId(0);
    /// `world:anyone` with READ; always there.
    pub(crate) const READ_ONLY: AclId = AclId(1);
}

/// One entry of an access control list, as stored.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AclEntry {
    /// Permission bits, as given; see [`quenda_proto::acl::perms`].
    pub perms: i32,
    /// world, digest, ip, sasl or x509.
    pub scheme: Box<str>,
    /// Whom the permissions are given to, in the scheme's own notation.
    pub id: Box<str>,
}

impl AclEntry {
    /// An entry from its parts.
    pub fn new(perms: i32, scheme: &str, id: &str) -> AclEntry {
        AclEntry {
            perms,
            scheme: scheme.into(),
            id: id.into(),
        }
    }
}
