//! Where the ids of new sessions come from.

use std::sync::atomic::{AtomicU64, Ordering};

const LOW_BITS: u32 = 56;
const COUNTER_BITS: u32 = 16;
const LOW_MASK: u64 = (1 << LOW_BITS) - 1;
/// Ids that a run of the member reserves: those of 50 000 new sessions a second for four days. As a time, four
/// minutes: a member that fails and is started again and again must not get to the end of the ids.
const RESERVED_IDS: u64 = 1 << 34;

/// Ids for the sessions that are opened on one member: the member in the high byte, then 40 bits of the
/// wall clock at the member's start, then a counter of 16 bits that runs over into the time.
///
/// Ids stay unique over restarts whatever the clock does, because [`SessionIds::next_behind`] keeps clear
/// of all that were ever given out: the tree knows the newest.
#[derive(Debug)]
pub struct SessionIds {
    member: u64,
    next: AtomicU64,
    /// Ids below this are not given out by a later run of the member, whatever its clock says.
    reserved: AtomicU64,
}

/// A member number that cannot stand in the high byte of a session id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("member {0} cannot number sessions: use 1 to 127 or 129 to 254")]
pub struct MemberOutOfRange(pub u64);

impl SessionIds {
    /// Starts at `time_ms`, milliseconds since 1970. The high bytes 0x80 and 0xFF mark containers and
    /// TTL znodes and 0 would allow the id 0, so no member may have these numbers.
    pub fn new(member: u64, time_ms: i64) -> Result<SessionIds, MemberOutOfRange> {
        if !matches!(member, 1..=0x7F | 0x81..=0xFE) {
            return Err(MemberOutOfRange(member));
        }
        Ok(SessionIds {
            member,
            next: AtomicU64::new((time_ms as u64) << COUNTER_BITS & LOW_MASK),
            reserved: AtomicU64::new(0),
        })
    }

    /// Starts behind `floor`, which an earlier run has reserved, and gives what this run has to reserve, for
    /// good, before [`Self::next_reserved`] gives anything.
    pub fn begin_reservation(&self, floor: u64) -> u64 {
        let next = self.next.fetch_max(floor, Ordering::Relaxed).max(floor);
        next.saturating_add(RESERVED_IDS).min(LOW_MASK)
    }

    /// What [`Self::begin_reservation`] gave is reserved.
    pub fn reserve(&self, end: u64) {
        self.reserved.store(end, Ordering::Relaxed);
    }

    /// As [`Self::next_behind`], for a session that the state will not know: an id that no later run gives
    /// out. `None` when there is none.
    pub fn next_reserved(&self, newest: Option<i64>) -> Option<i64> {
        let id = self.next_behind(newest);
        let is_reserved = (id as u64 & LOW_MASK) < self.reserved.load(Ordering::Relaxed);
        is_reserved.then_some(id)
    }

    /// The next id, behind the newest session that the member ever opened.
    pub fn next_behind(&self, newest: Option<i64>) -> i64 {
        if let Some(newest) = newest {
            let free = (newest as u64 & LOW_MASK) + 1;
            self.next.fetch_max(free, Ordering::Relaxed);
        }
        let low = self.next.fetch_add(1, Ordering::Relaxed) & LOW_MASK;
        (self.member << LOW_BITS | low) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_carry_member_and_time() {
        let ids = SessionIds::new(3, 0x01FF_1234_5678).expect("a member");
        assert_eq!(ids.next_behind(None), 0x03FF_1234_5678_0000);
        assert_eq!(ids.next_behind(None), 0x03FF_1234_5678_0001);
    }

    #[test]
    fn a_clock_that_went_back_gives_no_id_twice() {
        let newest = Some(0x0300_0000_5000_0007);
        let ids = SessionIds::new(3, 0x1000).expect("a member");
        assert_eq!(ids.next_behind(newest), 0x0300_0000_5000_0008);
        assert_eq!(ids.next_behind(newest), 0x0300_0000_5000_0009);
        let ids = SessionIds::new(3, 0x9000).expect("a member");
        assert_eq!(ids.next_behind(newest), 0x0300_0000_9000_0000);
    }

    #[test]
    fn what_a_run_reserved_no_later_one_gives_out() {
        let ids = SessionIds::new(3, 0x9000).expect("a member");
        assert_eq!(ids.next_reserved(None), None);
        let end = ids.begin_reservation(0);
        ids.reserve(end);
        let given = ids.next_reserved(None).expect("an id");
        // The clock has gone back.
        let later = SessionIds::new(3, 0x1000).expect("a member");
        later.reserve(later.begin_reservation(end));
        let next = later.next_reserved(None).expect("an id");
        assert!(next > given && next as u64 & LOW_MASK == end);
        // The state knows one beyond what is reserved.
        let newest = 0x0300_0000_0000_0000 | (end + RESERVED_IDS) as i64;
        assert_eq!(later.next_reserved(Some(newest)), None);
    }

    #[test]
    fn a_million_starts_that_fail_do_not_use_up_the_ids() {
        let time_ms = 1_796_000_000_000;
        let end = (0..1_000_000).fold(0, |floor, _| {
            let ids = SessionIds::new(3, time_ms).expect("a member");
            ids.begin_reservation(floor)
        });
        assert!(end + RESERVED_IDS < LOW_MASK, "{end:#x}");
    }

    #[test]
    fn the_marks_of_containers_and_ttl_are_never_used() {
        for member in [0, 0x80, 0xFF, 256] {
            assert_eq!(
                SessionIds::new(member, 1).map(|ids| ids.next_behind(None)),
                Err(MemberOutOfRange(member))
            );
        }
        let ids = SessionIds::new(0x7F, -1).expect("a member");
        for _ in 0..10_000 {
            assert_eq!(ids.next_behind(None) as u64 >> LOW_BITS, 0x7F);
        }
    }
}
