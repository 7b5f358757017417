//! What passes between this member and another one.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use quenda_node::is_forward;

use crate::clock::wall_ms;

/// Counters of the connections with one peer, from the moment when it came.
#[derive(Debug)]
pub(super) struct Flow {
    since_ms: i64,
    received: AtomicU64,
    sent: AtomicU64,
    requests: AtomicU64,
}

/// How it is between this member and another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkFigures {
    /// The other one.
    pub peer: u64,
    /// Since when it is connected, in ms since 1970.
    pub since_ms: i64,
    /// Frames that wait to be sent.
    pub queued: usize,
    /// Their bytes.
    pub queued_bytes: usize,
    /// Frames received.
    pub received: u64,
    /// Frames sent.
    pub sent: u64,
    /// How many of those received hold requests of its clients.
    pub requests: u64,
}

impl Flow {
    pub(super) fn start() -> Flow {
        Flow {
            since_ms: wall_ms(),
            received: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            requests: AtomicU64::new(0),
        }
    }

    /// Frames have come.
    pub(super) fn receive(&self, frames: &[Bytes]) {
        let requests = frames.iter().filter(|frame| is_forward(frame)).count();
        self.received.fetch_add(frames.len() as u64, Relaxed);
        self.requests.fetch_add(requests as u64, Relaxed);
    }

    /// Frames go.
    pub(super) fn send(&self, frames: usize) {
        self.sent.fetch_add(frames as u64, Relaxed);
    }

    /// Starts again.
    pub(super) fn reset(&self) {
        for counter in [&self.received, &self.sent, &self.requests] {
            counter.store(0, Relaxed);
        }
    }

    pub(super) fn figures(&self, peer: u64, (queued, queued_bytes): (usize, usize)) -> LinkFigures {
        LinkFigures {
            peer,
            since_ms: self.since_ms,
            queued,
            queued_bytes,
            received: self.received.load(Relaxed),
            sent: self.sent.load(Relaxed),
            requests: self.requests.load(Relaxed),
        }
    }
}
