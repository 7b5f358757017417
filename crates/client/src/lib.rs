//! Asynchronous client of the ZooKeeper protocol.
//!
//! Three layers, to be chosen by need:
//!
//! - [`Client::open`]: a session that goes on at another server when its connection breaks, proves its
//!   identities again and sets its watches again. [`SessionEvents`] tells of watches and of the connection.
//! - [`Client::connect`]: the same calls on one connection; a lost one ends the handle with
//!   [`Error::ConnectionLost`], and [`ConnectOptions::resume`] takes the session up again.
//! - [`Wire`]: one connection as two byte buffers, for programs that count microseconds (load
//!   generators, proxies). The caller drives it.
//!
//! A [`Client`] is a cloneable handle. Every request is a typed call; calls that are not awaited one by one travel
//! pipelined, and the server answers them in order. Pings keep the session alive. Nothing is sent twice: whether a
//! request that failed with [`Error::ConnectionLost`] took effect is for the caller to find out.

mod client;
mod codec;
mod connect_string;
mod driver;
mod error;
mod handle;
mod multi;
mod requests;
mod roamer;
mod sasl;
mod session;
mod socket;
pub mod stream;
mod tls;
mod watch_book;
mod wire;
pub mod word;

pub use client::{Client, Pending, Reply};
pub use codec::FrameCodec;
pub use connect_string::{ConnectString, ConnectStringError};
pub use driver::{Event, Events};
pub use error::{Error, code_name};
pub use multi::{Transaction, TransactionResult};
pub use requests::open_acl;
pub use session::{
    ConnectionState, SaslLogin, SessionEvent, SessionEvents, SessionOptions, SessionState,
    WatchRemoved,
};
pub use tls::{Tls, TlsOptions, TlsOptionsError};
pub use wire::{ConnectOptions, Session, Wire};
