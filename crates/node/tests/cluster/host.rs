//! The host of one member: a disk, the state, and what its clients were answered.

use std::collections::{BTreeMap, VecDeque};

use bytes::{Bytes, BytesMut};
use quenda_consensus::{
    Config, Consensus, EntryKind, HardState, LogBatch, LogEntry, Membership, Recovered,
};
use quenda_frontend::ConnectionId;
use quenda_node::{Applier, Connections, Effects, Founding, Member, Setup};
use quenda_proto::ErrorCode;
use quenda_tree::{Applied, Changes, CheckpointSink, Loader, Table, Tree};

/// Every row of a state.
#[derive(Clone, Default)]
pub struct Rows(BTreeMap<(u8, Vec<u8>), Vec<u8>>);

impl CheckpointSink for Rows {
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) {
        self.0.insert((number(table), key.to_vec()), value.to_vec());
    }

    fn delete(&mut self, table: Table, key: &[u8]) {
        self.0.remove(&(number(table), key.to_vec()));
    }
}

fn number(table: Table) -> u8 {
    let position = Table::ALL.iter().position(|other| *other == table);
    position.expect("a table") as u8
}

impl Rows {
    pub fn of(tree: &Tree) -> Rows {
        let mut rows = Rows::default();
        tree.write_full(&mut rows);
        rows
    }

    pub fn load(&self) -> Tree {
        if self.0.is_empty() {
            return Tree::new();
        }
        let mut loader = Loader::new();
        for ((table, key), value) in &self.0 {
            let table = Table::ALL[usize::from(*table)];
            loader.row(table, key, value).expect("a row");
        }
        loader.finish().expect("a state")
    }
}

/// A state and the entry it belongs to.
#[derive(Clone)]
pub struct Image {
    pub rows: Rows,
    pub index: u64,
    pub term: u64,
    pub membership: Membership,
}

/// What survives a crash.
#[derive(Clone)]
pub struct Disk {
    pub hard_state: HardState,
    pub compacted: (u64, u64),
    pub entries: Vec<LogEntry>,
    pub image: Image,
}

impl Disk {
    pub fn new(recovered: &Recovered) -> Disk {
        Disk {
            hard_state: recovered.hard_state,
            compacted: recovered.compacted,
            entries: recovered.entries.clone(),
            image: Image {
                rows: Rows::default(),
                index: recovered.applied,
                term: recovered.compacted.1,
                membership: recovered.membership.clone(),
            },
        }
    }

    fn write(&mut self, batch: &LogBatch) {
        self.hard_state = batch.hard_state;
        if let Some(first) = batch.entries.first() {
            let keep = first.index - self.compacted.0 - 1;
            self.entries.truncate(keep as usize);
            self.entries.extend(batch.entries.iter().cloned());
        }
    }

    fn compact(&mut self, through: u64) {
        if through > self.compacted.0 {
            let count = (through - self.compacted.0) as usize;
            self.compacted = (through, self.entries[count - 1].term);
            self.entries.drain(..count);
        }
    }

    fn recovered(&self) -> Recovered {
        let recovered = Recovered {
            hard_state: self.hard_state,
            membership: self.image.membership.clone(),
            compacted: self.compacted,
            entries: self.entries.clone(),
            applied: self.image.index,
        };
        recovered.validate().expect("the disk is consistent");
        recovered
    }
}

/// What a client got for a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub connection: u64,
    pub zxid: i64,
    pub code: ErrorCode,
}

/// What happened to the clients of one member.
#[derive(Debug, Default)]
pub struct Record {
    pub answers: Vec<Answer>,
    pub closed: Vec<(i64, bool)>,
    pub moved: Vec<i64>,
    pub restored: Vec<i64>,
    pub changes: usize,
    pub over_quota: Vec<String>,
}

impl Connections for Record {
    fn deliver(&mut self, _: &Tree, changes: &Changes) {
        self.changes += changes.iter().count();
    }

    fn complete(&mut self, _: &Tree, connection: ConnectionId, applied: &Applied, _: &[u8]) {
        self.answers.push(Answer {
            connection: connection.0,
            zxid: applied.zxid,
            code: applied.code,
        });
    }

    fn over_quota(&mut self, path: &str) {
        self.over_quota.push(path.to_owned());
    }

    fn session_closed(&mut self, session: i64, expired: bool) {
        self.closed.push((session, expired));
    }

    fn session_moved(&mut self, session: i64) {
        self.moved.push(session);
    }

    fn restored(&mut self, tree: &Tree) {
        self.restored.push(tree.last_zxid());
    }
}

pub struct Host {
    pub id: u64,
    pub member: Member,
    pub tree: Tree,
    pub disk: Disk,
    pub unsynced: VecDeque<(u64, LogBatch)>,
    /// Whether writes become durable.
    pub syncs: bool,
    pub record: Record,
    pub barriers: Vec<u64>,
    pub eras: Vec<u64>,
    /// Commands of this member's clients as they were applied here, each once or never.
    applier: Applier,
    effects: Effects,
}

impl Host {
    pub fn start(id: u64, disk: Disk, config: &str, run: u64, now_ms: u64) -> Host {
        let recovered = disk.recovered();
        let consensus = Consensus::new(Config::new(id), recovered).expect("a configuration");
        let tree = disk.image.rows.load();
        let founding = Founding {
            cluster: 1000 + id,
            secret: [id as u8; 32],
            config: config.to_string(),
        };
        let setup = Setup {
            consensus,
            founding,
            incarnation: run,
            now_ms,
        };
        let mut member = Member::new(setup, &tree);
        member.campaign();
        Host {
            id,
            member,
            tree,
            disk,
            unsynced: VecDeque::new(),
            syncs: true,
            record: Record::default(),
            barriers: Vec::new(),
            eras: Vec::new(),
            applier: Applier::new(id),
            effects: Effects::default(),
        }
    }

    pub fn persist(&mut self, number: u64, batch: LogBatch) {
        self.unsynced.push_back((number, batch));
    }

    /// Makes everything durable; true if there was something.
    pub fn sync(&mut self) -> bool {
        if !self.syncs {
            return false;
        }
        let mut last = None;
        for (number, batch) in self.unsynced.drain(..) {
            self.disk.write(&batch);
            last = Some(number);
        }
        if let Some(number) = last {
            self.member.persisted(number);
        }
        last.is_some()
    }

    pub fn apply(&mut self, committed: &[LogEntry], now_ms: u64) {
        for entry in committed {
            let in_force = self
                .applier
                .apply(&mut self.tree, entry, &mut self.record, &mut self.effects)
                .expect("a readable entry");
            if in_force {
                assert_ne!(entry.kind, EntryKind::Normal);
                self.member.apply_membership(entry).expect("a valid change");
            }
        }
        if let Some(last) = committed.last() {
            self.member
                .applied(last.index, &self.effects, &self.tree, now_ms);
        }
        self.effects.clear();
    }

    /// A durable checkpoint of what is applied; the log keeps `retain` bytes.
    pub fn checkpoint(&mut self, retain: u64) -> Image {
        assert!(self.unsynced.is_empty());
        let image = Image {
            rows: Rows::of(&self.tree),
            index: self.tree.applied_index(),
            term: self.tree.applied_term(),
            membership: self.member.membership(),
        };
        self.disk.image = image.clone();
        let through = self.member.compact(image.index, retain);
        self.disk.compact(through);
        image
    }

    pub fn install(&mut self, image: &Image, number: u64, hard_state: HardState, now_ms: u64) {
        assert!(self.unsynced.is_empty(), "the log writer is not idle");
        self.disk = Disk {
            hard_state,
            compacted: (image.index, image.term),
            entries: Vec::new(),
            image: image.clone(),
        };
        self.tree = image.rows.load();
        self.member
            .installed(image.index, number, &self.tree, now_ms);
    }

    pub fn submit(&mut self, commands: BytesMut) {
        let era = self.member.era();
        self.member.submit(era, commands);
    }

    /// Codes of the answers that a connection got, in order.
    pub fn codes(&self, connection: u64) -> Vec<ErrorCode> {
        let answers = self.record.answers.iter();
        let own = answers.filter(|answer| answer.connection == connection);
        own.map(|answer| answer.code).collect()
    }
}

/// A manifest of these tests: which image it is.
pub fn manifest(owner: u64, index: u64) -> Bytes {
    let mut manifest = owner.to_be_bytes().to_vec();
    manifest.extend_from_slice(&index.to_be_bytes());
    manifest.into()
}
