//! The links between members and between clients and members.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::{Bytes, BytesMut};

use crate::schedule::{MS, Micros};

/// Frames that wait on one link before more are dropped.
const QUEUE_MAX: usize = 512;

/// How well frames between members travel.
#[derive(Debug, Clone)]
pub struct Weather {
    /// Least and greatest delay of a frame.
    pub delay: (Micros, Micros),
    /// Frames travel one by one, instead of in order on a stream: they may be lost, doubled, and overtake
    /// each other.
    pub datagrams: bool,
    /// In 10 000 datagrams: lost.
    pub loss: u64,
    /// In 10 000 datagrams: doubled.
    pub doubled: u64,
    /// In 10 000 frames: the stream breaks, and what is on its way is lost.
    pub breaks: u64,
}

/// The connection that one member has dialed to another.
#[derive(Debug, Default)]
pub struct PeerLink {
    /// Number of the connection, 0 for none. Frames of an earlier one are lost.
    pub connection: u64,
    /// Frames on their way, with the time of their arrival.
    pub queue: VecDeque<(Micros, Bytes)>,
    /// An event for the head of the queue is planned.
    pub pumping: bool,
}

/// What travels on a client's connection.
#[derive(Debug)]
pub enum Item {
    /// The connection is to be opened, or was.
    Open,
    /// Bytes.
    Bytes(BytesMut),
    /// No more.
    Close,
}

/// One direction of a client's connection.
#[derive(Debug, Default)]
pub struct Pipe {
    /// What is on its way, with the time of its arrival.
    pub queue: VecDeque<(Micros, Item)>,
    /// An event for the head of the queue is planned.
    pub pumping: bool,
}

/// One client's connection to a member.
#[derive(Debug)]
pub struct ClientLink {
    /// The client.
    pub client: usize,
    /// The member.
    pub member: u64,
    /// Start of the member that accepted it.
    pub boot: u64,
    /// Bytes of the client.
    pub to_member: Pipe,
    /// Bytes of the member.
    pub to_client: Pipe,
}

/// All links.
#[derive(Debug)]
pub struct Network {
    /// How well frames travel.
    pub weather: Weather,
    /// Directions between members in which nothing arrives, with how often they are blocked.
    blocked: BTreeMap<(u64, u64), u32>,
    /// Pairs of client and member that do not reach each other.
    pub clients_blocked: BTreeSet<(usize, u64)>,
    /// Connections between members, by who dialed whom.
    pub peers: BTreeMap<(u64, u64), PeerLink>,
    /// Connections of clients.
    pub links: BTreeMap<u64, ClientLink>,
    next: u64,
}

impl Network {
    /// Nobody is connected.
    pub fn new(weather: Weather) -> Network {
        Network {
            weather,
            blocked: BTreeMap::new(),
            clients_blocked: BTreeSet::new(),
            peers: BTreeMap::new(),
            links: BTreeMap::new(),
            next: 0,
        }
    }

    /// A number that no connection had before.
    pub fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Blocks a direction.
    pub fn block(&mut self, from: u64, to: u64) {
        *self.blocked.entry((from, to)).or_insert(0) += 1;
    }

    /// Takes one block of a direction back.
    pub fn unblock(&mut self, from: u64, to: u64) {
        if let Some(count) = self.blocked.get_mut(&(from, to)) {
            *count -= 1;
            if *count == 0 {
                self.blocked.remove(&(from, to));
            }
        }
    }

    /// Takes all blocks back.
    pub fn heal(&mut self) {
        self.blocked.clear();
        self.clients_blocked.clear();
    }

    /// Whether something arrives in this direction.
    pub fn is_open(&self, from: u64, to: u64) -> bool {
        !self.blocked.contains_key(&(from, to))
    }

    /// Whether something arrives in both.
    pub fn is_open_both(&self, one: u64, other: u64) -> bool {
        self.is_open(one, other) && self.is_open(other, one)
    }

    /// Whether a connection stands.
    pub fn is_connected(&self, from: u64, to: u64) -> bool {
        self.peers
            .get(&(from, to))
            .is_some_and(|link| link.connection != 0)
    }

    /// Puts a frame on a stream; false when it is dropped.
    pub fn enqueue(&mut self, from: u64, to: u64, at: Micros, frame: Bytes) -> bool {
        let link = self.peers.entry((from, to)).or_default();
        if link.connection == 0 || link.queue.len() >= QUEUE_MAX {
            return false;
        }
        let at = link.queue.back().map_or(at, |(last, _)| at.max(*last));
        link.queue.push_back((at, frame));
        true
    }

    /// Ends every connection of a member.
    pub fn disconnect(&mut self, member: u64) {
        for ((from, to), link) in &mut self.peers {
            if *from == member || *to == member {
                link.connection = 0;
                link.queue.clear();
            }
        }
    }
}

impl Weather {
    /// A quick network that loses nothing.
    pub fn fair() -> Weather {
        Weather {
            delay: (MS / 10, MS),
            datagrams: false,
            loss: 0,
            doubled: 0,
            breaks: 0,
        }
    }
}
