//! The leader's view of which sessions are alive.
//!
//! Deadlines are in the monotonic time of the member that leads; they are never replicated. A session that
//! stays silent for its timeout is reported once, and its end then travels through the log.

use std::collections::{BTreeSet, HashMap};

use crate::limits::HELD_UP_MS;

/// When a session was heard and how long it may stay silent.
#[derive(Debug, Clone, Copy)]
struct Lease {
    generation: u64,
    timeout_ms: u64,
    deadline_ms: u64,
    /// The member that heard it last, 0 if none did since this one leads.
    member: u64,
}

/// Deadlines of all sessions.
#[derive(Debug, Default)]
pub struct SessionTracker {
    leases: HashMap<i64, Lease>,
    /// (deadline, session), the next to expire first. Holds exactly the sessions in `leases`.
    deadlines: BTreeSet<(u64, i64)>,
    /// See [`SessionTracker::renewed_late`].
    renewed_late: u64,
}

impl SessionTracker {
    /// Starts to track a session, or gives it a new timeout; either way it gets the whole of it.
    pub fn open(&mut self, session: i64, generation: u64, timeout_ms: u64, now_ms: u64) {
        self.close(session);
        let deadline_ms = now_ms + timeout_ms;
        let lease = Lease {
            generation,
            timeout_ms,
            deadline_ms,
            member: 0,
        };
        self.leases.insert(session, lease);
        self.deadlines.insert((deadline_ms, session));
    }

    /// Forgets a session that has ended.
    pub fn close(&mut self, session: i64) {
        if let Some(lease) = self.leases.remove(&session) {
            self.deadlines.remove(&(lease.deadline_ms, session));
        }
    }

    /// A member has heard a session. Unknown ones are ignored: their end is already in the log.
    pub fn touch(&mut self, session: i64, member: u64, now_ms: u64) {
        if let Some(lease) = self.leases.get_mut(&session) {
            lease.member = member;
            let left_ms = lease.deadline_ms.saturating_sub(now_ms);
            self.renewed_late += u64::from(left_ms < lease.timeout_ms / 3);
        }
        self.prolong(session, now_ms);
    }

    fn prolong(&mut self, session: i64, now_ms: u64) {
        if let Some(lease) = self.leases.get(&session) {
            let deadline_ms = lease.deadline_ms.max(now_ms + lease.timeout_ms);
            self.set_deadline(session, deadline_ms);
        }
    }

    /// The sessions whose deadline has passed, with their generations. Each is reported once per timeout,
    /// so that the end of a session is asked for again should the first request be lost. One that
    /// `is_held_up` on the member that heard it last is looked at again after [`HELD_UP_MS`]: it is not its
    /// client that is silent. A session gets its whole timeout from the moment until which that member
    /// `may_have_heard` it unknown to this one: a client that was answered counts from there.
    pub fn expired(
        &mut self,
        now_ms: u64,
        mut is_held_up: impl FnMut(i64, u64) -> bool,
        may_have_heard_until: impl Fn(u64) -> u64,
    ) -> Vec<(i64, u64)> {
        let mut expired = Vec::new();
        while let Some(&(deadline_ms, session)) = self.deadlines.first() {
            if deadline_ms > now_ms {
                break;
            }
            let lease = self.leases.get(&session).copied();
            if lease.is_some_and(|lease| is_held_up(session, lease.member)) {
                self.set_deadline(session, now_ms + HELD_UP_MS);
                continue;
            }
            let unknown_until_ms = lease.map_or(0, |lease| {
                may_have_heard_until(lease.member) + lease.timeout_ms
            });
            if unknown_until_ms > now_ms {
                self.set_deadline(session, unknown_until_ms);
                continue;
            }
            expired.extend(lease.map(|lease| (session, lease.generation)));
            self.prolong(session, now_ms);
        }
        expired
    }

    fn set_deadline(&mut self, session: i64, deadline_ms: u64) {
        if let Some(lease) = self.leases.get_mut(&session) {
            self.deadlines.remove(&(lease.deadline_ms, session));
            lease.deadline_ms = deadline_ms;
            self.deadlines.insert((deadline_ms, session));
        }
    }

    /// Gives every session `pause_ms` more: the member itself was stopped that long and heard nobody.
    pub fn extend_all(&mut self, pause_ms: u64) {
        self.deadlines = std::mem::take(&mut self.deadlines)
            .into_iter()
            .map(|(deadline_ms, session)| (deadline_ms + pause_ms, session))
            .collect();
        for lease in self.leases.values_mut() {
            lease.deadline_ms += pause_ms;
        }
    }

    /// How often a session was heard with less than a third of its timeout left: clients ping when a third has passed,
    /// so something held it up.
    pub fn renewed_late(&self) -> u64 {
        self.renewed_late
    }

    /// Number of sessions.
    pub fn len(&self) -> usize {
        self.leases.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.leases.is_empty()
    }

    /// (deadline, session) pairs, the next to expire first, in this member's monotonic milliseconds.
    pub fn deadlines(&self) -> impl Iterator<Item = (u64, i64)> + '_ {
        self.deadlines.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nobody(_: i64, _: u64) -> bool {
        false
    }

    fn all_known(_: u64) -> u64 {
        0
    }

    #[test]
    fn silence_ends_a_session_and_a_touch_saves_it() {
        let mut tracker = SessionTracker::default();
        tracker.open(1, 1, 4000, 0);
        tracker.open(2, 5, 4000, 0);
        tracker.touch(2, 3, 3000);
        assert_eq!(tracker.expired(3999, nobody, all_known), []);
        assert_eq!(tracker.expired(4000, nobody, all_known), [(1, 1)]);
        assert_eq!(tracker.expired(6999, nobody, all_known), []);
        assert_eq!(tracker.expired(7000, nobody, all_known), [(2, 5)]);
        assert_eq!(tracker.renewed_late(), 1);
    }

    #[test]
    fn a_session_that_the_member_holds_up_is_not_silent() {
        let mut tracker = SessionTracker::default();
        tracker.open(1, 1, 4000, 0);
        tracker.open(2, 1, 4000, 0);
        tracker.touch(1, 7, 0);
        let first = |session, member| (session, member) == (1, 7);
        assert_eq!(tracker.expired(4000, first, all_known), [(2, 1)]);
        tracker.close(2);
        assert_eq!(tracker.expired(4000 + HELD_UP_MS, first, all_known), []);
        assert_eq!(
            tracker.expired(4000 + 2 * HELD_UP_MS - 1, nobody, all_known),
            []
        );
        assert_eq!(
            tracker.expired(4000 + 2 * HELD_UP_MS, nobody, all_known),
            [(1, 1)]
        );
    }

    #[test]
    fn a_lost_end_is_asked_for_again() {
        let mut tracker = SessionTracker::default();
        tracker.open(1, 1, 100, 0);
        assert_eq!(tracker.expired(100, nobody, all_known), [(1, 1)]);
        assert_eq!(tracker.expired(150, nobody, all_known), []);
        assert_eq!(tracker.expired(200, nobody, all_known), [(1, 1)]);
        tracker.close(1);
        assert_eq!(tracker.expired(1000, nobody, all_known), []);
        assert!(tracker.is_empty());
    }

    #[test]
    fn a_pause_of_the_member_counts_for_nobody() {
        let mut tracker = SessionTracker::default();
        tracker.open(1, 1, 100, 0);
        tracker.extend_all(5000);
        assert_eq!(tracker.expired(5099, nobody, all_known), []);
        assert_eq!(tracker.expired(5100, nobody, all_known), [(1, 1)]);
    }

    #[test]
    fn a_member_that_failed_may_have_heard_its_sessions_until_then() {
        let mut tracker = SessionTracker::default();
        tracker.open(1, 1, 4000, 0);
        tracker.open(2, 1, 4000, 0);
        tracker.touch(1, 7, 0);
        tracker.touch(2, 8, 0);
        let failed = |member| if member == 7 { 3000 } else { 0 };
        assert_eq!(tracker.expired(4000, nobody, failed), [(2, 1)]);
        tracker.close(2);
        assert_eq!(tracker.expired(6999, nobody, failed), []);
        assert_eq!(tracker.expired(7000, nobody, failed), [(1, 1)]);
    }
}
