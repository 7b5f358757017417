//! One client: it speaks the real protocol, keeps its session over connections and members, does random
//! work, and holds what it is told against [`Checks`].

use std::collections::{BTreeMap, VecDeque};

use bytes::BytesMut;
use quenda_proto::event::EventType;
use quenda_proto::records::{
    CreateResponse, ExistsResponse, GetChildrenResponse, GetDataResponse, ReplyHeader,
    SetDataResponse, WatcherEvent,
};
use quenda_proto::{XID_EVENT, XID_PING, XID_SET_WATCHES};
use quenda_tree::ChangeKind;

use crate::checks::{self, Checks};
use crate::linear::{Action, Outcome};
use crate::rng::Rng;
use crate::schedule::{MS, Micros};
use crate::wire::{self, Part};

/// Registers that all clients share.
const REGISTERS: u64 = 3;

/// What a client wants from its surroundings.
#[derive(Debug, PartialEq, Eq)]
pub enum Intent {
    /// A connection to this member.
    Connect(u64),
    /// Bytes on the current connection.
    Send(BytesMut),
    /// The current connection closed.
    Close,
    /// The current connection is left as it is and never looked at again.
    Abandon,
}

/// A change of the membership, as a client asks for it.
#[derive(Debug, Clone)]
pub struct Reconfiguration {
    /// Lines of servers to add or change.
    pub joining: Option<String>,
    /// Ids of servers to remove.
    pub leaving: Option<String>,
    /// The lines of all servers.
    pub all: Option<String>,
}

/// What kind of watch, as a client distinguishes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum WatchKind {
    Data,
    Exist,
    Child,
}

#[derive(Debug)]
enum Kind {
    Create {
        path: String,
        value: u32,
        is_lock: bool,
    },
    Set {
        path: String,
        value: u32,
        expected: i32,
    },
    Delete {
        path: String,
        expected: i32,
    },
    Get {
        path: String,
        watch: bool,
    },
    Exists {
        path: String,
        watch: bool,
    },
    Children {
        path: String,
        watch: bool,
    },
    Multi {
        parts: Vec<Part>,
    },
    Sync,
    SetWatches,
    Ping,
    Close,
    Reconfig,
}

impl Kind {
    fn is_write(&self) -> bool {
        match self {
            Kind::Create { .. }
            | Kind::Set { .. }
            | Kind::Delete { .. }
            | Kind::Multi { .. }
            | Kind::Close
            | Kind::Reconfig => true,
            Kind::Get { .. }
            | Kind::Exists { .. }
            | Kind::Children { .. }
            | Kind::Sync
            | Kind::SetWatches
            | Kind::Ping => false,
        }
    }
}

#[derive(Debug)]
struct Sent {
    xid: i32,
    kind: Kind,
    at: Micros,
    call: u64,
    floor: i64,
    /// A read that must see everything that was answered before this point and zxid.
    fresh: Option<(u64, i64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// No connection; tries again at this time.
    Apart(Micros),
    /// A connection was asked for at this time.
    Connecting(Micros),
    /// The session is confirmed.
    Live,
}

/// What clients are to do, as the simulation wants it.
#[derive(Debug, Clone)]
pub struct Habits {
    /// Session timeout in milliseconds.
    pub timeout_ms: i32,
    /// Requests on their way at most.
    pub window: usize,
    /// Mean time between two looks around, microseconds.
    pub think: Micros,
    /// Bytes of padding in a value, at most.
    pub padding: u64,
    /// In 10 000 looks: moves to another member.
    pub moves: u64,
    /// In 10 000 looks: ends its session.
    pub closes: u64,
    /// In 10 000 looks: falls silent for ever and comes back as another.
    pub vanishes: u64,
    /// Every read is linearizable.
    pub linearizable: bool,
    /// Reads and waits, but does not write.
    pub is_reader: bool,
    /// Asks for changes of the membership.
    pub is_admin: bool,
}

/// One client.
#[derive(Debug)]
pub struct Client {
    /// Number of the client.
    pub id: usize,
    habits: Habits,
    rng: Rng,
    phase: Phase,
    members: Vec<u64>,
    /// Place of the member that is tried next.
    next_member: usize,
    session: i64,
    password: [u8; 16],
    timeout_ms: i32,
    last_zxid: i64,
    /// Counts the sessions.
    life: u32,
    xid: i32,
    outstanding: VecDeque<Sent>,
    input: BytesMut,
    now: Micros,
    heard_at: Micros,
    sent_at: Micros,
    /// Newest zxid in a reply on this connection.
    reply_zxid: i64,
    watches: BTreeMap<(WatchKind, String), i64>,
    /// The watches are being set again on a new connection.
    resyncing: bool,
    versions: BTreeMap<String, i32>,
    next_value: u32,
    private_value: u32,
    private_ready: bool,
    lock: Option<(String, i64)>,
    holds: bool,
    ephemeral: bool,
    closing: bool,
    /// Looks at which nothing more is begun.
    pub stopped: bool,
    /// Last time at which a write of this client was answered.
    pub written_at: Micros,
    /// Membership changes to ask for, from the simulation.
    pub reconfigs: VecDeque<Reconfiguration>,
}

impl Client {
    /// A client without a session.
    pub fn new(id: usize, habits: Habits, members: Vec<u64>, mut rng: Rng) -> Client {
        Client {
            next_member: rng.below(members.len() as u64) as usize,
            id,
            timeout_ms: habits.timeout_ms,
            habits,
            rng,
            phase: Phase::Apart(0),
            members,
            session: 0,
            password: [0; 16],
            last_zxid: 0,
            life: 0,
            xid: 0,
            outstanding: VecDeque::new(),
            input: BytesMut::new(),
            now: 0,
            heard_at: 0,
            sent_at: 0,
            reply_zxid: 0,
            watches: BTreeMap::new(),
            resyncing: false,
            versions: BTreeMap::new(),
            next_value: 0,
            private_value: 0,
            private_ready: false,
            lock: None,
            holds: false,
            ephemeral: false,
            closing: false,
            stopped: false,
            written_at: 0,
            reconfigs: VecDeque::new(),
        }
    }

    /// The session, 0 for none.
    pub fn session(&self) -> i64 {
        self.session
    }

    /// Whether the session is confirmed on the current connection.
    pub fn is_live(&self) -> bool {
        self.phase == Phase::Live
    }

    /// Whether it writes at all.
    pub fn writes(&self) -> bool {
        !self.habits.is_reader
    }

    /// Requests that were sent before `then` and have no answer.
    pub fn overdue(&self, then: Micros) -> usize {
        let overdue = self.outstanding.iter().filter(|sent| sent.at < then);
        overdue.count()
    }

    fn who(&self) -> String {
        format!("client {} (session {:#x})", self.id, self.session)
    }

    /// Microseconds until the next look around.
    pub fn pause(&mut self) -> Micros {
        let think = self.habits.think;
        self.rng.between(think / 2, think * 3 / 2)
    }

    // ----- time ---------------------------------------------------------------------------------

    /// Looks around: timeouts, then new work.
    pub fn look(&mut self, now: Micros, checks: &mut Checks) -> Vec<Intent> {
        self.now = now;
        let mut intents = Vec::new();
        let timeout = self.timeout_ms.unsigned_abs() as u64 * MS;
        match self.phase {
            Phase::Apart(until) if now >= until => {
                self.next_member = (self.next_member + 1) % self.members.len();
                let member = self.members[self.next_member];
                self.phase = Phase::Connecting(now);
                intents.push(Intent::Connect(member));
            }
            Phase::Apart(_) => {}
            Phase::Connecting(since) => {
                let patience = timeout / self.members.len().max(1) as u64;
                if now > since + patience.max(500 * MS) {
                    intents.push(Intent::Close);
                    self.parted(now, checks);
                }
            }
            Phase::Live => {
                if now > self.heard_at + timeout * 2 / 3 && !self.outstanding.is_empty() {
                    intents.push(Intent::Close);
                    self.parted(now, checks);
                } else if self.rng.per_myriad(self.habits.moves) && !self.stopped {
                    let half_open = self.rng.percent(50);
                    intents.push(if half_open {
                        Intent::Abandon
                    } else {
                        Intent::Close
                    });
                    self.parted(now, checks);
                } else if self.rng.per_myriad(self.habits.vanishes) && !self.stopped {
                    checks.sessions.silent(self.session, now);
                    intents.push(Intent::Abandon);
                    self.parted(now, checks);
                    self.forget_session();
                } else {
                    let mut out = BytesMut::new();
                    self.work(now, checks, &mut out);
                    if !out.is_empty() {
                        self.sent_at = now;
                        intents.push(Intent::Send(out));
                    }
                }
            }
        }
        intents
    }

    /// The connection stands.
    pub fn connected(&mut self, now: Micros) -> BytesMut {
        let mut out = BytesMut::new();
        self.input.clear();
        self.heard_at = now;
        self.sent_at = now;
        self.reply_zxid = 0;
        wire::connect(
            &mut out,
            self.session,
            &self.password,
            self.last_zxid,
            self.habits.timeout_ms,
        );
        out
    }

    /// The connection is gone: nothing is known of what was on its way.
    pub fn parted(&mut self, now: Micros, checks: &mut Checks) {
        let backoff = self.rng.between(20 * MS, 300 * MS);
        self.phase = Phase::Apart(now + backoff);
        self.input.clear();
        self.closing = false;
        for sent in std::mem::take(&mut self.outstanding) {
            if sent.kind.is_write() {
                checks.counters.unknown += 1;
                lose(&sent, checks);
            }
            if matches!(sent.kind, Kind::Create { is_lock: true, .. }) {
                // Its name is unknown: the next session starts clean.
                self.lock = None;
            }
        }
        self.resyncing = !self.watches.is_empty();
    }

    fn forget_session(&mut self) {
        self.session = 0;
        self.password = [0; 16];
        self.last_zxid = 0;
        self.watches.clear();
        self.resyncing = false;
        self.lock = None;
        self.holds = false;
        self.ephemeral = false;
        self.closing = false;
        self.private_ready = false;
        self.private_value = 0;
    }

    // ----- bytes --------------------------------------------------------------------------------

    /// Bytes have come; what it answers at once is appended to `out`.
    pub fn receive(&mut self, now: Micros, bytes: &[u8], checks: &mut Checks) -> Vec<Intent> {
        let mut intents = Vec::new();
        self.input.extend_from_slice(bytes);
        (self.now, self.heard_at) = (now, now);
        while let Some(frame) = wire::next_frame(&mut self.input) {
            match self.phase {
                Phase::Connecting(_) => self.take_handshake(now, &frame, checks, &mut intents),
                Phase::Live => self.take_frame(now, &frame, checks, &mut intents),
                Phase::Apart(_) => return intents,
            }
        }
        intents
    }

    fn take_handshake(
        &mut self,
        now: Micros,
        frame: &[u8],
        checks: &mut Checks,
        intents: &mut Vec<Intent>,
    ) {
        let Some((session, timeout_ms, password)) = wire::read_connect(frame) else {
            return checks.fail(format!("{}: a handshake does not decode", self.who()));
        };
        if session == 0 {
            if self.session == 0 {
                checks.fail(format!("client {}: a new session was refused", self.id));
            }
            if let Err(text) = checks.sessions.told_gone(self.session) {
                checks.fail(text);
            }
            self.forget_session();
            intents.push(Intent::Close);
            return self.parted(now, checks);
        }
        if self.session != 0 && session != self.session {
            checks.fail(format!("{}: resumed as session {session:#x}", self.who()));
        }
        checks.counters.opened += 1;
        checks.counters.resumed += u64::from(self.session != 0);
        let is_new = self.session == 0;
        if let Err(text) = checks.sessions.adopted(session, is_new) {
            checks.fail(text);
        }
        self.session = session;
        self.password = password;
        self.timeout_ms = timeout_ms;
        self.phase = Phase::Live;
        let mut out = BytesMut::new();
        if is_new {
            self.life += 1;
            self.watches.clear();
        }
        self.resyncing = !self.watches.is_empty();
        if self.resyncing {
            self.set_watches_again(checks, &mut out);
        }
        self.begin_connection(checks, &mut out);
        self.sent_at = now;
        intents.push(Intent::Send(out));
    }

    /// What every connection starts with: the znodes that this client works on.
    fn begin_connection(&mut self, checks: &mut Checks, out: &mut BytesMut) {
        checks.private_start(&self.private_path(), self.private_value + 1);
        if !self.private_ready {
            self.create(checks, out, "/l", 0, false);
            self.create(checks, out, "/guard", 0, false);
            let path = self.private_path();
            self.private_value += 1;
            let xid = self.next_xid();
            let value = self.private_number();
            wire::create(out, xid, &path, &wire::data_of(value, 0), 0);
            let kind = Kind::Create {
                path,
                value,
                is_lock: false,
            };
            self.push(checks, xid, kind, None);
            self.private_ready = true;
        }
    }

    fn set_watches_again(&mut self, checks: &mut Checks, out: &mut BytesMut) {
        let of = |kind| {
            let watches = self.watches.keys().filter(|(found, _)| *found == kind);
            watches.map(|(_, path)| path.clone()).collect::<Vec<_>>()
        };
        let (data, exist, child) = (
            of(WatchKind::Data),
            of(WatchKind::Exist),
            of(WatchKind::Child),
        );
        wire::set_watches(out, self.last_zxid, &data, &exist, &child);
        self.push(checks, XID_SET_WATCHES, Kind::SetWatches, None);
    }

    fn take_frame(
        &mut self,
        now: Micros,
        frame: &[u8],
        checks: &mut Checks,
        intents: &mut Vec<Intent>,
    ) {
        let Some((header, body)) = wire::read_reply(frame) else {
            return checks.fail(format!("{}: a reply does not decode", self.who()));
        };
        if header.xid == XID_EVENT {
            return self.take_event(header.zxid, body, checks);
        }
        let Some(sent) = self.outstanding.pop_front() else {
            return checks.fail(format!("{}: a reply to nothing: {header:?}", self.who()));
        };
        if header.xid != sent.xid {
            return checks.fail(format!(
                "{}: the reply to {} came before that to {} ({:?})",
                self.who(),
                header.xid,
                sent.xid,
                sent.kind
            ));
        }
        self.check_zxid(&header, &sent, checks);
        self.take_reply(now, &header, body, sent, checks, intents);
    }

    fn check_zxid(&mut self, header: &ReplyHeader, sent: &Sent, checks: &mut Checks) {
        let zxid = header.zxid;
        if zxid <= 0 {
            return;
        }
        if zxid < self.last_zxid {
            checks.fail(format!(
                "{}: was at zxid {:#x}, the reply to {:?} is of {zxid:#x}",
                self.who(),
                self.last_zxid,
                sent.kind
            ));
        }
        self.last_zxid = zxid;
        self.reply_zxid = zxid;
        if self.resyncing {
            return;
        }
        for ((kind, path), since) in &self.watches {
            let missed = match kind {
                WatchKind::Data | WatchKind::Exist => {
                    checks.change_between(path, *since, zxid).map(|(at, _)| at)
                }
                WatchKind::Child => checks.child_change_between(path, *since, zxid),
            };
            if let Some(missed) = missed {
                let text = format!(
                    "{}: a reply shows zxid {zxid:#x}, but the {kind:?} watch on {path} of {since:#x} has not told of {missed:#x}",
                    self.who()
                );
                return checks.fail(text);
            }
        }
    }

    fn take_event(&mut self, zxid: i64, body: &[u8], checks: &mut Checks) {
        checks.counters.events += 1;
        let event: Option<WatcherEvent<'_>> = wire::read(body);
        let Some((path, kind)) = event.and_then(|event| {
            let kind = EventType::from_code(event.kind)?;
            Some((event.path?.into_owned(), kind))
        }) else {
            return checks.fail(format!("{}: an event does not decode", self.who()));
        };
        if zxid != -1 && zxid <= self.reply_zxid {
            checks.fail(format!(
                "{}: {kind:?} of {path} with zxid {zxid:#x} came behind a reply of {:#x}",
                self.who(),
                self.reply_zxid
            ));
        }
        let kinds: &[WatchKind] = match kind {
            EventType::NodeChildrenChanged => &[WatchKind::Child],
            EventType::NodeCreated | EventType::NodeDataChanged => {
                &[WatchKind::Data, WatchKind::Exist]
            }
            EventType::NodeDeleted => &[WatchKind::Data, WatchKind::Exist, WatchKind::Child],
        };
        let mut expected = false;
        for kind in kinds {
            let Some(since) = self.watches.remove(&(*kind, path.clone())) else {
                continue;
            };
            expected = true;
            if zxid == -1 || self.resyncing {
                continue;
            }
            let first = match kind {
                WatchKind::Data | WatchKind::Exist => checks
                    .change_between(&path, since, i64::MAX)
                    .map(|(at, _)| at),
                WatchKind::Child => checks.child_change_between(&path, since, i64::MAX),
            };
            if first != Some(zxid) {
                checks.fail(format!(
                    "{}: the {kind:?} watch on {path} of {since:#x} told of {zxid:x?}, the first change is {first:x?}",
                    self.who()
                ));
            }
        }
        if !expected {
            checks.fail(format!(
                "{}: {kind:?} of {path} (zxid {zxid:#x}) comes without a watch",
                self.who()
            ));
        }
    }

    fn watch(&mut self, kind: WatchKind, path: &str, zxid: i64) {
        let since = self.watches.entry((kind, path.into()));
        since.or_insert(zxid);
    }

    fn take_reply(
        &mut self,
        now: Micros,
        header: &ReplyHeader,
        body: &[u8],
        sent: Sent,
        checks: &mut Checks,
        intents: &mut Vec<Intent>,
    ) {
        let who = self.who();
        let (zxid, code) = (header.zxid, header.err);
        let ret = checks.instant();
        if sent.kind.is_write() {
            if code == -112 {
                // The session ended; the server closes the connection behind this.
                lose(&sent, checks);
                return;
            }
            if code != -1 && code != -118 {
                checks.acknowledged(&who, zxid, sent.floor);
                self.written_at = now;
            }
        }
        match &sent.kind {
            Kind::Create {
                path,
                value,
                is_lock,
            } => {
                let created: Option<CreateResponse<'_>> = wire::read(body);
                let name = created
                    .and_then(|created| created.path)
                    .map(|name| name.into_owned());
                if code == 0 {
                    let Some(name) = name else {
                        return checks.fail(format!("{who}: create does not decode"));
                    };
                    checks.expect_change(&who, &name, zxid, ChangeKind::Created);
                    if *is_lock {
                        self.lock = Some((name, zxid));
                        self.holds = false;
                    }
                }
                if let Some(outcome) = checks::outcome(code, 0) {
                    let action = Action::Create(*value, outcome);
                    checks.record(path, sent.call, Some(ret), action);
                }
                self.versions.insert(path.clone(), 0);
            }
            Kind::Set {
                path,
                value,
                expected,
            } => {
                let mut version = 0;
                if code == 0 {
                    let Some(answer) = wire::read::<SetDataResponse>(body) else {
                        return checks.fail(format!("{who}: setData does not decode"));
                    };
                    version = answer.stat.version;
                    if answer.stat.mzxid != zxid {
                        checks.fail(format!(
                            "{who}: setData shows mzxid {:#x}",
                            answer.stat.mzxid
                        ));
                    }
                    checks.expect_change(&who, path, zxid, ChangeKind::DataChanged);
                    self.versions.insert(path.clone(), version);
                } else {
                    self.versions.remove(path);
                }
                if let Some(outcome) = checks::outcome(code, version) {
                    let action = Action::Set(*value, *expected, outcome);
                    checks.record(path, sent.call, Some(ret), action);
                }
            }
            Kind::Delete { path, expected } => {
                if code == 0 {
                    checks.expect_change(&who, path, zxid, ChangeKind::Deleted);
                }
                if let Some(outcome) = checks::outcome(code, 0) {
                    let action = Action::Delete(*expected, outcome);
                    checks.record(path, sent.call, Some(ret), action);
                }
                self.versions.remove(path);
            }
            Kind::Multi { parts } => {
                self.take_multi(&who, parts, body, code, zxid, &sent, ret, checks)
            }
            Kind::Get { path, watch } => {
                let answer: Option<GetDataResponse<'_>> = wire::read(body);
                let seen = match (code, answer) {
                    (0, Some(answer)) => {
                        let value = answer
                            .data
                            .and_then(wire::value_of)
                            .filter(|value| *value != 0);
                        Some((value, answer.stat))
                    }
                    (-101, _) => None,
                    _ => return checks.fail(format!("{who}: getData of {path} gives {code}")),
                };
                if path != "/guard" && path != wire::CONFIG_PATH {
                    let shown = seen.map(|(value, stat)| (value, stat.mzxid));
                    checks.saw(&who, path, zxid, shown);
                }
                if let Some((call, floor)) = sent.fresh {
                    self.check_fresh(&who, path, zxid, floor, checks);
                    let state = seen.map(|(value, stat)| (value.unwrap_or(0), stat.version));
                    checks.record(path, call, Some(ret), Action::Read(state));
                }
                match seen {
                    Some((_, stat)) => {
                        self.versions.insert(path.clone(), stat.version);
                        if *watch {
                            self.watch(WatchKind::Data, path, zxid);
                        }
                    }
                    None => {
                        self.versions.remove(path);
                    }
                }
            }
            Kind::Exists { path, watch } => {
                let answer: Option<ExistsResponse> = wire::read(body);
                let seen = match (code, answer) {
                    (0, Some(answer)) => Some(answer.stat),
                    (-101, _) => None,
                    _ => return checks.fail(format!("{who}: exists of {path} gives {code}")),
                };
                checks.saw(&who, path, zxid, seen.map(|stat| (None, stat.mzxid)));
                if let Some((_, floor)) = sent.fresh {
                    self.check_fresh(&who, path, zxid, floor, checks);
                }
                if *watch {
                    let kind = match seen {
                        Some(_) => WatchKind::Data,
                        None => WatchKind::Exist,
                    };
                    self.watch(kind, path, zxid);
                }
            }
            Kind::Children { path, watch } => {
                let answer: Option<GetChildrenResponse<'_>> = wire::read(body);
                if let Some((_, floor)) = sent.fresh {
                    self.check_fresh(&who, path, zxid, floor, checks);
                }
                if code == 0
                    && let Some(answer) = answer
                {
                    checks.counters.reads += 1;
                    if *watch {
                        self.watch(WatchKind::Child, path, zxid);
                    }
                    let mut names: Vec<String> = answer
                        .children
                        .unwrap_or_default()
                        .into_iter()
                        .flatten()
                        .map(|name| name.into_owned())
                        .collect();
                    names.sort_by_key(|name| name.rsplit('-').next().map(str::to_string));
                    if path == "/l"
                        && let Some((mine, _)) = &self.lock
                    {
                        let first = names.first().map(|name| format!("/l/{name}"));
                        self.holds = first.as_ref() == Some(mine);
                        if !names.iter().any(|name| format!("/l/{name}") == *mine) {
                            checks.fail(format!("{who}: its ephemeral {mine} is gone, it lives"));
                        }
                    }
                }
            }
            Kind::Reconfig => {
                checks.counters.reconfigs += u64::from(code == 0);
            }
            Kind::SetWatches => {
                self.resyncing = false;
                for since in self.watches.values_mut() {
                    *since = zxid;
                }
                if code != 0 {
                    checks.fail(format!("{who}: setWatches gives {code}"));
                }
            }
            Kind::Sync | Kind::Ping => {
                if code != 0 {
                    checks.fail(format!("{who}: {:?} gives {code}", sent.kind));
                }
            }
            Kind::Close => {
                self.forget_session();
                intents.push(Intent::Close);
                self.parted(now, checks);
            }
        }
    }

    fn check_fresh(&self, who: &str, path: &str, zxid: i64, floor: i64, checks: &mut Checks) {
        checks.counters.synced_reads += 1;
        if zxid < floor {
            checks.fail(format!(
                "{who}: a linearizable read of {path} is of zxid {zxid:#x}, but {floor:#x} was answered before it was asked"
            ));
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one reply")]
    fn take_multi(
        &mut self,
        who: &str,
        parts: &[Part],
        body: &[u8],
        code: i32,
        zxid: i64,
        sent: &Sent,
        ret: u64,
        checks: &mut Checks,
    ) {
        let failed = code != 0 || body.first_chunk::<4>() == Some(&[0xFF; 4]);
        if failed {
            return;
        }
        for part in parts {
            let Part::Set {
                path,
                data,
                expected,
            } = part
            else {
                continue;
            };
            checks.expect_change(who, path, zxid, ChangeKind::DataChanged);
            if path == "/guard" {
                continue;
            }
            // The version is not read: the change itself was compared above.
            let value = wire::value_of(data).unwrap_or(0);
            let action = Action::Set(value, *expected, Outcome::Done(expected + 1));
            checks.record(path, sent.call, Some(ret), action);
            self.versions.insert(path.clone(), expected + 1);
        }
    }

    // ----- work ---------------------------------------------------------------------------------

    fn next_xid(&mut self) -> i32 {
        self.xid += 1;
        self.xid
    }

    fn value(&mut self) -> u32 {
        self.next_value += 1;
        (self.id as u32 + 1) << 20 | self.next_value
    }

    fn private_path(&self) -> String {
        format!("/p{}-{}", self.id, self.life)
    }

    /// Values of private znodes lie in a range of their own.
    fn private_number(&self) -> u32 {
        self.private_value
    }

    fn push(&mut self, checks: &mut Checks, xid: i32, kind: Kind, fresh: Option<(u64, i64)>) {
        let call = checks.instant();
        let floor = checks.floor();
        let fresh = match &kind {
            Kind::Get { .. } | Kind::Exists { .. } | Kind::Children { .. }
                if self.habits.linearizable =>
            {
                fresh.or(Some((call, floor)))
            }
            _ => fresh,
        };
        self.outstanding.push_back(Sent {
            xid,
            kind,
            at: self.now,
            call,
            floor,
            fresh,
        });
    }

    fn create(
        &mut self,
        checks: &mut Checks,
        out: &mut BytesMut,
        path: &str,
        flags: i32,
        is_lock: bool,
    ) {
        let xid = self.next_xid();
        let (value, data) = match path.starts_with("/r") || path.starts_with("/e") {
            true => {
                let value = self.value();
                (
                    value,
                    wire::data_of(value, self.rng.below(self.habits.padding + 1) as usize),
                )
            }
            false => (0, Vec::new()),
        };
        wire::create(out, xid, path, &data, flags);
        let kind = Kind::Create {
            path: path.into(),
            value,
            is_lock,
        };
        self.push(checks, xid, kind, None);
    }

    fn set(&mut self, checks: &mut Checks, out: &mut BytesMut, path: String, expected: i32) {
        let xid = self.next_xid();
        let value = self.value();
        let padding = self.rng.below(self.habits.padding + 1) as usize;
        wire::set(out, xid, &path, &wire::data_of(value, padding), expected);
        let kind = Kind::Set {
            path,
            value,
            expected,
        };
        self.push(checks, xid, kind, None);
    }

    fn set_private(&mut self, checks: &mut Checks, out: &mut BytesMut) {
        let xid = self.next_xid();
        self.private_value += 1;
        let value = self.private_number();
        let path = self.private_path();
        wire::set(out, xid, &path, &wire::data_of(value, 0), -1);
        let kind = Kind::Set {
            path,
            value,
            expected: -1,
        };
        self.push(checks, xid, kind, None);
    }

    fn delete(&mut self, checks: &mut Checks, out: &mut BytesMut, path: String, expected: i32) {
        let xid = self.next_xid();
        wire::delete(out, xid, &path, expected);
        self.push(checks, xid, Kind::Delete { path, expected }, None);
    }

    fn get(&mut self, checks: &mut Checks, out: &mut BytesMut, path: String, watch: bool) {
        let xid = self.next_xid();
        wire::get(out, xid, &path, watch);
        self.push(checks, xid, Kind::Get { path, watch }, None);
    }

    fn exists(&mut self, checks: &mut Checks, out: &mut BytesMut, path: String, watch: bool) {
        let xid = self.next_xid();
        wire::exists(out, xid, &path, watch);
        self.push(checks, xid, Kind::Exists { path, watch }, None);
    }

    fn synced_get(&mut self, checks: &mut Checks, out: &mut BytesMut, path: String) {
        let xid = self.next_xid();
        wire::sync(out, xid, &path);
        self.push(checks, xid, Kind::Sync, None);
        let sync = self.outstanding.back().map(|sent| (sent.call, sent.floor));
        let xid = self.next_xid();
        wire::get(out, xid, &path, false);
        self.push(checks, xid, Kind::Get { path, watch: false }, sync);
    }

    fn swap_registers(&mut self, checks: &mut Checks, out: &mut BytesMut) {
        let mut parts = Vec::new();
        let first = self.rng.below(REGISTERS);
        for offset in 0..2 {
            let path = format!("/r{}", (first + offset) % REGISTERS);
            let Some(version) = self.versions.get(&path).copied() else {
                return;
            };
            let value = self.value();
            parts.push(Part::Set {
                path,
                data: wire::data_of(value, 0),
                expected: version,
            });
        }
        self.multi(checks, out, parts);
    }

    fn multi(&mut self, checks: &mut Checks, out: &mut BytesMut, parts: Vec<Part>) {
        let xid = self.next_xid();
        wire::multi(out, xid, &parts);
        self.push(checks, xid, Kind::Multi { parts }, None);
    }

    /// Takes the lock, works under it with its token, gives it back.
    fn lock_step(&mut self, checks: &mut Checks, out: &mut BytesMut) {
        match self.lock.clone() {
            None => {
                let waits = |sent: &Sent| matches!(sent.kind, Kind::Create { is_lock: true, .. });
                if !self.outstanding.iter().any(waits) {
                    let path = format!("/l/n{}-", self.id);
                    self.create(checks, out, &path, 3, true);
                }
            }
            Some((path, token)) if self.holds => {
                if self.rng.percent(60) {
                    let parts = vec![
                        Part::Check { path, version: -1 },
                        Part::Set {
                            path: "/guard".into(),
                            data: token.to_be_bytes().to_vec(),
                            expected: -1,
                        },
                    ];
                    self.multi(checks, out, parts);
                } else {
                    self.lock = None;
                    self.holds = false;
                    self.delete(checks, out, path, -1);
                }
            }
            Some(_) => {
                let xid = self.next_xid();
                let watch = self.rng.percent(50);
                wire::children(out, xid, "/l", watch);
                let kind = Kind::Children {
                    path: "/l".into(),
                    watch,
                };
                self.push(checks, xid, kind, None);
            }
        }
    }

    fn work(&mut self, now: Micros, checks: &mut Checks, out: &mut BytesMut) {
        let timeout = self.timeout_ms.unsigned_abs() as u64 * MS;
        if self.closing {
            return;
        }
        if now > self.sent_at + timeout / 3 {
            wire::ping(out);
            self.push(checks, XID_PING, Kind::Ping, None);
        }
        if self.stopped || self.outstanding.len() >= self.habits.window {
            return;
        }
        if self.habits.is_admin {
            return self.administrate(checks, out);
        }
        if self.rng.per_myriad(self.habits.closes) {
            let xid = self.next_xid();
            wire::close(out, xid);
            self.push(checks, xid, Kind::Close, None);
            self.closing = true;
            return;
        }
        let count = 1 + self.rng.below(3 + self.habits.window as u64 / 4);
        for _ in 0..count {
            self.one(checks, out);
        }
    }

    fn administrate(&mut self, checks: &mut Checks, out: &mut BytesMut) {
        match self.reconfigs.pop_front() {
            Some(wanted) => {
                let xid = self.next_xid();
                wire::reconfig(out, xid, &wanted);
                self.push(checks, xid, Kind::Reconfig, None);
            }
            None if self.rng.percent(30) => self.set_private(checks, out),
            None => {}
        }
    }

    fn one(&mut self, checks: &mut Checks, out: &mut BytesMut) {
        let register = format!("/r{}", self.rng.below(REGISTERS));
        if self.habits.is_reader {
            let watch = self.rng.percent(50);
            return self.get(checks, out, register, watch);
        }
        // Many register writes of unknown fate at a time would make the search for an order long.
        if self.habits.window > 10 && self.rng.percent(75) {
            return self.set_private(checks, out);
        }
        match self.rng.below(100) {
            0..14 => self.set(checks, out, register, -1),
            14..22 => {
                let expected = self.versions.get(&register).copied().unwrap_or(0);
                self.set(checks, out, register, expected);
            }
            22..28 => self.create(checks, out, &register, 0, false),
            28..32 => self.delete(checks, out, register, -1),
            32..42 => self.synced_get(checks, out, register),
            42..54 => self.get(checks, out, register, false),
            54..60 => self.get(checks, out, register, true),
            60..66 => self.exists(checks, out, register, true),
            66..72 => self.swap_registers(checks, out),
            72..80 => self.set_private(checks, out),
            80..86 => {
                let path = format!("/e{}", self.id);
                self.ephemeral = !self.ephemeral;
                if self.ephemeral {
                    self.create(checks, out, &path, 1, false);
                } else {
                    self.delete(checks, out, path, -1);
                }
            }
            86..90 => {
                let other = format!("/e{}", self.rng.below(6));
                self.exists(checks, out, other, true);
            }
            _ => self.lock_step(checks, out),
        }
    }
}

/// A write whose fate nobody tells.
fn lose(sent: &Sent, checks: &mut Checks) {
    let call = sent.call;
    match &sent.kind {
        Kind::Create { path, value, .. } => {
            checks.record(path, call, None, Action::Create(*value, Outcome::Unknown));
        }
        Kind::Set {
            path,
            value,
            expected,
        } => {
            let action = Action::Set(*value, *expected, Outcome::Unknown);
            checks.record(path, call, None, action);
        }
        Kind::Delete { path, expected } => {
            checks.record(
                path,
                call,
                None,
                Action::Delete(*expected, Outcome::Unknown),
            );
        }
        Kind::Multi { parts } => {
            for part in parts {
                if let Part::Set {
                    path,
                    data,
                    expected,
                } = part
                    && path != "/guard"
                {
                    let value = wire::value_of(data).unwrap_or(0);
                    let action = Action::Set(value, *expected, Outcome::Unknown);
                    checks.record(path, call, None, action);
                }
            }
        }
        Kind::Get { .. }
        | Kind::Exists { .. }
        | Kind::Children { .. }
        | Kind::Sync
        | Kind::SetWatches
        | Kind::Ping
        | Kind::Close
        | Kind::Reconfig => {}
    }
}
