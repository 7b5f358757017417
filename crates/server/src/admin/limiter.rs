//! How often something may be asked for.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Lets one through in an interval.
#[derive(Debug)]
pub(super) struct Limiter {
    interval: Duration,
    last: Mutex<Option<Instant>>,
}

/// A turn. It counts only if it is kept: what has failed may be tried again at once.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    limiter: &'a Limiter,
    /// What to go back to.
    before: Option<Option<Instant>>,
}

impl Limiter {
    pub(super) fn new(interval: Duration) -> Limiter {
        Limiter {
            interval,
            last: Mutex::new(None),
        }
    }

    /// The least time between two.
    pub(super) fn interval(&self) -> Duration {
        self.interval
    }

    /// A turn now.
    ///
    /// # Errors
    /// How long until there is one.
    pub(super) fn turn(&self, now: Instant) -> Result<Turn<'_>, Duration> {
        let mut last = self.last.lock();
        if let Some(before) = *last {
            let passed = now.saturating_duration_since(before);
            if passed < self.interval {
                return Err(self.interval - passed);
            }
        }
        let before = last.replace(now);
        Ok(Turn {
            limiter: self,
            before: Some(before),
        })
    }
}

impl Turn<'_> {
    /// It was used.
    pub(super) fn keep(mut self) {
        self.before = None;
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(before) = self.before.take() {
            *self.limiter.last.lock() = before;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_an_interval_and_failures_do_not_count() {
        let second = Duration::from_secs(1);
        let limiter = Limiter::new(second * 3);
        let start = Instant::now();
        let turn = limiter.turn(start).expect("the first");
        limiter.turn(start).expect_err("one is under way");
        drop(turn);
        limiter.turn(start).expect("it had failed").keep();
        assert_eq!(
            limiter.turn(start + second).expect_err("too early"),
            second * 2
        );
        limiter.turn(start + second * 3).expect("again").keep();
        let free = Limiter::new(Duration::ZERO);
        free.turn(start).expect("always").keep();
        free.turn(start).expect("always").keep();
    }
}
