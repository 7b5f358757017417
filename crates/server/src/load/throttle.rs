//! What waits over all connections, and who is turned away for it.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;
use quenda_frontend::{Admission, Connection, Gates, Newcomer, Observed, SessionThrottle};

use crate::config::ThrottleSettings;
use crate::metrics::summary::Summary;
use crate::metrics::{Counter, Figures, Page};
use crate::registry::Handle;

/// What one connection adds to the sums.
#[derive(Debug, Default)]
pub struct Waiting {
    queued: AtomicUsize,
    large: AtomicUsize,
}

/// The sums over all connections, kept while connections are locked, and the bounds on them.
#[derive(Debug)]
pub struct Throttle {
    settings: ThrottleSettings,
    /// Requests that wait.
    queued: AtomicUsize,
    /// Bytes of large requests in flight.
    large: AtomicUsize,
    /// Voters of the ensemble.
    voters: AtomicUsize,
    sessions: Mutex<Sessions>,
    /// Tokens that were missing when a session was asked for.
    deficit: Summary,
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
            large: AtomicUsize::new(0),
            voters: AtomicUsize::new(1),
            sessions: Mutex::new(Sessions {
                throttle: SessionThrottle::new(settings.sessions, now_ms),
                dice: seed | 1,
            }),
            deficit: Summary::default(),
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
        set(&handle.waiting.queued, &self.queued, connection.queued());
        if self.settings.large_threshold.is_some() {
            set(&handle.waiting.large, &self.large, connection.large_bytes());
        }
    }

    /// Counts what a connection has noted.
    pub fn count(&self, observed: &Observed) {
        self.throttled_ops.add(observed.throttled_count);
        self.stale_requests.add(observed.stale_count);
    }

    /// Requests that wait, over all connections.
    pub fn queued(&self) -> usize {
        self.queued.load(Relaxed)
    }

    /// What holds connections back now.
    pub fn gates(&self) -> Gates<'_> {
        let settings = &self.settings;
        let queued = self.queued();
        let others = self.voters.load(Relaxed).saturating_sub(1);
        let outstanding_max = match others {
            0 | 1 => settings.outstanding_max,
            _ => (settings.outstanding_max / others).max(1),
        };
        let room = |max: usize, taken: usize| max.saturating_sub(taken);
        Gates {
            busy_room: room(outstanding_max, queued),
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
