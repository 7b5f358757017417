//! Histograms in Prometheus' form: counts of values up to fixed bounds.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Bounds for what a disk or a round through the quorum takes, in microseconds.
pub const LATENCIES_US: &[u64] = &[
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000,
];

/// Bounds for how many there are of something.
pub const SIZES: &[u64] = &[
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 100_000,
];

/// Counts of values by size.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [u64],
    /// How many of the values' units make one of those shown.
    units: f64,
    /// One for each bound, and one for what exceeds all.
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
}

impl Histogram {
    /// One for durations, shown in seconds.
    pub fn latencies() -> Histogram {
        Histogram::new(LATENCIES_US, 1e6)
    }

    /// One for numbers.
    pub fn sizes() -> Histogram {
        Histogram::new(SIZES, 1.0)
    }

    fn new(bounds: &'static [u64], units: f64) -> Histogram {
        Histogram {
            bounds,
            units,
            counts: (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect(),
            sum: AtomicU64::new(0),
        }
    }

    /// A duration was seen.
    pub fn observe_duration(&self, duration: Duration) {
        self.observe(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX));
    }

    /// A value was seen, in the units of the bounds.
    pub fn observe(&self, value: u64) {
        let place = self.bounds.partition_point(|bound| *bound < value);
        self.counts[place].fetch_add(1, Relaxed);
        self.sum.fetch_add(value, Relaxed);
    }

    /// Bounds with how many values do not exceed them.
    pub fn cumulated(&self) -> Vec<(f64, u64)> {
        let mut sum = 0;
        let counts = self.counts.iter().map(|count| {
            sum += count.load(Relaxed);
            sum
        });
        let bounds = self.bounds.iter().map(|bound| *bound as f64 / self.units);
        bounds.chain([f64::INFINITY]).zip(counts).collect()
    }

    /// The sum of all values.
    pub fn sum(&self) -> f64 {
        self.sum.load(Relaxed) as f64 / self.units
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_counts_up_to_all_bounds_that_it_does_not_exceed() {
        let histogram = Histogram::latencies();
        histogram.observe_duration(Duration::from_micros(100));
        histogram.observe_duration(Duration::from_millis(2));
        histogram.observe_duration(Duration::from_secs(60));
        let of = |bound: f64| {
            let cumulated = histogram.cumulated();
            let found = cumulated.iter().find(|(at, _)| *at == bound);
            found.expect("a bound").1
        };
        assert_eq!((of(0.0001), of(0.001), of(0.0025)), (1, 1, 2));
        assert_eq!((of(10.0), of(f64::INFINITY)), (2, 3));
        assert!((histogram.sum() - 60.0021).abs() < 1e-9);
    }
}
