//! Which sessions a member has heard, as it tells the leader.

use std::collections::BTreeSet;

use crate::limits::{REPORT_SESSIONS, REPORT_TICKS};

/// The reports of a member that does not lead. What was not acknowledged is told again.
#[derive(Debug, Default)]
pub struct Reporter {
    /// Heard since the last report.
    fresh: BTreeSet<i64>,
    /// In reports that were not acknowledged.
    told: BTreeSet<i64>,
    /// Number of the newest report, and when it was made.
    number: u64,
    tick: u64,
}

impl Reporter {
    /// Sessions were heard.
    pub fn heard(&mut self, sessions: &[i64]) {
        self.fresh.extend(sessions);
    }

    /// The report that is to be sent now, if there is one: its number and the sessions.
    pub fn report(&mut self, tick: u64) -> Option<(u64, Vec<i64>)> {
        let due = tick >= self.tick + REPORT_TICKS;
        if self.fresh.is_empty() && !due {
            return None;
        }
        while self.told.len() < REPORT_SESSIONS
            && let Some(session) = self.fresh.pop_first()
        {
            self.told.insert(session);
        }
        self.number += 1;
        self.tick = tick;
        Some((self.number, self.told.iter().copied().collect()))
    }

    /// The leader has got a report. Only the newest one holds all that was told.
    pub fn acknowledged(&mut self, number: u64) {
        if number == self.number {
            self.told.clear();
        }
    }

    /// This member leads: nobody is to be told.
    pub fn clear(&mut self) {
        self.fresh.clear();
        self.told.clear();
    }

    /// There is another leader, which gives every session its full timeout.
    pub fn restart(&mut self) {
        self.fresh.append(&mut self.told);
        self.tick = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_acknowledged_is_told_again() {
        let mut reporter = Reporter::default();
        reporter.heard(&[2, 1, 2]);
        assert_eq!(reporter.report(1), Some((1, vec![1, 2])));
        assert_eq!(reporter.report(2), None);
        reporter.heard(&[3]);
        assert_eq!(reporter.report(3), Some((2, vec![1, 2, 3])));
        reporter.acknowledged(1);
        assert_eq!(reporter.report(3 + REPORT_TICKS), Some((3, vec![1, 2, 3])));
        reporter.acknowledged(3);
        assert_eq!(reporter.report(3 + 2 * REPORT_TICKS), Some((4, vec![])));
    }

    #[test]
    fn a_crowd_goes_in_portions() {
        let mut reporter = Reporter::default();
        let crowd: Vec<i64> = (0..REPORT_SESSIONS as i64 + 5).collect();
        reporter.heard(&crowd);
        let (number, sessions) = reporter.report(1).expect("a report");
        assert_eq!(sessions.len(), REPORT_SESSIONS);
        reporter.acknowledged(number);
        let (_, sessions) = reporter.report(2).expect("the rest");
        assert_eq!(sessions.len(), 5);
    }
}
