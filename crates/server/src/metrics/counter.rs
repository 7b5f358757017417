//! Counters that only grow. `srst` hides what was counted before; Prometheus goes on counting.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::shard::Shards;

/// A counter that is fed now and then.
#[derive(Debug, Default)]
pub struct Counter {
    count: AtomicU64,
    hidden: AtomicU64,
}

/// A counter that every request feeds: threads do not get into each other's way.
#[derive(Debug)]
pub struct BusyCounter {
    counts: Shards<AtomicU64>,
    hidden: AtomicU64,
}

/// What a page needs to know of a counter.
pub trait Counts {
    /// Since the start.
    fn total(&self) -> u64;
    /// Since the start or the last reset.
    fn recent(&self) -> u64;
    /// From now on [`Self::recent`] counts from 0.
    fn reset(&self);
    /// [`Self::total`], of what has fractions.
    fn precise(&self) -> f64 {
        self.total() as f64
    }
}

impl Counter {
    /// Counts `amount` more.
    pub fn add(&self, amount: u64) {
        self.count.fetch_add(amount, Relaxed);
    }
}

impl Counts for Counter {
    fn total(&self) -> u64 {
        self.count.load(Relaxed)
    }

    fn recent(&self) -> u64 {
        self.total().saturating_sub(self.hidden.load(Relaxed))
    }

    fn reset(&self) {
        self.hidden.store(self.total(), Relaxed);
    }
}

impl Default for BusyCounter {
    fn default() -> Self {
        BusyCounter {
            counts: Shards::new(|| AtomicU64::new(0)),
            hidden: AtomicU64::new(0),
        }
    }
}

impl BusyCounter {
    /// Counts `amount` more.
    pub fn add(&self, amount: u64) {
        self.counts.own().fetch_add(amount, Relaxed);
    }
}

impl Counts for BusyCounter {
    fn total(&self) -> u64 {
        self.counts.iter().map(|count| count.load(Relaxed)).sum()
    }

    fn recent(&self) -> u64 {
        self.total().saturating_sub(self.hidden.load(Relaxed))
    }

    fn reset(&self) {
        self.hidden.store(self.total(), Relaxed);
    }
}

/// A count that is kept elsewhere and is never reset.
#[derive(Debug, Clone, Copy)]
pub struct Told(pub u64);

impl Counts for Told {
    fn total(&self) -> u64 {
        self.0
    }

    fn recent(&self) -> u64 {
        self.0
    }

    fn reset(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reset_hides_and_forgets_nothing() {
        let (counter, busy) = (Counter::default(), BusyCounter::default());
        counter.add(3);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| busy.add(2));
            }
        });
        assert_eq!((counter.recent(), busy.recent()), (3, 8));
        counter.reset();
        busy.reset();
        counter.add(1);
        busy.add(1);
        assert_eq!((counter.recent(), counter.total()), (1, 4));
        assert_eq!((busy.recent(), busy.total()), (1, 9));
    }
}
