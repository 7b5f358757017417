//! What the core thread knows of the ensemble, for those who ask about it.

use quenda_consensus::{Membership, Role};
use quenda_node::{Member, PeerReport, Service};

/// Entries by which another member may be behind and still counts as caught up.
const SYNCED_LAG: u64 = 1000;

/// A member that was not heard for so long does not count as connected, ms.
const SILENT_MS: u64 = 2000;

/// A member's account of the ensemble. The core thread makes it anew at every tick, so that questions never wait for
/// a core that hangs on its disk. The default is what holds before there is a member.
#[derive(Clone, Debug, Default)]
pub struct EnsembleView {
    /// Term of the log.
    pub term: u64,
    /// The leader of that term, if known.
    pub leader: Option<u64>,
    /// When this member began to lead with everything committed known, by the server's clock in ms; `None` while it
    /// does not.
    pub leads_since_ms: Option<u64>,
    /// Whether it is looking for a leader.
    pub campaigning: bool,
    /// Why it does not serve, if for another reason than the lack of a leader.
    pub trouble: Option<Trouble>,
    /// Newest entry of the log.
    pub last_index: u64,
    /// Newest entry on disk.
    pub persisted: u64,
    /// Newest entry known to be committed.
    pub committed: u64,
    /// Newest entry in the tree.
    pub applied: u64,
    /// The members that the log counts.
    pub membership: Membership,
    /// The other members.
    pub peers: Vec<PeerReport>,
    /// Requests to `sync` that wait for a round through the leader.
    pub pending_syncs: u64,
    /// Differences between digests of this member and of others that it has seen.
    pub digest_mismatches: u64,
    /// Sessions heard with little of their timeout left, as the leader counts them.
    pub sessions_renewed_late: u64,
    /// Whether the disk does not give back what it is to write, so that the member serves nobody.
    pub disk_hangs: bool,
    /// Whether others say that the member had acknowledged more than its log holds.
    pub rolled_back: bool,
}

/// Why a member does not serve, although there may be a quorum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It was taken out of the ensemble.
    Removed,
    /// Its state differs from that of the others.
    Alarmed,
}

impl EnsembleView {
    /// Takes what `member` knows now.
    pub fn refresh(&mut self, member: &Member, now_ms: u64) {
        let status = member.status();
        let since = self.leads_since_ms.filter(|_| self.term == status.term);
        let leads = member.is_serving_leader();
        self.leads_since_ms = leads.then(|| since.unwrap_or(now_ms));
        self.term = status.term;
        self.leader = status.leader;
        self.campaigning = matches!(status.role, Role::Candidate | Role::PreCandidate);
        self.trouble = match member.service() {
            Service::Serving | Service::NoLeader => None,
            Service::Removed => Some(Trouble::Removed),
            Service::Alarmed => Some(Trouble::Alarmed),
        };
        self.last_index = status.last_index;
        self.persisted = status.persisted;
        self.committed = status.commit;
        self.applied = status.applied;
        self.membership = member.membership();
        self.peers = member.peers();
        self.peers.retain(|peer| peer.id != status.id);
        self.pending_syncs = member.pending_barriers() as u64;
        self.digest_mismatches = member.digest_mismatches();
        self.sessions_renewed_late = member.tracker().renewed_late();
        self.disk_hangs = member.disk_hangs();
    }
}

/// Whether the member was heard lately.
pub fn is_connected(peer: &PeerReport) -> bool {
    peer.heard_ms_ago.is_some_and(|age| age <= SILENT_MS)
}

/// Whether the member was heard lately and has, but for what is on its way, what this one has.
pub fn is_synced(peer: &PeerReport) -> bool {
    is_connected(peer) && peer.fetching.is_none() && peer.lag <= SYNCED_LAG
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> PeerReport {
        PeerReport {
            id: 2,
            role: Role::Follower,
            voter: true,
            matched: Some(5),
            applied: 5,
            zxid: 1,
            digest: None,
            lag: SYNCED_LAG,
            heard_ms_ago: Some(SILENT_MS),
            fetching: None,
        }
    }

    #[test]
    fn who_was_heard_lately_is_connected() {
        let mut peer = report();
        assert!(is_connected(&peer) && is_synced(&peer));
        peer.heard_ms_ago = Some(SILENT_MS + 1);
        assert!(!is_connected(&peer) && !is_synced(&peer));
        peer.heard_ms_ago = None;
        assert!(!is_connected(&peer));
    }

    #[test]
    fn who_lags_or_fetches_is_not_synced() {
        let late = PeerReport {
            lag: SYNCED_LAG + 1,
            ..report()
        };
        assert!(is_connected(&late) && !is_synced(&late));
        let fetching = PeerReport {
            fetching: Some(9),
            ..report()
        };
        assert!(is_connected(&fetching) && !is_synced(&fetching));
    }
}
