//! The heaviest of very many, in the memory of a few: the space-saving algorithm with weights.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// Counts by key, for at most `capacity` keys.
///
/// When a key comes that is not there and all places are taken, it gets the place of the lightest one. What it may have
/// weighed before is at most what that one had, so with a total weight of W every key that weighs more than
/// W / capacity is there, and of none is more missed than W / capacity.
#[derive(Debug)]
pub struct Sketch<K, V> {
    capacity: usize,
    places: HashMap<K, u32>,
    /// Weights with what may have been missed, apart: the lightest is looked for here.
    weights: Vec<u64>,
    entries: Vec<Entry<K, V>>,
}

/// One key with what was counted for it.
#[derive(Debug, Clone)]
pub struct Entry<K, V> {
    /// The key.
    pub key: K,
    /// The most weight that came before it had its place. Nothing of that is in `value`.
    pub missed: u64,
    /// What was counted since.
    pub value: V,
}

impl<K: Hash + Eq + Clone, V: Default> Sketch<K, V> {
    /// An empty one.
    pub fn new(capacity: usize) -> Self {
        Sketch {
            capacity,
            places: HashMap::new(),
            weights: Vec::new(),
            entries: Vec::new(),
        }
    }

    /// Adds weight to a key and gives its value to be added to. `own` makes the key.
    pub fn add<Q>(&mut self, key: &Q, own: impl FnOnce(&Q) -> K, weight: u64) -> &mut V
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        if let Some(&place) = self.places.get(key) {
            let place = place as usize;
            self.weights[place] += weight;
            return &mut self.entries[place].value;
        }
        let key = own(key);
        if self.entries.len() < self.capacity {
            self.places.insert(key.clone(), self.entries.len() as u32);
            self.weights.push(weight);
            self.entries.push(Entry {
                key,
                missed: 0,
                value: V::default(),
            });
            let last = self.entries.len() - 1;
            return &mut self.entries[last].value;
        }
        let (place, missed) = self.lightest();
        self.places.remove(self.entries[place].key.borrow());
        self.places.insert(key.clone(), place as u32);
        self.weights[place] = missed + weight;
        self.entries[place] = Entry {
            key,
            missed,
            value: V::default(),
        };
        &mut self.entries[place].value
    }

    /// The place with the least weight.
    fn lightest(&self) -> (usize, u64) {
        let mut least = (0, u64::MAX);
        for (place, weight) in self.weights.iter().enumerate() {
            if *weight < least.1 {
                least = (place, *weight);
            }
        }
        least
    }

    /// The most that any key weighs which is not here.
    pub fn missed_of_absent(&self) -> u64 {
        match self.entries.len() < self.capacity {
            true => 0,
            false => self.lightest().1,
        }
    }

    /// All keys that are here.
    pub fn entries(&self) -> impl Iterator<Item = &Entry<K, V>> {
        self.entries.iter()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.places.clear();
        self.weights.clear();
        self.entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Dice(u64);

    impl Dice {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % bound
        }
    }

    /// Against exact counts: all heavy ones are there, and each is off by no more than was promised.
    #[test]
    fn the_promised_bound_holds_for_any_order() {
        for seed in 1..=60 {
            let mut dice = Dice(seed * 0x9e37_79b9_7f4a_7c15);
            let capacity = 8 + dice.below(60) as usize;
            let keys = 1 + dice.below(2000);
            let mut sketch: Sketch<String, u64> = Sketch::new(capacity);
            let mut exact: HashMap<String, u64> = HashMap::new();
            let mut total = 0;
            for _ in 0..20_000 {
                // Skewed: small numbers come often.
                let range = 1 + dice.below(keys);
                let key = dice.below(range).to_string();
                let weight = 1 + dice.below(9);
                *sketch.add(key.as_str(), str::to_owned, weight) += weight;
                *exact.entry(key).or_default() += weight;
                total += weight;
            }
            let bound = total / capacity as u64;
            let found: HashMap<&str, &Entry<String, u64>> = sketch
                .entries()
                .map(|one| (one.key.as_str(), one))
                .collect();
            assert!(found.len() <= capacity);
            for (key, weight) in &exact {
                match found.get(key.as_str()) {
                    None => assert!(*weight <= sketch.missed_of_absent(), "seed {seed}: {key}"),
                    Some(entry) => {
                        assert!(entry.value <= *weight, "seed {seed}: {key}");
                        assert!(entry.value + entry.missed >= *weight, "seed {seed}: {key}");
                        assert!(entry.missed <= bound, "seed {seed}: {key}");
                    }
                }
                let is_heavy = *weight > bound;
                assert!(
                    !is_heavy || found.contains_key(key.as_str()),
                    "seed {seed}: {key}"
                );
            }
        }
    }

    #[test]
    fn a_million_keys_take_the_memory_of_a_few() {
        let mut sketch: Sketch<u64, u64> = Sketch::new(200);
        for key in 0..1_000_000u64 {
            *sketch.add(&key, |key| *key, 1) += 1;
            *sketch.add(&7, |key| *key, 1) += 1;
        }
        assert_eq!((sketch.entries.len(), sketch.places.len()), (200, 200));
        assert!(sketch.entries.capacity() <= 512);
        let seven = sketch
            .entries()
            .find(|entry| entry.key == 7)
            .expect("heavy");
        assert!(seven.value + seven.missed >= 1_000_000);
        sketch.clear();
        assert_eq!(
            (sketch.entries().count(), sketch.missed_of_absent()),
            (0, 0)
        );
    }
}
