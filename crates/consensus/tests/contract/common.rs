//! A member with a simulated disk: batches become durable only when the test says so.

use std::collections::VecDeque;

use quenda_consensus::{
    Config, Consensus, EntryKind, HardState, LogBatch, LogEntry, Membership, Message, ReadIndex,
    Recovered, SnapshotImage, SnapshotRequest,
};

/// What survives a crash.
#[derive(Clone)]
pub struct Disk {
    pub hard_state: HardState,
    pub compacted: (u64, u64),
    pub entries: Vec<LogEntry>,
    pub checkpoint: Checkpoint,
}

/// The state machine of these tests: every command, in order.
#[derive(Clone, Default)]
pub struct Checkpoint {
    pub applied: u64,
    pub term: u64,
    pub membership: Membership,
    pub commands: Vec<(u64, Vec<u8>)>,
}

impl Disk {
    pub fn new(recovered: &Recovered) -> Disk {
        Disk {
            hard_state: recovered.hard_state,
            compacted: recovered.compacted,
            entries: recovered.entries.clone(),
            checkpoint: Checkpoint {
                applied: recovered.applied,
                term: recovered.compacted.1,
                membership: recovered.membership.clone(),
                commands: Vec::new(),
            },
        }
    }

    pub fn write(&mut self, batch: &LogBatch) {
        self.hard_state = batch.hard_state;
        if let Some(first) = batch.entries.first() {
            let keep = first.index - self.compacted.0 - 1;
            self.entries.truncate(keep as usize);
            self.entries.extend(batch.entries.iter().cloned());
        }
    }

    pub fn compact(&mut self, through: u64) {
        if through > self.compacted.0 {
            let count = (through - self.compacted.0) as usize;
            self.compacted = (through, self.entries[count - 1].term);
            self.entries.drain(..count);
        }
    }

    pub fn recovered(&self) -> Recovered {
        let recovered = Recovered {
            hard_state: self.hard_state,
            membership: self.checkpoint.membership.clone(),
            compacted: self.compacted,
            entries: self.entries.clone(),
            applied: self.checkpoint.applied,
        };
        recovered.validate().expect("the disk is consistent");
        recovered
    }
}

pub struct Member {
    pub id: u64,
    pub raft: Consensus,
    pub disk: Disk,
    pub state: Checkpoint,
    pub unsynced: VecDeque<(u64, Option<SnapshotImage>, LogBatch)>,
    pub outbox: Vec<Message>,
    pub reads: Vec<ReadIndex>,
    pub wanted: Vec<SnapshotRequest>,
}

impl Member {
    pub fn start(id: u64, seed: u64, recovered: Recovered) -> Member {
        let disk = Disk::new(&recovered);
        Member::from_disk(id, seed, disk)
    }

    pub fn from_disk(id: u64, seed: u64, disk: Disk) -> Member {
        let config = Config {
            seed,
            ..Config::new(id)
        };
        let raft = Consensus::new(config, disk.recovered()).expect("valid configuration");
        Member {
            id,
            raft,
            state: disk.checkpoint.clone(),
            disk,
            unsynced: VecDeque::new(),
            outbox: Vec::new(),
            reads: Vec::new(),
            wanted: Vec::new(),
        }
    }

    /// Loses everything that is not durable and starts again.
    pub fn crash(self, seed: u64) -> Member {
        Member::from_disk(self.id, seed, self.disk)
    }

    /// Takes all work that is ready. Nothing becomes durable.
    pub fn pump(&mut self) {
        while let Some(ready) = self.raft.ready() {
            if let Some(batch) = ready.persist {
                self.unsynced
                    .push_back((ready.number, ready.snapshot, batch));
            }
            // What a snapshot needs to be installed is no write that could hang.
            let writes = self
                .unsynced
                .iter()
                .find(|(_, snapshot, _)| snapshot.is_none());
            let first_installs = self
                .unsynced
                .front()
                .is_some_and(|(_, image, _)| image.is_some());
            let expected = writes
                .filter(|_| !first_installs)
                .map(|(number, ..)| *number);
            assert_eq!(self.raft.oldest_write(), expected);
            self.outbox.extend(ready.messages);
            self.reads.extend(ready.reads);
            self.wanted.extend(ready.snapshot_wanted);
            for entry in ready.committed {
                self.apply(&entry);
            }
        }
    }

    /// Makes the oldest `count` outstanding batches durable with one sync.
    pub fn sync(&mut self, count: usize) {
        let mut last = None;
        let mut installed = None;
        for (number, snapshot, batch) in self.unsynced.drain(..count) {
            if let Some(image) = snapshot {
                self.disk.entries.clear();
                self.disk.compacted = (image.index, image.term);
                self.disk.checkpoint = decode_image(&image);
                self.state = self.disk.checkpoint.clone();
                installed = Some(image.index);
            }
            self.disk.write(&batch);
            last = Some(number);
        }
        if let Some(number) = last {
            self.outbox.extend(self.raft.on_persisted(number));
        }
        if let Some(index) = installed {
            self.raft.on_applied(index);
        }
    }

    /// Everything that can be done without others.
    pub fn settle(&mut self) {
        self.pump();
        while !self.unsynced.is_empty() {
            self.sync(self.unsynced.len());
            self.pump();
        }
    }

    /// Makes the state durable and drops the log below it, but for `retain` bytes.
    pub fn checkpoint(&mut self, retain: u64) {
        self.disk.checkpoint = self.state.clone();
        let through = self.raft.compaction_point(self.state.applied, retain);
        self.raft.compact(through);
        self.disk.compact(through);
    }

    pub fn image(&self) -> SnapshotImage {
        let mut manifest = Vec::new();
        for (index, command) in &self.state.commands {
            manifest.extend_from_slice(&index.to_be_bytes());
            manifest.extend_from_slice(&(command.len() as u32).to_be_bytes());
            manifest.extend_from_slice(command);
        }
        SnapshotImage {
            index: self.state.applied,
            term: self.state.term,
            membership: self.state.membership.clone(),
            manifest: manifest.into(),
        }
    }

    pub fn commands(&self) -> Vec<&[u8]> {
        let commands = self.state.commands.iter();
        commands.map(|(_, command)| command.as_slice()).collect()
    }

    fn apply(&mut self, entry: &LogEntry) {
        assert_eq!(
            entry.index,
            self.state.applied + 1,
            "applied in order, once"
        );
        let changed = self.raft.apply_membership(entry);
        if let Ok(Some(membership)) = changed {
            self.state.membership = membership;
        }
        if entry.kind == EntryKind::Normal && !entry.data.is_empty() {
            self.state.commands.push((entry.index, entry.data.to_vec()));
        }
        self.state.applied = entry.index;
        self.state.term = entry.term;
        self.raft.on_applied(entry.index);
    }
}

fn decode_image(image: &SnapshotImage) -> Checkpoint {
    let mut commands = Vec::new();
    let mut rest = &image.manifest[..];
    while !rest.is_empty() {
        let (index, tail) = rest.split_at(8);
        let (len, tail) = tail.split_at(4);
        let len = u32::from_be_bytes(len.try_into().unwrap()) as usize;
        let (command, tail) = tail.split_at(len);
        commands.push((
            u64::from_be_bytes(index.try_into().unwrap()),
            command.to_vec(),
        ));
        rest = tail;
    }
    Checkpoint {
        applied: image.index,
        term: image.term,
        membership: image.membership.clone(),
        commands,
    }
}
