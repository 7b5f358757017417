//! The clocks of one member: they drift, and the wall clock jumps.

use crate::schedule::Micros;

/// Wall time at the beginning of a simulation, milliseconds since 1970.
const EPOCH_MS: i64 = 1_700_000_000_000;

/// Parts in a million that a clock may be too fast or too slow.
pub const DRIFT_MAX_PPM: i64 = 20_000;

/// The clocks of one machine.
#[derive(Debug, Clone)]
pub struct Clock {
    /// Parts in a million that it goes too fast.
    pub drift_ppm: i64,
    /// Milliseconds that the wall clock is ahead.
    pub skew_ms: i64,
    /// What the monotonic clock showed when the simulation began.
    pub start_ms: u64,
}

impl Clock {
    /// Monotonic milliseconds at `now`.
    pub fn monotonic_ms(&self, now: Micros) -> u64 {
        let drift = now as i64 / 1_000_000 * self.drift_ppm
            + now as i64 % 1_000_000 * self.drift_ppm / 1_000_000;
        self.start_ms + ((now as i64 + drift) / 1_000) as u64
    }

    /// Wall time at `now`, milliseconds since 1970.
    pub fn wall_ms(&self, now: Micros) -> i64 {
        EPOCH_MS + self.skew_ms + (now / 1_000) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fast_clock_gains() {
        let clock = Clock {
            drift_ppm: 10_000,
            skew_ms: -5,
            start_ms: 7,
        };
        assert_eq!(clock.monotonic_ms(100_000_000), 7 + 101_000);
        assert_eq!(clock.wall_ms(1_000_000), EPOCH_MS + 995);
    }
}
