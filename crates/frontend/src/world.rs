//! What surrounds a connection when it is driven: passed in, never kept.

use bytes::BytesMut;
use quenda_proto::Op;
use quenda_tree::Tree;
use quenda_tree::command::Command;

use crate::gates::Gates;
use crate::local_sessions::LocalSessions;
use crate::sasl::SaslUsers;
use crate::session_ids::SessionIds;
use crate::watch_kinds::WatchKinds;

/// One connection of a member, unique over the member's restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// Whether the member takes writes that need more disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Growth {
    /// It does.
    #[default]
    Allowed,
    /// The disk is nearly full: creates, non-empty setData and multis that hold one are answered with
    /// SystemError; everything else goes on.
    Refused,
}

/// What a member does for clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ServiceMode {
    /// Everything.
    #[default]
    Serving,
    /// It has no quorum: reads for clients that accept that, in sessions that only this member knows.
    /// The host closes all connections when it enters or leaves this mode.
    ReadOnly,
    /// Nothing.
    NotServing,
}

/// How `sync` is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyncMode {
    /// As a marker in the order of the session's requests: enough where one voter is the quorum. Reads
    /// are linearizable there anyway.
    #[default]
    Marker,
    /// By a barrier: it is counted in [`Proposals::barriers`] and answered after
    /// [`Connection::complete_sync`](crate::Connection::complete_sync).
    Barrier,
}

/// The member as a connection sees it during one call.
#[derive(Clone, Copy)]
pub struct World<'a> {
    /// The tree, locked at least for reading.
    pub tree: &'a Tree,
    /// The watch table of the member.
    pub watches: &'a dyn Watches,
    /// Ids for new sessions.
    pub session_ids: &'a SessionIds,
    /// The sessions that only this member knows, if new ones are to be such.
    pub local_sessions: Option<&'a dyn LocalSessions>,
    /// Who may authenticate by SASL; none where that is not set up.
    pub sasl: Option<&'a dyn SaslUsers>,
    /// What the member does for clients.
    pub service: ServiceMode,
    /// What holds requests back.
    pub gates: Gates<'a>,
    /// Whether writes that grow are taken.
    pub growth: Growth,
    /// How `sync` is served.
    pub sync: SyncMode,
    /// Who counts what is answered.
    pub meter: &'a dyn Meter,
    /// Monotonic time in milliseconds.
    pub now_ms: u64,
    /// Wall time, milliseconds since 1970.
    pub time_ms: i64,
}

/// Counts what a member's connections answer.
pub trait Meter {
    /// A request was answered, `latency_ms` after it was read. `reply_bytes` are those of its reply with their length; 0
    /// for the request that opens a session.
    fn answered(&self, op: Op, latency_ms: u64, reply_bytes: usize);
    /// A client asks to open a session, or to resume one.
    fn session_asked(&self, resumes: bool);
    /// A client says which ensemble it means.
    fn ensemble_named(&self, ensemble: NamedEnsemble);
}

/// Which ensemble a client means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedEnsemble {
    /// This one.
    Own,
    /// Another one: its connection is closed.
    Other,
    /// This one has no name, so that any will do.
    Any,
}

/// Counts nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMeter;

impl Meter for NoMeter {
    fn answered(&self, _op: Op, _latency_ms: u64, _reply_bytes: usize) {}

    fn session_asked(&self, _resumes: bool) {}

    fn ensemble_named(&self, _ensemble: NamedEnsemble) {}
}

/// The watches of a member, as one connection uses them.
pub trait Watches {
    /// Leaves watches; those that are there already stay as they are. False when the connection has
    /// reached its bound and nothing was left.
    #[must_use = "a full table leaves no watch"]
    fn add(&self, path: &str, connection: ConnectionId, kinds: WatchKinds) -> bool;
    /// Whether the connection has a watch of one of these kinds on exactly this path.
    fn has(&self, path: &str, connection: ConnectionId, kinds: WatchKinds) -> bool;
    /// Takes the connection's watches of these kinds on exactly this path away; true if there was one.
    fn remove(&self, path: &str, connection: ConnectionId, kinds: WatchKinds) -> bool;
    /// Takes all watches of the connection away.
    fn forget(&self, connection: ConnectionId);
}

/// What connections hand to the log: encoded commands, one behind the other, in order.
#[derive(Debug, Default)]
pub struct Proposals {
    /// The commands as [`Command::encode`] makes them; the leader joins them to batches.
    pub commands: BytesMut,
    /// Number of commands.
    pub count: usize,
    /// Barriers asked for by `sync` or by a linearizable read, each answered by one call of
    /// [`Connection::complete_sync`](crate::Connection::complete_sync). At most one a call, and only in
    /// [`SyncMode::Barrier`].
    pub barriers: usize,
    /// Writes that were refused as the disk is nearly full, or as they are forbidden (`enableEagerACLCheck`), as
    /// commands like the others: for those who keep account, and not to be proposed.
    pub refused: BytesMut,
    /// The connection that a local session had before: to be closed before the commands are handed over.
    pub displaced: Option<ConnectionId>,
}

impl Proposals {
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.count == 0 && self.barriers == 0
    }

    pub(crate) fn push(&mut self, command: &Command<'_>) {
        command.encode(&mut self.commands);
        self.count += 1;
    }
}
