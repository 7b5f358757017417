//! Counters of handshakes.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::metrics::Counter;

/// What became of handshakes.
#[derive(Debug, Default)]
pub struct Counters {
    /// Under way now.
    under_way: AtomicU64,
    /// Connections closed because too many were under way.
    exceeded: Counter,
    /// Failed, for whatever reason.
    failed: Counter,
    /// Completed.
    completed: Counter,
}

/// A handshake under way.
#[derive(Debug)]
pub struct UnderWay<'a>(&'a Counters);

impl Counters {
    /// Counts one more under way; `None` above `bound` (0 for none).
    pub fn begin(&self, bound: u32) -> Option<UnderWay<'_>> {
        let before = self.under_way.fetch_add(1, Relaxed);
        let place = UnderWay(self);
        if bound != 0 && before >= u64::from(bound) {
            self.exceeded.add(1);
            return None;
        }
        Some(place)
    }

    /// Counts one that failed.
    pub fn fail(&self) {
        self.failed.add(1);
    }

    /// Handshakes under way.
    pub fn under_way(&self) -> u64 {
        self.under_way.load(Relaxed)
    }

    /// Counts one that was completed.
    pub fn complete(&self) {
        self.completed.add(1);
    }

    /// Connections closed because too many were under way.
    pub fn exceeded(&self) -> &Counter {
        &self.exceeded
    }

    /// Handshakes that failed.
    pub fn failed(&self) -> &Counter {
        &self.failed
    }

    /// Handshakes that were completed.
    pub fn completed(&self) -> &Counter {
        &self.completed
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Counts as _;

    #[test]
    fn a_bound_holds_and_places_become_free() {
        let counters = Counters::default();
        let first = counters.begin(1);
        assert!(first.is_some() && counters.begin(1).is_none());
        assert_eq!((counters.under_way(), counters.exceeded().total()), (1, 1));
        drop(first);
        assert!(counters.begin(1).is_some());
        assert_eq!(counters.under_way(), 0);
        let unbounded: Vec<_> = (0..9).map(|_| counters.begin(0)).collect();
        assert!(unbounded.iter().all(Option::is_some));
    }
}
