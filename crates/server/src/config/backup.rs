//! Snapshots for operators.

use super::remark::Remark;
use super::resolve::Reader;
use crate::backup::Compression;

const METHOD: &str = "snapshot.compression.method";

/// Settings of snapshots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackupSettings {
    /// How snapshots are compressed. `snapshot.compression.method`.
    pub compression: Compression,
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
    BackupSettings { compression }
}
