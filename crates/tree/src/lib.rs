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
mod quota_report;
mod read;
mod reap;
mod restore;
mod row;
mod session;
mod slab;
mod snapshot;
mod tree;
mod undo;
mod zxid;

pub use acl::{AclEntry, AclId};
pub use apply::{Applied, SessionEffect};
pub use changes::{Change, ChangeKind, Changes, QuotaExcess};
pub use checkpoint::{CheckpointSink, Table};
pub use identity::Identity;
pub use load::{LoadError, Loader};
pub use quota_report::NamespaceQuota;
pub use read::{Counts, Znode};
pub use restore::{
    Checked, PieceSum, Restored, check as check_snapshot, check_begin as check_snapshot_begin,
};
pub use session::Session;
pub use snapshot::{Exported, MapView, RowCursor, RowView, SnapshotError, ViewError, export};
pub use tree::Tree;
