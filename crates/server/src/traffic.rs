//! Counters of the whole server, fed by its connections.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use quenda_frontend::Stats;

/// What passed through all sockets since the start or the last reset.
#[derive(Debug)]
pub struct Traffic {
    received: AtomicU64,
    sent: AtomicU64,
    answered: AtomicU64,
    latency_total_ms: AtomicU64,
    latency_min_ms: AtomicU64,
    latency_max_ms: AtomicU64,
}

/// A moment of [`Traffic`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    /// Packets received.
    pub received: u64,
    /// Packets sent.
    pub sent: u64,
    /// Shortest latency in milliseconds, 0 until there is one.
    pub latency_min_ms: u64,
    /// Mean latency in milliseconds.
    pub latency_avg_ms: f64,
    /// Longest latency in milliseconds.
    pub latency_max_ms: u64,
}

impl Default for Traffic {
    fn default() -> Self {
        Traffic {
            received: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            latency_total_ms: AtomicU64::new(0),
            latency_min_ms: AtomicU64::new(u64::MAX),
            latency_max_ms: AtomicU64::new(0),
        }
    }
}

impl Traffic {
    /// Adds what a connection counted since `before`.
    pub fn add(&self, before: &Stats, now: &Stats) {
        let grown = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now);
        self.received
            .fetch_add(grown(now.received, before.received), Relaxed);
        self.sent.fetch_add(grown(now.sent, before.sent), Relaxed);
        let answered = grown(now.answered, before.answered);
        if answered == 0 {
            return;
        }
        self.answered.fetch_add(answered, Relaxed);
        self.latency_total_ms.fetch_add(
            grown(now.total_latency_ms, before.total_latency_ms),
            Relaxed,
        );
        // The extremes of a connection's whole life count only when they are new.
        let fresh = before.answered == 0 || now.answered < before.answered;
        let longest = if fresh || now.max_latency_ms > before.max_latency_ms {
            now.max_latency_ms
        } else {
            now.last_latency_ms
        };
        let shortest = if fresh || now.min_latency_ms < before.min_latency_ms {
            now.min_latency_ms
        } else {
            now.last_latency_ms
        };
        self.latency_max_ms.fetch_max(u64::from(longest), Relaxed);
        self.latency_min_ms.fetch_min(u64::from(shortest), Relaxed);
    }

    /// The counters now.
    pub fn figures(&self) -> Figures {
        let answered = self.answered.load(Relaxed);
        let total = self.latency_total_ms.load(Relaxed);
        let min = self.latency_min_ms.load(Relaxed);
        Figures {
            received: self.received.load(Relaxed),
            sent: self.sent.load(Relaxed),
            latency_min_ms: if min == u64::MAX { 0 } else { min },
            latency_avg_ms: if answered == 0 {
                0.0
            } else {
                total as f64 / answered as f64
            },
            latency_max_ms: self.latency_max_ms.load(Relaxed),
        }
    }

    /// Starts again.
    pub fn reset(&self) {
        let fresh = Traffic::default();
        for (counter, start) in [
            (&self.received, &fresh.received),
            (&self.sent, &fresh.sent),
            (&self.answered, &fresh.answered),
            (&self.latency_total_ms, &fresh.latency_total_ms),
            (&self.latency_min_ms, &fresh.latency_min_ms),
            (&self.latency_max_ms, &fresh.latency_max_ms),
        ] {
            counter.store(start.load(Relaxed), Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_counted_once() {
        let traffic = Traffic::default();
        let first = Stats {
            received: 3,
            sent: 2,
            answered: 2,
            total_latency_ms: 10,
            min_latency_ms: 4,
            max_latency_ms: 6,
            ..Stats::default()
        };
        traffic.add(&Stats::default(), &first);
        traffic.add(&first, &first);
        let figures = traffic.figures();
        assert_eq!((figures.received, figures.sent), (3, 2));
        assert_eq!((figures.latency_min_ms, figures.latency_max_ms), (4, 6));
        assert_eq!(figures.latency_avg_ms, 5.0);
        traffic.reset();
        assert_eq!(traffic.figures().latency_min_ms, 0);
    }
}
