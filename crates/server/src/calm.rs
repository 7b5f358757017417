//! Log lines that a flood of clients must not multiply.

use std::time::{Duration, Instant};

use crate::limits::CALM_INTERVAL;

/// Lets a line through when the last one is long enough ago, and counts those between.
#[derive(Debug)]
pub struct Calm {
    interval: Duration,
    last: Option<Instant>,
    count: u64,
}

impl Calm {
    /// Nothing has happened yet; a line each [`CALM_INTERVAL`].
    pub const fn new() -> Calm {
        Calm::every(CALM_INTERVAL)
    }

    /// Nothing has happened yet; a line each `interval`.
    pub const fn every(interval: Duration) -> Calm {
        Calm {
            interval,
            last: None,
            count: 0,
        }
    }

    /// It has happened once more. If it is time for a line: how often since the last one.
    pub fn turn(&mut self, now: Instant) -> Option<u64> {
        self.count += 1;
        let is_due = |last| now.duration_since(last) >= self.interval;
        if !self.last.is_none_or(is_due) {
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_and_not_repeated() {
        let mut calm = Calm::new();
        let start = Instant::now();
        assert_eq!(calm.turn(start), Some(1));
        for _ in 0..1000 {
            assert_eq!(calm.turn(start), None);
        }
        assert_eq!(calm.turn(start + CALM_INTERVAL), Some(1001));
        assert_eq!(calm.turn(start + CALM_INTERVAL), None);
        assert_eq!(calm.turn(start + 3 * CALM_INTERVAL), Some(2));
    }
}
