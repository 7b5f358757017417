//! What is remembered one by one for a minute: slow requests, herds, misuse.

use std::collections::VecDeque;
use std::net::SocketAddr;

use quenda_proto::Op;

use super::report::MisuseKind;
use super::window::Requester;
use crate::limits::{LOAD_MISUSE_MAX, LOAD_NAMED_MAX, LOAD_WINDOW_MS};

/// A request that took long.
#[derive(Debug, Clone)]
pub struct RecentSlow {
    /// The operation.
    pub op: Op,
    /// Its path.
    pub path: Box<str>,
    /// Whose it was.
    pub who: Requester,
    /// Before it was taken up.
    pub queue_ms: u64,
    /// From there on.
    pub commit_ms: u64,
    /// When it was answered.
    pub at_ms: u64,
}

/// A change that woke many watchers.
#[derive(Debug, Clone)]
pub struct RecentHerd {
    /// The znode that changed.
    pub path: Box<str>,
    /// How many.
    pub watchers: u64,
    /// When.
    pub at_ms: u64,
}

/// Something that does not belong into a coordination service.
#[derive(Debug, Clone)]
pub struct RecentMisuse {
    /// What.
    pub kind: MisuseKind,
    /// Where.
    pub path: Box<str>,
    /// The most that was seen.
    pub value: u64,
    /// Above what it is told.
    pub limit: u64,
    /// Who did it last.
    pub last: Option<(i64, SocketAddr)>,
    /// When it was seen last.
    pub at_ms: u64,
}

impl MisuseKind {
    /// What to do about it.
    pub(super) fn advice(self) -> &'static str {
        match self {
            MisuseKind::LargeWrite => {
                "a large write; every member keeps it in memory and sends it on: keep the bytes elsewhere and a reference here"
            }
            MisuseKind::HotWrites => {
                "one znode is written very often; counters and heartbeats belong into a database, or into the session itself"
            }
            MisuseKind::ManyChildren => {
                "very many children below one znode; each listing carries all names: spread them over several levels"
            }
            MisuseKind::SequentialCreates => {
                "very many sequential creates below one znode; a queue of this rate belongs into a message broker"
            }
        }
    }
}

/// The newest of each, bounded.
#[derive(Debug, Default)]
pub struct Recent {
    slow: VecDeque<RecentSlow>,
    herds: VecDeque<RecentHerd>,
    misuse: Vec<RecentMisuse>,
}

impl Recent {
    pub(super) fn add_slow(&mut self, slow: RecentSlow) {
        push(&mut self.slow, slow);
    }

    pub(super) fn add_herd(&mut self, herd: RecentHerd) {
        push(&mut self.herds, herd);
    }

    /// True if it was not seen within a minute. At the bound what is new is not remembered, nor told.
    pub(super) fn add_misuse(&mut self, misuse: RecentMisuse) -> bool {
        let now_ms = misuse.at_ms;
        let same =
            |known: &&mut RecentMisuse| known.kind == misuse.kind && known.path == misuse.path;
        if let Some(known) = self.misuse.iter_mut().find(same) {
            let is_new = now_ms.saturating_sub(known.at_ms) >= LOAD_WINDOW_MS;
            known.value = match is_new {
                true => misuse.value,
                false => known.value.max(misuse.value),
            };
            known.last = misuse.last;
            known.at_ms = now_ms;
            return is_new;
        }
        self.misuse
            .retain(|known| now_ms.saturating_sub(known.at_ms) < LOAD_WINDOW_MS);
        if self.misuse.len() >= LOAD_MISUSE_MAX {
            return false;
        }
        self.misuse.push(misuse);
        true
    }

    /// Slow requests of the minute, newest first.
    pub fn slow(&self, now_ms: u64) -> impl Iterator<Item = &RecentSlow> {
        let slow = self.slow.iter().rev();
        slow.filter(move |slow| now_ms.saturating_sub(slow.at_ms) < LOAD_WINDOW_MS)
    }

    /// Herds of the minute, newest first.
    pub fn herds(&self, now_ms: u64) -> impl Iterator<Item = &RecentHerd> {
        let herds = self.herds.iter().rev();
        herds.filter(move |herd| now_ms.saturating_sub(herd.at_ms) < LOAD_WINDOW_MS)
    }

    /// Misuse of the minute.
    pub fn misuse(&self, now_ms: u64) -> impl Iterator<Item = &RecentMisuse> {
        let misuse = self.misuse.iter();
        misuse.filter(move |misuse| now_ms.saturating_sub(misuse.at_ms) < LOAD_WINDOW_MS)
    }
}

fn push<T>(queue: &mut VecDeque<T>, item: T) {
    if queue.len() >= LOAD_NAMED_MAX {
        queue.pop_front();
    }
    queue.push_back(item);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn misuse(path: &str, value: u64, at_ms: u64) -> RecentMisuse {
        RecentMisuse {
            kind: MisuseKind::HotWrites,
            path: path.into(),
            value,
            limit: 1,
            last: None,
            at_ms,
        }
    }

    #[test]
    fn the_same_misuse_is_told_once_in_a_minute() {
        let mut recent = Recent::default();
        assert!(recent.add_misuse(misuse("/a", 5, 0)));
        assert!(!recent.add_misuse(misuse("/a", 3, 1000)));
        assert!(recent.add_misuse(misuse("/b", 3, 1000)));
        let values: Vec<u64> = recent.misuse(1000).map(|one| one.value).collect();
        assert_eq!(values, [5, 3]);
        assert!(recent.add_misuse(misuse("/a", 3, 1000 + LOAD_WINDOW_MS)));
        assert_eq!(recent.misuse(1000 + LOAD_WINDOW_MS).count(), 1);
    }

    #[test]
    fn clients_cannot_make_it_grow_for_ever() {
        let mut recent = Recent::default();
        for number in 0..10 * LOAD_MISUSE_MAX {
            recent.add_misuse(misuse(&format!("/{number}"), 1, 0));
            recent.add_herd(RecentHerd {
                path: "/".into(),
                watchers: 1,
                at_ms: 0,
            });
        }
        assert_eq!(recent.misuse.len(), LOAD_MISUSE_MAX);
        assert_eq!(recent.herds.len(), LOAD_NAMED_MAX);
    }
}
