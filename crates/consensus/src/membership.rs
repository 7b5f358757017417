use bytes::Bytes;
use prost::Message as _;
use raft::eraftpb::{ConfChange, ConfChangeSingle, ConfChangeType, ConfChangeV2, ConfState};
use raft::prelude::ConfChangeTransition;

use crate::entry::{EntryKind, LogEntry};
use crate::error::MembershipError;

/// Who takes part, as of one applied entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Membership {
    /// Members that vote.
    pub voters: Vec<u64>,
    /// Members that follow without a vote.
    pub learners: Vec<u64>,
    /// Voters of the membership that is being left; empty unless joint.
    pub outgoing_voters: Vec<u64>,
    /// Outgoing voters that become learners when the joint membership is left.
    pub next_learners: Vec<u64>,
    /// Whether the leader leaves the joint membership by itself.
    pub auto_leave: bool,
}

impl Membership {
    /// A membership of voters alone.
    pub fn of_voters(voters: impl IntoIterator<Item = u64>) -> Membership {
        Membership {
            voters: voters.into_iter().collect(),
            ..Membership::default()
        }
    }

    /// Whether nobody takes part: a member that joins knows no membership yet.
    pub fn is_empty(&self) -> bool {
        self.voters.is_empty() && self.learners.is_empty()
    }

    /// Whether two memberships are in force at once.
    pub fn is_joint(&self) -> bool {
        !self.outgoing_voters.is_empty()
    }

    /// Whether the member takes part, with or without a vote.
    pub fn contains(&self, id: u64) -> bool {
        self.votes(id) || self.learners.contains(&id)
    }

    /// Whether the member votes, in the new membership or in the one that is being left.
    pub fn votes(&self, id: u64) -> bool {
        self.voters.contains(&id) || self.outgoing_voters.contains(&id)
    }

    /// Every member named here, ascending, each once.
    pub fn members(&self) -> Vec<u64> {
        let mut members: Vec<u64> = [&self.voters, &self.learners, &self.outgoing_voters]
            .into_iter()
            .flatten()
            .copied()
            .collect();
        members.sort_unstable();
        members.dedup();
        members
    }

    /// From raft's form, sorted: raft keeps members in hash sets.
    pub(crate) fn from_raft(state: ConfState) -> Membership {
        let sorted = |mut ids: Vec<u64>| {
            ids.sort_unstable();
            ids
        };
        Membership {
            voters: sorted(state.voters),
            learners: sorted(state.learners),
            outgoing_voters: sorted(state.voters_outgoing),
            next_learners: sorted(state.learners_next),
            auto_leave: state.auto_leave,
        }
    }

    pub(crate) fn to_raft(&self) -> ConfState {
        ConfState {
            voters: self.voters.clone(),
            learners: self.learners.clone(),
            voters_outgoing: self.outgoing_voters.clone(),
            learners_next: self.next_learners.clone(),
            auto_leave: self.auto_leave,
        }
    }
}

/// One step of a membership change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MembershipChange {
    /// Makes a new member or a learner a voter.
    AddVoter(u64),
    /// Makes a new member or a voter a learner.
    AddLearner(u64),
    /// Ends a member's part.
    Remove(u64),
}

impl MembershipChange {
    fn to_raft(self) -> ConfChangeSingle {
        let (kind, node_id) = match self {
            MembershipChange::AddVoter(id) => (ConfChangeType::AddNode, id),
            MembershipChange::AddLearner(id) => (ConfChangeType::AddLearnerNode, id),
            MembershipChange::Remove(id) => (ConfChangeType::RemoveNode, id),
        };
        ConfChangeSingle {
            change_type: kind as i32,
            node_id,
        }
    }
}

/// Raft's form of `changes`: one change is direct, several go through a joint membership that the
/// leader leaves by itself.
pub(crate) fn to_raft(changes: &[MembershipChange], context: Vec<u8>) -> ConfChangeV2 {
    ConfChangeV2 {
        transition: ConfChangeTransition::Auto as i32,
        changes: changes.iter().map(|change| change.to_raft()).collect(),
        context,
    }
}

/// The command that travels with a membership change, if there is one; `None` for other entries too.
///
/// # Errors
/// The entry is damaged.
pub fn conf_context(entry: &LogEntry) -> Result<Option<Bytes>, MembershipError> {
    let change = decode(entry)?;
    Ok(change
        .map(|change| Bytes::from(change.context))
        .filter(|context| !context.is_empty()))
}

/// The change that a committed entry carries; `None` if it carries a command.
pub(crate) fn decode(entry: &LogEntry) -> Result<Option<ConfChangeV2>, MembershipError> {
    let undecodable = |error: prost::DecodeError| {
        MembershipError::Invalid(format!("entry {}: {error}", entry.index))
    };
    match entry.kind {
        EntryKind::Normal => Ok(None),
        EntryKind::ConfChange => {
            let change = ConfChange::decode(entry.data.clone()).map_err(undecodable)?;
            Ok(Some(raft::prelude::ConfChangeV2 {
                transition: ConfChangeTransition::Auto as i32,
                changes: vec![ConfChangeSingle {
                    change_type: change.change_type,
                    node_id: change.node_id,
                }],
                context: change.context,
            }))
        }
        EntryKind::ConfChangeV2 => ConfChangeV2::decode(entry.data.clone())
            .map(Some)
            .map_err(undecodable),
    }
}
