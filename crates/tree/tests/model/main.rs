//! Random commands to the tree and to a naive model of it: every outcome and all that can be read must be
//! the same, also across checkpoints. `QUENDA_SEED` runs one seed, `QUENDA_STEPS` sets the number of
//! commands.

#[path = "../common/mod.rs"]
mod common;
mod generator;
mod members;
mod naive;

use common::{Random, SECRET, Store, apply, dump, restore_commands, snapshot};
use generator::{Generator, Step};
use naive::{Naive, Saved};
use quenda_proto::ErrorCode;
use quenda_tree::Tree;
use quenda_tree::command::{Command, Stamp};

struct Run {
    seed: u64,
    tree: Tree,
    /// Applies the same, and is never checkpointed or loaded.
    replica: Tree,
    store: Store,
    model: Naive,
    generator: Generator,
    stamp: Stamp,
    done: usize,
    /// A snapshot, and what it should hold.
    saved: Option<(Vec<u8>, Saved)>,
}

impl Run {
    fn new(seed: u64) -> Run {
        let stamp = Stamp {
            term: 1,
            time_ms: 1_000,
        };
        // Every other run is an ensemble's.
        let config = match seed % 2 {
            0 => "server.1=a:1:2;3\nserver.2=b:1:2:participant;3\nserver.3=c:1:2;c:3",
            _ => "",
        };
        let found = Command::Found {
            cluster: 5,
            secret: SECRET,
            config,
        };
        let mut tree = Tree::new();
        let mut replica = Tree::new();
        let mut model = Naive::new();
        let expected = model.apply(stamp, &found);
        assert_eq!(apply(&mut tree, stamp, &found), expected, "seed {seed}");
        apply(&mut replica, stamp, &found);
        Run {
            seed,
            tree,
            replica,
            store: Store::default(),
            model,
            generator: Generator {
                random: Random::new(seed),
            },
            stamp,
            done: 0,
            saved: None,
        }
    }

    fn step(&mut self) -> ErrorCode {
        self.stamp.time_ms += self.generator.random.below(10) as i64;
        if self.generator.random.one_in(300) {
            self.stamp.term += 1;
        }
        let step = self.generator.step(&self.model);
        if let Step::Open(session, _) = step {
            let password = self.tree.session_password(session);
            self.model.passwords.insert(session, password);
        }
        let command = step.command();
        let expected = self.model.apply(self.stamp, &command);
        let got = apply(&mut self.tree, self.stamp, &command);
        assert_eq!(
            got, expected,
            "seed {} step {} {step:?}",
            self.seed, self.done
        );
        apply(&mut self.replica, self.stamp, &command);
        self.done += 1;
        got.code
    }

    fn compare(&self) {
        let place = format!("seed {} step {}", self.seed, self.done);
        let expected = self.model.dump();
        assert_eq!(dump(&self.tree), expected, "{place}");
        for path in expected.znodes.keys() {
            let below = self.model.descendants(path);
            assert_eq!(self.tree.descendants(path), Some(below), "{place} {path}");
        }
        for never_used_ms in [0, 50] {
            let now_ms = self.stamp.time_ms;
            let mut got = self.tree.reap_candidates(now_ms, never_used_ms, usize::MAX);
            got.sort_unstable();
            let expected = self.model.reap_candidates(now_ms, never_used_ms);
            assert_eq!(got, expected, "{place}");
        }
        assert_eq!(self.tree.digest(), self.replica.digest(), "{place}");
        assert_eq!(self.tree.digest(), self.tree.recompute_digest(), "{place}");
    }

    /// Takes a snapshot, or restores the one that was taken. A checkpoint may come in between.
    fn save_or_restore(&mut self) {
        let Some((bytes, saved)) = self.saved.take() else {
            self.saved = Some((snapshot(&self.tree), self.model.save()));
            return;
        };
        let size = 1 + self.generator.random.below(bytes.len());
        let number = self.generator.random.next();
        let commands = restore_commands(number, &bytes, size);
        for command in &commands {
            if self.generator.random.one_in(3) {
                self.checkpoint();
            }
            let got = apply(&mut self.tree, self.stamp, command);
            apply(&mut self.replica, self.stamp, command);
            let expected = match command {
                Command::Restore { .. } => self.model.restore(self.stamp, &saved),
                _ => 0,
            };
            let place = format!("seed {} step {}", self.seed, self.done);
            assert_eq!((got.code, got.zxid), (ErrorCode::Ok, expected), "{place}");
            assert_eq!(got.changes, [], "{place}");
        }
        self.compare();
    }

    /// Writes what changed; now and then goes on with what was written.
    fn checkpoint(&mut self) {
        self.tree
            .set_applied_index(self.done as u64, self.stamp.term);
        self.tree.write_checkpoint(&mut self.store);
        let loaded = self.store.load();
        let place = format!("seed {} step {}", self.seed, self.done);
        assert_eq!(dump(&loaded), dump(&self.tree), "{place}");
        assert_eq!(loaded.digest(), self.tree.digest(), "{place}");
        assert_eq!(loaded.applied_index(), self.done as u64, "{place}");
        if self.generator.random.one_in(2) {
            self.tree = loaded;
        }
    }
}

fn run(seed: u64, steps: usize) -> usize {
    println!("seed {seed}");
    let mut run = Run::new(seed);
    let mut succeeded = 0;
    let mut verdicts = std::collections::BTreeMap::new();
    for _ in 0..steps {
        let code = run.step();
        succeeded += usize::from(code == ErrorCode::Ok);
        *verdicts.entry(code.code()).or_insert(0) += 1;
        if run.generator.random.one_in(60) {
            run.compare();
        }
        if run.generator.random.one_in(90) {
            run.checkpoint();
        }
        if run.generator.random.one_in(120) {
            run.save_or_restore();
        }
    }
    run.compare();
    run.checkpoint();
    println!("verdicts: {verdicts:?}");
    succeeded
}

#[test]
fn the_tree_and_the_model_agree() {
    let number = |name| {
        std::env::var(name)
            .ok()
            .map(|text| text.parse().expect(name))
    };
    let steps = number("QUENDA_STEPS").unwrap_or(3_000) as usize;
    let seeds = match number("QUENDA_SEED") {
        Some(seed) => seed..seed + 1,
        None => 1..9,
    };
    for seed in seeds {
        let succeeded = run(seed, steps);
        assert!(
            succeeded > steps / 10,
            "the generator has to hit: {succeeded}"
        );
    }
}
