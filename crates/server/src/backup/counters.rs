//! What was done since the start.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::metrics::Summary;

/// Numbers, for metrics and for `last_snapshot`.
#[derive(Debug)]
pub struct Counters {
    /// Snapshots made.
    pub snapshots: AtomicU64,
    /// Snapshots that came to nothing.
    pub snapshot_errors: AtomicU64,
    /// Restores done.
    pub restores: AtomicU64,
    /// Restores that came to nothing, damaged streams among them.
    pub restore_errors: AtomicU64,
    /// zxid of the last snapshot, −1 before the first.
    pub last_snapshot_zxid: AtomicI64,
    /// When it was made, milliseconds since 1970; −1 before the first.
    pub last_snapshot_ms: AtomicI64,
    /// How long it took, milliseconds.
    pub last_snapshot_took_ms: AtomicU64,
    /// How long the last restore took, milliseconds.
    pub last_restore_took_ms: AtomicU64,
    /// How long each of them took, milliseconds.
    pub restores_took_ms: Summary,
}

impl Default for Counters {
    fn default() -> Counters {
        Counters {
            snapshots: AtomicU64::new(0),
            snapshot_errors: AtomicU64::new(0),
            restores: AtomicU64::new(0),
            restore_errors: AtomicU64::new(0),
            last_snapshot_zxid: AtomicI64::new(-1),
            last_snapshot_ms: AtomicI64::new(-1),
            last_snapshot_took_ms: AtomicU64::new(0),
            last_restore_took_ms: AtomicU64::new(0),
            restores_took_ms: Summary::default(),
        }
    }
}

impl Counters {
    /// Counts what came of a try.
    pub(super) fn count<T, E>(&self, result: &Result<T, E>, done: &AtomicU64, failed: &AtomicU64) {
        let counter = if result.is_ok() { done } else { failed };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
