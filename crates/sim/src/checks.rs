//! What every observation is held against. The observers stand at two places: where members apply
//! entries, and where clients read replies.

use std::collections::{BTreeMap, BTreeSet};

use quenda_tree::{ChangeKind, Changes, Tree};

use crate::linear::{self, Action, Operation, Outcome, Verdict};
use crate::sessions::SessionChecks;
use crate::wire;

/// What was seen at one index of the log when the first member applied it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct At {
    term: u64,
    digest: u64,
    zxid: i64,
}

/// Numbers of what a run went through, to show that it was not idle.
#[derive(Debug, Default, Clone, Copy)]
pub struct Counters {
    /// Writes that were acknowledged, failed ones too.
    pub writes: u64,
    /// Writes of unknown fate.
    pub unknown: u64,
    /// Reads that were answered.
    pub reads: u64,
    /// sync + read pairs that were answered.
    pub synced_reads: u64,
    /// Watch events.
    pub events: u64,
    /// Sessions opened and resumed.
    pub opened: u64,
    /// Sessions resumed.
    pub resumed: u64,
    /// Sessions that expired.
    pub expired: u64,
    /// Sessions that expired and that one member alone knew.
    pub expired_locally: u64,
    /// Local sessions that became some of the cluster.
    pub upgraded: u64,
    /// Searches for an order that were given up.
    pub undecided: u64,
    /// Snapshots installed.
    pub installs: u64,
    /// Starts of members.
    pub starts: u64,
    /// Reconfigurations that were answered with success.
    pub reconfigs: u64,
    /// Changes of the leader.
    pub leaders: u64,
    /// Stores that were lost.
    pub wipes: u64,
    /// Disks that stood still.
    pub hangs: u64,
    /// Snapshots restored.
    pub restores: u64,
}

impl Counters {
    /// Adds another run's numbers.
    pub fn add(&mut self, other: &Counters) {
        self.writes += other.writes;
        self.unknown += other.unknown;
        self.reads += other.reads;
        self.synced_reads += other.synced_reads;
        self.events += other.events;
        self.opened += other.opened;
        self.resumed += other.resumed;
        self.expired += other.expired;
        self.expired_locally += other.expired_locally;
        self.upgraded += other.upgraded;
        self.undecided += other.undecided;
        self.installs += other.installs;
        self.starts += other.starts;
        self.reconfigs += other.reconfigs;
        self.leaders += other.leaders;
        self.wipes += other.wipes;
        self.hangs += other.hangs;
        self.restores += other.restores;
    }
}

/// All observations of one run.
#[derive(Debug, Default)]
pub struct Checks {
    violation: Option<String>,
    /// Members may refuse writes while their disks are full: then any of them may be missing.
    pub refusals: bool,
    /// Orders calls and returns.
    instant: u64,
    applied: BTreeMap<u64, At>,
    newest: u64,
    newest_zxid: i64,
    /// Changes of each znode, as the first member to apply them made them.
    changes: BTreeMap<String, Vec<(i64, ChangeKind)>>,
    /// What znodes that a restore brought back show as the zxid of their last change, by the zxid of the restore.
    shown: BTreeMap<(i64, String), i64>,
    /// When restores were asked for.
    restores: BTreeMap<u64, u64>,
    /// All of them, in the order of the log.
    log: Vec<(i64, String, ChangeKind)>,
    /// zxids of creates and deletes of children, by parent.
    children: BTreeMap<String, Vec<i64>>,
    /// Where a value was written, and by which transaction.
    values: BTreeMap<u32, (String, i64)>,
    /// Last value and version of the znodes that one connection after the other writes blindly.
    private: BTreeMap<String, (u32, i32)>,
    /// First value that each connection wrote to such a znode, by znode, then by value.
    private_starts: BTreeMap<String, BTreeSet<u32>>,
    /// Ephemeral znodes that each session has created.
    ephemerals: BTreeMap<i64, BTreeSet<String>>,
    /// Newest token that was written under a lock.
    token: i64,
    acknowledged: BTreeSet<i64>,
    acknowledged_max: i64,
    histories: BTreeMap<String, Vec<Operation>>,
    /// Sessions: who hears them, who ends them.
    pub sessions: SessionChecks,
    /// Numbers.
    pub counters: Counters,
}

impl Checks {
    /// Notes that a promise is broken. The first note counts.
    pub fn fail(&mut self, text: String) {
        if self.violation.is_none() {
            self.violation = Some(text);
        }
    }

    /// The first broken promise.
    pub fn violation(&self) -> Option<&str> {
        self.violation.as_deref()
    }

    /// A new point of the order of calls and returns.
    pub fn instant(&mut self) -> u64 {
        self.instant += 1;
        self.instant
    }

    // ----- members ------------------------------------------------------------------------------

    /// Whether this entry has not been applied by any member yet.
    pub fn is_new(&self, index: u64) -> bool {
        index > self.newest
    }

    /// Changes of an entry that no member applied before.
    pub fn changed(&mut self, changes: &Changes) {
        for change in changes.iter() {
            let zxid = change.zxid;
            if zxid <= self.newest_zxid {
                self.fail(format!(
                    "{} changed by zxid {zxid:#x} behind an entry that ended with {:#x}",
                    change.path, self.newest_zxid
                ));
            }
            let list = self.changes.entry(change.path.into()).or_default();
            list.push((zxid, change.kind));
            self.log.push((zxid, change.path.into(), change.kind));
            if change.kind != ChangeKind::DataChanged {
                let parent = quenda_proto::path::parent(change.path);
                self.children.entry(parent.into()).or_default().push(zxid);
            }
        }
    }

    /// A member has applied an entry; `touched` are the znodes that it changed, if nobody applied it
    /// before.
    pub fn applied(
        &mut self,
        member: u64,
        index: u64,
        term: u64,
        tree: &Tree,
        touched: &[String],
        closed: &[i64],
    ) {
        let at = At {
            term,
            digest: tree.digest(),
            zxid: tree.last_zxid(),
        };
        if let Some(before) = self.applied.get(&index) {
            if *before != at {
                self.fail(format!(
                    "member {member} holds {at:x?} at entry {index}, another held {before:x?}"
                ));
            }
            return;
        }
        if index <= self.newest {
            // Applied as a part of a snapshot everywhere: cannot be compared.
            return;
        }
        if at.zxid < self.newest_zxid {
            self.fail(format!(
                "entry {index} takes the last zxid back from {:#x} to {:#x}",
                self.newest_zxid, at.zxid
            ));
        }
        self.newest = index;
        self.newest_zxid = at.zxid;
        self.applied.insert(index, at);
        self.look_at(tree, touched);
        for (session, state) in tree.sessions() {
            self.sessions
                .opened(session, state.timeout_ms, state.generation, (index, term));
        }
        for session in closed {
            for path in self.ephemerals.remove(session).unwrap_or_default() {
                let owner = tree.get(&path).map(|node| node.stat().ephemeral_owner);
                if owner == Some(*session) {
                    self.fail(format!(
                        "entry {index} ends session {session:#x}, but {path} stays"
                    ));
                }
            }
        }
    }

    /// A restore with this number is on its way.
    pub fn restore_asked(&mut self, restore: u64) {
        let call = self.instant();
        self.restores.insert(restore, call);
    }

    /// The first member has put the state of a snapshot in force: what is expected starts from there.
    pub fn restored(&mut self, tree: &Tree) {
        self.counters.restores += 1;
        let Some(restored) = tree.restored() else {
            return self.fail("a state that says nothing of its restore".into());
        };
        let zxid = restored.zxid;
        if zxid <= self.newest_zxid {
            let newest = self.newest_zxid;
            self.fail(format!("a restore took zxid {zxid:#x} behind {newest:#x}"));
        }
        let mut paths = paths_of(tree);
        paths.extend(self.changes.keys().cloned());
        for path in &paths {
            self.became(path, zxid, tree);
        }
        self.registers_became(&paths, restored.id, tree);
        self.ephemerals = tree
            .sessions()
            .map(|(session, _)| (session, tree.ephemerals(session).collect()))
            .collect();
        let guard = tree.get("/guard").and_then(|node| node.data());
        let token = guard.and_then(|data| data.first_chunk::<8>());
        self.token = token.map_or(0, |raw| i64::from_be_bytes(*raw));
        self.sessions
            .restored(|session| tree.session(session).is_some());
    }

    fn became(&mut self, path: &str, zxid: i64, tree: &Tree) {
        let node = tree.get(path);
        let kind = match node {
            Some(node) => {
                let shown = node.stat().mzxid;
                if shown > zxid {
                    self.fail(format!(
                        "{path} came back with {shown:#x}, the restore has {zxid:#x}"
                    ));
                }
                self.shown.insert((zxid, path.into()), shown);
                ChangeKind::DataChanged
            }
            None => ChangeKind::Deleted,
        };
        let list = self.changes.entry(path.into()).or_default();
        list.push((zxid, kind));
        if path.starts_with("/p") {
            let value = node.and_then(|node| wire::value_of(node.data()?));
            match (value, node) {
                (Some(value), Some(node)) => {
                    let version = node.stat().version;
                    self.private.insert(path.into(), (value, version));
                }
                _ => {
                    self.private.remove(path);
                }
            }
        }
    }

    /// At one moment between the call and now every register has become what the snapshot held.
    fn registers_became(&mut self, paths: &BTreeSet<String>, restore: u64, tree: &Tree) {
        let call = self.restores.get(&restore).copied().unwrap_or(0);
        for path in paths {
            let state = tree.get(path).map(|node| {
                let value = node.data().and_then(wire::value_of);
                (value.unwrap_or(0), node.stat().version)
            });
            let ret = self.instant();
            self.record(path, call, Some(ret), Action::Become(state));
        }
    }

    /// What a znode shows as the zxid of a change.
    fn shown_as(&self, path: &str, zxid: i64) -> i64 {
        let shown = self.shown.get(&(zxid, path.to_string()));
        shown.copied().unwrap_or(zxid)
    }

    /// A member holds a state that it got as a snapshot.
    pub fn installed(&mut self, member: u64, tree: &Tree) {
        self.counters.installs += 1;
        let index = tree.applied_index();
        if tree.recompute_digest() != tree.digest() {
            self.fail(format!(
                "member {member}: the digest of snapshot {index} is wrong"
            ));
        }
        match self.applied.get(&index) {
            Some(at) if (at.digest, at.zxid) != (tree.digest(), tree.last_zxid()) => {
                self.fail(format!(
                    "member {member} was given another state at entry {index} than {at:x?}"
                ));
            }
            Some(_) => {}
            None if index > 1 => self.fail(format!(
                "member {member} was given a state of entry {index}, which nobody applied"
            )),
            None => {}
        }
    }

    fn look_at(&mut self, tree: &Tree, touched: &[String]) {
        for path in touched {
            let Some(node) = tree.get(path) else {
                continue;
            };
            let (data, stat) = (node.data().unwrap_or_default(), node.stat());
            let owner = stat.ephemeral_owner;
            if owner != 0 {
                self.ephemerals
                    .entry(owner)
                    .or_default()
                    .insert(path.clone());
                if tree.session(owner).is_none() {
                    self.fail(format!("{path} outlives its session {owner:#x}"));
                }
            }
            if path == "/guard" {
                self.guarded(data);
            } else if let Some(value) = wire::value_of(data).filter(|value| *value != 0) {
                if path.starts_with("/p") {
                    self.written_blindly(path, value, stat.version);
                } else if path.starts_with("/r") || path.starts_with("/e") {
                    self.written(path, value, stat.mzxid);
                }
            }
        }
    }

    fn written(&mut self, path: &str, value: u32, zxid: i64) {
        let found = (path.to_string(), zxid);
        if let Some(before) = self.values.insert(value, found.clone())
            && before != found
        {
            self.fail(format!(
                "value {value} was written twice: {before:x?} and {found:x?}"
            ));
        }
    }

    /// Tells from which value on a connection writes to a znode of its own.
    pub fn private_start(&mut self, path: &str, value: u32) {
        self.private_starts
            .entry(path.into())
            .or_default()
            .insert(value);
    }

    /// A znode to which the connections of one session write rising values, one a request: what one
    /// connection wrote is there up to some point, each once.
    fn written_blindly(&mut self, path: &str, value: u32, version: i32) {
        let before = self.private.insert(path.into(), (value, version));
        let starts = self.private_starts.get(path);
        let start = starts
            .and_then(|starts| starts.range(..=value).next_back())
            .copied()
            .unwrap_or(value);
        let Some((last, last_version)) = before else {
            return;
        };
        let writes = i64::from(version) - i64::from(last_version);
        let span = i64::from(value) - i64::from(last);
        let least = if self.refusals {
            1
        } else if start > last {
            i64::from(value) - i64::from(start) + 1
        } else {
            span
        };
        if span <= 0 || writes < least || writes > span {
            self.fail(format!(
                "{path}: {writes} writes led from value {last} to {value} of the connection that began \
                 with {start}: lost, overtaken or doubled"
            ));
        }
    }

    fn guarded(&mut self, data: &[u8]) {
        let Some(raw) = data.first_chunk::<8>() else {
            return;
        };
        let token = i64::from_be_bytes(*raw);
        if token < self.token {
            self.fail(format!(
                "a lock's holder wrote with token {token:#x} after one with {:#x}",
                self.token
            ));
        }
        self.token = token;
    }

    /// The newest entry that any member has applied.
    pub fn newest(&self) -> u64 {
        self.newest
    }

    // ----- clients ------------------------------------------------------------------------------

    /// The newest zxid that a client was told: what is asked from now on must not be older.
    pub fn floor(&self) -> i64 {
        self.acknowledged_max
    }

    /// A write was answered with this zxid.
    pub fn acknowledged(&mut self, who: &str, zxid: i64, floor: i64) {
        self.counters.writes += 1;
        if zxid <= floor {
            self.fail(format!(
                "{who}: a write got zxid {zxid:#x}, although {floor:#x} was answered before it was sent"
            ));
        }
        if !self.acknowledged.insert(zxid) {
            self.fail(format!("{who}: zxid {zxid:#x} was given twice"));
        }
        if zxid > self.newest_zxid {
            self.fail(format!(
                "{who}: a write was answered with zxid {zxid:#x}, but nothing beyond {:#x} is applied",
                self.newest_zxid
            ));
        }
        self.acknowledged_max = self.acknowledged_max.max(zxid);
    }

    /// A change that a client was told must be one that members made.
    pub fn expect_change(&mut self, who: &str, path: &str, zxid: i64, kind: ChangeKind) {
        let made = self
            .changes
            .get(path)
            .is_some_and(|list| list.contains(&(zxid, kind)));
        if !made {
            self.fail(format!(
                "{who}: told that {path} is {kind:?} by zxid {zxid:#x}, which nobody applied"
            ));
        }
    }

    /// How many changes the log has up to a zxid.
    pub fn count_of_changes(&self, zxid: i64) -> usize {
        self.log.partition_point(|(at, _, _)| *at <= zxid)
    }

    /// The changes of the log behind the first so many.
    pub fn changes_behind(&self, count: usize) -> &[(i64, String, ChangeKind)] {
        &self.log[count..]
    }

    /// The newest change of a znode up to a zxid.
    pub fn change_at(&self, path: &str, zxid: i64) -> Option<(i64, ChangeKind)> {
        let list = self.changes.get(path)?;
        let count = list.partition_point(|(at, _)| *at <= zxid);
        list[..count].last().copied()
    }

    /// The first change of a znode behind a zxid, if it is not behind `until`.
    pub fn change_between(&self, path: &str, after: i64, until: i64) -> Option<(i64, ChangeKind)> {
        let list = self.changes.get(path)?;
        let first = list.partition_point(|(at, _)| *at <= after);
        list.get(first).copied().filter(|(at, _)| *at <= until)
    }

    /// The first create or delete of a child, or the delete of the znode itself.
    pub fn child_change_between(&self, path: &str, after: i64, until: i64) -> Option<i64> {
        let children = self.children.get(path).and_then(|list| {
            let first = list.partition_point(|at| *at <= after);
            list.get(first).copied()
        });
        let own = self.changes.get(path).and_then(|list| {
            let first = list.partition_point(|(at, _)| *at <= after);
            let rest = list[first..].iter();
            let mut deletes = rest.filter(|(_, kind)| *kind == ChangeKind::Deleted);
            deletes.next().map(|(at, _)| *at)
        });
        let first = match (children, own) {
            (Some(child), Some(own)) => Some(child.min(own)),
            (child, own) => child.or(own),
        };
        first.filter(|at| *at <= until)
    }

    /// A read saw this at this zxid: it must be what the log made of the znode up to there.
    pub fn saw(&mut self, who: &str, path: &str, at: i64, seen: Option<(Option<u32>, i64)>) {
        self.counters.reads += 1;
        let made = self.change_at(path, at);
        let made = made.filter(|(_, kind)| *kind != ChangeKind::Deleted);
        let made_zxid = made.map(|(zxid, _)| self.shown_as(path, zxid));
        let seen_zxid = seen.map(|(_, zxid)| zxid);
        if seen_zxid != made_zxid {
            self.fail(format!(
                "{who}: {path} at zxid {at:#x} was shown as of {seen_zxid:x?}, the log made it {made_zxid:x?}"
            ));
        }
        if let Some((Some(value), zxid)) = seen
            && let Some((written_path, written)) = self.values.get(&value)
            && (written_path != path || *written != zxid)
        {
            let text = format!(
                "{who}: {path} shows value {value} of zxid {zxid:#x}, it was written to {written_path} by {written:#x}"
            );
            self.fail(text);
        }
    }

    /// An operation on a register, for the search for an order.
    pub fn record(&mut self, path: &str, call: u64, ret: Option<u64>, action: Action) {
        if !path.starts_with("/r") {
            return;
        }
        let operation = Operation {
            call,
            ret: ret.unwrap_or(u64::MAX),
            action,
        };
        let list = self.histories.entry(path.into()).or_default();
        list.push(operation);
    }

    /// Searches an order for every register.
    pub fn linearizable(&mut self) {
        for (path, operations) in std::mem::take(&mut self.histories) {
            match linear::check(None, &operations) {
                Verdict::Linearizable => {}
                Verdict::Undecided => self.counters.undecided += 1,
                Verdict::Violation { explained, stuck } => {
                    let stuck: Vec<String> = stuck
                        .iter()
                        .map(|index| format!("{:?}", operations[*index]))
                        .collect();
                    self.fail(format!(
                        "{path} is not linearizable: of {} operations {explained} are explained, none of \
                         these may follow:\n    {}",
                        operations.len(),
                        stuck.join("\n    ")
                    ));
                }
            }
        }
    }

    /// At the end, on the healed cluster: what was acknowledged is there.
    pub fn final_state(&mut self, member: u64, tree: &Tree) {
        if tree.last_zxid() < self.acknowledged_max {
            self.fail(format!(
                "member {member} ends at zxid {:#x}, {:#x} was acknowledged",
                tree.last_zxid(),
                self.acknowledged_max
            ));
        }
        if tree.applied_index() != self.newest {
            self.fail(format!(
                "member {member} ends at entry {}, the newest is {}",
                tree.applied_index(),
                self.newest
            ));
        }
        let paths: Vec<String> = self.changes.keys().cloned().collect();
        for path in paths {
            let made = self.change_at(&path, i64::MAX);
            let made = made.filter(|(_, kind)| *kind != ChangeKind::Deleted);
            let found = tree.get(&path).map(|node| node.stat().mzxid);
            if found != made.map(|(zxid, _)| self.shown_as(&path, zxid)) {
                self.fail(format!(
                    "member {member}: {path} is as of {found:x?}, the log made it {made:x?}"
                ));
            }
        }
        if tree.recompute_digest() != tree.digest() {
            self.fail(format!("member {member}: the running digest is wrong"));
        }
    }
}

/// Every path of a tree.
fn paths_of(tree: &Tree) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    let mut open = vec![String::new()];
    while let Some(path) = open.pop() {
        if let Some(node) = tree.get(&path) {
            open.extend(node.children().map(|name| format!("{path}/{name}")));
        }
        paths.insert(path);
    }
    paths.remove("");
    paths
}

/// What a register operation was told, from the code of its reply.
pub fn outcome(code: i32, version: i32) -> Option<Outcome> {
    match code {
        0 => Some(Outcome::Done(version)),
        -101 => Some(Outcome::NoNode),
        -103 => Some(Outcome::BadVersion),
        -110 => Some(Outcome::NodeExists),
        _ => None,
    }
}
