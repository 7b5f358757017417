//! TLS on the ports of this server, and to servers that it dials.
//!
//! - [`Tls`] holds what a handshake needs: keys and trusted certificates from files ([`store`]), the versions and cipher
//!   suites ([`suites`]), the judge over clients' certificates ([`verifier`]). It is built at the start and again when the
//!   files change ([`reload`]).
//! - [`accept()`] finds out whether a client speaks TLS, carries out the handshake, and gives a [`TlsStream`], which serves
//!   the connection's task as a plain socket does.
//! - [`connect()`] carries it out with a server that is dialed, whose certificate [`dialing`] judges.
//! - Who the client is follows from its certificate's subject ([`subject`]), in the words of Java.

mod accept;
mod certificate;
mod connect;
mod context;
mod counters;
mod der;
mod dialing;
mod ec_key;
mod effort;
mod error;
mod identity;
mod jks;
mod pem;
mod pkcs12;
mod pkcs12_crypto;
mod reload;
mod shake;
mod store;
mod stream;
mod subject;
mod suites;
#[cfg(test)]
mod tests;
mod verifier;

pub use accept::{Accepted, Refusal, accept};
pub use connect::connect;
pub use context::{Tls, certified_key, certified_pair};
pub use error::{Problem, TlsError};
pub use identity::is_of_host;
pub use reload::watch;
pub use store::read_trusted;
pub use stream::TlsStream;
