//! Figures of the running server, for `mntr`, Prometheus and the HTTP interface.
//!
//! An area keeps its figures in cells ([`Counter`], [`Summary`], …) in a struct of its own, feeds them where it works,
//! and tells them with [`Figures`]; [`tell`] names all areas. Whoever shows figures is a [`Page`], and so are a reset
//! and the passing of time, so that a figure is named in one place only.
//!
//! Feeding a cell takes no lock that anybody holds for long and no memory; showing them neither waits for the core
//! thread nor for the disk.

mod absent;
mod backups;
mod checkpoints;
mod clients;
pub mod counter;
mod disk;
pub mod endpoint;
mod exposition;
mod fanout;
mod floats;
pub mod histogram;
mod keeper;
mod live;
mod log;
mod mntr;
pub mod page;
mod process;
mod quorum;
mod requests;
mod reset;
mod rotation;
pub mod set;
mod shard;
mod spread;
mod startup;
pub mod summary;

use prometheus::TextEncoder;
use prometheus::proto::MetricFamily;

pub use checkpoints::Checkpoints;
pub use clients::Clients;
pub use counter::{Counter, Counts};
pub use disk::DiskFigures;
pub use endpoint::{MetricsPorts, load_tls, start};
pub use exposition::PrometheusPage;
pub use fanout::FanOut;
pub use keeper::keep;
pub use log::{LogFigures, Written};
pub use mntr::MntrPage;
pub use page::{Figures, Page};
pub use quorum::{AppliedBatch, Quorum};
pub use requests::Requests;
pub use set::Set;
pub use startup::Startup;
#[cfg(test)]
pub use summary::Percentiles;
pub use summary::Summary;

use crate::four_letter;
use crate::load::Heaviest;
use crate::node_source::NodeSource;
use crate::shared::Shared;
use absent::Absent;
use live::Live;
use process::Process;

/// Type of what [`prometheus_text`] gives.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The figures that belong to no other area.
#[derive(Debug, Default)]
pub struct Metrics {
    /// The start.
    pub startup: Startup,
    /// The log writer.
    pub log: LogFigures,
    /// Checkpoints and snapshots.
    pub checkpoints: Checkpoints,
    /// Requests.
    pub requests: Requests,
    /// Connections and sessions.
    pub clients: Clients,
    /// Watches that fire.
    pub fanout: FanOut,
    /// Agreement.
    pub quorum: Quorum,
    /// Room on the disk.
    pub disk: DiskFigures,
    process: Process,
}

/// Tells everything that is not among the figures of [`four_letter::figures`]. An area adds a line here.
pub fn tell(shared: &Shared, page: &mut dyn Page) {
    let metrics = &shared.metrics;
    let areas: [&dyn Figures; 16] = [
        &metrics.startup,
        &metrics.log,
        &metrics.checkpoints,
        &metrics.requests,
        &metrics.clients,
        &metrics.fanout,
        &metrics.quorum,
        &metrics.disk,
        &Live(shared),
        &shared.backup.counters,
        &shared.admin,
        &shared.throttle,
        &shared.load,
        &Heaviest(shared),
        &Absent,
        &metrics.process.under(&shared.config.metrics),
    ];
    for area in areas {
        area.tell(page);
    }
}

/// All figures in Prometheus' text form. Takes some milliseconds; reads `/proc`.
pub fn prometheus_text(shared: &Shared) -> String {
    let mut text = String::new();
    if let Err(error) = TextEncoder::new().encode_utf8(&families(shared), &mut text) {
        tracing::error!(%error, "the figures have no text form");
    }
    text
}

/// `mntr` in the form of ZooKeeper's provider for Prometheus, without its first lines.
pub fn float_lines(shared: &Shared) -> String {
    floats::lines(&families(shared))
}

fn families(shared: &Shared) -> Vec<MetricFamily> {
    let mut page = PrometheusPage::new(shared.config.metrics.total_names);
    four_letter::figures(&NodeSource::new(shared), &mut page);
    page.families()
}

/// Begins anew what `srst` resets.
pub fn reset(shared: &Shared) {
    tell(shared, &mut reset::Reset);
    shared.metrics.requests.reset_sizes();
}

/// Five minutes have passed: quantiles are of the last five to ten.
pub fn rotate(shared: &Shared) {
    tell(shared, &mut rotation::Rotation);
}
