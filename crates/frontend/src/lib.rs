//! The client protocol of one member, without I/O: handshake, order of requests, reads, watches,
//! identities.
//!
//! One [`Connection`] stands for one socket. Bytes go in by [`Connection::receive`] and come out by
//! [`Connection::take_output`]; writes come out as encoded commands in [`Proposals`], and
//! [`Connection::complete`] brings their outcome back. Who calls these, on which thread and under which
//! locks is the caller's business; this crate has no clock, no locks and no randomness.

mod auth;
mod connection;
mod eager_acl;
mod ensemble_names;
mod estimate;
mod fired;
mod gates;
mod handshake;
mod limits;
mod local_sessions;
mod multi_read;
mod observe;
mod pending;
mod reads;
mod reply;
mod request;
mod sasl;
mod session_ids;
mod session_throttle;
mod settings;
mod slab;
mod stats;
mod turns;
mod watch_kinds;
mod watch_ops;
mod watch_table;
mod watchers;
mod world;
mod writes;

pub use auth::address_identity;
pub use connection::{CloseReason, Connection, Pause, Received};
pub use ensemble_names::EnsembleNames;
pub use fired::{Fired, FiredEvent};
pub use gates::{Admission, Gates, Newcomer, Throttling};
pub use limits::Limits;
pub use local_sessions::{LocalSession, LocalSessionTable, LocalSessions, Takeover};
pub use observe::{LATENCY_BOUNDS_MS, Named, Observation, Observed, Part, Sample, Sampling, Tally};
pub use sasl::{NONCE_BYTES, Password, SaslRefusal, SaslUsers};
pub use session_ids::{MemberOutOfRange, SessionIds};
pub use session_throttle::{SessionThrottle, SessionThrottleSettings};
pub use settings::Settings;
pub use stats::Stats;
pub use turns::Turns;
pub use watch_kinds::WatchKinds;
pub use watch_table::{WatchCounts, WatchTable};
pub use world::{
    ConnectionId, Growth, Meter, NamedEnsemble, NoMeter, Proposals, ServiceMode, SyncMode, Watches,
    World,
};
