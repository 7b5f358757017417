//! Who leads, by this member's knowledge, and what follows for what is in flight.

use crate::limits::LEADERLESS_MS;

/// A leader in its term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// The term.
    pub term: u64,
    /// The leader.
    pub leader: u64,
}

/// Follows the views of a member.
#[derive(Debug, Default)]
pub struct Views {
    /// The newest one; it outlives the leader's silence.
    last: Option<View>,
    current: Option<View>,
    leaderless_since: Option<u64>,
}

/// What a look at the view has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// The leader is who it was.
    Same,
    /// Another leader, or the same one in a later term: what was sent to the last one may be lost.
    New(View),
    /// There is none at the moment.
    Leaderless,
    /// There has been none for so long that nobody is served any more.
    Lost,
}

impl Views {
    /// Takes the view of this moment.
    pub fn follow(&mut self, view: Option<View>, now_ms: u64) -> Turn {
        self.current = view;
        let Some(view) = view else {
            let since = *self.leaderless_since.get_or_insert(now_ms);
            return match now_ms.saturating_sub(since) >= LEADERLESS_MS {
                true => Turn::Lost,
                false => Turn::Leaderless,
            };
        };
        self.leaderless_since = None;
        if self.last == Some(view) {
            return Turn::Same;
        }
        self.last = Some(view);
        Turn::New(view)
    }

    /// The leader, if there is one.
    pub fn current(&self) -> Option<View> {
        self.current
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: View = View { term: 1, leader: 1 };
    const B: View = View { term: 2, leader: 2 };

    #[test]
    fn a_leader_that_comes_back_in_its_term_is_no_new_one() {
        let mut views = Views::default();
        assert_eq!(views.follow(Some(A), 0), Turn::New(A));
        assert_eq!(views.follow(None, 10), Turn::Leaderless);
        assert_eq!(views.follow(Some(A), 20), Turn::Same);
        assert_eq!(views.follow(None, 30), Turn::Leaderless);
        assert_eq!(views.follow(Some(B), 40), Turn::New(B));
        assert_eq!(views.current(), Some(B));
    }

    #[test]
    fn a_leader_is_missed_for_a_while() {
        let mut views = Views::default();
        assert_eq!(views.follow(None, 100), Turn::Leaderless);
        assert_eq!(views.follow(None, 99 + LEADERLESS_MS), Turn::Leaderless);
        assert_eq!(views.follow(None, 100 + LEADERLESS_MS), Turn::Lost);
        assert_eq!(views.follow(Some(A), 200 + LEADERLESS_MS), Turn::New(A));
        assert_eq!(views.follow(None, 300 + LEADERLESS_MS), Turn::Leaderless);
    }
}
