//! The passing of time for figures: windows move on, the disk is measured.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::shared::Shared;

/// How often the files of the store are added up.
const MEASURE_INTERVAL: Duration = Duration::from_secs(15);

/// Measurements between two rotations: five minutes.
const ROTATION: u32 = 20;

/// Keeps the figures up to date until the server stops.
pub async fn keep(shared: Arc<Shared>, stop: CancellationToken) {
    let mut turns = interval(MEASURE_INTERVAL);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut measured = None;
    let mut turn: u32 = 0;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = turns.tick() => {}
        }
        // A disk that hangs holds one thread, not one more with every turn.
        if measured
            .as_ref()
            .is_none_or(tokio::task::JoinHandle::is_finished)
        {
            let shared = Arc::clone(&shared);
            measured = Some(tokio::task::spawn_blocking(move || {
                shared.metrics.disk.measure(&shared.config);
            }));
        }
        turn += 1;
        if turn.is_multiple_of(ROTATION) {
            super::rotate(&shared);
        }
    }
}
