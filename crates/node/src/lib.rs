//! One member of the cluster, as a deterministic machine: consensus, tree and client connections composed.
//!
//! Time and entropy come in as data; threads, locks, sockets and disks belong to the host. The host's
//! core thread owns a [`Member`] and drives it:
//!
//! 1. hand over what arrived: commands ([`Member::submit`]), heard sessions ([`Member::touched`]), durable
//!    log batches ([`Member::persisted`]), frames of other members ([`Member::receive`]), ticks
//!    ([`Member::tick`]);
//! 2. take [`Work`] with [`Member::drive`] until there is none: batches for the log writer, frames for
//!    others, and committed entries;
//! 3. apply those with an [`Applier`] while nobody reads the tree, then report [`Member::applied`].
//!
//! Whatever becomes of leaders, a command gets into the log at most once, and never in front of one that
//! its connection sent earlier: when the fate of what is in flight becomes unknown the member's *era* ends,
//! and with it every connection that has something in flight.

mod agreement;
mod applier;
mod barriers;
mod forwarding;
pub mod frame;
pub mod limits;
mod member;
mod outstanding;
mod peers;
mod reconcile;
mod session_tracker;
mod touches;
mod view;
mod work;

pub use agreement::Difference;
pub use applier::{Applier, Connections, Effects, EntryCause, EntryError, Settled};
pub use frame::{PeerFrameError, is_forward};
pub use member::{Member, TransferRefusal};
pub use session_tracker::SessionTracker;
pub use view::View;
pub use work::{Fetch, Founding, Install, Outgoing, PeerReport, PeerState, Service, Setup, Work};
