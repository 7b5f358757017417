//! Commands of the server itself on their way through the log, and who waits for them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::BytesMut;
use parking_lot::Mutex;
use quenda_frontend::ConnectionId;
use quenda_proto::ErrorCode;
use quenda_tree::Applied;
use quenda_tree::command::{Command, Origin};
use tokio::sync::oneshot;

use super::Backup;
use crate::shared::Shared;

/// zxid and verdict of a command. None comes when its fate is unknown.
pub(super) type Answer = oneshot::Receiver<(i64, ErrorCode)>;

/// Who waits, by the number that stands for a connection.
#[derive(Default)]
pub(super) struct Waiting {
    by_connection: Mutex<HashMap<u64, oneshot::Sender<(i64, ErrorCode)>>>,
    /// How many, so that nobody else has to lock.
    count: AtomicUsize,
}

impl Backup {
    /// A command of this member was applied: true if it was one of these.
    pub fn complete(&self, connection: ConnectionId, applied: &Applied) -> bool {
        if self.waiting.count.load(Ordering::Acquire) == 0 {
            return false;
        }
        let sender = self.waiting.by_connection.lock().remove(&connection.0);
        let Some(sender) = sender else {
            return false;
        };
        self.waiting.count.fetch_sub(1, Ordering::AcqRel);
        // Whoever asked may have lost patience.
        let _ = sender.send((applied.zxid, applied.code));
        true
    }

    /// Nobody knows the fate of what is on its way. To be called with the tree locked for writing, along
    /// with the change of the era.
    pub fn abandon(&self) {
        let mut waiting = self.waiting.by_connection.lock();
        waiting.clear();
        self.waiting.count.store(0, Ordering::Release);
    }

    fn wait(&self, connection: ConnectionId) -> Answer {
        let (sender, answer) = oneshot::channel();
        let mut waiting = self.waiting.by_connection.lock();
        waiting.insert(connection.0, sender);
        self.waiting.count.fetch_add(1, Ordering::AcqRel);
        answer
    }
}

/// Sends a command into the log.
pub(super) fn submit<'c>(shared: &Shared, command: impl FnOnce(Origin) -> Command<'c>) -> Answer {
    let connection = shared.next_connection();
    let command = command(Origin {
        member: shared.member,
        connection: connection.0,
    });
    let mut bytes = BytesMut::new();
    command.encode(&mut bytes);
    // The era and the place in the list belong together: both change while the tree is locked.
    let tree = shared.tree.read();
    let era = shared.era();
    let answer = shared.backup.wait(connection);
    drop(tree);
    shared.inbox.submit(era, &bytes, connection.0, 0);
    answer
}
