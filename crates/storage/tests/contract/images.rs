//! Images on every store: made, read in pieces, taken in with breaks, and installed.

use quenda_consensus::{HardState, Membership, Recovered};
use quenda_storage::{
    Checkpoint, Fault, FaultyStore, ImageInfo, ImageReceiver, Store, StoreError, limits,
};
use quenda_tree::{CheckpointSink, Table};

use crate::common::{
    Subject, assert_rows_fit, batch, checkpoint, rows, start, subjects, subjects_from,
};

/// The member that takes images in has voted for itself in this term.
pub const OWN: HardState = HardState {
    term: 9,
    vote: 1,
    commit: 0,
};

/// Reads and writes until everything is here, at most `max` bytes at a time.
pub fn pump(from: &dyn Store, index: u64, to: &mut dyn ImageReceiver, max: usize) {
    while let Some((file, offset, len)) = to.next() {
        let bytes = from.read_image(index, file, offset, len.min(max)).unwrap();
        assert!(!bytes.is_empty());
        to.write(file, offset, &bytes).unwrap();
    }
}

/// Takes a whole image over; it is not installed yet.
pub fn transfer(from: &dyn Store, to: &dyn Store) -> ImageInfo {
    let image = from.make_image().unwrap();
    let mut receiver = to.receive_image(&image.manifest).unwrap();
    pump(from, image.index, receiver.as_mut(), 777);
    receiver.finish().unwrap();
    image
}

/// A leader's store: entries up to `last`, a checkpoint of `applied`, the log cut before `cut`.
pub fn lead(store: &dyn Store, last: u64, applied: u64, cut: u64) {
    store.append(&[batch(2, last, 2)]).unwrap();
    store.checkpoint(&leaders_checkpoint(applied)).unwrap();
    store.compact_log(cut).unwrap();
}

pub fn leaders_checkpoint(applied: u64) -> Checkpoint {
    let mut checkpoint = checkpoint(applied, 2);
    checkpoint.membership = Membership {
        voters: vec![1, 2, 3],
        learners: vec![4],
        ..Membership::default()
    };
    for key in 0..300_u32 {
        let value = [key as u8; 50];
        checkpoint.rows.put(
            Table::Nodes,
            &[&b"row "[..], &key.to_be_bytes()].concat(),
            &value,
        );
    }
    checkpoint
}

/// Each kind of store twice: one that leads, one that starts from `start`.
fn pairs(start_of_follower: &Recovered, test: impl Fn(&mut dyn Subject, &mut dyn Subject)) {
    let followers = subjects_from(start_of_follower);
    for (mut leader, mut follower) in subjects().into_iter().zip(followers) {
        println!("store: {}", leader.name());
        test(leader.as_mut(), follower.as_mut());
    }
}

#[track_caller]
fn assert_refused<T>(result: Result<T, StoreError>) -> String {
    match result {
        Err(StoreError::ImageRefused(text)) => text,
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("taken"),
    }
}

#[track_caller]
fn assert_installed(subject: &dyn Subject, leader: &dyn Store, applied: u64) {
    let recovered = subject.store().recover().unwrap();
    assert_eq!(recovered.applied, applied);
    assert_eq!(recovered.compacted, (applied, 2));
    assert!(recovered.entries.is_empty(), "a log of others");
    assert_eq!(recovered.membership, leaders_checkpoint(applied).membership);
    let own = HardState {
        commit: applied,
        ..OWN
    };
    assert_eq!(recovered.hard_state, own);
    assert_eq!(rows(subject.store()), rows(leader));
    assert_rows_fit(subject.store(), applied, subject.name());
}

#[test]
fn an_image_replaces_what_a_new_member_holds() {
    pairs(&Recovered::joining(), |leader, follower| {
        lead(leader.store(), 20, 12, 7);
        let image = transfer(leader.store(), follower.store());
        assert_eq!((image.index, image.term), (12, 2));
        assert_eq!(image.membership, leaders_checkpoint(12).membership);
        assert!(image.manifest.len() <= limits::IMAGE_MANIFEST_BYTES);
        follower.store().install_image(12, 2, OWN).unwrap();
        assert_installed(follower, leader.store(), 12);
        follower.restart();
        assert_installed(follower, leader.store(), 12);

        let gap = follower.store().append(&[batch(14, 14, 9)]);
        assert!(matches!(gap, Err(StoreError::NotContinuous { .. })));
        follower.store().append(&[batch(13, 15, 9)]).unwrap();
        follower.restart();
        let recovered = follower.store().recover().unwrap();
        assert_eq!((recovered.compacted.0, recovered.last_index()), (12, 15));
        // And the leader has kept everything.
        assert_eq!(leader.store().recover().unwrap().last_index(), 20);
    });
}

#[test]
fn an_image_replaces_a_log_in_use_and_an_older_checkpoint() {
    pairs(&start(), |leader, follower| {
        lead(leader.store(), 30, 25, 20);
        // Entries that were never committed, also behind the image's.
        let mut own = batch(2, 60, 2);
        own.hard_state = OWN;
        follower.store().append(&[own]).unwrap();
        follower.store().checkpoint(&checkpoint(9, 2)).unwrap();
        follower.store().compact_log(4).unwrap();
        transfer(leader.store(), follower.store());
        assert_eq!(follower.store().recover().unwrap().applied, 9, "not yet");
        follower.store().install_image(25, 2, OWN).unwrap();
        assert_installed(follower, leader.store(), 25);
        follower.restart();
        assert_installed(follower, leader.store(), 25);

        let stale = follower.store().checkpoint(&checkpoint(10, 2));
        assert!(matches!(
            stale,
            Err(StoreError::CheckpointOutsideLog { .. })
        ));
        follower.store().compact_log(9).unwrap();
        follower.store().append(&[batch(26, 40, 9)]).unwrap();
        follower.store().checkpoint(&checkpoint(30, 9)).unwrap();
        follower.store().compact_log(28).unwrap();
        let reopened = follower.store().reopen().unwrap();
        assert_eq!((reopened.last_index, reopened.checkpoint_index), (40, 30));
    });
}

#[test]
fn images_follow_one_another_and_are_passed_on() {
    pairs(&Recovered::joining(), |leader, follower| {
        let mut next = 2;
        for round in 1..=4 {
            let last = next + 10;
            leader.store().append(&[batch(next, last, 2)]).unwrap();
            leader
                .store()
                .checkpoint(&leaders_checkpoint(last - 2))
                .unwrap();
            transfer(leader.store(), follower.store());
            follower.store().install_image(last - 2, 2, OWN).unwrap();
            assert_installed(follower, leader.store(), last - 2);
            if round % 2 == 0 {
                follower.restart();
            }
            next = last + 1;
        }
        let image = follower.store().make_image().unwrap();
        assert_eq!(image.membership, leaders_checkpoint(1).membership);
        assert_eq!(image.index, next - 3);
    });
}

#[test]
fn an_image_stays_as_it_is_until_it_is_dropped() {
    pairs(&Recovered::joining(), |leader, follower| {
        let store = leader.store();
        lead(store, 20, 5, 3);
        let first = store.make_image().unwrap();
        assert_eq!(
            store.make_image().unwrap(),
            first,
            "the same entry, the same image"
        );
        let rows_then = rows(store);
        for applied in [8, 9] {
            store.checkpoint(&checkpoint(applied, 2)).unwrap();
        }
        store.compact_log(9).unwrap();
        let second = store.make_image().unwrap();
        assert_eq!(second.index, 9);

        let mut receiver = follower.store().receive_image(&first.manifest).unwrap();
        pump(store, first.index, receiver.as_mut(), usize::MAX);
        receiver.finish().unwrap();
        follower.store().install_image(5, 2, OWN).unwrap();
        assert_eq!(rows(follower.store()), rows_then);

        store.drop_images(Some(9));
        let gone = store.read_image(5, 0, 0, 100);
        assert!(matches!(gone, Err(StoreError::ImageGone { index: 5 })));
        store.read_image(9, 0, 0, 100).unwrap();
        store.drop_images(None);
        let gone = store.read_image(9, 0, 0, 100);
        assert!(matches!(gone, Err(StoreError::ImageGone { index: 9 })));
        assert_eq!(store.make_image().unwrap().index, 9, "it can be made again");
    });
}

#[test]
fn reading_beside_an_image_is_refused() {
    pairs(&start(), |leader, _| {
        let store = leader.store();
        lead(store, 9, 8, 3);
        store.make_image().unwrap();
        assert_refused(store.read_image(8, 9_999, 0, 1));
        assert_refused(store.read_image(8, 0, 1 << 40, 1));
    });
}

#[test]
fn a_store_without_any_state_makes_no_image() {
    for subject in subjects_from(&Recovered::joining()) {
        assert_refused(subject.store().make_image());
    }
}

#[test]
fn the_image_of_a_founding_member_is_the_empty_tree() {
    pairs(&Recovered::joining(), |leader, follower| {
        transfer(leader.store(), follower.store());
        follower.store().install_image(1, 1, OWN).unwrap();
        let recovered = follower.store().recover().unwrap();
        assert_eq!(recovered.compacted, (1, 1));
        assert_eq!(recovered.membership, start().membership);
        assert!(rows(follower.store()).is_empty());
    });
}

#[test]
fn receiving_goes_on_where_it_was_broken_off() {
    pairs(&Recovered::joining(), |leader, follower| {
        lead(leader.store(), 20, 12, 7);
        let image = leader.store().make_image().unwrap();
        let mut before = 0;
        let mut breaks = 0;
        loop {
            let mut receiver = follower.store().receive_image(&image.manifest).unwrap();
            let (received, total) = receiver.progress();
            assert_eq!(received, before, "nothing is sent twice");
            let Some((file, offset, len)) = receiver.next() else {
                assert_eq!(received, total);
                receiver.finish().unwrap();
                break;
            };
            let len = len.min(500);
            let bytes = leader.store().read_image(12, file, offset, len).unwrap();
            receiver.write(file, offset, &bytes).unwrap();
            before += bytes.len() as u64;
            breaks += 1;
        }
        assert!(breaks > 10, "{breaks}");
        follower.store().install_image(12, 2, OWN).unwrap();
        assert_installed(follower, leader.store(), 12);
    });
}

#[test]
fn a_restart_in_the_middle_of_receiving_does_no_harm() {
    pairs(&start(), |leader, follower| {
        follower.store().append(&[batch(2, 5, 2)]).unwrap();
        lead(leader.store(), 20, 12, 7);
        let image = leader.store().make_image().unwrap();
        let mut receiver = follower.store().receive_image(&image.manifest).unwrap();
        let (file, offset, _) = receiver.next().unwrap();
        let bytes = leader.store().read_image(12, file, offset, 10).unwrap();
        receiver.write(file, offset, &bytes).unwrap();
        drop(receiver);
        follower.restart();
        assert_eq!(follower.store().recover().unwrap().last_index(), 5);
        assert_refused(follower.store().install_image(12, 2, OWN));
        transfer(leader.store(), follower.store());
        follower.store().install_image(12, 2, OWN).unwrap();
        assert_installed(follower, leader.store(), 12);
    });
}

#[test]
fn a_damaged_piece_is_found_and_only_its_file_is_sent_again() {
    pairs(&Recovered::joining(), |leader, follower| {
        lead(leader.store(), 20, 12, 7);
        let image = leader.store().make_image().unwrap();
        let mut receiver = follower.store().receive_image(&image.manifest).unwrap();
        let mut damaged = 0;
        let mut last = None;
        while let Some((file, offset, len)) = receiver.next() {
            let mut bytes = leader
                .store()
                .read_image(12, file, offset, len)
                .unwrap()
                .to_vec();
            // Each file once.
            let is_first_time = last != Some(file);
            last = Some(file);
            if is_first_time {
                bytes[len / 2] ^= 0x10;
            }
            match receiver.write(file, offset, &bytes) {
                Ok(()) => assert!(!is_first_time),
                Err(StoreError::ImageDamaged(_)) => {
                    damaged += 1;
                    assert_eq!(receiver.next().map(|(f, o, _)| (f, o)), Some((file, 0)));
                }
                Err(other) => panic!("{other}"),
            }
        }
        assert!(damaged > 1, "{damaged}");
        receiver.finish().unwrap();
        follower.store().install_image(12, 2, OWN).unwrap();
        assert_installed(follower, leader.store(), 12);
    });
}

#[test]
fn only_the_newest_receiver_writes_and_only_in_order() {
    pairs(&Recovered::joining(), |leader, follower| {
        lead(leader.store(), 20, 12, 7);
        let image = leader.store().make_image().unwrap();
        let mut old = follower.store().receive_image(&image.manifest).unwrap();
        let (file, offset, len) = old.next().unwrap();
        let bytes = leader.store().read_image(12, file, offset, len).unwrap();
        let mut new = follower.store().receive_image(&image.manifest).unwrap();
        assert_refused(old.write(file, offset, &bytes));
        assert_eq!(old.next(), None);
        assert_refused(old.finish());
        assert_refused(new.write(file + 1, 0, &bytes));
        assert_refused(new.write(file, 1, &bytes[1..]));
        assert_refused(new.write(u32::MAX, 0, &bytes));
        new.write(file, offset, &bytes).unwrap();
        assert_refused(new.finish());

        // Another image takes the place of the unfinished one.
        leader.store().checkpoint(&leaders_checkpoint(14)).unwrap();
        transfer(leader.store(), follower.store());
        assert_refused(follower.store().install_image(12, 2, OWN));
        assert_refused(follower.store().install_image(14, 3, OWN));
        follower.store().install_image(14, 2, OWN).unwrap();
        assert_installed(follower, leader.store(), 14);
        assert_refused(follower.store().install_image(14, 2, OWN));
        assert_refused(follower.store().receive_image(&image.manifest));
    });
}

#[test]
fn what_the_member_has_promised_is_not_given_up() {
    pairs(&start(), |leader, follower| {
        let mut own = batch(2, 5, 2);
        own.hard_state = OWN;
        follower.store().append(&[own]).unwrap();
        lead(leader.store(), 20, 12, 7);
        transfer(leader.store(), follower.store());
        for (term, vote) in [(8, 1), (9, 2), (9, 0), (1, 1)] {
            let other = HardState {
                term,
                vote,
                commit: 0,
            };
            assert_refused(follower.store().install_image(12, 2, other));
        }
        assert_eq!(follower.store().recover().unwrap().last_index(), 5);
        let newer = HardState {
            term: 10,
            vote: 3,
            commit: 99,
        };
        follower.store().install_image(12, 2, newer).unwrap();
        let found = follower.store().recover().unwrap().hard_state;
        assert_eq!((found.term, found.vote, found.commit), (10, 3, 12));
    });
}

#[test]
fn a_member_that_knows_no_term_yet_takes_the_one_it_is_given() {
    pairs(&Recovered::joining(), |leader, follower| {
        lead(leader.store(), 20, 12, 7);
        transfer(leader.store(), follower.store());
        let none = HardState::default();
        assert_refused(follower.store().install_image(12, 2, none));
        follower.store().install_image(12, 2, OWN).unwrap();
        assert_installed(follower, leader.store(), 12);
    });
}

#[test]
fn a_manifest_of_another_kind_or_with_nonsense_is_refused() {
    let mut manifests = Vec::new();
    for subject in subjects() {
        lead(subject.store(), 9, 8, 3);
        manifests.push(subject.store().make_image().unwrap().manifest);
    }
    for subject in subjects_from(&Recovered::joining()) {
        let taken = manifests
            .iter()
            .filter(|manifest| subject.store().receive_image(manifest).is_ok());
        assert_eq!(taken.count(), 2, "{}", subject.name());
        assert_refused(subject.store().receive_image(b""));
        assert_refused(subject.store().receive_image(&[7; 100]));
    }
}

#[test]
fn a_checkpoint_beyond_an_image_on_its_way_ends_it() {
    pairs(&start(), |leader, follower| {
        lead(leader.store(), 20, 12, 7);
        transfer(leader.store(), follower.store());
        // The log was enough after all.
        follower.store().append(&[batch(2, 20, 2)]).unwrap();
        follower.store().checkpoint(&checkpoint(15, 2)).unwrap();
        let own = HardState { term: 9, ..OWN };
        assert_refused(follower.store().install_image(12, 2, own));
        assert_eq!(follower.store().recover().unwrap().applied, 15);
    });
}

#[test]
fn a_failed_or_interrupted_installation_leaves_the_old_or_the_new() {
    for fault in [Fault::Lost, Fault::Torn, Fault::Kept] {
        let (leader, follower) = (FaultyStore::new(start()), FaultyStore::new(start()));
        lead(&leader, 20, 12, 7);
        follower.append(&[batch(2, 5, 2)]).unwrap();
        follower.checkpoint(&checkpoint(4, 2)).unwrap();
        transfer(&leader, &follower);
        follower.fail_at(follower.writes(), fault);
        let error = follower.install_image(12, 2, OWN).expect_err("on purpose");
        assert!(matches!(error, StoreError::Write(_)), "{error}");
        let reopened = follower.reopen().unwrap();
        if fault == Fault::Kept {
            assert_eq!(reopened.checkpoint_index, 12);
        } else {
            assert_eq!(reopened.last_index, 5);
            follower.install_image(12, 2, OWN).unwrap();
        }
        follower.crash(0);
        assert_installed(&follower, &leader, 12);
    }
}

#[test]
fn an_image_that_was_received_whole_outlives_a_crash() {
    let (leader, follower) = (FaultyStore::new(start()), FaultyStore::new(start()));
    lead(&leader, 20, 12, 7);
    let image = transfer(&leader, &follower);
    follower.crash(0);
    let receiver = follower.receive_image(&image.manifest).unwrap();
    assert_eq!(receiver.next(), None);
    receiver.finish().unwrap();
    follower.install_image(12, 2, OWN).unwrap();
    leader.crash(0);
    let gone = leader.read_image(12, 0, 0, 1);
    assert!(matches!(gone, Err(StoreError::ImageGone { .. })));
}
