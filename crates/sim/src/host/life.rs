//! Start and end of a process.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use quenda_consensus::{Config, Consensus, Recovered};
use quenda_frontend::{Growth, SessionIds, WatchTable};
use quenda_node::limits::TICK_MS;
use quenda_node::{Applier, Effects, Founding, Member, Setup};
use quenda_tree::Tree;

use super::{Cx, Host, Process, State, is_alone};
use crate::event::Event;
use crate::network::Item;
use crate::schedule::MS;

impl Host {
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

    pub(super) fn plan_tick(&mut self, cx: &mut Cx) {
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

    pub(super) fn run(&mut self, recovered: Recovered, tree: Tree, cx: &mut Cx) {
        let now = cx.schedule.now();
        let single = is_alone(self.id, &recovered.membership);
        let mut config = Config::new(self.id);
        config.seed = cx.rng.bits();
        if cx.plan.small_batches {
            config.max_message_bytes = 4 << 10;
            config.max_inflight_messages = 8;
            // A leader whose disk hangs takes no more than that; others would wait for it.
            if cx.plan.victim.is_none() {
                config.max_uncommitted_bytes = 16 << 10;
            }
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
        self.reserved = session_ids.begin_reservation(self.reserved);
        session_ids.reserve(self.reserved);
        let service = member.service();
        self.state = State::Running(Box::new(Process {
            member,
            checkpointed: tree.applied_index(),
            tree,
            applier: Applier::new(self.id),
            watches: RefCell::new(WatchTable::new(cx.rng.bits(), 10_000)),
            session_ids,
            local: cx.plan.local_sessions.then(RefCell::default),
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
            growth: Growth::Allowed,
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
    pub(super) fn leave(&mut self, tells: bool, cx: &mut Cx) {
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
}
