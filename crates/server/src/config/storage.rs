//! How the store treats the disk, and what an empty one may do.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::remark::{ConfigError, Remark};
use super::resolve::Reader;
use crate::limits::{CHECKPOINT_LOG_BYTES, FLUSH_DELAY_MAX_MS};

/// ZooKeeper's marker of a member that may begin with nothing, for `db.autocreate=false`.
const MARKER: &str = "initialize";

/// Settings of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageSettings {
    /// Whether writes are on the disk before they are acknowledged. `forceSync`.
    pub force_sync: bool,
    /// Transactions after which a checkpoint is due, beside the server's own reasons. `snapCount`, if it is set.
    pub snap_count: Option<u32>,
    /// Bytes of log after which a checkpoint is due, if that is less than the server's own. `snapSizeLimitInKb`.
    pub snap_log_bytes: u64,
    /// Whether a member with an empty store may found an ensemble, and need not wait for one to join. `db.autocreate`.
    pub may_found: bool,
    /// A write of the log with its sync that takes longer is counted and warned of. `fsync.warningthresholdms`.
    pub slow_sync: Duration,
    /// What shares one sync of the log.
    pub gathering: Gathering,
    /// Markers that go once the store is made: they stand for one time.
    pub markers: Vec<PathBuf>,
}

/// How writes gather for one sync of the log. By itself the log takes what waits as soon as it can: more shares a sync the
/// longer it takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gathering {
    /// A sync is put off until this long after the one before; zero to put off none. `flushDelay`.
    pub delay: Duration,
    /// But not when nothing has come for so long. `maxWriteQueuePollTime`.
    pub idle: Duration,
    /// Nor when so many transactions wait; more go into the next sync. `maxBatchSize`.
    pub txns_max: Option<usize>,
}

impl Gathering {
    /// Whether a sync may be put off.
    pub fn delays(&self) -> bool {
        !self.delay.is_zero()
    }

    /// Whether it has to be known how much waits, and since when.
    pub fn counts(&self) -> bool {
        self.delays() || self.txns_max.is_some()
    }
}

/// Reads the settings, and looks for the marker.
///
/// # Errors
/// A number that is none.
pub(super) fn resolve(
    reader: &mut Reader<'_>,
    directories: [Option<&Path>; 2],
) -> Result<StorageSettings, ConfigError> {
    let force_sync = reader.settings.get_or_default("forceSync") != "no";
    if !force_sync {
        reader.remarks.push(Remark::warn(
            "forceSync=no: what was acknowledged is not on the disk yet. When the machine itself fails (a crash of the server \
             does no harm) the last writes may be lost, and the member's data directory may have to be emptied",
        ));
    }
    let is_set = reader.settings.get("snapCount").is_some();
    let snap_count = is_set
        .then(|| reader.loose("snapCount", 2, i64::from(i32::MAX)))
        .transpose()?;
    // ZooKeeper looks beside its log, and its own helper writes it beside the data.
    let places = directories
        .into_iter()
        .flatten()
        .map(|place| place.join(MARKER));
    let markers: Vec<PathBuf> = places.filter(|marker| marker.exists()).collect();
    Ok(StorageSettings {
        force_sync,
        snap_count,
        snap_log_bytes: snap_log_bytes(reader)?,
        slow_sync: Duration::from_millis(reader.loose(
            "fsync.warningthresholdms",
            0,
            i64::from(i32::MAX),
        )?),
        gathering: gathering(reader)?,
        may_found: reader.is_true("db.autocreate") || !markers.is_empty(),
        markers,
    })
}

fn gathering(reader: &mut Reader<'_>) -> Result<Gathering, ConfigError> {
    const TXNS: &str = "maxBatchSize";
    let delay: u64 = reader.loose("flushDelay", 0, FLUSH_DELAY_MAX_MS)?;
    let idle = reader.loose_or("maxWriteQueuePollTime", 0..=i64::from(i32::MAX), delay / 3);
    // A bound that nobody asked for would only cost syncs; what waits is bounded by bytes.
    let is_bounded = delay > 0 || reader.settings.get(TXNS).is_some();
    let txns: usize = reader.loose(TXNS, 0, i64::from(i32::MAX))?;
    Ok(Gathering {
        delay: Duration::from_millis(delay),
        idle: Duration::from_millis(idle),
        txns_max: (is_bounded && txns > 0).then_some(txns),
    })
}

fn snap_log_bytes(reader: &mut Reader<'_>) -> Result<u64, ConfigError> {
    let kib: i64 = reader.loose("snapSizeLimitInKb", i64::MIN, i64::MAX)?;
    let bytes = u64::try_from(kib).ok().filter(|kib| *kib > 0);
    Ok(bytes.map_or(CHECKPOINT_LOG_BYTES, |kib| {
        kib.saturating_mul(1024).min(CHECKPOINT_LOG_BYTES)
    }))
}
