//! Raft without I/O: requests, messages and ticks go in; entries to persist, messages to send and
//! committed entries come out.
//!
//! [`Consensus`] wraps raft-rs over a window of the log held in memory. It owns no thread, socket,
//! file or clock; the host drives it from one place:
//!
//! 1. feed it: [`Consensus::tick`], [`Consensus::step`], [`Consensus::propose_batch`], …
//! 2. drain it: while [`Consensus::ready`] gives a [`Ready`], hand `persist` to the log writer, send
//!    `messages`, apply `committed`;
//! 3. when a batch is durable, report its number with [`Consensus::on_persisted`], send the messages
//!    that it releases, and go to 2. Several batches may be outstanding, and one sync may cover many:
//!    a number covers every earlier one;
//! 4. report applied entries with [`Consensus::on_applied`], and drop what a durable checkpoint covers
//!    with [`Consensus::compact`].
//!
//! A single voter goes the same way: it becomes leader inside [`Consensus::campaign`] and commits when
//! its own batch is reported durable.
//!
//! The same inputs give the same outputs: election timeouts come from [`Config::seed`], not from a
//! random source.

mod config;
mod consensus;
mod entry;
mod error;
pub mod limits;
mod membership;
mod message;
mod recovered;
mod status;
mod uncommitted;
mod window;
mod wire;

pub use config::Config;
pub use consensus::{Consensus, ReadIndex, Ready, SnapshotImage, SnapshotRequest};
pub use entry::{EntryKind, HardState, LogBatch, LogEntry};
pub use error::{ConfigError, MembershipError, ProposeError, ReadIndexError, StepError};
pub use membership::{Membership, MembershipChange, conf_context};
pub use message::{Message, announced_snapshot};
pub use recovered::{BOOTSTRAP_INDEX, BOOTSTRAP_TERM, Recovered, RecoveredError};
pub use status::{PeerStatus, Role, Status};
