//! One simulation: machines, clients, faults, and the end at which everything has to be well.

use std::collections::BTreeMap;
use std::rc::Rc;

use quenda_node::PeerState;

use crate::checks::{Checks, Counters};
use crate::client::{Client, Intent, Reconfiguration};
use crate::clock::{Clock, DRIFT_MAX_PPM};
use crate::event::Event;
use crate::faults::{self, Fault, Target};
use crate::host::{Cx, Host, State};
use crate::network::{ClientLink, Item, Network, Pipe, Weather};
use crate::plan::{Mutation, Plan};
use crate::rng::Rng;
use crate::schedule::{MS, Micros, SECOND, Schedule};
use crate::trace::{Trace, TraceMode};

/// Time after healing within which every client is served again.
const LIVENESS: Micros = 12 * SECOND;

/// Time within which some write is answered while one member alone is in trouble: all clients may have been
/// connected to it and have to find another.
const PROGRESS: Micros = 14 * SECOND;

/// Time within which members that nothing is wrong with answer, or close the connection: another one that
/// is in trouble may be the leader.
const ANSWER: Micros = 4 * SECOND;

/// Time that a silent session may live beyond its timeout, once everything is well: a new leader gives it
/// the whole timeout again.
const GRACE: Micros = 2 * SECOND;

/// How a simulation ended.
#[derive(Debug)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// The first broken promise.
    pub violation: Option<String>,
    /// Hash of everything that happened.
    pub hash: u64,
    /// Number of events.
    pub events: u64,
    /// What the run went through.
    pub counters: Counters,
    /// The last lines of the trace.
    pub tail: Vec<String>,
}

/// A cluster with its clients.
pub struct Sim {
    hosts: BTreeMap<u64, Host>,
    clients: Vec<Client>,
    /// The connection that each client looks at.
    links: Vec<Option<u64>>,
    cx: Cx,
    /// Faults under way, by member; those that concern no member under 0.
    troubles: BTreeMap<u64, u32>,
    /// Faults under way.
    faults: u32,
    /// Since when there is none.
    quiet_since: Micros,
    announced: BTreeMap<u64, PeerState>,
    /// Members that are configured, as far as the administrator has asked, and whether as observers.
    configured: BTreeMap<u64, bool>,
    healed: bool,
    /// Number of leaders before the one that is to be met, and for how long.
    ambush: Option<(u64, Micros)>,
}

/// Runs a seed.
pub fn run(seed: u64, mutation: Option<Mutation>, mode: TraceMode) -> Outcome {
    let mut sim = Sim::new(Plan::new(seed, mutation), mode);
    sim.live();
    let Cx { checks, trace, .. } = sim.cx;
    Outcome {
        seed,
        violation: checks.violation().map(str::to_string),
        hash: trace.hash(),
        events: trace.events(),
        counters: checks.counters,
        tail: trace.tail().map(str::to_string).collect(),
    }
}

impl Sim {
    fn new(plan: Plan, mode: TraceMode) -> Sim {
        let mut rng = Rng::new(plan.seed);
        let plan = Rc::new(plan);
        let mut checks = Checks::default();
        checks.sessions.gentle = plan.gentle || plan.victim.is_some();
        let mut hosts = BTreeMap::new();
        for id in plan.hosts() {
            let clock = Clock {
                drift_ppm: rng.between(0, DRIFT_MAX_PPM as u64) as i64 - DRIFT_MAX_PPM / 2,
                skew_ms: rng.below(10_000) as i64 - 5_000,
                start_ms: rng.below(1 << 40),
            };
            let mut host = Host::new(id, clock);
            host.sync_delay = plan.sync_delay;
            host.disk.forget_votes = plan.mutation == Some(Mutation::ForgetVotes);
            hosts.insert(id, host);
        }
        let members: Vec<u64> = plan.hosts().collect();
        let mut clients = Vec::new();
        for id in 0..plan.clients {
            let is_admin = id == 0 && plan.mix.reconfig > 0;
            let habits = plan.habits(&mut rng, is_admin);
            clients.push(Client::new(id, habits, members.clone(), rng.fork()));
        }
        let mut sim = Sim {
            links: vec![None; clients.len()],
            hosts,
            clients,
            troubles: BTreeMap::new(),
            faults: 0,
            quiet_since: 0,
            announced: BTreeMap::new(),
            configured: (1..=plan.members)
                .map(|id| (id, plan.learners().contains(&id)))
                .collect(),
            healed: false,
            ambush: None,
            cx: Cx {
                schedule: Schedule::default(),
                checks,
                trace: Trace::new(mode),
                rng: rng.fork(),
                net: Network::new(plan.weather.clone()),
                plan: Rc::clone(&plan),
            },
        };
        sim.set_up(&mut rng);
        sim
    }

    fn set_up(&mut self, rng: &mut Rng) {
        let plan = Rc::clone(&self.cx.plan);
        let cx = &mut self.cx;
        cx.say(format_args!("{plan:?}"));
        for id in 1..=plan.members {
            cx.schedule.after(rng.below(400 * MS), Event::Start(id));
        }
        for id in 0..plan.clients {
            cx.schedule.after(rng.below(SECOND), Event::Look(id));
        }
        for (at, fault) in faults::draw(&plan, rng) {
            cx.schedule.at(at, Event::Fault(fault));
        }
        if plan.weather.datagrams || plan.weather.breaks > 0 || plan.weather.delay.1 > 30 * MS {
            for id in plan.hosts() {
                self.trouble(id);
            }
            self.faults = 0;
        }
    }

    fn live(&mut self) {
        let chaos = self.cx.plan.chaos;
        if !self.run_until(chaos) {
            return;
        }
        self.heal();
        let pauses = self.hosts.values().map(|host| host.paused_until);
        let healed = pauses.max().unwrap_or(0).max(self.cx.schedule.now());
        if !self.run_until(healed + LIVENESS) {
            return;
        }
        self.check_liveness(healed);
        for client in &mut self.clients {
            client.stopped = true;
        }
        let longest = self.cx.plan.timeouts.1 * MS;
        let end = self.cx.schedule.now() + longest + GRACE + SECOND;
        if !self.run_until(end) {
            return;
        }
        self.check_end();
        self.cx.checks.linearizable();
    }

    /// False once a promise is broken.
    fn run_until(&mut self, end: Micros) -> bool {
        while self.cx.checks.violation().is_none() {
            let Some(event) = self.cx.schedule.next_until(end) else {
                return true;
            };
            self.happen(event);
            self.spring_ambush();
        }
        if let Some(text) = self.cx.checks.violation().map(str::to_string) {
            self.cx.say(format_args!("VIOLATION {text}"));
        }
        false
    }

    // ----- events -------------------------------------------------------------------------------

    fn happen(&mut self, event: Event) {
        let now = self.cx.schedule.now();
        let [a, b, c, d] = event.numbers();
        self.cx.trace.note(&[now, a, b, c, d]);
        if let Some(host) = event.member().and_then(|member| self.hosts.get(&member))
            && host.paused_until > now
        {
            self.cx.schedule.at(host.paused_until, event);
            return;
        }
        match event {
            Event::Tick(member, boot) => self.tick(member, boot),
            Event::Core(member, boot) => self.with(member, boot, Host::core),
            Event::LogWritten(member, boot) => self.with(member, boot, Host::log_written),
            Event::CheckpointWritten(member, boot) => {
                self.with(member, boot, Host::checkpoint_written);
            }
            Event::Installed(member, boot) => self.with(member, boot, Host::installed),
            Event::Stopped(member, boot) => self.with(member, boot, Host::stopped),
            Event::Fetched(member, boot) => self.fetched(member, boot),
            Event::Start(member) => {
                if let Some(host) = self.hosts.get_mut(&member) {
                    host.start(&mut self.cx);
                }
            }
            Event::Dialed(from, from_boot, to, to_boot) => {
                self.dialed((from, from_boot), (to, to_boot));
            }
            Event::PeerLost(member, boot, peer) => {
                self.with(member, boot, |host, cx| host.peer_lost(peer, cx));
            }
            Event::Pump(from, to) => self.pump(from, to),
            Event::Datagram(from, to, boot, frame) => {
                self.with(to, boot, |host, cx| host.frame(from, &frame, cx));
            }
            Event::Pipe(link, to_member) => self.pipe(link, to_member),
            Event::Look(client) => self.look(client),
            Event::Fault(fault) => self.begin(fault),
            Event::Mend(fault) => self.mend(&fault),
            Event::Calm(member) => self.calm(member),
        }
    }

    /// Calls `act` on a host, unless its process is another one by now.
    fn with(&mut self, member: u64, boot: u64, act: impl FnOnce(&mut Host, &mut Cx)) {
        if let Some(host) = self.hosts.get_mut(&member)
            && (boot == 0 || host.boot == boot)
            && host.is_up()
        {
            act(host, &mut self.cx);
        }
    }

    fn peers_of(&self, member: u64) -> BTreeMap<u64, (u64, PeerState)> {
        self.hosts
            .iter()
            .filter(|(id, host)| **id != member && host.is_up())
            .map(|(id, host)| (*id, (host.boot, host.peer_state())))
            .collect()
    }

    fn tick(&mut self, member: u64, boot: u64) {
        let Some(host) = self.hosts.get(&member) else {
            return;
        };
        let waits = matches!(host.state, State::Waiting);
        let is_apart = |peer: u64| peer != member && !self.cx.net.is_connected(member, peer);
        let peers = match waits || self.cx.plan.hosts().any(is_apart) {
            true => self.peers_of(member),
            false => BTreeMap::new(),
        };
        self.with(member, boot, |host, cx| host.tick(&peers, cx));
        self.announce(member);
    }

    /// A member whose state has changed tells those that it is connected to.
    fn announce(&mut self, member: u64) {
        let Some(host) = self.hosts.get(&member).filter(|host| host.is_up()) else {
            return;
        };
        let state = host.peer_state();
        if self.announced.insert(member, state) == Some(state) {
            return;
        }
        for peer in self.cx.plan.hosts() {
            let net = &self.cx.net;
            let connected = net.is_connected(member, peer) || net.is_connected(peer, member);
            if connected && net.is_open_both(member, peer) {
                self.with(peer, 0, |host, cx| host.peer_up(member, state, cx));
            }
        }
    }

    fn dialed(&mut self, from: (u64, u64), to: (u64, u64)) {
        let is_there = |(id, boot): (u64, u64)| {
            let host = self.hosts.get(&id);
            host.is_some_and(|host| host.is_up() && host.boot == boot)
        };
        let open = self.cx.net.is_open_both(from.0, to.0);
        if !open || !is_there(from) || !is_there(to) || self.cx.net.is_connected(from.0, to.0) {
            return;
        }
        let number = self.cx.net.number();
        let link = self.cx.net.peers.entry((from.0, to.0)).or_default();
        link.connection = number;
        link.queue.clear();
        let state_of = |id: u64| self.hosts.get(&id).map(Host::peer_state);
        let (own, other) = (state_of(from.0), state_of(to.0));
        if let Some(state) = other {
            self.with(from.0, 0, |host, cx| host.peer_up(to.0, state, cx));
        }
        if let Some(state) = own {
            self.with(to.0, 0, |host, cx| host.peer_up(from.0, state, cx));
        }
    }

    fn pump(&mut self, from: u64, to: u64) {
        let now = self.cx.schedule.now();
        let open = self.cx.net.is_open(from, to);
        let Some(link) = self.cx.net.peers.get_mut(&(from, to)) else {
            return;
        };
        let Some((at, _)) = link.queue.front() else {
            link.pumping = false;
            return;
        };
        if !open {
            // A stream holds its bytes back, until the transport finds it dead.
            if now > at + 3 * SECOND {
                link.connection = 0;
                link.queue.clear();
            }
            self.cx.schedule.after(30 * MS, Event::Pump(from, to));
            return;
        }
        if *at > now {
            let at = *at;
            self.cx.schedule.at(at, Event::Pump(from, to));
            return;
        }
        let Some((_, frame)) = link.queue.pop_front() else {
            return;
        };
        match link.queue.front() {
            Some((next, _)) => self.cx.schedule.at(*next, Event::Pump(from, to)),
            None => link.pumping = false,
        }
        self.with(to, 0, |host, cx| host.frame(from, &frame, cx));
    }

    fn fetched(&mut self, member: u64, boot: u64) {
        let Some((from, index)) = self.hosts.get(&member).and_then(Host::fetches) else {
            return;
        };
        let source = self.hosts.get(&from).filter(|host| host.is_up());
        let awake = source.is_some_and(|host| host.paused_until <= self.cx.schedule.now());
        let reachable = awake && self.cx.net.is_open_both(member, from);
        let image = source
            .filter(|_| reachable)
            .and_then(|host| host.image(index));
        self.with(member, boot, |host, cx| host.fetched(image, reachable, cx));
    }

    // ----- clients ------------------------------------------------------------------------------

    fn look(&mut self, id: usize) {
        let now = self.cx.schedule.now();
        self.check_progress(now);
        let intents = self.clients[id].look(now, &mut self.cx.checks);
        self.fulfil(id, intents);
        let pause = self.clients[id].pause();
        self.cx.schedule.after(pause, Event::Look(id));
    }

    fn fulfil(&mut self, id: usize, intents: Vec<Intent>) {
        for intent in intents {
            match intent {
                Intent::Connect(member) => {
                    let number = self.cx.net.number();
                    let link = ClientLink {
                        client: id,
                        member,
                        boot: 0,
                        to_member: Pipe::default(),
                        to_client: Pipe::default(),
                    };
                    self.cx.net.links.insert(number, link);
                    self.links[id] = Some(number);
                    self.cx
                        .say(format_args!("client {id} dials {member}: {number}"));
                    self.cx.push_link(number, true, Item::Open);
                }
                Intent::Send(bytes) => {
                    if let Some(link) = self.links[id] {
                        self.cx.push_link(link, true, Item::Bytes(bytes));
                    }
                }
                Intent::Close => {
                    if let Some(link) = self.links[id].take() {
                        self.cx.push_link(link, true, Item::Close);
                    }
                }
                Intent::Abandon => self.links[id] = None,
            }
        }
    }

    fn pipe(&mut self, number: u64, to_member: bool) {
        let now = self.cx.schedule.now();
        let Some(link) = self.cx.net.links.get_mut(&number) else {
            return;
        };
        let (client, member) = (link.client, link.member);
        let host = self.hosts.get(&member);
        let paused = host.map_or(0, |host| host.paused_until);
        if self.cx.net.clients_blocked.contains(&(client, member)) {
            self.cx
                .schedule
                .after(25 * MS, Event::Pipe(number, to_member));
            return;
        }
        if to_member && paused > now {
            self.cx.schedule.at(paused, Event::Pipe(number, to_member));
            return;
        }
        let pipe = if to_member {
            &mut link.to_member
        } else {
            &mut link.to_client
        };
        let Some((_, item)) = pipe.queue.pop_front() else {
            pipe.pumping = false;
            return;
        };
        match pipe.queue.front() {
            Some((at, _)) => self.cx.schedule.at(*at, Event::Pipe(number, to_member)),
            None => pipe.pumping = false,
        }
        match to_member {
            true => self.arrive_at_member(number, client, member, item),
            false => self.arrive_at_client(number, client, item),
        }
    }

    fn arrive_at_member(&mut self, number: u64, client: usize, member: u64, item: Item) {
        let Some(host) = self.hosts.get_mut(&member) else {
            return;
        };
        if let State::Down { powered } = host.state {
            if powered {
                self.cx.push_link(number, false, Item::Close);
            }
            return;
        }
        let boot = host.boot;
        let known = self.cx.net.links.get(&number).map_or(0, |link| link.boot);
        match item {
            Item::Open => {
                let taken = host.accept(number, client, &mut self.cx);
                if let Some(link) = self.cx.net.links.get_mut(&number) {
                    link.boot = boot;
                }
                let answer = if taken { Item::Open } else { Item::Close };
                self.cx.push_link(number, false, answer);
            }
            Item::Bytes(bytes) if known == boot => host.client_bytes(number, &bytes, &mut self.cx),
            Item::Bytes(_) => self.cx.push_link(number, false, Item::Close),
            Item::Close => {
                host.client_gone(number);
                self.cx.net.links.remove(&number);
            }
        }
    }

    fn arrive_at_client(&mut self, number: u64, id: usize, item: Item) {
        let now = self.cx.schedule.now();
        if matches!(item, Item::Close) {
            self.cx.net.links.remove(&number);
        }
        if self.links[id] != Some(number) {
            return;
        }
        let client = &mut self.clients[id];
        match item {
            Item::Open => {
                let hello = client.connected(now);
                self.cx.push_link(number, true, Item::Bytes(hello));
            }
            Item::Bytes(bytes) => {
                let intents = client.receive(now, &bytes, &mut self.cx.checks);
                self.fulfil(id, intents);
            }
            Item::Close => {
                client.parted(now, &mut self.cx.checks);
                self.links[id] = None;
                self.cx.say(format_args!("client {id} loses {number}"));
            }
        }
    }

    // ----- faults -------------------------------------------------------------------------------

    fn trouble(&mut self, member: u64) {
        let count = self.troubles.entry(member).or_insert(0);
        *count += 1;
        self.faults += 1;
        let now = self.cx.schedule.now();
        self.cx.checks.sessions.disturb(member, now);
    }

    /// The trouble is over a while after its cause: connections have to be made again.
    fn calm_later(&mut self, member: u64, delay: Micros) {
        self.cx
            .schedule
            .after(delay + 2 * SECOND, Event::Calm(member));
    }

    fn calm(&mut self, member: u64) {
        if self.healed {
            return;
        }
        let now = self.cx.schedule.now();
        self.faults = self.faults.saturating_sub(1);
        self.quiet_since = now;
        let count = self.troubles.entry(member).or_insert(0);
        *count = count.saturating_sub(1);
        if *count == 0 {
            self.cx.checks.sessions.calm(member, now);
        }
    }

    fn resolve(&self, target: Target) -> Option<u64> {
        match target {
            Target::Member(member) => self
                .hosts
                .get(&member)
                .filter(|host| host.is_up())
                .map(|host| host.id),
            Target::Leader => {
                let leads = |host: &Host| host.leads().map(|term| (term, host.id));
                self.hosts
                    .values()
                    .filter_map(leads)
                    .max()
                    .map(|(_, id)| id)
            }
        }
    }

    fn begin(&mut self, fault: Fault) {
        if self.healed {
            return;
        }
        self.cx.say(format_args!("FAULT {fault:?}"));
        match fault {
            Fault::Crash {
                target,
                power_cut,
                down,
            } => {
                if let Some(member) = self.resolve(target) {
                    self.crash(member, power_cut, down);
                }
            }
            Fault::Blackout { down } => {
                for member in self.cx.plan.hosts() {
                    if self.hosts[&member].is_up() {
                        let down = down + self.cx.rng.below(300 * MS);
                        self.crash(member, true, down);
                    }
                }
            }
            Fault::Pause { target, time } => {
                if let Some(member) = self.resolve(target) {
                    let until = self.cx.schedule.now() + time;
                    if let Some(host) = self.hosts.get_mut(&member) {
                        host.paused_until = host.paused_until.max(until);
                    }
                    self.trouble(member);
                    self.calm_later(member, time);
                }
            }
            Fault::Isolate {
                target,
                deaf,
                mute,
                time,
            } => {
                if let Some(member) = self.resolve(target) {
                    self.isolate(member, deaf, mute, time);
                }
            }
            Fault::Cut { from, to, time } => {
                self.cx.net.block(from, to);
                self.trouble(from);
                self.trouble(to);
                self.cx.schedule.after(time, Event::Mend(fault));
            }
            Fault::SlowDisk { target, sync, time } => {
                if let Some(member) = self.resolve(target) {
                    if let Some(host) = self.hosts.get_mut(&member) {
                        host.sync_delay = (sync / 4, sync);
                    }
                    let target = Target::Member(member);
                    let fault = Fault::SlowDisk { target, sync, time };
                    self.cx.schedule.after(time, Event::Mend(fault));
                    self.trouble(0);
                    self.calm_later(0, time);
                }
            }
            Fault::WallJump { target, by } => {
                if let Some(member) = self.resolve(target)
                    && let Some(host) = self.hosts.get_mut(&member)
                {
                    host.clock.skew_ms += by;
                }
            }
            Fault::CutClient {
                client,
                member,
                time,
            } => {
                self.cx.net.clients_blocked.insert((client, member));
                self.trouble(0);
                self.calm_later(0, time);
                self.cx.schedule.after(time, Event::Mend(fault));
            }
            Fault::Stop { target, down } => {
                if let Some(member) = self.resolve(target) {
                    self.trouble(member);
                    let boot = self.hosts[&member].boot;
                    self.with(member, boot, Host::stop);
                    self.cx
                        .schedule
                        .after(down + 500 * MS, Event::Start(member));
                    self.calm_later(member, down + 500 * MS);
                }
            }
            Fault::Wipe { target, down } => {
                if let Some(member) = self.resolve(target)
                    && self.may_wipe(member)
                {
                    self.crash(member, true, down);
                    if let Some(host) = self.hosts.get_mut(&member) {
                        host.disk.wipe();
                    }
                    self.cx.checks.counters.wipes += 1;
                    self.cx.say(format_args!("member {member} loses its store"));
                }
            }
            Fault::Flaps { count, gap } => self.flap(count, gap),
            Fault::Ambush { down, time } => {
                if let Some(member) = self.resolve(Target::Leader) {
                    self.crash(member, true, down);
                    self.ambush = Some((self.cx.checks.counters.leaders, time));
                }
            }
            Fault::Reconfig => self.reconfigure(),
            Fault::Clear { member } => self.clear(member),
        }
    }

    fn spring_ambush(&mut self) {
        let Some((before, time)) = self.ambush else {
            return;
        };
        if self.healed || self.cx.checks.counters.leaders == before {
            return;
        }
        self.ambush = None;
        let Some(leader) = self.resolve(Target::Leader) else {
            return;
        };
        self.cx.say(format_args!("ambush on {leader}"));
        self.isolate(leader, true, true, time);
        for member in self.cx.plan.hosts().filter(|member| *member != leader) {
            if self.hosts[&member].is_up() {
                let down = self.cx.rng.between(MS, 60 * MS);
                self.crash(member, true, down);
            }
        }
    }

    fn flap(&mut self, count: u64, gap: Micros) {
        let hosts: Vec<u64> = self.cx.plan.hosts().collect();
        let mut delay = 0;
        for number in 0..count {
            let target = match number {
                0 => Target::Leader,
                _ => Target::Member(*self.cx.rng.pick(&hosts)),
            };
            let fault = Fault::Crash {
                target,
                power_cut: self.cx.rng.percent(30),
                down: self.cx.rng.between(MS, 60 * MS),
            };
            self.cx.schedule.after(delay, Event::Fault(fault));
            delay += self.cx.rng.between(MS, gap);
        }
    }

    fn crash(&mut self, member: u64, power_cut: bool, down: Micros) {
        self.trouble(member);
        if let Some(host) = self.hosts.get_mut(&member) {
            host.crash(power_cut, &mut self.cx);
        }
        self.cx.schedule.after(down, Event::Start(member));
        self.calm_later(member, down);
    }

    fn isolate(&mut self, member: u64, deaf: bool, mute: bool, time: Micros) {
        for other in self.cx.plan.hosts().filter(|other| *other != member) {
            for (from, to, cut) in [(other, member, deaf), (member, other, mute)] {
                if cut {
                    self.cx.net.block(from, to);
                }
            }
        }
        self.trouble(member);
        let target = Target::Member(member);
        let fault = Fault::Isolate {
            target,
            deaf,
            mute,
            time,
        };
        self.cx.schedule.after(time, Event::Mend(fault));
    }

    /// A store may be lost while every voter that the leader counts on has caught up and nobody else is
    /// being fed: otherwise what was acknowledged could be lost with it.
    fn may_wipe(&self, member: u64) -> bool {
        let Some(leader) = self.resolve(Target::Leader) else {
            return false;
        };
        let Some(process) = self.hosts[&leader].process() else {
            return false;
        };
        let membership = process.member.membership();
        let whole = membership.outgoing_voters.is_empty()
            && membership.next_learners.is_empty()
            && membership.voters.len() >= 3
            && membership.learners.is_empty()
            && self.cx.plan.observers == 0;
        let all_there = membership.voters.iter().all(|voter| {
            let host = &self.hosts[voter];
            let applied = host.process().map(|process| process.tree.applied_index());
            host.peer_state() == PeerState::Member
                && applied.is_some_and(|applied| applied + 5 >= self.cx.checks.newest())
        });
        whole && all_there && membership.voters.contains(&member)
    }

    fn reconfigure(&mut self) {
        let plan = Rc::clone(&self.cx.plan);
        let all: Vec<u64> = plan.hosts().collect();
        let chosen = *self.cx.rng.pick(&all);
        let observer = self.cx.rng.percent(20);
        let voters = self.configured.values().filter(|observer| !**observer);
        let few = voters.count() <= 3;
        let votes = self.configured.get(&chosen) == Some(&false);
        let mut wanted = Reconfiguration {
            joining: None,
            leaving: None,
            all: None,
        };
        if self.configured.contains_key(&chosen) && self.cx.rng.percent(70) {
            if few && votes {
                return;
            }
            self.configured.remove(&chosen);
            wanted.leaving = Some(chosen.to_string());
            if self.cx.rng.percent(30) {
                let delay = self.cx.rng.between(SECOND, 3 * SECOND);
                self.cx
                    .schedule
                    .after(delay, Event::Fault(Fault::Clear { member: chosen }));
            }
        } else {
            if observer && few && votes {
                return;
            }
            self.configured.insert(chosen, observer);
            self.cx.schedule.after(0, Event::Start(chosen));
            wanted.joining = Some(Plan::server_line(chosen, observer));
        }
        if self.cx.rng.percent(20) {
            let lines = self.configured.iter();
            let lines: Vec<String> = lines
                .map(|(id, observer)| Plan::server_line(*id, *observer))
                .collect();
            wanted = Reconfiguration {
                joining: None,
                leaving: None,
                all: Some(lines.join(",")),
            };
        }
        self.trouble(0);
        self.calm_later(0, 3 * SECOND);
        self.cx.say(format_args!("{wanted:?}"));
        self.clients[0].reconfigs.push_back(wanted);
    }

    /// The machine of a member that was removed is used for something else, and comes back empty.
    fn clear(&mut self, member: u64) {
        let leader = self.resolve(Target::Leader);
        let leader = leader.and_then(|leader| self.hosts[&leader].process());
        // Removed for good: everybody knows, nobody counts on it.
        let counts = leader.is_none_or(|process| {
            process.member.membership().contains(member) || self.configured.contains_key(&member)
        });
        let known = self
            .hosts
            .values()
            .filter_map(Host::process)
            .all(|process| {
                process
                    .tree
                    .ensemble()
                    .is_none_or(|ensemble| ensemble.servers().all(|server| server.id != member))
            });
        if counts || !known {
            return;
        }
        self.crash(member, true, SECOND);
        if let Some(host) = self.hosts.get_mut(&member) {
            host.disk.wipe();
        }
        self.cx.say(format_args!("member {member} is cleared"));
    }

    fn mend(&mut self, fault: &Fault) {
        if self.healed {
            return;
        }
        self.cx.say(format_args!("MEND {fault:?}"));
        match fault {
            Fault::Isolate {
                target: Target::Member(member),
                deaf,
                mute,
                ..
            } => {
                for other in self.cx.plan.hosts().filter(|other| other != member) {
                    for (from, to, cut) in [(other, *member, *deaf), (*member, other, *mute)] {
                        if cut {
                            self.cx.net.unblock(from, to);
                        }
                    }
                }
                self.calm_later(*member, 0);
            }
            Fault::Cut { from, to, .. } => {
                self.cx.net.unblock(*from, *to);
                self.calm_later(*from, 0);
                self.calm_later(*to, 0);
            }
            Fault::SlowDisk {
                target: Target::Member(member),
                ..
            } => self.quick_disk(*member),
            Fault::CutClient { client, member, .. } => {
                self.cx.net.clients_blocked.remove(&(*client, *member));
            }
            Fault::Crash { .. }
            | Fault::Blackout { .. }
            | Fault::Pause { .. }
            | Fault::Isolate { .. }
            | Fault::SlowDisk { .. }
            | Fault::WallJump { .. }
            | Fault::Stop { .. }
            | Fault::Wipe { .. }
            | Fault::Flaps { .. }
            | Fault::Ambush { .. }
            | Fault::Clear { .. }
            | Fault::Reconfig => {}
        }
    }

    fn quick_disk(&mut self, member: u64) {
        if let Some(host) = self.hosts.get_mut(&member) {
            host.sync_delay = self.cx.plan.sync_delay;
        }
    }

    // ----- the end ------------------------------------------------------------------------------

    fn heal(&mut self) {
        self.cx.say(format_args!("everything heals"));
        self.healed = true;
        self.cx.net.heal();
        self.cx.net.weather = Weather::fair();
        let now = self.cx.schedule.now();
        let pauses = self.hosts.values().map(|host| host.paused_until);
        self.quiet_since = pauses.max().unwrap_or(0).max(now) + 3 * SECOND;
        self.faults = 0;
        for member in self.cx.plan.hosts() {
            self.quick_disk(member);
            let Some(host) = self.hosts.get_mut(&member) else {
                continue;
            };
            // What a stopped process has to do waits for the end of its pause.
            let awake = host.paused_until.max(now);
            let ever_started = host.boot > 0;
            if ever_started {
                // More than once: one that is stopping now has to be started again as well.
                let delay = 600 * MS + self.cx.rng.below(200 * MS);
                for at in [now + delay, awake + delay, awake + delay + 2 * SECOND] {
                    self.cx.schedule.at(at, Event::Start(member));
                }
            }
            if self.troubles.remove(&member).is_some() {
                self.cx.checks.sessions.calm(member, awake + 3 * SECOND);
            }
        }
    }

    /// A member that nothing is wrong with answers or closes the connection, be it that it is heard badly
    /// or that another one is in trouble.
    fn check_answers(&mut self, now: Micros) {
        let weather = &self.cx.net.weather;
        let is_bad = weather.delay.1 > 100 * MS || weather.loss > 500;
        let is_quiet = self.faults == 0 && now > self.quiet_since + ANSWER && now > 2 * ANSWER;
        let victim = self.cx.plan.victim.filter(|_| !is_quiet);
        if is_bad || !(is_quiet || victim.is_some()) {
            return;
        }
        for (client, link) in self.clients.iter().zip(&self.links) {
            let link = link.and_then(|link| self.cx.net.links.get(&link));
            let overdue = client.overdue(now.saturating_sub(ANSWER));
            if overdue > 0 && link.is_some_and(|link| Some(link.member) != victim) {
                let text = format!(
                    "client {} waits for {overdue} answers of member {}, which is not in trouble (one that is: {victim:?})",
                    client.id,
                    link.map_or(0, |link| link.member)
                );
                return self.cx.fail(text);
            }
        }
    }

    /// While one member alone is in trouble the others serve.
    fn check_progress(&mut self, now: Micros) {
        let stopped = self.clients.iter().any(|client| client.stopped);
        if stopped {
            return;
        }
        self.check_answers(now);
        if self.cx.plan.victim.is_none() {
            return;
        }
        if now < PROGRESS + 2 * SECOND {
            return;
        }
        let newest = self.clients.iter().map(|client| client.written_at).max();
        let write = self.clients.iter().any(Client::writes);
        if write && newest.is_some_and(|newest| newest + PROGRESS < now) {
            self.cx.fail(format!(
                "nobody's write was answered for {} s, although one member alone is in trouble",
                PROGRESS / SECOND
            ));
        }
    }

    fn check_liveness(&mut self, healed: Micros) {
        for client in self.clients.iter().filter(|client| client.writes()) {
            if client.written_at <= healed + LIVENESS * 2 / 3 {
                let text = format!(
                    "client {} is not served {} s after everything healed (connected: {}, last write at {} ms)",
                    client.id,
                    LIVENESS / SECOND,
                    client.is_live(),
                    client.written_at / MS
                );
                return self.cx.fail(text);
            }
        }
    }

    fn check_end(&mut self) {
        let lately = self.cx.schedule.now() - SECOND;
        for client in &self.clients {
            let overdue = client.overdue(lately);
            if overdue > 0 {
                let text = format!(
                    "client {} waits for {overdue} answers at the end",
                    client.id
                );
                return self.cx.fail(text);
            }
        }
        let Some(leader) = self.resolve(Target::Leader) else {
            return self.cx.fail("nobody leads at the end".into());
        };
        let Some(process) = self.hosts[&leader].process() else {
            return;
        };
        let members = process.member.membership().members();
        for session in self.clients.iter().map(Client::session) {
            if session != 0 && process.tree.session(session).is_none() {
                let text = format!("session {session:#x} is gone at the end, its client lives");
                self.cx.checks.fail(text);
            }
        }
        let now = self.cx.schedule.now();
        let overdue = self.cx.checks.sessions.overdue(now, GRACE);
        if !overdue.is_empty() {
            self.cx
                .fail(format!("sessions {overdue:x?} are silent and live"));
        }
        for member in members {
            match self.hosts.get(&member).and_then(Host::process) {
                Some(process) => self.cx.checks.final_state(member, &process.tree),
                None => self
                    .cx
                    .checks
                    .fail(format!("member {member} does not run at the end")),
            }
        }
    }
}
