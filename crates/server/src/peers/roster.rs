//! Who is connected: at most one connection a peer and direction, the newest one.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bytes::Bytes;
use parking_lot::Mutex;
use quenda_node::PeerState;
use tokio::sync::{Mutex as AsyncMutex, Notify, Semaphore};
use tokio_util::sync::CancellationToken;

use super::flow::{Flow, LinkFigures};
use super::identity::{About, Facts};
use super::outbox::Outbox;
use crate::limits::{PEER_BRIEF, PEER_DELIVERED_BYTES, PEER_QUEUE_BYTES, PEERS_MAX};

/// Who has dialed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// This member: its frames go this way.
    Dialed,
    /// The peer: its frames come this way.
    Accepted,
}

/// Why a connection has no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// A process of that member that was started later is connected.
    OlderProcess,
    /// Too many members are connected, or this one stops.
    TooMany,
}

/// A connection's place in the roster.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) peer: u64,
    pub(super) direction: Direction,
    pub(super) about: About,
    pub(super) outbox: Arc<Outbox>,
    /// Set when a newer connection has taken the place.
    pub(super) cancel: CancellationToken,
    /// To be held while the connection is served: so that its predecessor has delivered all it ever will.
    pub(super) turn: Arc<AsyncMutex<()>>,
    /// Room for frames of this peer that the core has not dealt with.
    pub(super) room: Arc<Semaphore>,
    /// What passes on the peer's connections.
    pub(super) flow: Arc<Flow>,
    /// An earlier process of this peer was connected, which is gone thereby.
    pub(super) outlives: bool,
    /// How many before this one, in this direction, ended as soon as they had begun.
    pub(super) brief: u32,
    since: Instant,
    serial: u64,
}

/// What a connection leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// A newer connection has its place.
    Replaced,
    /// The place is empty. `connected` says whether the peer's own connection to us is open.
    Empty { connected: bool },
}

/// All connections.
#[derive(Debug, Default)]
pub(super) struct Roster {
    state: Mutex<State>,
    serial: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    peers: HashMap<u64, Peer>,
    closed: bool,
}

#[derive(Debug)]
struct Peer {
    dialed: Option<Held>,
    accepted: Option<Held>,
    dialed_turn: Arc<AsyncMutex<()>>,
    accepted_turn: Arc<AsyncMutex<()>>,
    room: Arc<Semaphore>,
    flow: Arc<Flow>,
    facts: Facts,
    /// Connections in a row that ended at once.
    dialed_brief: u32,
    accepted_brief: u32,
    /// The end of its process was told, and nothing came from it since.
    mourned: bool,
    /// Tells the dialer that the peer is there.
    here: Arc<Notify>,
}

#[derive(Debug)]
struct Held {
    serial: u64,
    incarnation: u64,
    outbox: Arc<Outbox>,
    cancel: CancellationToken,
}

impl Default for Peer {
    fn default() -> Peer {
        Peer {
            dialed: None,
            accepted: None,
            dialed_turn: Arc::default(),
            accepted_turn: Arc::default(),
            room: Arc::new(Semaphore::new(PEER_DELIVERED_BYTES)),
            flow: Arc::new(Flow::start()),
            facts: Facts {
                cluster: 0,
                state: PeerState::Fresh,
            },
            dialed_brief: 0,
            accepted_brief: 0,
            mourned: false,
            here: Arc::default(),
        }
    }
}

impl Peer {
    fn held(&mut self, direction: Direction) -> &mut Option<Held> {
        match direction {
            Direction::Dialed => &mut self.dialed,
            Direction::Accepted => &mut self.accepted,
        }
    }

    fn brief(&mut self, direction: Direction) -> &mut u32 {
        match direction {
            Direction::Dialed => &mut self.dialed_brief,
            Direction::Accepted => &mut self.accepted_brief,
        }
    }

    fn turn(&self, direction: Direction) -> &Arc<AsyncMutex<()>> {
        match direction {
            Direction::Dialed => &self.dialed_turn,
            Direction::Accepted => &self.accepted_turn,
        }
    }

    fn all_held(&self) -> impl Iterator<Item = &Held> {
        self.dialed.iter().chain(&self.accepted)
    }

    /// Whether there was one: its connections lead nowhere.
    fn end_earlier_process(&self, incarnation: u64) -> bool {
        let mut earlier = 0;
        for held in self.all_held() {
            if held.incarnation < incarnation {
                held.cancel.cancel();
                earlier += 1;
            }
        }
        earlier > 0
    }

    fn is_connected(&self) -> bool {
        self.all_held().next().is_some()
    }
}

impl State {
    /// Whether one more peer may be connected. Those that are neither connected nor dialed are forgotten when
    /// there are many.
    fn has_room_for(&mut self, peer: u64) -> bool {
        if self.peers.len() >= PEERS_MAX && !self.peers.contains_key(&peer) {
            let is_dialed = |peer: &Peer| Arc::strong_count(&peer.here) > 1;
            self.peers
                .retain(|_, peer| peer.is_connected() || is_dialed(peer));
        }
        self.peers.len() < PEERS_MAX || self.peers.contains_key(&peer)
    }
}

impl Roster {
    /// Gives a connection its place; one that had it before is told to end, and so is one of an earlier process.
    ///
    /// # Errors
    /// See [`NoPlace`].
    pub(super) fn enter(
        &self,
        peer: u64,
        direction: Direction,
        about: About,
        cancel: CancellationToken,
    ) -> Result<Place, NoPlace> {
        let mut state = self.state.lock();
        if state.closed || !state.has_room_for(peer) {
            return Err(NoPlace::TooMany);
        }
        let entry = state.peers.entry(peer).or_default();
        if entry
            .all_held()
            .any(|held| held.incarnation > about.incarnation)
        {
            return Err(NoPlace::OlderProcess);
        }
        entry.facts = about.facts;
        entry.mourned = false;
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        let outlives = entry.end_earlier_process(about.incarnation);
        if outlives || !entry.is_connected() {
            entry.flow = Arc::new(Flow::start());
        }
        let outbox = Arc::new(Outbox::new(PEER_QUEUE_BYTES, Arc::clone(&entry.flow)));
        let held = Held {
            serial,
            incarnation: about.incarnation,
            outbox: Arc::clone(&outbox),
            cancel: cancel.clone(),
        };
        if let Some(before) = entry.held(direction).replace(held) {
            before.cancel.cancel();
        }
        if direction == Direction::Accepted && (outlives || entry.dialed.is_none()) {
            entry.here.notify_one();
        }
        Ok(Place {
            peer,
            direction,
            about,
            outbox,
            cancel,
            turn: Arc::clone(entry.turn(direction)),
            room: Arc::clone(&entry.room),
            flow: Arc::clone(&entry.flow),
            outlives,
            brief: *entry.brief(direction),
            since: Instant::now(),
            serial,
        })
    }

    /// The connection has ended.
    pub(super) fn leave(&self, place: &Place) -> Left {
        let mut state = self.state.lock();
        let Some(entry) = state.peers.get_mut(&place.peer) else {
            return Left::Replaced;
        };
        let brief = entry.brief(place.direction);
        *brief = match place.since.elapsed() < PEER_BRIEF {
            true => brief.saturating_add(1),
            false => 0,
        };
        let held = entry.held(place.direction);
        if held.as_ref().is_none_or(|held| held.serial != place.serial) {
            return Left::Replaced;
        }
        *held = None;
        Left::Empty {
            connected: entry.accepted.is_some(),
        }
    }

    /// The peer's process has ended: whether that is news.
    pub(super) fn mourn(&self, peer: u64) -> bool {
        let mut state = self.state.lock();
        let entry = state.peers.get_mut(&peer);
        entry.is_some_and(|entry| !std::mem::replace(&mut entry.mourned, true))
    }

    /// Queues a frame for a peer, on our own connection if there is one; `false` if it was dropped.
    pub(super) fn send(&self, to: u64, frame: Bytes) -> bool {
        let outbox = {
            let state = self.state.lock();
            let Some(peer) = state.peers.get(&to) else {
                return false;
            };
            let Some(held) = peer.dialed.as_ref().or(peer.accepted.as_ref()) else {
                return false;
            };
            Arc::clone(&held.outbox)
        };
        outbox.push(frame)
    }

    /// What the peer says of itself; whether that is news.
    pub(super) fn learn(&self, peer: u64, facts: Facts) -> bool {
        let mut state = self.state.lock();
        let Some(peer) = state.peers.get_mut(&peer) else {
            return false;
        };
        std::mem::replace(&mut peer.facts, facts) != facts
    }

    /// What a peer with an open connection says of itself.
    pub(super) fn facts(&self, peer: u64) -> Option<Facts> {
        let state = self.state.lock();
        let peer = state.peers.get(&peer);
        peer.filter(|peer| peer.is_connected())
            .map(|peer| peer.facts)
    }

    /// The peers with an open connection, by id.
    pub(super) fn seen(&self) -> Vec<(u64, PeerState, u64)> {
        let state = self.state.lock();
        let connected = state.peers.iter().filter(|(_, peer)| peer.is_connected());
        let mut seen: Vec<_> = connected
            .map(|(id, peer)| (*id, peer.facts.state, peer.facts.cluster))
            .collect();
        seen.sort_unstable_by_key(|(id, ..)| *id);
        seen
    }

    /// Frames that wait for the connection to each peer.
    pub(super) fn queued(&self) -> Vec<(u64, usize)> {
        let state = self.state.lock();
        let peers = state.peers.iter();
        let queued = peers.filter_map(|(id, peer)| {
            let held = peer.dialed.as_ref().or(peer.accepted.as_ref())?;
            Some((*id, held.outbox.len()))
        });
        queued.collect()
    }

    /// What passes between this member and each peer that is connected.
    pub(super) fn figures(&self) -> Vec<LinkFigures> {
        let state = self.state.lock();
        let peers = state.peers.iter();
        let figures = peers.filter_map(|(id, peer)| {
            let held = peer.dialed.as_ref().or(peer.accepted.as_ref())?;
            Some(peer.flow.figures(*id, held.outbox.load()))
        });
        figures.collect()
    }

    /// Counts anew what passes.
    pub(super) fn reset_figures(&self) {
        for peer in self.state.lock().peers.values() {
            peer.flow.reset();
        }
    }

    /// What tells the peer's dialer that the peer is there.
    pub(super) fn here(&self, peer: u64) -> Arc<Notify> {
        let mut state = self.state.lock();
        Arc::clone(&state.peers.entry(peer).or_default().here)
    }

    /// Takes no more connections and no more frames; those that are queued are still written.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        for held in state.peers.values().flat_map(Peer::all_held) {
            held.outbox.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_is_counted_from_when_the_peer_came() {
        let roster = Roster::default();
        let enter = |incarnation| {
            let about = About {
                facts: Facts {
                    cluster: 1,
                    state: PeerState::Member,
                },
                servers: 0,
                incarnation,
            };
            let place = roster.enter(2, Direction::Dialed, about, CancellationToken::new());
            place.expect("there is room")
        };
        let counts = || {
            let figures = roster.figures();
            let one = figures.first().expect("connected");
            ((one.queued, one.queued_bytes), one.sent, one.received)
        };
        let first = enter(1);
        assert!(roster.send(2, Bytes::from_static(b"abc")) && roster.send(2, Bytes::new()));
        let queued = counts().0;
        assert!(queued.0 == 2 && queued.1 >= 3, "{queued:?}");
        assert!(first.outbox.try_take(1 << 20, &mut Vec::new()));
        first.flow.receive(&[Bytes::from_static(b"x")]);
        assert_eq!(counts(), ((0, 0), 2, 1));
        roster.reset_figures();
        assert_eq!(counts(), ((0, 0), 0, 0));
        first.flow.receive(&[Bytes::from_static(b"x")]);
        // The same process connects anew, then a later one.
        let _second = enter(1);
        assert_eq!(counts().2, 1);
        let _third = enter(2);
        assert_eq!(counts().2, 0);
    }

    #[test]
    fn connections_that_end_at_once_are_counted_until_one_lasts() {
        let roster = Roster::default();
        let about = About {
            facts: Facts {
                cluster: 1,
                state: PeerState::Member,
            },
            servers: 0,
            incarnation: 1,
        };
        let enter = |direction| {
            let place = roster.enter(2, direction, about, CancellationToken::new());
            place.expect("there is room")
        };
        for count in 0..4 {
            let place = enter(Direction::Accepted);
            assert_eq!(place.brief, count);
            roster.leave(&place);
        }
        assert_eq!(enter(Direction::Dialed).brief, 0);
        let mut place = enter(Direction::Accepted);
        place.since -= PEER_BRIEF;
        roster.leave(&place);
        assert_eq!(enter(Direction::Accepted).brief, 0);
    }
}
