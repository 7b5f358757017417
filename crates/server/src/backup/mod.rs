//! The whole state as one stream in ZooKeeper's snapshot format: out of this member ([`snapshot`]), and into the
//! ensemble ([`Intake`]).
//!
//! Whoever asks sees to permission, to how often, and to the way of the bytes.

mod commands;
mod counters;
mod error;
mod intake;
mod pieces;
mod room;
mod snappy;
mod snapshot;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use quenda_storage::Store;
use tokio::sync::{Semaphore, watch};

use commands::Waiting;
pub use counters::Counters;
pub use error::BackupError;
pub use intake::{Intake, Restored};
pub use snapshot::{Compression, Destination, Snapshot, snapshot};

/// What the ways in and out share with the core.
pub struct Backup {
    store: OnceLock<Arc<dyn Store>>,
    /// The entry that the stored checkpoint belongs to.
    checkpointed: watch::Sender<u64>,
    /// Somebody waits for a checkpoint.
    wanted: AtomicBool,
    waiting: Waiting,
    /// Turns of snapshots, and of restores.
    snapshots: Arc<Semaphore>,
    restores: Arc<Semaphore>,
    /// What was done.
    pub counters: Counters,
}

impl Default for Backup {
    fn default() -> Backup {
        Backup {
            store: OnceLock::new(),
            checkpointed: watch::Sender::new(0),
            wanted: AtomicBool::new(false),
            waiting: Waiting::default(),
            snapshots: Arc::new(Semaphore::new(1)),
            restores: Arc::new(Semaphore::new(1)),
            counters: Counters::default(),
        }
    }
}

impl Backup {
    /// The store is open, with a checkpoint of this entry.
    pub fn open(&self, store: Arc<dyn Store>, index: u64) {
        self.store.get_or_init(|| store);
        self.checkpointed(index);
    }

    /// A checkpoint of this entry is stored.
    pub fn checkpointed(&self, index: u64) {
        self.checkpointed.send_if_modified(|stored| {
            let is_newer = index > *stored;
            *stored = index.max(*stored);
            is_newer
        });
    }

    /// Whether a checkpoint is to be taken before its time. From now on it is assumed to be under way.
    pub fn takes_checkpoint(&self) -> bool {
        self.wanted.swap(false, Ordering::Relaxed)
    }
}

impl std::fmt::Debug for Backup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Backup")
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}
