//! What has to hold meanwhile and at the end.

use quenda_frontend::Growth;
use quenda_node::limits::DISK_HANG_MS;

use super::{ANSWER, GRACE, HANG_PROGRESS, LIVENESS, PROGRESS, Sim};
use crate::client::Client;
use crate::event::Event;
use crate::faults::Target;
use crate::host::Host;
use crate::network::Weather;
use crate::schedule::{MS, Micros, SECOND};

impl Sim {
    pub(super) fn heal(&mut self) {
        self.cx.say(format_args!("everything heals"));
        self.healed = true;
        self.cx.net.heal();
        self.cx.net.weather = Weather::fair();
        let now = self.cx.schedule.now();
        let pauses = self.hosts.values().map(Host::still_until);
        self.quiet_since = pauses.max().unwrap_or(0).max(now) + 3 * SECOND;
        self.faults = 0;
        for client in &mut self.clients {
            client.awake = true;
        }
        for member in self.cx.plan.hosts() {
            self.quick_disk(member);
            self.set_growth(member, Growth::Allowed);
            let Some(host) = self.hosts.get_mut(&member) else {
                continue;
            };
            // What a stopped process has to do waits for the end of its pause.
            let awake = host.still_until().max(now);
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
    pub(super) fn check_answers(&mut self, now: Micros) {
        let weather = &self.cx.net.weather;
        let is_bad = weather.delay.1 > 100 * MS || weather.loss > 500;
        let is_quiet = self.faults == 0 && now > self.quiet_since + ANSWER && now > 2 * ANSWER;
        let victim = self.cx.plan.victim.filter(|_| !is_quiet);
        // A leader whose links are cut while its disk hangs lets go when the latter is noticed.
        let patience = ANSWER + DISK_HANG_MS * MS;
        let hung = |victim| {
            let until = self.hosts.get(victim).map_or(0, |host| host.hanging_until);
            until > 0 && now < until + patience
        };
        let bound = match victim.as_ref().is_some_and(hung) {
            true => patience,
            false => ANSWER,
        };
        // Also a member whose disk hangs lets go of its clients.
        let hangs = self.cx.plan.hangs && now > 2 * ANSWER;
        if is_bad || !(is_quiet || hangs || victim.is_some()) {
            return;
        }
        for (client, link) in self.clients.iter().zip(&self.links) {
            let link = link.and_then(|link| self.cx.net.links.get(&link));
            let overdue = client.overdue(now.saturating_sub(bound));
            if overdue > 0 && link.is_some_and(|link| Some(link.member) != victim) {
                let text = format!(
                    "client {} waits for {overdue} answers of member {}, which is not in trouble (one that is: {victim:?})",
                    client.id,
                    link.map_or(0, |link| link.member)
                );
                self.describe();
                return self.cx.fail(text);
            }
        }
    }

    /// While one member alone is in trouble the others serve.
    pub(super) fn check_progress(&mut self, now: Micros) {
        let stopped = self.clients.iter().any(|client| client.stopped);
        if stopped {
            return;
        }
        self.check_answers(now);
        let (bound, trouble) = match (self.cx.plan.hangs, self.cx.plan.victim) {
            (true, _) => (HANG_PROGRESS, "one disk alone hangs"),
            (false, Some(_)) => (PROGRESS, "one member alone is in trouble"),
            (false, None) => return,
        };
        if now < bound + 2 * SECOND {
            return;
        }
        let newest = self.clients.iter().map(|client| client.written_at).max();
        let write = self.clients.iter().any(Client::writes);
        if write && newest.is_some_and(|newest| newest + bound < now) {
            self.cx.fail(format!(
                "nobody's write was answered for {} s, although {trouble}",
                bound / SECOND
            ));
        }
    }

    /// Where every member stands, for the trace.
    pub(super) fn describe(&mut self) {
        for host in self.hosts.values() {
            let Some(process) = host.process() else {
                continue;
            };
            let member = &process.member;
            self.cx.say(format_args!(
                "member {}: {:?} {:?} {:?} {:?}",
                host.id,
                member.service(),
                member.status(),
                member.membership(),
                member.peers()
            ));
        }
    }

    pub(super) fn check_liveness(&mut self, healed: Micros) {
        self.describe();
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

    pub(super) fn check_end(&mut self) {
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
            let is_local = self.hosts.values().any(|host| host.knows_alone(session));
            if session != 0 && process.tree.session(session).is_none() && !is_local {
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
