//! The connections of one HTTP server, and which of them gives way when there are too many.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

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
    address: IpAddr,
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
    /// A request is being answered.
    Answering,
}

impl Open {
    /// Who has to go: of those that are busy with the least, one of the address that has the most of them all; the oldest
    /// of these. So nobody keeps others out by what he sends or does not take.
    fn victim(&self) -> Option<u64> {
        let mut places: HashMap<IpAddr, usize> = HashMap::new();
        for entry in self.by_number.values() {
            *places.entry(entry.address).or_default() += 1;
        }
        let all = self.by_number.iter();
        let (number, _) = all.min_by_key(|(number, entry)| {
            let places = places.get(&entry.address).copied();
            (entry.phase, Reverse(places), **number)
        })?;
        Some(*number)
    }
}

impl Connections {
    pub(super) fn new(most: usize) -> Connections {
        Connections {
            most,
            open: Mutex::default(),
        }
    }

    /// A place for a new connection, and what ends it. At the bound another one has to go.
    pub(super) fn admit(&self, address: IpAddr) -> (u64, CancellationToken) {
        let mut open = self.open.lock();
        if open.by_number.len() >= self.most
            && let Some(victim) = open.victim()
            && let Some(entry) = open.by_number.remove(&victim)
        {
            entry.end.cancel();
        }
        let number = open.next;
        open.next += 1;
        let end = CancellationToken::new();
        let entry = Entry {
            address,
            phase: Phase::Waiting,
            end: end.clone(),
        };
        open.by_number.insert(number, entry);
        (number, end)
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
    fn the_oldest_that_is_busy_with_the_least_gives_way() {
        let connections = Connections::new(2);
        let here = IpAddr::from([127, 0, 0, 1]);
        let (first, first_end) = connections.admit(here);
        let (_, second_end) = connections.admit(here);
        connections.enter(first, Phase::Sending);
        let (third, third_end) = connections.admit(here);
        assert!(second_end.is_cancelled() && !first_end.is_cancelled());
        connections.enter(third, Phase::Answering);
        let (fourth, _) = connections.admit(here);
        assert!(first_end.is_cancelled() && !third_end.is_cancelled());
        connections.enter(fourth, Phase::Answering);
        connections.dismiss(third);
        connections.admit(here);
        assert!(!third_end.is_cancelled(), "there was room");
    }

    #[test]
    fn who_has_many_keeps_nobody_out() {
        let connections = Connections::new(4);
        let (many, few) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let (few_number, few_end) = connections.admit(few);
        connections.enter(few_number, Phase::Answering);
        let theirs: Vec<_> = (0..3).map(|_| connections.admit(many)).collect();
        for (number, _) in &theirs {
            connections.enter(*number, Phase::Answering);
        }
        connections.admit(many);
        connections.admit(few);
        let ended = theirs.iter().filter(|(_, end)| end.is_cancelled()).count();
        assert_eq!((ended, few_end.is_cancelled()), (1, false));
        for _ in 0..9 {
            connections.admit(many);
        }
        assert!(!few_end.is_cancelled());
    }
}
