//! One client: it speaks the real protocol, keeps its session over connections and members, does random
//! work, and holds what it is told against [`Checks`].

mod answers;
mod recursive;
mod requests;

use std::collections::{BTreeMap, VecDeque};

use bytes::BytesMut;
use recursive::RecursiveWatch;

use crate::checks::Checks;
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
    AddWatch,
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
            | Kind::AddWatch
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
    /// In 100 moves: comes back when its session is about to end.
    pub sleeps: u64,
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
    /// Watches everything below this path.
    pub watches_below: Option<&'static str>,
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
    recursive: Option<RecursiveWatch>,
    /// The watches are being set again on a new connection.
    resyncing: bool,
    versions: BTreeMap<String, i32>,
    next_value: u32,
    private_value: u32,
    private_ready: bool,
    lock: Option<(String, i64)>,
    holds: bool,
    ephemeral: bool,
    /// Restores that it knows of.
    restores: u64,
    closing: bool,
    /// Looks at which nothing more is begun.
    pub stopped: bool,
    /// It sleeps no more.
    pub awake: bool,
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
            recursive: None,
            resyncing: false,
            versions: BTreeMap::new(),
            next_value: 0,
            private_value: 0,
            private_ready: false,
            lock: None,
            holds: false,
            ephemeral: false,
            restores: 0,
            closing: false,
            stopped: false,
            awake: false,
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
                    if self.rng.percent(self.habits.sleeps) && !self.awake {
                        // Comes back when its session is about to end.
                        let sleep = timeout + self.rng.below(500 * MS);
                        self.phase = Phase::Apart(now + sleep.saturating_sub(150 * MS));
                    }
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
        if let Some(watch) = &mut self.recursive {
            watch.parted();
        }
        self.resyncing = self.has_watches();
    }

    fn has_watches(&self) -> bool {
        !self.watches.is_empty() || self.recursive.is_some()
    }

    fn forget_watches(&mut self) {
        self.watches.clear();
        self.recursive = None;
        self.resyncing = false;
    }

    /// What it had may be gone: a snapshot was restored meanwhile.
    fn forget_work(&mut self) {
        self.versions.clear();
        self.lock = None;
        self.holds = false;
        self.ephemeral = false;
    }

    fn forget_session(&mut self) {
        self.session = 0;
        self.password = [0; 16];
        self.last_zxid = 0;
        self.forget_watches();
        self.lock = None;
        self.holds = false;
        self.ephemeral = false;
        self.closing = false;
        self.private_ready = false;
        self.private_value = 0;
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
        | Kind::AddWatch
        | Kind::SetWatches
        | Kind::Ping
        | Kind::Close
        | Kind::Reconfig => {}
    }
}
