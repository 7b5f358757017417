//! What became of the sessions.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use quenda_client::Error;
use serde::Serialize;

use crate::bench::recorder::new_histogram;

/// The outcome of a run, in sessions unless it says otherwise.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Survival {
    /// Opened in the beginning.
    pub opened: u64,
    /// With a connection at the end, and with their ephemeral if they had one.
    pub alive: u64,
    /// A server said that they have ended.
    pub expired: u64,
    /// Alive, but their ephemeral is gone or belongs to another session.
    pub without_ephemeral: u64,
    /// Without a connection at the end.
    pub without_connection: u64,
    /// Connections that broke, by reason.
    pub breaks: BTreeMap<String, u64>,
    /// How often a session went on at another connection.
    pub moves: u64,
    /// Attempts to go on that came to nothing, by reason.
    pub refusals: BTreeMap<String, u64>,
}

/// What a session's task ends with.
pub enum AtEnd {
    Connected,
    WithoutEphemeral,
    Expired,
    Without,
}

/// All that a run has found.
pub struct Found {
    pub survival: Survival,
    pub errors: BTreeMap<String, u64>,
    /// Handshakes of new sessions, in nanoseconds.
    pub open: Histogram<u64>,
    /// Handshakes of sessions that went on, in nanoseconds.
    pub resume: Histogram<u64>,
    /// From the break of a connection to the next one, in nanoseconds.
    pub without: Histogram<u64>,
    /// Moves in each second.
    pub each_second: Vec<u64>,
    /// Sessions connected, by host.
    connected: Vec<u64>,
}

impl Found {
    fn new(hosts: usize) -> Found {
        Found {
            survival: Survival::default(),
            errors: BTreeMap::new(),
            open: new_histogram(),
            resume: new_histogram(),
            without: new_histogram(),
            each_second: Vec::new(),
            connected: vec![0; hosts],
        }
    }
}

pub struct Tally {
    start: Instant,
    hosts: usize,
    found: Mutex<Found>,
}

impl Tally {
    pub fn new(hosts: usize) -> Tally {
        Tally {
            start: Instant::now(),
            hosts,
            found: Mutex::new(Found::new(hosts)),
        }
    }

    pub fn opened(&self, host: usize, took: Duration) {
        let mut found = self.found();
        found.survival.opened += 1;
        found.connected[host] += 1;
        found.open.saturating_record(took.as_nanos() as u64);
    }

    pub fn broke(&self, host: usize, why: &Error) {
        let mut found = self.found();
        found.connected[host] -= 1;
        *found.survival.breaks.entry(why.to_string()).or_default() += 1;
    }

    pub fn refused(&self, why: &Error) {
        *self
            .found()
            .survival
            .refusals
            .entry(why.to_string())
            .or_default() += 1;
    }

    pub fn resumed(&self, handshake: Duration) {
        self.found()
            .resume
            .saturating_record(handshake.as_nanos() as u64);
    }

    pub fn moved(&self, host: usize, without: Duration) {
        let second = self.start.elapsed().as_secs() as usize;
        let mut found = self.found();
        found.survival.moves += 1;
        found.connected[host] += 1;
        found.without.saturating_record(without.as_nanos() as u64);
        if found.each_second.len() <= second {
            found.each_second.resize(second + 1, 0);
        }
        found.each_second[second] += 1;
    }

    pub fn ended(&self, how: AtEnd) {
        let survival = &mut self.found().survival;
        *match how {
            AtEnd::Connected => &mut survival.alive,
            AtEnd::WithoutEphemeral => &mut survival.without_ephemeral,
            AtEnd::Expired => &mut survival.expired,
            AtEnd::Without => &mut survival.without_connection,
        } += 1;
    }

    pub fn error(&self, why: String) {
        *self.found().errors.entry(why).or_default() += 1;
    }

    /// One line of `name=number` pairs; programs read it, so names stay what they are.
    pub fn progress(&self) -> String {
        let found = self.found();
        let survival = &found.survival;
        let connected: Vec<String> = found.connected.iter().map(u64::to_string).collect();
        format!(
            "opened={} connected={} breaks={} moves={} refusals={} expired={}",
            survival.opened,
            connected.join(","),
            survival.breaks.values().sum::<u64>(),
            survival.moves,
            survival.refusals.values().sum::<u64>(),
            survival.expired,
        )
    }

    /// What was found; the tally is empty then.
    pub fn take(&self) -> Found {
        std::mem::replace(&mut *self.found(), Found::new(self.hosts))
    }

    fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
