//! Snapshots in ZooKeeper's format, and restores.

use std::sync::atomic::Ordering::Relaxed;

use super::counter::Told;
use super::page::{Figures, Page, own};
use crate::backup::Counters;
use crate::clock::wall_ms;

impl Figures for Counters {
    fn tell(&self, page: &mut dyn Page) {
        let [snapshots, snapshot_errors, restores, restore_errors] = [
            &self.snapshots,
            &self.snapshot_errors,
            &self.restores,
            &self.restore_errors,
        ]
        .map(|count| Told(count.load(Relaxed)));
        page.counter("snapshot_error_count", &snapshot_errors);
        page.counter("restore_error_count", &restore_errors);
        page.summary("restore_time", &self.restores_took_ms);
        let backups = own(
            "quenda_backups_total",
            "Snapshots in ZooKeeper's format that were made, and restores of such.",
        );
        for (what, outcome, count) in [
            ("snapshot", "done", snapshots),
            ("snapshot", "failed", snapshot_errors),
            ("restore", "done", restores),
            ("restore", "failed", restore_errors),
        ] {
            page.own_counter(backups, &[("action", what), ("outcome", outcome)], &count);
        }
        let took = own(
            "quenda_backup_last_seconds",
            "How long the last snapshot or restore in ZooKeeper's format took; 0 before the first.",
        );
        for (what, millis) in [
            ("snapshot", &self.last_snapshot_took_ms),
            ("restore", &self.last_restore_took_ms),
        ] {
            page.own_gauge(
                took,
                &[("action", what)],
                millis.load(Relaxed) as f64 / 1000.0,
            );
        }
        let last = self.last_snapshot_ms.load(Relaxed);
        if last >= 0 {
            page.own_gauge(
                own(
                    "quenda_backup_age_seconds",
                    "Time since the last snapshot in ZooKeeper's format was made; absent before the first.",
                ),
                &[],
                (wall_ms() - last) as f64 / 1000.0,
            );
        }
    }
}
