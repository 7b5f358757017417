//! How much a leader has proposed that is not committed yet.

use std::collections::VecDeque;

/// Raft bounds this as well, but does not see the commands.
#[derive(Debug, Default)]
pub(crate) struct Uncommitted {
    term: u64,
    /// (index, bytes) of what was proposed in that term.
    entries: VecDeque<(u64, u64)>,
    bytes: u64,
}

impl Uncommitted {
    /// Whether so much more fits in front of `max`: one proposal always does.
    pub(crate) fn admits(&mut self, term: u64, bytes: u64, max: u64) -> bool {
        if self.term != term {
            *self = Uncommitted {
                term,
                ..Uncommitted::default()
            };
        }
        bytes == 0 || self.bytes == 0 || self.bytes + bytes <= max
    }

    /// It was proposed, as this entry and those in front of it.
    pub(crate) fn proposed(&mut self, last: u64, bytes: u64) {
        self.entries.push_back((last, bytes));
        self.bytes += bytes;
    }

    /// Everything up to this entry is committed.
    pub(crate) fn committed(&mut self, through: u64) {
        while let Some((index, bytes)) = self.entries.front()
            && *index <= through
        {
            self.bytes -= bytes;
            self.entries.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_proposal_always_fits_and_the_bound_is_given_back() {
        let mut uncommitted = Uncommitted::default();
        assert!(uncommitted.admits(1, 100, 10));
        uncommitted.proposed(3, 100);
        assert!(!uncommitted.admits(1, 1, 10));
        assert!(
            uncommitted.admits(1, 0, 10),
            "what leaves a joint membership"
        );
        uncommitted.committed(2);
        assert!(!uncommitted.admits(1, 1, 10));
        uncommitted.committed(3);
        assert!(uncommitted.admits(1, 8, 10));
        uncommitted.proposed(4, 8);
        assert!(uncommitted.admits(1, 2, 10));
        assert!(!uncommitted.admits(1, 3, 10));
        assert!(uncommitted.admits(2, 3, 10), "another term");
    }
}
