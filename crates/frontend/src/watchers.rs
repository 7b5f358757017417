//! The connections that watch one path.

use std::collections::BTreeMap;

use crate::watch_kinds::WatchKinds;

/// One connection among the watchers of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Watcher {
    /// Place of the connection in the table.
    pub slot: u32,
    /// Place of the path in the connection's own list.
    pub position: u32,
    /// What it watches; never empty.
    pub kinds: WatchKinds,
}

/// Watchers ordered by slot: in place for one, a sorted list for some, a tree for many. The order makes
/// firing deterministic.
#[derive(Debug, Default)]
pub(crate) enum Watchers {
    #[default]
    None,
    One(Watcher),
    // Boxed, because a path with few watchers is the common case and the table is an array of these.
    #[allow(clippy::box_collection)]
    Some(Box<Vec<Watcher>>),
    #[allow(clippy::box_collection)]
    Many(Box<BTreeMap<u32, (u32, WatchKinds)>>),
}

/// Longest sorted list; inserting into it moves at most this many entries.
const LIST_MAX: usize = 64;

impl Watchers {
    pub fn len(&self) -> usize {
        match self {
            Watchers::None => 0,
            Watchers::One(_) => 1,
            Watchers::Some(list) => list.len(),
            Watchers::Many(map) => map.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        matches!(self, Watchers::None)
    }

    pub fn get(&self, slot: u32) -> Option<Watcher> {
        match self {
            Watchers::None => None,
            Watchers::One(watcher) => (watcher.slot == slot).then_some(*watcher),
            Watchers::Some(list) => find(list, slot).ok().map(|index| list[index]),
            Watchers::Many(map) => map.get(&slot).map(|(position, kinds)| Watcher {
                slot,
                position: *position,
                kinds: *kinds,
            }),
        }
    }

    /// Adds a watcher or replaces the one of the same slot.
    pub fn put(&mut self, watcher: Watcher) {
        match self {
            Watchers::None => *self = Watchers::One(watcher),
            Watchers::One(one) if one.slot == watcher.slot => *one = watcher,
            Watchers::One(one) => {
                let mut list = vec![*one, watcher];
                list.sort_unstable_by_key(|watcher| watcher.slot);
                *self = Watchers::Some(Box::new(list));
            }
            Watchers::Some(list) => match find(list, watcher.slot) {
                Ok(index) => list[index] = watcher,
                Err(index) if list.len() < LIST_MAX => list.insert(index, watcher),
                Err(_) => {
                    let mut map: BTreeMap<_, _> = list.iter().map(entry).collect();
                    map.extend([entry(&watcher)]);
                    *self = Watchers::Many(Box::new(map));
                }
            },
            Watchers::Many(map) => map.extend([entry(&watcher)]),
        }
    }

    pub fn remove(&mut self, slot: u32) {
        match self {
            Watchers::None => {}
            Watchers::One(one) => {
                if one.slot == slot {
                    *self = Watchers::None;
                }
            }
            Watchers::Some(list) => {
                if let Ok(index) = find(list, slot) {
                    list.remove(index);
                }
                if let [one] = list[..] {
                    *self = Watchers::One(one);
                }
            }
            Watchers::Many(map) => {
                map.remove(&slot);
                // Half of the bound, so that one watcher to and fro does not rebuild it each time.
                if map.len() <= LIST_MAX / 2 {
                    let list = map
                        .iter()
                        .map(|(slot, (position, kinds))| Watcher {
                            slot: *slot,
                            position: *position,
                            kinds: *kinds,
                        })
                        .collect();
                    *self = Watchers::Some(Box::new(list));
                }
            }
        }
    }

    /// Calls `visit` for each watcher, in order of the slots.
    pub fn for_each(&self, mut visit: impl FnMut(Watcher)) {
        match self {
            Watchers::None => {}
            Watchers::One(watcher) => visit(*watcher),
            Watchers::Some(list) => list.iter().copied().for_each(visit),
            Watchers::Many(map) => {
                for (slot, (position, kinds)) in map.iter() {
                    visit(Watcher {
                        slot: *slot,
                        position: *position,
                        kinds: *kinds,
                    });
                }
            }
        }
    }
}

fn find(list: &[Watcher], slot: u32) -> Result<usize, usize> {
    list.binary_search_by_key(&slot, |watcher| watcher.slot)
}

fn entry(watcher: &Watcher) -> (u32, (u32, WatchKinds)) {
    (watcher.slot, (watcher.position, watcher.kinds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watcher(slot: u32) -> Watcher {
        Watcher {
            slot,
            position: slot * 2,
            kinds: WatchKinds::DATA,
        }
    }

    fn slots(watchers: &Watchers) -> Vec<u32> {
        let mut slots = Vec::new();
        watchers.for_each(|watcher| slots.push(watcher.slot));
        slots
    }

    #[test]
    fn the_set_grows_and_shrinks_through_all_its_forms() {
        let mut watchers = Watchers::default();
        let count = 3 * LIST_MAX as u32;
        for slot in (0..count).rev() {
            watchers.put(watcher(slot));
            watchers.put(watcher(slot));
            assert_eq!(watchers.len(), (count - slot) as usize);
        }
        assert!(matches!(watchers, Watchers::Many(_)));
        assert_eq!(slots(&watchers), (0..count).collect::<Vec<_>>());
        for slot in 0..count {
            assert_eq!(watchers.get(slot), Some(watcher(slot)));
            watchers.remove(slot);
            watchers.remove(slot);
            assert_eq!(watchers.get(slot), None);
            assert_eq!(slots(&watchers), (slot + 1..count).collect::<Vec<_>>());
        }
        assert!(watchers.is_empty());
    }

    #[test]
    fn one_path_with_one_watcher_is_small() {
        assert!(size_of::<Watchers>() <= 16);
    }
}
