//! Bounds of the server, each with its unit and what happens there.

use std::time::Duration;

/// Bytes read from one socket before its frames are served. More waits in the kernel.
pub const READ_BYTES: usize = 64 << 10;

/// Bytes of commands in front of the core thread. Above it, connections with writes are not read until
/// the core has caught up.
pub const INBOX_BYTES: usize = 32 << 20;

/// Open files that are kept for the store, where the system's limit allows twice as many: connections
/// beyond the rest are refused, or the log could not go on.
pub const STORE_FILES: u64 = 1024;

/// How long a connection that is to be closed may take to accept its last output.
pub const CLOSE_PATIENCE: Duration = Duration::from_secs(2);

/// How long a four-letter word's answer may take to be accepted.
pub const WORD_PATIENCE: Duration = Duration::from_secs(10);

/// Listings of the four-letter words (`cons`, `dump`, …) that are made or sent at one time: each may be
/// many megabytes. More wait their turn, [`WORD_PATIENCE`] at most; then they are closed unanswered.
pub const LISTINGS_MAX: usize = 2;

/// How often a checkpoint is taken at least, when anything has changed.
pub const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(5);

/// Bytes of changed rows that bring a checkpoint about before its time. Bounds the memory of one
/// checkpoint, the time the tree is locked to collect it, and what an append may wait behind.
pub const CHECKPOINT_BYTES: usize = 4 << 20;

/// Bytes of log in memory that bring a checkpoint about before its time, however few znodes they
/// changed, on top of what is kept for members that lag
/// ([`quenda_consensus::limits::RETAINED_LOG_BYTES`]). Bounds that memory and what a restart replays.
pub const CHECKPOINT_LOG_BYTES: u64 = 12 << 20;

/// How often the free space of the disk is looked at.
pub const DISK_INTERVAL: Duration = Duration::from_millis(200);

/// How long the log writer waits before it tries a failed store again.
pub const STORE_RETRY: Duration = Duration::from_millis(500);

/// How long a question to the core thread may wait for its answer.
pub const ASK_PATIENCE: Duration = Duration::from_millis(500);

/// How long a stop waits for what was already accepted to become durable.
pub const STOP_PATIENCE: Duration = Duration::from_secs(10);

/// How often at most a line is logged about what clients can bring about as often as they like.
pub const CALM_INTERVAL: Duration = Duration::from_secs(1);

/// Bytes of output, over all connections, that clients have not taken. Above it, connections with more than
/// [`OUTPUT_SHARE`] of it are closed when more is added: their clients do not read. (One connection alone is
/// closed at the frontend's `output_max`.)
pub const OUTPUT_TOTAL_MAX: usize = 512 << 20;

/// Bytes of waiting output that any connection may have, whatever the sum is.
pub const OUTPUT_SHARE: usize = 1 << 20;
