use std::io;

use bytes::Bytes;
use parking_lot::Mutex;
use quenda_consensus::{HardState, LogBatch, Recovered};

use crate::checkpoint::Checkpoint;
use crate::content::{Content, Write};
use crate::error::StoreError;
use crate::image::{ImageInfo, ImageReceiver};
use crate::simulated::Images;
use crate::space::Space;
use crate::store::{Reopened, RowLook, RowVisitor, Store};

/// A store that lives as long as the process. For tests and for measurements without a disk.
pub struct MemoryStore {
    content: Mutex<Content>,
    images: Images,
}

impl MemoryStore {
    /// A store that holds `start`.
    pub fn new(start: Recovered) -> MemoryStore {
        MemoryStore {
            content: Mutex::new(Content::new(start)),
            images: Images::default(),
        }
    }
}

impl Store for MemoryStore {
    fn append(&self, batches: &[LogBatch]) -> Result<(), StoreError> {
        let mut content = self.content.lock();
        content.marks().last_after(batches)?;
        content.apply(&Write::Append(batches.to_vec()));
        Ok(())
    }

    fn checkpoint(&self, checkpoint: &Checkpoint) -> Result<(), StoreError> {
        let mut content = self.content.lock();
        content.marks().check_checkpoint(checkpoint.applied.0)?;
        content.apply(&Write::Checkpoint(Box::new(checkpoint.clone())));
        Ok(())
    }

    fn sync(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn compact_log(&self, through: u64) -> Result<(), StoreError> {
        let mut content = self.content.lock();
        content.marks().check_cut(through)?;
        content.apply(&Write::Cut(through));
        Ok(())
    }

    fn recover(&self) -> Result<Recovered, StoreError> {
        self.content.lock().recovered()
    }

    fn scan(&self, visit: &mut RowVisitor<'_>) -> Result<(), StoreError> {
        self.content.lock().scan(visit)
    }

    fn view(&self, look: &mut RowLook<'_>) -> Result<(), StoreError> {
        look(&self.content.lock().view());
        Ok(())
    }

    fn reopen(&self) -> Result<Reopened, StoreError> {
        let marks = self.content.lock().marks();
        Ok(Reopened {
            last_index: marks.last,
            checkpoint_index: marks.checkpoint,
            checkpoint_lost: false,
        })
    }

    fn make_image(&self) -> Result<ImageInfo, StoreError> {
        self.images.make(&self.content.lock())
    }

    fn read_image(
        &self,
        index: u64,
        file: u32,
        offset: u64,
        max: usize,
    ) -> Result<Bytes, StoreError> {
        self.images.read(index, file, offset, max)
    }

    fn drop_images(&self, keep: Option<u64>) {
        self.images.drop_made(keep);
    }

    fn receive_image(&self, manifest: &[u8]) -> Result<Box<dyn ImageReceiver>, StoreError> {
        self.images.receive(manifest, &self.content.lock())
    }

    fn install_image(
        &self,
        index: u64,
        term: u64,
        hard_state: HardState,
    ) -> Result<(), StoreError> {
        let mut content = self.content.lock();
        *content = self.images.installed((index, term), &content, hard_state)?;
        self.images.clear_incoming();
        Ok(())
    }

    fn space(&self) -> io::Result<Space> {
        Ok(Space {
            free_bytes: u64::MAX,
            total_bytes: u64::MAX,
        })
    }
}
