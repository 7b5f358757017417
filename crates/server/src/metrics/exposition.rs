//! Figures in Prometheus' text form, as ZooKeeper 3.9 gives them: names without `zk_`, counters without `_total`,
//! distributions as summaries. Quenda's own follow Prometheus' conventions.

use std::collections::HashMap;

use prometheus::proto::{
    Bucket, Counter as ProtoCounter, Gauge, Histogram as ProtoHistogram, LabelPair, Metric,
    MetricFamily, MetricType, Quantile, Summary as ProtoSummary,
};

use super::counter::Counts;
use super::histogram::Histogram;
use super::page::{Labels, Own, Page};
use super::summary::{Percentiles, Summary};

/// The quantile of what has none in `mntr`.
const MEDIAN: [f64; 1] = [0.5];
/// The quantiles of what has.
const QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];
/// The label of sets.
const KEY: &str = "key";

/// Collects families, each once, in the order in which they come first.
#[derive(Default)]
pub struct PrometheusPage {
    families: Vec<MetricFamily>,
    places: HashMap<String, usize>,
    /// Whether a ZooKeeper counter also has its 3.10 name, with `_total`.
    totals: bool,
}

impl PrometheusPage {
    /// An empty page. `totals`: a ZooKeeper counter also gets its name of 3.10, with `_total`.
    pub fn new(totals: bool) -> PrometheusPage {
        PrometheusPage {
            totals,
            ..PrometheusPage::default()
        }
    }

    /// The families.
    pub fn families(self) -> Vec<MetricFamily> {
        self.families
    }

    fn put(&mut self, name: &str, help: &str, kind: MetricType, metric: Metric) {
        let families = &mut self.families;
        let place = match self.places.get(name) {
            Some(place) => *place,
            None => {
                let mut family = MetricFamily::default();
                family.set_name(name.to_owned());
                family.set_help(help.to_owned());
                family.set_field_type(kind);
                families.push(family);
                self.places.insert(name.to_owned(), families.len() - 1);
                families.len() - 1
            }
        };
        families[place].mut_metric().push(metric);
    }

    fn put_gauge(&mut self, name: &str, help: &str, labels: Labels<'_>, value: f64) {
        let mut gauge = Gauge::default();
        gauge.set_value(value);
        let mut metric = labelled(labels);
        metric.set_gauge(gauge);
        self.put(name, help, MetricType::GAUGE, metric);
    }

    fn put_counter(&mut self, name: &str, help: &str, labels: Labels<'_>, value: f64) {
        let mut counter = ProtoCounter::default();
        counter.set_value(value);
        let mut metric = labelled(labels);
        metric.set_counter(counter);
        self.put(name, help, MetricType::COUNTER, metric);
    }

    fn put_zookeeper_counter(&mut self, name: &str, labels: Labels<'_>, counter: &dyn Counts) {
        self.put_counter(name, name, labels, counter.precise());
        if self.totals && !name.ends_with("_total") {
            self.put_counter(&format!("{name}_total"), name, labels, counter.precise());
        }
    }

    fn put_summary<const N: usize>(
        &mut self,
        name: &str,
        labels: Labels<'_>,
        percentiles: &Percentiles,
        parts: [f64; N],
    ) {
        let values = percentiles.window_quantiles(parts);
        let quantiles = parts.iter().zip(values).map(|(part, value)| {
            let mut quantile = Quantile::default();
            quantile.set_quantile(*part);
            quantile.set_value(value.map_or(f64::NAN, |value| value as f64));
            quantile
        });
        let (count, sum) = percentiles.total();
        let mut summary = ProtoSummary::default();
        summary.set_quantile(quantiles.collect());
        summary.set_sample_count(count);
        summary.set_sample_sum(sum as f64);
        let mut metric = labelled(labels);
        metric.set_summary(summary);
        self.put(name, name, MetricType::SUMMARY, metric);
    }
}

fn labelled(labels: Labels<'_>) -> Metric {
    let pairs = labels.iter().map(|(name, value)| {
        let mut pair = LabelPair::default();
        pair.set_name((*name).to_owned());
        pair.set_value((*value).to_owned());
        pair
    });
    let mut metric = Metric::default();
    metric.set_label(pairs.collect());
    metric
}

impl Page for PrometheusPage {
    fn gauge(&mut self, name: &str, value: i64) {
        self.put_gauge(name, name, &[], value as f64);
    }

    fn real(&mut self, name: &str, value: f64) {
        self.put_gauge(name, name, &[], value);
    }

    fn counter(&mut self, name: &str, counter: &dyn Counts) {
        self.put_zookeeper_counter(name, &[], counter);
    }

    fn summary(&mut self, name: &str, summary: &Summary) {
        self.put_summary(name, &[], &summary.0, MEDIAN);
    }

    fn percentiles(&mut self, name: &str, percentiles: &Percentiles) {
        self.put_summary(name, &[], percentiles, QUANTILES);
    }

    fn gauge_of(&mut self, name: &str, key: &str, value: i64) {
        self.put_gauge(name, name, &[(KEY, key)], value as f64);
    }

    fn counter_of(&mut self, name: &str, key: &str, counter: &dyn Counts) {
        self.put_zookeeper_counter(name, &[(KEY, key)], counter);
    }

    fn summary_of(&mut self, name: &str, key: &str, summary: &Summary) {
        self.put_summary(name, &[(KEY, key)], &summary.0, MEDIAN);
    }

    fn percentiles_of(&mut self, name: &str, key: &str, percentiles: &Percentiles) {
        self.put_summary(name, &[(KEY, key)], percentiles, QUANTILES);
    }

    fn own_gauge(&mut self, own: Own, labels: Labels<'_>, value: f64) {
        self.put_gauge(own.name, own.help, labels, value);
    }

    fn own_counter(&mut self, own: Own, labels: Labels<'_>, counter: &dyn Counts) {
        self.put_counter(own.name, own.help, labels, counter.precise());
    }

    fn own_histogram(&mut self, own: Own, labels: Labels<'_>, histogram: &Histogram) {
        let cumulated = histogram.cumulated();
        let count = cumulated.last().map_or(0, |(_, count)| *count);
        let buckets = cumulated.into_iter().map(|(bound, count)| {
            let mut bucket = Bucket::default();
            bucket.set_upper_bound(bound);
            bucket.set_cumulative_count(count);
            bucket
        });
        let mut shown = ProtoHistogram::default();
        shown.set_bucket(
            buckets
                .filter(|bucket| bucket.upper_bound().is_finite())
                .collect(),
        );
        shown.set_sample_count(count);
        shown.set_sample_sum(histogram.sum());
        let mut metric = labelled(labels);
        metric.set_histogram(shown);
        self.put(own.name, own.help, MetricType::HISTOGRAM, metric);
    }
}

#[cfg(test)]
mod tests {
    use prometheus::TextEncoder;

    use super::*;
    use crate::metrics::Counter;
    use crate::metrics::page::own;

    fn text(page: PrometheusPage) -> String {
        let families = page.families();
        TextEncoder::new()
            .encode_to_string(&families)
            .expect("families with metrics")
    }

    #[test]
    fn names_and_types_are_those_of_zookeeper_3_9() {
        let (counter, percentiles, summary) = (
            Counter::default(),
            Percentiles::default(),
            Summary::default(),
        );
        counter.add(12);
        percentiles.observe(3);
        let mut page = PrometheusPage::new(false);
        page.gauge("znode_count", 5);
        page.counter("commit_count", &counter);
        page.summary("fsynctime", &summary);
        page.percentiles_of("ack_latency", "2", &percentiles);
        page.percentiles_of("ack_latency", "a\"b", &percentiles);
        assert_eq!(
            text(page),
            "# HELP znode_count znode_count\n# TYPE znode_count gauge\nznode_count 5\n\
             # HELP commit_count commit_count\n# TYPE commit_count counter\ncommit_count 12\n\
             # HELP fsynctime fsynctime\n# TYPE fsynctime summary\n\
             fsynctime{quantile=\"0.5\"} NaN\nfsynctime_sum 0\nfsynctime_count 0\n\
             # HELP ack_latency ack_latency\n# TYPE ack_latency summary\n\
             ack_latency{key=\"2\",quantile=\"0.5\"} 3\nack_latency{key=\"2\",quantile=\"0.9\"} 3\n\
             ack_latency{key=\"2\",quantile=\"0.99\"} 3\nack_latency_sum{key=\"2\"} 3\nack_latency_count{key=\"2\"} 1\n\
             ack_latency{key=\"a\\\"b\",quantile=\"0.5\"} 3\nack_latency{key=\"a\\\"b\",quantile=\"0.9\"} 3\n\
             ack_latency{key=\"a\\\"b\",quantile=\"0.99\"} 3\nack_latency_sum{key=\"a\\\"b\"} 3\nack_latency_count{key=\"a\\\"b\"} 1\n"
        );
    }

    #[test]
    fn names_of_3_10_come_beside_if_wanted() {
        let counter = Counter::default();
        let mut page = PrometheusPage::new(true);
        page.counter("commit_count", &counter);
        page.counter("op_count_total", &counter);
        let text = text(page);
        assert!(
            text.contains("\ncommit_count 0\n") && text.contains("\ncommit_count_total 0\n"),
            "{text}"
        );
        assert!(
            text.contains("\nop_count_total 0\n") && !text.contains("_total_total"),
            "{text}"
        );
    }

    #[test]
    fn own_figures_have_labels_help_and_buckets() {
        let histogram = Histogram::sizes();
        histogram.observe(3);
        let mut page = PrometheusPage::new(true);
        page.own_gauge(own("quenda_x_bytes", "Bytes of x."), &[("kind", "a")], 1.5);
        page.own_gauge(own("quenda_x_bytes", "Bytes of x."), &[("kind", "b")], 2.0);
        page.own_histogram(own("quenda_y", "How many y."), &[], &histogram);
        let text = text(page);
        let head = "# HELP quenda_x_bytes Bytes of x.\n# TYPE quenda_x_bytes gauge\n\
             quenda_x_bytes{kind=\"a\"} 1.5\nquenda_x_bytes{kind=\"b\"} 2\n# HELP quenda_y How many y.\n\
             # TYPE quenda_y histogram\nquenda_y_bucket{le=\"1\"} 0\n";
        assert!(text.starts_with(head), "{text}");
        assert!(
            text.ends_with("quenda_y_bucket{le=\"+Inf\"} 1\nquenda_y_sum 3\nquenda_y_count 1\n"),
            "{text}"
        );
    }
}
