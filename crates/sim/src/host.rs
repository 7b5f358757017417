//! The host of one member: what the server's threads do around a member, on virtual time.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use quenda_consensus::{
    Config, Consensus, LogBatch, Membership, Recovered, Role, SnapshotImage, SnapshotRequest,
};
use quenda_frontend::{
    CloseReason, Connection, ConnectionId, Growth, Proposals, Received, ServiceMode, SessionIds,
    Settings, SyncMode, WatchTable, World,
};
use quenda_node::limits::TICK_MS;
use quenda_node::{
    Applier, Effects, Fetch, Founding, Install, Member, PeerState, Service, Setup, Work,
};
use quenda_tree::Tree;

use crate::checks::Checks;
use crate::clock::Clock;
use crate::delivery::Delivery;
use crate::disk::{self, ChangedRows, Disk, StateImage, Write};
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
    /// How long a sync takes.
    pub sync_delay: (Micros, Micros),
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
            sync_delay: (MS / 2, 4 * MS),
        }
    }

    /// The running member.
    pub fn process(&self) -> Option<&Process> {
        match &self.state {
            State::Running(process) => Some(process),
            State::Down { .. } | State::Waiting => None,
        }
    }

    fn process_mut(&mut self) -> Option<&mut Process> {
        match &mut self.state {
            State::Running(process) => Some(process),
            State::Down { .. } | State::Waiting => None,
        }
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

    // ----- start and end ------------------------------------------------------------------------

    /// The process starts.
    pub fn start(&mut self, cx: &mut Cx) {
        if self.is_up() {
            return;
        }
        self.boot += 1;
        cx.checks.counters.starts += 1;
        self.state = State::Waiting;
        cx.say(format_args!("member {} starts ({})", self.id, self.boot));
        match self.disk.recover() {
            Err(text) => cx.fail(format!("member {} cannot start: {text}", self.id)),
            Ok(None) if cx.plan.members == 1 => self.found(Recovered::bootstrap([1], []), cx),
            Ok(None) => {}
            Ok(Some((recovered, tree))) => self.run(recovered, tree, cx),
        }
        self.plan_tick(cx);
    }

    fn plan_tick(&mut self, cx: &mut Cx) {
        let drift = self.clock.drift_ppm;
        let tick = (TICK_MS * MS) as i64;
        let delay = (tick - tick * drift / 1_000_000) as u64 + cx.rng.below(3 * MS);
        cx.schedule.after(delay, Event::Tick(self.id, self.boot));
    }

    /// The store gets its first content.
    pub fn found(&mut self, start: Recovered, cx: &mut Cx) {
        self.disk.found(start);
        match self.disk.recover() {
            Ok(Some((recovered, tree))) => self.run(recovered, tree, cx),
            Ok(None) => {}
            Err(text) => cx.fail(format!("member {}: {text}", self.id)),
        }
    }

    fn run(&mut self, recovered: Recovered, tree: Tree, cx: &mut Cx) {
        let now = cx.schedule.now();
        let single = is_alone(self.id, &recovered.membership);
        let mut config = Config::new(self.id);
        config.seed = cx.rng.bits();
        if cx.plan.small_batches {
            config.max_message_bytes = 4 << 10;
            config.max_inflight_messages = 8;
            config.max_uncommitted_bytes = 16 << 10;
            config.max_committed_bytes = 8 << 10;
        }
        let consensus = match Consensus::new(config, recovered) {
            Ok(consensus) => consensus,
            Err(error) => return cx.fail(format!("member {}: {error}", self.id)),
        };
        let founding = Founding {
            cluster: cx.plan.cluster,
            secret: cx.plan.secret,
            config: cx.plan.config_text(),
        };
        let now_ms = self.clock.monotonic_ms(now);
        let wall_ms = self.clock.wall_ms(now);
        let setup = Setup {
            consensus,
            founding,
            incarnation: wall_ms as u64,
            now_ms,
        };
        let mut member = Member::new(setup, &tree);
        if single {
            member.campaign();
        }
        let session_ids = SessionIds::new(self.id, wall_ms).expect("a small id");
        let service = member.service();
        self.state = State::Running(Box::new(Process {
            member,
            checkpointed: tree.applied_index(),
            tree,
            applier: Applier::new(self.id),
            watches: RefCell::new(WatchTable::new(cx.rng.bits(), 10_000)),
            session_ids,
            settings: Arc::new(cx.plan.settings()),
            connections: BTreeMap::new(),
            by_session: BTreeMap::new(),
            inbox: VecDeque::new(),
            core_planned: false,
            touched: Vec::new(),
            log_queue: Vec::new(),
            log_writing: None,
            installing: None,
            images: BTreeMap::new(),
            received: BTreeMap::new(),
            fetching: None,
            snapshot_wanted: None,
            next_checkpoint: now + cx.plan.checkpoint_interval,
            checkpoint_writing: None,
            service,
            alone: single,
            effects: Effects::default(),
            woken: BTreeSet::new(),
            next_dial: BTreeMap::new(),
            stopping: false,
            led_term: 0,
        }));
        cx.say(format_args!("member {} runs", self.id));
        self.drive(cx);
    }

    /// The process ends at once. With a power cut nobody is told, and of what was not synced some is
    /// lost.
    pub fn crash(&mut self, power_cut: bool, cx: &mut Cx) {
        if !self.is_up() {
            return;
        }
        cx.say(format_args!(
            "member {} {}",
            self.id,
            if power_cut {
                "loses power"
            } else {
                "is killed"
            }
        ));
        let unsynced = self.disk.unsynced();
        let kept = match power_cut {
            true => cx.rng.below(unsynced as u64 + 1) as usize,
            false => unsynced,
        };
        if let Err(text) = self.disk.crash(kept) {
            cx.fail(format!("member {}: {text}", self.id));
        }
        self.state = State::Down {
            powered: !power_cut,
        };
        self.paused_until = 0;
        self.leave(!power_cut, cx);
    }

    /// Its sockets are closed; the others notice, if somebody tells them.
    fn leave(&mut self, tells: bool, cx: &mut Cx) {
        let links: Vec<u64> = cx
            .net
            .links
            .iter()
            .filter(|(_, link)| link.member == self.id)
            .map(|(number, _)| *number)
            .collect();
        for link in links {
            if tells {
                cx.push_link(link, false, Item::Close);
            }
        }
        let peers: Vec<u64> = cx.plan.hosts().filter(|peer| *peer != self.id).collect();
        for peer in peers {
            if tells && cx.net.is_connected(peer, self.id) {
                let delay = cx.rng.between(MS / 10, 3 * MS);
                cx.schedule
                    .after(delay, Event::PeerLost(peer, cx.plan.any_boot(), self.id));
            }
        }
        cx.net.disconnect(self.id);
    }

    /// A graceful stop begins: leadership goes to another, then the sockets are closed.
    pub fn stop(&mut self, cx: &mut Cx) {
        let (id, boot) = (self.id, self.boot);
        let Some(process) = self.process_mut() else {
            return;
        };
        let moves = process.member.transfer_leadership();
        process.stopping = true;
        cx.say(format_args!(
            "member {id} stops (leadership moves: {moves})"
        ));
        cx.schedule
            .after(cx.rng.between(100 * MS, 400 * MS), Event::Stopped(id, boot));
        self.drive(cx);
    }

    /// A graceful stop ends: everything is on disk.
    pub fn stopped(&mut self, cx: &mut Cx) {
        cx.say(format_args!("member {} has stopped", self.id));
        let unsynced = self.disk.unsynced();
        if let Err(text) = self.disk.crash(unsynced) {
            cx.fail(format!("member {}: {text}", self.id));
        }
        self.state = State::Down { powered: true };
        self.leave(true, cx);
    }

    // ----- inputs -------------------------------------------------------------------------------

    /// A tick of the member's clock. `peers` are the other machines with a process: their states.
    pub fn tick(&mut self, peers: &BTreeMap<u64, (u64, PeerState)>, cx: &mut Cx) {
        self.plan_tick(cx);
        let now = cx.schedule.now();
        if matches!(self.state, State::Waiting) {
            return self.ask_around(peers, cx);
        }
        self.dial(peers, cx);
        let now_ms = self.clock.monotonic_ms(now);
        let Some(process) = self.process_mut() else {
            return;
        };
        let touched = std::mem::take(&mut process.touched);
        process.member.touched(&touched, now_ms);
        let (connections, by_session) = (&process.connections, &process.by_session);
        process.member.tick(now_ms, |session| {
            let connection = by_session.get(&session);
            let served = connection.and_then(|connection| connections.get(connection));
            served.is_some_and(|served| served.connection.awaits_log())
        });
        self.checkpoint_if_due(cx);
        self.offer_image(cx);
        self.drive(cx);
    }

    /// Which start this empty member makes depends on what the others are.
    fn ask_around(&mut self, peers: &BTreeMap<u64, (u64, PeerState)>, cx: &mut Cx) {
        let reachable = peers
            .iter()
            .filter(|(peer, _)| cx.net.is_open_both(self.id, **peer));
        let states: BTreeMap<u64, PeerState> = reachable
            .map(|(peer, (_, state))| (*peer, *state))
            .collect();
        if states.values().any(|state| *state == PeerState::Member) {
            cx.say(format_args!("member {} joins", self.id));
            return self.found(Recovered::joining(), cx);
        }
        let voters = cx.plan.voters();
        let here = voters.iter().filter(|voter| {
            let state = states.get(voter);
            **voter == self.id || matches!(state, Some(PeerState::Fresh | PeerState::Founding))
        });
        if here.count() * 2 > voters.len() {
            cx.say(format_args!("member {} founds the cluster", self.id));
            self.found(Recovered::bootstrap(voters, cx.plan.learners()), cx);
        }
    }

    fn dial(&mut self, peers: &BTreeMap<u64, (u64, PeerState)>, cx: &mut Cx) {
        let now = cx.schedule.now();
        let (id, boot) = (self.id, self.boot);
        let Some(process) = self.process_mut() else {
            return;
        };
        for (peer, (peer_boot, _)) in peers {
            let due = process.next_dial.get(peer).copied().unwrap_or(0);
            if now < due || cx.net.is_connected(id, *peer) {
                continue;
            }
            let wait = cx.rng.between(50 * MS, 400 * MS);
            process.next_dial.insert(*peer, now + wait);
            if cx.net.is_open_both(id, *peer) {
                let delay = cx.rng.between(MS / 5, 4 * MS);
                let event = Event::Dialed(id, boot, *peer, *peer_boot);
                cx.schedule.after(delay, event);
            }
        }
    }

    /// A connection to or from a peer stands.
    pub fn peer_up(&mut self, peer: u64, state: PeerState, cx: &mut Cx) {
        if let Some(process) = self.process_mut() {
            process.member.peer_up(peer, state);
            self.drive(cx);
        }
    }

    /// A peer's process has closed its connections.
    pub fn peer_lost(&mut self, peer: u64, cx: &mut Cx) {
        if let Some(process) = self.process_mut() {
            process.member.peer_lost(peer);
            self.drive(cx);
        }
    }

    /// A frame of another member has arrived.
    pub fn frame(&mut self, from: u64, frame: &[u8], cx: &mut Cx) {
        let now_ms = self.clock.monotonic_ms(cx.schedule.now());
        let id = self.id;
        let Some(process) = self.process_mut() else {
            return;
        };
        if let Err(error) = process.member.receive(from, frame, now_ms) {
            cx.say(format_args!(
                "member {id} refuses a frame of {from}: {error}"
            ));
        }
        self.drive(cx);
    }

    /// The core looks at what connections gave it.
    pub fn core(&mut self, cx: &mut Cx) {
        let Some(process) = self.process_mut() else {
            return;
        };
        process.core_planned = false;
        while let Some(inbound) = process.inbox.pop_front() {
            match inbound {
                Inbound::Commands(era, commands) => process.member.submit(era, commands),
                Inbound::Barrier(era, connection) => process.member.ask_barrier(era, connection),
            }
        }
        self.drive(cx);
    }

    /// A client's connection is opened; false if nobody takes it.
    pub fn accept(&mut self, link: u64, client: usize, cx: &mut Cx) -> bool {
        let now_ms = self.clock.monotonic_ms(cx.schedule.now());
        let id = self.id;
        let Some(process) = self.process_mut() else {
            return false;
        };
        if process.stopping {
            return false;
        }
        let address = IpAddr::V4(Ipv4Addr::new(10, 0, 0, client as u8));
        let settings = Arc::clone(&process.settings);
        let connection = Connection::new(ConnectionId(link), id, address, now_ms, settings);
        process.connections.insert(
            link,
            Served {
                connection,
                input: BytesMut::new(),
                touched_ms: 0,
            },
        );
        true
    }

    /// A client has sent bytes.
    pub fn client_bytes(&mut self, link: u64, bytes: &[u8], cx: &mut Cx) {
        let now_ms = self.clock.monotonic_ms(cx.schedule.now());
        let Some(process) = self.process_mut() else {
            return;
        };
        let Some(served) = process.connections.get_mut(&link) else {
            return;
        };
        if !served.input.is_empty() {
            // Bytes behind what cannot be taken yet prove life all the same.
            served.connection.heard(now_ms);
        }
        served.input.extend_from_slice(bytes);
        self.serve(link, cx);
        self.plan_core(cx);
    }

    /// A client has closed its connection.
    pub fn client_gone(&mut self, link: u64) {
        if let Some(process) = self.process_mut() {
            process.remove(link);
        }
    }

    fn plan_core(&mut self, cx: &mut Cx) {
        let (id, boot) = (self.id, self.boot);
        if let Some(process) = self.process_mut()
            && !process.core_planned
            && !process.inbox.is_empty()
        {
            process.core_planned = true;
            let delay = cx.rng.below(MS / 2);
            cx.schedule.after(delay, Event::Core(id, boot));
        }
    }

    // ----- the task of a connection ------------------------------------------------------------

    /// Lets a connection take what has come, and sends what comes of it.
    fn serve(&mut self, link: u64, cx: &mut Cx) {
        let now = cx.schedule.now();
        let (now_ms, time_ms) = (self.clock.monotonic_ms(now), self.clock.wall_ms(now));
        let id = self.id;
        let Some(process) = self.process_mut() else {
            return;
        };
        loop {
            let Some(mut served) = process.connections.remove(&link) else {
                return;
            };
            let mut proposals = Proposals::default();
            let world = process.world(now_ms, time_ms, cx);
            let received = served
                .connection
                .receive(&mut served.input, &world, &mut proposals);
            let output = served.connection.take_output();
            if !output.is_empty() {
                cx.push_link(link, false, Item::Bytes(output));
            }
            let touched_ms = served.connection.last_touch_ms();
            if let Some(session) = served.connection.session()
                && touched_ms != served.touched_ms
            {
                served.touched_ms = touched_ms;
                process.touched.push(session);
                cx.checks.sessions.heard(session, id, now);
            }
            let again = served.connection.must_receive();
            process.connections.insert(link, served);
            let era = process.member.era();
            if !proposals.commands.is_empty() {
                let commands = std::mem::take(&mut proposals.commands);
                process.inbox.push_back(Inbound::Commands(era, commands));
            }
            for _ in 0..proposals.barriers {
                process.inbox.push_back(Inbound::Barrier(era, link));
            }
            if let Received::Close(reason) = received {
                cx.say(format_args!(
                    "member {id} closes connection {link}: {reason}"
                ));
                cx.push_link(link, false, Item::Close);
                process.remove(link);
                return;
            }
            if !again {
                return;
            }
        }
    }

    fn serve_woken(&mut self, cx: &mut Cx) {
        while let Some(link) = self
            .process_mut()
            .and_then(|process| process.woken.pop_first())
        {
            self.serve(link, cx);
        }
        self.plan_core(cx);
    }

    fn close_where(
        &mut self,
        reason: CloseReason,
        which: impl Fn(&Connection) -> bool,
        cx: &mut Cx,
    ) {
        if let Some(process) = self.process_mut() {
            for (link, served) in &mut process.connections {
                if which(&served.connection) {
                    served.connection.close(reason);
                    process.woken.insert(*link);
                }
            }
        }
        self.serve_woken(cx);
    }

    // ----- work ---------------------------------------------------------------------------------

    /// Does what the member asks for, until there is nothing more.
    pub fn drive(&mut self, cx: &mut Cx) {
        let now = cx.schedule.now();
        let (now_ms, time_ms) = (self.clock.monotonic_ms(now), self.clock.wall_ms(now));
        loop {
            let Some(process) = self.process_mut() else {
                return;
            };
            if process.installing.is_some() {
                break;
            }
            let Some(work) = process.member.drive(time_ms, now_ms) else {
                break;
            };
            self.note_leadership(cx);
            self.work(work, cx);
            if cx.checks.violation().is_some() {
                return;
            }
        }
        self.note_leadership(cx);
        self.follow_service(cx);
        self.serve_woken(cx);
        self.write_log(cx);
        self.begin_install(cx);
    }

    fn note_leadership(&mut self, cx: &mut Cx) {
        let (id, now) = (self.id, cx.schedule.now());
        let Some(term) = self.leads() else {
            return;
        };
        let Some(process) = self.process_mut() else {
            return;
        };
        if process.led_term == term {
            return;
        }
        process.led_term = term;
        cx.say(format_args!("member {id} leads term {term}"));
        match cx.checks.sessions.leads(term, id, now) {
            Ok(is_new) => cx.checks.counters.leaders += u64::from(is_new),
            Err(text) => cx.fail(text),
        }
    }

    fn follow_service(&mut self, cx: &mut Cx) {
        let id = self.id;
        let Some(process) = self.process_mut() else {
            return;
        };
        let service = process.member.service();
        let before = std::mem::replace(&mut process.service, service);
        if before == service {
            return;
        }
        cx.say(format_args!("member {id}: {before:?} -> {service:?}"));
        if service == Service::Alarmed {
            cx.fail(format!("member {id} is alarmed"));
        }
        if before == Service::Serving {
            self.close_where(CloseReason::NotServing, |_| true, cx);
        }
    }

    fn work(&mut self, work: Work, cx: &mut Cx) {
        let (id, now) = (self.id, cx.schedule.now());
        if let Some(era) = work.abandoned {
            cx.say(format_args!(
                "member {id} abandons what is in flight: era {era}"
            ));
            self.close_where(CloseReason::Member, Connection::in_flight, cx);
        }
        let Some(process) = self.process_mut() else {
            return;
        };
        if let Some(install) = work.install {
            cx.say(format_args!(
                "member {id} is to install {}",
                install.image.index
            ));
            process.installing = Some(install);
        }
        if let Some((number, batch)) = work.persist {
            for entry in &batch.entries {
                cx.checks
                    .sessions
                    .appended(id, entry.index, entry.term, now);
            }
            process.log_queue.push((number, batch));
        }
        for outgoing in work.outgoing {
            self.send(outgoing.to, outgoing.frame, cx);
        }
        if !work.committed.is_empty() {
            self.apply(&work.committed, cx);
        }
        self.pass_barriers(&work.barriers, cx);
        let Some(process) = self.process_mut() else {
            return;
        };
        if let Some(request) = work.snapshot_wanted {
            cx.say(format_args!(
                "member {id} is to make an image for {}",
                request.to
            ));
            process.snapshot_wanted = Some(request);
        }
        if let Some(fetch) = work.fetch {
            cx.say(format_args!(
                "member {id} fetches {} from {}",
                fetch.index, fetch.from
            ));
            let pieces = cx.rng.between(2, 8);
            process.fetching = Some(Fetching {
                fetch,
                pieces,
                patience: 40,
            });
            let event = Event::Fetched(id, self.boot);
            cx.schedule.after(cx.rng.between(MS, 20 * MS), event);
        }
        self.offer_image(cx);
    }

    fn send(&mut self, to: u64, frame: Bytes, cx: &mut Cx) {
        let (id, now) = (self.id, cx.schedule.now());
        let weather = &cx.net.weather;
        let (low, high) = weather.delay;
        let (loss, doubled, breaks) = (weather.loss, weather.doubled, weather.breaks);
        let datagrams = weather.datagrams;
        let at = now + cx.rng.between(low, high);
        cx.trace.note_bytes(&frame);
        if datagrams {
            let boot = cx.plan.any_boot();
            if !cx.net.is_open(id, to) || cx.rng.per_myriad(loss) {
                return;
            }
            if cx.rng.per_myriad(doubled) {
                let later = at + cx.rng.between(0, 50 * MS);
                cx.schedule
                    .at(later, Event::Datagram(id, to, boot, frame.clone()));
            }
            cx.schedule.at(at, Event::Datagram(id, to, boot, frame));
            return;
        }
        if cx.rng.per_myriad(breaks) {
            cx.say(format_args!("connection {id} -> {to} breaks"));
            if let Some(link) = cx.net.peers.get_mut(&(id, to)) {
                link.connection = 0;
                link.queue.clear();
            }
        }
        if !cx.net.enqueue(id, to, at, frame) {
            if let Some(process) = self.process_mut() {
                process.member.unreachable(to);
            }
            return;
        }
        let link = cx.net.peers.entry((id, to)).or_default();
        if !link.pumping {
            link.pumping = true;
            cx.schedule.at(at, Event::Pump(id, to));
        }
    }

    fn apply(&mut self, committed: &[quenda_consensus::LogEntry], cx: &mut Cx) {
        let now = cx.schedule.now();
        let (now_ms, time_ms) = (self.clock.monotonic_ms(now), self.clock.wall_ms(now));
        let id = self.id;
        let State::Running(process) = &mut self.state else {
            return;
        };
        let process = &mut **process;
        for entry in committed {
            let service = process.service_mode();
            let mut delivery = Delivery {
                connections: &mut process.connections,
                by_session: &mut process.by_session,
                watches: &process.watches,
                session_ids: &process.session_ids,
                woken: &mut process.woken,
                service,
                sync: sync_mode(&cx.plan, process.alone),
                now_ms,
                time_ms,
                is_new: cx.checks.is_new(entry.index),
                entry: (entry.index, entry.term),
                now,
                touched: Vec::new(),
                closed: Vec::new(),
                checks: &mut cx.checks,
            };
            let applied = process.applier.apply(
                &mut process.tree,
                entry,
                &mut delivery,
                &mut process.effects,
            );
            let (mut touched, closed) = (delivery.touched, delivery.closed);
            touched.sort_unstable();
            touched.dedup();
            match applied {
                Ok(changes) => {
                    if changes && let Err(error) = process.member.apply_membership(entry) {
                        cx.say(format_args!(
                            "member {id}: membership without effect: {error}"
                        ));
                    }
                    if changes {
                        process.alone = is_alone(id, &process.member.membership());
                    }
                }
                Err(error) => return cx.fail(format!("member {id}: {error}")),
            }
            let tree = &process.tree;
            cx.checks
                .applied(id, entry.index, entry.term, tree, &touched, &closed);
        }
        if let Some(last) = committed.last() {
            process
                .member
                .applied(last.index, &process.effects, &process.tree, now_ms);
            process.effects.clear();
        }
        self.serve_woken(cx);
    }

    fn pass_barriers(&mut self, barriers: &[u64], cx: &mut Cx) {
        let now = cx.schedule.now();
        let (now_ms, time_ms) = (self.clock.monotonic_ms(now), self.clock.wall_ms(now));
        let Some(process) = self.process_mut() else {
            return;
        };
        for link in barriers {
            let Some(mut served) = process.connections.remove(link) else {
                continue;
            };
            let world = process.world(now_ms, time_ms, cx);
            served.connection.complete_sync(&world);
            process.connections.insert(*link, served);
            process.woken.insert(*link);
        }
        self.serve_woken(cx);
    }

    // ----- the disk -----------------------------------------------------------------------------

    fn write_log(&mut self, cx: &mut Cx) {
        let (id, boot, delay) = (self.id, self.boot, self.sync_delay);
        let State::Running(process) = &mut self.state else {
            return;
        };
        if process.log_writing.is_some() || process.log_queue.is_empty() {
            return;
        }
        let queue = std::mem::take(&mut process.log_queue);
        let number = queue.last().map_or(0, |(number, _)| *number);
        let batches = queue.into_iter().map(|(_, batch)| batch).collect();
        let write = self.disk.write(Write::Append(batches));
        process.log_writing = Some((number, write));
        let delay = cx.rng.between(delay.0, delay.1);
        cx.schedule.after(delay, Event::LogWritten(id, boot));
        if cx.plan.mutation == Some(Mutation::AcknowledgeBeforeSync) {
            process.member.persisted(number);
        }
    }

    /// A write of the log is durable.
    pub fn log_written(&mut self, cx: &mut Cx) {
        let State::Running(process) = &mut self.state else {
            return;
        };
        let Some((number, write)) = process.log_writing.take() else {
            return;
        };
        if let Err(text) = self.disk.sync(write) {
            return cx.fail(format!("member {}: {text}", self.id));
        }
        process.member.persisted(number);
        self.drive(cx);
    }

    fn checkpoint_if_due(&mut self, cx: &mut Cx) {
        let now = cx.schedule.now();
        let due = self
            .process()
            .is_some_and(|process| now >= process.next_checkpoint);
        if due {
            self.checkpoint(cx);
        }
    }

    fn checkpoint(&mut self, cx: &mut Cx) {
        let now = cx.schedule.now();
        let (id, boot, delay) = (self.id, self.boot, self.sync_delay);
        let State::Running(process) = &mut self.state else {
            return;
        };
        let status = process.member.status();
        // What is applied is in the log on disk, or will be before this write.
        let is_logged = status.persisted >= process.tree.applied_index();
        let busy = process.checkpoint_writing.is_some() || process.installing.is_some();
        if busy || !is_logged || process.tree.applied_index() <= process.checkpointed {
            return;
        }
        process.next_checkpoint = now + cx.plan.checkpoint_interval;
        let applied = (process.tree.applied_index(), process.tree.applied_term());
        let mut rows = ChangedRows::default();
        process.tree.write_checkpoint(&mut rows);
        let write = self.disk.write(Write::Checkpoint {
            applied,
            membership: process.member.membership().clone(),
            rows,
        });
        process.checkpointed = applied.0;
        process.checkpoint_writing = Some((applied.0, write));
        let delay = cx.rng.between(delay.0, delay.1 * 4);
        cx.schedule.after(delay, Event::CheckpointWritten(id, boot));
    }

    /// A checkpoint is durable: the log below it may go.
    pub fn checkpoint_written(&mut self, cx: &mut Cx) {
        let id = self.id;
        let State::Running(process) = &mut self.state else {
            return;
        };
        let Some((index, write)) = process.checkpoint_writing.take() else {
            return;
        };
        if let Err(text) = self.disk.sync(write) {
            return cx.fail(format!("member {id}: {text}"));
        }
        let through = process.member.compact(index, cx.plan.log_retained);
        self.disk.write(Write::Cut(through));
        self.offer_image(cx);
        self.drive(cx);
    }

    /// Makes the image that somebody needs, as soon as there is a checkpoint to make it from.
    fn offer_image(&mut self, cx: &mut Cx) {
        let id = self.id;
        let State::Running(process) = &mut self.state else {
            return;
        };
        let Some(request) = process.snapshot_wanted else {
            return;
        };
        let image = self.disk.image();
        let Some(image) = image.filter(|image| image.index >= request.min_index) else {
            self.checkpoint(cx);
            return;
        };
        process.snapshot_wanted = None;
        cx.say(format_args!("member {id} offers {}", image.index));
        process.member.offer_snapshot(SnapshotImage {
            index: image.index,
            term: image.term,
            membership: image.membership.clone(),
            manifest: Bytes::copy_from_slice(&image.index.to_be_bytes()),
        });
        process.images.insert(image.index, image);
        while process.images.len() > 2 {
            process.images.pop_first();
        }
    }

    /// The image that another member fetches.
    pub fn image(&self, index: u64) -> Option<Rc<StateImage>> {
        self.process()?.images.get(&index).cloned()
    }

    /// From whom this member fetches, and which image.
    pub fn fetches(&self) -> Option<(u64, u64)> {
        let fetching = self.process()?.fetching.as_ref()?;
        Some((fetching.fetch.from, fetching.fetch.index))
    }

    /// The next piece of an image has come, or has not: `source` is there if it can be reached.
    pub fn fetched(&mut self, source: Option<Rc<StateImage>>, reachable: bool, cx: &mut Cx) {
        let (id, boot) = (self.id, self.boot);
        let breaks = cx.rng.percent(cx.plan.transfer_breaks);
        let State::Running(process) = &mut self.state else {
            return;
        };
        let Some(fetching) = &mut process.fetching else {
            return;
        };
        let index = fetching.fetch.index;
        if !reachable || breaks {
            fetching.patience = fetching.patience.saturating_sub(1);
        } else if source.is_some() {
            fetching.pieces -= 1;
        }
        let gone = reachable && source.is_none();
        let ended = match source {
            Some(image) if fetching.pieces == 0 => {
                process.received.insert(index, image);
                Some(true)
            }
            _ if gone || fetching.patience == 0 => Some(false),
            _ => None,
        };
        if let Some(complete) = ended {
            cx.say(format_args!("member {id} has fetched {index}: {complete}"));
            process.fetching = None;
            process.member.fetched(index, complete);
            return self.drive(cx);
        }
        let delay = cx.rng.between(5 * MS, 40 * MS);
        cx.schedule.after(delay, Event::Fetched(id, boot));
    }

    fn begin_install(&mut self, cx: &mut Cx) {
        let (id, boot) = (self.id, self.boot);
        let State::Running(process) = &mut self.state else {
            return;
        };
        let idle = process.log_writing.is_none() && process.log_queue.is_empty();
        if process.installing.is_some() && idle && process.checkpoint_writing.is_none() {
            // Planned more than once: the first that comes does it.
            let delay = cx.rng.between(MS, 60 * MS);
            cx.schedule.after(delay, Event::Installed(id, boot));
        }
    }

    /// The store is switched to an image.
    pub fn installed(&mut self, cx: &mut Cx) {
        let id = self.id;
        let now_ms = self.clock.monotonic_ms(cx.schedule.now());
        let State::Running(process) = &mut self.state else {
            return;
        };
        let Some(install) = process.installing.take() else {
            return;
        };
        let index = install.image.index;
        let Some(image) = process.received.get(&index).cloned() else {
            return cx.fail(format!(
                "member {id} is to install {index}, which it does not have"
            ));
        };
        cx.say(format_args!("member {id} installs {index}"));
        if cx.plan.mutation == Some(Mutation::SnapshotWithoutPosition) {
            // The rows come, the position of the log stays: as a store that forgets to move it.
            let position = StateImage {
                index: index.saturating_sub(1),
                term: image.term,
                membership: image.membership.clone(),
                rows: image.rows.clone(),
            };
            self.disk.install(&position, install.hard_state);
        } else {
            self.disk.install(&image, install.hard_state);
        }
        let mut tree = match disk::load(&image.rows) {
            Ok(tree) => tree,
            Err(error) => return cx.fail(format!("member {id}: image {index}: {error}")),
        };
        tree.set_applied_index(image.index, image.term);
        cx.checks.installed(id, &tree);
        process.tree = tree;
        process.alone = false;
        process.checkpointed = index;
        process.images.clear();
        process.received.clear();
        process
            .member
            .installed(index, install.number, &process.tree, now_ms);
        self.close_where(CloseReason::Member, |_| true, cx);
        self.drive(cx);
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

    fn world<'a>(&'a self, now_ms: u64, time_ms: i64, cx: &Cx) -> World<'a> {
        World {
            tree: &self.tree,
            watches: &self.watches,
            session_ids: &self.session_ids,
            service: self.service_mode(),
            growth: Growth::Allowed,
            sync: sync_mode(&cx.plan, self.alone),
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
