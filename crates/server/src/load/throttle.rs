//! What waits over all connections, and who is turned away for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;
use quenda_frontend::{Admission, Connection, Gates, Newcomer, Observed, SessionThrottle, Turns};

use crate::config::ThrottleSettings;
use crate::metrics::summary::{Percentiles, Summary};
use crate::metrics::{Counter, Figures, Page};
use crate::registry::Handle;

/// What one connection adds to the sums.
#[derive(Debug, Default)]
pub struct Waiting {
    queued: AtomicUsize,
    large: AtomicUsize,
    /// Whether it has a place among those that are held back. Its own task alone sets and clears it.
    is_held: AtomicBool,
    /// Requests that it may take now that its turn has come.
    turn: AtomicUsize,
    /// Its task has ended.
    is_gone: AtomicBool,
}

/// The sums over all connections, kept while connections are locked, and the bounds on them.
#[derive(Debug)]
pub struct Throttle {
    settings: ThrottleSettings,
    /// Requests that wait for the log or the leader.
    queued: AtomicUsize,
    /// Requests of turns that were given and are not taken yet.
    reserved: AtomicUsize,
    /// Connections that are held back. Locked for a batch of requests while there are any, never for each.
    turns: Mutex<Turns<Arc<Handle>>>,
    /// Whether there are any.
    is_crowded: AtomicBool,
    /// Bytes of large requests in flight.
    large: AtomicUsize,
    /// Voters of the ensemble.
    voters: AtomicUsize,
    sessions: Mutex<Sessions>,
    /// Tokens that were missing when a session was asked for.
    deficit: Summary,
    /// How long requests waited while nobody was read, ms.
    queue_ms: Percentiles,
    /// Requests answered with ThrottledOp.
    pub throttled_ops: Counter,
    /// Requests that were taken although nobody waited for them.
    pub stale_requests: Counter,
    /// Requests that were dropped, as nobody waited for them.
    pub stale_dropped: Counter,
    /// Answers whose clients had gone.
    pub stale_replies: Counter,
    /// How often a connection was not read because too many requests waited.
    pub waits: Counter,
    /// Connections closed for a large request.
    pub large_refused: Counter,
}

#[derive(Debug)]
struct Sessions {
    throttle: SessionThrottle,
    /// Xorshift; never 0.
    dice: u64,
}

impl Throttle {
    /// Nothing waits.
    pub fn new(settings: ThrottleSettings, seed: u64, now_ms: u64) -> Throttle {
        Throttle {
            settings,
            queued: AtomicUsize::new(0),
            reserved: AtomicUsize::new(0),
            turns: Mutex::default(),
            is_crowded: AtomicBool::new(false),
            large: AtomicUsize::new(0),
            voters: AtomicUsize::new(1),
            sessions: Mutex::new(Sessions {
                throttle: SessionThrottle::new(settings.sessions, now_ms),
                dice: seed | 1,
            }),
            deficit: Summary::default(),
            queue_ms: Percentiles::default(),
            throttled_ops: Counter::default(),
            stale_requests: Counter::default(),
            stale_dropped: Counter::default(),
            stale_replies: Counter::default(),
            waits: Counter::default(),
            large_refused: Counter::default(),
        }
    }

    /// The settings.
    pub fn settings(&self) -> &ThrottleSettings {
        &self.settings
    }

    /// Each member takes its part of what the leader may have waiting.
    pub fn set_voters(&self, voters: usize) {
        self.voters.store(voters, Relaxed);
    }

    /// Takes note of what waits on a connection after that has changed.
    pub fn note(&self, handle: &Handle, connection: &Connection) {
        set(&handle.waiting.queued, &self.queued, connection.awaited());
        if self.settings.large_threshold.is_some() {
            set(&handle.waiting.large, &self.large, connection.large_bytes());
        }
    }

    /// Counts what a connection has noted.
    pub fn count(&self, observed: &Observed) {
        self.throttled_ops.add(observed.throttled_count);
        self.stale_requests.add(observed.stale_count);
        for (waited_ms, count) in &observed.throttle_waits {
            (0..*count).for_each(|_| self.queue_ms.observe(*waited_ms));
        }
    }

    /// What this member lets wait before it holds back connections.
    fn outstanding_max(&self) -> usize {
        let max = self.settings.outstanding_max;
        match self.voters.load(Relaxed).saturating_sub(1) {
            0 | 1 => max,
            others => (max / others).max(1),
        }
    }

    /// Requests that wait, and those that may come at any moment.
    fn claimed(&self) -> usize {
        self.queued.load(Relaxed) + self.reserved.load(Relaxed)
    }

    /// Fits the gates to a connection that is about to take requests; gives its turn, if that has come, which it
    /// has to give back by [`Self::end_turn`].
    pub fn begin_turn(&self, handle: &Handle, gates: &mut Gates<'_>) -> usize {
        let waiting = &handle.waiting;
        if !waiting.is_held.load(Relaxed) {
            if self.is_crowded.load(Relaxed) {
                gates.busy_room = 0;
            }
            return 0;
        }
        let turn = waiting.turn.swap(0, Relaxed);
        gates.busy_room = turn;
        waiting.is_held.store(turn == 0, Relaxed);
        turn
    }

    /// It has taken what it may, which is noted. If it is held back now, it gets a place behind the others.
    pub fn end_turn(&self, handle: &Arc<Handle>, turn: usize, is_held_back: bool) {
        self.reserved.fetch_sub(turn, Relaxed);
        let is_new = is_held_back && !handle.waiting.is_held.load(Relaxed);
        if turn == 0 && !is_new {
            return;
        }
        let mut turns = self.turns.lock();
        if is_new {
            handle.waiting.is_held.store(true, Relaxed);
            turns.wait(Arc::clone(handle));
        }
        self.give(&mut turns);
    }

    /// Requests were answered, which is noted: some that are held back go on. Who is held back looks at the sum under the
    /// same lock, so that no answer is missed.
    pub fn give_turns(&self) {
        self.give(&mut self.turns.lock());
    }

    /// The task of a connection has ended, which is noted.
    pub fn forget(&self, handle: &Handle) {
        let mut turns = self.turns.lock();
        handle.waiting.is_gone.store(true, Relaxed);
        let turn = handle.waiting.turn.swap(0, Relaxed);
        self.reserved.fetch_sub(turn, Relaxed);
        self.give(&mut turns);
    }

    fn give(&self, turns: &mut Turns<Arc<Handle>>) {
        while let Some((handle, turn)) = turns.next(self.claimed(), self.outstanding_max()) {
            if !handle.waiting.is_gone.load(Relaxed) {
                self.reserved.fetch_add(turn, Relaxed);
                handle.waiting.turn.store(turn, Relaxed);
                handle.wake.notify_one();
            }
        }
        self.is_crowded.store(!turns.is_empty(), Relaxed);
    }

    /// What holds connections back now.
    pub fn gates(&self) -> Gates<'_> {
        let settings = &self.settings;
        let queued = self.queued.load(Relaxed);
        let room = |max: usize, taken: usize| max.saturating_sub(taken);
        Gates {
            busy_room: room(self.outstanding_max(), self.claimed()),
            room: settings
                .requests_max
                .map_or(usize::MAX, |max| room(max, queued)),
            large_room: room(settings.large_max, self.large.load(Relaxed)),
            admission: match settings.sessions.tokens {
                0 => None,
                _ => Some(self),
            },
        }
    }
}

impl Admission for Throttle {
    fn admit(&self, newcomer: Newcomer, now_ms: u64) -> bool {
        let mut sessions = self.sessions.lock();
        let Sessions { throttle, dice } = &mut *sessions;
        *dice ^= *dice << 13;
        *dice ^= *dice >> 7;
        *dice ^= *dice << 17;
        let admitted = throttle.admit(newcomer, now_ms, (*dice % 1_000_000) as u32);
        self.deficit.observe(throttle.deficit().into());
        admitted
    }
}

impl Figures for Throttle {
    fn tell(&self, page: &mut dyn Page) {
        let probability = self.sessions.lock().throttle.drop_probability();
        page.real("connection_drop_probability", probability);
        page.summary("connection_token_deficit", &self.deficit);
        page.counter("throttled_ops", &self.throttled_ops);
        page.counter("stale_requests", &self.stale_requests);
        page.counter("stale_requests_dropped", &self.stale_dropped);
        page.counter("stale_replies", &self.stale_replies);
        page.counter("request_throttle_wait_count", &self.waits);
        page.percentiles("request_throttle_queue_time_ms", &self.queue_ms);
        page.counter("large_requests_rejected", &self.large_refused);
    }
}

/// Sets one connection's part and the sum with it.
fn set(part: &AtomicUsize, sum: &AtomicUsize, now: usize) {
    let before = part.swap(now, Relaxed);
    if now > before {
        sum.fetch_add(now - before, Relaxed);
    } else if now < before {
        sum.fetch_sub(before - now, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use quenda_frontend::{ConnectionId, Settings};
    use tokio::sync::Notify;

    use super::*;
    use crate::config::ServerConfig;
    use crate::registry::Door;

    fn handle(id: u64) -> Arc<Handle> {
        let address: IpAddr = [127, 0, 0, 1].into();
        let settings = Arc::new(Settings::default());
        Arc::new(Handle {
            id: ConnectionId(id),
            peer: (address, 1).into(),
            door: Door::Client,
            connection: Mutex::new(Connection::new(ConnectionId(id), 1, address, 0, settings)),
            wake: Notify::new(),
            marked: false.into(),
            waiting: Waiting::default(),
            unsent: 0.into(),
        })
    }

    fn throttle(outstanding_max: usize) -> Throttle {
        let settings = ThrottleSettings {
            outstanding_max,
            ..ServerConfig::default().throttle
        };
        Throttle::new(settings, 1, 0)
    }

    /// What a connection may take now that it looks, and whether it is held back then.
    fn look(throttle: &Throttle, handle: &Arc<Handle>, wants: usize) -> usize {
        let mut gates = throttle.gates();
        let turn = throttle.begin_turn(handle, &mut gates);
        let taken = wants.min(gates.busy_room);
        let before = handle.waiting.queued.load(Relaxed);
        set(&handle.waiting.queued, &throttle.queued, before + taken);
        throttle.end_turn(handle, turn, taken < wants);
        taken
    }

    fn answer(throttle: &Throttle, handle: &Handle, count: usize) {
        let before = handle.waiting.queued.load(Relaxed);
        set(&handle.waiting.queued, &throttle.queued, before - count);
        throttle.give_turns();
    }

    #[test]
    fn who_is_held_back_goes_on_in_turn() {
        let throttle = throttle(32);
        let (first, second, third) = (handle(1), handle(2), handle(3));
        assert_eq!(look(&throttle, &first, 32), 32);
        assert_eq!(look(&throttle, &second, 9), 0);
        answer(&throttle, &first, 1);
        // There is room for one, but not for a turn; and whoever comes now comes behind.
        assert_eq!(look(&throttle, &second, 9), 0);
        assert_eq!(look(&throttle, &third, 9), 0);
        answer(&throttle, &first, 6);
        assert_eq!(look(&throttle, &third, 9), 3);
        assert_eq!(look(&throttle, &second, 9), 4);
        assert_eq!(throttle.claimed(), 32);
        assert_eq!(look(&throttle, &second, 5), 0);
    }

    #[test]
    fn a_turn_that_is_not_used_is_for_the_next_one() {
        let throttle = throttle(32);
        let (busy, gone, idle, last) = (handle(1), handle(2), handle(3), handle(4));
        assert_eq!(look(&throttle, &busy, 32), 32);
        for waiting in [&gone, &idle, &last] {
            assert_eq!(look(&throttle, waiting, 4), 0);
        }
        answer(&throttle, &busy, 4);
        throttle.forget(&gone);
        assert_eq!((throttle.claimed(), look(&throttle, &idle, 0)), (32, 0));
        assert_eq!(look(&throttle, &last, 4), 4);
        // Who has gone gets no turn any more.
        assert_eq!(look(&throttle, &gone, 4), 0);
        answer(&throttle, &busy, 28);
        assert_eq!(throttle.claimed(), 4);
    }
}
