//! The log alone: three members agree on entries.

use std::collections::VecDeque;

use quenda_consensus::{Config, Consensus, Message, Recovered};

use crate::work::{Work, nothing, work};

const MEMBERS: u64 = 3;
/// Entries that are proposed together.
const BATCH: usize = 16;

struct Ensemble {
    members: Vec<Consensus>,
    wire: VecDeque<Message>,
    /// Entries that came out committed, of all members.
    committed: usize,
}

impl Ensemble {
    /// One in which the first leads.
    fn new() -> Ensemble {
        let member = |id| {
            let recovered = Recovered::bootstrap(1..=MEMBERS, []);
            Consensus::new(Config::new(id), recovered).expect("a configuration")
        };
        let mut ensemble = Ensemble {
            members: (1..=MEMBERS).map(member).collect(),
            wire: VecDeque::new(),
            committed: 0,
        };
        ensemble.members[0].campaign();
        ensemble.settle();
        assert!(ensemble.members[0].is_leader());
        ensemble
    }

    fn settle(&mut self) {
        loop {
            for member in &mut self.members {
                while let Some(ready) = member.ready() {
                    self.wire.extend(ready.messages);
                    if ready.persist.is_some() {
                        self.wire.extend(member.on_persisted(ready.number));
                    }
                    if let Some(last) = ready.committed.last() {
                        self.committed += ready.committed.len();
                        member.on_applied(last.index);
                    }
                }
            }
            if self.wire.is_empty() {
                return;
            }
            while let Some(message) = self.wire.pop_front() {
                let receiver = &mut self.members[message.to as usize - 1];
                receiver.step(&message.payload()).expect("a message");
            }
        }
    }

    fn agree(&mut self, operations: usize) {
        self.committed = 0;
        for _ in 0..operations / BATCH {
            let commands = vec![vec![7; 4096]; BATCH];
            let proposed = self.members[0].propose_batch(commands);
            proposed.expect("a leader");
            self.settle();
        }
        let told = self.members.iter().map(|member| member.status().applied);
        let newest = told.clone().max();
        assert!(self.committed >= operations, "{} committed", self.committed);
        assert_eq!(told.min(), newest);
    }
}

pub fn all() -> Vec<Work> {
    vec![work(
        "4 KB of log, three members",
        20 * BATCH,
        Ensemble::new,
        nothing,
        Ensemble::agree,
    )]
}
