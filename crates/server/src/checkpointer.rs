//! The checkpointer: one thread that writes what changed in the tree, so that the log can be cut.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Instant;

use quenda_consensus::Membership;
use quenda_storage::{Checkpoint, RowBatch, SpaceLevel, Store, StoreError};
use quenda_tree::Tree;
use tracing::{debug, error, warn};

use crate::log_writer::is_final;
use crate::shared::Shared;

/// The way to the checkpointer's thread. It has at most one checkpoint at a time.
pub struct Checkpointer {
    jobs: Option<SyncSender<Job>>,
    busy: Arc<AtomicBool>,
    shared: Arc<Shared>,
    store: Arc<dyn Store>,
    thread: Option<JoinHandle<()>>,
}

enum Job {
    Write(Checkpoint, i64),
    CutLog(u64),
    /// Make an image of what is stored, for a member that lags.
    Image,
    /// No member fetches an image any more.
    DropImages,
}

impl Checkpointer {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(store: Arc<dyn Store>, shared: Arc<Shared>) -> std::io::Result<Checkpointer> {
        // One checkpoint, and the cut that follows from the one before it.
        let (jobs, queue) = sync_channel(4);
        let busy = Arc::new(AtomicBool::new(false));
        let thread = {
            let (store, shared, busy) = (store.clone(), shared.clone(), busy.clone());
            crate::thread::spawn("quenda-checkpoint", move || {
                run(&*store, &shared, &busy, &queue)
            })?
        };
        Ok(Checkpointer {
            jobs: Some(jobs),
            busy,
            shared,
            store,
            thread: Some(thread),
        })
    }

    /// Whether a checkpoint is being written.
    pub fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Acquire)
    }

    /// Collects the changed rows of the tree and has them written. Only a copy in memory happens here.
    pub fn collect(&mut self, tree: &mut Tree, membership: Membership) {
        let complete = self.shared.take_checkpoint_lost();
        let mut rows = RowBatch::with_capacity(tree.dirty_bytes());
        // Clears the marks in either case.
        tree.write_checkpoint(&mut rows);
        if complete {
            rows = RowBatch::default();
            tree.write_full(&mut rows);
        }
        self.busy.store(true, Ordering::Release);
        let checkpoint = Checkpoint {
            applied: (tree.applied_index(), tree.applied_term()),
            membership,
            rows,
            complete,
        };
        self.send(Job::Write(checkpoint, tree.last_zxid()));
    }

    /// Has the stored log cut up to this index.
    pub fn cut_log(&self, through: u64) {
        self.send(Job::CutLog(through));
    }

    /// Has an image of the newest checkpoint made, for a member that lags; it comes to the inbox.
    pub fn make_image(&self) {
        self.send(Job::Image);
    }

    /// Has images removed that no member fetches any more.
    pub fn drop_images(&self) {
        self.send(Job::DropImages);
    }

    fn send(&self, job: Job) {
        if let Some(jobs) = &self.jobs
            && jobs.send(job).is_err()
        {
            error!("the checkpointer has ended");
        }
    }

    /// Whether the disk has no room for growth. When the system does not tell, there is room.
    pub fn is_disk_full(&self) -> bool {
        match self.store.space() {
            Ok(space) => {
                self.shared.metrics.disk.space(&space);
                space.level() != SpaceLevel::Ample
            }
            Err(error) => {
                warn!(%error, "the free space of the disk is unknown");
                false
            }
        }
    }

    /// Ends the thread when all its jobs are done.
    pub fn stop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            error!("the checkpointer had panicked");
        }
    }
}

fn run(store: &dyn Store, shared: &Shared, busy: &AtomicBool, queue: &Receiver<Job>) {
    for job in queue {
        match job {
            Job::Write(checkpoint, zxid) => {
                let started = Instant::now();
                match write(store, &checkpoint) {
                    Ok(()) => {
                        let bytes = checkpoint.rows.len_bytes();
                        shared.metrics.checkpoints.written(bytes, started.elapsed());
                        shared.set_last_checkpoint(zxid);
                        shared.inbox.checkpointed(checkpoint.applied.0);
                        shared.backup.checkpointed(checkpoint.applied.0);
                    }
                    Err(error) => {
                        shared.metrics.checkpoints.failed();
                        recover(store, shared, &error);
                    }
                }
                busy.store(false, Ordering::Release);
            }
            Job::Image => make_image(store, shared),
            Job::DropImages => store.drop_images(None),
            Job::CutLog(through) => {
                if let Err(error) = store.compact_log(through) {
                    recover(store, shared, &error);
                }
            }
        }
    }
}

fn make_image(store: &dyn Store, shared: &Shared) {
    let started = Instant::now();
    match store.make_image() {
        Ok(image) => {
            let checkpoints = &shared.metrics.checkpoints;
            checkpoints.image_made(image.bytes, started.elapsed());
            shared.inbox.image(image);
        }
        // The member that lags asks again.
        Err(error) => warn!(%error, "no image could be made for a member that lags"),
    }
}

fn write(store: &dyn Store, checkpoint: &Checkpoint) -> Result<(), StoreError> {
    store.checkpoint(checkpoint)?;
    store.sync()
}

/// Nothing is lost: the log still holds what the checkpoint would have held. The next one is complete.
fn recover(store: &dyn Store, shared: &Shared, error: &StoreError) {
    warn!(%error, "a checkpoint could not be written; the log keeps what it would have held");
    shared.set_checkpoint_lost();
    match store.reopen() {
        Ok(_) => {}
        Err(error) if is_final(&error) => shared.inbox.store_lost(error),
        Err(error) => debug!(%error, "the store cannot be opened again yet"),
    }
}
