use crate::membership::Membership;

/// A member's part at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Follows a leader, or waits for one.
    Follower,
    /// Asks whether an election would succeed.
    PreCandidate,
    /// Asks for votes.
    Candidate,
    /// Leads.
    Leader,
}

impl Role {
    pub(crate) fn from_raft(role: raft::StateRole) -> Role {
        match role {
            raft::StateRole::Follower => Role::Follower,
            raft::StateRole::PreCandidate => Role::PreCandidate,
            raft::StateRole::Candidate => Role::Candidate,
            raft::StateRole::Leader => Role::Leader,
        }
    }
}

/// Where a member stands. Cheap to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// This member.
    pub id: u64,
    /// Its part.
    pub role: Role,
    /// The term it is in.
    pub term: u64,
    /// The leader of that term, if known.
    pub leader: Option<u64>,
    /// Newest committed entry.
    pub commit: u64,
    /// Newest entry reported as applied.
    pub applied: u64,
    /// Newest entry reported as durable here.
    pub persisted: u64,
    /// First entry still in the window.
    pub first_index: u64,
    /// Last entry, durable or not.
    pub last_index: u64,
    /// Bytes of commands in the window.
    pub window_bytes: u64,
    /// Whether an entry of the current term is committed. Only then does a leader know everything that
    /// was ever committed.
    pub committed_in_term: bool,
}

/// What a leader knows of one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerStatus {
    /// The member.
    pub id: u64,
    /// Newest entry known to be durable there.
    pub matched: u64,
    /// Whether it answered within the last election timeout.
    pub active: bool,
    /// The snapshot it is to install, if it needs one.
    pub pending_snapshot: Option<u64>,
    /// Whether it votes.
    pub voter: bool,
}

impl PeerStatus {
    pub(crate) fn new(
        id: u64,
        progress: &raft::Progress,
        membership: &Membership,
        is_self: bool,
    ) -> PeerStatus {
        let needs_snapshot = progress.state == raft::ProgressState::Snapshot;
        PeerStatus {
            id,
            matched: progress.matched,
            active: is_self || progress.recent_active,
            pending_snapshot: needs_snapshot.then_some(progress.pending_snapshot),
            voter: membership.voters.contains(&id) || membership.outgoing_voters.contains(&id),
        }
    }
}
