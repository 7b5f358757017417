//! A process that ends between any two steps on the disk: what it leaves is the old content or the new one,
//! whole, and the next start cleans up and can do it again.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use quenda_consensus::{EntryKind, HardState, LogBatch, LogEntry, Membership, Recovered};
use quenda_tree::{CheckpointSink, Table};
use tempfile::TempDir;

use super::files::test_steps::watch;
use super::{OpenOptions, RocksStore};
use crate::checkpoint::{Checkpoint, RowBatch};
use crate::image::ImageInfo;
use crate::store::Store;

const OLD: u64 = 4;
const NEW: u64 = 40;
const OWN: HardState = HardState {
    term: 5,
    vote: 1,
    commit: 0,
};

fn options(root: &Path, apart: bool, member: u64) -> OpenOptions {
    OpenOptions {
        directory: root.join("data"),
        log_directory: apart.then(|| root.join("log")),
        member,
        start: Recovered::bootstrap([1, 2], []),
    }
}

fn batch(first: u64, last: u64, hard_state: HardState) -> LogBatch {
    let entry = |index| LogEntry {
        index,
        term: 2,
        kind: EntryKind::Normal,
        data: b"an entry".as_slice().into(),
    };
    LogBatch {
        hard_state,
        entries: (first..=last).map(entry).collect(),
    }
}

/// Rows that tell the entry they belong to.
fn checkpoint(applied: u64) -> Checkpoint {
    let mut rows = RowBatch::default();
    for table in Table::ALL {
        for key in 0..50_u64 {
            rows.put(table, &key.to_be_bytes(), &applied.to_be_bytes());
        }
    }
    Checkpoint {
        applied: (applied, 2),
        membership: Membership::of_voters([1, 2]),
        rows,
        complete: false,
    }
}

/// The store of the other member, and its image.
fn leader(root: &Path) -> (RocksStore, ImageInfo) {
    let (store, _) = RocksStore::open(options(root, false, 2)).unwrap();
    store.append(&[batch(2, NEW + 9, OWN)]).unwrap();
    store.checkpoint(&checkpoint(NEW)).unwrap();
    let image = store.make_image().unwrap();
    (store, image)
}

fn receive(leader: &RocksStore, image: &ImageInfo, to: &RocksStore) {
    let mut receiver = to.receive_image(&image.manifest).unwrap();
    while let Some((file, offset, len)) = receiver.next() {
        let bytes = leader.read_image(image.index, file, offset, len).unwrap();
        receiver.write(file, offset, &bytes).unwrap();
    }
    receiver.finish().unwrap();
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_all(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

type Crashes = Vec<(&'static str, TempDir)>;

/// What a crash at each step of `work` would leave of `root`.
fn crashes(root: &Path, work: impl FnOnce()) -> Crashes {
    let copies = Rc::new(RefCell::new(Crashes::new()));
    let (taken, root) = (Rc::clone(&copies), root.to_owned());
    let hook = move |name| {
        let copy = TempDir::new().unwrap();
        copy_all(&root, copy.path());
        taken.borrow_mut().push((name, copy));
    };
    watch(Box::new(hook), work);
    copies.take()
}

/// The content that a store opens with: `OLD` or `NEW`.
fn content(store: &RocksStore, recovered: &Recovered, context: &str) -> u64 {
    let applied = recovered.applied;
    let mut count = 0;
    store
        .scan(&mut |_, _, value| {
            assert_eq!(
                value,
                applied.to_be_bytes(),
                "{context}: a row of another entry"
            );
            count += 1;
            Ok(())
        })
        .unwrap();
    assert_eq!(count, 50 * Table::ALL.len(), "{context}");
    assert_eq!(
        (recovered.hard_state.term, recovered.hard_state.vote),
        (5, 1)
    );
    if applied == OLD {
        assert_eq!(
            (recovered.compacted.0, recovered.last_index()),
            (3, 20),
            "{context}"
        );
    } else {
        assert_eq!(applied, NEW, "{context}");
        assert_eq!(recovered.compacted, (NEW, 2), "{context}");
        assert!(recovered.entries.is_empty(), "{context}");
    }
    applied
}

/// Names in the member's directories, without those of RocksDB's files.
fn names(root: &Path) -> Vec<String> {
    let mut names: Vec<String> = ["data", "log"]
        .iter()
        .filter_map(|folder| fs::read_dir(root.join(folder)).ok())
        .flatten()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.ends_with(".log") && name != "MEMBER")
        .collect();
    names.sort();
    names
}

fn expected_names(applied: u64, apart: bool) -> &'static [&'static str] {
    match (applied, apart) {
        (OLD, _) => &["db"],
        (_, false) => &["ACTIVE", "db.1"],
        (_, true) => &["ACTIVE", "db.1", "wal.1"],
    }
}

fn assert_clean(root: &Path, applied: u64, apart: bool, context: &str) {
    let mut found = names(root);
    // An image that is still of use stays, and so may the unfinished form of a small file.
    found.retain(|name| name != "ACTIVE.new" && !(applied == OLD && name == "incoming"));
    assert_eq!(found, expected_names(applied, apart), "{context}");
}

/// A follower with a log and a checkpoint of its own.
fn follower(root: &Path, apart: bool) -> RocksStore {
    let (store, _) = RocksStore::open(options(root, apart, 1)).unwrap();
    store.append(&[batch(2, 20, OWN)]).unwrap();
    store.checkpoint(&checkpoint(OLD)).unwrap();
    store.compact_log(3).unwrap();
    store
}

/// Goes on after a crash up to a store that has the image and a log behind it.
fn go_on(root: &Path, apart: bool, leader: &(RocksStore, ImageInfo), context: &str) -> u64 {
    let (store, recovered) = RocksStore::open(options(root, apart, 1))
        .unwrap_or_else(|error| panic!("{context}: {error}"));
    let found = content(&store, &recovered, context);
    assert_clean(root, found, apart, context);
    if found == OLD {
        receive(&leader.0, &leader.1, &store);
        store.install_image(NEW, 2, OWN).unwrap();
    }
    let recovered = store.recover().unwrap();
    assert_eq!(content(&store, &recovered, context), NEW);
    assert_clean(root, NEW, apart, context);
    store.append(&[batch(NEW + 1, NEW + 3, OWN)]).unwrap();
    drop(store);
    let (_, recovered) = RocksStore::open(options(root, apart, 1)).unwrap();
    assert_eq!(recovered.last_index(), NEW + 3, "{context}");
    found
}

fn everywhere(apart: bool) {
    let (theirs, ours) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let leader = leader(theirs.path());
    let store = follower(ours.path(), apart);
    let crashes = crashes(ours.path(), || {
        receive(&leader.0, &leader.1, &store);
        store.install_image(NEW, 2, OWN).unwrap();
    });
    let mut found = Vec::new();
    for (number, (step, copy)) in crashes.iter().enumerate() {
        let context = format!("step {number}, {step}");
        found.push(go_on(copy.path(), apart, &leader, &context));
    }
    assert!(found.is_sorted(), "new, and then old again: {found:?}");
    let old = found.iter().filter(|found| **found == OLD).count();
    println!(
        "{old} steps with the old content, {} with the new",
        found.len() - old
    );
    assert!(old > 15 && found.len() - old >= 3, "{found:?}");
}

#[test]
fn a_crash_anywhere_in_receiving_and_installing() {
    everywhere(false);
}

#[test]
fn a_crash_anywhere_with_the_log_apart() {
    everywhere(true);
}

#[test]
fn a_crash_anywhere_in_the_cleaning_up_after_a_crash() {
    for apart in [false, true] {
        let (theirs, ours) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let leader = leader(theirs.path());
        let store = follower(ours.path(), apart);
        let first = crashes(ours.path(), || {
            receive(&leader.0, &leader.1, &store);
            store.install_image(NEW, 2, OWN).unwrap();
        });
        let tell = ["the new database is durable", "the name is durable"];
        for (step, copy) in first.iter().filter(|(step, _)| tell.contains(step)) {
            let second = crashes(copy.path(), || {
                RocksStore::open(options(copy.path(), apart, 1)).unwrap();
            });
            assert!(second.len() > 1, "{step}");
            for (again, copy) in &second {
                let context = format!("{step}, and then {again}");
                let found = go_on(copy.path(), apart, &leader, &context);
                assert_eq!(found == NEW, *step == tell[1], "{context}");
            }
        }
    }
}

#[test]
fn a_second_image_over_the_first_one() {
    for apart in [false, true] {
        let (theirs, ours) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let (leader, first) = leader(theirs.path());
        let store = follower(ours.path(), apart);
        receive(&leader, &first, &store);
        store.install_image(NEW, 2, OWN).unwrap();
        store.append(&[batch(NEW + 1, NEW + 3, OWN)]).unwrap();
        leader.checkpoint(&checkpoint(NEW + 5)).unwrap();
        let second = leader.make_image().unwrap();
        let crashes = crashes(ours.path(), || {
            receive(&leader, &second, &store);
            store.install_image(NEW + 5, 2, OWN).unwrap();
        });
        let mut found = Vec::new();
        for (step, copy) in &crashes {
            let (store, recovered) = RocksStore::open(options(copy.path(), apart, 1))
                .unwrap_or_else(|error| panic!("{step}: {error}"));
            match recovered.applied {
                NEW => assert_eq!(recovered.last_index(), NEW + 3, "{step}"),
                other => assert_eq!(
                    (other, recovered.last_index()),
                    (NEW + 5, NEW + 5),
                    "{step}"
                ),
            }
            drop(store);
            found.push(recovered.applied);
        }
        assert!(found.is_sorted() && found.contains(&NEW) && found.contains(&(NEW + 5)));
        let mut expected: Vec<PathBuf> = vec!["ACTIVE".into(), "db.2".into()];
        if apart {
            expected.push("wal.2".into());
        }
        let left: Vec<PathBuf> = names(ours.path()).into_iter().map(PathBuf::from).collect();
        assert_eq!(left, expected);
    }
}

#[test]
fn a_crash_anywhere_in_making_an_image() {
    let theirs = TempDir::new().unwrap();
    let (store, _) = RocksStore::open(options(theirs.path(), true, 2)).unwrap();
    store.append(&[batch(2, NEW + 9, OWN)]).unwrap();
    store.checkpoint(&checkpoint(NEW)).unwrap();
    let crashes = crashes(theirs.path(), || {
        store.make_image().unwrap();
    });
    assert!(crashes.len() >= 2);
    for (step, copy) in &crashes {
        let (store, recovered) = RocksStore::open(options(copy.path(), true, 2)).unwrap();
        assert_eq!(recovered.last_index(), NEW + 9, "{step}");
        assert_eq!(names(copy.path()), ["db"], "{step}");
        assert_eq!(store.make_image().unwrap().index, NEW);
    }
}
