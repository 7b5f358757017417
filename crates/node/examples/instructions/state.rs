//! The whole state: written for a checkpoint, loaded at a start.

use quenda_tree::{CheckpointSink, Loader, Table, Tree};

use crate::frames;
use crate::machine::Cluster;
use crate::work::{Work, nothing, work};

const ROWS: usize = 10_000;

/// Every row of a state.
#[derive(Default)]
struct Rows(Vec<Row>);

type Row = (Table, Box<[u8]>, Box<[u8]>);

impl CheckpointSink for Rows {
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) {
        self.0.push((table, key.into(), value.into()));
    }

    fn delete(&mut self, _: Table, _: &[u8]) {}
}

/// Counts bytes.
#[derive(Default)]
struct Bytes(usize);

impl CheckpointSink for Bytes {
    fn put(&mut self, _: Table, key: &[u8], value: &[u8]) {
        self.0 += key.len() + value.len();
    }

    fn delete(&mut self, _: Table, key: &[u8]) {
        self.0 += key.len();
    }
}

/// A member that holds so many znodes of 100 bytes, a hundred to a parent.
fn filled() -> Cluster {
    let mut cluster = Cluster::of(1);
    let client = cluster.client(0);
    for parent in 0..ROWS / 100 {
        let parent = format!("/parent-{parent:04}");
        let children = (1..100).map(|child| format!("{parent}/node-{child:06}"));
        let requests = std::iter::once(parent.clone()).chain(children);
        let requests = requests.map(|path| frames::create(9, &path, &[7; 100], 0));
        cluster.ask(0, client, &requests.collect::<Vec<_>>().concat());
    }
    cluster
}

fn rows() -> Rows {
    let mut rows = Rows::default();
    filled().machines[0].tree.write_full(&mut rows);
    rows.0.sort();
    rows
}

fn load(rows: &mut Rows, operations: usize) {
    let mut loader = Loader::new();
    for (table, key, value) in &rows.0 {
        loader.row(*table, key, value).expect("a row");
    }
    let tree: Tree = loader.finish().expect("a state");
    assert!(tree.counts().znodes > operations);
    // Taking it apart is no part of a start.
    std::mem::forget(tree);
}

fn write(cluster: &mut Cluster, operations: usize) {
    let mut bytes = Bytes::default();
    cluster.machines[0].tree.write_full(&mut bytes);
    assert!(bytes.0 > operations * 100);
}

pub fn all() -> Vec<Work> {
    vec![
        work("load 10 000 rows", ROWS, rows, nothing, load),
        work("write 10 000 rows", ROWS, filled, nothing, write),
    ]
}
