//! Faults, as they begin and end.

use std::rc::Rc;

use quenda_frontend::Growth;
use quenda_node::PeerState;

use super::Sim;
use crate::client::Reconfiguration;
use crate::event::Event;
use crate::faults::{Fault, Target};
use crate::host::Host;
use crate::plan::Plan;
use crate::schedule::{MS, Micros, SECOND};

impl Sim {
    pub(super) fn trouble(&mut self, member: u64) {
        let count = self.troubles.entry(member).or_insert(0);
        *count += 1;
        self.faults += 1;
        let now = self.cx.schedule.now();
        self.cx.checks.sessions.disturb(member, now);
    }

    /// The trouble is over a while after its cause: connections have to be made again.
    pub(super) fn calm_later(&mut self, member: u64, delay: Micros) {
        self.cx
            .schedule
            .after(delay + 2 * SECOND, Event::Calm(member));
    }

    pub(super) fn calm(&mut self, member: u64) {
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

    pub(super) fn resolve(&self, target: Target) -> Option<u64> {
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

    pub(super) fn begin(&mut self, fault: Fault) {
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
                    self.calm_later(0, time + sync);
                }
            }
            Fault::HangingDisk { target, time } => {
                if let Some(member) = self.resolve(target) {
                    let until = self.cx.schedule.now() + time;
                    if let Some(host) = self.hosts.get_mut(&member) {
                        host.hanging_until = host.hanging_until.max(until);
                    }
                    self.cx.checks.counters.hangs += 1;
                    self.trouble(0);
                    self.calm_later(0, time);
                }
            }
            Fault::FullDisk { target, time } => {
                if let Some(member) = self.resolve(target) {
                    self.set_growth(member, Growth::Refused);
                    let target = Target::Member(member);
                    let fault = Fault::FullDisk { target, time };
                    self.cx.schedule.after(time, Event::Mend(fault));
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
            Fault::Wipe { target, down } => match self.resolve(target) {
                Some(member) if self.may_wipe(member) => {
                    self.crash(member, true, down);
                    if let Some(host) = self.hosts.get_mut(&member) {
                        host.disk.wipe();
                    }
                    self.cx.checks.counters.wipes += 1;
                    self.cx.say(format_args!("member {member} loses its store"));
                }
                // As soon as it may.
                Some(_) | None => self.cx.schedule.after(400 * MS, Event::Fault(fault)),
            },
            Fault::Flaps { count, gap } => self.flap(count, gap),
            Fault::Ambush { down, time } => {
                if let Some(member) = self.resolve(Target::Leader) {
                    self.crash(member, true, down);
                    self.ambush = Some((self.cx.checks.counters.leaders, time));
                }
            }
            Fault::Reconfig => self.reconfigure(),
            Fault::Restore => self.save_or_restore(),
            Fault::Clear { member } => self.clear(member),
        }
    }

    pub(super) fn spring_ambush(&mut self) {
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

    pub(super) fn flap(&mut self, count: u64, gap: Micros) {
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

    pub(super) fn crash(&mut self, member: u64, power_cut: bool, down: Micros) {
        self.trouble(member);
        if let Some(host) = self.hosts.get_mut(&member) {
            host.crash(power_cut, &mut self.cx);
        }
        self.cx.schedule.after(down, Event::Start(member));
        self.calm_later(member, down);
    }

    pub(super) fn isolate(&mut self, member: u64, deaf: bool, mute: bool, time: Micros) {
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
    pub(super) fn may_wipe(&self, member: u64) -> bool {
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
            let agrees = host
                .process()
                .is_some_and(|process| process.member.membership() == membership)
                && host.disk.membership() == Some(&membership);
            host.peer_state() == PeerState::Member
                && agrees
                && applied.is_some_and(|applied| applied + 5 >= self.cx.checks.newest())
        });
        whole && all_there && membership.voters.contains(&member)
    }

    pub(super) fn reconfigure(&mut self) {
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
    pub(super) fn clear(&mut self, member: u64) {
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

    pub(super) fn mend(&mut self, fault: &Fault) {
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
            Fault::FullDisk {
                target: Target::Member(member),
                ..
            } => self.set_growth(*member, Growth::Allowed),
            Fault::CutClient { client, member, .. } => {
                self.cx.net.clients_blocked.remove(&(*client, *member));
            }
            Fault::Crash { .. }
            | Fault::Blackout { .. }
            | Fault::Pause { .. }
            | Fault::Isolate { .. }
            | Fault::SlowDisk { .. }
            | Fault::HangingDisk { .. }
            | Fault::FullDisk { .. }
            | Fault::WallJump { .. }
            | Fault::Stop { .. }
            | Fault::Wipe { .. }
            | Fault::Flaps { .. }
            | Fault::Ambush { .. }
            | Fault::Clear { .. }
            | Fault::Restore
            | Fault::Reconfig => {}
        }
    }

    pub(super) fn quick_disk(&mut self, member: u64) {
        if let Some(host) = self.hosts.get_mut(&member) {
            host.sync_delay = self.cx.plan.sync_delay;
        }
    }

    pub(super) fn set_growth(&mut self, member: u64, growth: Growth) {
        if let Some(process) = self.hosts.get_mut(&member).and_then(Host::process_mut) {
            process.growth = growth;
        }
    }
}
