//! The core thread's inbox: what connections, the log writer and the operator hand over to it.
//!
//! Commands of all connections are joined into one buffer under one short lock, so that handing over
//! costs a copy and at most one wake-up, and the core takes everything that came in one go.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use parking_lot::{Condvar, Mutex};
use quenda_node::{Member, PeerState};
use quenda_storage::{ImageInfo, StoreError};

use crate::peers::Delivery;

/// A question that only the core thread can answer, or an order that it alone can carry out.
pub type Question = Box<dyn FnOnce(&mut Member) + Send>;

/// What the transport has to say about another member, in the order in which it happened.
#[derive(Debug)]
pub enum PeerNews {
    /// Frames of a member.
    Frames(Delivery),
    /// That member is connected, and told its state.
    Up(u64, PeerState),
    /// Its process closed the connection.
    Lost(u64),
    /// Frames to it were dropped.
    Unreachable(u64),
}

/// What came in since the last look.
#[derive(Default)]
pub struct Arrivals {
    /// Encoded commands, in order of arrival, all of `era`.
    pub commands: BytesMut,
    /// When the first of them came.
    pub since: Option<Instant>,
    /// Connections that ask for a barrier, as often as they do, all in `era`.
    pub barriers: Vec<u64>,
    /// The era of the member in which `commands` and `barriers` were asked for.
    pub era: u64,
    /// News of the other members.
    pub peers: Vec<PeerNews>,
    /// A snapshot was fetched: its index, and whether it is complete.
    pub fetched: Option<(u64, bool)>,
    /// An image for a member that lags was made.
    pub image: Option<ImageInfo>,
    /// Number of the newest Ready whose entries are on disk, 0 if none.
    pub persisted: u64,
    /// Sessions that were heard.
    pub touched: Vec<i64>,
    /// Log index up to which a checkpoint is durable, 0 if none.
    pub checkpointed: u64,
    /// Questions about the member, and orders of the operator.
    pub questions: Vec<Question>,
    /// The server is to stop.
    pub stop: bool,
    /// The store has broken a promise: the member must not go on.
    pub lost: Option<StoreError>,
}

impl Arrivals {
    fn is_empty(&self) -> bool {
        self.commands.is_empty()
            && self.barriers.is_empty()
            && self.peers.is_empty()
            && self.fetched.is_none()
            && self.image.is_none()
            && self.persisted == 0
            && self.checkpointed == 0
            && self.questions.is_empty()
            && !self.stop
            && self.lost.is_none()
    }
}

/// A queue with one reader, the core thread.
#[derive(Default)]
pub struct Inbox {
    state: Mutex<Arrivals>,
    wake: Condvar,
    /// Bytes of commands that are not in the log yet; a hint, for connections to slow down.
    backlog: AtomicUsize,
}

impl Inbox {
    /// Hands over what one connection asks for: encoded commands, and `barriers` for its syncs. `era` is
    /// the member's when the requests were read; what is older than something else here is dropped, its
    /// connection was closed.
    pub fn submit(&self, era: u64, commands: &[u8], connection: u64, barriers: usize) {
        self.backlog.fetch_add(commands.len(), Ordering::Relaxed);
        self.put(|arrivals| {
            if era > arrivals.era {
                arrivals.commands.clear();
                arrivals.barriers.clear();
                arrivals.era = era;
            }
            if era == arrivals.era {
                if !commands.is_empty() {
                    arrivals.since.get_or_insert_with(Instant::now);
                }
                arrivals.commands.extend_from_slice(commands);
                let asked = std::iter::repeat_n(connection, barriers);
                arrivals.barriers.extend(asked);
            }
        });
    }

    /// News of another member. What the transport may hand over before the core has taken it is the
    /// transport's to bound.
    pub fn peer(&self, news: PeerNews) {
        self.put(|arrivals| arrivals.peers.push(news));
    }

    /// A snapshot of this index was fetched from another member, or cannot be had.
    pub fn fetched(&self, index: u64, complete: bool) {
        self.put(|arrivals| arrivals.fetched = Some((index, complete)));
    }

    /// An image for a member that lags was made.
    pub fn image(&self, image: ImageInfo) {
        self.put(|arrivals| arrivals.image = Some(image));
    }

    /// A session was heard. Does not wake the core: the next tick is soon enough.
    pub fn touched(&self, session: i64) {
        self.state.lock().touched.push(session);
    }

    /// Everything up to this Ready is on disk.
    pub fn persisted(&self, number: u64) {
        self.put(|arrivals| arrivals.persisted = arrivals.persisted.max(number));
    }

    /// A checkpoint up to this log index is durable.
    pub fn checkpointed(&self, index: u64) {
        self.put(|arrivals| arrivals.checkpointed = arrivals.checkpointed.max(index));
    }

    /// Asks the core thread; `None` when it does not answer within `patience`.
    pub fn ask<T: Send + 'static>(
        &self,
        patience: Duration,
        question: impl FnOnce(&mut Member) -> T + Send + 'static,
    ) -> Option<T> {
        let (sender, answer) = std::sync::mpsc::sync_channel(1);
        self.put(|arrivals| {
            arrivals.questions.push(Box::new(move |member| {
                // Whoever asked may have lost patience; then nobody wants the answer.
                let _ = sender.send(question(member));
            }));
        });
        answer.recv_timeout(patience).ok()
    }

    /// Asks the core to stop.
    pub fn stop(&self) {
        self.put(|arrivals| arrivals.stop = true);
    }

    /// The store has broken a promise.
    pub fn store_lost(&self, error: StoreError) {
        self.put(|arrivals| arrivals.lost = Some(error));
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

    /// Whether more than `bytes` of commands wait for the core.
    pub fn is_above(&self, bytes: usize) -> bool {
        self.backlog.load(Ordering::Relaxed) > bytes
    }

    /// Bytes of commands that wait for the core, or in it for the log.
    pub fn backlog(&self) -> usize {
        self.backlog.load(Ordering::Relaxed)
    }

    /// The core tells how many bytes of commands it holds itself, in front of the log.
    pub fn set_queued(&self, bytes: usize) {
        self.backlog.store(bytes, Ordering::Relaxed);
    }

    /// Waits for something to do, at most until `deadline`, and takes all of it.
    pub fn take(&self, deadline: Instant) -> Arrivals {
        let mut state = self.state.lock();
        while state.is_empty() {
            if self.wake.wait_until(&mut state, deadline).timed_out() {
                break;
            }
        }
        let arrivals = std::mem::take(&mut *state);
        state.era = arrivals.era;
        arrivals
    }
}

impl std::fmt::Debug for Inbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inbox")
            .field("backlog", &self.backlog)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_taken_once() {
        let inbox = Inbox::default();
        inbox.submit(1, b"ab", 7, 0);
        inbox.submit(1, b"cd", 8, 2);
        inbox.persisted(3);
        inbox.touched(9);
        let soon = Instant::now() + Duration::from_millis(1);
        let arrivals = inbox.take(soon);
        assert_eq!(&arrivals.commands[..], b"abcd");
        assert_eq!(arrivals.barriers, [8, 8]);
        assert_eq!((arrivals.persisted, arrivals.touched), (3, vec![9]));
        assert!(inbox.take(soon).is_empty());
    }

    #[test]
    fn what_was_asked_for_in_an_older_era_is_dropped() {
        let inbox = Inbox::default();
        let soon = Instant::now() + Duration::from_millis(1);
        inbox.submit(1, b"old", 7, 1);
        inbox.submit(2, b"new", 8, 1);
        inbox.submit(1, b"old", 7, 1);
        let arrivals = inbox.take(soon);
        assert_eq!(
            (&arrivals.commands[..], arrivals.barriers, arrivals.era),
            (&b"new"[..], vec![8], 2)
        );
        inbox.submit(1, b"older than what was taken", 7, 1);
        assert!(inbox.take(soon).is_empty());
    }

    #[test]
    fn a_waiting_core_wakes_up() {
        let inbox = Inbox::default();
        std::thread::scope(|scope| {
            let core = scope.spawn(|| inbox.take(Instant::now() + Duration::from_secs(60)));
            inbox.submit(1, b"x", 7, 0);
            assert_eq!(&core.join().expect("core").commands[..], b"x");
        });
    }
}
