//! The audit log: where it is and what it looks like.

use std::path::{Path, PathBuf};

use super::remark::ConfigError;
use super::resolve::Reader;

/// ZooKeeper's own sink.
const LOGGER: &str = "org.apache.zookeeper.audit.Slf4jAuditLogger";
/// The file's name where only its directory is known, as in ZooKeeper's logback.xml.
const NAME: &str = "zookeeper_audit.log";

/// Settings of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditSettings {
    /// The file. `quenda.audit.file`.
    pub path: PathBuf,
    /// What its lines look like. `quenda.audit.format`.
    pub format: AuditFormat,
    /// Size at which it is turned over, bytes; 0 for never. `quenda.audit.maxFileSizeMb`.
    pub bytes_max: u64,
    /// How many old ones are kept. `quenda.audit.maxFiles`.
    pub kept: u32,
}

/// What the lines of the audit log look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditFormat {
    /// As ZooKeeper writes them.
    Text,
    /// A JSON object each.
    Json,
}

/// Reads the settings; `None` if there is no audit log.
///
/// # Errors
/// A sink that is a Java class of somebody's own, a format that does not exist.
pub(super) fn resolve(
    reader: &mut Reader<'_>,
    data_dir: &Path,
) -> Result<Option<AuditSettings>, ConfigError> {
    if !reader.is_true("audit.enable") {
        return Ok(None);
    }
    let class = reader.settings.get_or_default("audit.impl.class");
    if !class.is_empty() && class != LOGGER {
        return Err(ConfigError::invalid(format!(
            "audit.impl.class={class} is not supported: it names a Java class; the audit log goes to the file \
             quenda.audit.file"
        )));
    }
    let format = match reader.settings.get_or_default("quenda.audit.format") {
        "text" => AuditFormat::Text,
        "json" => AuditFormat::Json,
        other => {
            return Err(ConfigError::invalid(format!(
                "quenda.audit.format: {other} is none of text and json"
            )));
        }
    };
    let megabytes: u64 = reader.loose("quenda.audit.maxFileSizeMb", 0, 1 << 20)?;
    Ok(Some(AuditSettings {
        path: path(reader, data_dir),
        format,
        bytes_max: megabytes << 20,
        kept: reader.loose("quenda.audit.maxFiles", 0, 1000)?,
    }))
}

fn path(reader: &Reader<'_>, data_dir: &Path) -> PathBuf {
    let set = |name| reader.settings.get(name).filter(|text| !text.is_empty());
    if let Some(file) = set("quenda.audit.file") {
        return file.into();
    }
    match set(super::LOG_DIRECTORY) {
        Some(directory) => Path::new(directory).join(NAME),
        None => data_dir.join(NAME),
    }
}
