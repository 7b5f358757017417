//! Takes the notes of connections, and keeps what is told of them.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use parking_lot::Mutex;
use quenda_frontend::{Named, Observation, Observed, Part, Sampling};
use quenda_proto::Op;
use quenda_proto::op::OpKind;
use quenda_tree::QuotaExcess;
use tracing::warn;

use super::figures::Namespaces;
use super::named::{Recent, RecentHerd, RecentMisuse, RecentSlow};
use super::report::{Counts, LoadReport, MisuseKind};
use super::window::{Minute, Requester, Window};
use crate::calm::Calm;
use crate::config::LoadSettings;
use crate::limits::{LOAD_EXACT_PER_SECOND, LOAD_TURNS_MAX, QUOTA_NAMESPACES_MAX, QUOTA_REPORT};
use crate::quota_refusals::namespace;

/// The load of one member.
#[derive(Debug)]
pub struct LoadMonitor {
    settings: LoadSettings,
    window: Mutex<Window>,
    /// Bytes by namespace.
    pub(super) namespaces: Namespaces,
    exact: AtomicU32,
    recent: Mutex<Recent>,
    counters: Counters,
    /// When the core thread took up what had come, newest last.
    turns: Mutex<VecDeque<u64>>,
    slow_said: Mutex<Calm>,
    herd_said: Mutex<Calm>,
    /// When it was said of which quota that it is exceeded.
    quotas_said: Mutex<HashMap<Box<str>, Instant>>,
    /// The last report with the time it was made.
    pub(super) report: Mutex<Option<(u64, Arc<LoadReport>)>>,
}

#[derive(Debug, Default)]
struct Counters {
    slow: AtomicU64,
    herds: AtomicU64,
    misuse: [AtomicU64; MisuseKind::ALL.len()],
}

impl LoadMonitor {
    /// Nothing has happened yet.
    pub fn new(settings: LoadSettings) -> LoadMonitor {
        LoadMonitor {
            settings,
            window: Mutex::new(Window::new(settings.prefix_depth)),
            namespaces: Namespaces::bounded(QUOTA_NAMESPACES_MAX),
            exact: AtomicU32::new(Sampling::default().exact),
            recent: Mutex::default(),
            counters: Counters::default(),
            turns: Mutex::default(),
            slow_said: Mutex::new(Calm::new()),
            herd_said: Mutex::new(Calm::new()),
            quotas_said: Mutex::default(),
            report: Mutex::default(),
        }
    }

    /// What connections are to name one by one.
    pub fn observation(settings: &LoadSettings) -> Observation {
        let above = |bound: u64| if bound == 0 { u64::MAX } else { bound };
        Observation {
            slow_ms: above(settings.slow_request_ms),
            value_bytes: above(settings.large_write_bytes as u64) as usize,
        }
    }

    /// The settings.
    pub fn settings(&self) -> &LoadSettings {
        &self.settings
    }

    /// How connections are to choose samples at present.
    pub fn sampling(&self) -> Sampling {
        Sampling {
            exact: self.exact.load(Relaxed),
            ..Sampling::default()
        }
    }

    /// The more connections there are, the fewer requests of each are noted one by one.
    pub fn set_connections(&self, connections: usize) {
        let each = LOAD_EXACT_PER_SECOND / connections.max(1) as u32;
        let exact = each.clamp(2, Sampling::default().exact);
        self.exact.store(exact, Relaxed);
    }

    /// Takes the notes of a connection.
    pub fn take(&self, who: Requester, observed: &Observed) {
        if observed.slow_count > 0 {
            self.counters.slow.fetch_add(observed.slow_count, Relaxed);
            for request in &observed.slow {
                self.tell_slow(who, request, observed.slow_count);
            }
        }
        if observed.large_count > 0 {
            let count = &self.counters.misuse[MisuseKind::LargeWrite as usize];
            count.fetch_add(observed.large_count, Relaxed);
            for request in &observed.large {
                self.tell_misuse(RecentMisuse {
                    kind: MisuseKind::LargeWrite,
                    path: request.path.clone(),
                    value: request.bytes_in,
                    limit: self.settings.large_write_bytes as u64,
                    last: who.session.map(|session| (session, who.client)),
                    at_ms: request.answered_ms,
                });
            }
        }
        self.window.lock().add(who, observed);
        self.count_namespaces(observed);
    }

    /// Each sample once: mean and extremes are those of the requests, sum and count those of the samples.
    fn count_namespaces(&self, observed: &Observed) {
        for sample in &observed.samples {
            let path = observed.path(sample);
            let Some(namespace) = namespace(&path) else {
                continue;
            };
            let (set, bytes) = match sample.op.kind() {
                OpKind::Write => (&self.namespaces.written, sample.bytes_in),
                _ => (&self.namespaces.read, sample.bytes_out),
            };
            if sample.part == Part::Whole
                && let Some(summary) = set.get(namespace)
            {
                summary.observe(bytes.into());
            }
        }
    }

    fn tell_slow(&self, who: Requester, request: &Named, _count: u64) {
        let total_ms = request.answered_ms - request.received_ms;
        let goes_to_log = request.op.kind() == OpKind::Write || request.op == Op::CreateSession;
        let queue_ms = match goes_to_log {
            true => self
                .taken_up(request.received_ms)
                .map_or(0, |at_ms| (at_ms - request.received_ms).min(total_ms)),
            false => total_ms,
        };
        let slow = RecentSlow {
            op: request.op,
            path: request.path.clone(),
            who,
            queue_ms,
            commit_ms: total_ms - queue_ms,
            at_ms: request.answered_ms,
        };
        if let Some(count) = self.slow_said.lock().turn(Instant::now()) {
            let session = who.session.unwrap_or_default();
            warn!(
                count,
                op = request.op.name(),
                path = ?request.path,
                session = format!("{session:#x}"),
                client = %who.client,
                queue_ms,
                commit_ms = slow.commit_ms,
                total_ms,
                "slow requests"
            );
        }
        self.recent.lock().add_slow(slow);
    }

    /// Takes note of something that does not belong here; a line in the log if it is new.
    pub fn tell_misuse(&self, misuse: RecentMisuse) {
        let line = misuse.clone();
        if !self.recent.lock().add_misuse(misuse) {
            return;
        }
        let (session, client) = line.last.unzip();
        let session = format!("{:#x}", session.unwrap_or_default());
        let client = client.map(|client: SocketAddr| client.to_string());
        warn!(
            kind = line.kind.name(),
            path = ?line.path,
            value = line.value,
            limit = line.limit,
            session,
            client = client.unwrap_or_default(),
            "data-plane misuse: {}",
            line.kind.advice()
        );
    }

    /// Something was found once more when all was looked through.
    pub fn count_misuse(&self, kind: MisuseKind) {
        self.counters.misuse[kind as usize].fetch_add(1, Relaxed);
    }

    /// A change has woken so many watchers.
    pub fn fanned_out(&self, path: &str, watchers: u64, now_ms: u64) {
        let bound = self.settings.herd_watchers;
        if bound == 0 || watchers <= bound {
            return;
        }
        self.counters.herds.fetch_add(1, Relaxed);
        if let Some(count) = self.herd_said.lock().turn(Instant::now()) {
            warn!(
                count,
                ?path,
                watchers,
                limit = bound,
                "herd: one change woke very many watchers; let each client watch only its predecessor, or a part of the tree"
            );
        }
        self.recent.lock().add_herd(RecentHerd {
            path: path.into(),
            watchers,
            at_ms: now_ms,
        });
    }

    /// A write has gone over a limit that does not refuse it: a line a minute for each quota.
    pub fn quota_exceeded(&self, excess: &QuotaExcess) {
        let now = Instant::now();
        let mut said = self.quotas_said.lock();
        let is_due = |last: &Instant| now.duration_since(*last) >= QUOTA_REPORT;
        if said.get(&excess.path).is_some_and(|last| !is_due(last)) {
            return;
        }
        if said.len() >= QUOTA_NAMESPACES_MAX {
            said.retain(|_, last| !is_due(last));
        }
        if said.len() < QUOTA_NAMESPACES_MAX {
            said.insert(excess.path.clone(), now);
            let (what, limit) = match excess.bytes {
                true => ("bytes", "ByteLimit"),
                false => ("count", "CountLimit"),
            };
            let kind = if excess.hard { "hard" } else { "soft" };
            let path = excess.path.escape_debug();
            let (current, bound) = (excess.current, excess.limit);
            warn!("Quota exceeded: {path} [current {what}={current}, {kind}{limit}={bound}]");
        }
    }

    /// The core thread takes up what has come.
    pub fn turn(&self, now_ms: u64) {
        let mut turns = self.turns.lock();
        if turns.back() == Some(&now_ms) {
            return;
        }
        if turns.len() >= LOAD_TURNS_MAX {
            turns.pop_front();
        }
        turns.push_back(now_ms);
    }

    /// When that was which took up what came at this time; `None` if it is not known any more.
    fn taken_up(&self, received_ms: u64) -> Option<u64> {
        let turns = self.turns.lock();
        if *turns.front()? > received_ms {
            return None;
        }
        let place = turns.partition_point(|turn| *turn < received_ms);
        turns.get(place).copied()
    }

    /// The last minute.
    pub fn minute(&self, now_ms: u64) -> Minute {
        self.window.lock().minute(now_ms)
    }

    /// The last five seconds that are over.
    pub fn last_slot(&self, now_ms: u64) -> Minute {
        self.window.lock().last_slot(now_ms)
    }

    /// What is remembered one by one.
    pub fn recent<T>(&self, look: impl FnOnce(&Recent) -> T) -> T {
        look(&self.recent.lock())
    }

    /// What was counted since the start.
    pub fn counts(&self) -> Counts {
        let misuse = |kind: MisuseKind| self.counters.misuse[kind as usize].load(Relaxed);
        Counts {
            slow_requests: self.counters.slow.load(Relaxed),
            herds: self.counters.herds.load(Relaxed),
            large_writes: misuse(MisuseKind::LargeWrite),
            hot_writes: misuse(MisuseKind::HotWrites),
            many_children: misuse(MisuseKind::ManyChildren),
            sequential_creates: misuse(MisuseKind::SequentialCreates),
        }
    }
}
