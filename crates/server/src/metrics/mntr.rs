//! Figures as lines of `mntr`: in ZooKeeper's order, with the names and numbers of its default provider.
//!
//! Invariant: every line is `zk_name`, a tab and a value without blanks; names are letters, digits and underscores, with
//! dashes and dots in those that clients have given. One line of another form makes Telegraf drop the whole answer.

use super::counter::Counts;
use super::histogram::Histogram;
use super::page::{Labels, Own, Page};
use super::summary::{Percentiles, Summary};
use crate::four_letter::java;
use crate::quota_refusals::is_metric_name;

/// The quantiles with their names.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)];

/// Collects the lines, gauges first.
#[derive(Debug, Default)]
pub struct MntrPage {
    groups: [String; 5],
}

#[derive(Clone, Copy)]
enum Group {
    Gauges,
    GaugeSets,
    Counters,
    Summaries,
    SummarySets,
}

impl MntrPage {
    /// All lines.
    pub fn text(self) -> String {
        self.groups.concat()
    }

    fn line(&mut self, group: Group, name: &str, value: &str) {
        debug_assert!(
            is_metric_name(name),
            "{name} is no name that collectors take"
        );
        let text = &mut self.groups[group as usize];
        for part in ["zk_", name, "\t", value, "\n"] {
            text.push_str(part);
        }
    }

    fn count(&mut self, group: Group, name: &str, value: u64) {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        self.line(group, name, &value.to_string());
    }

    fn distribution(&mut self, group: Group, name: &str, percentiles: &Percentiles) {
        let seen = percentiles.recent();
        let mean = match seen.count {
            0 => 0.0,
            count => seen.sum as f64 / count as f64,
        };
        self.line(group, &format!("avg_{name}"), &java::average(mean));
        self.count(group, &format!("min_{name}"), seen.min);
        self.count(group, &format!("max_{name}"), seen.max);
        self.count(group, &format!("cnt_{name}"), seen.count);
        self.count(group, &format!("sum_{name}"), seen.sum);
    }

    fn quantiles(&mut self, group: Group, name: &str, percentiles: &Percentiles) {
        let values = percentiles.recent_quantiles(QUANTILES.map(|(_, part)| part));
        for ((quantile, _), value) in QUANTILES.iter().zip(values) {
            self.count(group, &format!("{quantile}_{name}"), value);
        }
    }
}

impl Page for MntrPage {
    fn gauge(&mut self, name: &str, value: i64) {
        self.line(Group::Gauges, name, &value.to_string());
    }

    fn real(&mut self, name: &str, value: f64) {
        self.line(Group::Gauges, name, &java::double(value));
    }

    fn counter(&mut self, name: &str, counter: &dyn Counts) {
        self.count(Group::Counters, name, counter.recent());
    }

    fn summary(&mut self, name: &str, summary: &Summary) {
        self.distribution(Group::Summaries, name, &summary.0);
    }

    fn percentiles(&mut self, name: &str, percentiles: &Percentiles) {
        self.distribution(Group::Summaries, name, percentiles);
        self.quantiles(Group::Summaries, name, percentiles);
    }

    fn gauge_of(&mut self, name: &str, key: &str, value: i64) {
        if is_metric_name(key) {
            self.line(
                Group::GaugeSets,
                &format!("{key}_{name}"),
                &value.to_string(),
            );
        }
    }

    fn counter_of(&mut self, name: &str, key: &str, counter: &dyn Counts) {
        if is_metric_name(key) {
            self.count(Group::Counters, &format!("{key}_{name}"), counter.recent());
        }
    }

    fn summary_of(&mut self, name: &str, key: &str, summary: &Summary) {
        if is_metric_name(key) {
            self.distribution(Group::SummarySets, &format!("{key}_{name}"), &summary.0);
        }
    }

    fn percentiles_of(&mut self, name: &str, key: &str, percentiles: &Percentiles) {
        if is_metric_name(key) {
            let name = format!("{key}_{name}");
            self.distribution(Group::SummarySets, &name, percentiles);
            self.quantiles(Group::SummarySets, &name, percentiles);
        }
    }

    fn own_gauge(&mut self, _own: Own, _labels: Labels<'_>, _value: f64) {}

    fn own_counter(&mut self, _own: Own, _labels: Labels<'_>, _counter: &dyn Counts) {}

    fn own_histogram(&mut self, _own: Own, _labels: Labels<'_>, _histogram: &Histogram) {}
}
