//! Checkpoints: written in parts, loaded, damaged.

mod common;

use common::*;
use quenda_proto::{ErrorCode, Op};
use quenda_tree::{CheckpointSink, LoadError, Loader, Table, Tree};

fn me() -> Client {
    Client::new(SESSION)
}

fn load(store: &Store) -> Result<Tree, LoadError> {
    let mut loader = Loader::new();
    for ((table, key), value) in &store.0 {
        loader.row(*table, key, value)?;
    }
    loader.finish()
}

/// Counts rows.
#[derive(Default)]
struct Rows {
    put: usize,
    deleted: usize,
}

impl CheckpointSink for Rows {
    fn put(&mut self, _: Table, _: &[u8], _: &[u8]) {
        self.put += 1;
    }

    fn delete(&mut self, _: Table, _: &[u8]) {
        self.deleted += 1;
    }
}

#[test]
fn a_checkpoint_costs_what_changed() {
    let mut member = Member::new();
    for number in 0..1_000 {
        member.must_create(&format!("/n{number}"));
    }
    member.tree.write_checkpoint(&mut Rows::default());
    assert_eq!(member.tree.dirty_bytes(), 0);
    for _ in 0..50 {
        member
            .set(&me(), "/n1", b"again and again", -1)
            .expect("a stat");
    }
    assert_eq!(member.delete(&me(), "/n2", -1), ErrorCode::Ok);
    assert!(member.tree.dirty_bytes() > 0);
    let mut rows = Rows::default();
    member.tree.write_checkpoint(&mut rows);
    // /n1, the root and the state; /n2 goes.
    assert_eq!((rows.put, rows.deleted), (3, 1));
    let mut rows = Rows::default();
    member.tree.write_checkpoint(&mut rows);
    assert_eq!((rows.put, rows.deleted), (1, 0), "the state alone");
}

#[test]
fn what_comes_and_goes_between_two_checkpoints_leaves_nothing() {
    let mut member = Member::new();
    let mut store = Store::default();
    member.must_create("/kept");
    member.must_create("/replaced");
    member.tree.write_checkpoint(&mut store);
    let list = vec![acl(31, "digest", "u:h")];
    for _ in 0..3 {
        member.must_create("/passing");
        assert_eq!(member.delete(&me(), "/passing", -1), ErrorCode::Ok);
        assert_eq!(member.delete(&me(), "/replaced", -1), ErrorCode::Ok);
        member.must_create("/replaced");
        let passing = create_acl("/listed", list.clone());
        assert_eq!(member.send(&me(), Op::Create, &passing).code, ErrorCode::Ok);
        assert_eq!(member.delete(&me(), "/listed", -1), ErrorCode::Ok);
    }
    member.tree.write_checkpoint(&mut store);
    assert_eq!(store, Store::full(&member.tree));
    assert_eq!(
        load(&store).map(|tree| tree.digest()),
        Ok(member.tree.digest())
    );
}

#[test]
fn lists_go_with_their_last_znode() {
    let mut member = Member::new();
    let mut store = Store::default();
    for path in ["/a", "/b"] {
        let request = create_acl(path, vec![acl(31, "digest", "u:h")]);
        assert_eq!(member.send(&me(), Op::Create, &request).code, ErrorCode::Ok);
    }
    member.tree.write_checkpoint(&mut store);
    let lists = |store: &Store| {
        store
            .0
            .keys()
            .filter(|(table, _)| *table == Table::Acls)
            .count()
    };
    assert_eq!(
        lists(&store),
        3,
        "the two built in, and one that both share"
    );
    assert_eq!(member.delete(&me(), "/a", -1), ErrorCode::Ok);
    assert_eq!(member.delete(&me(), "/b", -1), ErrorCode::Ok);
    member.tree.write_checkpoint(&mut store);
    let mut tree = load(&store).expect("a list without users does no harm");
    member.must_create("/c");
    member.tree.write_checkpoint(&mut store);
    assert_eq!(lists(&store), 2);
    let mut twin = Member::new();
    std::mem::swap(&mut twin.tree, &mut tree);
    twin.must_create("/c");
    assert_eq!(twin.tree.digest(), member.tree.digest());
}

#[test]
fn a_loaded_tree_remembers_everything() {
    let mut member = Member::new();
    member.open(OTHER);
    member.create(&me(), "/e", 1).expect("a path");
    member.must_create("/p");
    member.create(&me(), "/p/s-", 2).expect("a path");
    member.tree.set_applied_index(42, 7);
    let tree = Store::full(&member.tree).load();
    assert_eq!((tree.applied_index(), tree.applied_term()), (42, 7));
    assert_eq!(tree.last_zxid(), member.tree.last_zxid());
    assert_eq!(tree.cluster(), Some(77));
    assert_eq!(tree.counts(), member.tree.counts());
    assert_eq!(
        tree.session_password(OTHER),
        member.tree.session_password(OTHER)
    );
    assert_eq!(tree.ephemerals(SESSION).collect::<Vec<_>>(), ["/e"]);
    assert_eq!(tree.session(OTHER), member.tree.session(OTHER));
    member.tree = tree;
    let next = member.create(&me(), "/p/s-", 2);
    assert_eq!(next.as_deref(), Ok("/p/s-0000000001"));
}

fn sample() -> Store {
    let mut member = Member::new();
    member.must_create_with("/a", b"data");
    member.must_create("/a/b");
    member.create(&me(), "/a/e", 1).expect("a path");
    let listed = create_acl("/l", vec![acl(31, "digest", "u:h")]);
    assert_eq!(member.send(&me(), Op::Create, &listed).code, ErrorCode::Ok);
    Store::full(&member.tree)
}

#[test]
fn a_missing_row_is_noticed() {
    let store = sample();
    assert!(load(&store).is_ok());
    for key in store.0.keys() {
        let mut damaged = store.clone();
        damaged.0.remove(key);
        assert!(load(&damaged).is_err(), "{key:?}");
    }
    assert_eq!(load(&Store::default()).err(), Some(LoadError::NoState));
}

#[test]
fn a_cut_row_is_noticed() {
    let store = sample();
    for (key, value) in &store.0 {
        let mut damaged = store.clone();
        let shorter = value[..value.len().saturating_sub(1)].to_vec();
        damaged.0.insert(key.clone(), shorter);
        // The last byte of a znode's row is data; only a scan with the digest from scratch can tell.
        match load(&damaged) {
            Err(_) => {}
            Ok(tree) => assert_ne!(tree.recompute_digest(), tree.digest(), "{key:?}"),
        }
    }
}

#[test]
fn a_changed_bit_is_noticed() {
    let store = sample();
    let whole = store.load();
    let mut random = Random::new(1);
    let znodes = |(table, _): &&(Table, Vec<u8>)| *table != Table::Meta;
    for key in store.0.keys().filter(znodes) {
        let value = &store.0[key];
        for _ in 0..200 {
            let mut damaged = store.clone();
            let mut changed = value.clone();
            changed[random.below(value.len())] ^= 1 << random.below(8);
            damaged.0.insert(key.clone(), changed);
            // A slot's number may change, if nothing refers to it; it has no meaning of its own.
            if let Ok(tree) = load(&damaged) {
                let is_noticed = tree.recompute_digest() != tree.digest();
                let is_harmless = dump(&tree) == dump(&whole);
                assert!(is_noticed || is_harmless, "{key:?}");
            }
        }
    }
}

#[test]
fn another_layout_is_refused_by_number() {
    let mut store = sample();
    let state = (Table::Meta, b"state".to_vec());
    let value = store.0.get_mut(&state).expect("a state row");
    value[1] = 3;
    let error = load(&store).err();
    assert_eq!(error, Some(LoadError::Format(3)));
    assert!(LoadError::Format(3).to_string().contains("layout 3"));
}

#[test]
fn the_same_row_twice_is_refused() {
    let store = sample();
    for ((table, key), value) in &store.0 {
        let mut loader = Loader::new();
        assert_eq!(loader.row(*table, key, value), Ok(()));
        let again = loader.row(*table, key, value);
        assert!(matches!(again, Err(LoadError::Twice(..))), "{table:?}");
    }
}
