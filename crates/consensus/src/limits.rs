//! Bounds of the replicated log in memory and on the wire.

/// Bytes of entries in one append message. A larger single entry goes alone.
pub const MAX_MESSAGE_BYTES: u64 = 1 << 20;

/// Append messages that may be on their way to one follower. At the bound the leader waits for an
/// answer of that follower.
pub const MAX_INFLIGHT_MESSAGES: usize = 256;

/// Bytes of proposals that are not committed yet. At the bound proposals are refused with
/// [`crate::ProposeError::Full`]; one proposal is always admitted when nothing is uncommitted.
pub const MAX_UNCOMMITTED_BYTES: u64 = 64 << 20;

/// Bytes of committed entries in one [`crate::Ready`]; the rest comes with the next one.
pub const MAX_COMMITTED_BYTES: u64 = 16 << 20;

/// Bytes of entries that stay in the log below the newest durable checkpoint, so that a follower that
/// was away briefly needs no snapshot.
pub const RETAINED_LOG_BYTES: u64 = 16 << 20;
