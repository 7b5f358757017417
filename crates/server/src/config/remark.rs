//! Lines for the log about a configuration, and the reasons to refuse one.

use std::fmt;
use std::path::{Path, PathBuf};

use super::properties::Malformed;

/// How a remark is to be logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Nothing is missing.
    Info,
    /// Something that the configuration asks for is missing or was changed.
    Warn,
}

/// A line for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// How to log it.
    pub level: Level,
    /// What to log.
    pub text: String,
}

impl Remark {
    pub(super) fn info(text: impl Into<String>) -> Self {
        Self {
            level: Level::Info,
            text: text.into(),
        }
    }

    pub(super) fn warn(text: impl Into<String>) -> Self {
        Self {
            level: Level::Warn,
            text: text.into(),
        }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// Why the server must not start with this configuration. The texts are ZooKeeper's where it has one.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("Error processing {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file is not in the format.
    #[error("Error processing {}: {source}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Malformed,
    },
    /// A setting is wrong, or two contradict each other.
    #[error("{0}")]
    Invalid(String),
}

impl ConfigError {
    /// The exit code of a process that ends for this reason.
    pub const EXIT_CODE: u8 = 2;
    /// The last line such a process writes to standard error, which scripts look for.
    pub const LAST_LINE: &'static str = "Invalid config, exiting abnormally";

    pub(super) fn invalid(text: impl Into<String>) -> Self {
        Self::Invalid(text.into())
    }

    pub(super) fn unreadable(path: &Path, source: std::io::Error) -> Self {
        Self::Unreadable {
            path: path.to_owned(),
            source,
        }
    }
}
