use thiserror::Error;

/// A configuration that cannot work.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("raft configuration: {0}")]
pub struct ConfigError(pub(crate) String);

/// Why proposals were refused. None of them was appended.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ProposeError {
    /// Another member leads, or none.
    #[error("this member is not the leader")]
    NotLeader {
        /// The leader, if one is known.
        leader: Option<u64>,
    },
    /// Leadership is being handed to another member.
    #[error("leadership is being handed over")]
    Transferring,
    /// [`crate::limits::MAX_UNCOMMITTED_BYTES`] are waiting already.
    #[error("too many bytes are waiting to be committed")]
    Full,
    /// The leader is no longer part of the membership.
    #[error("this member has been removed from the ensemble")]
    Removed,
}

/// Why a membership change was refused or could not be applied.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum MembershipError {
    /// The proposal itself was refused.
    #[error(transparent)]
    Propose(#[from] ProposeError),
    /// An earlier change is not applied yet.
    #[error("an earlier membership change is still in progress")]
    InProgress,
    /// The change makes no sense for the current membership.
    #[error("membership change: {0}")]
    Invalid(String),
}

/// Why a message of another member was not taken.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum StepError {
    /// The bytes are no raft message.
    #[error("undecodable raft message: {0}")]
    Undecodable(String),
    /// The message is for another member.
    #[error("raft message for member {to}")]
    Misdirected {
        /// The member it is for.
        to: u64,
    },
    /// A kind of message that only a member itself may create, or that Quenda never sends.
    #[error("raft message of a kind that no member sends")]
    Unexpected,
    /// The sender is not part of the membership.
    #[error("raft message from member {from}, which is not part of the ensemble")]
    UnknownMember {
        /// The sender.
        from: u64,
    },
    /// A call for votes to a member that has no membership yet: it may be a voter that lost its data, and
    /// then what it had promised is gone too.
    #[error("this member is joining and votes for nobody")]
    Joining,
    /// The leader believes that this member holds entries that it does not have: it lost its data.
    #[error("the leader believes entries up to {believed} to be here, but the log ends at {last}")]
    LostEntries {
        /// Newest entry that the leader takes for durable here and committed.
        believed: u64,
        /// Last entry of the log.
        last: u64,
    },
    /// Raft refused it.
    #[error("raft: {0}")]
    Refused(String),
}

/// Why a read index cannot be asked for now. A request that was taken may vanish as well (a lost
/// message, a change of leader): the host times out and asks again with a new context.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ReadIndexError {
    /// No leader is known.
    #[error("no leader is known")]
    NoLeader,
    /// This leader has not committed an entry of its own term yet.
    #[error("the leader has not committed an entry of its term yet")]
    NotCommittedInTerm,
}
