//! `mntr` in the form that it has in ZooKeeper 3.9 with its provider for Prometheus: every number a double, names with
//! labels in braces. Telegraf does not take it; Datadog's newer lists of metrics are made for it.

use prometheus::proto::{Metric, MetricFamily, MetricType};

use crate::four_letter::java;

/// A line for each sample.
pub(super) fn lines(families: &[MetricFamily]) -> String {
    let mut text = String::new();
    for family in families {
        for metric in family.get_metric() {
            sample_lines(&mut text, family, metric);
        }
    }
    text
}

fn sample_lines(text: &mut String, family: &MetricFamily, metric: &Metric) {
    let name = family.name();
    let mut line = |suffix: &str, more: Option<(&str, String)>, value: f64| {
        let own = metric.get_label().iter();
        let labels = own.map(|label| (label.name(), label.value().to_owned()));
        let labels: Vec<String> = labels
            .chain(more)
            .map(|(name, value)| format!("{name}=\"{value}\""))
            .collect();
        let labels = match labels.is_empty() {
            true => String::new(),
            false => format!("{{{}}}", labels.join(",")),
        };
        // A line break in a namespace's name must not make a line.
        let key = format!("zk_{name}{suffix}{labels}").replace(char::is_control, "");
        text.push_str(&format!("{key}\t{}\n", java::double(value)));
    };
    match family.get_field_type() {
        MetricType::COUNTER => line("", None, metric.get_counter().get_value()),
        MetricType::SUMMARY => {
            let summary = metric.get_summary();
            for quantile in summary.get_quantile() {
                let part = java::double(quantile.quantile());
                line("", Some(("quantile", part)), quantile.value());
            }
            line("_count", None, summary.sample_count() as f64);
            line("_sum", None, summary.sample_sum());
        }
        MetricType::HISTOGRAM => {
            let histogram = metric.get_histogram();
            for bucket in histogram.get_bucket() {
                let bound = java::double(bucket.upper_bound());
                line(
                    "_bucket",
                    Some(("le", bound)),
                    bucket.cumulative_count() as f64,
                );
            }
            line("_count", None, histogram.get_sample_count() as f64);
            line("_sum", None, histogram.get_sample_sum());
        }
        MetricType::GAUGE | MetricType::UNTYPED => line("", None, metric.get_gauge().get_value()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::page::Page as _;
    use crate::metrics::{Percentiles, PrometheusPage};

    #[test]
    fn every_number_is_a_double_and_labels_stand_in_braces() {
        let latency = Percentiles::default();
        let mut page = PrometheusPage::new(false);
        page.gauge("znode_count", 5);
        page.percentiles_of("ack_latency", "2", &latency);
        assert_eq!(
            lines(&page.families()),
            "zk_znode_count\t5.0\nzk_ack_latency{key=\"2\",quantile=\"0.5\"}\tNaN\n\
             zk_ack_latency{key=\"2\",quantile=\"0.9\"}\tNaN\nzk_ack_latency{key=\"2\",quantile=\"0.99\"}\tNaN\n\
             zk_ack_latency_count{key=\"2\"}\t0.0\nzk_ack_latency_sum{key=\"2\"}\t0.0\n"
        );
    }
}
