//! The watch tables of this member behind their locks.

use std::collections::BTreeMap;
use std::time::Instant;

use parking_lot::Mutex;
use quenda_frontend::{ConnectionId, Fired, WatchCounts, WatchKinds, WatchTable, Watches};
use quenda_tree::{AclId, Change};

use crate::limits::WATCHED_PATHS_A_TURN;
use crate::metrics::FanOut;

/// Watches of all connections. The lock is held only for one call; the order is tree, connection, this.
///
/// One table: its calls take well under a microsecond, and only requests that leave a watch make them.
#[derive(Debug)]
pub struct LockedWatches {
    table: Mutex<WatchTable>,
    /// Buffers of the core thread.
    fired: Mutex<Fired>,
}

impl LockedWatches {
    /// An empty table. `seed` keys the hashes of the paths, which clients choose.
    pub fn new(seed: u64, watched_paths_max: usize) -> LockedWatches {
        LockedWatches {
            table: Mutex::new(WatchTable::new(seed, watched_paths_max)),
            fired: Mutex::new(Fired::default()),
        }
    }

    /// Uses up the one-shot watches that see this change and calls `tell` with each connection, the event
    /// frame and the list whose READ permission the event needs, in the order clients expect. The table is
    /// not locked during the calls.
    pub fn fire(
        &self,
        change: &Change<'_>,
        figures: &FanOut,
        tell: &mut dyn FnMut(ConnectionId, &[u8], AclId),
    ) {
        let mut fired = self.fired.lock();
        fired.clear();
        self.table.lock().fire(change, &mut fired);
        if fired.is_empty() {
            return;
        }
        let started = Instant::now();
        let mut told = 0;
        for event in fired.events() {
            figures.event(event.kind, event.connections.len());
            told += event.connections.len();
            for connection in event.connections {
                tell(*connection, event.frame, event.acl);
            }
        }
        figures.change(told, started.elapsed());
    }

    /// Numbers of watches, paths and connections.
    pub fn counts(&self) -> WatchCounts {
        self.table.lock().counts()
    }

    /// The paths with most watching connections, the most watched first. The table is locked for a part of it at a time.
    pub fn most_watched(&self, count: usize) -> Vec<(usize, String)> {
        let mut most: Vec<(usize, String)> = Vec::new();
        let mut begin = 0;
        while let Some(end) =
            self.table
                .lock()
                .for_some_paths(begin, WATCHED_PATHS_A_TURN, &mut |path, watchers| {
                    let place = most.partition_point(|(more, _)| *more >= watchers);
                    if place < count {
                        most.insert(place, (watchers, path.to_owned()));
                        most.truncate(count);
                    }
                })
        {
            begin = end;
        }
        most
    }

    /// Data watches by path, with the connections that watch.
    pub fn data_watches(&self) -> BTreeMap<String, Vec<ConnectionId>> {
        let mut by_path: BTreeMap<String, Vec<ConnectionId>> = BTreeMap::new();
        self.table
            .lock()
            .for_each_by_path(|path, connection, kinds| {
                if kinds.intersects(WatchKinds::ANY_DATA) {
                    by_path
                        .entry(path.to_string())
                        .or_default()
                        .push(connection);
                }
            });
        by_path
    }
}

impl Watches for LockedWatches {
    fn add(&self, path: &str, connection: ConnectionId, kinds: WatchKinds) -> bool {
        self.table.lock().add(path, connection, kinds)
    }

    fn has(&self, path: &str, connection: ConnectionId, kinds: WatchKinds) -> bool {
        self.table.lock().has(path, connection, kinds)
    }

    fn remove(&self, path: &str, connection: ConnectionId, kinds: WatchKinds) -> bool {
        self.table.lock().remove(path, connection, kinds)
    }

    fn forget(&self, connection: ConnectionId) {
        self.table.lock().forget(connection);
    }
}
