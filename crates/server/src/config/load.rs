//! Settings of who is hammering the server.

use super::ConfigError;
use super::resolve::{GREATEST_NUMBER, Reader};

/// What is watched for, and what is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadSettings {
    /// Components of a path that requests are added up by. `quenda.load.prefixDepth`, or `pathStats.maxDepth`.
    pub prefix_depth: usize,
    /// Rows of each table in the report. `pathStats.topPathMax`.
    pub rows: usize,
    /// Latency above which a request is logged, ms; 0 for never. `quenda.load.slowRequestMs`.
    pub slow_request_ms: u64,
    /// Watchers woken by one change above which that is a herd; 0 for never. `quenda.load.herdWatchers`.
    pub herd_watchers: u64,
    /// Bytes of a write above which it is misuse; 0 for never. `quenda.load.largeWriteBytes`.
    pub large_write_bytes: usize,
    /// Writes of one znode in a second above which that is misuse; 0 for never. `quenda.load.hotWritesPerSecond`.
    pub hot_writes_per_second: u64,
    /// Children of one znode above which that is misuse; 0 for never. `quenda.load.manyChildren`.
    pub many_children: u64,
    /// Sequential creates below one znode in a second above which that is misuse; 0 for never.
    /// `quenda.load.sequentialCreatesPerSecond`.
    pub sequential_creates_per_second: u64,
}

/// Deepest prefix.
const DEPTH_MAX: i64 = 32;
/// Most rows of a table.
const ROWS_MAX: i64 = 200;

pub(super) fn resolve(reader: &mut Reader<'_>) -> Result<LoadSettings, ConfigError> {
    let own_depth = reader.settings.get("quenda.load.prefixDepth").is_some();
    let zookeeper_depth = reader.settings.get("pathStats.maxDepth").is_some();
    let depth = match zookeeper_depth && !own_depth {
        true => "pathStats.maxDepth",
        false => "quenda.load.prefixDepth",
    };
    Ok(LoadSettings {
        prefix_depth: reader.loose(depth, 1, DEPTH_MAX)?,
        rows: reader.loose("pathStats.topPathMax", 1, ROWS_MAX)?,
        slow_request_ms: reader.loose("quenda.load.slowRequestMs", 0, GREATEST_NUMBER)?,
        herd_watchers: reader.loose("quenda.load.herdWatchers", 0, GREATEST_NUMBER)?,
        large_write_bytes: reader.loose("quenda.load.largeWriteBytes", 0, GREATEST_NUMBER)?,
        hot_writes_per_second: reader.loose(
            "quenda.load.hotWritesPerSecond",
            0,
            GREATEST_NUMBER,
        )?,
        many_children: reader.loose("quenda.load.manyChildren", 0, GREATEST_NUMBER)?,
        sequential_creates_per_second: reader.loose(
            "quenda.load.sequentialCreatesPerSecond",
            0,
            GREATEST_NUMBER,
        )?,
    })
}
