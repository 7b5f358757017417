//! The answer to `mntr`: a line for each metric, see [`MntrPage`] for their form.

use super::java;
use super::source::{Ensemble, Leading, Mode, Process, Source, State, Traffic};
use crate::metrics::{MntrPage, Page};

/// The whole answer. The classic gauges come first: collectd reads 4 KiB and no more.
pub(super) fn answer(version: &str, source: &dyn Source) -> String {
    let mode = source.mode();
    let mut text = format!("zk_version\t{version}\nzk_server_state\t{}\n", mode.name());
    // A member without a quorum has no place.
    if let Some(ensemble) = source.ensemble()
        && mode != Mode::ReadOnly
    {
        text += &place(mode, &ensemble);
    }
    if let Some(lines) = source.float_lines() {
        return text + &lines;
    }
    let mut page = MntrPage::default();
    figures(source, &mut page);
    text + &page.text()
}

/// Tells all figures, those first that every collector knows.
pub fn figures(source: &dyn Source, page: &mut dyn Page) {
    if let Some(ensemble) = source.ensemble()
        && source.mode() != Mode::ReadOnly
    {
        count(page, "quorum_size", ensemble.quorum_size);
    }
    if let Some(figures) = source.leading() {
        leading(page, &figures);
    }
    traffic(page, source.traffic());
    state(page, source.state());
    process(page, source.process());
    source.metrics(page);
}

fn place(mode: Mode, ensemble: &Ensemble) -> String {
    let state = match mode {
        Mode::Standalone | Mode::Leader => "leading - broadcast",
        Mode::Follower | Mode::ReadOnly => "following - broadcast",
        Mode::Observer => "observing - broadcast",
    };
    let mut text = format!("zk_peer_state\t{state}\n");
    if let (Mode::Observer, Some(leader)) = (mode, ensemble.leader) {
        text += &format!("zk_observer_master_id\t{leader}\n");
    }
    text
}

/// Values beyond 63 bits are shown as the greatest.
fn count(page: &mut dyn Page, name: &str, value: u64) {
    page.gauge(name, i64::try_from(value).unwrap_or(i64::MAX));
}

fn leading(page: &mut dyn Page, figures: &Leading) {
    count(page, "learners", figures.learners);
    // The name before 3.6, which collectors still ask for.
    count(page, "followers", figures.learners);
    count(page, "synced_followers", figures.synced_followers);
    count(
        page,
        "synced_non_voting_followers",
        figures.synced_non_voting_followers,
    );
    count(page, "synced_observers", figures.synced_observers);
    count(page, "pending_syncs", figures.pending_syncs);
    count(page, "leader_uptime", figures.uptime_ms);
    let size = |size: Option<u64>| size.map_or(-1, |size| i64::try_from(size).unwrap_or(i64::MAX));
    let sizes = figures.proposals;
    page.gauge("last_proposal_size", size(sizes.map(|sizes| sizes.last)));
    page.gauge("min_proposal_size", size(sizes.map(|sizes| sizes.min)));
    page.gauge("max_proposal_size", size(sizes.map(|sizes| sizes.max)));
}

fn traffic(page: &mut dyn Page, traffic: Traffic) {
    page.real("avg_latency", java::rounded(traffic.latency_avg_ms));
    count(page, "min_latency", traffic.latency_min_ms);
    count(page, "max_latency", traffic.latency_max_ms);
    count(page, "packets_received", traffic.received);
    count(page, "packets_sent", traffic.sent);
    count(page, "num_alive_connections", traffic.connections);
    count(page, "outstanding_requests", traffic.outstanding);
}

fn state(page: &mut dyn Page, state: State) {
    count(page, "znode_count", state.znodes + 1);
    count(page, "watch_count", state.watches);
    count(page, "ephemerals_count", state.ephemerals);
    count(page, "approximate_data_size", state.data_bytes);
    count(page, "global_sessions", state.sessions);
    count(page, "local_sessions", state.local_sessions);
}

fn process(page: &mut dyn Page, process: Process) {
    page.gauge("open_file_descriptor_count", process.open_files);
    page.gauge("max_file_descriptor_count", process.max_files);
    count(page, "uptime", process.uptime_ms);
}
