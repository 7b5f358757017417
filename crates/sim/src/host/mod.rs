//! The host of one member: what the server's threads do around a member, on virtual time.

mod inputs;
mod life;
mod serve;
mod store;
mod work;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use bytes::BytesMut;
use quenda_consensus::{LogBatch, Membership, Role, SnapshotRequest};
use quenda_frontend::{
    Connection, Gates, Growth, LocalSessionTable, LocalSessions, NoMeter, ServiceMode, SessionIds,
    Settings, SyncMode, WatchTable, World,
};
use quenda_node::{Applier, Effects, Fetch, Install, Member, PeerState, Service};
use quenda_tree::Tree;

use crate::checks::Checks;
use crate::clock::Clock;
use crate::disk::{Disk, StateImage};
use crate::event::Event;
use crate::network::{Item, Network};
use crate::plan::{Mutation, Plan};
use crate::rng::Rng;
use crate::schedule::{MS, Micros, Schedule};
use crate::trace::Trace;

/// What everything in a simulation shares.
pub struct Cx {
    /// What happens when.
    pub schedule: Schedule<Event>,
    /// What every observation is held against.
    pub checks: Checks,
    /// What happened.
    pub trace: Trace,
    /// Chance.
    pub rng: Rng,
    /// The links.
    pub net: Network,
    /// How the simulation is set up.
    pub plan: Rc<Plan>,
}

impl Cx {
    /// Adds a line to the trace.
    pub fn say(&mut self, text: std::fmt::Arguments<'_>) {
        if self.trace.is_on() {
            let now = self.schedule.now();
            self.trace.line(now, text);
        }
    }

    /// Notes a broken promise.
    pub fn fail(&mut self, text: String) {
        self.say(format_args!("VIOLATION {text}"));
        self.checks.fail(text);
    }

    /// Puts something on a client's connection.
    pub fn push_link(&mut self, link: u64, to_member: bool, item: Item) {
        let (low, high) = (MS / 20, MS / 2);
        let at = self.schedule.now() + self.rng.between(low, high);
        let Some(found) = self.net.links.get_mut(&link) else {
            return;
        };
        let pipe = if to_member {
            &mut found.to_member
        } else {
            &mut found.to_client
        };
        let at = pipe.queue.back().map_or(at, |(last, _)| at.max(*last));
        pipe.queue.push_back((at, item));
        if !pipe.pumping {
            pipe.pumping = true;
            self.schedule.at(at, Event::Pipe(link, to_member));
        }
    }
}

/// One machine.
pub struct Host {
    /// Id of the member.
    pub id: u64,
    /// Its clocks.
    pub clock: Clock,
    /// Its disk.
    pub disk: Disk,
    /// Number of the process's start.
    pub boot: u64,
    /// The process.
    pub state: State,
    /// The process is stopped until then.
    pub paused_until: Micros,
    /// The disk stands still until then.
    pub hanging_until: Micros,
    /// How long a sync takes.
    pub sync_delay: (Micros, Micros),
    /// Up to where ids of local sessions may have been given out, as a file says.
    reserved: u64,
}

/// What runs on a machine.
pub enum State {
    /// Nothing, and nobody answers if the machine has no power.
    Down {
        /// Whether the system refuses connections.
        powered: bool,
    },
    /// The store is empty: the process asks the others what there is.
    Waiting,
    /// A member.
    Running(Box<Process>),
}

/// What comes from connections to the core.
enum Inbound {
    Commands(u64, BytesMut),
    Barrier(u64, u64),
}

/// A client's connection, as the member has it.
pub struct Served {
    /// The protocol.
    pub connection: Connection,
    /// Bytes that were not taken yet.
    pub input: BytesMut,
    touched_ms: u64,
}

struct Fetching {
    fetch: Fetch,
    pieces: u64,
    patience: u64,
}

/// A running member.
pub struct Process {
    /// The member.
    pub member: Member,
    /// Its tree.
    pub tree: Tree,
    applier: Applier,
    pub(crate) watches: RefCell<WatchTable>,
    session_ids: SessionIds,
    /// Sessions that only this member knows, if there are such.
    pub(crate) local: Option<RefCell<LocalSessionTable>>,
    settings: Arc<Settings>,
    pub(crate) connections: BTreeMap<u64, Served>,
    pub(crate) by_session: BTreeMap<i64, u64>,
    inbox: VecDeque<Inbound>,
    core_planned: bool,
    touched: Vec<i64>,
    log_queue: Vec<(u64, LogBatch)>,
    /// Number of the newest ready in the write under way, and of that write.
    log_writing: Option<(u64, u64)>,
    installing: Option<Install>,
    images: BTreeMap<u64, Rc<StateImage>>,
    received: BTreeMap<u64, Rc<StateImage>>,
    fetching: Option<Fetching>,
    snapshot_wanted: Option<SnapshotRequest>,
    next_checkpoint: Micros,
    checkpointed: u64,
    /// Entry of the checkpoint under way, and number of its write.
    checkpoint_writing: Option<(u64, u64)>,
    service: Service,
    /// Whether its disk has room.
    pub growth: Growth,
    /// This member is the whole ensemble: a sync needs no barrier.
    alone: bool,
    effects: Effects,
    /// Connections that have to be looked at.
    pub(crate) woken: BTreeSet<u64>,
    next_dial: BTreeMap<u64, Micros>,
    /// It takes no connections any more.
    pub stopping: bool,
    led_term: u64,
}

impl Host {
    /// A machine that was never used.
    pub fn new(id: u64, clock: Clock) -> Host {
        Host {
            id,
            clock,
            disk: Disk::default(),
            boot: 0,
            state: State::Down { powered: true },
            paused_until: 0,
            hanging_until: 0,
            sync_delay: (MS / 2, 4 * MS),
            reserved: 0,
        }
    }

    /// The running member.
    pub fn process(&self) -> Option<&Process> {
        match &self.state {
            State::Running(process) => Some(process),
            State::Down { .. } | State::Waiting => None,
        }
    }

    /// The running member.
    pub fn process_mut(&mut self) -> Option<&mut Process> {
        match &mut self.state {
            State::Running(process) => Some(process),
            State::Down { .. } | State::Waiting => None,
        }
    }

    /// Whether it has a local session with this id.
    pub fn knows_alone(&self, session: i64) -> bool {
        let sessions = self.process().and_then(|process| process.local.as_ref());
        sessions.is_some_and(|sessions| {
            sessions
                .borrow()
                .iter()
                .any(|local| local.session == session)
        })
    }

    /// Until when what stands still goes on to do so.
    pub fn still_until(&self) -> Micros {
        self.paused_until.max(self.hanging_until)
    }

    /// Whether a process runs, paused or not.
    pub fn is_up(&self) -> bool {
        !matches!(self.state, State::Down { .. })
    }

    /// What the member says about itself in handshakes.
    pub fn peer_state(&self) -> PeerState {
        match &self.state {
            State::Down { .. } | State::Waiting => PeerState::Fresh,
            State::Running(process) => match process.member.peer_state() {
                PeerState::Member if process.tree.cluster().is_none() => PeerState::Founding,
                state => state,
            },
        }
    }

    /// Whether this member leads as far as it knows, and of which term.
    pub fn leads(&self) -> Option<u64> {
        let status = self.process()?.member.status();
        (status.role == Role::Leader).then_some(status.term)
    }
}

impl Process {
    pub(crate) fn service_mode(&self) -> ServiceMode {
        match self.service {
            Service::Serving if !self.stopping => ServiceMode::Serving,
            Service::Serving | Service::NoLeader | Service::Removed | Service::Alarmed => {
                ServiceMode::NotServing
            }
        }
    }

    fn local_sessions(&self) -> Option<&dyn LocalSessions> {
        let sessions = self.local.as_ref();
        sessions.map(|sessions| sessions as &dyn LocalSessions)
    }

    fn world<'a>(&'a self, now_ms: u64, time_ms: i64, cx: &Cx) -> World<'a> {
        World {
            tree: &self.tree,
            watches: &self.watches,
            session_ids: &self.session_ids,
            local_sessions: self.local_sessions(),
            sasl: None,
            service: self.service_mode(),
            growth: self.growth,
            gates: Gates::default(),
            sync: sync_mode(&cx.plan, self.alone),
            meter: &NoMeter,
            now_ms,
            time_ms,
        }
    }

    fn remove(&mut self, link: u64) {
        if let Some(mut served) = self.connections.remove(&link) {
            if let Some(session) = served.connection.session()
                && self.by_session.get(&session) == Some(&link)
            {
                self.by_session.remove(&session);
            }
            if let Some(sessions) = &self.local {
                served.connection.leave_local(sessions);
            }
            served.connection.disconnected(&self.watches);
        }
        self.woken.remove(&link);
    }
}

fn sync_mode(plan: &Plan, alone: bool) -> SyncMode {
    match alone || plan.mutation == Some(Mutation::ReadWithoutBarrier) {
        true => SyncMode::Marker,
        false => SyncMode::Barrier,
    }
}

/// Whether a member is the whole ensemble.
fn is_alone(id: u64, membership: &Membership) -> bool {
    membership.voters == [id]
        && membership.outgoing_voters.is_empty()
        && membership.learners.is_empty()
}
