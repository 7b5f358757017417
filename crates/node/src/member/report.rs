//! What a member tells its host about itself and the others.

use quenda_consensus::{Membership, Role, Status};

use super::Member;
use crate::agreement::Difference;
use crate::session_tracker::SessionTracker;
use crate::view::View;
use crate::work::{PeerReport, PeerState, Service};

impl Member {
    /// Whether this member serves clients.
    pub fn service(&self) -> Service {
        if self.is_removed() {
            Service::Removed
        } else if self.is_alarmed() {
            Service::Alarmed
        } else if self.serving {
            Service::Serving
        } else {
            Service::NoLeader
        }
    }

    /// Whether this member lets go of its clients and of the leadership because its disk does not give back
    /// what it was handed out to persist.
    pub fn disk_hangs(&self) -> bool {
        self.disk.hangs
    }

    /// Whether this member has ever had the ensemble's state. One that has not has nothing to show, to clients
    /// that accept old data either.
    pub fn has_state(&self) -> bool {
        self.has_cluster
    }

    /// Whether this member leads and knows everything that was committed before it did.
    pub fn is_serving_leader(&self) -> bool {
        self.leading_since.is_some() && self.consensus.is_leader()
    }

    /// Whether this member is handing the leadership over.
    pub fn is_transferring(&self) -> bool {
        self.consensus.is_transferring()
    }

    /// The other members with the newest entry known to be durable there; nobody unless this member leads.
    pub fn matched(&self) -> Vec<(u64, u64)> {
        let others = self
            .consensus
            .peers()
            .into_iter()
            .filter(|peer| peer.id != self.id);
        others.map(|peer| (peer.id, peer.matched)).collect()
    }

    /// The leader and its term, if there is one.
    pub fn view(&self) -> Option<View> {
        self.views.current()
    }

    /// Where consensus stands.
    pub fn status(&self) -> Status {
        self.consensus.status()
    }

    /// The membership in force.
    pub fn membership(&self) -> Membership {
        self.membership.clone()
    }

    /// What this member says about itself in handshakes.
    pub fn peer_state(&self) -> PeerState {
        match self.consensus.is_joining() {
            true => PeerState::Joining,
            false => PeerState::Member,
        }
    }

    /// How this member's state differs from that of the others, if it does.
    pub fn difference(&self) -> Option<Difference> {
        self.agreement.difference()
    }

    /// How many differences between this member's digests and those of the others were seen since it started.
    pub fn digest_mismatches(&self) -> u64 {
        self.agreement.mismatches()
    }

    /// How many connections of this member wait for a barrier.
    pub fn pending_barriers(&self) -> usize {
        self.barriers.connections()
    }

    /// The leases of the sessions; meaningful on a leader.
    pub fn tracker(&self) -> &SessionTracker {
        &self.tracker
    }

    /// All members, this one among them, by id.
    pub fn peers(&self) -> Vec<PeerReport> {
        let members = self.membership.members();
        members.into_iter().map(|id| self.report(id)).collect()
    }

    fn report(&self, id: u64) -> PeerReport {
        let status = self.consensus.status();
        let progress = self.consensus.peers();
        let progress = progress.iter().find(|peer| peer.id == id);
        let own = id == self.id;
        let peer = self.peers.get(id);
        let standing = peer.map(|peer| peer.standing.clone()).unwrap_or_default();
        let applied = if own {
            status.applied
        } else {
            standing.applied
        };
        let heard = peer.and_then(|peer| peer.heard_ms);
        let fetching = match own {
            true => self.snapshots.index(),
            false => standing.fetching,
        };
        let leads = status.leader == Some(id);
        PeerReport {
            id,
            role: match (own, leads) {
                (true, _) => status.role,
                (false, true) => Role::Leader,
                (false, false) => Role::Follower,
            },
            voter: self.membership.votes(id),
            matched: match own {
                true => Some(status.persisted),
                false => progress.map(|peer| peer.matched),
            },
            applied,
            zxid: if own { self.zxid } else { standing.zxid },
            digest: match own {
                true => self.agreement.newest(),
                false => standing.samples.iter().max().copied(),
            },
            lag: status.applied.saturating_sub(applied),
            heard_ms_ago: match own {
                true => Some(0),
                false => heard.map(|heard| self.now_ms.saturating_sub(heard)),
            },
            fetching: Some(fetching).filter(|index| *index != 0),
        }
    }

    pub(super) fn is_alarmed(&self) -> bool {
        self.agreement.difference().is_some()
    }

    /// Whether this member is no part of the ensemble: by its own knowledge, or by what others know who have
    /// newer entries.
    pub(super) fn is_removed(&self) -> bool {
        if self.consensus.is_joining() {
            return false;
        }
        let status = self.consensus.status();
        // What is known to be committed may be the very entry that a client here waits for.
        let is_current = status.applied >= status.commit;
        let dismissed = is_current && self.dismissed_at > status.applied;
        dismissed || !self.membership.contains(self.id)
    }
}
