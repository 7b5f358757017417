//! Asynchronous client of the ZooKeeper protocol.
//!
//! Two layers, to be chosen by need:
//!
//! - [`Client`]: one session as a cloneable handle. Every request is a typed call; calls that are not
//!   awaited one by one travel pipelined, and the server answers them in order. Watch events arrive on
//!   [`Events`]. Pings keep the session alive.
//! - [`Wire`]: one connection as two byte buffers, for programs that count microseconds (load
//!   generators, proxies). The caller drives it.
//!
//! A lost connection ends the handle with [`Error::ConnectionLost`]; the session lives on in the
//! cluster and [`ConnectOptions::resume`] takes it up again. There is no reconnecting by itself.

mod client;
mod codec;
mod driver;
mod error;
mod multi;
mod requests;
mod wire;

pub use client::{Client, Pending, Reply};
pub use codec::FrameCodec;
pub use driver::{Event, Events};
pub use error::{Error, code_name};
pub use multi::{Transaction, TransactionResult};
pub use requests::open_acl;
pub use wire::{ConnectOptions, Session, Wire};
