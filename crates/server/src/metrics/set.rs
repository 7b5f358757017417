//! Figures of which there is one for each of something: a member, a namespace.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// Figures by key. Bounded: what comes first is kept, keys beyond are not counted.
#[derive(Debug)]
pub struct Set<T> {
    of: Mutex<BTreeMap<Box<str>, Arc<T>>>,
    max: usize,
}

impl<T: Default> Set<T> {
    /// One of at most `max` keys.
    pub fn bounded(max: usize) -> Set<T> {
        Set {
            of: Mutex::default(),
            max,
        }
    }

    /// The figure of this key; `None` beyond the bound.
    pub fn get(&self, key: &str) -> Option<Arc<T>> {
        let mut of = self.of.lock();
        if let Some(figure) = of.get(key) {
            return Some(Arc::clone(figure));
        }
        if of.len() >= self.max {
            return None;
        }
        let figure = Arc::new(T::default());
        of.insert(key.into(), Arc::clone(&figure));
        Some(figure)
    }

    /// All of them, by key.
    pub fn all(&self) -> Vec<(Box<str>, Arc<T>)> {
        let of = self.of.lock();
        let pairs = of.iter();
        pairs
            .map(|(key, figure)| (key.clone(), Arc::clone(figure)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Counter, Counts as _};

    #[test]
    fn keys_beyond_the_bound_are_not_counted() {
        let set: Set<Counter> = Set::bounded(2);
        for key in ["b", "a", "c", "a"] {
            if let Some(counter) = set.get(key) {
                counter.add(1);
            }
        }
        let counts: Vec<(Box<str>, u64)> = set
            .all()
            .iter()
            .map(|(key, c)| (key.clone(), c.total()))
            .collect();
        assert_eq!(counts, [("a".into(), 2), ("b".into(), 1)]);
    }
}
