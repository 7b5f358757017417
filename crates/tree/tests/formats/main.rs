//! Bytes that earlier versions wrote are still read.

#[path = "../common/mod.rs"]
mod common;

use common::*;
use quenda_proto::ErrorCode;
use quenda_tree::command::{Batch, Command, CommandError};
use quenda_tree::{Table, Tree};

const CHECKPOINT_1: &str = include_str!("checkpoint-1.txt");
const BATCH_1: &str = include_str!("batch-1.txt");

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).expect("hex digits");
        u8::from_str_radix(pair, 16).expect("hex digits")
    };
    digits.map(byte).collect()
}

fn table(name: &str) -> Table {
    *Table::ALL
        .iter()
        .find(|table| format!("{table:?}") == name)
        .expect(name)
}

fn checkpoint_1() -> Store {
    let mut store = Store::default();
    for line in CHECKPOINT_1.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [name, key, value] = fields[..] else {
            panic!("{line}");
        };
        store.0.insert((table(name), unhex(key)), unhex(value));
    }
    store
}

/// It was made by a member that stayed alone: two sessions, `/a` with data and a child, a list.
#[test]
fn the_first_layout_of_rows_is_read_and_written_anew() {
    let tree = checkpoint_1().load();
    assert_eq!(tree.applied_index(), 9);
    assert_eq!(tree.cluster(), Some(77));
    assert_eq!(tree.last_zxid(), 0x1_0000_0006);
    assert_eq!(tree.ensemble(), None);
    assert_eq!(tree.counts().znodes, 7);
    let data = tree.get("/a").expect("/a").data();
    assert_eq!(data, Some(&b"data"[..]));
    // The sessions that are open are known to have been given out.
    assert_eq!(tree.newest_session(1), Some(OTHER));
    assert_eq!(tree.digest(), tree.recompute_digest());
    let again = Store::full(&tree).load();
    assert_eq!(dump(&again), dump(&tree));
    assert_eq!(again.digest(), tree.digest());
}

#[test]
fn the_first_layout_of_batches_is_read() {
    let bytes = unhex(BATCH_1.trim());
    let batch = Batch::open(&bytes).expect("a header");
    assert_eq!(batch.time_ms, 1234);
    let commands: Vec<Command<'_>> = batch.map(|command| command.expect("a command")).collect();
    assert_eq!(
        commands[0],
        Command::Found {
            cluster: 77,
            secret: SECRET,
            config: "",
        }
    );
    let mut member = Member {
        tree: Tree::new(),
        term: 1,
        time_ms: 1_234,
    };
    for command in &commands {
        assert_eq!(member.apply(command).code, ErrorCode::Ok);
    }
    assert!(member.has("/a"));
    let Command::Request(request) = &commands[2] else {
        panic!("a request");
    };
    assert!(request.switches.skip_acl && !request.switches.reconfig_enabled);
}

#[test]
fn a_layout_of_the_future_is_refused() {
    let mut bytes = unhex(BATCH_1.trim());
    bytes[0] = 3;
    assert_eq!(Batch::open(&bytes).err(), Some(CommandError::Version(3)));
    bytes[0] = 0;
    assert_eq!(Batch::open(&bytes).err(), Some(CommandError::Version(0)));
}
