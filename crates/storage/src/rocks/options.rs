//! How RocksDB is set up, and why.

use std::path::Path;

use quenda_tree::Table;
use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamilyDescriptor, DBCompressionType, DBRecoveryMode, LogLevel,
    Options, ReadOptions, WriteOptions,
};

use crate::limits;
use crate::space::Space;

/// Log entries by index.
pub(super) const LOG: &str = "log";
/// Raft's own state and the facts about the store.
pub(super) const RAFT_META: &str = "raft_meta";

pub(super) fn table_name(table: Table) -> &'static str {
    match table {
        Table::Nodes => "nodes",
        Table::Sessions => "sessions",
        Table::Acls => "acls",
        Table::Meta => "meta",
    }
}

/// Memtables and write-ahead log, scaled down so that a small disk has room for both and for a flush.
#[derive(Clone, Copy)]
pub(super) struct Buffers {
    memtables: usize,
    log: usize,
    nodes: usize,
    small: usize,
    wal: u64,
}

impl Buffers {
    pub(super) fn for_disk(space: Space) -> Buffers {
        let bound = space.total_bytes / limits::DISK_FRACTION_OF_BUFFERS;
        let scaled = |bytes: u64| bytes.min(bound).max(limits::LEAST_BUFFER_BYTES);
        Buffers {
            memtables: scaled(limits::MEMTABLE_BYTES) as usize,
            log: scaled(limits::LOG_MEMTABLE_BYTES) as usize,
            nodes: scaled(limits::NODES_MEMTABLE_BYTES) as usize,
            small: scaled(limits::SMALL_MEMTABLE_BYTES) as usize,
            wal: scaled(limits::WAL_BYTES),
        }
    }
}

pub(super) fn database(log_directory: Option<&Path>, buffers: Buffers) -> Options {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    // Before a log is opened, what does not count is cut off it: see the module `log_end`. Stricter modes exclude
    // the next one.
    options.set_wal_recovery_mode(DBRecoveryMode::PointInTime);
    // A sync of blocks that are there already needs nothing of the file system's journal.
    options.set_recycle_log_file_num(limits::REUSED_LOG_FILES);
    // A log file that vanishes or shrinks after it was synced is damage, not an empty log.
    options.set_track_and_verify_wals_in_manifest(true);
    if let Some(directory) = log_directory {
        options.set_wal_dir(directory);
    }
    // An append must not wait while a checkpoint fills memtables. What this gives up (one view over
    // several writes for readers) is not used: rows are read while nothing is written, or from a view that
    // was taken while no checkpoint was.
    options.set_unordered_write(true);
    options.set_db_write_buffer_size(buffers.memtables);
    options.set_max_total_wal_size(buffers.wal);
    options.set_max_background_jobs(2);
    options.set_max_open_files(-1);
    options.set_skip_stats_update_on_db_open(true);
    options.set_stats_dump_period_sec(0);
    options.set_stats_persist_period_sec(0);
    options.set_log_level(LogLevel::Warn);
    options.set_keep_log_file_num(2);
    options.set_max_log_file_size(1 << 20);
    options
}

/// For the short life of an image that is being made: what its manifest knows of write-ahead logs is
/// forgotten, because they are not part of it.
pub(super) fn image(buffers: Buffers) -> Options {
    let mut options = database(None, buffers);
    // It is written without a log.
    options.set_recycle_log_file_num(0);
    options.create_if_missing(false);
    options.create_missing_column_families(false);
    options.set_track_and_verify_wals_in_manifest(false);
    // Tables are opened when they are needed, which is hardly ever.
    options.set_max_open_files(16);
    options
}

/// Every column family that is in use.
pub(super) fn family_names() -> impl Iterator<Item = &'static str> {
    let tables = Table::ALL.into_iter().map(table_name);
    tables.chain([LOG, RAFT_META])
}

/// The column families of a member's database.
pub(super) fn column_families(buffers: Buffers) -> Vec<ColumnFamilyDescriptor> {
    let cache = Cache::new_lru_cache(limits::BLOCK_CACHE_BYTES);
    describe(|name| family(&cache, buffers, name))
}

/// The same for an image that is being made: its files stay those that its manifest names.
pub(super) fn image_families(buffers: Buffers) -> Vec<ColumnFamilyDescriptor> {
    describe(|name| image_family(buffers, name))
}

/// One family of an image that is being made.
pub(super) fn image_family(buffers: Buffers, name: &str) -> Options {
    let mut options = family(&Cache::new_lru_cache(0), buffers, name);
    options.set_disable_auto_compactions(true);
    options
}

fn describe(options: impl Fn(&str) -> Options) -> Vec<ColumnFamilyDescriptor> {
    family_names()
        .map(|name| ColumnFamilyDescriptor::new(name, options(name)))
        .collect()
}

fn family(cache: &Cache, buffers: Buffers, name: &str) -> Options {
    match name {
        LOG => log_family(cache, buffers.log),
        RAFT_META => column_family(cache, buffers.small),
        _ => {
            let is_nodes = name == table_name(Table::Nodes);
            let size = if is_nodes {
                buffers.nodes
            } else {
                buffers.small
            };
            let mut options = column_family(cache, size);
            options.set_compression_type(DBCompressionType::Lz4);
            options
        }
    }
}

fn column_family(cache: &Cache, memtable: usize) -> Options {
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(cache);
    blocks.set_block_size(16 << 10);
    blocks.set_format_version(6);
    let mut options = Options::default();
    options.set_block_based_table_factory(&blocks);
    options.set_compression_type(DBCompressionType::None);
    options.set_write_buffer_size(memtable);
    options.set_max_write_buffer_number(4);
    // Compaction may fall behind for a while; that costs space, never an append.
    options.set_level_zero_slowdown_writes_trigger(64);
    options.set_level_zero_stop_writes_trigger(256);
    options.set_soft_pending_compaction_bytes_limit(0);
    options.set_hard_pending_compaction_bytes_limit(0);
    options
}

/// The log is cut from its start: small files can be dropped whole, without compaction.
fn log_family(cache: &Cache, memtable: usize) -> Options {
    let mut options = column_family(cache, memtable);
    options.set_target_file_size_base(8 << 20);
    options
}

pub(super) fn synced() -> WriteOptions {
    let mut options = WriteOptions::default();
    options.set_sync(true);
    options
}

/// For single rows and short ranges, many of them.
pub(super) fn seek() -> ReadOptions {
    let mut options = ReadOptions::default();
    options.set_verify_checksums(true);
    options
}

/// Reads everything once, in order: far ahead, and without pushing anything out of the cache.
pub(super) fn scan() -> ReadOptions {
    let mut options = ReadOptions::default();
    options.fill_cache(false);
    options.set_readahead_size(limits::LOAD_READAHEAD_BYTES);
    options.set_verify_checksums(true);
    options
}
