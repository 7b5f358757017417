//! The log writer: one thread that makes batches of entries durable, as many as wait with one sync.

use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};
use quenda_consensus::LogBatch;
use quenda_storage::Store;
use tracing::{debug, error, info};

use crate::limits::STORE_RETRY;
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
        state.batches.push(batch);
        state.number = number;
        drop(state);
        if idle {
            self.queue.wake.notify_one();
        }
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
    loop {
        let mut state = queue.state.lock();
        while state.batches.is_empty() {
            if state.stop {
                return;
            }
            queue.wake.wait(&mut state);
        }
        let batches = std::mem::take(&mut state.batches);
        let number = state.number;
        drop(state);
        if !write(store, shared, queue, &batches) {
            return;
        }
        shared.inbox.persisted(number);
    }
}

/// Writes the batches, however often it takes. Nothing in them is acknowledged before, so a store that
/// failed may be opened again and the batches written anew; false when the server stops meanwhile.
fn write(store: &dyn Store, shared: &Shared, queue: &Queue, batches: &[LogBatch]) -> bool {
    let mut failed = false;
    loop {
        match store.append(batches) {
            Ok(()) => {
                if failed {
                    info!("the log can be written again");
                    shared.set_log_failing(false);
                }
                return true;
            }
            Err(error) if failed => debug!(%error, "the log still cannot be written"),
            Err(error) => {
                failed = true;
                shared.set_log_failing(true);
                error!(%error, "the log cannot be written: writes are refused until it can; reads go on");
            }
        }
        let mut state = queue.state.lock();
        if !state.stop {
            queue.wake.wait_for(&mut state, STORE_RETRY);
        }
        if state.stop {
            return false;
        }
        drop(state);
        match store.reopen() {
            Ok(reopened) if reopened.checkpoint_lost => shared.set_checkpoint_lost(),
            Ok(_) => {}
            Err(error) => debug!(%error, "the store cannot be opened again yet"),
        }
    }
}
