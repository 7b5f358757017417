//! Who a member is, as it tells its peers.

use bytes::{Buf, BufMut};
use quenda_node::PeerState;
use tokio::sync::watch;

const fn code(state: PeerState) -> u8 {
    match state {
        PeerState::Fresh => 0,
        PeerState::Founding => 1,
        PeerState::Joining => 2,
        PeerState::Member => 3,
    }
}

const fn from_code(code: u8) -> Option<PeerState> {
    Some(match code {
        0 => PeerState::Fresh,
        1 => PeerState::Founding,
        2 => PeerState::Joining,
        3 => PeerState::Member,
        _ => return None,
    })
}

/// What a member says of itself and what may change while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Id of the cluster, 0 while it belongs to none.
    pub cluster: u64,
    /// How far its store has come.
    pub state: PeerState,
}

impl Facts {
    /// Length on the wire.
    pub(super) const BYTES: usize = 9;

    /// Whether the configured servers still decide who belongs together.
    pub(super) const fn is_before_cluster(self) -> bool {
        matches!(self.state, PeerState::Fresh | PeerState::Founding)
    }

    /// Whether two members may talk to each other: of one cluster, or one of them of none yet.
    pub(super) const fn may_talk_to(self, other: Facts) -> bool {
        self.cluster == 0 || other.cluster == 0 || self.cluster == other.cluster
    }

    pub(super) fn put(self, out: &mut impl BufMut) {
        out.put_u64(self.cluster);
        out.put_u8(code(self.state));
    }

    /// Reads what [`Facts::put`] wrote; `None` when it is something else.
    pub(super) fn get(input: &mut &[u8]) -> Option<Facts> {
        if input.len() < Facts::BYTES {
            return None;
        }
        let cluster = input.get_u64();
        let state = from_code(input.get_u8())?;
        Some(Facts { cluster, state })
    }
}

/// Everything that one side of a handshake says of itself, beside its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct About {
    pub(super) facts: Facts,
    /// Hash of the configured servers, see [`servers_hash`].
    pub(super) servers: u64,
    /// Grows with every start of the member's process.
    pub(super) incarnation: u64,
}

impl About {
    /// Length on the wire.
    pub(super) const BYTES: usize = Facts::BYTES + 16;

    pub(super) fn put(&self, out: &mut impl BufMut) {
        self.facts.put(out);
        out.put_u64(self.servers);
        out.put_u64(self.incarnation);
    }

    /// Reads what [`About::put`] wrote; `None` when it is something else.
    pub(super) fn get(input: &mut &[u8]) -> Option<About> {
        if input.len() < About::BYTES {
            return None;
        }
        let facts = Facts::get(input)?;
        Some(About {
            facts,
            servers: input.get_u64(),
            incarnation: input.get_u64(),
        })
    }
}

/// Who this member is. Shared by all its connections; what changes is told to the peers at once.
#[derive(Debug)]
pub struct Identity {
    id: u64,
    incarnation: u64,
    servers: u64,
    facts: watch::Sender<Facts>,
}

impl Identity {
    /// A member's identity: `incarnation` grows with every start of its process (wall time in milliseconds),
    /// `servers` is the [`servers_hash`] of its configuration.
    pub fn new(id: u64, incarnation: u64, servers: u64, facts: Facts) -> Identity {
        Identity {
            id,
            incarnation,
            servers,
            facts: watch::Sender::new(facts),
        }
    }

    /// The member's id.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// What it says of itself now.
    pub fn facts(&self) -> Facts {
        *self.facts.borrow()
    }

    /// It is something else from now on.
    pub fn set(&self, facts: Facts) {
        self.facts.send_if_modified(|known| {
            let is_new = *known != facts;
            *known = facts;
            is_new
        });
    }

    pub(super) fn about(&self) -> About {
        About {
            facts: self.facts(),
            servers: self.servers,
            incarnation: self.incarnation,
        }
    }

    pub(super) fn watch(&self) -> watch::Receiver<Facts> {
        self.facts.subscribe()
    }
}

/// Hash of the configured servers' text in its canonical form: members that found a cluster together must
/// agree on it. FNV-1a, the same on every machine and in every version.
pub fn servers_hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
