use std::io;

use quenda_consensus::{LogBatch, Recovered};
use quenda_tree::{LoadError, Loader, Table, Tree};

use crate::checkpoint::Checkpoint;
use crate::error::StoreError;
use crate::space::Space;

/// What was found when a store was opened again after a failed write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reopened {
    /// The last entry of the log now. Every entry ever reported durable is there; of the batches that
    /// failed, each is there whole or not at all. The caller appends them all again.
    pub last_index: u64,
    /// The entry that the stored checkpoint belongs to.
    pub checkpoint_index: u64,
    /// A checkpoint that had been written but was not durable yet is gone: the next one must be
    /// complete.
    pub checkpoint_lost: bool,
}

/// A member's memory that survives a crash. Handles may be shared: one thread appends while another
/// writes checkpoints and cuts the log.
///
/// After an error from a write ([`StoreError::Write`]) nothing is known of that write, and every further
/// write fails with [`StoreError::NeedsReopen`] until [`Store::reopen`] succeeds.
pub trait Store: Send + Sync {
    /// Appends batches in order, with one write and one sync for all of them. They are durable when this
    /// returns.
    ///
    /// # Errors
    /// [`StoreError::Write`]; [`StoreError::NotContinuous`] when entries do not continue the log.
    fn append(&self, batches: &[LogBatch]) -> Result<(), StoreError>;

    /// Writes a checkpoint in one piece. It is durable after the next append or [`Store::sync`]; a crash
    /// before that leaves the one before it. After an error the next checkpoint must be complete.
    ///
    /// # Errors
    /// [`StoreError::Write`]; [`StoreError::CheckpointOutsideLog`] when it goes back, or belongs to an
    /// entry that is not stored.
    fn checkpoint(&self, checkpoint: &Checkpoint) -> Result<(), StoreError>;

    /// Makes everything written so far durable.
    ///
    /// # Errors
    /// [`StoreError::Write`].
    fn sync(&self) -> Result<(), StoreError>;

    /// Drops log entries up to and including `through`, and makes the checkpoint above them durable
    /// first. Does nothing if they are gone already.
    ///
    /// # Errors
    /// [`StoreError::Write`]; [`StoreError::CutAboveCheckpoint`] when `through` is not in the checkpoint.
    fn compact_log(&self, through: u64) -> Result<(), StoreError>;

    /// Raft's state and the log, checked for contradictions. For a start; while another thread writes, it
    /// may see a mixture.
    ///
    /// # Errors
    /// [`StoreError::Read`]; [`StoreError::Inconsistent`].
    fn recover(&self) -> Result<Recovered, StoreError>;

    /// Shows every row of the checkpoint to `visit`, table by table, until it fails.
    ///
    /// # Errors
    /// [`StoreError::Read`]; [`StoreError::Load`] from `visit`.
    fn scan(&self, visit: &mut RowVisitor<'_>) -> Result<(), StoreError>;

    /// Closes and opens the store again after a failed write, and checks that nothing durable is lost.
    /// It may be tried again when it fails, except after [`StoreError::LostEntries`].
    ///
    /// # Errors
    /// [`StoreError::Open`] while the cause persists; [`StoreError::LostEntries`].
    fn reopen(&self) -> Result<Reopened, StoreError>;

    /// Room on the file system; the scarcer one if the log has its own.
    ///
    /// # Errors
    /// The system's own.
    fn space(&self) -> io::Result<Space>;
}

/// Takes one row of a checkpoint: table, key, value.
pub type RowVisitor<'v> = dyn FnMut(Table, &[u8], &[u8]) -> Result<(), LoadError> + 'v;

/// The tree of the stored checkpoint; the empty tree if none was ever written.
///
/// # Errors
/// When rows cannot be read, or do not fit together.
pub fn load_tree(store: &dyn Store) -> Result<Tree, StoreError> {
    let mut loader = Loader::new();
    let mut empty = true;
    store.scan(&mut |table, key, value| {
        empty = false;
        loader.row(table, key, value)
    })?;
    if empty {
        return Ok(Tree::new());
    }
    Ok(loader.finish()?)
}
