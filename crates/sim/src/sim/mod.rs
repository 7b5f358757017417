//! One simulation: machines, clients, faults, and the end at which everything has to be well.

mod events;
mod links;
mod restores;
mod troubles;
mod verdict;

use std::collections::BTreeMap;
use std::rc::Rc;

use quenda_node::PeerState;

use crate::checks::{Checks, Counters};
use crate::client::Client;
use crate::clock::{Clock, DRIFT_MAX_PPM};
use crate::event::Event;
use crate::faults::{self};
use crate::host::{Cx, Host};
use crate::network::Network;
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

/// Time within which some write is answered while nothing is wrong but one disk that hangs, be it the leader's.
const HANG_PROGRESS: Micros = 4 * SECOND;

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
    /// A snapshot that may be restored.
    snapshot: Option<Vec<u8>>,
    /// Restores that were asked for.
    restores: u64,
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
        checks.refusals = plan.mix.full_disk > 0;
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
            snapshot: None,
            restores: 0,
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
        let pauses = self.hosts.values().map(Host::still_until);
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
}
