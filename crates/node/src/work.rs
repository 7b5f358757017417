//! What a member asks of its host, and what it tells about itself.

use bytes::Bytes;
use quenda_consensus::{
    Consensus, HardState, LogBatch, LogEntry, Role, SnapshotImage, SnapshotRequest,
};

/// What a cluster starts with that does not exist yet; used only by the member that founds it.
#[derive(Debug, Clone)]
pub struct Founding {
    /// Random id of the cluster.
    pub cluster: u64,
    /// Random secret that keys the session passwords.
    pub secret: [u8; 32],
    /// The members' `server.N` lines without a version; empty for a member that stays alone.
    pub config: String,
}

/// What a member starts with.
pub struct Setup {
    /// Its part in the ensemble, as it was left.
    pub consensus: Consensus,
    /// See [`Founding`].
    pub founding: Founding,
    /// Names this run of the member: larger than in any earlier one. Wall milliseconds at start will do.
    pub incarnation: u64,
    /// Monotonic milliseconds now.
    pub now_ms: u64,
}

/// What a member says about itself in handshakes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerState {
    /// Its store is empty, and it does not know yet whether there is a cluster.
    Fresh,
    /// It has decided to found the cluster.
    Founding,
    /// Its store is empty, and it waits to be fed by a leader.
    Joining,
    /// It belongs to a cluster.
    Member,
}

/// One piece of work, to be done in the order of the fields.
#[derive(Debug, Default)]
pub struct Work {
    /// The new era: nobody knows the fate of what was in flight. While nobody reads the tree, every
    /// connection that has something in flight or is in its handshake is closed.
    pub abandoned: Option<u64>,
    /// A state that replaces this member's own. There is nothing else to be made durable in this piece.
    pub install: Option<Install>,
    /// To be made durable, then to be reported with [`crate::Member::persisted`].
    pub persist: Option<(u64, LogBatch)>,
    /// To be sent. What does not get through is lost, and reported with [`crate::Member::unreachable`].
    pub outgoing: Vec<Outgoing>,
    /// To be applied, then to be reported with [`crate::Member::applied`].
    pub committed: Vec<LogEntry>,
    /// Connections whose barrier is passed, each as often as it asked.
    pub barriers: Vec<u64>,
    /// A member needs a snapshot: the host is to make an image that holds at least this entry, and to
    /// answer with [`crate::Member::offer_snapshot`].
    pub snapshot_wanted: Option<SnapshotRequest>,
    /// This member needs a snapshot: its files are to be fetched, see [`crate::Member::fetched`]. A fetch
    /// replaces an older one.
    pub fetch: Option<Fetch>,
}

impl Work {
    pub(crate) fn is_empty(&self) -> bool {
        self.abandoned.is_none()
            && self.install.is_none()
            && self.persist.is_none()
            && self.outgoing.is_empty()
            && self.committed.is_empty()
            && self.barriers.is_empty()
            && self.snapshot_wanted.is_none()
            && self.fetch.is_none()
    }
}

/// A snapshot to be put in place: when nothing is on its way to the store any more, the store is switched
/// to the image, the tree is loaded from it, all client connections are closed, and
/// [`crate::Member::installed`] is told. The member gives no work meanwhile.
#[derive(Debug)]
pub struct Install {
    /// The image; its files are here, see [`crate::Member::fetched`].
    pub image: SnapshotImage,
    /// Number to report.
    pub number: u64,
    /// Term and vote to be stored with it.
    pub hard_state: HardState,
}

/// A frame for another member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// The member.
    pub to: u64,
    /// The frame, see [`crate::frame::Frame`].
    pub frame: Bytes,
}

/// The files of an image that are to be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetch {
    /// The member that has them.
    pub from: u64,
    /// Newest entry in the image.
    pub index: u64,
    /// Term of that entry.
    pub term: u64,
    /// The image's description, as that member's store made it.
    pub manifest: Bytes,
}

/// Whether a member serves clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// It does.
    Serving,
    /// It knows no leader, or has not caught up with it since it does; or its disk hangs, see
    /// [`crate::Member::disk_hangs`].
    NoLeader,
    /// It is no longer part of the ensemble.
    Removed,
    /// Its state differs from that of the others.
    Alarmed,
}

/// What is known of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerReport {
    /// The member.
    pub id: u64,
    /// Its part: [`Role::Leader`] or [`Role::Follower`] for others.
    pub role: Role,
    /// Whether it votes.
    pub voter: bool,
    /// Newest entry known to be durable there; a leader alone knows.
    pub matched: Option<u64>,
    /// Newest entry it has applied, as it said last.
    pub applied: u64,
    /// zxid of its newest transaction, as it said last.
    pub zxid: i64,
    /// Digest of its state and the entry it belongs to, as it said last.
    pub digest: Option<(u64, u64)>,
    /// Entries that it has applied less than this member.
    pub lag: u64,
    /// Milliseconds since it was heard; `None` if it never was, 0 for this member.
    pub heard_ms_ago: Option<u64>,
    /// The snapshot that it fetches.
    pub fetching: Option<u64>,
}
