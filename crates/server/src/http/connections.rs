//! The connections of one HTTP server, and which of them gives way when there are too many.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// Open connections by age.
#[derive(Debug)]
pub(super) struct Connections {
    most: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    /// The oldest first.
    by_number: BTreeMap<u64, Entry>,
}

#[derive(Debug)]
struct Entry {
    phase: Phase,
    end: CancellationToken,
}

/// What a connection is busy with, by how soon it gives way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Its next request is waited for.
    Waiting,
    /// Its caller is to take an answer.
    Sending,
    /// A request is being answered. It never gives way.
    Answering,
}

impl Connections {
    pub(super) fn new(most: usize) -> Connections {
        Connections {
            most,
            open: Mutex::default(),
        }
    }

    /// A place for a new connection, and what ends it. At the bound the oldest that waits for a request has to go, or
    /// else the oldest whose caller has not taken its answer; if all of them are being answered there is none.
    pub(super) fn admit(&self) -> Option<(u64, CancellationToken)> {
        let mut open = self.open.lock();
        if open.by_number.len() >= self.most {
            let all = open.by_number.iter();
            let idle = all.filter(|(_, entry)| entry.phase != Phase::Answering);
            let (oldest, _) = idle.min_by_key(|(number, entry)| (entry.phase, **number))?;
            let oldest = *oldest;
            let entry = open.by_number.remove(&oldest)?;
            entry.end.cancel();
        }
        let number = open.next;
        open.next += 1;
        let end = CancellationToken::new();
        let entry = Entry {
            phase: Phase::Waiting,
            end: end.clone(),
        };
        open.by_number.insert(number, entry);
        Some((number, end))
    }

    pub(super) fn enter(&self, number: u64, phase: Phase) {
        if let Some(entry) = self.open.lock().by_number.get_mut(&number) {
            entry.phase = phase;
        }
    }

    pub(super) fn dismiss(&self, number: u64) {
        self.open.lock().by_number.remove(&number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_idle_one_gives_way() {
        let connections = Connections::new(2);
        let (first, first_end) = connections.admit().expect("room");
        let (_, second_end) = connections.admit().expect("room");
        connections.enter(first, Phase::Sending);
        let (third, third_end) = connections.admit().expect("the second gives way");
        assert!(second_end.is_cancelled() && !first_end.is_cancelled());
        connections.enter(third, Phase::Answering);
        let (fourth, _) = connections.admit().expect("the first takes too long");
        assert!(first_end.is_cancelled() && !third_end.is_cancelled());
        connections.enter(fourth, Phase::Answering);
        assert!(connections.admit().is_none(), "all are being answered");
        connections.dismiss(fourth);
        assert!(connections.admit().is_some());
    }
}
