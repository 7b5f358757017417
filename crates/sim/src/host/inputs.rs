//! What comes in: ticks, peers, frames, clients.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use bytes::BytesMut;
use quenda_consensus::Recovered;
use quenda_frontend::{CloseReason, Connection, ConnectionId, ServiceMode};
use quenda_node::PeerState;

use super::{Cx, Host, Inbound, Served, State};
use crate::event::Event;
use crate::plan::Mutation;
use crate::schedule::MS;

impl Host {
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
        self.expire_local(cx);
        self.checkpoint_if_due(cx);
        self.offer_image(cx);
        self.drive(cx);
    }

    /// Ends the sessions that only this member knows and that are silent.
    fn expire_local(&mut self, cx: &mut Cx) {
        let (id, now) = (self.id, cx.schedule.now());
        let now_ms = self.clock.monotonic_ms(now);
        let Some(process) = self.process_mut() else {
            return;
        };
        let serves = process.service_mode() == ServiceMode::Serving;
        let Some(sessions) = process.local.as_ref().filter(|_| serves) else {
            return;
        };
        let due = sessions.borrow_mut().due(now_ms);
        for (session, connection) in due {
            let served = connection.and_then(|link| process.connections.get_mut(&link.0));
            let heard_ms =
                served
                    .as_ref()
                    .map_or(0, |served| match served.connection.awaits_log() {
                        true => now_ms,
                        false => served.connection.last_touch_ms(),
                    });
            let mut sessions = sessions.borrow_mut();
            if !sessions.judge(session, connection, heard_ms, now_ms) {
                continue;
            }
            cx.checks.counters.expired_locally += 1;
            if let Err(text) = cx.checks.sessions.expired_locally(session, id, now) {
                cx.checks.fail(text);
            }
            if let (Some(link), Some(served)) = (connection, served) {
                served.connection.close(CloseReason::SessionExpired);
                process.woken.insert(link.0);
            }
        }
        self.serve_woken(cx);
    }

    /// Which start this empty member makes depends on what the others are.
    pub(super) fn ask_around(&mut self, peers: &BTreeMap<u64, (u64, PeerState)>, cx: &mut Cx) {
        let reachable = peers
            .iter()
            .filter(|(peer, _)| cx.net.is_open_both(self.id, **peer));
        let states: BTreeMap<u64, PeerState> = reachable
            .map(|(peer, (_, state))| (*peer, *state))
            .collect();
        let forgets = cx.plan.mutation == Some(Mutation::LostStoreVotes);
        if forgets && cx.plan.voters().contains(&self.id) {
            return self.found(
                Recovered::bootstrap(cx.plan.voters(), cx.plan.learners()),
                cx,
            );
        }
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

    pub(super) fn dial(&mut self, peers: &BTreeMap<u64, (u64, PeerState)>, cx: &mut Cx) {
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

    /// Commands of the machine itself.
    pub fn submit(&mut self, commands: BytesMut, cx: &mut Cx) {
        if let Some(process) = self.process_mut() {
            let era = process.member.era();
            process.inbox.push_back(Inbound::Commands(era, commands));
        }
        self.plan_core(cx);
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

    pub(super) fn plan_core(&mut self, cx: &mut Cx) {
        let (id, boot) = (self.id, self.boot);
        if let Some(process) = self.process_mut()
            && !process.core_planned
            && !process.inbox.is_empty()
        {
            process.core_planned = true;
            let delay = cx.rng.below(cx.plan.core_delay);
            cx.schedule.after(delay, Event::Core(id, boot));
        }
    }
}
