//! Bounds of a member, each with its unit and what happens there.

/// Milliseconds between two ticks of raft and of the session deadlines.
pub const TICK_MS: u64 = 50;

/// Bytes of commands in one log entry, or in one frame to the leader. More commands go into the next one; a
/// single command that is larger goes alone (its size is bounded by the frame it came in).
pub const ENTRY_BYTES: usize = 512 << 10;

/// Bytes of commands that a member has on their way through the leader. More wait in the queue.
pub const FORWARD_WINDOW: usize = 8 << 20;

/// Milliseconds without a tick after which the member was itself paused (stopped, swapped out, a virtual
/// machine moved) and heard nobody: every session gets that time on top. A few ticks: well below the
/// shortest session timeout, so that no pause can use one up.
pub const PAUSE_MS: u64 = 250;

/// Milliseconds without an entry applied although some wait, after which the log stands still: clients cannot
/// reach their sessions then, and every session gets that time on top.
pub const STALL_MS: u64 = 300;

/// Milliseconds without a batch coming back from the disk although some are on their way, after which the
/// disk counts as hanging: other voters do better then. Several times what a busy disk takes for a sync, and
/// still less than the two thirds of 4 s after which a client with the shortest usual session timeout leaves a
/// server that does not answer.
pub const DISK_HANG_MS: u64 = 2500;

/// Ticks between two attempts of a leader whose disk hangs to hand its office over: nothing is proposed during
/// one, and it is given up after an election timeout.
pub const HAND_OVER_TICKS: u64 = 20;

/// Milliseconds after which a silent session that the member itself holds up is looked at again: its
/// connection waits for the log and may be left unread meanwhile. Long enough for it to be read when the
/// log has caught up.
pub const HELD_UP_MS: u64 = 500;

/// Milliseconds without a leader after which a member stops to serve. About two elections: brief ones
/// are not noticed by clients that have nothing in flight.
pub const LEADERLESS_MS: u64 = 2000;

/// Milliseconds without a sign of life from the leader after which a member that starts no elections takes
/// it for gone; voters find out by their election timeout.
pub const LEADER_SILENT_MS: u64 = 1500;

/// Milliseconds within which a member must have been heard to count as live: for the quorum that expiry
/// needs, for promotions, removals and handing over.
pub const LIVE_MS: u64 = 1500;

/// Milliseconds without a report of a member's sessions after which the report is late: those sessions are
/// not ended meanwhile.
pub const REPORT_LATE_MS: u64 = 500;

/// Milliseconds without a report after which a member's sessions are on their own: it has no leader then,
/// and has closed its clients' connections.
pub const REPORT_LOST_MS: u64 = 3000;

/// Ticks after which a report of sessions that nobody acknowledged is sent again, and between two reports
/// when there is nothing to tell.
pub const REPORT_TICKS: u64 = 4;

/// Sessions in one report; more go into the next one.
pub const REPORT_SESSIONS: usize = 32 << 10;

/// Ticks after which a read index that was not answered is asked for again.
pub const BARRIER_RETRY_TICKS: u64 = 4;

/// Read indices that are asked for at a time. More barriers wait, and share the next one.
pub const BARRIERS_ASKED: usize = 16;

/// Ticks between two frames that tell the others where this member stands.
pub const STATUS_TICKS: u64 = 10;

/// Ticks between two looks at whether the membership is what the configuration says.
pub const RECONCILE_TICKS: u64 = 2;

/// Ticks that a reconfiguration waits for an earlier one to be in force; then it is refused.
pub const RECONFIG_PATIENCE_TICKS: u64 = 100;

/// Ticks after a change of the configuration within which its new voters are expected although they were not heard
/// yet: the next reconfiguration waits for them, so that nobody leaves whose vote they are to replace.
pub const ARRIVAL_TICKS: u64 = 40;

/// Entries that a learner may lack of what the leader has, and still becomes a voter.
pub const CAUGHT_UP_ENTRIES: u64 = 64;

/// Ticks without a sign that a member fetches its snapshot after which it is offered again.
pub const SNAPSHOT_STALL_TICKS: u64 = 60;

/// Ticks before the leader hears that a snapshot could not be fetched, and offers one again: what is in the way
/// (no space, a damaged file) seldom goes away at once.
pub const FETCH_RETRY_TICKS: u64 = 20;

/// Ticks after which an image that was asked of the host and did not come is asked for again.
pub const IMAGE_RETRY_TICKS: u64 = 40;

/// Ticks after the end of the leader's process before the next voter in line starts an election; see
/// [`ELECTION_SPACING_TICKS`].
pub const ELECTION_DELAY_TICKS: u64 = 1;

/// Ticks between the elections that different voters start then, so that their votes do not split.
pub const ELECTION_SPACING_TICKS: u64 = 2;

/// Elections that a voter starts in a row before it falls back to its election timeout.
pub const ELECTION_ATTEMPTS: u32 = 3;

/// Bytes of log in memory that are kept beyond the retained ones for a live member that lags or installs a
/// snapshot. At the bound the log is cut, and that member needs another snapshot.
pub const HELD_LOG_BYTES: u64 = 256 << 20;

/// Digests of applied entries that are remembered for comparison: of the newest entries one each, of older
/// ones every [`SAMPLE_SPACING`]th.
pub const SAMPLES: usize = 512;

/// Every entry with such an index is compared by all members, however far they are apart.
pub const SAMPLE_SPACING: u64 = 256;

/// Ticks after which a difference that no majority decides is decided by the leader.
pub const DISPUTE_TICKS: u64 = 40;
