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

/// What happens to a write that fails. The caller always sees the same error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Neither the write nor anything unsynced before it reaches the disk.
    Lost,
    /// The write is torn: what came before it is kept.
    Torn,
    /// The write is on disk all the same.
    Kept,
}

/// A store with a disk of its own: writes lie in a cache until a sync, a chosen write fails, and a crash
/// drops what lies in the cache.
pub struct FaultyStore {
    state: Mutex<State>,
    images: Images,
}

struct State {
    /// What a crash leaves.
    durable: Content,
    /// What the running process sees.
    current: Content,
    /// Written, in order, but not durable.
    unsynced: Vec<Write>,
    /// Writes and syncs so far.
    writes: u64,
    fault: Option<(u64, Fault)>,
    failed: bool,
    /// Last entry that an append has reported as durable.
    promised: u64,
    space: Space,
}

impl FaultyStore {
    /// A store that holds `start`, durably.
    pub fn new(start: Recovered) -> FaultyStore {
        let content = Content::new(start);
        FaultyStore {
            state: Mutex::new(State {
                promised: content.marks().last,
                durable: content.clone(),
                current: content,
                unsynced: Vec::new(),
                writes: 0,
                fault: None,
                failed: false,
                space: Space {
                    free_bytes: u64::MAX,
                    total_bytes: u64::MAX,
                },
            }),
            images: Images::default(),
        }
    }

    /// Makes write number `write` (from 0, counted over the store's life) fail in this way.
    pub fn fail_at(&self, write: u64, fault: Fault) {
        self.state.lock().fault = Some((write, fault));
    }

    /// Writes and syncs so far.
    pub fn writes(&self) -> u64 {
        self.state.lock().writes
    }

    /// Writes that a crash may lose.
    pub fn unsynced(&self) -> usize {
        self.state.lock().unsynced.len()
    }

    /// The process dies and starts again. Of the writes not synced, the first `keep` had reached the
    /// disk; what has been written in order is lost from its end.
    pub fn crash(&self, keep: usize) {
        let mut state = self.state.lock();
        state.keep_unsynced(keep);
        state.restart();
        self.images.crash();
    }

    /// Sets what [`Store::space`] reports.
    pub fn set_space(&self, space: Space) {
        self.state.lock().space = space;
    }
}

impl State {
    fn write(&mut self, write: Write) -> Result<(), StoreError> {
        self.begin(Some(&write))?;
        self.current.apply(&write);
        self.unsynced.push(write);
        Ok(())
    }

    /// Makes all writes durable; part of the write before it, not one of its own.
    fn settle(&mut self) {
        self.keep_unsynced(usize::MAX);
        self.promised = self.durable.marks().last;
    }

    /// Counts a write or sync and lets it fail if its turn has come.
    fn begin(&mut self, write: Option<&Write>) -> Result<(), StoreError> {
        let number = self.writes;
        self.writes += 1;
        let Some((_, fault)) = self.fault.filter(|(at, _)| *at == number) else {
            return Ok(());
        };
        match fault {
            Fault::Lost => self.unsynced.clear(),
            Fault::Torn => self.keep_unsynced(usize::MAX),
            Fault::Kept => {
                self.unsynced.extend(write.cloned());
                self.keep_unsynced(usize::MAX);
            }
        }
        self.failed = true;
        Err(StoreError::Write(format!(
            "write {number} fails on purpose"
        )))
    }

    fn keep_unsynced(&mut self, keep: usize) {
        for write in self.unsynced.drain(..).take(keep) {
            self.durable.apply(&write);
        }
    }

    fn restart(&mut self) {
        self.current = self.durable.clone();
        self.failed = false;
        self.promised = self.current.marks().last;
    }

    fn check_usable(&self) -> Result<(), StoreError> {
        if self.failed {
            return Err(StoreError::NeedsReopen);
        }
        Ok(())
    }
}

impl Store for FaultyStore {
    fn append(&self, batches: &[LogBatch]) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        state.check_usable()?;
        state.current.marks().last_after(batches)?;
        state.write(Write::Append(batches.to_vec()))?;
        state.settle();
        Ok(())
    }

    fn checkpoint(&self, checkpoint: &Checkpoint) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        state.check_usable()?;
        let marks = state.current.marks();
        marks.check_checkpoint(checkpoint.applied.0)?;
        state.write(Write::Checkpoint(Box::new(checkpoint.clone())))
    }

    fn sync(&self) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        state.check_usable()?;
        state.begin(None)?;
        state.settle();
        Ok(())
    }

    fn compact_log(&self, through: u64) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        state.check_usable()?;
        state.current.marks().check_cut(through)?;
        state.write(Write::Cut(through))?;
        state.settle();
        Ok(())
    }

    fn recover(&self) -> Result<Recovered, StoreError> {
        self.state.lock().current.recovered()
    }

    fn scan(&self, visit: &mut RowVisitor<'_>) -> Result<(), StoreError> {
        self.state.lock().current.scan(visit)
    }

    fn view(&self, look: &mut RowLook<'_>) -> Result<(), StoreError> {
        look(&self.state.lock().current.view());
        Ok(())
    }

    fn reopen(&self) -> Result<Reopened, StoreError> {
        let mut state = self.state.lock();
        let written = state.current.marks().checkpoint;
        let promised = state.promised;
        state.keep_unsynced(usize::MAX);
        state.restart();
        let marks = state.current.marks();
        if marks.last < promised {
            return Err(StoreError::LostEntries {
                found: marks.last,
                promised,
            });
        }
        Ok(Reopened {
            last_index: marks.last,
            checkpoint_index: marks.checkpoint,
            checkpoint_lost: marks.checkpoint < written,
        })
    }

    fn make_image(&self) -> Result<ImageInfo, StoreError> {
        let state = self.state.lock();
        state.check_usable()?;
        self.images.make(&state.current)
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
        let state = self.state.lock();
        self.images.receive(manifest, &state.current)
    }

    fn install_image(
        &self,
        index: u64,
        term: u64,
        hard_state: HardState,
    ) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        let content = self
            .images
            .installed((index, term), &state.current, hard_state)?;
        state.write(Write::Install(Box::new(content)))?;
        state.settle();
        self.images.clear_incoming();
        Ok(())
    }

    fn space(&self) -> io::Result<Space> {
        Ok(self.state.lock().space)
    }
}
