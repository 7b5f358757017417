//! How the store treats the disk, and what an empty one may do.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::remark::{ConfigError, Remark};
use super::resolve::Reader;

/// ZooKeeper's marker of a member that may begin with nothing, for `db.autocreate=false`.
const MARKER: &str = "initialize";

/// Settings of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageSettings {
    /// Whether writes are on the disk before they are acknowledged. `forceSync`.
    pub force_sync: bool,
    /// Transactions after which a checkpoint is due, beside the server's own reasons. `snapCount`, if it is set.
    pub snap_count: Option<u32>,
    /// Whether a member with an empty store may found an ensemble, and need not wait for one to join. `db.autocreate`.
    pub may_found: bool,
    /// A write of the log with its sync that takes longer is counted and warned of. `fsync.warningthresholdms`.
    pub slow_sync: Duration,
    /// Markers that go once the store is made: they stand for one time.
    pub markers: Vec<PathBuf>,
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
        slow_sync: Duration::from_millis(reader.loose(
            "fsync.warningthresholdms",
            0,
            i64::from(i32::MAX),
        )?),
        may_found: reader.is_true("db.autocreate") || !markers.is_empty(),
        markers,
    })
}
