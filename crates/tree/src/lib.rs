//! The replicated state machine: znodes, access control lists, sessions, quotas.
//!
//! A [`Tree`] changes only by [`Tree::apply`], which decides everything from the command, its stamp and the
//! state, so that all members come to the same result. There is no clock, no randomness and no I/O.

mod acl;
mod apply;
mod changes;
mod checkpoint;
pub mod command;
mod digest;
pub mod ensemble;
pub mod identity;
mod index;
pub mod limits;
mod load;
mod node;
mod quota;
mod read;
mod reap;
mod row;
mod session;
mod slab;
mod tree;
mod undo;
mod zxid;

pub use acl::{AclEntry, AclId};
pub use apply::{Applied, SessionEffect};
pub use changes::{Change, ChangeKind, Changes};
pub use checkpoint::{CheckpointSink, Table};
pub use identity::Identity;
pub use load::{LoadError, Loader};
pub use read::{Counts, Znode};
pub use session::Session;
pub use tree::Tree;
