//! Permissions and the schemes that Quenda knows by name.

/// Permission bits of an access control list.
pub mod perms {
    /// Read data, children and (with or without ADMIN) the list itself.
    pub const READ: i32 = 1;
    /// Replace the data.
    pub const WRITE: i32 = 2;
    /// Create children.
    pub const CREATE: i32 = 4;
    /// Delete children.
    pub const DELETE: i32 = 8;
    /// Replace the list.
    pub const ADMIN: i32 = 16;
    /// All of them.
    pub const ALL: i32 = 31;
}

/// Scheme of the identity that everybody has.
pub const WORLD: &str = "world";
/// The only identity of [`WORLD`].
pub const ANYONE: &str = "anyone";
/// Scheme that stands for all proved identities of the connection when a list is set.
pub const AUTH: &str = "auth";
/// User and hashed password.
pub const DIGEST: &str = "digest";
/// Address of the peer.
pub const IP: &str = "ip";
/// Identity proved by a SASL exchange.
pub const SASL: &str = "sasl";
/// Subject of a certificate that the peer has proved to be its own.
pub const X509: &str = "x509";
/// Name of the ensemble that a client means; proves nothing and is never part of a list.
pub const ENSEMBLE: &str = "ensemble";
/// Has what lists give to one id of [`SASL`], whoever the user is; never part of a list.
pub const ANY_SASL_USER: &str = "anysasl";
/// Passes every check; never part of a list.
pub const SUPER: &str = "super";
