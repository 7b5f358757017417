//! Where zxids come from: the term of the log entry and a counter.

/// The last zxid and what is needed for the next one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Zxids {
    pub(crate) last: i64,
    /// Added to the term to give the epoch.
    pub(crate) offset: u64,
}

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
    fn a_restored_state_in_a_younger_cluster_still_counts_up() {
        let mut zxids = Zxids {
            last: 0x9_0000_0007,
            offset: 0,
        };
        assert_eq!(zxids.next(1), 0x9_0000_0008);
        assert_eq!(zxids.next(2), 0xA_0000_0001);
    }
}
