//! What waits for the log writer, and how long it may wait for more to share its sync.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use quenda_consensus::{EntryKind, LogBatch};
use quenda_tree::command::Batch;

use crate::config::Gathering;

/// A queue with one reader, the log writer's thread.
pub struct LogQueue {
    gathering: Gathering,
    state: Mutex<Waiting>,
    wake: Condvar,
}

struct Waiting {
    batches: Vec<LogBatch>,
    /// Of each of them, where that is needed: see [`Gathering::counts`].
    marks: Vec<Mark>,
    /// Transactions in all of them, where they are counted.
    txns: usize,
    /// Number of the newest Ready among `batches`.
    number: u64,
    /// When the first of them came.
    since: Option<Instant>,
    /// When the last one came, where that is noted.
    newest: Instant,
    /// When the last sync ended.
    synced: Instant,
    /// Something among them does not wait for more.
    urgent: bool,
    /// Nothing waits for more from now on.
    hurry: bool,
    /// Batches were taken and are not durable yet.
    writing: bool,
    stop: bool,
}

#[derive(Clone, Copy)]
struct Mark {
    number: u64,
    txns: usize,
    came: Instant,
}

/// What is to be written with one sync.
pub struct Taken {
    /// In order.
    pub batches: Vec<LogBatch>,
    /// Number of the newest Ready among them.
    pub number: u64,
    /// How long the first of them has waited.
    pub waited: Duration,
}

impl LogQueue {
    /// An empty queue.
    pub fn new(gathering: Gathering) -> LogQueue {
        let now = Instant::now();
        LogQueue {
            gathering,
            state: Mutex::new(Waiting {
                batches: Vec::new(),
                marks: Vec::new(),
                txns: 0,
                number: 0,
                since: None,
                newest: now,
                synced: now,
                urgent: false,
                hurry: false,
                writing: false,
                stop: false,
            }),
            wake: Condvar::new(),
        }
    }

    /// Queues the entries of one Ready.
    pub fn put(&self, number: u64, batch: LogBatch) {
        let gathers = self.gathering.counts();
        let txns = if gathers { transactions(&batch) } else { 0 };
        let mut state = self.state.lock();
        let idle = state.batches.is_empty();
        if idle || gathers {
            let now = Instant::now();
            state.since.get_or_insert(now);
            if gathers {
                state.urgent |= is_urgent(&batch);
                state.newest = now;
                state.txns += txns;
                state.marks.push(Mark {
                    number,
                    txns,
                    came: now,
                });
            }
        }
        state.batches.push(batch);
        state.number = number;
        // A writer that waits for more looks anew: whether this was enough, and how long it goes on.
        let wakes = idle || self.gathering.delays();
        drop(state);
        if wakes {
            self.wake.notify_one();
        }
    }

    /// Waits for something to write, and takes it; `None` when there is nothing and the writer is to end.
    pub fn take(&self) -> Option<Taken> {
        let mut state = self.state.lock();
        loop {
            if state.batches.is_empty() {
                if state.stop {
                    return None;
                }
                self.wake.wait(&mut state);
            } else if let Some(due) = state.due(&self.gathering)
                && Instant::now() < due
            {
                self.wake.wait_until(&mut state, due);
            } else {
                break;
            }
        }
        state.writing = true;
        Some(state.take(&self.gathering))
    }

    /// What was taken is durable.
    pub fn done(&self) {
        let mut state = self.state.lock();
        state.writing = false;
        if self.gathering.delays() {
            state.synced = Instant::now();
        }
    }

    /// Whether everything that was queued is durable.
    pub fn is_idle(&self) -> bool {
        let state = self.state.lock();
        state.batches.is_empty() && !state.writing
    }

    /// From now on nothing waits for more to share its sync.
    pub fn hurry(&self) {
        self.state.lock().hurry = true;
        self.wake.notify_one();
    }

    /// The writer is to end once the queue is empty.
    pub fn stop(&self) {
        let mut state = self.state.lock();
        state.stop = true;
        state.hurry = true;
        drop(state);
        self.wake.notify_one();
    }

    /// Waits before a further attempt to write; false when the server stops meanwhile.
    pub fn wait_to_retry(&self, pause: Duration) -> bool {
        let mut state = self.state.lock();
        let until = Instant::now() + pause;
        while !state.stop && !self.wake.wait_until(&mut state, until).timed_out() {}
        !state.stop
    }
}

impl Waiting {
    /// Until when what is here waits for more; `None` when it does not.
    fn due(&self, gathering: &Gathering) -> Option<Instant> {
        let enough = gathering.txns_max.is_some_and(|max| self.txns >= max);
        if !gathering.delays() || self.hurry || self.urgent || enough {
            return None;
        }
        let pause = self.newest + gathering.idle;
        Some(pause.min(self.synced + gathering.delay))
    }

    /// Everything, or as much from the front as one sync may carry, and at least one batch. What came as one batch
    /// stays one: a crash must not leave a part of it behind a commit index that covers all.
    fn take(&mut self, gathering: &Gathering) -> Taken {
        let since = self.since.take();
        let mut count = self.batches.len();
        if let Some(max) = gathering.txns_max
            && self.txns > max
        {
            let mut sum = 0;
            let fits = self.marks.iter().take_while(|mark| {
                sum += mark.txns;
                sum <= max
            });
            count = fits.count().max(1);
        }
        let rest = self.batches.split_off(count);
        let taken = Taken {
            batches: std::mem::replace(&mut self.batches, rest),
            number: match self.marks.get(count - 1) {
                Some(mark) => mark.number,
                None => self.number,
            },
            waited: since.map_or(Duration::ZERO, |since| since.elapsed()),
        };
        let marks = self.marks.len().min(count);
        self.txns -= self
            .marks
            .drain(..marks)
            .map(|mark| mark.txns)
            .sum::<usize>();
        self.since = self.marks.first().map(|mark| mark.came);
        self.urgent = self.batches.iter().any(is_urgent);
        taken
    }
}

/// Votes, terms, changes of who takes part and the first entry of a leader: nobody is served before they are durable.
fn is_urgent(batch: &LogBatch) -> bool {
    let mut entries = batch.entries.iter();
    batch.entries.is_empty()
        || entries.any(|entry| entry.kind != EntryKind::Normal || entry.data.is_empty())
}

fn transactions(batch: &LogBatch) -> usize {
    let count = |data: &[u8]| Batch::open(data).map_or(1, |batch| batch.count_whole());
    batch.entries.iter().map(|entry| count(&entry.data)).sum()
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use quenda_consensus::{HardState, LogEntry};
    use quenda_tree::command::{Command, Origin, start_batch};

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    fn gathering(delay: Duration, idle: Duration, txns_max: Option<usize>) -> Gathering {
        Gathering {
            delay,
            idle,
            txns_max,
        }
    }

    /// A batch of one entry with so many commands.
    fn batch(commands: usize) -> LogBatch {
        let mut data = BytesMut::new();
        start_batch(1, &mut data);
        for session in 0..commands as i64 {
            let command = Command::OpenSession {
                origin: Origin::default(),
                session,
                timeout_ms: 1000,
            };
            command.encode(&mut data);
        }
        LogBatch {
            hard_state: HardState::default(),
            entries: vec![LogEntry {
                index: 1,
                term: 1,
                kind: EntryKind::Normal,
                data: data.freeze(),
            }],
        }
    }

    fn vote() -> LogBatch {
        LogBatch {
            hard_state: HardState::default(),
            entries: Vec::new(),
        }
    }

    fn taken(queue: &LogQueue) -> (usize, u64) {
        let taken = queue.take().expect("something");
        queue.done();
        (taken.batches.len(), taken.number)
    }

    #[test]
    fn without_a_delay_everything_that_waits_is_taken_at_once() {
        let queue = LogQueue::new(Gathering::default());
        for number in 1..=50 {
            queue.put(number, batch(100));
        }
        assert!(!queue.is_idle());
        assert_eq!(taken(&queue), (50, 50));
        assert!(queue.is_idle());
        queue.put(51, batch(1));
        assert_eq!(taken(&queue), (1, 51));
        queue.stop();
        assert!(queue.take().is_none());
    }

    #[test]
    fn one_sync_carries_no_more_than_it_may_and_at_least_one_batch() {
        let queue = LogQueue::new(gathering(Duration::ZERO, Duration::ZERO, Some(10)));
        for (number, commands) in (1..).zip([4, 6, 1, 25, 9, 1]) {
            queue.put(number, batch(commands));
        }
        let turns: Vec<_> = std::iter::repeat_with(|| taken(&queue)).take(4).collect();
        assert_eq!(turns, [(2, 2), (1, 3), (1, 4), (2, 6)]);
        assert!(queue.is_idle());
    }

    #[test]
    fn a_delay_ends_with_enough_transactions_and_with_what_cannot_wait() {
        let queue = LogQueue::new(gathering(LONG, LONG, Some(10)));
        queue.put(1, batch(9));
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| taken(&queue));
            queue.put(2, batch(1));
            assert_eq!(writer.join().expect("no panic"), (2, 2));
            let writer = scope.spawn(|| taken(&queue));
            queue.put(3, batch(1));
            queue.put(4, vote());
            let (batches, number) = writer.join().expect("no panic");
            assert_eq!((batches, number), (2, 4));
        });
    }

    #[test]
    fn a_delay_ends_after_a_pause_and_after_its_time() {
        let short = Duration::from_millis(1);
        for (delay, idle) in [(LONG, short), (short, LONG)] {
            let queue = LogQueue::new(gathering(delay, idle, None));
            queue.put(1, batch(1));
            assert_eq!(taken(&queue), (1, 1));
        }
    }

    #[test]
    fn a_stop_does_not_wait() {
        for stops in [LogQueue::stop, LogQueue::hurry] {
            let queue = LogQueue::new(gathering(LONG, LONG, None));
            queue.put(1, batch(1));
            std::thread::scope(|scope| {
                let writer = scope.spawn(|| taken(&queue));
                stops(&queue);
                assert_eq!(writer.join().expect("no panic"), (1, 1));
            });
        }
    }
}
