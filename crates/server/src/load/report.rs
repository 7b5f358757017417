//! Who loads the server, as one value: the answer to the four-letter word `qtop`, in JSON.

use serde::{Deserialize, Serialize};

/// The last minute of one member. Each member counts the requests of its own clients.
///
/// Tables begin with the heaviest. They are exact while no more than [`table_max`](Self::table_max) keys appear in five
/// seconds; beyond that a row says by how much it may be too low.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadReport {
    /// The member.
    pub member: u64,
    /// When the report was made, ms since 1970.
    pub time_ms: i64,
    /// How much of the past it tells of, ms.
    pub window_ms: u64,
    /// Requests of all clients.
    pub totals: LoadTotals,
    /// Of so many requests one was looked at for paths: `1/1` for each. What is told by path is multiplied with it.
    pub sampled: String,
    /// Bounds of the classes of latency, ms, inclusive.
    pub latency_bounds_ms: Vec<u32>,
    /// Most keys that a table tells apart in five seconds.
    pub table_max: u64,
    /// By address.
    pub clients: Vec<LoadRow>,
    /// By session.
    pub sessions: Vec<SessionRow>,
    /// By the first components of the path.
    pub prefixes: Vec<LoadRow>,
    /// By operation, all of them.
    pub operations: Vec<LoadRow>,
    /// Single znodes.
    pub hot: Hot,
    /// What does not belong into a coordination service, newest first.
    pub misuse: Vec<Misuse>,
    /// Changes that woke many watchers, newest first.
    pub herds: Vec<Herd>,
    /// Requests that took long, newest first.
    pub slow: Vec<NamedRequest>,
    /// Counted since the start.
    pub counts: Counts,
    /// Above what something is told; 0 for never.
    pub thresholds: Thresholds,
}

/// Sums over requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Requests answered, failed ones too.
    pub requests: u64,
    /// Bytes of them.
    pub bytes_in: u64,
    /// Bytes of the replies, and for clients and sessions of events.
    pub bytes_out: u64,
    /// Mean latency, ms, from being read to being answered.
    pub latency_mean_ms: f64,
    /// The longest, ms.
    pub latency_max_ms: u64,
    /// Requests by latency: one number for each of [`LoadReport::latency_bounds_ms`], then those that took longer.
    pub latency: Vec<u64>,
}

/// Everything that the clients of the member do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadTotals {
    /// The sums.
    #[serde(flatten)]
    pub load: Load,
    /// Events of watches that were sent.
    pub events: u64,
    /// Bytes of them.
    pub event_bytes: u64,
    /// Requests that wait for their answer now.
    pub outstanding: u64,
    /// Clients connected now.
    pub connections: u64,
}

/// One row of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadRow {
    /// An address, the beginning of a path, or an operation.
    pub name: String,
    /// The sums.
    #[serde(flatten)]
    pub load: Load,
    /// At most so many requests more (4 KiB count as one) may have been missed.
    pub missed_at_most: u64,
}

/// One session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionRow {
    /// Its id, in hexadecimal with `0x`.
    pub session: String,
    /// Where its client is, address and port.
    pub client: String,
    /// The sums.
    #[serde(flatten)]
    pub load: Load,
    /// As in [`LoadRow`].
    pub missed_at_most: u64,
}

/// Znodes that are used most.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hot {
    /// Read most.
    pub read: Vec<HotRow>,
    /// Written most: created, deleted, or set, alone or in a multi.
    pub written: Vec<HotRow>,
    /// Watched by most connections of this member now.
    pub watched: Vec<WatchHot>,
}

/// One znode that is used much.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HotRow {
    /// Its path.
    pub path: String,
    /// How often.
    pub requests: u64,
    /// Bytes that went or came; none is told for parts of multis.
    pub bytes: u64,
    /// Who did it last: the session.
    pub session: Option<String>,
    /// And its client.
    pub client: Option<String>,
    /// As in [`LoadRow`].
    pub missed_at_most: u64,
}

/// One znode that is watched much.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchHot {
    /// Its path.
    pub path: String,
    /// Connections that watch it.
    pub watchers: u64,
}

/// What is done that a coordination service is not for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misuse {
    /// What.
    pub kind: MisuseKind,
    /// Where.
    pub path: String,
    /// How much, in the unit of the threshold: the most that was seen.
    pub value: u64,
    /// The threshold.
    pub limit: u64,
    /// Who did it last: the session.
    pub session: Option<String>,
    /// And its client.
    pub client: Option<String>,
    /// When it was seen last, ms ago.
    pub ms_ago: u64,
}

/// Kinds of misuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MisuseKind {
    /// A write of many bytes.
    LargeWrite,
    /// One znode that is written very often.
    HotWrites,
    /// One znode with very many children.
    ManyChildren,
    /// Very many sequential creates below one znode.
    SequentialCreates,
}

impl MisuseKind {
    /// All of them.
    pub const ALL: [MisuseKind; 4] = [
        MisuseKind::LargeWrite,
        MisuseKind::HotWrites,
        MisuseKind::ManyChildren,
        MisuseKind::SequentialCreates,
    ];

    /// The name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            MisuseKind::LargeWrite => "large-write",
            MisuseKind::HotWrites => "hot-writes",
            MisuseKind::ManyChildren => "many-children",
            MisuseKind::SequentialCreates => "sequential-creates",
        }
    }
}

/// A change that woke many watchers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Herd {
    /// The znode that changed.
    pub path: String,
    /// Watchers that were told.
    pub watchers: u64,
    /// When, ms ago.
    pub ms_ago: u64,
}

/// A request that took long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedRequest {
    /// The operation.
    pub operation: String,
    /// The path; that of the first operation of a multi; empty if there is none.
    pub path: String,
    /// The session.
    pub session: Option<String>,
    /// The client.
    pub client: String,
    /// How long it waited before its write was taken up, or its read was served, ms.
    pub queue_ms: u64,
    /// How long it took from there to be committed and applied, ms; 0 for a read.
    pub commit_ms: u64,
    /// From being read to being answered, ms.
    pub total_ms: u64,
    /// When it was answered, ms ago.
    pub ms_ago: u64,
}

/// What was counted since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Requests that took long.
    pub slow_requests: u64,
    /// Changes that woke many watchers.
    pub herds: u64,
    /// Writes of many bytes.
    pub large_writes: u64,
    /// How often, looked at every five seconds, a znode was written very often.
    pub hot_writes: u64,
    /// How often, looked at so, a znode got children that had very many already.
    pub many_children: u64,
    /// How often, looked at so, there were very many sequential creates below a znode.
    pub sequential_creates: u64,
}

/// Above what something is told; 0 for never.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thresholds {
    /// Latency, ms.
    pub slow_request_ms: u64,
    /// Watchers woken by one change.
    pub herd_watchers: u64,
    /// Bytes of one write.
    pub large_write_bytes: u64,
    /// Writes of one znode in a second.
    pub hot_writes_per_second: u64,
    /// Children of one znode.
    pub many_children: u64,
    /// Sequential creates below one znode in a second.
    pub sequential_creates_per_second: u64,
}

impl LoadReport {
    /// One line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("names and numbers always have a form in JSON")
    }
}
