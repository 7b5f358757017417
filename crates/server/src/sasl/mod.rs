//! Who may authenticate by SASL: users with their passwords from a JAAS file or a plain one, read again when it changes.
//!
//! The exchange of tokens itself is the frontend's: [`quenda_frontend::SaslUsers`].

mod accounts;
pub(crate) mod jaas;
mod plain;
mod source;
mod watch;

pub use accounts::Accounts;
pub use source::{SourceError, UserSource, Users};
pub use watch::watch;
