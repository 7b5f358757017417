//! A store of one of three members, whose other two are gone.

use std::path::Path;

use bytes::BytesMut;
use quenda_consensus::{EntryKind, LogBatch};
use quenda_storage::Store as _;
use quenda_tree::command::{Origin, start_batch};
use tempfile::TempDir;

use super::*;

const MEMBER: u64 = 2;
const CLUSTER: u64 = 77;
const COMMITTED: i64 = 0x200_0000_0000_0001;
const UNCERTAIN: i64 = 0x200_0000_0000_0002;
const THREE: &str = "server.1=h1:1:2:participant;2181\nserver.2=h2:1:2:participant;2181\nserver.3=h3:1:2:participant;2181\n";

fn options(directory: &Path) -> OpenOptions {
    OpenOptions {
        directory: directory.to_owned(),
        log_directory: None,
        member: MEMBER,
        start: Recovered::bootstrap([1, 2, 3], []),
    }
}

fn entry(index: u64, term: u64, command: &Command<'_>) -> LogEntry {
    let mut data = BytesMut::new();
    start_batch(1, &mut data);
    command.encode(&mut data);
    LogEntry {
        index,
        term,
        kind: EntryKind::Normal,
        data: data.freeze(),
    }
}

fn session(id: i64) -> Command<'static> {
    Command::OpenSession {
        origin: Origin::default(),
        session: id,
        timeout_ms: 1000,
    }
}

/// A log of three entries in term 5, of which two are known to be committed.
fn stored(config: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (store, _) = RocksStore::open(options(folder.path())).expect("a new store");
    let found = Command::Found {
        cluster: CLUSTER,
        secret: [1; 32],
        config,
    };
    let batch = LogBatch {
        hard_state: HardState {
            term: 6,
            vote: 1,
            commit: 3,
        },
        entries: vec![
            entry(2, 5, &found),
            entry(3, 5, &session(COMMITTED)),
            entry(4, 5, &session(UNCERTAIN)),
        ],
    };
    store.append(&[batch]).expect("appended");
    folder
}

fn open(folder: &TempDir) -> Recovery {
    Recovery::open(folder.path().to_owned(), None).unwrap_or_else(|error| panic!("{error}"))
}

fn is_open(tree: &Tree, session: i64) -> bool {
    tree.session(session).is_some()
}

#[test]
fn what_a_member_has_is_shown() {
    let folder = stored(THREE);
    let recovery = open(&folder);
    let facts = recovery.facts();
    assert_eq!((facts.member, facts.cluster), (MEMBER, CLUSTER));
    assert_eq!(
        (facts.last, facts.committed, facts.uncertain()),
        ((4, 5), 3, 1)
    );
    assert!(facts.last_zxid > facts.committed_zxid);
    let others: Vec<u64> = facts.others().map(|server| server.id).collect();
    assert_eq!(others, [1, 3]);
    assert!(!facts.is_alone());
    assert_eq!(facts.sessions, 2);
}

#[test]
fn the_member_goes_on_alone_with_all_it_has() {
    let folder = stored(THREE);
    let recovery = open(&folder);
    let before = recovery.facts().clone();
    let outcome = recovery.commit(None).expect("recovered");
    assert_ne!(outcome.cluster, CLUSTER);
    // Whatever the others gave out in the terms to come is far below.
    assert!(
        outcome.zxid >> 32 > (before.last_zxid >> 32) + 1000,
        "{:#x}",
        outcome.zxid
    );
    assert!(
        outcome
            .config
            .starts_with("server.2=h2:1:2:participant;0.0.0.0:2181\nversion="),
        "{}",
        outcome.config
    );

    let (store, recovered) = RocksStore::open(options(folder.path())).expect("opens");
    assert_eq!(recovered.membership, Membership::of_voters([MEMBER]));
    assert_eq!((recovered.applied, recovered.entries.len()), (5, 0));
    assert_eq!(
        (recovered.hard_state.term, recovered.hard_state.commit),
        (7, 5)
    );
    let tree = load_tree(&store).expect("loads");
    assert_eq!(tree.cluster(), Some(outcome.cluster));
    assert_eq!(tree.last_zxid(), outcome.zxid);
    assert!(is_open(&tree, COMMITTED) && is_open(&tree, UNCERTAIN));
    assert_eq!(
        tree.ensemble().map(|ensemble| ensemble.text()),
        Some(outcome.config)
    );
    assert_eq!(tree.digest(), tree.recompute_digest());
}

#[test]
fn a_second_time_there_is_nothing_to_do() {
    let folder = stored(THREE);
    let outcome = open(&folder).commit(None).expect("recovered");
    let again = open(&folder);
    assert!(again.facts().is_alone());
    assert_eq!(again.facts().cluster, outcome.cluster);
    // Even if it is insisted on, nothing is lost.
    again.commit(None).expect("recovered once more");
    assert_eq!(open(&folder).facts().sessions, 2);
}

#[test]
fn looking_changes_nothing() {
    let folder = stored(THREE);
    let first = open(&folder).facts().clone();
    assert_eq!(open(&folder).facts(), &first);
}

#[test]
fn a_store_in_use_is_refused() {
    let folder = stored(THREE);
    let (_store, _) = RocksStore::open(options(folder.path())).expect("opens");
    let refusal = Recovery::open(folder.path().to_owned(), None).err();
    assert!(
        matches!(refusal, Some(RecoverError::Open(OpenError::InUse { .. }))),
        "{refusal:?}"
    );
}

#[test]
fn a_store_without_a_cluster_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let missing = Recovery::open(folder.path().to_owned(), None).err();
    assert!(
        matches!(missing, Some(RecoverError::Open(_))),
        "{missing:?}"
    );
    drop(RocksStore::open(options(folder.path())).expect("a new store"));
    let empty = Recovery::open(folder.path().to_owned(), None).err();
    assert!(matches!(empty, Some(RecoverError::Empty)), "{empty:?}");
}

#[test]
fn a_member_that_the_configuration_does_not_name_needs_a_line() {
    let config = "server.1=h1:1:2:participant\nserver.3=h3:1:2:participant\n";
    let folder = stored(config);
    let refusal = open(&folder).commit(None).err();
    assert!(
        matches!(refusal, Some(RecoverError::NoLine(MEMBER))),
        "{refusal:?}"
    );
    let line = Server::parse("2", "h2:1:2:observer").expect("a line");
    let outcome = open(&folder).commit(Some(&line)).expect("recovered");
    assert!(
        outcome.config.starts_with("server.2=h2:1:2:participant\n"),
        "{}",
        outcome.config
    );
}

#[test]
fn a_member_that_runs_alone_has_nothing_to_recover() {
    let folder = stored("");
    assert!(open(&folder).facts().is_alone());
}
