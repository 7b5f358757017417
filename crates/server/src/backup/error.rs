//! What goes wrong, for the one who asked.

use std::io;

use quenda_storage::StoreError;
use quenda_tree::SnapshotError;
use quenda_tree::limits::RESTORE_BYTES_MAX;

/// Why there is no snapshot, or why nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// Another one is under way on this member.
    #[error("another {0} is under way on this member; try again when it is done")]
    Busy(&'static str),
    /// The member does not serve.
    #[error("this member does not serve now; ask another one, or try again")]
    NotServing,
    /// The disk has no room.
    #[error("the disk is nearly full; make room on it first")]
    DiskFull,
    /// The state did not get to the disk in time.
    #[error("the disk does not answer: the state was not written within {0} s")]
    Slow(u64),
    /// A snapshot is longer than can be restored.
    #[error("the snapshot is too large: at most {} MiB can be restored", RESTORE_BYTES_MAX >> 20)]
    TooLarge,
    /// The bytes are no snapshot.
    #[error("the snapshot cannot be restored, nothing was changed: {0}")]
    Damaged(SnapshotError),
    /// The compressed bytes are damaged.
    #[error(
        "the snapshot cannot be restored, nothing was changed: its compression is damaged: {0}"
    )]
    Compression(io::Error),
    /// The snapshot could not be made.
    #[error("the snapshot could not be made: {0}")]
    Export(SnapshotError),
    /// Another restore has begun elsewhere.
    #[error("another restore has begun on another member; nothing was changed by this one")]
    Superseded,
    /// There was no quorum for too long.
    #[error(
        "there was no quorum for {0} s; whether the snapshot was restored is unknown if it was sent whole"
    )]
    NoQuorum(u64),
    /// The members have refused what this one has found good.
    #[error("the ensemble refuses the snapshot ({0})")]
    Refused(&'static str),
    /// The store does not work.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file could not be written or read.
    #[error("a file in the data directory cannot be written or read: {0}")]
    Io(io::Error),
    /// The server stops.
    #[error("the server stops")]
    Stopping,
}

impl From<io::Error> for BackupError {
    fn from(error: io::Error) -> BackupError {
        match error.kind() {
            io::ErrorKind::StorageFull => BackupError::DiskFull,
            _ => BackupError::Io(error),
        }
    }
}

impl From<SnapshotError> for BackupError {
    /// Of one that is made.
    fn from(error: SnapshotError) -> BackupError {
        match error {
            SnapshotError::Io(error) => error.into(),
            other => BackupError::Export(other),
        }
    }
}

impl BackupError {
    /// The status of HTTP that says it.
    pub fn status(&self) -> u16 {
        match self {
            BackupError::Busy(_) | BackupError::Superseded => 409,
            BackupError::TooLarge => 413,
            BackupError::NotServing | BackupError::NoQuorum(_) | BackupError::Stopping => 503,
            BackupError::DiskFull => 507,
            BackupError::Slow(_)
            | BackupError::Damaged(_)
            | BackupError::Compression(_)
            | BackupError::Export(_)
            | BackupError::Refused(_)
            | BackupError::Store(_)
            | BackupError::Io(_) => 500,
        }
    }
}
