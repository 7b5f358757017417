//! The log writer: how much waits, how much is written with one sync, and what the sync takes.

use std::time::Duration;

use super::counter::Counter;
use super::histogram::Histogram;
use super::page::{Figures, Page, own};
use super::startup::millis;
use super::summary::{Percentiles, Summary};

/// Figures of the log writer.
#[derive(Debug)]
pub struct LogFigures {
    queued: Counter,
    waiting: Summary,
    batch: Summary,
    waited_ms: Percentiles,
    sync_ms: Summary,
    flush_ms: Percentiles,
    both_ms: Percentiles,
    slow: Counter,
    sync: Histogram,
    entries: Histogram,
    bytes: Counter,
    failures: Counter,
}

impl Default for LogFigures {
    fn default() -> Self {
        LogFigures {
            queued: Counter::default(),
            waiting: Summary::default(),
            batch: Summary::default(),
            waited_ms: Percentiles::default(),
            sync_ms: Summary::default(),
            flush_ms: Percentiles::default(),
            both_ms: Percentiles::default(),
            slow: Counter::default(),
            sync: Histogram::latencies(),
            entries: Histogram::sizes(),
            bytes: Counter::default(),
            failures: Counter::default(),
        }
    }
}

/// What was written with one sync.
#[derive(Debug, Clone, Copy)]
pub struct Written {
    /// Batches that waited for it.
    pub batches: usize,
    /// Their entries.
    pub entries: usize,
    /// Bytes of those.
    pub bytes: u64,
    /// How long the first of them waited.
    pub waited: Duration,
    /// How long the write and its sync took.
    pub took: Duration,
    /// Whether that is longer than `fsync.warningthresholdms`.
    pub is_slow: bool,
}

impl LogFigures {
    /// A batch was handed to the log writer.
    pub fn queued(&self) {
        self.queued.add(1);
    }

    /// Entries are on disk.
    pub fn written(&self, written: &Written) {
        self.waiting.observe(written.batches as u64);
        self.batch.observe(written.entries as u64);
        self.waited_ms.observe(millis(written.waited));
        self.sync_ms.observe(millis(written.took));
        self.flush_ms.observe(millis(written.took));
        self.both_ms.observe(millis(written.waited + written.took));
        self.sync.observe_duration(written.took);
        self.entries.observe(written.entries as u64);
        self.bytes.add(written.bytes);
        if written.is_slow {
            self.slow.add(1);
        }
    }

    /// A write failed.
    pub fn failed(&self) {
        self.failures.add(1);
    }
}

impl Figures for LogFigures {
    fn tell(&self, page: &mut dyn Page) {
        page.counter("sync_processor_request_queued", &self.queued);
        // A name before 3.6, which collectors still ask for.
        page.counter("fsync_threshold_exceed_count", &self.slow);
        page.summary("fsynctime", &self.sync_ms);
        page.summary("sync_process_time", &self.sync_ms);
        page.summary("sync_processor_queue_size", &self.waiting);
        page.summary("sync_processor_batch_size", &self.batch);
        page.percentiles("sync_processor_queue_time_ms", &self.waited_ms);
        page.percentiles("sync_processor_queue_flush_time_ms", &self.flush_ms);
        page.percentiles("sync_processor_queue_and_flush_time_ms", &self.both_ms);
        page.own_histogram(
            own(
                "quenda_log_sync_seconds",
                "Time of one write to the log with its sync.",
            ),
            &[],
            &self.sync,
        );
        page.own_histogram(
            own(
                "quenda_log_batch_entries",
                "Log entries written with one sync.",
            ),
            &[],
            &self.entries,
        );
        page.own_counter(
            own(
                "quenda_log_written_bytes_total",
                "Bytes of commands written to the log.",
            ),
            &[],
            &self.bytes,
        );
        page.own_counter(
            own(
                "quenda_log_failures_total",
                "Failed attempts to write the log.",
            ),
            &[],
            &self.failures,
        );
    }
}
