//! The watch table against a naive model, with random streams.

mod driver;

use std::collections::{BTreeMap, BTreeSet};

use driver::Random;
use quenda_frontend::{ConnectionId, Fired, WatchCounts, WatchKinds, WatchTable};
use quenda_proto::Reader;
use quenda_proto::event::EventType;
use quenda_proto::jute::Decode;
use quenda_proto::path::parent;
use quenda_proto::records::WatcherEvent;
use quenda_tree::{AclId, Change, ChangeKind};

const KINDS: [WatchKinds; 5] = [
    WatchKinds::DATA,
    WatchKinds::PERSISTENT,
    WatchKinds::RECURSIVE,
    WatchKinds::CHILD,
    WatchKinds::ANY,
];

#[derive(Default)]
struct Model(BTreeMap<(String, u64), WatchKinds>);

/// Event type, path and the connections that are told.
type Told = (i32, String, BTreeSet<u64>);

impl Model {
    fn add(&mut self, path: &str, connection: u64, kinds: WatchKinds) {
        let entry = self.0.entry((path.to_owned(), connection)).or_default();
        *entry = entry.with(kinds);
    }

    fn has(&self, path: &str, connection: u64, kinds: WatchKinds) -> bool {
        self.0
            .get(&(path.to_owned(), connection))
            .is_some_and(|have| have.intersects(kinds))
    }

    fn remove(&mut self, path: &str, connection: u64, kinds: WatchKinds) -> bool {
        let found = self.has(path, connection, kinds);
        if let Some(have) = self.0.get_mut(&(path.to_owned(), connection)) {
            *have = have.without(kinds);
        }
        self.0.retain(|_, have| !have.is_empty());
        found
    }

    fn take(&mut self, path: &str, wanted: WatchKinds, used: WatchKinds) -> BTreeSet<u64> {
        let mut told = BTreeSet::new();
        for ((watched, connection), have) in &mut self.0 {
            if watched == path && have.intersects(wanted) {
                told.insert(*connection);
                *have = have.without(used);
            }
        }
        self.0.retain(|_, have| !have.is_empty());
        told
    }

    fn data(&mut self, path: &str) -> BTreeSet<u64> {
        let mut told = self.take(path, WatchKinds::ANY_DATA, WatchKinds::DATA);
        let mut ancestor = path.to_owned();
        while ancestor != "/" {
            ancestor = parent(&ancestor).to_owned();
            told.extend(self.take(&ancestor, WatchKinds::RECURSIVE, WatchKinds::NONE));
        }
        told
    }

    fn child(&mut self, path: &str) -> BTreeSet<u64> {
        self.take(path, WatchKinds::ANY_CHILD, WatchKinds::CHILD)
    }

    fn fire(&mut self, kind: ChangeKind, path: &str) -> Vec<Told> {
        let mut steps = Vec::new();
        let mut step = |kind: EventType, path: &str, told: BTreeSet<u64>| {
            if !told.is_empty() {
                steps.push((kind as i32, path.to_owned(), told));
            }
        };
        match kind {
            ChangeKind::Created => step(EventType::NodeCreated, path, self.data(path)),
            ChangeKind::DataChanged => step(EventType::NodeDataChanged, path, self.data(path)),
            ChangeKind::Deleted => {
                let told = self.data(path);
                let children = self.child(path).difference(&told).copied().collect();
                step(EventType::NodeDeleted, path, told);
                step(EventType::NodeDeleted, path, children);
            }
        }
        if kind != ChangeKind::DataChanged && path != "/" {
            let parent = parent(path);
            step(EventType::NodeChildrenChanged, parent, self.child(parent));
        }
        steps
    }

    fn counts(&self) -> WatchCounts {
        let with = |kinds: WatchKinds| {
            self.0
                .iter()
                .filter(move |(_, have)| have.intersects(kinds))
                .map(|(key, _)| key)
        };
        let distinct_paths = |kinds| {
            with(kinds)
                .map(|(path, _)| path)
                .collect::<BTreeSet<_>>()
                .len()
        };
        let distinct_connections =
            |kinds| with(kinds).map(|(_, id)| id).collect::<BTreeSet<_>>().len();
        WatchCounts {
            data_watches: with(WatchKinds::ANY_DATA).count(),
            child_watches: with(WatchKinds::ANY_CHILD).count(),
            paths: distinct_paths(WatchKinds::ANY),
            data_paths: distinct_paths(WatchKinds::ANY_DATA),
            connections: distinct_connections(WatchKinds::ANY),
            data_connections: distinct_connections(WatchKinds::ANY_DATA),
        }
    }
}

fn change(kind: ChangeKind, path: &str) -> Change<'_> {
    Change {
        kind,
        path,
        zxid: 5,
        acl: AclId::OPEN,
        parent_acl: AclId::OPEN,
    }
}

fn told(fired: &Fired) -> Vec<Told> {
    fired
        .events()
        .map(|event| {
            let payload = &event.frame[20..];
            let record = WatcherEvent::decode(&mut Reader::new(payload)).expect("an event");
            let connections: BTreeSet<u64> = event.connections.iter().map(|id| id.0).collect();
            assert_eq!(connections.len(), event.connections.len(), "told twice");
            (
                record.kind,
                record.path.expect("a path").into_owned(),
                connections,
            )
        })
        .collect()
}

fn random_path(random: &mut Random) -> String {
    let depth = random.below(4);
    let names = (0..depth).map(|_| ["/a", "/b", "/c"][random.below(3)]);
    let path: String = names.collect();
    if path.is_empty() {
        "/".to_owned()
    } else {
        path
    }
}

fn check_visits(table: &WatchTable, model: &Model) {
    let (mut by_path, mut by_connection) = (BTreeMap::new(), BTreeMap::new());
    table.for_each_by_path(|path, id, kinds| {
        by_path.insert((path.to_owned(), id.0), kinds);
    });
    table.for_each_by_connection(|id, path, kinds| {
        by_connection.insert((path.to_owned(), id.0), kinds);
    });
    assert_eq!(by_path, model.0);
    assert_eq!(by_connection, model.0);
}

#[test]
fn random_streams_agree_with_the_model() {
    let mut random = Random::from_environment();
    for round in 0..30 {
        // Some rounds with so many connections that all forms of a watcher set are used.
        let connections = [3, 20, 200][round % 3];
        let mut table = WatchTable::new(random.next(), usize::MAX);
        let mut model = Model::default();
        for step in 0..2_000 {
            let path = random_path(&mut random);
            let id = random.below(connections) as u64;
            let kinds = KINDS[random.below(KINDS.len())];
            match random.below(100) {
                0..60 => {
                    assert!(table.add(&path, ConnectionId(id), kinds));
                    model.add(&path, id, kinds);
                }
                60..70 => assert_eq!(
                    table.remove(&path, ConnectionId(id), kinds),
                    model.remove(&path, id, kinds)
                ),
                70..80 => assert_eq!(
                    table.has(&path, ConnectionId(id), kinds),
                    model.has(&path, id, kinds)
                ),
                80..83 => {
                    table.forget(ConnectionId(id));
                    model.0.retain(|(_, connection), _| *connection != id);
                }
                _ => {
                    let kind = [
                        ChangeKind::Created,
                        ChangeKind::Deleted,
                        ChangeKind::DataChanged,
                    ][random.below(3)];
                    let mut fired = Fired::default();
                    table.fire(&change(kind, &path), &mut fired);
                    assert_eq!(told(&fired), model.fire(kind, &path));
                }
            }
            if step % 20 == 0 {
                assert_eq!(table.counts(), model.counts());
            }
        }
        assert_eq!(table.counts(), model.counts());
        check_visits(&table, &model);
        for id in 0..connections {
            table.forget(ConnectionId(id as u64));
        }
        assert_eq!(table.counts(), WatchCounts::default());
    }
}

#[test]
fn the_bound_of_a_connection_holds_for_new_paths_only() {
    let mut table = WatchTable::new(1, 2);
    let id = ConnectionId(1);
    assert!(table.add("/a", id, WatchKinds::DATA));
    assert!(table.add("/b", id, WatchKinds::DATA));
    assert!(!table.add("/c", id, WatchKinds::DATA));
    assert!(table.add("/b", id, WatchKinds::CHILD));
    assert!(table.add("/c", ConnectionId(2), WatchKinds::DATA));
    assert_eq!(table.counts().paths, 3);
    assert!(table.remove("/a", id, WatchKinds::ANY));
    assert!(table.add("/c", id, WatchKinds::DATA));
}

/// The order of the events of one change does not depend on anything but the calls before.
#[test]
fn the_same_calls_give_the_same_events() {
    let run = |seed| {
        let mut table = WatchTable::new(seed, usize::MAX);
        for id in 0..500 {
            assert!(table.add("/a", ConnectionId(id * 7919 % 500), WatchKinds::DATA));
        }
        let mut fired = Fired::default();
        table.fire(&change(ChangeKind::DataChanged, "/a"), &mut fired);
        let order: Vec<_> = fired
            .events()
            .flat_map(|event| event.connections.to_vec())
            .collect();
        order
    };
    assert_eq!(run(1).len(), 500);
    assert_eq!(run(1), run(2));
}
