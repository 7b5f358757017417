//! What the start took.

use std::time::Duration;

use super::page::{Figures, Page, own};
use super::summary::Summary;

/// Times of the start, in milliseconds: one value each.
#[derive(Debug, Default)]
pub struct Startup {
    whole: Summary,
    state: Summary,
    log: Summary,
    entries: Summary,
}

impl Startup {
    /// The store was opened: reading the log took `log`, and it had `entries` behind the checkpoint; reading the
    /// checkpoint into the tree took `state`.
    pub fn loaded(&self, log: Duration, entries: usize, state: Duration) {
        self.log.observe(millis(log));
        self.state.observe(millis(state));
        self.whole.observe(millis(log + state));
        self.entries.observe(entries as u64);
    }
}

impl Figures for Startup {
    fn tell(&self, page: &mut dyn Page) {
        page.summary("dbinittime", &self.whole);
        page.summary("startup_snap_load_time", &self.state);
        page.summary("startup_txns_load_time", &self.log);
        page.summary("startup_txns_loaded", &self.entries);
        page.own_gauge(
            own("quenda_build_info", "1; the version is a label."),
            &[("version", env!("CARGO_PKG_VERSION"))],
            1.0,
        );
    }
}

/// Whole milliseconds of a duration.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
