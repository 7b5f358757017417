//! All watches of the connections of a member (or of a shard of them).
//!
//! Each path that is watched is stored once, with its watchers; each connection has a list of its paths.
//! A watcher knows its place in that list, so that it is removed without a search from either side.

use std::cell::RefCell;

use hashbrown::HashTable;
use quenda_proto::event::EventType;
use quenda_proto::path::parent;
use quenda_tree::{Change, ChangeKind};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::fired::Fired;
use crate::slab::Slab;
use crate::watch_kinds::WatchKinds;
use crate::watchers::{Watcher, Watchers};
use crate::world::{ConnectionId, Watches};

/// Watches by path and by connection. Where a member uses several tables, each connection belongs to one
/// of them, and every change is fired in all.
#[derive(Debug)]
pub struct WatchTable {
    seed: u64,
    paths: Slab<WatchedPath>,
    paths_by_text: HashTable<u32>,
    connections: Slab<Watching>,
    connections_by_id: HashTable<u32>,
    counts: WatchCounts,
    recursive: usize,
    watched_paths_max: usize,
}

#[derive(Debug)]
struct WatchedPath {
    path: Box<str>,
    watchers: Watchers,
    /// Watchers among them with a data kind.
    data: u32,
}

#[derive(Debug)]
struct Watching {
    id: ConnectionId,
    /// Places of its paths.
    paths: Vec<u32>,
    /// Paths among them with a data kind.
    data: u32,
}

/// Exact numbers of a table; those of several tables add up, except the paths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WatchCounts {
    /// Pairs of connection and path with a data, exists, persistent or recursive watch.
    pub data_watches: usize,
    /// Pairs with a child or persistent watch.
    pub child_watches: usize,
    /// Paths with any watch.
    pub paths: usize,
    /// Paths with a data, exists, persistent or recursive watch.
    pub data_paths: usize,
    /// Connections with any watch.
    pub connections: usize,
    /// Connections with a data, exists, persistent or recursive watch.
    pub data_connections: usize,
}

impl WatchCounts {
    /// All watches; a persistent one counts for data and for children.
    pub fn watches(&self) -> usize {
        self.data_watches + self.child_watches
    }
}

impl WatchTable {
    /// An empty table. `seed` keys the hash of the paths, which clients choose: take a random number.
    /// `watched_paths_max` bounds the paths of one connection.
    pub fn new(seed: u64, watched_paths_max: usize) -> WatchTable {
        WatchTable {
            seed,
            paths: Slab::default(),
            paths_by_text: HashTable::new(),
            connections: Slab::default(),
            connections_by_id: HashTable::new(),
            counts: WatchCounts::default(),
            recursive: 0,
            watched_paths_max,
        }
    }

    /// Numbers of watches, paths and connections.
    pub fn counts(&self) -> WatchCounts {
        WatchCounts {
            paths: self.paths.len(),
            connections: self.connections.len(),
            ..self.counts
        }
    }

    /// Calls `see` with the paths in some places of the table and their numbers of watchers. Gives the place to go on
    /// at, `None` behind the last one; paths that come and go meanwhile may be left out or seen twice.
    pub fn for_some_paths(
        &self,
        begin: usize,
        places: usize,
        see: &mut dyn FnMut(&str, usize),
    ) -> Option<usize> {
        let end = begin + places;
        for watched in self.paths.range(begin..end) {
            see(&watched.path, watched.watchers.len());
        }
        (end < self.paths.end()).then_some(end)
    }

    /// Leaves watches; see [`Watches::add`].
    pub fn add(&mut self, path: &str, connection: ConnectionId, kinds: WatchKinds) -> bool {
        if kinds.is_empty() {
            return true;
        }
        let slot = self.connection(connection);
        let place = self.path(path);
        let before = self.paths[place].watchers.get(slot);
        let position = match before {
            Some(watcher) => watcher.position,
            None if self.connections[slot].paths.len() >= self.watched_paths_max => {
                self.drop_path_if_unwatched(place);
                self.drop_connection_if_idle(slot);
                return false;
            }
            None => {
                let paths = &mut self.connections[slot].paths;
                paths.push(place);
                paths.len() as u32 - 1
            }
        };
        let old = before.map_or(WatchKinds::NONE, |watcher| watcher.kinds);
        let kinds = old.with(kinds);
        self.paths[place].watchers.put(Watcher {
            slot,
            position,
            kinds,
        });
        self.count(place, slot, old, kinds);
        true
    }

    /// Whether there is a watch; see [`Watches::has`].
    pub fn has(&self, path: &str, connection: ConnectionId, kinds: WatchKinds) -> bool {
        self.find(path, connection)
            .is_some_and(|(_, watcher)| watcher.kinds.intersects(kinds))
    }

    /// Takes watches away; see [`Watches::remove`].
    pub fn remove(&mut self, path: &str, connection: ConnectionId, kinds: WatchKinds) -> bool {
        match self.find(path, connection) {
            Some((place, watcher)) if watcher.kinds.intersects(kinds) => {
                self.set_kinds(place, watcher, watcher.kinds.without(kinds));
                self.drop_path_if_unwatched(place);
                self.drop_connection_if_idle(watcher.slot);
                true
            }
            Some(_) | None => false,
        }
    }

    /// Takes all watches of a connection away, in time of their number.
    pub fn forget(&mut self, connection: ConnectionId) {
        let Some(slot) = self.find_connection(connection) else {
            return;
        };
        while let Some(place) = self.connections[slot].paths.last().copied() {
            if let Some(watcher) = self.paths[place].watchers.get(slot) {
                self.set_kinds(place, watcher, WatchKinds::NONE);
            }
            self.drop_path_if_unwatched(place);
        }
        self.drop_connection_if_idle(slot);
    }

    /// Finds who is to be told of a change, step by step in the order in which clients expect it, and
    /// uses up the one-shot watches among them. The steps are appended to `fired`.
    pub fn fire(&mut self, change: &Change<'_>, fired: &mut Fired) {
        if self.paths.len() == 0 {
            return;
        }
        let path = change.path;
        match change.kind {
            ChangeKind::Created => {
                self.fire_data(EventType::NodeCreated, change, fired);
                self.fire_children(path, change, fired);
            }
            ChangeKind::Deleted => {
                let told = self.fire_data(EventType::NodeDeleted, change, fired);
                let step = fired.start();
                self.collect(path, WatchKinds::ANY_CHILD, WatchKinds::CHILD, fired);
                fired.forget_those_in(&told, &step);
                fired.finish(step, EventType::NodeDeleted, path, change.zxid, change.acl);
                self.fire_children(path, change, fired);
            }
            ChangeKind::DataChanged => {
                self.fire_data(EventType::NodeDataChanged, change, fired);
            }
        }
    }

    fn fire_data(
        &mut self,
        kind: EventType,
        change: &Change<'_>,
        fired: &mut Fired,
    ) -> std::ops::Range<usize> {
        let step = fired.start();
        self.collect(change.path, WatchKinds::ANY_DATA, WatchKinds::DATA, fired);
        if self.recursive > 0 {
            let mut ancestor = change.path;
            while ancestor != "/" {
                ancestor = parent(ancestor);
                self.collect(ancestor, WatchKinds::RECURSIVE, WatchKinds::NONE, fired);
            }
            fired.unify(&step);
        }
        fired.finish(step, kind, change.path, change.zxid, change.acl)
    }

    fn fire_children(&mut self, path: &str, change: &Change<'_>, fired: &mut Fired) {
        if path == "/" {
            return;
        }
        let step = fired.start();
        let parent = parent(path);
        self.collect(parent, WatchKinds::ANY_CHILD, WatchKinds::CHILD, fired);
        let kind = EventType::NodeChildrenChanged;
        fired.finish(step, kind, parent, change.zxid, change.parent_acl);
    }

    /// Appends the connections with one of the kinds on this path and takes the kinds in `used` away.
    fn collect(&mut self, path: &str, wanted: WatchKinds, used: WatchKinds, fired: &mut Fired) {
        let Some(place) = self.find_path(path) else {
            return;
        };
        let mut spent = std::mem::take(&mut fired.spent);
        spent.clear();
        let connections = &self.connections;
        self.paths[place].watchers.for_each(|watcher| {
            if watcher.kinds.intersects(wanted) {
                fired.push(connections[watcher.slot].id);
            }
            if watcher.kinds.intersects(used) {
                spent.push(watcher);
            }
        });
        if spent.len() == self.paths[place].watchers.len() {
            self.spend_all(place, used, &spent);
        } else {
            for watcher in &spent {
                self.spend(place, *watcher, used);
            }
        }
        fired.spent = spent;
    }

    fn spend(&mut self, place: u32, watcher: Watcher, used: WatchKinds) {
        self.set_kinds(place, watcher, watcher.kinds.without(used));
        self.drop_connection_if_idle(watcher.slot);
    }

    /// As [`Self::spend`] for each watcher of the path; from the back, where a list loses an entry
    /// without moving the others.
    fn spend_all(&mut self, place: u32, used: WatchKinds, spent: &[Watcher]) {
        for watcher in spent.iter().rev() {
            self.spend(place, *watcher, used);
        }
        self.drop_path_if_unwatched(place);
    }

    /// Calls `visit` with each connection, its paths and what it watches there. Connections are in no
    /// particular order, but the paths of one connection follow each other.
    pub fn for_each_by_connection(&self, mut visit: impl FnMut(ConnectionId, &str, WatchKinds)) {
        for (slot, connection) in self.connections.iter() {
            for place in &connection.paths {
                let watched = &self.paths[*place];
                if let Some(watcher) = watched.watchers.get(slot) {
                    visit(connection.id, &watched.path, watcher.kinds);
                }
            }
        }
    }

    /// Calls `visit` with each path, its watchers and what they watch. Paths are in no particular order,
    /// but the watchers of one path follow each other.
    pub fn for_each_by_path(&self, mut visit: impl FnMut(&str, ConnectionId, WatchKinds)) {
        for (_, watched) in self.paths.iter() {
            watched.watchers.for_each(|watcher| {
                let id = self.connections[watcher.slot].id;
                visit(&watched.path, id, watcher.kinds);
            });
        }
    }

    fn find(&self, path: &str, connection: ConnectionId) -> Option<(u32, Watcher)> {
        let slot = self.find_connection(connection)?;
        let place = self.find_path(path)?;
        Some((place, self.paths[place].watchers.get(slot)?))
    }

    /// Replaces the kinds of a watcher; without any it leaves both lists. Whoever calls this drops the
    /// path and the connection if nothing is left of them.
    fn set_kinds(&mut self, place: u32, watcher: Watcher, kinds: WatchKinds) {
        if kinds.is_empty() {
            self.paths[place].watchers.remove(watcher.slot);
            self.forget_path(watcher.slot, watcher.position);
        } else {
            self.paths[place].watchers.put(Watcher { kinds, ..watcher });
        }
        self.count(place, watcher.slot, watcher.kinds, kinds);
    }

    /// Removes an entry of a connection's own list; the last one takes its place.
    fn forget_path(&mut self, slot: u32, position: u32) {
        let paths = &mut self.connections[slot].paths;
        paths.swap_remove(position as usize);
        let moved = paths.get(position as usize).copied();
        if paths.capacity() > 16 && paths.len() < paths.capacity() / 4 {
            paths.shrink_to(paths.capacity() / 2);
        }
        if let Some(place) = moved
            && let Some(watcher) = self.paths[place].watchers.get(slot)
        {
            self.paths[place].watchers.put(Watcher {
                position,
                ..watcher
            });
        }
    }

    fn count(&mut self, place: u32, slot: u32, old: WatchKinds, new: WatchKinds) {
        let changed = |kinds| (old.intersects(kinds), new.intersects(kinds));
        let counts = &mut self.counts;
        let of_path = &mut self.paths[place].data;
        let of_connection = &mut self.connections[slot].data;
        match changed(WatchKinds::ANY_DATA) {
            (false, true) => {
                counts.data_watches += 1;
                counts.data_paths += usize::from(*of_path == 0);
                counts.data_connections += usize::from(*of_connection == 0);
                *of_path += 1;
                *of_connection += 1;
            }
            (true, false) => {
                *of_path -= 1;
                *of_connection -= 1;
                counts.data_watches -= 1;
                counts.data_paths -= usize::from(*of_path == 0);
                counts.data_connections -= usize::from(*of_connection == 0);
            }
            (true, true) | (false, false) => {}
        }
        match changed(WatchKinds::ANY_CHILD) {
            (false, true) => counts.child_watches += 1,
            (true, false) => counts.child_watches -= 1,
            (true, true) | (false, false) => {}
        }
        match changed(WatchKinds::RECURSIVE) {
            (false, true) => self.recursive += 1,
            (true, false) => self.recursive -= 1,
            (true, true) | (false, false) => {}
        }
    }

    fn find_path(&self, path: &str) -> Option<u32> {
        let hash = xxh3_64_with_seed(path.as_bytes(), self.seed);
        let found = |place: &u32| &*self.paths[*place].path == path;
        self.paths_by_text.find(hash, found).copied()
    }

    fn path(&mut self, path: &str) -> u32 {
        if let Some(place) = self.find_path(path) {
            return place;
        }
        let place = self.paths.insert(WatchedPath {
            path: path.into(),
            watchers: Watchers::None,
            data: 0,
        });
        let (paths, seed) = (&self.paths, self.seed);
        let hash = |place: &u32| xxh3_64_with_seed(paths[*place].path.as_bytes(), seed);
        self.paths_by_text.insert_unique(hash(&place), place, hash);
        place
    }

    fn drop_path_if_unwatched(&mut self, place: u32) {
        if !self.paths[place].watchers.is_empty() {
            return;
        }
        let hash = xxh3_64_with_seed(self.paths[place].path.as_bytes(), self.seed);
        if let Ok(entry) = self.paths_by_text.find_entry(hash, |found| *found == place) {
            entry.remove();
        }
        let (paths, seed) = (&self.paths, self.seed);
        shrink(&mut self.paths_by_text, |place| {
            xxh3_64_with_seed(paths[*place].path.as_bytes(), seed)
        });
        self.paths.remove(place);
    }

    fn find_connection(&self, id: ConnectionId) -> Option<u32> {
        let found = |slot: &u32| self.connections[*slot].id == id;
        let hash = connection_hash(id, self.seed);
        self.connections_by_id.find(hash, found).copied()
    }

    fn connection(&mut self, id: ConnectionId) -> u32 {
        if let Some(slot) = self.find_connection(id) {
            return slot;
        }
        let slot = self.connections.insert(Watching {
            id,
            paths: Vec::new(),
            data: 0,
        });
        let (connections, seed) = (&self.connections, self.seed);
        let hash = |slot: &u32| connection_hash(connections[*slot].id, seed);
        self.connections_by_id
            .insert_unique(hash(&slot), slot, hash);
        slot
    }

    fn drop_connection_if_idle(&mut self, slot: u32) {
        if !self.connections[slot].paths.is_empty() {
            return;
        }
        let hash = connection_hash(self.connections[slot].id, self.seed);
        if let Ok(entry) = self
            .connections_by_id
            .find_entry(hash, |found| *found == slot)
        {
            entry.remove();
        }
        let (connections, seed) = (&self.connections, self.seed);
        shrink(&mut self.connections_by_id, |slot| {
            connection_hash(connections[*slot].id, seed)
        });
        self.connections.remove(slot);
    }
}

fn connection_hash(id: ConnectionId, seed: u64) -> u64 {
    xxh3_64_with_seed(&id.0.to_le_bytes(), seed)
}

/// Gives memory back when a table that was large is nearly empty.
fn shrink(table: &mut HashTable<u32>, hash: impl Fn(&u32) -> u64) {
    if table.capacity() > 64 && table.len() < table.capacity() / 8 {
        table.shrink_to(table.capacity() / 4, hash);
    }
}

/// For one thread: tests and the simulator.
impl Watches for RefCell<WatchTable> {
    fn add(&self, path: &str, connection: ConnectionId, kinds: WatchKinds) -> bool {
        self.borrow_mut().add(path, connection, kinds)
    }

    fn has(&self, path: &str, connection: ConnectionId, kinds: WatchKinds) -> bool {
        self.borrow().has(path, connection, kinds)
    }

    fn remove(&self, path: &str, connection: ConnectionId, kinds: WatchKinds) -> bool {
        self.borrow_mut().remove(path, connection, kinds)
    }

    fn forget(&self, connection: ConnectionId) {
        self.borrow_mut().forget(connection);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A watch costs at most 64 bytes beside the text of its path: the entry of the path with one watcher
    /// in place, the path in the list of its connection (half empty at worst), and the hash table's
    /// place for it (less than half full at worst, one byte of control each).
    #[test]
    fn a_watch_is_small() {
        let entry = size_of::<Option<WatchedPath>>();
        let list = 2 * size_of::<u32>();
        let index = (size_of::<u32>() + 1) * 16 / 7;
        assert!(entry + list + index <= 64, "{entry} + {list} + {index}");
        assert_eq!(size_of::<Watcher>(), 12);
    }
}
