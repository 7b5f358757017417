//! Committed entries become changes of the tree, events, and replies.

use bytes::BytesMut;
use quenda_consensus::LogEntry;
use quenda_frontend::ConnectionId;
use quenda_tree::command::{Batch, Command, CommandError, Stamp};
use quenda_tree::{Applied, Changes, SessionEffect, Tree};

/// The member's client connections, as apply reaches them. The tree is locked for writing meanwhile, so
/// what is put into an output queue here precedes every later read.
pub trait Connections {
    /// Puts the events of these changes into the output of the sessions that watch.
    fn deliver(&mut self, tree: &Tree, changes: &Changes);
    /// Answers the oldest command in flight of a connection of this member.
    fn complete(&mut self, tree: &Tree, connection: ConnectionId, applied: &Applied, body: &[u8]);
    /// A session has ended; its connection, if it still has one here, is to be closed.
    /// `expired`: by its timeout, not by the client.
    fn session_closed(&mut self, session: i64, expired: bool);
}

/// A committed entry that this member cannot read. It must stop: going on would make it differ.
#[derive(Debug, thiserror::Error)]
#[error("log entry {index}: {cause}")]
pub struct EntryError {
    /// Index of the entry.
    pub index: u64,
    /// What is wrong.
    pub cause: CommandError,
}

/// Applies entries one by one; keeps its buffers from one to the next.
#[derive(Debug)]
pub struct Applier {
    member: u64,
    reply: BytesMut,
    changes: Changes,
}

impl Applier {
    /// For the member with this id.
    pub fn new(member: u64) -> Applier {
        Applier {
            member,
            reply: BytesMut::new(),
            changes: Changes::default(),
        }
    }

    /// Applies one committed entry and appends what it did to sessions.
    ///
    /// # Errors
    /// The entry is damaged, or of a version that this program does not know.
    pub fn apply(
        &mut self,
        tree: &mut Tree,
        entry: &LogEntry,
        connections: &mut dyn Connections,
        effects: &mut Vec<SessionEffect>,
    ) -> Result<(), EntryError> {
        let broken = |cause| EntryError {
            index: entry.index,
            cause,
        };
        if !entry.data.is_empty() {
            let batch = Batch::open(&entry.data).map_err(broken)?;
            let stamp = Stamp {
                term: entry.term,
                time_ms: batch.time_ms,
            };
            for command in batch {
                let command = command.map_err(broken)?;
                self.apply_command(tree, stamp, &command, connections, effects);
            }
        }
        tree.set_applied_index(entry.index, entry.term);
        Ok(())
    }

    fn apply_command(
        &mut self,
        tree: &mut Tree,
        stamp: Stamp,
        command: &Command<'_>,
        connections: &mut dyn Connections,
        effects: &mut Vec<SessionEffect>,
    ) {
        self.reply.clear();
        self.changes.clear();
        let applied = tree.apply(stamp, command, &mut self.reply, &mut self.changes);
        if !self.changes.is_empty() {
            connections.deliver(tree, &self.changes);
        }
        let origin = command.origin();
        if origin.member == self.member && origin.connection != 0 {
            let connection = ConnectionId(origin.connection);
            connections.complete(tree, connection, &applied, &self.reply);
        }
        if let SessionEffect::Closed { session } = applied.session {
            let expired = matches!(command, Command::ExpireSession { .. });
            connections.session_closed(session, expired);
        }
        if applied.session != SessionEffect::None {
            effects.push(applied.session);
        }
    }
}
