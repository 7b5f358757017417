//! What figures are told to: `mntr`, Prometheus' text, a reset. Each figure is told once, and all of them follow.

use super::counter::Counts;
use super::histogram::Histogram;
use super::summary::{Percentiles, Summary};

/// Takes figures. Names are ZooKeeper's, without `zk_` in front, but for those of [`Own`].
pub trait Page {
    /// A whole number that goes up and down.
    fn gauge(&mut self, name: &str, value: i64);
    /// A fraction that goes up and down.
    fn real(&mut self, name: &str, value: f64);
    /// A count that only grows.
    fn counter(&mut self, name: &str, counter: &dyn Counts);
    /// A distribution without quantiles in `mntr`.
    fn summary(&mut self, name: &str, summary: &Summary);
    /// A distribution with quantiles.
    fn percentiles(&mut self, name: &str, percentiles: &Percentiles);
    /// One gauge of a set.
    fn gauge_of(&mut self, name: &str, key: &str, value: i64);
    /// One counter of a set.
    fn counter_of(&mut self, name: &str, key: &str, counter: &dyn Counts);
    /// One summary of a set.
    fn summary_of(&mut self, name: &str, key: &str, summary: &Summary);
    /// One distribution with quantiles of a set.
    fn percentiles_of(&mut self, name: &str, key: &str, percentiles: &Percentiles);
    /// Quenda's own gauge.
    fn own_gauge(&mut self, own: Own, labels: Labels<'_>, value: f64);
    /// Quenda's own counter. Its name ends in `_total`.
    fn own_counter(&mut self, own: Own, labels: Labels<'_>, counter: &dyn Counts);
    /// Quenda's own histogram.
    fn own_histogram(&mut self, own: Own, labels: Labels<'_>, histogram: &Histogram);
}

/// Names and values of labels.
pub type Labels<'a> = &'a [(&'a str, &'a str)];

/// A figure that ZooKeeper does not have. Prometheus alone shows it.
#[derive(Debug, Clone, Copy)]
pub struct Own {
    /// Its whole name, with the unit at its end.
    pub name: &'static str,
    /// What it means.
    pub help: &'static str,
}

/// Shorthand for [`Own`].
pub const fn own(name: &'static str, help: &'static str) -> Own {
    Own { name, help }
}

/// An area's figures.
pub trait Figures {
    /// Tells all of them, always in the same order.
    fn tell(&self, page: &mut dyn Page);
}
