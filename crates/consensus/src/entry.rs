use bytes::Bytes;

/// What an entry carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EntryKind {
    /// A command of the state machine; empty for the entry that every new leader appends.
    Normal = 0,
    /// One membership change in raft's first format.
    ConfChange = 1,
    /// A list of membership changes; empty to leave a joint membership.
    ConfChangeV2 = 2,
}

impl EntryKind {
    /// The kind stored as `code`, if there is one.
    pub fn from_code(code: u8) -> Option<EntryKind> {
        match code {
            0 => Some(EntryKind::Normal),
            1 => Some(EntryKind::ConfChange),
            2 => Some(EntryKind::ConfChangeV2),
            _ => None,
        }
    }

    /// The number this kind is stored as.
    pub fn code(self) -> u8 {
        self as u8
    }
}

/// One entry of the replicated log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Position in the log, without gaps.
    pub index: u64,
    /// Term of the leader that appended it.
    pub term: u64,
    /// What `data` is.
    pub kind: EntryKind,
    /// The command, opaque here.
    pub data: Bytes,
}

/// What a member must not forget, besides the log itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HardState {
    /// Newest term this member has seen.
    pub term: u64,
    /// The member it voted for in that term, 0 for none.
    pub vote: u64,
    /// Newest index known to be committed. It may lag behind: a leader tells it again.
    pub commit: u64,
}

/// Everything one [`crate::Ready`] has to make durable before its number is reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogBatch {
    /// Replaces the stored one.
    pub hard_state: HardState,
    /// Consecutive entries, possibly none. Stored entries at and behind the first one are replaced.
    pub entries: Vec<LogEntry>,
}
