//! Bounds of a member, each with its unit and what happens there.

/// Milliseconds between two ticks of raft and of the session deadlines.
pub const TICK_MS: u64 = 100;

/// Bytes of commands in one log entry. More commands go into the next entry; a single command that is
/// larger gets an entry of its own (its size is bounded by the frame it came in).
pub const ENTRY_BYTES: usize = 512 << 10;

/// Milliseconds without a tick after which the member was itself paused (stopped, swapped out, a virtual
/// machine moved) and heard nobody: every session gets that time on top.
pub const PAUSE_MS: u64 = 2_000;
