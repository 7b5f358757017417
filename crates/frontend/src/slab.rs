//! An array whose entries keep their place.

use std::ops::{Index, IndexMut};

/// Entries of one piece of memory. Pieces instead of one array: it would be copied and half empty each
/// time it grows.
const CHUNK: usize = 256;

/// Entries with stable places; free places are used again, the last freed one first.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    chunks: Vec<Vec<Option<T>>>,
    free: Vec<u32>,
    len: usize,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab {
            chunks: Vec::new(),
            free: Vec::new(),
            len: 0,
        }
    }
}

impl<T> Slab<T> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn insert(&mut self, entry: T) -> u32 {
        self.len += 1;
        if let Some(place) = self.free.pop() {
            let (chunk, index) = split(place);
            self.chunks[chunk][index] = Some(entry);
            return place;
        }
        if self.chunks.last().is_none_or(|chunk| chunk.len() == CHUNK) {
            // The first one grows with its entries: most tables are small.
            let capacity = if self.chunks.is_empty() { 0 } else { CHUNK };
            self.chunks.push(Vec::with_capacity(capacity));
        }
        let chunk = self.chunks.len() - 1;
        self.chunks[chunk].push(Some(entry));
        (chunk * CHUNK + self.chunks[chunk].len() - 1) as u32
    }

    pub fn remove(&mut self, place: u32) {
        let (chunk, index) = split(place);
        self.chunks[chunk][index] = None;
        self.free.push(place);
        self.len -= 1;
        if self.len == 0 {
            *self = Slab::default();
        }
    }

    /// The place behind the last one that was ever used.
    pub fn end(&self) -> usize {
        let last = self.chunks.last();
        last.map_or(0, |last| (self.chunks.len() - 1) * CHUNK + last.len())
    }

    /// Entries in these places.
    pub fn range(&self, places: std::ops::Range<usize>) -> impl Iterator<Item = &T> {
        let places = places.start..places.end.min(self.end());
        places.filter_map(|place| self.chunks[place / CHUNK][place % CHUNK].as_ref())
    }

    /// Entries with their places.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let entries = self.chunks.iter().flatten().enumerate();
        entries.filter_map(|(place, entry)| Some((place as u32, entry.as_ref()?)))
    }
}

fn split(place: u32) -> (usize, usize) {
    (place as usize / CHUNK, place as usize % CHUNK)
}

/// A place that was never given out or is free again is a fault of this crate.
impl<T> Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, place: u32) -> &T {
        let (chunk, index) = split(place);
        self.chunks[chunk][index].as_ref().expect("a place in use")
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, place: u32) -> &mut T {
        let (chunk, index) = split(place);
        self.chunks[chunk][index].as_mut().expect("a place in use")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_stable_and_used_again() {
        let mut slab = Slab::default();
        let places: Vec<u32> = (0..3 * CHUNK).map(|entry| slab.insert(entry)).collect();
        assert_eq!(places, (0..3 * CHUNK as u32).collect::<Vec<_>>());
        for place in places.iter().step_by(2) {
            slab.remove(*place);
        }
        assert_eq!(slab.len(), 3 * CHUNK / 2);
        assert!(slab.iter().all(|(place, entry)| place as usize == *entry));
        for _ in 0..3 * CHUNK / 2 {
            assert_eq!(slab.insert(7) % 2, 0);
        }
        assert_eq!(slab.insert(7), 3 * CHUNK as u32);
        for (place, entry) in (0..).zip(0..3 * CHUNK) {
            assert_eq!(slab[place], if entry % 2 == 0 { 7 } else { entry });
        }
        for place in 0..=3 * CHUNK as u32 {
            slab.remove(place);
        }
        assert_eq!((slab.len(), slab.chunks.len()), (0, 0));
    }
}
