//! `srst` as a page: whatever is told begins anew. Prometheus sees nothing of it.

use super::counter::Counts;
use super::histogram::Histogram;
use super::page::{Labels, Own, Page};
use super::summary::{Percentiles, Summary};

/// Resets what it is told.
pub(super) struct Reset;

impl Page for Reset {
    fn gauge(&mut self, _name: &str, _value: i64) {}

    fn real(&mut self, _name: &str, _value: f64) {}

    fn counter(&mut self, _name: &str, counter: &dyn Counts) {
        counter.reset();
    }

    fn summary(&mut self, _name: &str, summary: &Summary) {
        summary.0.reset();
    }

    fn percentiles(&mut self, _name: &str, percentiles: &Percentiles) {
        percentiles.reset();
    }

    fn gauge_of(&mut self, _name: &str, _key: &str, _value: i64) {}

    fn counter_of(&mut self, _name: &str, _key: &str, counter: &dyn Counts) {
        counter.reset();
    }

    fn summary_of(&mut self, _name: &str, _key: &str, summary: &Summary) {
        summary.0.reset();
    }

    fn percentiles_of(&mut self, _name: &str, _key: &str, percentiles: &Percentiles) {
        percentiles.reset();
    }

    fn own_gauge(&mut self, _own: Own, _labels: Labels<'_>, _value: f64) {}

    fn own_counter(&mut self, _own: Own, _labels: Labels<'_>, _counter: &dyn Counts) {}

    fn own_histogram(&mut self, _own: Own, _labels: Labels<'_>, _histogram: &Histogram) {}
}
