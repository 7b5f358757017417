use std::io;

use bytes::Bytes;
use quenda_consensus::{HardState, LogBatch, Recovered};
use quenda_tree::{LoadError, Loader, RowView, Table, Tree};

use crate::checkpoint::Checkpoint;
use crate::error::StoreError;
use crate::image::{ImageInfo, ImageReceiver};
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

    /// Shows the checkpoint as it is at this moment to `look`, which may take its time: reading and writing go
    /// on meanwhile, and change nothing of what it sees.
    ///
    /// # Errors
    /// [`StoreError::NeedsReopen`]. What `look` sees ends with an error of its own when the store is to be
    /// opened again, or to take over an image.
    fn view(&self, look: &mut RowLook<'_>) -> Result<(), StoreError>;

    /// Closes and opens the store again after a failed write, and checks that nothing durable is lost.
    /// It may be tried again when it fails, except after [`StoreError::LostEntries`].
    ///
    /// # Errors
    /// [`StoreError::Open`] while the cause persists; [`StoreError::LostEntries`].
    fn reopen(&self) -> Result<Reopened, StoreError>;

    /// Makes an image of the stored checkpoint: a new one, or the one that is there if it belongs to the
    /// same entry. Reading and writing go on meanwhile; only checkpoints and cuts of the log wait. It stays
    /// until [`Store::drop_images`] or the end of the process.
    ///
    /// # Errors
    /// [`StoreError::ImageIo`]; [`StoreError::ImageRefused`] when this store holds nothing yet;
    /// [`StoreError::NeedsReopen`].
    fn make_image(&self) -> Result<ImageInfo, StoreError>;

    /// Bytes of an image that was made here: at most `max` and [`crate::limits::IMAGE_CHUNK_BYTES`], and
    /// fewer only at the end of the file.
    ///
    /// # Errors
    /// [`StoreError::ImageGone`]; [`StoreError::ImageRefused`] for a place that is not in the image;
    /// [`StoreError::ImageIo`].
    fn read_image(
        &self,
        index: u64,
        file: u32,
        offset: u64,
        max: usize,
    ) -> Result<Bytes, StoreError>;

    /// Drops the images made here, except the one that belongs to `keep`.
    fn drop_images(&self, keep: Option<u64>);

    /// Begins to take in another member's image, or goes on where it was broken off if the manifest is
    /// the same. There is one at a time: an earlier receiver can do nothing any more, and what an image
    /// with another manifest has left is deleted. What is stored is not touched.
    ///
    /// # Errors
    /// [`StoreError::ImageRefused`] when the manifest is not readable here, or its entry is not newer than
    /// the stored checkpoint; [`StoreError::ImageIo`].
    fn receive_image(&self, manifest: &[u8]) -> Result<Box<dyn ImageReceiver>, StoreError>;

    /// Replaces everything that is stored by an image that was received and finished. The log is empty
    /// behind its entry, which is taken for committed; of `hard_state`, term and vote count. After a crash
    /// at any point, the old content is there as a whole, or the new one. Afterwards a checkpoint of an
    /// older entry is refused.
    ///
    /// # Errors
    /// [`StoreError::ImageRefused`] when there is no such image, its entry is not newer than the stored
    /// checkpoint, or term and vote contradict stored ones; [`StoreError::ImageIo`]: nothing has changed.
    /// [`StoreError::Write`]: the old or the new content is there after [`Store::reopen`], which tells by
    /// its checkpoint.
    fn install_image(&self, index: u64, term: u64, hard_state: HardState)
    -> Result<(), StoreError>;

    /// Ends all work on what is stored; afterwards nothing can be read or written. For the end of the process: what still
    /// works then would do so while the memory under it is torn down.
    fn close(&self) {}

    /// Room on the file system; the scarcer one if the log has its own.
    ///
    /// # Errors
    /// The system's own.
    fn space(&self) -> io::Result<Space>;
}

/// Takes one row of a checkpoint: table, key, value.
pub type RowVisitor<'v> = dyn FnMut(Table, &[u8], &[u8]) -> Result<(), LoadError> + 'v;

/// Looks at the rows of a checkpoint.
pub type RowLook<'l> = dyn FnMut(&dyn RowView) + 'l;

/// The tree of the stored checkpoint; the empty tree if none was ever written.
///
/// # Errors
/// When rows cannot be read, or do not fit together.
pub fn load_tree(store: &dyn Store) -> Result<Tree, StoreError> {
    load_rows(|visit| store.scan(visit))
}

/// The tree of the rows that `scan` shows.
pub(crate) fn load_rows(
    scan: impl FnOnce(&mut RowVisitor<'_>) -> Result<(), StoreError>,
) -> Result<Tree, StoreError> {
    let mut loader = Loader::new();
    let mut empty = true;
    scan(&mut |table, key, value| {
        empty = false;
        loader.row(table, key, value)
    })?;
    if empty {
        return Ok(Tree::new());
    }
    Ok(loader.finish()?)
}
