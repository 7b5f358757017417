//! The core thread's inbox: what connections, the log writer and the operator hand over to it.
//!
//! Commands of all connections are joined into one buffer under one short lock, so that handing over
//! costs a copy and at most one wake-up, and the core takes everything that came in one go.

use std::time::Instant;

use bytes::BytesMut;
use parking_lot::{Condvar, Mutex};

/// What came in since the last look.
#[derive(Debug, Default)]
pub struct Arrivals {
    /// Encoded commands, in order of arrival.
    pub commands: BytesMut,
    /// Number of the newest Ready whose entries are on disk, 0 if none.
    pub persisted: u64,
    /// The log could not be written; the store has to be opened again.
    pub log_failed: bool,
    /// Sessions that were heard.
    pub touched: Vec<i64>,
    /// Log index up to which a checkpoint is durable, 0 if none.
    pub checkpointed: u64,
    /// A checkpoint could not be written.
    pub checkpoint_failed: bool,
    /// The server is to stop.
    pub stop: bool,
}

impl Arrivals {
    fn is_empty(&self) -> bool {
        self.commands.is_empty()
            && self.persisted == 0
            && self.checkpointed == 0
            && !self.log_failed
            && !self.checkpoint_failed
            && !self.stop
    }
}

/// A queue with one reader, the core thread.
#[derive(Debug, Default)]
pub struct Inbox {
    state: Mutex<Arrivals>,
    wake: Condvar,
}

impl Inbox {
    /// Hands over encoded commands of one connection.
    pub fn submit(&self, commands: &[u8]) {
        self.put(|arrivals| arrivals.commands.extend_from_slice(commands));
    }

    /// A session was heard. Does not wake the core: the next tick is soon enough.
    pub fn touched(&self, session: i64) {
        self.state.lock().touched.push(session);
    }

    /// Everything up to this Ready is on disk.
    pub fn persisted(&self, number: u64) {
        self.put(|arrivals| arrivals.persisted = arrivals.persisted.max(number));
    }

    /// The log writer gave up on its store.
    pub fn log_failed(&self) {
        self.put(|arrivals| arrivals.log_failed = true);
    }

    /// A checkpoint up to this log index is durable.
    pub fn checkpointed(&self, index: u64) {
        self.put(|arrivals| arrivals.checkpointed = arrivals.checkpointed.max(index));
    }

    /// A checkpoint could not be written.
    pub fn checkpoint_failed(&self) {
        self.put(|arrivals| arrivals.checkpoint_failed = true);
    }

    /// Asks the core to stop.
    pub fn stop(&self) {
        self.put(|arrivals| arrivals.stop = true);
    }

    fn put(&self, change: impl FnOnce(&mut Arrivals)) {
        let mut state = self.state.lock();
        let idle = state.is_empty();
        change(&mut state);
        drop(state);
        if idle {
            self.wake.notify_one();
        }
    }

    /// Bytes of commands that wait; connections slow down above a bound.
    pub fn backlog_bytes(&self) -> usize {
        self.state.lock().commands.len()
    }

    /// Waits for something to do, at most until `deadline`, and takes all of it.
    pub fn take(&self, deadline: Instant) -> Arrivals {
        let mut state = self.state.lock();
        while state.is_empty() {
            if self.wake.wait_until(&mut state, deadline).timed_out() {
                break;
            }
        }
        std::mem::take(&mut *state)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn everything_is_taken_once() {
        let inbox = Inbox::default();
        inbox.submit(b"ab");
        inbox.submit(b"cd");
        inbox.persisted(3);
        inbox.touched(9);
        let soon = Instant::now() + Duration::from_millis(1);
        let arrivals = inbox.take(soon);
        assert_eq!(&arrivals.commands[..], b"abcd");
        assert_eq!((arrivals.persisted, arrivals.touched), (3, vec![9]));
        assert!(inbox.take(soon).is_empty());
    }

    #[test]
    fn a_waiting_core_wakes_up() {
        let inbox = Inbox::default();
        std::thread::scope(|scope| {
            let core = scope.spawn(|| inbox.take(Instant::now() + Duration::from_secs(60)));
            inbox.submit(b"x");
            assert_eq!(&core.join().expect("core").commands[..], b"x");
        });
    }
}
