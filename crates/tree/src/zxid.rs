//! Where zxids come from: the term of the log entry and a counter.

/// The last zxid and what is needed for the next one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Zxids {
    pub(crate) last: i64,
    /// Added to the term to give the epoch.
    pub(crate) offset: u64,
}

/// How far [`Zxids::leap`] goes: more elections than the members that are left behind can have held since
/// this one last heard of them.
const LEAP_EPOCHS: u64 = 1 << 16;

/// The counter never takes this value; a new epoch begins instead.
const COUNTER_END: u64 = 0xFFFF_FFFF;

impl Zxids {
    /// The next zxid. It is larger than all before, whatever the term: an epoch that would go back or
    /// whose counter is used up moves the offset.
    pub(crate) fn next(&mut self, term: u64) -> i64 {
        let last = self.last as u64;
        let (last_epoch, counter) = (last >> 32, last & COUNTER_END);
        let (epoch, counter) = match term.wrapping_add(self.offset) {
            epoch if epoch > last_epoch => (epoch, 1),
            _ if counter + 1 == COUNTER_END => (last_epoch + 1, 1),
            _ => (last_epoch, counter + 1),
        };
        self.go_to(term, epoch, counter)
    }

    /// The first zxid of the term's epoch, with the counter at 0: no transaction's, but the version of a
    /// configuration. Larger than all before, as in [`Zxids::next`].
    pub(crate) fn begin_epoch(&mut self, term: u64) -> i64 {
        let last_epoch = self.last as u64 >> 32;
        let epoch = match term.wrapping_add(self.offset) {
            epoch if epoch > last_epoch => epoch,
            _ => last_epoch + 1,
        };
        self.go_to(term, epoch, 0)
    }

    /// As [`Zxids::begin_epoch`], but far ahead.
    pub(crate) fn leap(&mut self, term: u64) -> i64 {
        let epoch = self.begin_epoch(term) as u64 >> 32;
        self.go_to(term, epoch + LEAP_EPOCHS, 0)
    }

    /// The first transaction of an epoch behind all zxids, also behind `other`, which came from elsewhere.
    pub(crate) fn next_behind(&mut self, other: i64, term: u64) -> i64 {
        self.last = self.last.max(other);
        self.begin_epoch(term);
        self.next(term)
    }

    fn go_to(&mut self, term: u64, epoch: u64, counter: u64) -> i64 {
        self.offset = epoch.wrapping_sub(term);
        self.last = (epoch << 32 | counter) as i64;
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_term_is_the_epoch() {
        let mut zxids = Zxids::default();
        assert_eq!(zxids.next(0), 1);
        assert_eq!(zxids.next(1), 0x1_0000_0001);
        assert_eq!(zxids.next(1), 0x1_0000_0002);
        assert_eq!(zxids.next(5), 0x5_0000_0001);
    }

    #[test]
    fn a_counter_that_runs_out_starts_an_epoch() {
        let mut zxids = Zxids {
            last: 0x1_FFFF_FFFD,
            offset: 0,
        };
        assert_eq!(zxids.next(1), 0x1_FFFF_FFFE);
        assert_eq!(zxids.next(1), 0x2_0000_0001);
        assert_eq!(zxids.next(1), 0x2_0000_0002);
        assert_eq!(zxids.next(2), 0x3_0000_0001);
    }

    #[test]
    fn an_epoch_begins_behind_all_zxids_before() {
        let mut zxids = Zxids::default();
        assert_eq!(zxids.begin_epoch(2), 0x2_0000_0000);
        assert_eq!(zxids.next(2), 0x2_0000_0001);
        assert_eq!(zxids.begin_epoch(2), 0x3_0000_0000);
        assert_eq!(zxids.next(2), 0x3_0000_0001);
        assert_eq!(zxids.next(3), 0x4_0000_0001);
    }

    #[test]
    fn a_leap_is_out_of_reach() {
        let mut zxids = Zxids::default();
        zxids.next(5);
        assert_eq!(zxids.leap(6), 0x1_0006_0000_0000);
        assert_eq!(zxids.next(6), 0x1_0006_0000_0001);
        assert_eq!(zxids.next(7), 0x1_0007_0000_0001);
        assert_eq!(zxids.leap(7), 0x2_0008_0000_0000);
    }

    #[test]
    fn what_comes_from_elsewhere_is_left_behind() {
        let mut zxids = Zxids::default();
        zxids.next(3);
        assert_eq!(zxids.next_behind(0x9_0000_0007, 3), 0xA_0000_0001);
        assert_eq!(zxids.next(3), 0xA_0000_0002);
        assert_eq!(zxids.next_behind(5, 3), 0xB_0000_0001);
        assert_eq!(zxids.next(4), 0xC_0000_0001);
    }

    #[test]
    fn a_restored_state_in_a_younger_cluster_still_counts_up() {
        let mut zxids = Zxids {
            last: 0x9_0000_0007,
            offset: 0,
        };
        assert_eq!(zxids.next(1), 0x9_0000_0008);
        assert_eq!(zxids.next(2), 0xA_0000_0001);
    }
}
