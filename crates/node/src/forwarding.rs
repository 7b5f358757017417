//! The way of commands from a member to the leader: at most once, in order, or not at all.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use quenda_tree::command::decode_first;

use crate::frame::{PeerFrameError, Refusal, Series};
use crate::view::View;

/// The sender's side: numbers the forwards of one era to one leader.
#[derive(Debug)]
pub struct Forwarder {
    series: Series,
    sent: u64,
    /// The view in which the leader said that it does not lead.
    refused_in: Option<View>,
}

impl Forwarder {
    /// A member in this run has sent nothing yet.
    pub fn new(incarnation: u64) -> Forwarder {
        let series = Series {
            term: 0,
            incarnation,
            era: 0,
        };
        Forwarder {
            series,
            sent: 0,
            refused_in: None,
        }
    }

    /// A new era, or a new leader: a new series.
    pub fn start(&mut self, term: u64, era: u64) {
        self.series = Series {
            term,
            era,
            ..self.series
        };
        self.sent = 0;
    }

    /// The series and how many forwards of it have been sent.
    pub fn position(&self) -> (Series, u64) {
        (self.series, self.sent)
    }

    /// The position of the next forward.
    pub fn next(&mut self) -> (Series, u64) {
        self.sent += 1;
        (self.series, self.sent - 1)
    }

    /// The leader has refused a series: whether that is the one that is under way.
    pub fn is_refused(&mut self, series: Series, reason: Refusal, view: Option<View>) -> bool {
        if series != self.series {
            return false;
        }
        if reason == Refusal::NotLeading {
            self.refused_in = view;
        }
        true
    }

    /// The leader knows a later run of this member: this one is counted as later still.
    pub fn outrun(&mut self, known: u64) {
        self.series.incarnation = self.series.incarnation.max(known.saturating_add(1));
    }

    /// Whether forwards are of use in this view.
    pub fn may_send(&self, view: View) -> bool {
        self.refused_in != Some(view)
    }

    /// The leader may have changed its mind.
    pub fn forgive(&mut self) {
        self.refused_in = None;
    }
}

/// What to do with a forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It goes into the log.
    Take,
    /// It was there before, or nobody waits for it any more.
    Ignore,
    /// The series is broken.
    Refuse(Refusal),
}

/// The leader's side: what it has taken of whom in its term.
#[derive(Debug, Default)]
pub struct Intake {
    term: u64,
    origins: BTreeMap<u64, Progress>,
}

#[derive(Debug, Clone, Copy)]
struct Progress {
    incarnation: u64,
    era: u64,
    next: u64,
    broken: bool,
}

impl Intake {
    /// This member leads in `term`.
    pub fn lead(&mut self, term: u64) {
        if self.term != term {
            self.term = term;
            self.origins.clear();
        }
    }

    /// Judges a forward; only once each.
    pub fn judge(&mut self, origin: u64, series: Series, sequence: u64) -> Verdict {
        let progress = match self.progress(origin, series) {
            Ok(progress) => progress,
            Err(verdict) => return verdict,
        };
        if progress.broken {
            return Verdict::Refuse(Refusal::Gap);
        }
        match sequence.cmp(&progress.next) {
            Ordering::Less => Verdict::Ignore,
            Ordering::Equal => {
                progress.next += 1;
                Verdict::Take
            }
            Ordering::Greater => {
                progress.broken = true;
                Verdict::Refuse(Refusal::Gap)
            }
        }
    }

    /// The sender says how many forwards it has sent: false if some have not arrived. None of that series
    /// is taken from then on.
    pub fn is_complete(&mut self, origin: u64, series: Series, sent: u64) -> bool {
        let Ok(progress) = self.progress(origin, series) else {
            return true;
        };
        progress.broken |= sent > progress.next;
        !progress.broken
    }

    /// The newest run of a member that is known.
    pub fn incarnation(&self, origin: u64) -> u64 {
        let progress = self.origins.get(&origin);
        progress.map_or(0, |progress| progress.incarnation)
    }

    /// What to say to a series that its sender has given up, or seems to have.
    fn progress(&mut self, origin: u64, series: Series) -> Result<&mut Progress, Verdict> {
        let fresh = Progress {
            incarnation: series.incarnation,
            era: series.era,
            next: 0,
            broken: false,
        };
        let progress = self.origins.entry(origin).or_insert(fresh);
        if series.incarnation < progress.incarnation {
            return Err(Verdict::Refuse(Refusal::Outrun));
        }
        let known = (progress.incarnation, progress.era);
        match (series.incarnation, series.era).cmp(&known) {
            Ordering::Less => Err(Verdict::Ignore),
            Ordering::Equal => Ok(progress),
            Ordering::Greater => {
                *progress = fresh;
                Ok(progress)
            }
        }
    }
}

/// Whether these are whole commands of that member's clients. What gets into the log must be readable: no
/// member could go on behind it.
///
/// # Errors
/// They are not.
pub fn check_commands(mut commands: &[u8], origin: u64) -> Result<(), PeerFrameError> {
    while let Some(command) = decode_first(&mut commands) {
        let command = command.map_err(|_| PeerFrameError::Commands)?;
        if command.origin().member != origin {
            return Err(PeerFrameError::Commands);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(incarnation: u64, era: u64) -> Series {
        Series {
            term: 1,
            incarnation,
            era,
        }
    }

    #[test]
    fn each_forward_is_taken_once_and_in_order() {
        let mut intake = Intake::default();
        intake.lead(1);
        assert_eq!(intake.judge(2, series(1, 0), 0), Verdict::Take);
        assert_eq!(intake.judge(2, series(1, 0), 0), Verdict::Ignore);
        assert_eq!(intake.judge(2, series(1, 0), 1), Verdict::Take);
        assert_eq!(intake.judge(3, series(9, 0), 0), Verdict::Take);
        assert!(intake.is_complete(2, series(1, 0), 2));
    }

    #[test]
    fn behind_a_gap_nothing_of_that_era_is_taken() {
        let mut intake = Intake::default();
        intake.lead(1);
        assert_eq!(
            intake.judge(2, series(1, 0), 1),
            Verdict::Refuse(Refusal::Gap)
        );
        assert_eq!(
            intake.judge(2, series(1, 0), 0),
            Verdict::Refuse(Refusal::Gap)
        );
        assert_eq!(intake.judge(2, series(1, 1), 0), Verdict::Take);
        assert_eq!(intake.judge(2, series(1, 0), 2), Verdict::Ignore);
    }

    #[test]
    fn a_lost_tail_is_found() {
        let mut intake = Intake::default();
        intake.lead(1);
        assert_eq!(intake.judge(2, series(1, 0), 0), Verdict::Take);
        assert!(!intake.is_complete(2, series(1, 0), 2));
        assert_eq!(
            intake.judge(2, series(1, 0), 1),
            Verdict::Refuse(Refusal::Gap)
        );
    }

    #[test]
    fn a_restarted_member_starts_anew_and_its_past_is_ignored() {
        let mut intake = Intake::default();
        intake.lead(1);
        assert_eq!(intake.judge(2, series(1, 5), 0), Verdict::Take);
        assert_eq!(intake.judge(2, series(2, 0), 0), Verdict::Take);
        let outrun = Verdict::Refuse(Refusal::Outrun);
        assert_eq!(intake.judge(2, series(1, 5), 1), outrun);
        assert_eq!(intake.incarnation(2), 2);
        assert_eq!(intake.judge(2, series(2, 0), 1), Verdict::Take);
    }

    #[test]
    fn damaged_or_foreign_commands_are_not_taken() {
        use bytes::BytesMut;
        use quenda_tree::command::{Command, Origin};
        let mut commands = BytesMut::new();
        let origin = Origin {
            member: 2,
            connection: 1,
        };
        Command::OpenSession {
            origin,
            session: 1,
            timeout_ms: 1,
        }
        .encode(&mut commands);
        assert_eq!(check_commands(&commands, 2), Ok(()));
        assert_eq!(check_commands(&commands, 3), Err(PeerFrameError::Commands));
        for end in 1..commands.len() {
            assert_eq!(
                check_commands(&commands[..end], 2),
                Err(PeerFrameError::Commands)
            );
        }
    }
}
