use std::io;

use parking_lot::Mutex;
use quenda_consensus::{LogBatch, Recovered};

use crate::checkpoint::Checkpoint;
use crate::error::StoreError;
use crate::image::{Image, Write};
use crate::space::Space;
use crate::store::{Reopened, RowVisitor, Store};

/// A store that lives as long as the process. For tests and for measurements without a disk.
pub struct MemoryStore {
    image: Mutex<Image>,
}

impl MemoryStore {
    /// A store that holds `start`.
    pub fn new(start: Recovered) -> MemoryStore {
        MemoryStore {
            image: Mutex::new(Image::new(start)),
        }
    }
}

impl Store for MemoryStore {
    fn append(&self, batches: &[LogBatch]) -> Result<(), StoreError> {
        let mut image = self.image.lock();
        image.marks().last_after(batches)?;
        image.apply(&Write::Append(batches.to_vec()));
        Ok(())
    }

    fn checkpoint(&self, checkpoint: &Checkpoint) -> Result<(), StoreError> {
        let mut image = self.image.lock();
        image.marks().check_checkpoint(checkpoint.applied.0)?;
        image.apply(&Write::Checkpoint(Box::new(checkpoint.clone())));
        Ok(())
    }

    fn sync(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn compact_log(&self, through: u64) -> Result<(), StoreError> {
        let mut image = self.image.lock();
        image.marks().check_cut(through)?;
        image.apply(&Write::Cut(through));
        Ok(())
    }

    fn recover(&self) -> Result<Recovered, StoreError> {
        self.image.lock().recovered()
    }

    fn scan(&self, visit: &mut RowVisitor<'_>) -> Result<(), StoreError> {
        self.image.lock().scan(visit)
    }

    fn reopen(&self) -> Result<Reopened, StoreError> {
        let marks = self.image.lock().marks();
        Ok(Reopened {
            last_index: marks.last,
            checkpoint_index: marks.checkpoint,
            checkpoint_lost: false,
        })
    }

    fn space(&self) -> io::Result<Space> {
        Ok(Space {
            free_bytes: u64::MAX,
            total_bytes: u64::MAX,
        })
    }
}
