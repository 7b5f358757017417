//! The same random writes to every store: they always hold the same.

use quenda_consensus::Recovered;
use quenda_storage::Store;

use crate::common::{Random, Rows, Subject, assert_rows_fit, batch, checkpoint, rows, subjects};

fn write(store: &dyn Store, random: &mut Random, now: &Recovered) {
    let last = now.last_index();
    match random.below(10) {
        0..=5 => {
            let replaced = random.below(4).min(last - now.applied);
            let first = last + 1 - replaced;
            let term = now.hard_state.term + u64::from(replaced > 0) + random.below(2);
            let end = first + random.below(5);
            store.append(&[batch(first, end, term)]).unwrap();
        }
        6..=7 if last > now.applied => {
            let applied = now.applied + 1 + random.below(last - now.applied);
            let position = (applied - now.compacted.0 - 1) as usize;
            let term = now.entries[position].term;
            store.checkpoint(&checkpoint(applied, term)).unwrap();
        }
        8 => {
            let through = now.compacted.0 + random.below(now.applied - now.compacted.0 + 1);
            store.compact_log(through).unwrap();
        }
        _ => store.sync().unwrap(),
    }
}

fn run(subject: &mut dyn Subject, seed: u64) -> Vec<(Recovered, Rows)> {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut history = Vec::new();
    for _ in 0..50 {
        let before = subject.store().recover().unwrap();
        write(subject.store(), &mut random, &before);
        match random.below(12) {
            0 => subject.restart(),
            1 => {
                subject.store().reopen().unwrap();
            }
            _ => {}
        }
        let recovered = subject.store().recover().unwrap();
        assert_rows_fit(subject.store(), recovered.applied, subject.name());
        history.push((recovered, rows(subject.store())));
    }
    history
}

#[test]
fn all_stores_hold_the_same_after_the_same_writes() {
    for seed in 1..=3 {
        println!("seed {seed}");
        let mut subjects = subjects();
        let expected = run(subjects[0].as_mut(), seed);
        for subject in &mut subjects[1..] {
            let found = run(subject.as_mut(), seed);
            assert!(found == expected, "seed {seed}: {} differs", subject.name());
        }
    }
}
