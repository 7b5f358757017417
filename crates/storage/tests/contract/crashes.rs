//! A failing write and a crash at every write boundary: what was acknowledged is there, and rows always
//! belong to the entry that the store names.

use quenda_consensus::LogBatch;
use quenda_storage::{Fault, FaultyStore, Store, StoreError};

use crate::common::{assert_rows_fit, batch, checkpoint, rows, start};

/// A member's host, reduced to what it does with its store.
struct Host<'s> {
    store: &'s FaultyStore,
    /// Newest entry that an append has confirmed.
    acknowledged: u64,
    /// Newest cut that has been confirmed.
    cut: u64,
}

#[derive(Clone, Copy)]
enum Step {
    Append(u64, u64),
    Checkpoint(u64),
    Cut(u64),
    Sync,
}

const SCENARIO: [Step; 14] = [
    Step::Append(2, 4),
    Step::Append(5, 5),
    Step::Checkpoint(4),
    Step::Append(6, 9),
    Step::Cut(3),
    Step::Checkpoint(8),
    Step::Checkpoint(9),
    Step::Sync,
    Step::Append(10, 12),
    Step::Cut(9),
    Step::Checkpoint(11),
    Step::Cut(10),
    Step::Append(13, 13),
    Step::Checkpoint(13),
];

impl Host<'_> {
    fn step(&mut self, step: Step) -> Result<(), StoreError> {
        match step {
            Step::Append(first, last) => {
                self.store.append(&[batch(first, last, 2)])?;
                self.acknowledged = last;
            }
            Step::Checkpoint(applied) => self.store.checkpoint(&checkpoint(applied, 2))?,
            Step::Cut(through) => {
                self.store.compact_log(through)?;
                self.cut = through;
            }
            Step::Sync => self.store.sync()?,
        }
        Ok(())
    }

    fn check(&self, context: &str) {
        let recovered = self.store.recover().expect("consistent");
        assert!(
            recovered.last_index() >= self.acknowledged,
            "{context}: {} is lost",
            self.acknowledged
        );
        for entry in &recovered.entries {
            assert_eq!(entry.data, format!("{}@2", entry.index), "{context}");
        }
        assert!(recovered.compacted.0 <= recovered.applied, "{context}");
        assert!(recovered.compacted.0 >= self.cut, "{context}");
        assert_rows_fit(self.store, recovered.applied, context);
    }
}

#[test]
fn a_crash_after_any_write_keeps_what_was_acknowledged() {
    for steps in 0..=SCENARIO.len() {
        for keep in 0..=3 {
            let store = FaultyStore::new(start());
            let mut host = Host {
                store: &store,
                acknowledged: 1,
                cut: 0,
            };
            for step in &SCENARIO[..steps] {
                host.step(*step).unwrap();
            }
            store.crash(keep);
            host.check(&format!("{steps} steps, {keep} unsynced writes kept"));
        }
    }
}

#[test]
fn a_failed_write_is_followed_by_nothing_until_the_store_is_reopened() {
    for write in 0..SCENARIO.len() as u64 {
        for fault in [Fault::Lost, Fault::Torn, Fault::Kept] {
            let context = format!("write {write} {fault:?}");
            let store = FaultyStore::new(start());
            store.fail_at(write, fault);
            let mut host = Host {
                store: &store,
                acknowledged: 1,
                cut: 0,
            };
            for step in SCENARIO {
                let Err(error) = host.step(step) else {
                    continue;
                };
                assert!(matches!(error, StoreError::Write(_)), "{context}: {error}");
                let refused = store.append(&[batch(50, 50, 2)]);
                assert!(matches!(refused, Err(StoreError::NeedsReopen)), "{context}");
                recover_and_repeat(&mut host, step, &context);
            }
            host.check(&context);
            assert_eq!(host.acknowledged, 13, "{context}: went on to the end");
            store.crash(0);
            host.check(&context);
        }
    }
}

/// What the host does after a failed write: reopen, append again what was not acknowledged, and make the
/// next checkpoint complete if one is lost.
fn recover_and_repeat(host: &mut Host<'_>, step: Step, context: &str) {
    let reopened = host.store.reopen().expect("nothing acknowledged is lost");
    host.check(context);
    assert!(reopened.last_index >= host.acknowledged, "{context}");
    let failed_checkpoint = matches!(step, Step::Checkpoint(_));
    if reopened.checkpoint_lost || failed_checkpoint {
        let mut complete = checkpoint(reopened.last_index, 2);
        complete.complete = true;
        host.store.checkpoint(&complete).unwrap();
        host.check(context);
    }
    if let Step::Checkpoint(_) = step {
        return;
    }
    host.step(step).unwrap();
    host.check(context);
}

#[test]
fn a_checkpoint_is_lost_or_kept_as_a_whole() {
    let store = FaultyStore::new(start());
    store.append(&[batch(2, 9, 2)]).unwrap();
    store.checkpoint(&checkpoint(4, 2)).unwrap();
    store.sync().unwrap();
    let before = rows(&store);
    store.checkpoint(&checkpoint(7, 2)).unwrap();
    assert_eq!(store.unsynced(), 1);
    store.crash(0);
    assert_eq!(store.recover().unwrap().applied, 4);
    assert_eq!(rows(&store), before);

    store.checkpoint(&checkpoint(7, 2)).unwrap();
    let next: [LogBatch; 1] = [batch(10, 10, 2)];
    store.append(&next).unwrap();
    store.crash(0);
    assert_eq!(
        store.recover().unwrap().applied,
        7,
        "durable with the append"
    );
}
