//! Authentication by SASL: the server's side of the mechanism DIGEST-MD5 (RFC 2831), as the clients of ZooKeeper
//! speak it.
//!
//! A connection has one [`Exchange`]. The host says who may authenticate and gives random bytes: [`SaslUsers`].

mod directives;
mod exchange;
mod users;

pub use exchange::SaslRefusal;
pub(crate) use exchange::{Exchange, Step};
pub use users::{NONCE_BYTES, Password, SaslUsers};
