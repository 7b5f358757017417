//! The disk of one member: writes lie in a cache until a sync, and a power cut loses what lies there.

use std::collections::BTreeMap;
use std::rc::Rc;

use quenda_consensus::{HardState, LogBatch, LogEntry, Membership, Recovered};
use quenda_tree::{CheckpointSink, LoadError, Loader, Table, Tree};

/// Rows of a tree.
pub type Rows = BTreeMap<(Table, Vec<u8>), Vec<u8>>;

/// The tree of one entry, as it travels to a member that is far behind.
#[derive(Debug)]
pub struct StateImage {
    /// The entry.
    pub index: u64,
    /// Its term.
    pub term: u64,
    /// The membership as of it.
    pub membership: Membership,
    /// The tree.
    pub rows: Rows,
}

/// Rows that changed, in order.
#[derive(Debug, Default, Clone)]
pub struct ChangedRows(Vec<(Table, Vec<u8>, Option<Vec<u8>>)>);

impl CheckpointSink for ChangedRows {
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) {
        self.0.push((table, key.to_vec(), Some(value.to_vec())));
    }

    fn delete(&mut self, table: Table, key: &[u8]) {
        self.0.push((table, key.to_vec(), None));
    }
}

/// One write, whole or not at all.
#[derive(Debug, Clone)]
pub enum Write {
    /// Log entries and hard states.
    Append(Vec<LogBatch>),
    /// What changed in the tree since the checkpoint before.
    Checkpoint {
        /// Entry and term that the tree belongs to.
        applied: (u64, u64),
        /// The membership as of it.
        membership: Membership,
        /// The rows.
        rows: ChangedRows,
    },
    /// The log up to this entry goes.
    Cut(u64),
}

#[derive(Debug, Clone)]
struct Content {
    hard_state: HardState,
    compacted: (u64, u64),
    entries: Vec<LogEntry>,
    applied: (u64, u64),
    membership: Membership,
    rows: Rows,
}

impl Content {
    fn last(&self) -> u64 {
        self.compacted.0 + self.entries.len() as u64
    }

    fn apply(&mut self, write: Write) -> Result<(), String> {
        match write {
            Write::Append(batches) => batches.into_iter().try_for_each(|batch| self.append(batch)),
            Write::Checkpoint {
                applied,
                membership,
                rows,
            } => {
                if applied.0 < self.applied.0 || applied.0 > self.last() {
                    return Err(format!(
                        "a checkpoint of entry {} between the one of {} and the log's end at {}",
                        applied.0,
                        self.applied.0,
                        self.last()
                    ));
                }
                for (table, key, value) in rows.0 {
                    match value {
                        Some(value) => self.rows.insert((table, key), value),
                        None => self.rows.remove(&(table, key)),
                    };
                }
                (self.applied, self.membership) = (applied, membership);
                Ok(())
            }
            Write::Cut(through) => {
                if through > self.applied.0 {
                    return Err(format!(
                        "the log is cut at {through}, the checkpoint is of {}",
                        self.applied.0
                    ));
                }
                let count = through.saturating_sub(self.compacted.0) as usize;
                if let Some(last) = self.entries.drain(..count).next_back() {
                    self.compacted = (last.index, last.term);
                }
                Ok(())
            }
        }
    }

    fn append(&mut self, batch: LogBatch) -> Result<(), String> {
        self.hard_state = batch.hard_state;
        let Some(first) = batch.entries.first() else {
            return Ok(());
        };
        if first.index <= self.compacted.0 || first.index > self.last() + 1 {
            return Err(format!(
                "entry {} is appended to a log of {} to {}",
                first.index,
                self.compacted.0 + 1,
                self.last()
            ));
        }
        self.entries
            .truncate((first.index - self.compacted.0 - 1) as usize);
        self.entries.extend(batch.entries);
        Ok(())
    }
}

/// The disk.
#[derive(Debug, Default)]
pub struct Disk {
    /// `None`: the store is empty.
    durable: Option<Content>,
    pending: Vec<Write>,
    /// Number of the first pending write.
    synced: u64,
    /// A vote of the batch that is written is dropped (a fault for the checkers to find).
    pub forget_votes: bool,
}

impl Disk {
    /// Founds the store.
    pub fn found(&mut self, start: Recovered) {
        self.durable = Some(Content {
            hard_state: start.hard_state,
            compacted: start.compacted,
            entries: start.entries,
            applied: start.compacted,
            membership: start.membership,
            rows: Rows::new(),
        });
    }

    /// Writes, not durably; the number to sync up to.
    pub fn write(&mut self, mut write: Write) -> u64 {
        if self.forget_votes
            && let Write::Append(batches) = &mut write
        {
            for batch in batches {
                batch.hard_state.vote = 0;
            }
        }
        self.pending.push(write);
        self.synced + self.pending.len() as u64
    }

    /// Makes writes durable up to this number.
    ///
    /// # Errors
    /// A write that no store would take.
    pub fn sync(&mut self, number: u64) -> Result<(), String> {
        let count = number.saturating_sub(self.synced) as usize;
        let count = count.min(self.pending.len());
        self.settle(count)
    }

    fn settle(&mut self, count: usize) -> Result<(), String> {
        self.synced += count as u64;
        let Some(content) = &mut self.durable else {
            return Ok(());
        };
        self.pending
            .drain(..count)
            .try_for_each(|write| content.apply(write))
    }

    /// The process ends; of the writes that were not synced the first `kept` had reached the disk.
    ///
    /// # Errors
    /// A write that no store would take.
    pub fn crash(&mut self, kept: usize) -> Result<(), String> {
        let kept = kept.min(self.pending.len());
        self.settle(kept)?;
        self.synced += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    /// Writes that a power cut may lose.
    pub fn unsynced(&self) -> usize {
        self.pending.len()
    }

    /// Everything is gone.
    pub fn wipe(&mut self) {
        *self = Disk {
            forget_votes: self.forget_votes,
            ..Disk::default()
        };
    }

    /// What a start finds.
    ///
    /// # Errors
    /// When what is stored contradicts itself.
    pub fn recover(&self) -> Result<Option<(Recovered, Tree)>, String> {
        let Some(content) = &self.durable else {
            return Ok(None);
        };
        let recovered = Recovered {
            hard_state: content.hard_state,
            membership: content.membership.clone(),
            compacted: content.compacted,
            entries: content.entries.clone(),
            applied: content.applied.0,
        };
        recovered.validate().map_err(|error| error.to_string())?;
        let tree = load(&content.rows).map_err(|error| error.to_string())?;
        Ok(Some((recovered, tree)))
    }

    /// The membership as of the durable checkpoint.
    pub fn membership(&self) -> Option<&Membership> {
        self.durable.as_ref().map(|content| &content.membership)
    }

    /// An image of the durable checkpoint, if there is one.
    pub fn image(&self) -> Option<Rc<StateImage>> {
        let content = self.durable.as_ref()?;
        if content.rows.is_empty() {
            return None;
        }
        Some(Rc::new(StateImage {
            index: content.applied.0,
            term: content.applied.1,
            membership: content.membership.clone(),
            rows: content.rows.clone(),
        }))
    }

    /// Replaces everything by an image; durable at once. The log begins behind it.
    pub fn install(&mut self, image: &StateImage, hard_state: HardState) {
        self.synced += self.pending.len() as u64;
        self.pending.clear();
        self.durable = Some(Content {
            hard_state,
            compacted: (image.index, image.term),
            entries: Vec::new(),
            applied: (image.index, image.term),
            membership: image.membership.clone(),
            rows: image.rows.clone(),
        });
    }
}

/// A tree from its rows.
///
/// # Errors
/// When they do not fit together.
pub fn load(rows: &Rows) -> Result<Tree, LoadError> {
    if rows.is_empty() {
        return Ok(Tree::new());
    }
    let mut loader = Loader::new();
    for ((table, key), value) in rows {
        loader.row(*table, key, value)?;
    }
    loader.finish()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use quenda_consensus::EntryKind;

    use super::*;

    fn batch(index: u64, term: u64) -> Write {
        Write::Append(vec![LogBatch {
            hard_state: HardState {
                term,
                vote: 2,
                commit: 1,
            },
            entries: vec![LogEntry {
                index,
                term,
                kind: EntryKind::Normal,
                data: Bytes::from_static(b"x"),
            }],
        }])
    }

    fn last(disk: &Disk) -> (u64, u64) {
        let (recovered, _) = disk.recover().expect("good").expect("founded");
        (recovered.last_index(), recovered.hard_state.vote)
    }

    #[test]
    fn a_power_cut_loses_what_was_not_synced() {
        let mut disk = Disk::default();
        disk.found(Recovered::bootstrap([1, 2], []));
        let number = disk.write(batch(2, 2));
        disk.write(batch(3, 2));
        disk.write(batch(4, 2));
        disk.sync(number).expect("good");
        assert_eq!((last(&disk), disk.unsynced()), ((2, 2), 2));
        disk.crash(1).expect("good");
        assert_eq!((last(&disk), disk.unsynced()), ((3, 2), 0));
        let number = disk.write(batch(4, 3));
        disk.sync(number).expect("good");
        assert_eq!(last(&disk), (4, 2));
    }

    #[test]
    fn a_gap_is_refused() {
        let mut disk = Disk::default();
        disk.found(Recovered::bootstrap([1], []));
        let number = disk.write(batch(3, 2));
        assert!(disk.sync(number).is_err());
    }
}
