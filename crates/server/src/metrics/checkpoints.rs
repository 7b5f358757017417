//! Checkpoints of this member's store, and snapshots that members fetch from each other.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::counter::Counter;
use super::histogram::Histogram;
use super::page::{Figures, Page, own};
use super::startup::millis;
use super::summary::Summary;
use crate::clock::wall_ms;

/// Figures of checkpoints and snapshots.
#[derive(Debug)]
pub struct Checkpoints {
    millis: Summary,
    seconds: Histogram,
    bytes: AtomicU64,
    /// Wall time of the newest, in ms; 0 if there was none since the start.
    newest_ms: AtomicU64,
    failures: Counter,
    images_made: Counter,
    image_seconds: Histogram,
    image_bytes: AtomicU64,
    image_ms: AtomicU64,
    installed: Counter,
    install_seconds: Histogram,
}

impl Default for Checkpoints {
    fn default() -> Self {
        Checkpoints {
            millis: Summary::default(),
            seconds: Histogram::latencies(),
            bytes: AtomicU64::new(0),
            newest_ms: AtomicU64::new(0),
            failures: Counter::default(),
            images_made: Counter::default(),
            image_seconds: Histogram::latencies(),
            image_bytes: AtomicU64::new(0),
            image_ms: AtomicU64::new(0),
            installed: Counter::default(),
            install_seconds: Histogram::latencies(),
        }
    }
}

impl Checkpoints {
    /// A checkpoint is durable.
    pub fn written(&self, bytes: usize, took: Duration) {
        self.millis.observe(millis(took));
        self.seconds.observe_duration(took);
        self.bytes.store(bytes as u64, Relaxed);
        self.newest_ms.store(wall_ms().unsigned_abs(), Relaxed);
    }

    /// A checkpoint could not be written.
    pub fn failed(&self) {
        self.failures.add(1);
    }

    /// A snapshot was made for a member that lags.
    pub fn image_made(&self, bytes: u64, took: Duration) {
        self.images_made.add(1);
        self.image_seconds.observe_duration(took);
        self.image_bytes.store(bytes, Relaxed);
        self.image_ms.store(wall_ms().unsigned_abs(), Relaxed);
    }

    /// This member has put another one's snapshot in place.
    pub fn installed(&self, took: Duration) {
        self.installed.add(1);
        self.install_seconds.observe_duration(took);
    }
}

/// Seconds since a moment; `None` if there was none.
fn age(at_ms: &AtomicU64) -> Option<f64> {
    let at = at_ms.load(Relaxed);
    (at != 0).then(|| wall_ms().unsigned_abs().saturating_sub(at) as f64 / 1000.0)
}

impl Figures for Checkpoints {
    fn tell(&self, page: &mut dyn Page) {
        page.summary("snapshottime", &self.millis);
        page.own_histogram(
            own(
                "quenda_checkpoint_seconds",
                "Time to write one checkpoint, its sync included.",
            ),
            &[],
            &self.seconds,
        );
        page.own_gauge(
            own(
                "quenda_checkpoint_bytes",
                "Bytes of changed rows in the newest checkpoint.",
            ),
            &[],
            self.bytes.load(Relaxed) as f64,
        );
        if let Some(age) = age(&self.newest_ms) {
            page.own_gauge(
                own("quenda_checkpoint_age_seconds", "Time since the newest checkpoint; absent before the first. An idle member makes none."),
                &[],
                age,
            );
        }
        page.own_counter(
            own(
                "quenda_checkpoint_failures_total",
                "Checkpoints that could not be written.",
            ),
            &[],
            &self.failures,
        );
        page.own_counter(
            own(
                "quenda_snapshots_made_total",
                "Snapshots made for members that lag.",
            ),
            &[],
            &self.images_made,
        );
        page.own_histogram(
            own(
                "quenda_snapshot_make_seconds",
                "Time to make a snapshot for a member that lags.",
            ),
            &[],
            &self.image_seconds,
        );
        page.own_gauge(
            own(
                "quenda_snapshot_bytes",
                "Bytes of the newest such snapshot; 0 before the first.",
            ),
            &[],
            self.image_bytes.load(Relaxed) as f64,
        );
        if let Some(age) = age(&self.image_ms) {
            page.own_gauge(
                own(
                    "quenda_snapshot_age_seconds",
                    "Time since the newest such snapshot was made; absent before the first.",
                ),
                &[],
                age,
            );
        }
        page.own_counter(
            own(
                "quenda_snapshots_installed_total",
                "Snapshots of other members that this one has put in place.",
            ),
            &[],
            &self.installed,
        );
        page.own_histogram(
            own(
                "quenda_snapshot_install_seconds",
                "Time to put a snapshot of another member in place; clients wait meanwhile.",
            ),
            &[],
            &self.install_seconds,
        );
    }
}
