use quenda_consensus::{EntryKind, LogEntry, Membership};
use quenda_storage::{Checkpoint, RowBatch, StoreError, load_tree};
use quenda_tree::{CheckpointSink, RowView, Table, Tree, ViewError};

use crate::common::{Rows, Subject, batch, checkpoint, entry, rows, start, subjects};

fn each(test: impl Fn(&mut dyn Subject)) {
    for mut subject in subjects() {
        println!("store: {}", subject.name());
        test(subject.as_mut());
    }
}

#[test]
fn a_new_store_holds_what_it_was_started_with() {
    each(|subject| {
        assert_eq!(subject.store().recover().unwrap(), start());
        assert!(rows(subject.store()).is_empty());
        let tree = load_tree(subject.store()).unwrap();
        assert_eq!(tree.digest(), Tree::new().digest());
    });
}

#[test]
fn appended_batches_come_back_in_order_with_the_newest_hard_state() {
    each(|subject| {
        let batches = [batch(2, 4, 2), batch(5, 5, 2), batch(6, 9, 3)];
        subject.store().append(&batches).unwrap();
        subject.restart();
        let recovered = subject.store().recover().unwrap();
        let expected: Vec<LogEntry> = batches.iter().flat_map(|b| b.entries.clone()).collect();
        assert_eq!(recovered.entries, expected);
        assert_eq!(recovered.hard_state, batches[2].hard_state);
        assert_eq!(recovered.last_index(), 9);
    });
}

#[test]
fn every_kind_and_size_of_entry_comes_back() {
    each(|subject| {
        let mut batch = batch(2, 2, 2);
        batch.entries = vec![
            entry(2, 2, b""),
            entry(3, 2, &[0xab; 1 << 20]),
            LogEntry {
                kind: EntryKind::ConfChange,
                ..entry(4, 2, b"change")
            },
            LogEntry {
                kind: EntryKind::ConfChangeV2,
                ..entry(5, 2, b"")
            },
        ];
        subject
            .store()
            .append(std::slice::from_ref(&batch))
            .unwrap();
        subject.restart();
        assert_eq!(subject.store().recover().unwrap().entries, batch.entries);
    });
}

#[test]
fn a_batch_without_entries_stores_the_hard_state() {
    each(|subject| {
        let mut vote = batch(2, 2, 7);
        vote.entries.clear();
        subject.store().append(std::slice::from_ref(&vote)).unwrap();
        subject.store().append(&[]).unwrap();
        subject.restart();
        let recovered = subject.store().recover().unwrap();
        assert_eq!(recovered.hard_state, vote.hard_state);
        assert!(recovered.entries.is_empty());
    });
}

#[test]
fn entries_of_a_newer_leader_replace_the_rest_of_the_log() {
    each(|subject| {
        subject.store().append(&[batch(2, 20, 2)]).unwrap();
        // Shorter than what it replaces, and within one call once more.
        let newer = [batch(5, 6, 3), batch(6, 8, 4)];
        subject.store().append(&newer).unwrap();
        subject.restart();
        let recovered = subject.store().recover().unwrap();
        let terms: Vec<(u64, u64)> = recovered
            .entries
            .iter()
            .map(|e| (e.index, e.term))
            .collect();
        assert_eq!(
            terms,
            [(2, 2), (3, 2), (4, 2), (5, 3), (6, 4), (7, 4), (8, 4)]
        );
        assert_eq!(recovered.entries[3].data, "5@3");
    });
}

#[test]
fn entries_that_do_not_continue_the_log_are_refused_and_change_nothing() {
    each(|subject| {
        subject.store().append(&[batch(2, 4, 2)]).unwrap();
        let before = subject.store().recover().unwrap();
        let mut hole = batch(5, 7, 2);
        hole.entries.remove(1);
        let calls = [
            vec![batch(6, 6, 2)],
            vec![batch(5, 5, 2), batch(7, 7, 2)],
            vec![batch(1, 3, 2)],
            vec![hole],
        ];
        for call in calls {
            let refused = subject.store().append(&call);
            assert!(matches!(refused, Err(StoreError::NotContinuous { .. })));
        }
        assert_eq!(subject.store().recover().unwrap(), before);
        subject.store().append(&[batch(5, 5, 2)]).unwrap();
    });
}

#[test]
fn a_checkpoint_replaces_rows_and_names_its_entry_and_membership() {
    each(|subject| {
        subject.store().append(&[batch(2, 9, 2)]).unwrap();
        for applied in 4..=8 {
            subject.store().checkpoint(&checkpoint(applied, 2)).unwrap();
        }
        let mut last = checkpoint(9, 2);
        last.membership = Membership {
            learners: vec![4],
            ..Membership::of_voters([1, 2, 3])
        };
        subject.store().checkpoint(&last).unwrap();
        subject.store().sync().unwrap();
        subject.restart();

        let recovered = subject.store().recover().unwrap();
        assert_eq!(recovered.applied, 9);
        assert_eq!(recovered.membership, last.membership);
        let rows = rows(subject.store());
        assert_eq!(rows.len(), 4 * Table::ALL.len(), "three indices and a mark");
        let marks: Vec<_> = rows.iter().filter(|row| row.1 == b"applied").collect();
        assert!(marks.iter().all(|row| row.2 == 9_u64.to_be_bytes()));
    });
}

#[test]
fn a_complete_checkpoint_removes_all_other_rows() {
    each(|subject| {
        subject.store().append(&[batch(2, 9, 2)]).unwrap();
        subject.store().checkpoint(&checkpoint(4, 2)).unwrap();
        let mut rows_after = RowBatch::default();
        rows_after.put(Table::Nodes, b"only", b"this");
        let complete = Checkpoint {
            rows: rows_after,
            complete: true,
            ..checkpoint(5, 2)
        };
        subject.store().checkpoint(&complete).unwrap();
        subject.store().sync().unwrap();
        subject.restart();
        let expected = vec![(Table::Nodes, b"only".to_vec(), b"this".to_vec())];
        assert_eq!(rows(subject.store()), expected);
    });
}

#[test]
fn checkpoints_neither_go_back_nor_beyond_the_log() {
    each(|subject| {
        subject.store().append(&[batch(2, 9, 2)]).unwrap();
        subject.store().checkpoint(&checkpoint(5, 2)).unwrap();
        for applied in [4, 10] {
            let refused = subject.store().checkpoint(&checkpoint(applied, 2));
            assert!(matches!(
                refused,
                Err(StoreError::CheckpointOutsideLog { .. })
            ));
        }
        assert_eq!(subject.store().recover().unwrap().applied, 5);
    });
}

#[test]
fn the_log_is_cut_up_to_the_checkpoint_and_goes_on_behind_it() {
    each(|subject| {
        subject.store().append(&[batch(2, 20, 2)]).unwrap();
        subject.store().checkpoint(&checkpoint(15, 2)).unwrap();
        let refused = subject.store().compact_log(16);
        assert!(matches!(
            refused,
            Err(StoreError::CutAboveCheckpoint { .. })
        ));
        subject.store().compact_log(12).unwrap();
        subject.store().compact_log(12).unwrap();
        subject.store().compact_log(3).unwrap();
        let below = subject.store().append(&[batch(12, 12, 3)]);
        assert!(matches!(below, Err(StoreError::NotContinuous { .. })));
        subject.store().append(&[batch(21, 22, 2)]).unwrap();
        subject.restart();

        let recovered = subject.store().recover().unwrap();
        assert_eq!(recovered.compacted, (12, 2));
        assert_eq!(recovered.entries.first().unwrap().index, 13);
        assert_eq!(recovered.last_index(), 22);
        assert_eq!(recovered.applied, 15);

        subject.store().checkpoint(&checkpoint(22, 2)).unwrap();
        subject.store().compact_log(22).unwrap();
        subject.restart();
        let recovered = subject.store().recover().unwrap();
        assert!(recovered.entries.is_empty());
        assert_eq!((recovered.compacted, recovered.applied), ((22, 2), 22));
        subject.store().append(&[batch(23, 23, 2)]).unwrap();
    });
}

#[test]
fn reopening_a_healthy_store_changes_nothing() {
    each(|subject| {
        subject.store().append(&[batch(2, 9, 2)]).unwrap();
        subject.store().checkpoint(&checkpoint(5, 2)).unwrap();
        let before = subject.store().recover().unwrap();
        let reopened = subject.store().reopen().unwrap();
        assert_eq!((reopened.last_index, reopened.checkpoint_index), (9, 5));
        assert!(!reopened.checkpoint_lost);
        assert_eq!(subject.store().recover().unwrap(), before);
        subject.store().append(&[batch(10, 10, 2)]).unwrap();
    });
}

#[test]
fn a_tree_comes_back_with_its_digest() {
    each(|subject| {
        let mut tree = Tree::new();
        subject.store().append(&[batch(2, 9, 2)]).unwrap();
        tree.set_applied_index(9, 2);
        let mut rows = RowBatch::with_capacity(tree.dirty_bytes());
        tree.write_checkpoint(&mut rows);
        let written = Checkpoint {
            rows,
            ..checkpoint(9, 2)
        };
        subject.store().checkpoint(&written).unwrap();
        subject.store().sync().unwrap();
        subject.restart();
        let loaded = load_tree(subject.store()).unwrap();
        assert_eq!(loaded.digest(), tree.digest());
        assert_eq!(loaded.applied_index(), 9);
        assert_eq!(loaded.counts(), tree.counts());
    });
}

#[test]
fn there_is_some_room() {
    each(|subject| {
        let space = subject.store().space().unwrap();
        assert!(space.total_bytes > 0 && space.free_bytes <= space.total_bytes);
    });
}

/// All that a view shows, table by table.
fn seen(view: &dyn RowView) -> Result<Rows, ViewError> {
    let mut seen = Vec::new();
    for table in Table::ALL {
        let mut cursor = view.cursor(table)?;
        cursor.seek(&[])?;
        while let Some((key, value)) = cursor.row() {
            seen.push((table, key.to_vec(), value.to_vec()));
            cursor.next()?;
        }
    }
    Ok(seen)
}

#[test]
fn a_view_shows_the_rows_of_the_checkpoint_and_finds_keys() {
    each(|subject| {
        let store = subject.store();
        store.append(&[batch(2, 9, 1)]).unwrap();
        store.checkpoint(&checkpoint(9, 1)).unwrap();
        let scanned = rows(store);
        assert!(scanned.len() > 3, "{}", subject.name());
        let mut looks = 0;
        store
            .view(&mut |view| {
                looks += 1;
                let mut seen = seen(view).unwrap();
                seen.sort();
                assert_eq!(seen, scanned);
                let mut cursor = view.cursor(Table::Nodes).unwrap();
                cursor.seek(&[0xFF; 9]).unwrap();
                assert_eq!(cursor.row(), None);
            })
            .unwrap();
        assert_eq!(looks, 1, "{}", subject.name());
    });
}
