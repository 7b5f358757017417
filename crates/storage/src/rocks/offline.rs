//! For tools, while no server runs on the store: looking at it, and writing it anew.

use std::path::PathBuf;

use quenda_consensus::{HardState, Recovered, RecoveredError};
use quenda_tree::Tree;
use rocksdb::DB;

use super::open::{OpenOptions, check_identity, open_read_only};
use super::options::{self, LOG, RAFT_META};
use super::place::Place;
use super::{RocksStore, checkpoint_batch, owner, read, seal};
use crate::checkpoint::Checkpoint;
use crate::content::Marks;
use crate::error::{OpenError, StoreError};
use crate::format::{self, CheckpointRow, Progress};
use crate::store::load_rows;

/// A store as it is, looked at without changing a byte. If a server writes to it meanwhile, this is what was
/// there at some moment.
pub struct StoreLook {
    db: DB,
    options: OpenOptions,
    recovered: Recovered,
    checkpoint: (u64, u64),
}

impl StoreLook {
    /// Looks at the store in a data directory, and in its log directory if it has one.
    ///
    /// # Errors
    /// See [`OpenError`]; [`OpenError::Io`] when there is no store.
    pub fn new(directory: PathBuf, log_directory: Option<PathBuf>) -> Result<StoreLook, OpenError> {
        let mut options = OpenOptions {
            directory,
            log_directory,
            member: 0,
            start: Recovered::joining(),
        };
        options.member = owner::member(&options)?;
        let place = Place::active(&options)?;
        owner::check(&options, true)?;
        owner::check_log_directory(place, true)?;
        let db = open_read_only(place)?;
        check_identity(&db, &options)?;
        let recovered = read::recovered(&db, &options).map_err(|error| match error {
            StoreError::Open(error) => error,
            other => options.damaged(other),
        })?;
        let row = read::required(&db, format::CHECKPOINT_KEY, CheckpointRow::decode, &options)?;
        Ok(StoreLook {
            db,
            recovered,
            checkpoint: row.applied,
            options,
        })
    }

    /// The member that the store belongs to.
    pub fn member(&self) -> u64 {
        self.options.member
    }

    /// Term, vote, commit index, log, and the membership as of the checkpoint.
    pub fn recovered(&self) -> &Recovered {
        &self.recovered
    }

    /// Index and term of the entry that the checkpoint belongs to.
    pub fn checkpoint(&self) -> (u64, u64) {
        self.checkpoint
    }

    /// The tree of the checkpoint; the empty tree if none was ever written.
    ///
    /// # Errors
    /// When rows cannot be read, or do not fit together.
    pub fn tree(&self) -> Result<Tree, StoreError> {
        load_rows(|visit| read::scan(&self.db, visit, &self.options))
    }
}

impl RocksStore {
    /// Replaces everything that is stored by the state in `checkpoint`, which is taken for complete: in one
    /// atomic write, durable when this returns. The log is empty behind its entry, which is committed. It
    /// may be repeated.
    ///
    /// This breaks what the member has promised to others, unless they are gone for good.
    ///
    /// # Errors
    /// [`StoreError::CheckpointOutsideLog`] when the state is older than the stored checkpoint;
    /// [`StoreError::Inconsistent`] when the term of `hard_state` is older than the stored one or than the
    /// state; [`StoreError::Write`].
    pub fn rewrite(
        &self,
        checkpoint: &Checkpoint,
        hard_state: HardState,
    ) -> Result<(), StoreError> {
        let db = self.writable()?;
        let mut state = self.shared.checkpoint.lock();
        let mut log = self.shared.log.lock();
        let (index, term) = checkpoint.applied;
        let marks = Marks {
            last: u64::MAX,
            ..log.marks(state.written)
        };
        marks.check_checkpoint(index)?;
        let oldest = term.max(log.progress.hard_state.term);
        if hard_state.term < oldest {
            let error = RecoveredError::TermBehindLog {
                log: oldest,
                seen: hard_state.term,
            };
            return Err(error.into());
        }
        let progress = Progress {
            hard_state: HardState {
                commit: index,
                ..hard_state
            },
            appends: log.progress.appends + 1,
        };
        let mut write = checkpoint_batch(&db, checkpoint, true)?;
        let end = format::entry_key(log.last.saturating_add(1));
        write.delete_range_cf(read::family(&db, LOG)?, format::entry_key(0), end);
        let raft_meta = read::family(&db, RAFT_META)?;
        let position = format::encode_position(checkpoint.applied);
        write.put_cf(raft_meta, format::COMPACTED_KEY, position);
        write.put_cf(raft_meta, format::PROGRESS_KEY, progress.encode());
        seal::write(&db, write, &options::synced()).map_err(|error| self.write_failed(&error))?;
        (log.compacted, log.last, log.progress) = (index, index, progress);
        state.written = index;
        // What another member had begun to send belongs to another state.
        self.shared.incoming.lock().discard_or_warn();
        Ok(())
    }
}
