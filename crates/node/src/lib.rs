//! One member of the cluster, as a deterministic machine: consensus, tree and client connections composed.
//!
//! Time and entropy come in as data; threads, locks, sockets and disks belong to the host. The host's
//! core thread owns a [`Member`] and drives it:
//!
//! 1. hand over what arrived: commands ([`Member::submit`]), heard sessions ([`Member::touched`]), durable
//!    log batches ([`Member::persisted`]), ticks ([`Member::tick`]);
//! 2. take work with [`Member::drive`] until there is none: batches for the log writer, and committed
//!    entries;
//! 3. apply those with an [`Applier`] while nobody reads the tree, then report [`Member::applied`].

mod applier;
pub mod limits;
mod member;
mod session_tracker;

pub use applier::{Applier, Connections, EntryError};
pub use member::{Founding, Member};
pub use session_tracker::SessionTracker;
