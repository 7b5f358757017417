//! Bounds of a member, each with its unit and what happens there.

/// Milliseconds between two ticks of raft and of the session deadlines.
pub const TICK_MS: u64 = 100;

/// Bytes of commands in one log entry. More commands go into the next entry; a single command that is
/// larger gets an entry of its own (its size is bounded by the frame it came in).
pub const ENTRY_BYTES: usize = 512 << 10;

/// Milliseconds without a tick after which the member was itself paused (stopped, swapped out, a virtual
/// machine moved) and heard nobody: every session gets that time on top. A few ticks: well below the
/// shortest session timeout, so that no pause can use one up.
pub const PAUSE_MS: u64 = 3 * TICK_MS;

/// Milliseconds after which a silent session that the member itself holds up is looked at again: its
/// connection waits for the log and may be left unread meanwhile. Long enough for it to be read when the
/// log has caught up.
pub const HELD_UP_MS: u64 = 500;
