//! The log behind the compaction point, in memory, as raft reads it.

use std::cell::Cell;
use std::collections::VecDeque;

use bytes::Bytes;
use raft::eraftpb::{Entry, EntryType, HardState as RaftHardState, Snapshot, SnapshotMetadata};
use raft::{GetEntriesContext, RaftState, Storage, StorageError};

use crate::consensus::{SnapshotImage, SnapshotRequest};
use crate::entry::{EntryKind, LogEntry};
use crate::membership::Membership;
use crate::recovered::Recovered;

/// Bytes that an entry costs on the wire besides its data, rounded up.
const ENTRY_OVERHEAD: u64 = 24;

/// Entries `compacted + 1 ..= last`, without gaps. Entries get in here as soon as raft hands them out,
/// durable or not: raft itself keeps track of what is durable.
pub(crate) struct LogWindow {
    compacted: (u64, u64),
    entries: VecDeque<LogEntry>,
    data_bytes: u64,
    initial: RaftState,
    image: Option<SnapshotImage>,
    /// Entry that the newest membership in force came with, 0 if none since the start.
    membership_index: u64,
    /// Raft asks through a shared reference.
    wanted: Cell<Option<SnapshotRequest>>,
}

impl LogWindow {
    pub(crate) fn new(recovered: Recovered) -> LogWindow {
        let hard_state = RaftHardState {
            term: recovered.hard_state.term,
            vote: recovered.hard_state.vote,
            // The commit index is written lazily; what has been applied was committed.
            commit: recovered.hard_state.commit.max(recovered.applied),
        };
        let data_bytes = recovered.entries.iter().map(data_len).sum();
        LogWindow {
            compacted: recovered.compacted,
            entries: recovered.entries.into(),
            data_bytes,
            initial: RaftState::new(hard_state, recovered.membership.to_raft()),
            image: None,
            membership_index: 0,
            wanted: Cell::new(None),
        }
    }

    pub(crate) fn first(&self) -> u64 {
        self.compacted.0 + 1
    }

    pub(crate) fn last(&self) -> u64 {
        self.compacted.0 + self.entries.len() as u64
    }

    pub(crate) fn data_bytes(&self) -> u64 {
        self.data_bytes
    }

    /// Takes entries over, replacing what they contradict.
    pub(crate) fn append(&mut self, entries: &[LogEntry]) {
        let Some(first) = entries.first() else {
            return;
        };
        assert!(
            first.index >= self.first() && first.index <= self.last() + 1,
            "entry {} does not continue the log {}..={}",
            first.index,
            self.first(),
            self.last()
        );
        let keep = (first.index - self.first()) as usize;
        let replaced: u64 = self.entries.drain(keep..).map(|e| data_len(&e)).sum();
        self.data_bytes = self.data_bytes - replaced + entries.iter().map(data_len).sum::<u64>();
        self.entries.extend(entries.iter().cloned());
    }

    /// Drops entries up to and including `through`.
    pub(crate) fn compact(&mut self, through: u64) {
        if through <= self.compacted.0 {
            return;
        }
        assert!(through <= self.last(), "compaction beyond the log");
        let count = (through - self.compacted.0) as usize;
        let term = self.entries[count - 1].term;
        let dropped: u64 = self.entries.drain(..count).map(|e| data_len(&e)).sum();
        self.data_bytes -= dropped;
        self.compacted = (through, term);
        if self
            .image
            .as_ref()
            .is_some_and(|image| image.index < through)
        {
            self.image = None;
        }
        // A drained deque keeps its capacity; a burst must not hold memory for ever.
        if self.entries.capacity() > 4 * self.entries.len().max(1024) {
            self.entries.shrink_to(2 * self.entries.len());
        }
    }

    /// Starts over behind a snapshot.
    pub(crate) fn reset(&mut self, index: u64, term: u64) {
        self.entries.clear();
        self.data_bytes = 0;
        self.compacted = (index, term);
        self.image = None;
        self.membership_index = index;
    }

    /// The newest index at or below `through` that leaves at least `retain` bytes of commands behind
    /// it, or as many as there are.
    pub(crate) fn compaction_point(&self, through: u64, retain: u64) -> u64 {
        let mut behind = 0;
        let mut point = self.last();
        for entry in self.entries.iter().rev() {
            if point <= through && behind >= retain {
                break;
            }
            behind += data_len(entry);
            point -= 1;
        }
        point.min(through)
    }

    pub(crate) fn offer(&mut self, image: SnapshotImage) {
        self.image = Some(image);
    }

    pub(crate) fn withdraw(&mut self) {
        self.image = None;
    }

    /// A membership has come into force with the entry at `index`. A member that joined with it can only
    /// use an image that holds that entry, and one that lost its data and comes back as learner must not
    /// find itself a voter in it.
    pub(crate) fn note_membership(&mut self, index: u64) {
        self.membership_index = index;
    }

    fn serves(&self, image: &SnapshotImage, request_index: u64, to: u64) -> bool {
        image.index >= request_index
            && image.index >= self.compacted.0.max(self.membership_index)
            && image.membership.contains(to)
    }

    pub(crate) fn take_wanted(&mut self) -> Option<SnapshotRequest> {
        self.wanted.take()
    }

    fn position(&self, index: u64) -> usize {
        (index - self.first()) as usize
    }

    /// The entry at this index, if it is here.
    pub(crate) fn entry(&self, index: u64) -> Option<&LogEntry> {
        let position = index.checked_sub(self.first())?;
        self.entries.get(position as usize)
    }
}

impl Storage for LogWindow {
    fn initial_state(&self) -> raft::Result<RaftState> {
        Ok(self.initial.clone())
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        _context: GetEntriesContext,
    ) -> raft::Result<Vec<Entry>> {
        if low < self.first() {
            return Err(StorageError::Compacted.into());
        }
        assert!(high <= self.last() + 1, "read beyond the log");
        let max_size = max_size.into().unwrap_or(u64::MAX);
        let mut size = 0;
        let range = self.position(low)..self.position(high);
        let entries = self.entries.range(range).take_while(|entry| {
            let first = size == 0;
            size += data_len(entry) + ENTRY_OVERHEAD;
            first || size <= max_size
        });
        Ok(entries.map(to_raft).collect())
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        if index == self.compacted.0 {
            return Ok(self.compacted.1);
        }
        if index < self.compacted.0 {
            return Err(StorageError::Compacted.into());
        }
        let entry = self.entries.get(self.position(index));
        entry
            .map(|entry| entry.term)
            .ok_or_else(|| StorageError::Unavailable.into())
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(self.first())
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.last())
    }

    fn snapshot(&self, request_index: u64, to: u64) -> raft::Result<Snapshot> {
        match &self.image {
            Some(image) if self.serves(image, request_index, to) => Ok(image.to_raft()),
            _ => {
                let min_index = request_index.max(self.compacted.0);
                self.wanted.set(Some(SnapshotRequest {
                    to,
                    min_index: min_index.max(self.membership_index),
                }));
                Err(StorageError::SnapshotTemporarilyUnavailable.into())
            }
        }
    }
}

impl SnapshotImage {
    pub(crate) fn to_raft(&self) -> Snapshot {
        Snapshot {
            data: self.manifest.to_vec(),
            metadata: Some(SnapshotMetadata {
                conf_state: Some(self.membership.to_raft()),
                index: self.index,
                term: self.term,
            }),
        }
    }

    pub(crate) fn from_raft(snapshot: &Snapshot) -> SnapshotImage {
        let metadata = snapshot.metadata.clone().unwrap_or_default();
        SnapshotImage {
            index: metadata.index,
            term: metadata.term,
            membership: Membership::from_raft(metadata.conf_state.unwrap_or_default()),
            manifest: Bytes::from(snapshot.data.clone()),
        }
    }
}

fn data_len(entry: &LogEntry) -> u64 {
    entry.data.len() as u64
}

/// An entry as raft gets it. Raft copies what it is given, several times, and never looks at commands: an entry with
/// commands comes without them, and with raft's disused `sync_log` as the mark of that.
pub(crate) fn to_raft(entry: &LogEntry) -> Entry {
    let stays = entry.kind == EntryKind::Normal;
    Entry {
        entry_type: i32::from(entry.kind.code()),
        term: entry.term,
        index: entry.index,
        data: match stays {
            true => Vec::new(),
            false => entry.data.to_vec(),
        },
        sync_log: stays && !entry.data.is_empty(),
        ..Entry::default()
    }
}

/// Whether the commands of this entry of raft are elsewhere.
pub(crate) fn is_stub(entry: &Entry) -> bool {
    entry.sync_log
}

/// The entry of raft with this data.
pub(crate) fn from_raft(entry: &Entry, data: Bytes) -> LogEntry {
    let kind = match entry.entry_type() {
        EntryType::EntryNormal => EntryKind::Normal,
        EntryType::EntryConfChange => EntryKind::ConfChange,
        EntryType::EntryConfChangeV2 => EntryKind::ConfChangeV2,
    };
    LogEntry {
        index: entry.index,
        term: entry.term,
        kind,
        data,
    }
}
