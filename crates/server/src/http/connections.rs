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
    /// Whether a request of it is being answered. Such a one never gives way.
    busy: bool,
    end: CancellationToken,
}

impl Connections {
    pub(super) fn new(most: usize) -> Connections {
        Connections {
            most,
            open: Mutex::default(),
        }
    }

    /// A place for a new connection, and what ends it. At the bound the oldest that waits for a request has to go; if
    /// all of them are being answered there is none.
    pub(super) fn admit(&self) -> Option<(u64, CancellationToken)> {
        let mut open = self.open.lock();
        if open.by_number.len() >= self.most {
            let idle = open.by_number.iter().find(|(_, entry)| !entry.busy);
            let oldest = idle.map(|(number, _)| *number)?;
            let entry = open.by_number.remove(&oldest)?;
            entry.end.cancel();
        }
        let number = open.next;
        open.next += 1;
        let end = CancellationToken::new();
        let entry = Entry {
            busy: false,
            end: end.clone(),
        };
        open.by_number.insert(number, entry);
        Some((number, end))
    }

    pub(super) fn set_busy(&self, number: u64, busy: bool) {
        if let Some(entry) = self.open.lock().by_number.get_mut(&number) {
            entry.busy = busy;
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
        connections.set_busy(first, true);
        let (third, _) = connections.admit().expect("the second gives way");
        assert!(second_end.is_cancelled() && !first_end.is_cancelled());
        connections.set_busy(third, true);
        assert!(connections.admit().is_none(), "all are being answered");
        connections.dismiss(first);
        assert!(connections.admit().is_some());
    }
}
