//! A single voter on every store: random work, random ends of the process, nothing applied is ever lost.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use quenda_consensus::{Config, Consensus, LogBatch};
use quenda_storage::{Checkpoint, FaultyStore, RowBatch, Store};
use quenda_tree::{CheckpointSink, Table};

use crate::common::{MEMBER, Random, Subject, rows, start, subjects};

type Commands = BTreeMap<u64, Vec<u8>>;

struct Host {
    raft: Consensus,
    unsynced: VecDeque<(u64, LogBatch)>,
    commands: Commands,
    applied: (u64, u64),
    checkpointed: u64,
}

impl Host {
    fn start(subject: &dyn Subject) -> Host {
        let recovered = subject.store().recover().unwrap();
        let commands: Commands = rows(subject.store())
            .into_iter()
            .map(|(_, key, value)| (u64::from_be_bytes(key.try_into().unwrap()), value))
            .collect();
        let mut host = Host {
            applied: (recovered.applied, 0),
            checkpointed: recovered.applied,
            raft: Consensus::new(Config::new(MEMBER), recovered).unwrap(),
            unsynced: VecDeque::new(),
            commands,
        };
        host.pump();
        host.raft.campaign();
        assert!(host.raft.is_leader());
        host.pump();
        host
    }

    fn pump(&mut self) {
        while let Some(ready) = self.raft.ready() {
            if let Some(batch) = ready.persist {
                self.unsynced.push_back((ready.number, batch));
            }
            for entry in ready.committed {
                assert_eq!(entry.index, self.applied.0 + 1);
                self.applied = (entry.index, entry.term);
                if !entry.data.is_empty() {
                    self.commands.insert(entry.index, entry.data.to_vec());
                }
                self.raft.on_applied(entry.index);
            }
        }
    }

    /// What the log thread does: one append for all that waits, then the last number.
    fn sync(&mut self, subject: &dyn Subject) {
        let (numbers, batches): (Vec<u64>, Vec<LogBatch>) = self.unsynced.drain(..).unzip();
        subject.store().append(&batches).unwrap();
        if let Some(last) = numbers.last() {
            assert!(self.raft.on_persisted(*last).is_empty(), "nobody to tell");
        }
        self.pump();
    }

    fn checkpoint(&mut self, subject: &dyn Subject) {
        let mut rows = RowBatch::default();
        for (index, command) in self.commands.range(self.checkpointed + 1..) {
            rows.put(Table::Nodes, &index.to_be_bytes(), command);
        }
        if self.applied.0 > self.checkpointed {
            let checkpoint = Checkpoint {
                applied: self.applied,
                membership: self.raft.membership(),
                rows,
                complete: false,
            };
            subject.store().checkpoint(&checkpoint).unwrap();
            self.checkpointed = self.applied.0;
        }
    }

    fn cut(&mut self, subject: &dyn Subject, retain: u64) {
        let through = self.raft.compaction_point(self.checkpointed, retain);
        subject.store().compact_log(through).unwrap();
        self.raft.compact(through);
    }
}

fn run(subject: &mut dyn Subject, seed: u64, crash: &dyn Fn(&mut dyn Subject, u64)) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut host = Host::start(subject);
    let mut next = 0_u64;
    for _ in 0..150 {
        match random.below(20) {
            0..=7 => {
                let commands = (0..=random.below(5)).map(|_| {
                    next += 1;
                    next.to_be_bytes().repeat(1 + random.below(20) as usize)
                });
                host.raft.propose_batch(commands.collect()).unwrap();
                host.pump();
            }
            8..=14 => host.sync(subject),
            15 | 16 => host.checkpoint(subject),
            17 | 18 => host.cut(subject, random.below(2_000)),
            _ => {
                let before = host.commands;
                crash(subject, random.next());
                host = Host::start(subject);
                host.sync(subject);
                for (index, command) in &before {
                    assert_eq!(host.commands.get(index), Some(command), "seed {seed}");
                }
            }
        }
    }
    host.sync(subject);
    assert!(host.commands.len() > 50, "seed {seed}: too little happened");
}

#[test]
fn a_single_voter_loses_nothing_over_restarts_on_any_store() {
    for seed in 1..=3 {
        println!("seed {seed}");
        for mut subject in subjects() {
            println!("store: {}", subject.name());
            run(subject.as_mut(), seed, &|subject, _| subject.restart());
        }
    }
}

#[test]
fn a_single_voter_loses_nothing_over_crashes() {
    for seed in 1..=100 {
        println!("seed {seed}");
        let store = Rc::new(FaultyStore::new(start()));
        let handle = Rc::clone(&store);
        run(&mut Shared(store), seed, &move |_, random| {
            handle.crash(random as usize % 4);
        });
    }
}

struct Shared(Rc<FaultyStore>);

impl Subject for Shared {
    fn store(&self) -> &dyn Store {
        &*self.0
    }

    fn restart(&mut self) {
        self.0.crash(usize::MAX);
    }

    fn name(&self) -> &'static str {
        "crashing"
    }
}
