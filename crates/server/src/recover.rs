//! Going on alone after a majority of the members is lost for good: the store is written anew, offline, as
//! that of an ensemble whose only member is this one.
//!
//! All log entries that this member has are kept, those not known to be committed too: among them are writes that
//! were acknowledged while the news of their commit was still on its way here. The new store has another cluster id, so
//! that a member that comes back with its old data is refused, and zxids above all that the lost members can have given
//! out. See `docs/adr/0011-recover.md`.

use std::path::PathBuf;

use bytes::BytesMut;
use quenda_consensus::{HardState, LogEntry, Membership, Recovered};
use quenda_frontend::ConnectionId;
use quenda_node::{Applier, Connections, Effects, EntryError};
use quenda_storage::{
    Checkpoint, OpenError, OpenOptions, RocksStore, RowBatch, StoreError, StoreLook, load_tree,
};
use quenda_tree::command::{Command, Stamp};
use quenda_tree::ensemble::{Ensemble, Server};
use quenda_tree::{Applied, Changes, Tree};

use crate::clock::wall_ms;

/// Why a store cannot be recovered, or was not.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// The store cannot be opened; a server may be running on it.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store cannot be read or written. It is as it was.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An entry of the log cannot be read.
    #[error("{0}; the store is damaged or was written by a newer version")]
    Entry(#[from] EntryError),
    /// The store holds nothing that an ensemble could be made of.
    #[error("this member belongs to no cluster: it has no data that could be saved")]
    Empty,
    /// Neither the stored configuration nor the file has a line for this member.
    #[error("no server line for member {0}: give its configuration file with --config")]
    NoLine(u64),
    /// The new configuration was not taken.
    #[error("the configuration is not accepted: {0}")]
    Refused(String),
    /// No entropy for the id of the new cluster.
    #[error("the system gives no entropy: {0}")]
    Entropy(String),
}

/// What a member has, seen from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The member.
    pub member: u64,
    /// Id of its cluster.
    pub cluster: u64,
    /// The members as it knew them last; `None` for a member that runs alone.
    pub ensemble: Option<Ensemble>,
    /// Index and term of its last log entry.
    pub last: (u64, u64),
    /// Newest entry that it knows to be committed.
    pub committed: u64,
    /// zxid of the last transaction known to be committed.
    pub committed_zxid: i64,
    /// zxid of its last transaction.
    pub last_zxid: i64,
    /// Znodes, everything in the log applied.
    pub znodes: u64,
    /// Sessions, everything in the log applied.
    pub sessions: u64,
}

impl Facts {
    /// Whether this member is a majority by itself: there is nothing to recover, or it is done already.
    pub fn is_alone(&self) -> bool {
        self.others().next().is_none()
    }

    /// The other members that vote.
    pub fn others(&self) -> impl Iterator<Item = &Server> {
        let voters = self.ensemble.iter().flat_map(Ensemble::voters);
        voters.filter(|server| server.id != self.member)
    }

    /// Log entries that it does not know to be committed.
    pub fn uncertain(&self) -> u64 {
        self.last.0.saturating_sub(self.committed)
    }
}

/// What a recovery made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Id of the new cluster.
    pub cluster: u64,
    /// The first zxid of the new cluster.
    pub zxid: i64,
    /// The new configuration, as `/zookeeper/config` shows it.
    pub config: String,
}

/// A store that is open for recovery: no server can start on it meanwhile.
pub struct Recovery {
    store: RocksStore,
    tree: Tree,
    hard_state: HardState,
    facts: Facts,
}

impl Recovery {
    /// Opens the store of a data directory, and its log directory if it has one, and applies the whole log in memory.
    /// Changes nothing but what every start changes: a torn end of the log is cut.
    ///
    /// # Errors
    /// See [`RecoverError`]; [`OpenError::InUse`] while a server runs on the store.
    pub fn open(
        directory: PathBuf,
        log_directory: Option<PathBuf>,
    ) -> Result<Recovery, RecoverError> {
        let member = StoreLook::new(directory.clone(), log_directory.clone())?.member();
        let (store, recovered) = RocksStore::open(OpenOptions {
            directory,
            log_directory,
            member,
            start: Recovered::joining(),
        })?;
        let mut tree = load_tree(&store)?;
        let last = last_entry(&recovered);
        let (known, uncertain): (Vec<_>, Vec<_>) = recovered
            .entries
            .iter()
            .filter(|entry| entry.index > tree.applied_index())
            .partition(|entry| entry.index <= recovered.hard_state.commit);
        apply(member, &mut tree, &known)?;
        let committed_zxid = tree.last_zxid();
        apply(member, &mut tree, &uncertain)?;
        let cluster = tree.cluster().ok_or(RecoverError::Empty)?;
        let counts = tree.counts();
        let facts = Facts {
            member,
            cluster,
            ensemble: tree
                .ensemble()
                .filter(|ensemble| !ensemble.is_empty())
                .cloned(),
            last,
            // What is in the checkpoint was committed, whatever raft's state says.
            committed: recovered.hard_state.commit.max(recovered.applied),
            committed_zxid,
            last_zxid: tree.last_zxid(),
            znodes: counts.znodes as u64,
            sessions: counts.sessions as u64,
        };
        Ok(Recovery {
            store,
            tree,
            hard_state: recovered.hard_state,
            facts,
        })
    }

    /// What the member has.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Makes this member the only one, in one atomic and durable write. `line` is its server line if the stored
    /// configuration has none.
    ///
    /// # Errors
    /// See [`RecoverError`]; the store is then as it was.
    pub fn commit(mut self, line: Option<&Server>) -> Result<Outcome, RecoverError> {
        let cluster = new_cluster()?;
        let own = self
            .facts
            .ensemble
            .as_ref()
            .and_then(|ensemble| ensemble.server(self.facts.member));
        let mut own = own
            .or(line)
            .cloned()
            .ok_or(RecoverError::NoLine(self.facts.member))?;
        own.observer = false;
        let config = Ensemble::new(0, [own]).lines();
        let (index, term) = (
            self.facts.last.0 + 1,
            self.hard_state.term.max(self.facts.last.1) + 1,
        );
        let stamp = Stamp {
            term,
            time_ms: wall_ms(),
        };
        let command = Command::Recover {
            cluster,
            config: &config,
        };
        let mut changes = Changes::default();
        let applied = self
            .tree
            .apply(stamp, &command, &mut BytesMut::new(), &mut changes);
        if applied.zxid == 0 {
            return Err(RecoverError::Refused(format!("{:?}", applied.code)));
        }
        self.tree.set_applied_index(index, term);
        let mut rows = RowBatch::default();
        self.tree.write_full(&mut rows);
        let checkpoint = Checkpoint {
            applied: (index, term),
            membership: Membership::of_voters([self.facts.member]),
            rows,
            complete: true,
        };
        self.store.rewrite(
            &checkpoint,
            HardState {
                term,
                vote: 0,
                commit: index,
            },
        )?;
        let ensemble = self.tree.ensemble();
        Ok(Outcome {
            cluster,
            zxid: applied.zxid,
            config: ensemble.map_or(config, Ensemble::text),
        })
    }
}

fn last_entry(recovered: &Recovered) -> (u64, u64) {
    let last = recovered.entries.last();
    last.map_or(recovered.compacted, |entry| (entry.index, entry.term))
}

fn apply(member: u64, tree: &mut Tree, entries: &[&LogEntry]) -> Result<(), EntryError> {
    let mut applier = Applier::new(member);
    let mut effects = Effects::default();
    for entry in entries {
        applier.apply(tree, entry, &mut Nobody, &mut effects)?;
    }
    Ok(())
}

fn new_cluster() -> Result<u64, RecoverError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| RecoverError::Entropy(error.to_string()))?;
    Ok(u64::from_le_bytes(bytes))
}

/// No client is connected with a store that is offline.
struct Nobody;

impl Connections for Nobody {
    fn deliver(&mut self, _: &Tree, _: &Changes) {}
    fn complete(&mut self, _: &Tree, _: ConnectionId, _: &Applied, _: &[u8]) {}
    fn over_quota(&mut self, _: &str) {}
    fn session_closed(&mut self, _: i64, _: bool) {}
    fn session_moved(&mut self, _: i64) {}
    fn restored(&mut self, _: &Tree) {}
}

#[cfg(test)]
mod tests;
