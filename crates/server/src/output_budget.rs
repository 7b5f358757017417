//! Output that clients have not taken, over all connections.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use quenda_frontend::{CloseReason, Connection};

use crate::limits::{OUTPUT_SHARE, OUTPUT_TOTAL_MAX};
use crate::registry::Handle;

/// The sum, kept while connections are locked.
#[derive(Debug, Default)]
pub struct OutputBudget {
    total: AtomicUsize,
}

impl OutputBudget {
    /// Takes note of a connection's waiting output after it has changed. Above the budget, a connection
    /// with more than its share is closed and its output dropped: its client does not read.
    pub fn note(&self, handle: &Handle, connection: &mut Connection) {
        let total = self.set(handle, connection.output_len());
        if total > OUTPUT_TOTAL_MAX && connection.output_len() > OUTPUT_SHARE {
            connection.close(CloseReason::OutputFull);
            connection.take_output();
            self.set(handle, 0);
        }
    }

    /// A connection is gone, and its output with it.
    pub fn forget(&self, handle: &Handle) {
        self.set(handle, 0);
    }

    /// The sum.
    pub fn bytes(&self) -> usize {
        self.total.load(Relaxed)
    }

    /// Sets one connection's part and gives the sum.
    fn set(&self, handle: &Handle, bytes: usize) -> usize {
        let before = handle.unsent.swap(bytes, Relaxed);
        if bytes >= before {
            self.total.fetch_add(bytes - before, Relaxed) + (bytes - before)
        } else {
            self.total.fetch_sub(before - bytes, Relaxed) - (before - bytes)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;
    use quenda_frontend::{ConnectionId, Limits, Settings};
    use quenda_tree::{AclId, Tree};
    use tokio::sync::Notify;

    use super::*;

    fn handle(id: u64) -> Handle {
        let settings = Settings {
            limits: Limits {
                output_max: usize::MAX,
                ..Limits::default()
            },
            ..Settings::default()
        };
        let peer = ([127, 0, 0, 1], 1).into();
        let connection = Connection::new(
            ConnectionId(id),
            1,
            [127, 0, 0, 1].into(),
            0,
            Arc::new(settings),
        );
        Handle {
            id: ConnectionId(id),
            peer,
            door: crate::registry::Door::Client,
            connection: Mutex::new(connection),
            wake: Notify::new(),
            marked: false.into(),
            waiting: Default::default(),
            unsent: 0.into(),
        }
    }

    #[test]
    fn above_the_budget_those_with_more_than_their_share_are_closed() {
        let (budget, tree) = (OutputBudget::default(), Tree::new());
        let (greedy, modest) = (handle(1), handle(2));
        let frame = vec![0; OUTPUT_TOTAL_MAX];
        let fill = |handle: &Handle, bytes: usize| {
            let mut connection = handle.connection.lock();
            connection.deliver(&frame[..bytes], AclId::OPEN, &tree);
            budget.note(handle, &mut connection);
            connection.wants_close()
        };
        assert_eq!(fill(&greedy, OUTPUT_TOTAL_MAX), None);
        assert_eq!(fill(&modest, OUTPUT_SHARE), None);
        assert_eq!(fill(&greedy, 1), Some(CloseReason::OutputFull));
        assert_eq!(budget.total.load(Relaxed), OUTPUT_SHARE);
        budget.forget(&modest);
        assert_eq!(budget.total.load(Relaxed), 0);
    }
}
