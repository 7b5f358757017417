//! Distributions as ZooKeeper's summaries show them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;

use super::shard::Shards;
use super::spread::{Counted, Spread};

/// Count, sum, bounds and quantiles of values.
///
/// `mntr` shows all since the start or the last reset; Prometheus count and sum since the start, and quantiles of the
/// last minutes ([`Self::rotate`]).
#[derive(Debug)]
pub struct Percentiles {
    shards: Cells,
    marks: Mutex<Marks>,
}

/// The same, as the words name it that have no quantiles in `mntr`.
#[derive(Debug, Default)]
pub struct Summary(pub(super) Percentiles);

#[derive(Debug)]
enum Cells {
    /// For what few threads feed.
    One(Box<Cell>),
    /// For what every request feeds.
    Many(Shards<Cell>),
}

#[derive(Debug)]
struct Cell {
    sum: AtomicU64,
    min: AtomicU64,
    max: AtomicU64,
    spread: Spread,
}

#[derive(Debug, Default)]
struct Marks {
    /// At the last reset.
    reset: Moment,
    /// At the last but one rotation, and at the last.
    rotated: [Counted; 2],
}

#[derive(Debug, Default, Clone)]
struct Moment {
    count: u64,
    sum: u64,
    counted: Counted,
}

/// What a summary has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// How many values.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
    /// The least one, 0 if there was none.
    pub min: u64,
    /// The greatest one, 0 if there was none.
    pub max: u64,
}

impl Default for Percentiles {
    fn default() -> Self {
        Percentiles {
            shards: Cells::One(Box::default()),
            marks: Mutex::default(),
        }
    }
}

impl Default for Cell {
    fn default() -> Self {
        Cell {
            sum: AtomicU64::new(0),
            min: AtomicU64::new(u64::MAX),
            max: AtomicU64::new(0),
            spread: Spread::default(),
        }
    }
}

impl Cell {
    fn add(&self, value: u64, times: u64) {
        self.sum.fetch_add(value.saturating_mul(times), Relaxed);
        self.spread.add(value, times);
        // Mostly a look is enough.
        if value < self.min.load(Relaxed) {
            self.min.fetch_min(value, Relaxed);
        }
        if value > self.max.load(Relaxed) {
            self.max.fetch_max(value, Relaxed);
        }
    }
}

impl Summary {
    /// A value was seen.
    pub fn observe(&self, value: u64) {
        self.0.observe(value);
    }

    /// What was seen since the start or the last reset.
    pub fn recent(&self) -> Seen {
        self.0.recent()
    }
}

impl Percentiles {
    /// One that every request feeds: threads do not get into each other's way.
    pub fn busy() -> Percentiles {
        Percentiles {
            shards: Cells::Many(Shards::new(Cell::default)),
            marks: Mutex::default(),
        }
    }

    /// A value was seen.
    pub fn observe(&self, value: u64) {
        self.observe_many(value, 1);
    }

    /// The same value was seen that often.
    pub fn observe_many(&self, value: u64, times: u64) {
        let cell = match &self.shards {
            Cells::One(cell) => cell,
            Cells::Many(cells) => cells.own(),
        };
        cell.add(value, times);
    }

    /// What was seen since the start: count and sum.
    pub fn total(&self) -> (u64, u64) {
        let now = self.now();
        (now.count, now.sum)
    }

    /// What was seen since the start or the last reset.
    pub fn recent(&self) -> Seen {
        let now = self.now();
        let marks = self.marks.lock();
        let count = now.count.saturating_sub(marks.reset.count);
        let bound = |bound: fn(&Cell) -> &AtomicU64| {
            let cells = self.cells().into_iter();
            cells.map(move |cell| bound(cell).load(Relaxed))
        };
        let min = bound(|cell| &cell.min).min().unwrap_or(u64::MAX);
        Seen {
            count,
            sum: now.sum.saturating_sub(marks.reset.sum),
            min: if count == 0 || min == u64::MAX {
                0
            } else {
                min
            },
            max: bound(|cell| &cell.max).max().unwrap_or(0),
        }
    }

    /// Quantiles since the start or the last reset, 0 without values.
    pub fn recent_quantiles<const N: usize>(&self, parts: [f64; N]) -> [u64; N] {
        let counted = self.now().counted.since(&self.marks.lock().reset.counted);
        // A cell's least value may lie below the least that was seen.
        let least = self.recent().min;
        parts.map(|part| counted.quantile(part).map_or(0, |value| value.max(least)))
    }

    /// Quantiles of what was seen since the last rotation but one; `None` without values.
    pub fn window_quantiles<const N: usize>(&self, parts: [f64; N]) -> [Option<u64>; N] {
        let counted = self.now().counted.since(&self.marks.lock().rotated[0]);
        parts.map(|part| counted.quantile(part))
    }

    /// From now on [`Self::recent`] begins anew.
    pub fn reset(&self) {
        let now = self.now();
        self.marks.lock().reset = now;
        for cell in self.cells() {
            cell.min.store(u64::MAX, Relaxed);
            cell.max.store(0, Relaxed);
        }
    }

    /// A part of the window has passed.
    pub fn rotate(&self) {
        let now = self.now().counted;
        let mut marks = self.marks.lock();
        let [_, last] = std::mem::take(&mut marks.rotated);
        marks.rotated = [last, now];
    }

    fn cells(&self) -> Vec<&Cell> {
        match &self.shards {
            Cells::One(cell) => vec![cell],
            Cells::Many(cells) => cells.iter().collect(),
        }
    }

    fn now(&self) -> Moment {
        let mut moment = Moment::default();
        for cell in self.cells() {
            moment.sum += cell.sum.load(Relaxed);
            moment.counted.join(&cell.spread.counted());
        }
        moment.count = moment.counted.count();
        moment
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reset_begins_anew_and_the_total_goes_on() {
        for summary in [Percentiles::default(), Percentiles::busy()] {
            assert_eq!(summary.recent(), Seen::default());
            summary.observe(4);
            summary.observe_many(10, 2);
            let seen = Seen {
                count: 3,
                sum: 24,
                min: 4,
                max: 10,
            };
            assert_eq!(summary.recent(), seen);
            assert_eq!(summary.recent_quantiles([0.3, 0.999]), [4, 10]);
            summary.reset();
            assert_eq!(summary.recent(), Seen::default());
            assert_eq!(summary.recent_quantiles([0.5]), [0]);
            summary.observe(7);
            assert_eq!((summary.recent().min, summary.recent().max), (7, 7));
            assert_eq!(summary.total(), (4, 31));
        }
    }

    #[test]
    fn the_window_forgets_after_two_rotations() {
        let summary = Percentiles::default();
        summary.observe(9);
        summary.rotate();
        assert_eq!(summary.window_quantiles([0.5]), [Some(9)]);
        summary.rotate();
        assert_eq!(summary.window_quantiles([0.5]), [None]);
        assert_eq!(summary.recent_quantiles([0.5]), [9], "mntr forgets nothing");
    }
}
