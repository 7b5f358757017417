//! The log writer: one thread that makes batches of entries durable, as many as wait with one sync.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use quenda_consensus::LogBatch;
use quenda_storage::{Store, StoreError};
use tracing::{debug, error, info, warn};

use crate::calm::Calm;
use crate::limits::STORE_RETRY;
use crate::log_queue::LogQueue;
use crate::metrics::Written;
use crate::shared::Shared;

/// The way to the log writer's thread.
pub struct LogWriter {
    queue: Arc<LogQueue>,
    thread: Option<JoinHandle<()>>,
}

impl LogWriter {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(store: Arc<dyn Store>, shared: Arc<Shared>) -> std::io::Result<LogWriter> {
        let queue = Arc::new(LogQueue::new(shared.config.storage.gathering));
        let waiting = Arc::clone(&queue);
        let thread = crate::thread::spawn("quenda-log", move || run(&*store, &shared, &waiting))?;
        Ok(LogWriter {
            queue,
            thread: Some(thread),
        })
    }

    /// Queues the entries of one Ready; its number is reported to the inbox once they are durable.
    pub fn write(&self, number: u64, batch: LogBatch) {
        self.queue.put(number, batch);
    }

    /// Whether everything that was queued is durable.
    pub fn is_idle(&self) -> bool {
        self.queue.is_idle()
    }

    /// From now on nothing waits for more to share its sync.
    pub fn hurry(&self) {
        self.queue.hurry();
    }

    /// Ends the thread; what is queued is written first.
    pub fn stop(&mut self) {
        self.queue.stop();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            error!("the log writer had panicked");
        }
    }
}

fn run(store: &dyn Store, shared: &Shared, queue: &LogQueue) {
    let mut slow = Calm::new();
    while let Some(taken) = queue.take() {
        let started = Instant::now();
        if !write(store, shared, queue, &taken.batches) {
            return;
        }
        let took = started.elapsed();
        let is_slow = took > shared.config.storage.slow_sync;
        if is_slow && let Some(count) = slow.turn(Instant::now()) {
            warn!(
                count,
                millis = took.as_millis() as u64,
                "the log waited long for its disk; so did every write of a client"
            );
        }
        count(shared, &taken.batches, taken.waited, took, is_slow);
        queue.done();
        shared.inbox.persisted(taken.number);
    }
}

fn count(shared: &Shared, batches: &[LogBatch], waited: Duration, took: Duration, is_slow: bool) {
    let entries = || batches.iter().flat_map(|batch| &batch.entries);
    shared.metrics.log.written(&Written {
        batches: batches.len(),
        entries: entries().count(),
        bytes: entries().map(|entry| entry.data.len() as u64).sum(),
        waited,
        took,
        is_slow,
    });
}

/// Writes the batches, however often it takes. Nothing in them is acknowledged before, so a store that
/// failed may be opened again and the batches written anew; false when there is no more to hope for: the
/// server stops, or the store has broken a promise.
fn write(store: &dyn Store, shared: &Shared, queue: &LogQueue, batches: &[LogBatch]) -> bool {
    let mut cause = String::new();
    loop {
        match store.append(batches) {
            Ok(()) if cause.is_empty() => return true,
            Ok(()) => {
                info!("the log can be written again");
                shared.set_log_failing(false);
                return true;
            }
            Err(error) if is_final(&error) => return give_up(shared, error),
            Err(error) if cause.is_empty() => {
                cause = gist(&error);
                shared.metrics.log.failed();
                shared.set_log_failing(true);
                error!(%error, "the log cannot be written: writes are refused until it can; reads go on");
            }
            Err(error) => {
                shared.metrics.log.failed();
                debug!(%error, "the log still cannot be written");
            }
        }
        if !queue.wait_to_retry(STORE_RETRY) {
            return false;
        }
        match store.reopen() {
            Ok(reopened) if reopened.checkpoint_lost => shared.set_checkpoint_lost(),
            Ok(_) => {}
            Err(error) if is_final(&error) => return give_up(shared, error),
            Err(error) => {
                let text = gist(&error);
                if text != cause {
                    warn!(%error, "the store cannot be opened again yet");
                    cause = text;
                }
            }
        }
    }
}

/// The error without the numbers of files, of which each attempt makes new ones.
fn gist(error: &StoreError) -> String {
    let text = error.to_string();
    text.chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// Whether no further attempt can help: what was promised is gone, or what is to be written contradicts it.
pub fn is_final(error: &StoreError) -> bool {
    match error {
        StoreError::LostEntries { .. } | StoreError::NotContinuous { .. } => true,
        StoreError::Write(_)
        | StoreError::NeedsReopen
        | StoreError::Read(_)
        | StoreError::CheckpointOutsideLog { .. }
        | StoreError::CutAboveCheckpoint { .. }
        | StoreError::Inconsistent(_)
        | StoreError::Load(_)
        | StoreError::ImageGone { .. }
        | StoreError::ImageRefused(_)
        | StoreError::ImageDamaged(_)
        | StoreError::ImageIo(_)
        | StoreError::Open(_) => false,
    }
}

fn give_up(shared: &Shared, error: StoreError) -> bool {
    shared.inbox.store_lost(error);
    false
}
