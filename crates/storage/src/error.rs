use std::path::PathBuf;

use quenda_consensus::RecoveredError;
use quenda_tree::LoadError;
use thiserror::Error;

/// Why a store cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Another process has it open.
    #[error(
        "the data directory {} is in use by another process; stop that process, or give this member a \
         directory of its own", directory.display()
    )]
    InUse {
        /// The data directory.
        directory: PathBuf,
    },
    /// Bytes are damaged or missing. The member must not go on: it may have promised what is lost.
    #[error(
        "the store in {} is damaged: {detail}. Restore it from a backup; in an ensemble, empty the \
         directory and let the member fetch the state from the leader", directory.display()
    )]
    Damaged {
        /// The data directory.
        directory: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// A first start in a directory of Apache ZooKeeper: clients would see an empty tree.
    #[error(
        "the directory {} holds data of Apache ZooKeeper (version-2), which this version does not read; \
         configure an empty directory (dataDir, dataLogDir), or move version-2 away to begin with an \
         empty tree. `quenda restore` then takes the newest version-2/snapshot.* file", directory.display()
    )]
    ZooKeeper {
        /// The directory with `version-2`.
        directory: PathBuf,
    },
    /// Written by a version with another layout.
    #[error(
        "the store in {} has format {found}; this version reads format {expected} only",
        directory.display()
    )]
    Format {
        /// The data directory.
        directory: PathBuf,
        /// The format found.
        found: u32,
        /// The format of this version.
        expected: u32,
    },
    /// It belongs to another member.
    #[error(
        "the store in {} belongs to member {found}, and this is member {expected}; check the member's id \
         and its data directory. A server that ran alone was member 1: with an empty directory it joins others", directory.display()
    )]
    WrongMember {
        /// The data directory.
        directory: PathBuf,
        /// The member it belongs to.
        found: u64,
        /// The member that opens it.
        expected: u64,
    },
    /// The log directory is not the one that belongs to this store.
    #[error("the log directory of the store in {} {detail}", directory.display())]
    LogDirectory {
        /// The data directory.
        directory: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// The file system refuses: no space, no permission, a failing disk.
    #[error("cannot open the store in {}: {detail}", directory.display())]
    Io {
        /// The data directory.
        directory: PathBuf,
        /// The system's words.
        detail: String,
    },
}

impl OpenError {
    pub(crate) fn damaged(directory: impl Into<PathBuf>, detail: impl ToString) -> OpenError {
        OpenError::Damaged {
            directory: directory.into(),
            detail: detail.to_string(),
        }
    }

    pub(crate) fn io(directory: impl Into<PathBuf>, detail: impl ToString) -> OpenError {
        OpenError::Io {
            directory: directory.into(),
            detail: detail.to_string(),
        }
    }
}

/// Why a read or write of an open store failed.
#[derive(Debug, Error)]
pub enum StoreError {
    /// A write or sync failed. Whether it is on disk is unknown; the handle accepts nothing more until
    /// [`crate::Store::reopen`].
    #[error("writing to the store failed: {0}")]
    Write(String),
    /// An earlier write failed and the store has not been reopened.
    #[error("the store must be reopened after a failed write")]
    NeedsReopen,
    /// Reading failed, or what was read is damaged.
    #[error("reading the store failed: {0}")]
    Read(String),
    /// Entries that do not continue the stored log. Nothing was written.
    #[error("log entry {found} does not continue the stored log, which covers {first} to {last}")]
    NotContinuous {
        /// First entry of the batch.
        found: u64,
        /// First stored entry.
        first: u64,
        /// Last stored entry.
        last: u64,
    },
    /// A checkpoint that is older than the stored one, or newer than the stored log. Nothing was written.
    #[error("a checkpoint of entry {applied} does not fit between {oldest} and {newest}")]
    CheckpointOutsideLog {
        /// The entry it belongs to.
        applied: u64,
        /// The stored checkpoint.
        oldest: u64,
        /// The end of the stored log.
        newest: u64,
    },
    /// The log would be cut above the checkpoint. Nothing was written.
    #[error(
        "the log cannot be cut at {through}: the checkpoint holds entries up to {checkpoint} only"
    )]
    CutAboveCheckpoint {
        /// Where to cut.
        through: u64,
        /// The stored checkpoint.
        checkpoint: u64,
    },
    /// What is stored contradicts itself.
    #[error(transparent)]
    Inconsistent(#[from] RecoveredError),
    /// The rows make no tree.
    #[error("the checkpoint cannot be loaded: {0}")]
    Load(#[from] LoadError),
    /// Reopening failed; it may be tried again.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// An image that was never made here, or has been dropped.
    #[error("there is no image of entry {index}")]
    ImageGone {
        /// The entry it would belong to.
        index: u64,
    },
    /// An image, or a piece of one, that this store cannot take. Nothing was changed.
    #[error("the image cannot be taken: {0}")]
    ImageRefused(String),
    /// A received file does not have its checksum. It has been emptied and is to be sent again.
    #[error("the file {0} of the image arrived damaged")]
    ImageDamaged(String),
    /// The files of an image cannot be made, read or written. The store itself is not affected.
    #[error("the files of an image cannot be made, read or written: {0}")]
    ImageIo(String),
    /// Entries that had been reported durable are gone. The member must stop: going on would break its
    /// promises to the others.
    #[error(
        "the store has lost acknowledged log entries: it ends at {found}, and {promised} had been \
         reported durable. Restore it from a backup; in an ensemble, empty the directory and let the member \
         fetch the state from the leader"
    )]
    LostEntries {
        /// End of the log now.
        found: u64,
        /// What had been durable.
        promised: u64,
    },
}
