//! How values are spread, in cells whose width grows with the value: exact below 32, within a sixteenth above.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Values below this have a cell each; above, each power of two is divided into half as many.
const EXACT: u64 = 32;
/// Larger values count as this one. In microseconds it is an hour.
const GREATEST: u64 = 1 << 32;
/// Cells of a spread.
const CELLS: usize = (EXACT as usize / 2) * (32 - 5) + EXACT as usize + 1;

/// Counts of values by size. Memory is fixed; adding is one addition.
#[derive(Debug)]
pub(super) struct Spread(Box<[AtomicU64]>);

/// The counts of a spread at one moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Counted(Vec<u64>);

impl Default for Spread {
    fn default() -> Self {
        Spread((0..CELLS).map(|_| AtomicU64::new(0)).collect())
    }
}

impl Spread {
    pub(super) fn add(&self, value: u64, times: u64) {
        self.0[cell(value)].fetch_add(times, Relaxed);
    }

    pub(super) fn counted(&self) -> Counted {
        Counted(self.0.iter().map(|count| count.load(Relaxed)).collect())
    }
}

impl Counted {
    pub(super) fn join(&mut self, other: &Counted) {
        self.0.resize(CELLS, 0);
        for (count, more) in self.0.iter_mut().zip(&other.0) {
            *count += more;
        }
    }

    /// What came since `before`.
    pub(super) fn since(mut self, before: &Counted) -> Counted {
        for (count, less) in self.0.iter_mut().zip(&before.0) {
            *count = count.saturating_sub(*less);
        }
        self
    }

    pub(super) fn count(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The value that `part` (from 0 to 1) of all values do not exceed; `None` without values.
    pub(super) fn quantile(&self, part: f64) -> Option<u64> {
        let total = self.count();
        if total == 0 {
            return None;
        }
        let rank = ((total as f64 * part).ceil() as u64).clamp(1, total);
        let mut passed = 0;
        let found = self.0.iter().position(|count| {
            passed += count;
            passed >= rank
        });
        found.map(value)
    }
}

fn cell(value: u64) -> usize {
    let value = value.min(GREATEST);
    if value < EXACT {
        return value as usize;
    }
    let octave = value.ilog2() - EXACT.ilog2();
    // The five leading bits, of which the first is always set.
    let step = (value >> (octave + 1)) - EXACT / 2;
    (EXACT + u64::from(octave) * (EXACT / 2) + step) as usize
}

/// The least value of a cell.
fn value(cell: usize) -> u64 {
    let cell = cell as u64;
    if cell < EXACT {
        return cell;
    }
    let (octave, step) = ((cell - EXACT) / (EXACT / 2), (cell - EXACT) % (EXACT / 2));
    (EXACT / 2 + step) << (octave + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_a_cell_not_wider_than_a_sixteenth() {
        for shift in 0..64 {
            for offset in [0, 1, 3] {
                let given = (1_u64 << shift).saturating_add(offset << shift >> 2);
                let least = value(cell(given));
                let expected = given.min(GREATEST);
                assert!(least <= expected, "{given} in a cell from {least}");
                assert!(
                    expected - least <= expected / 16,
                    "{given} counts as {least}"
                );
            }
        }
        assert_eq!(cell(GREATEST), CELLS - 1);
        assert_eq!(
            (value(cell(0)), value(cell(31)), value(cell(32))),
            (0, 31, 32)
        );
    }

    #[test]
    fn quantiles_are_values_that_were_seen() {
        let spread = Spread::default();
        assert_eq!(spread.counted().quantile(0.5), None);
        for value in 1..=20 {
            spread.add(value, 5);
        }
        let counted = spread.counted();
        let of = |part| counted.quantile(part);
        assert_eq!(
            (of(0.0), of(0.5), of(0.95), of(1.0)),
            (Some(1), Some(10), Some(19), Some(20))
        );
        spread.add(7, 1);
        assert_eq!(spread.counted().since(&counted).quantile(0.999), Some(7));
    }
}
