//! What the words need to know about the server, in parts, so that a cheap word does not pay for an expensive part.

use std::net::SocketAddr;

use crate::metrics::Page;

/// The running server as the words see it. Every method is called only by the words that print its part.
pub trait Source {
    /// Whether the member serves requests now. If not, most words answer with one line that says so.
    fn serving(&self) -> bool;
    /// The member's part in the cluster.
    fn mode(&self) -> Mode;
    /// What passed through the sockets (`srvr`, `stat`, `mntr`).
    fn traffic(&self) -> Traffic;
    /// How many znodes, sessions and so on there are (`srvr`, `stat`, `mntr`).
    fn state(&self) -> State;
    /// File descriptors and uptime (`mntr`).
    fn process(&self) -> Process;
    /// Every open connection, the one that asks included (`cons`, `dump`, `stat`).
    fn connections(&self) -> Vec<ConnectionView>;
    /// The settings in force (`conf`).
    fn settings(&self) -> Settings;
    /// Bytes of all files under the data directories (`dirs`, `conf`). Reads the disk.
    fn directory_sizes(&self) -> DirectorySizes;
    /// Each session with the wall time at which it expires unless its client is heard (`dump`). Known to the member
    /// that ends sessions: the leader, or one that runs alone.
    fn session_expiries(&self) -> Vec<SessionExpiry>;
    /// Each session that only this member knows, with the wall time at which it expires unless its client is heard
    /// (`dump`); `None` if new sessions are none of these.
    fn local_session_expiries(&self) -> Option<Vec<SessionExpiry>>;
    /// Each session with its timeout in ms (`dump`, where the expiries are not known).
    fn session_timeouts(&self) -> Vec<(i64, i32)>;
    /// Paths of the ephemeral znodes of each session that has any (`dump`).
    fn ephemerals(&self) -> Vec<(i64, Vec<String>)>;
    /// How many watches there are (`wchs`).
    fn watch_summary(&self) -> WatchSummary;
    /// Watched paths of each session that watches (`wchc`).
    fn watches_by_session(&self) -> Vec<(i64, Vec<String>)>;
    /// Watching sessions of each watched path (`wchp`).
    fn watches_by_path(&self) -> Vec<(String, Vec<i64>)>;
    /// What a leader counts; `None` for every other member (`srvr`, `stat`, `mntr`).
    fn leading(&self) -> Option<Leading> {
        None
    }
    /// The member's place in its ensemble; `None` if it runs alone (`mntr`, `conf`).
    fn ensemble(&self) -> Option<Ensemble> {
        None
    }
    /// The member's state in JSON, one line (`qsta`). Answered in every state.
    fn status(&self) -> String;
    /// Whether the one who asks sits on the member's own machine (`qtop`).
    fn asked_locally(&self) -> bool {
        false
    }
    /// Who loads the member, in JSON, one line (`qtop`). Answered in every state.
    fn load(&self) -> String;
    /// Remembered digests of the tree, as zxid and digest (`hash`).
    fn digests(&self) -> Vec<(i64, i64)> {
        Vec::new()
    }
    /// Tells what `mntr` prints beside the figures that every collector knows.
    fn metrics(&self, _page: &mut dyn Page) {}
    /// The lines of `mntr` behind the member's place where they have another form, by the configuration.
    fn float_lines(&self) -> Option<String> {
        None
    }
    /// Zeroes the figures of [`Source::traffic`] and counters of [`Source::metrics`] (`srst`).
    fn reset_server_figures(&self);
    /// Zeroes the figures of each connection (`crst`).
    fn reset_connection_figures(&self);
}

/// A member's part in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The only member.
    Standalone,
    /// Orders the writes.
    Leader,
    /// Votes and follows the leader.
    Follower,
    /// Follows the leader without a vote.
    Observer,
    /// Serves reads without a quorum.
    ReadOnly,
}

impl Mode {
    /// The name that `srvr` and `mntr` print.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Standalone => "standalone",
            Mode::Leader => "leader",
            Mode::Follower => "follower",
            Mode::Observer => "observer",
            Mode::ReadOnly => "read-only",
        }
    }
}

/// What passed through the sockets since the start or the last `srst`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traffic {
    /// Packets received; a four-letter word counts as one.
    pub received: u64,
    /// Packets sent.
    pub sent: u64,
    /// Shortest time from a request's arrival to its reply, in ms; 0 before the first.
    pub latency_min_ms: u64,
    /// Mean of those times, in ms.
    pub latency_avg_ms: f64,
    /// Longest of those times, in ms.
    pub latency_max_ms: u64,
    /// Requests that have arrived and are not answered.
    pub outstanding: u64,
    /// Open sockets, those without a session and the asking one included.
    pub connections: u64,
}

/// The size of the replicated state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The last applied zxid.
    pub zxid: i64,
    /// Znodes, the root counted once; the words add the second count of the root that ZooKeeper's figure has.
    pub znodes: u64,
    /// Ephemeral znodes.
    pub ephemerals: u64,
    /// Bytes of all paths and all data.
    pub data_bytes: u64,
    /// Sessions of the cluster.
    pub sessions: u64,
    /// Sessions that only this member knows.
    pub local_sessions: u64,
    /// Watches of clients of this member, child watches included.
    pub watches: u64,
}

/// Figures of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Open file descriptors; -1 if not known.
    pub open_files: i64,
    /// The limit of open file descriptors; -1 if not known.
    pub max_files: i64,
    /// Time since the member took up its present part, in ms.
    pub uptime_ms: u64,
}

/// One connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionView {
    /// The client's address.
    pub peer: SocketAddr,
    /// Whether it came in by the port for TLS alone.
    pub secure: bool,
    /// Requests of this connection that are not answered.
    pub queued: u64,
    /// Packets received on it.
    pub received: u64,
    /// Packets sent on it.
    pub sent: u64,
    /// Wall time at which it is closed unless its client is heard, in ms since 1970.
    pub expires_ms: i64,
    /// Its session, once there is one.
    pub session: Option<SessionView>,
}

/// The session side of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionView {
    /// The session's id.
    pub id: i64,
    /// ZooKeeper's short name of the last operation; `NA` before the first.
    pub last_operation: &'static str,
    /// Wall time at which the connection was opened, in ms since 1970.
    pub established_ms: i64,
    /// The negotiated timeout, in ms.
    pub timeout_ms: i32,
    /// xid of the last request; negative if there was none.
    pub last_cxid: i64,
    /// zxid of the last reply; -1 if there was none.
    pub last_zxid: i64,
    /// Monotonic time of the last reply, in ms; 0 if there was none.
    pub last_response_ms: u64,
    /// Latency of the last reply, in ms.
    pub last_latency_ms: u64,
    /// Shortest latency, in ms.
    pub min_latency_ms: u64,
    /// Mean latency, in whole ms.
    pub avg_latency_ms: u64,
    /// Longest latency, in ms.
    pub max_latency_ms: u64,
}

/// The settings that `conf` shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Port for clients; -1 if there is none.
    pub client_port: i32,
    /// Port for clients over TLS; -1 if there is none.
    pub secure_client_port: i32,
    /// Where the data lies.
    pub data_dir: String,
    /// Where the log lies.
    pub data_log_dir: String,
    /// Length of a tick, in ms.
    pub tick_time_ms: u32,
    /// Connections allowed from one address; 0 for no bound.
    pub max_client_cnxns: u32,
    /// Shortest session timeout granted, in ms.
    pub min_session_timeout_ms: u32,
    /// Longest session timeout granted, in ms.
    pub max_session_timeout_ms: u32,
    /// Length of the accept queue; -1 for the system's.
    pub client_port_listen_backlog: i32,
    /// The member's id; 0 in a cluster of one.
    pub server_id: u64,
}

/// Bytes of all files under the two directories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectorySizes {
    /// Under the data directory.
    pub data_bytes: u64,
    /// Under the log directory; the same as the data directory's if it is the same.
    pub log_bytes: u64,
}

/// When a session ends by silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionExpiry {
    /// The session's id.
    pub id: i64,
    /// Wall time of the expiry, in ms since 1970.
    pub at_ms: i64,
}

/// What a leader counts. Members are counted as it sees them, itself left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leading {
    /// Members that answer.
    pub learners: u64,
    /// Voters that answer and have caught up.
    pub synced_followers: u64,
    /// Members that are to vote and answer, but do not vote yet.
    pub synced_non_voting_followers: u64,
    /// Observers that answer and have caught up.
    pub synced_observers: u64,
    /// Requests to `sync` that wait.
    pub pending_syncs: u64,
    /// Time since it began to lead, in ms.
    pub uptime_ms: u64,
    /// Sizes of what it proposed, in bytes; `None` before the first.
    pub proposals: Option<ProposalSizes>,
}

/// Sizes of proposals, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProposalSizes {
    /// The last one.
    pub last: u64,
    /// The smallest one.
    pub min: u64,
    /// The greatest one.
    pub max: u64,
}

/// A member's place in its ensemble.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ensemble {
    /// The leader, if there is one.
    pub leader: Option<u64>,
    /// How many members vote.
    pub quorum_size: u64,
    /// `initLimit`, in ticks.
    pub init_limit: u32,
    /// `syncLimit`, in ticks.
    pub sync_limit: u32,
    /// Election ports of this member.
    pub election_ports: Vec<u16>,
    /// Quorum ports of this member.
    pub quorum_ports: Vec<u16>,
    /// Whether it does not vote.
    pub observer: bool,
    /// The configuration in force, as `/zookeeper/config` holds it.
    pub membership: String,
}

/// How many watches there are. Child watches are left out, as in ZooKeeper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WatchSummary {
    /// Connections that watch.
    pub connections: u64,
    /// Paths that are watched.
    pub paths: u64,
    /// Pairs of connection and path.
    pub total: u64,
}
