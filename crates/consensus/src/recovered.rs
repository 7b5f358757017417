use thiserror::Error;

use crate::entry::{HardState, LogEntry};
use crate::membership::Membership;

/// Where the log of every new ensemble begins: no entry exists at or below it. It is not 0, so that a
/// member that joins later can never start from the empty log with the wrong membership: it needs a
/// snapshot.
pub const BOOTSTRAP_INDEX: u64 = 1;

/// Term of [`BOOTSTRAP_INDEX`]; the first leader's term is the one behind it.
pub const BOOTSTRAP_TERM: u64 = 1;

/// What a member knows when it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// Term, vote and commit index.
    pub hard_state: HardState,
    /// The membership as of `applied`.
    pub membership: Membership,
    /// Index and term of the newest entry that is no longer in the log.
    pub compacted: (u64, u64),
    /// The log behind it, without gaps.
    pub entries: Vec<LogEntry>,
    /// Newest entry whose effect the state machine holds.
    pub applied: u64,
}

/// A recovered log that contradicts itself.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RecoveredError {
    /// Two neighbours do not follow each other.
    #[error("log entry {expected} is missing: entry {found} follows instead")]
    Gap {
        /// The index that should come.
        expected: u64,
        /// The index that came.
        found: u64,
    },
    /// A term that goes back.
    #[error("log entry {index} has term {term} behind term {previous}")]
    TermWentBack {
        /// The entry.
        index: u64,
        /// Its term.
        term: u64,
        /// The term of the entry before it.
        previous: u64,
    },
    /// The state machine is older than the log's start, or newer than its end.
    #[error("the state holds entries up to {applied}, but the log covers {first} to {last}")]
    AppliedOutsideLog {
        /// Newest applied entry.
        applied: u64,
        /// First entry of the log.
        first: u64,
        /// Last entry of the log.
        last: u64,
    },
    /// More is committed than the log has.
    #[error("entries up to {commit} are committed, but the log ends at {last}")]
    CommitBeyondLog {
        /// Recovered commit index.
        commit: u64,
        /// Last entry of the log.
        last: u64,
    },
    /// An entry is newer than the member's term.
    #[error("the log reaches term {log}, but the member has only seen term {seen}")]
    TermBehindLog {
        /// Term of the last entry.
        log: u64,
        /// Term in the hard state.
        seen: u64,
    },
}

impl Recovered {
    /// The start of a new ensemble. Every founding member starts from the same voters and learners.
    pub fn bootstrap(
        voters: impl IntoIterator<Item = u64>,
        learners: impl IntoIterator<Item = u64>,
    ) -> Recovered {
        Recovered {
            hard_state: HardState {
                term: BOOTSTRAP_TERM,
                vote: 0,
                commit: BOOTSTRAP_INDEX,
            },
            membership: Membership {
                learners: learners.into_iter().collect(),
                ..Membership::of_voters(voters)
            },
            compacted: (BOOTSTRAP_INDEX, BOOTSTRAP_TERM),
            entries: Vec::new(),
            applied: BOOTSTRAP_INDEX,
        }
    }

    /// The start of a member that joins an ensemble: it knows nothing, votes for nobody, and waits for
    /// a snapshot.
    pub fn joining() -> Recovered {
        Recovered {
            hard_state: HardState::default(),
            membership: Membership::default(),
            compacted: (0, 0),
            entries: Vec::new(),
            applied: 0,
        }
    }

    /// Index of the last entry, or of the point the log was compacted to.
    pub fn last_index(&self) -> u64 {
        self.compacted.0 + self.entries.len() as u64
    }

    /// Whether its log ever held an entry. Others may count on what is in it, also when the state machine
    /// has not applied any of it yet.
    pub fn has_history(&self) -> bool {
        self.last_index() > BOOTSTRAP_INDEX
    }

    /// Checks that log, hard state and applied index fit together.
    ///
    /// # Errors
    /// The first contradiction. A member in such a state has lost something it had promised to keep.
    pub fn validate(&self) -> Result<(), RecoveredError> {
        let (mut index, mut term) = self.compacted;
        for entry in &self.entries {
            if entry.index != index + 1 {
                return Err(RecoveredError::Gap {
                    expected: index + 1,
                    found: entry.index,
                });
            }
            if entry.term < term {
                return Err(RecoveredError::TermWentBack {
                    index: entry.index,
                    term: entry.term,
                    previous: term,
                });
            }
            (index, term) = (entry.index, entry.term);
        }
        if self.applied < self.compacted.0 || self.applied > index {
            return Err(RecoveredError::AppliedOutsideLog {
                applied: self.applied,
                first: self.compacted.0 + 1,
                last: index,
            });
        }
        if self.hard_state.commit > index {
            return Err(RecoveredError::CommitBeyondLog {
                commit: self.hard_state.commit,
                last: index,
            });
        }
        if self.hard_state.term < term {
            return Err(RecoveredError::TermBehindLog {
                log: term,
                seen: self.hard_state.term,
            });
        }
        Ok(())
    }
}
