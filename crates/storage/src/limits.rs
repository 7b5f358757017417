//! Bounds of disk space and of RocksDB's memory.

/// Growth is refused (reads, deletes and session upkeep go on) when the file system has less than this
/// left. It covers what is already accepted: memtables to flush, the write-ahead log, a compaction.
pub const GROWTH_RESERVE_BYTES: u64 = 128 << 20;

/// On a small file system the reserve is this part of it instead.
pub const GROWTH_RESERVE_FRACTION: u64 = 4;

/// Memtables of all column families together; a flush starts at the bound. Smaller on a small disk.
pub const MEMTABLE_BYTES: u64 = 40 << 20;

/// Memtable of the log; a flush starts at the bound. Larger than what the log grows to between two
/// checkpoints, so that most entries are cut off before they would be flushed.
pub const LOG_MEMTABLE_BYTES: u64 = 24 << 20;

/// Memtable of the znodes; a flush starts at the bound.
pub const NODES_MEMTABLE_BYTES: u64 = 16 << 20;

/// Memtable of each other column family.
pub const SMALL_MEMTABLE_BYTES: u64 = 2 << 20;

/// The write-ahead log; beyond it the oldest memtables are flushed. Smaller on a small disk.
pub const WAL_BYTES: u64 = 96 << 20;

/// Files of the write-ahead log that are kept to be overwritten when they are of no use any more.
pub const REUSED_LOG_FILES: usize = 2;

/// Memtables and write-ahead log are scaled down to this part of the disk.
pub const DISK_FRACTION_OF_BUFFERS: u64 = 32;

/// The least that memtables and write-ahead log are scaled down to.
pub const LEAST_BUFFER_BYTES: u64 = 2 << 20;

/// Blocks of table files kept in memory. The tree is served from memory; this cache only helps
/// compactions.
pub const BLOCK_CACHE_BYTES: usize = 8 << 20;

/// Bytes read ahead when the tree is loaded.
pub const LOAD_READAHEAD_BYTES: usize = 4 << 20;

/// The largest piece of an image that is read or asked for at once.
pub const IMAGE_CHUNK_BYTES: usize = 1 << 20;

/// The list of an image's files. It travels inside a message of raft. An image with more files than it can
/// name is not made.
pub const IMAGE_MANIFEST_BYTES: usize = 64 << 10;

/// A received image is brought to the disk whenever so much of it has come, so that the syncs of the log
/// beside it never wait for much.
pub const IMAGE_SYNC_BYTES: usize = 2 << 20;
