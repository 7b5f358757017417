//! What tools do while no server runs: a look that changes nothing, and a state written anew.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use quenda_consensus::{HardState, Membership};
use quenda_storage::{OpenError, Store, StoreError, StoreLook, load_tree};
use quenda_tree::Tree;

use crate::common::{MEMBER, OnDisk, Subject, assert_rows_fit, batch, checkpoint, rows};
use crate::images::{OWN, lead, transfer};

fn bytes_of(folder: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            bytes_of(&path, files);
        } else {
            files.insert(path.display().to_string(), fs::read(&path).unwrap());
        }
    }
}

fn look(subject: &OnDisk) -> Result<StoreLook, OpenError> {
    let options = subject.options();
    StoreLook::new(options.directory, options.log_directory)
}

#[test]
fn a_look_tells_everything_and_changes_nothing() {
    for apart in [false, true] {
        let mut subject = OnDisk::new(apart);
        lead(subject.store(), 20, 12, 7);
        let expected = subject.store().recover().unwrap();
        subject.close();
        let mut before = BTreeMap::new();
        bytes_of(subject.directory.path(), &mut before);
        for _ in 0..2 {
            let look = look(&subject).unwrap();
            assert_eq!(look.member(), MEMBER);
            assert_eq!(*look.recovered(), expected);
            assert_eq!(look.checkpoint(), (12, 2));
        }
        let mut after = BTreeMap::new();
        bytes_of(subject.directory.path(), &mut after);
        assert!(before == after);
    }
}

#[test]
fn a_look_at_an_installed_image_finds_the_right_database() {
    for apart in [false, true] {
        let (leader, mut subject) = (OnDisk::new(false), OnDisk::new(apart));
        lead(leader.store(), 20, 12, 7);
        transfer(leader.store(), subject.store());
        subject.store().install_image(12, 2, OWN).unwrap();
        subject.close();
        let look = look(&subject).unwrap();
        assert_eq!(look.recovered().compacted, (12, 2));
        assert_eq!(look.recovered().hard_state.vote, 1);
    }
}

#[test]
fn a_look_works_beside_a_server_and_needs_a_store() {
    let subject = OnDisk::new(false);
    subject.store().append(&[batch(2, 5, 2)]).unwrap();
    let look = look(&subject).unwrap();
    assert_eq!(look.recovered().last_index(), 5);
    assert_eq!(look.tree().unwrap().digest(), Tree::new().digest());

    let empty = tempfile::tempdir().unwrap();
    let error = StoreLook::new(empty.path().to_owned(), None)
        .err()
        .expect("refused");
    assert!(error.to_string().contains("there is no store"), "{error}");
    let error = StoreLook::new(subject.options().directory, Some(empty.path().to_owned())).err();
    assert!(matches!(error, Some(OpenError::LogDirectory { .. })));
    assert_eq!(fs::read_dir(empty.path()).unwrap().count(), 0);
}

#[test]
fn a_state_is_written_anew_as_often_as_one_likes() {
    for apart in [false, true] {
        let mut subject = OnDisk::new(apart);
        lead(subject.store(), 20, 12, 7);
        let handle = subject.handle();
        let alone = Membership::of_voters([MEMBER]);
        let mut state = checkpoint(20, 2);
        state.membership = alone.clone();
        let hard_state = HardState {
            term: 3,
            vote: 0,
            commit: 0,
        };
        for round in 0..3 {
            handle.rewrite(&state, hard_state).unwrap();
            let recovered = handle.recover().unwrap();
            assert_eq!(
                (recovered.applied, recovered.compacted),
                (20, (20, 2)),
                "{round}"
            );
            assert_eq!(recovered.membership, alone);
            assert!(recovered.entries.is_empty());
            assert_eq!(
                (recovered.hard_state.term, recovered.hard_state.commit),
                (3, 20)
            );
            assert_rows_fit(&handle, 20, "rewritten");
        }
        let expected = rows(&handle);
        drop(handle);
        subject.restart();
        assert_eq!(rows(subject.store()), expected, "nothing of the old rows");
        assert!(
            load_tree(subject.store()).is_err(),
            "rows of the test, no tree"
        );

        let refused = subject.handle().rewrite(&checkpoint(19, 2), hard_state);
        assert!(matches!(
            refused,
            Err(StoreError::CheckpointOutsideLog { .. })
        ));
        let older = HardState {
            term: 2,
            ..hard_state
        };
        let refused = subject.handle().rewrite(&state, older);
        assert!(matches!(refused, Err(StoreError::Inconsistent(_))));
        subject.store().append(&[batch(21, 25, 4)]).unwrap();
        subject.restart();
        assert_eq!(subject.store().recover().unwrap().last_index(), 25);
    }
}
