//! The two clocks: a monotonic one for durations and deadlines, the wall clock for what clients see.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Counts milliseconds since the server's start.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// Starts now.
    pub fn start() -> Clock {
        Clock {
            start: Instant::now(),
        }
    }

    /// Monotonic milliseconds since the start.
    pub fn now_ms(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }
}

/// One moment by both clocks.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// Monotonic milliseconds since the server's start.
    pub now_ms: u64,
    /// Milliseconds since 1970.
    pub time_ms: i64,
}

/// Milliseconds since 1970.
pub fn wall_ms() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(elapsed) => elapsed.as_millis() as i64,
        Err(before) => -(before.duration().as_millis() as i64),
    }
}
