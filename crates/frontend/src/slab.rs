//! An array whose entries keep their place.

use std::ops::{Index, IndexMut};

/// Entries with stable places; free places are used again, the last freed one first.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    entries: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab {
            entries: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    pub fn insert(&mut self, entry: T) -> u32 {
        match self.free.pop() {
            Some(place) => {
                self.entries[place as usize] = Some(entry);
                place
            }
            None => {
                self.entries.push(Some(entry));
                self.entries.len() as u32 - 1
            }
        }
    }

    pub fn remove(&mut self, place: u32) {
        self.entries[place as usize] = None;
        self.free.push(place);
        if self.len() == 0 {
            *self = Slab::default();
        }
    }

    /// Entries with their places.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let entries = self.entries.iter().enumerate();
        entries.filter_map(|(place, entry)| Some((place as u32, entry.as_ref()?)))
    }
}

/// A place that was never given out or is free again is a fault of this crate.
impl<T> Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, place: u32) -> &T {
        self.entries[place as usize]
            .as_ref()
            .expect("a place in use")
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, place: u32) -> &mut T {
        self.entries[place as usize]
            .as_mut()
            .expect("a place in use")
    }
}
