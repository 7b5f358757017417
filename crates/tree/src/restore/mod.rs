//! Restoring a snapshot through the log: its pieces are collected in the replicated state, out of the sight of
//! clients, and one command then puts what they hold in the place of everything that was there.

mod apply;
mod build;
mod pieces;

use std::io::Read;

pub use pieces::PieceSum;
pub(crate) use pieces::{LoadedPieces, Pieces};

use crate::snapshot::{MAGIC, SnapshotError};
use build::build;

/// The last restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restored {
    /// Its number, chosen at random.
    pub id: u64,
    /// zxid of the transaction: in what clients saw before it, everything may have changed since.
    pub zxid: i64,
}

/// What a snapshot holds that could be restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checked {
    /// zxid of the last transaction, where the snapshot says it.
    pub last_zxid: Option<i64>,
    /// Znodes that there would be, the built-in ones included.
    pub znodes: usize,
    /// Sessions.
    pub sessions: usize,
    /// Ephemeral znodes that are left out, because their sessions are not in the snapshot.
    pub orphans: u64,
    /// Whether the znodes have the digest that the snapshot says. A snapshot that ZooKeeper takes while
    /// it writes need not have it.
    pub digest_fits: Option<bool>,
}

/// Looks whether a snapshot of `size` bytes can be restored. Takes as much memory as the tree in it.
///
/// # Errors
/// It cannot.
pub fn check(input: impl Read, size: u64) -> Result<Checked, SnapshotError> {
    let built = build(input, size, None)?;
    Ok(Checked {
        last_zxid: built.last_zxid,
        znodes: built.tree.counts().znodes,
        sessions: built.tree.counts().sessions,
        orphans: built.orphans,
        digest_fits: built.digest_fits,
    })
}

/// Looks whether these can be the first bytes of a snapshot.
///
/// # Errors
/// They cannot.
pub fn check_begin(bytes: [u8; 4]) -> Result<(), SnapshotError> {
    match i32::from_be_bytes(bytes) {
        MAGIC => Ok(()),
        other => Err(SnapshotError::Magic(other)),
    }
}
