//! What Prometheus is told of the load: the heaviest of the last minute, and counts since the start.

use super::LoadMonitor;
use super::reporter::report;
use crate::limits::LOAD_SERIES_MAX;
use crate::metrics::counter::Told;
use crate::metrics::page::own;
use crate::metrics::summary::Summary;
use crate::metrics::{Figures, Page, Set};
use crate::shared::Shared;

/// Bytes of reads and writes by namespace, the first component of a path.
#[derive(Debug)]
pub struct Namespaces {
    pub(super) read: Set<Summary>,
    pub(super) written: Set<Summary>,
}

impl Namespaces {
    /// Of so many namespaces.
    pub fn bounded(max: usize) -> Namespaces {
        Namespaces {
            read: Set::bounded(max),
            written: Set::bounded(max),
        }
    }
}

impl Figures for LoadMonitor {
    fn tell(&self, page: &mut dyn Page) {
        let counts = self.counts();
        page.own_counter(
            own(
                "quenda_slow_requests_total",
                "Requests that took longer than quenda.load.slowRequestMs.",
            ),
            &[],
            &Told(counts.slow_requests),
        );
        page.own_counter(
            own(
                "quenda_herds_total",
                "Changes that woke more watchers than quenda.load.herdWatchers.",
            ),
            &[],
            &Told(counts.herds),
        );
        let misuse = own(
            "quenda_misuse_total",
            "What a coordination service is not for: large writes; and, looked at every five seconds, hot znodes, many children, many sequential creates.",
        );
        for (kind, count) in [
            ("large-write", counts.large_writes),
            ("hot-writes", counts.hot_writes),
            ("many-children", counts.many_children),
            ("sequential-creates", counts.sequential_creates),
        ] {
            page.own_counter(misuse, &[("kind", kind)], &Told(count));
        }
        for (namespace, bytes) in self.namespaces.read.all() {
            page.summary_of("read_per_namespace", &namespace, &bytes);
        }
        for (namespace, bytes) in self.namespaces.written.all() {
            page.summary_of("write_per_namespace", &namespace, &bytes);
        }
    }
}

/// The heaviest of the last minute.
pub struct Heaviest<'a>(pub &'a Shared);

impl Figures for Heaviest<'_> {
    fn tell(&self, page: &mut dyn Page) {
        let report = report(self.0);
        let requests = own(
            "quenda_top_requests",
            "Requests in the last minute of the heaviest clients, path prefixes and operations.",
        );
        let bytes = own(
            "quenda_top_bytes",
            "Bytes in and out in the last minute of the heaviest clients, path prefixes and operations.",
        );
        for (by, rows) in [
            ("client", &report.clients),
            ("prefix", &report.prefixes),
            ("operation", &report.operations),
        ] {
            for row in rows.iter().take(LOAD_SERIES_MAX) {
                let labels = [("by", by), ("name", &*row.name)];
                page.own_gauge(requests, &labels, row.load.requests as f64);
                let both = row.load.bytes_in + row.load.bytes_out;
                page.own_gauge(bytes, &labels, both as f64);
            }
        }
        let written = own(
            "quenda_hot_znode_writes",
            "Writes in the last minute of the znodes written most.",
        );
        for row in report.hot.written.iter().take(LOAD_SERIES_MAX) {
            page.own_gauge(written, &[("path", &row.path)], row.requests as f64);
        }
    }
}
