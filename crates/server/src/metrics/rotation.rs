//! The passing of time as a page: the windows of quantiles move on.

use super::counter::Counts;
use super::histogram::Histogram;
use super::page::{Labels, Own, Page};
use super::summary::{Percentiles, Summary};

/// Moves the windows of what it is told.
pub(super) struct Rotation;

impl Page for Rotation {
    fn gauge(&mut self, _name: &str, _value: i64) {}

    fn real(&mut self, _name: &str, _value: f64) {}

    fn counter(&mut self, _name: &str, _counter: &dyn Counts) {}

    fn summary(&mut self, _name: &str, summary: &Summary) {
        summary.0.rotate();
    }

    fn percentiles(&mut self, _name: &str, percentiles: &Percentiles) {
        percentiles.rotate();
    }

    fn gauge_of(&mut self, _name: &str, _key: &str, _value: i64) {}

    fn counter_of(&mut self, _name: &str, _key: &str, _counter: &dyn Counts) {}

    fn summary_of(&mut self, _name: &str, _key: &str, summary: &Summary) {
        summary.0.rotate();
    }

    fn percentiles_of(&mut self, _name: &str, _key: &str, percentiles: &Percentiles) {
        percentiles.rotate();
    }

    fn own_gauge(&mut self, _own: Own, _labels: Labels<'_>, _value: f64) {}

    fn own_counter(&mut self, _own: Own, _labels: Labels<'_>, _counter: &dyn Counts) {}

    fn own_histogram(&mut self, _own: Own, _labels: Labels<'_>, _histogram: &Histogram) {}
}
