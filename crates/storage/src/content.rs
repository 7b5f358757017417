//! The content of a store as plain data: what the simulated stores keep, and the rules every store
//! checks before it writes.

use std::collections::BTreeMap;

use quenda_consensus::{HardState, LogBatch, LogEntry, Recovered};
use quenda_tree::{MapView, RowView, Table};

use crate::checkpoint::Checkpoint;
use crate::error::StoreError;
use crate::format::CheckpointRow;
use crate::image::refused;
use crate::store::RowVisitor;

/// Where log and checkpoint stand; enough to tell whether a write makes sense.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    /// Newest entry that is no longer in the log.
    pub(crate) compacted: u64,
    /// Last entry of the log.
    pub(crate) last: u64,
    /// The entry that the checkpoint belongs to.
    pub(crate) checkpoint: u64,
}

impl Marks {
    /// The last entry after `batches`.
    pub(crate) fn last_after(&self, batches: &[LogBatch]) -> Result<u64, StoreError> {
        let mut last = self.last;
        for entries in batches.iter().map(|batch| &batch.entries) {
            let Some(first) = entries.first() else {
                continue;
            };
            if first.index <= self.compacted || first.index > last + 1 {
                return Err(StoreError::NotContinuous {
                    found: first.index,
                    first: self.compacted + 1,
                    last,
                });
            }
            last = first.index - 1;
            for entry in entries {
                if entry.index != last + 1 {
                    return Err(StoreError::NotContinuous {
                        found: entry.index,
                        first: first.index,
                        last,
                    });
                }
                last = entry.index;
            }
        }
        Ok(last)
    }

    pub(crate) fn check_checkpoint(&self, applied: u64) -> Result<(), StoreError> {
        if applied < self.checkpoint || applied > self.last {
            return Err(StoreError::CheckpointOutsideLog {
                applied,
                oldest: self.checkpoint,
                newest: self.last,
            });
        }
        Ok(())
    }

    /// Whether the state as of `position` may replace what a store with these marks and this hard state
    /// holds, when the member goes on with `hard_state`.
    pub(crate) fn check_install(
        &self,
        position: (u64, u64),
        stored: HardState,
        hard_state: HardState,
    ) -> Result<(), StoreError> {
        check_newer(position.0, self.checkpoint)?;
        let forgets_vote =
            hard_state.term == stored.term && stored.vote != 0 && hard_state.vote != stored.vote;
        if hard_state.term < stored.term || forgets_vote {
            return Err(refused(format!(
                "the member has voted for {} in term {}, and would go on with a vote for {} in term {}",
                stored.vote, stored.term, hard_state.vote, hard_state.term
            )));
        }
        if hard_state.term < position.1 {
            return Err(refused(format!(
                "it belongs to term {}, and the member has only seen term {}",
                position.1, hard_state.term
            )));
        }
        Ok(())
    }

    pub(crate) fn check_cut(&self, through: u64) -> Result<(), StoreError> {
        if through > self.checkpoint {
            return Err(StoreError::CutAboveCheckpoint {
                through,
                checkpoint: self.checkpoint,
            });
        }
        Ok(())
    }
}

/// Whether an image of entry `index` is newer than a store's checkpoint.
pub(crate) fn check_newer(index: u64, checkpoint: u64) -> Result<(), StoreError> {
    if index <= checkpoint {
        return Err(refused(format!(
            "it belongs to entry {index}, and the stored state to entry {checkpoint}"
        )));
    }
    Ok(())
}

/// One write, whole or not at all.
#[derive(Clone, Debug)]
pub(crate) enum Write {
    Append(Vec<LogBatch>),
    Checkpoint(Box<Checkpoint>),
    Cut(u64),
    Install(Box<Content>),
}

/// Table and key, and the value.
pub(crate) type Rows = BTreeMap<(Table, Vec<u8>), Vec<u8>>;

/// Everything that a store holds.
#[derive(Clone, Debug)]
pub(crate) struct Content {
    hard_state: HardState,
    compacted: (u64, u64),
    entries: Vec<LogEntry>,
    checkpoint: CheckpointRow,
    rows: Rows,
}

impl Content {
    pub(crate) fn new(start: Recovered) -> Content {
        Content {
            hard_state: start.hard_state,
            compacted: start.compacted,
            checkpoint: CheckpointRow {
                applied: start.compacted,
                membership: start.membership,
            },
            entries: start.entries,
            rows: BTreeMap::new(),
        }
    }

    pub(crate) fn marks(&self) -> Marks {
        Marks {
            compacted: self.compacted.0,
            last: self.compacted.0 + self.entries.len() as u64,
            checkpoint: self.checkpoint.applied.0,
        }
    }

    pub(crate) fn recovered(&self) -> Result<Recovered, StoreError> {
        let recovered = Recovered {
            hard_state: self.hard_state,
            membership: self.checkpoint.membership.clone(),
            compacted: self.compacted,
            entries: self.entries.clone(),
            applied: self.checkpoint.applied.0,
        };
        recovered.validate()?;
        Ok(recovered)
    }

    pub(crate) fn hard_state(&self) -> HardState {
        self.hard_state
    }

    /// The content of a member that has taken in the state `checkpoint` and `rows`.
    pub(crate) fn installed(
        checkpoint: CheckpointRow,
        rows: Rows,
        hard_state: HardState,
    ) -> Content {
        Content {
            hard_state: HardState {
                commit: checkpoint.applied.0,
                ..hard_state
            },
            compacted: checkpoint.applied,
            entries: Vec::new(),
            checkpoint,
            rows,
        }
    }

    pub(crate) fn checkpoint_row(&self) -> &CheckpointRow {
        &self.checkpoint
    }

    pub(crate) fn rows(&self) -> &Rows {
        &self.rows
    }

    pub(crate) fn scan(&self, visit: &mut RowVisitor<'_>) -> Result<(), StoreError> {
        for ((table, key), value) in &self.rows {
            visit(*table, key, value)?;
        }
        Ok(())
    }

    pub(crate) fn view(&self) -> impl RowView + '_ {
        MapView(&self.rows)
    }

    pub(crate) fn apply(&mut self, write: &Write) {
        match write {
            Write::Append(batches) => self.append(batches),
            Write::Checkpoint(checkpoint) => self.take_checkpoint(checkpoint),
            Write::Cut(through) => self.cut(*through),
            Write::Install(content) => self.clone_from(content),
        }
    }

    fn append(&mut self, batches: &[LogBatch]) {
        for batch in batches {
            self.hard_state = batch.hard_state;
            if let Some(first) = batch.entries.first() {
                let keep = first.index - self.compacted.0 - 1;
                self.entries.truncate(keep as usize);
                self.entries.extend(batch.entries.iter().cloned());
            }
        }
    }

    fn take_checkpoint(&mut self, checkpoint: &Checkpoint) {
        if checkpoint.complete {
            self.rows.clear();
        }
        for (table, key, value) in checkpoint.rows.iter() {
            let key = (table, key.to_vec());
            match value {
                Some(value) => self.rows.insert(key, value.to_vec()),
                None => self.rows.remove(&key),
            };
        }
        self.checkpoint = CheckpointRow {
            applied: checkpoint.applied,
            membership: checkpoint.membership.clone(),
        };
    }

    fn cut(&mut self, through: u64) {
        let count = through.saturating_sub(self.compacted.0) as usize;
        if let Some(last) = self.entries.drain(..count).next_back() {
            self.compacted = (last.index, last.term);
        }
    }
}
