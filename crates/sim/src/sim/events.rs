//! What happens, and to whom.

use std::collections::BTreeMap;

use quenda_node::PeerState;

use super::Sim;
use crate::event::Event;
use crate::host::{Cx, Host, State};
use crate::schedule::{MS, SECOND};

impl Sim {
    pub(super) fn happen(&mut self, event: Event) {
        let now = self.cx.schedule.now();
        let [a, b, c, d] = event.numbers();
        self.cx.trace.note(&[now, a, b, c, d]);
        if let Some(host) = event.member().and_then(|member| self.hosts.get(&member)) {
            let until = match event.is_sync() {
                true => host.still_until(),
                false => host.paused_until,
            };
            if until > now {
                self.cx.schedule.at(until, event);
                return;
            }
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
    pub(super) fn with(&mut self, member: u64, boot: u64, act: impl FnOnce(&mut Host, &mut Cx)) {
        if let Some(host) = self.hosts.get_mut(&member)
            && (boot == 0 || host.boot == boot)
            && host.is_up()
        {
            act(host, &mut self.cx);
        }
    }

    pub(super) fn peers_of(&self, member: u64) -> BTreeMap<u64, (u64, PeerState)> {
        self.hosts
            .iter()
            .filter(|(id, host)| **id != member && host.is_up())
            .map(|(id, host)| (*id, (host.boot, host.peer_state())))
            .collect()
    }

    pub(super) fn tick(&mut self, member: u64, boot: u64) {
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
    pub(super) fn announce(&mut self, member: u64) {
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

    pub(super) fn dialed(&mut self, from: (u64, u64), to: (u64, u64)) {
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

    pub(super) fn pump(&mut self, from: u64, to: u64) {
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

    pub(super) fn fetched(&mut self, member: u64, boot: u64) {
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
}
