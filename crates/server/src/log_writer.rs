//! The log writer: one thread that makes batches of entries durable, as many as wait with one sync.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use quenda_consensus::LogBatch;
use quenda_storage::{Store, StoreError};
use tracing::{debug, error, info, warn};

use crate::calm::Calm;
use crate::limits::STORE_RETRY;
use crate::metrics::Written;
use crate::shared::Shared;

/// The way to the log writer's thread.
pub struct LogWriter {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<Waiting>,
    wake: Condvar,
}

#[derive(Default)]
struct Waiting {
    batches: Vec<LogBatch>,
    /// Number of the newest Ready among `batches`.
    number: u64,
    /// When the first of them came.
    since: Option<Instant>,
    /// Batches were taken and are not durable yet.
    writing: bool,
    stop: bool,
}

impl LogWriter {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(store: Arc<dyn Store>, shared: Arc<Shared>) -> std::io::Result<LogWriter> {
        let queue = Arc::new(Queue::default());
        let waiting = Arc::clone(&queue);
        let thread = crate::thread::spawn("quenda-log", move || run(&*store, &shared, &waiting))?;
        Ok(LogWriter {
            queue,
            thread: Some(thread),
        })
    }

    /// Queues the entries of one Ready; its number is reported to the inbox once they are durable.
    pub fn write(&self, number: u64, batch: LogBatch) {
        let mut state = self.queue.state.lock();
        let idle = state.batches.is_empty();
        if idle {
            state.since = Some(Instant::now());
        }
        state.batches.push(batch);
        state.number = number;
        drop(state);
        if idle {
            self.queue.wake.notify_one();
        }
    }

    /// Whether everything that was queued is durable.
    pub fn is_idle(&self) -> bool {
        let state = self.queue.state.lock();
        state.batches.is_empty() && !state.writing
    }

    /// Ends the thread; what is queued is written first.
    pub fn stop(&mut self) {
        self.queue.state.lock().stop = true;
        self.queue.wake.notify_one();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            error!("the log writer had panicked");
        }
    }
}

fn run(store: &dyn Store, shared: &Shared, queue: &Queue) {
    let mut slow = Calm::new();
    loop {
        let mut state = queue.state.lock();
        while state.batches.is_empty() {
            if state.stop {
                return;
            }
            queue.wake.wait(&mut state);
        }
        let batches = std::mem::take(&mut state.batches);
        let waited = state.since.take().map(|since| since.elapsed());
        let number = state.number;
        state.writing = true;
        drop(state);
        let started = Instant::now();
        if !write(store, shared, queue, &batches) {
            return;
        }
        let waited = waited.unwrap_or_default();
        let took = started.elapsed();
        let is_slow = took > shared.config.storage.slow_sync;
        if is_slow && let Some(count) = slow.turn(Instant::now()) {
            warn!(
                count,
                millis = took.as_millis() as u64,
                "the log waited long for its disk; so did every write of a client"
            );
        }
        count(shared, &batches, waited, took, is_slow);
        queue.state.lock().writing = false;
        shared.inbox.persisted(number);
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
fn write(store: &dyn Store, shared: &Shared, queue: &Queue, batches: &[LogBatch]) -> bool {
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
        if !wait_to_retry(queue) {
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

/// Waits [`STORE_RETRY`]; false when the server stops meanwhile.
fn wait_to_retry(queue: &Queue) -> bool {
    let mut state = queue.state.lock();
    if !state.stop {
        queue.wake.wait_for(&mut state, STORE_RETRY);
    }
    !state.stop
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
