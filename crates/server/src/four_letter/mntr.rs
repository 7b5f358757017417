//! The answer to `mntr`: a line for each metric.
//!
//! Invariant: every line is `zk_name`, a tab and a value without blanks (but `zk_version`, whose first part has none);
//! names are letters, digits and underscores, with dashes and dots in those that clients have given. One line of another form makes Telegraf drop the whole answer.

use super::java;
use super::source::{Ensemble, Leading, Mode, Process, Source, State, Traffic};

/// Collects the lines of `mntr`.
#[derive(Debug, Default)]
pub struct Metrics {
    text: String,
}

/// A distribution in the form of ZooKeeper's basic summaries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// How many values were seen.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
    /// The least one, 0 if there was none.
    pub min: u64,
    /// The greatest one, 0 if there was none.
    pub max: u64,
}

/// A distribution with quantiles, in the form of ZooKeeper's percentile summaries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Percentiles {
    /// Count, sum and bounds.
    pub summary: Summary,
    /// The median.
    pub p50: u64,
    /// 95 of 100 values are not above it.
    pub p95: u64,
    /// 99 of 100 values are not above it.
    pub p99: u64,
    /// 999 of 1000 values are not above it.
    pub p999: u64,
}

impl Metrics {
    /// A gauge or counter with a whole value. `name` is without the `zk_` in front.
    pub fn integer(&mut self, name: &str, value: i64) {
        self.line(name, &value.to_string());
    }

    /// A gauge or counter that is never negative; values beyond 63 bits are shown as the greatest.
    pub fn count(&mut self, name: &str, value: u64) {
        self.integer(name, i64::try_from(value).unwrap_or(i64::MAX));
    }

    /// A gauge with a fractional value.
    pub fn real(&mut self, name: &str, value: f64) {
        self.line(name, &java::double(value));
    }

    /// `avg_`, `min_`, `max_`, `cnt_` and `sum_` of a distribution.
    pub fn summary(&mut self, name: &str, values: Summary) {
        let mean = if values.count == 0 {
            0.0
        } else {
            values.sum as f64 / values.count as f64
        };
        self.line(&format!("avg_{name}"), &java::average(mean));
        self.count(&format!("min_{name}"), values.min);
        self.count(&format!("max_{name}"), values.max);
        self.count(&format!("cnt_{name}"), values.count);
        self.count(&format!("sum_{name}"), values.sum);
    }

    /// A summary with its quantiles `p50_`, `p95_`, `p99_` and `p999_`.
    pub fn percentiles(&mut self, name: &str, values: Percentiles) {
        self.summary(name, values.summary);
        self.count(&format!("p50_{name}"), values.p50);
        self.count(&format!("p95_{name}"), values.p95);
        self.count(&format!("p99_{name}"), values.p99);
        self.count(&format!("p999_{name}"), values.p999);
    }

    fn line(&mut self, name: &str, value: &str) {
        debug_assert!(
            name.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte)),
            "{name} is no metric name that collectors accept",
        );
        self.text.push_str("zk_");
        self.text.push_str(name);
        self.text.push('\t');
        self.text.push_str(value);
        self.text.push('\n');
    }
}

/// The whole answer. The classic gauges come first: collectd reads 4 KiB and no more.
pub(super) fn answer(version: &str, source: &dyn Source) -> String {
    let mut metrics = Metrics::default();
    metrics.line("version", version);
    metrics.line("server_state", source.mode().name());
    // A member without a quorum has no place.
    if let Some(ensemble) = source.ensemble()
        && source.mode() != Mode::ReadOnly
    {
        place(&mut metrics, source.mode(), &ensemble);
    }
    if let Some(figures) = source.leading() {
        leading(&mut metrics, &figures);
    }
    traffic(&mut metrics, source.traffic());
    state(&mut metrics, source.state());
    process(&mut metrics, source.process());
    source.metrics(&mut metrics);
    metrics.text
}

fn place(metrics: &mut Metrics, mode: Mode, ensemble: &Ensemble) {
    let state = match mode {
        Mode::Standalone | Mode::Leader => "leading - broadcast",
        Mode::Follower | Mode::ReadOnly => "following - broadcast",
        Mode::Observer => "observing - broadcast",
    };
    metrics.line("peer_state", state);
    if let (Mode::Observer, Some(leader)) = (mode, ensemble.leader) {
        metrics.count("observer_master_id", leader);
    }
    metrics.count("quorum_size", ensemble.quorum_size);
}

fn leading(metrics: &mut Metrics, figures: &Leading) {
    metrics.count("learners", figures.learners);
    // The name before 3.6, which collectors still ask for.
    metrics.count("followers", figures.learners);
    metrics.count("synced_followers", figures.synced_followers);
    metrics.count(
        "synced_non_voting_followers",
        figures.synced_non_voting_followers,
    );
    metrics.count("synced_observers", figures.synced_observers);
    metrics.count("pending_syncs", figures.pending_syncs);
    metrics.count("leader_uptime", figures.uptime_ms);
    let size = |size: Option<u64>| size.map_or(-1, |size| i64::try_from(size).unwrap_or(i64::MAX));
    let sizes = figures.proposals;
    metrics.integer("last_proposal_size", size(sizes.map(|sizes| sizes.last)));
    metrics.integer("min_proposal_size", size(sizes.map(|sizes| sizes.min)));
    metrics.integer("max_proposal_size", size(sizes.map(|sizes| sizes.max)));
}

fn traffic(metrics: &mut Metrics, traffic: Traffic) {
    metrics.line("avg_latency", &java::average(traffic.latency_avg_ms));
    metrics.count("min_latency", traffic.latency_min_ms);
    metrics.count("max_latency", traffic.latency_max_ms);
    metrics.count("packets_received", traffic.received);
    metrics.count("packets_sent", traffic.sent);
    metrics.count("num_alive_connections", traffic.connections);
    metrics.count("outstanding_requests", traffic.outstanding);
}

fn state(metrics: &mut Metrics, state: State) {
    metrics.count("znode_count", state.znodes + 1);
    metrics.count("watch_count", state.watches);
    metrics.count("ephemerals_count", state.ephemerals);
    metrics.count("approximate_data_size", state.data_bytes);
    metrics.count("global_sessions", state.sessions);
    metrics.integer("local_sessions", 0);
}

fn process(metrics: &mut Metrics, process: Process) {
    metrics.integer("open_file_descriptor_count", process.open_files);
    metrics.integer("max_file_descriptor_count", process.max_files);
    metrics.count("uptime", process.uptime_ms);
}
