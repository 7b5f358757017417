//! Snapshots for operators.

use super::remark::Remark;
use super::resolve::Reader;
use crate::backup::Compression;

const METHOD: &str = "snapshot.compression.method";
/// ZooKeeper takes no snapshot without the zxid in it, and restores none.
pub(crate) const WITH_ZXID: &str = "serializeLastProcessedZxid.enabled";

/// Settings of snapshots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackupSettings {
    /// How snapshots are compressed. `snapshot.compression.method`.
    pub compression: Compression,
    /// Whether snapshots may be taken and restored over HTTP. `serializeLastProcessedZxid.enabled`.
    pub with_zxid: bool,
}

/// Reads the settings.
pub(super) fn resolve(reader: &mut Reader<'_>) -> BackupSettings {
    let method = reader.settings.get_or_default(METHOD);
    let compression = match method.to_ascii_lowercase().as_str() {
        "gz" => Compression::Gzip,
        "snappy" => Compression::Snappy,
        "" => Compression::None,
        _ => {
            let text = format!(
                "{METHOD}={method}: snapshots are compressed by gz, by snappy or not at all; they are left as they are"
            );
            reader.remarks.push(Remark::warn(text));
            Compression::None
        }
    };
    BackupSettings {
        compression,
        with_zxid: reader.is_true(WITH_ZXID),
    }
}
