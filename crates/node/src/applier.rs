//! Committed entries become changes of the tree, events, and replies.

use bytes::{Bytes, BytesMut};
use quenda_consensus::{EntryKind, LogEntry, MembershipError, conf_context};
use quenda_frontend::ConnectionId;
use quenda_proto::ErrorCode;
use quenda_tree::command::{Batch, Command, CommandError, Stamp};
use quenda_tree::{Applied, Changes, QuotaExcess, SessionEffect, Tree};

/// The member's client connections, as apply reaches them. The tree is locked for writing meanwhile, so
/// what is put into an output queue here precedes every later read.
pub trait Connections {
    /// Puts the events of these changes into the output of the sessions that watch.
    fn deliver(&mut self, tree: &Tree, changes: &Changes);
    /// Answers the oldest command in flight of a connection of this member.
    fn complete(&mut self, tree: &Tree, connection: ConnectionId, applied: &Applied, body: &[u8]);
    /// A write of a client of this member was refused, as this znode would have gone over a hard quota.
    fn over_quota(&mut self, path: &str);
    /// A command was applied, after everybody was told of it. `own`: a connection of this member asked for it, in this run
    /// of the process or, where the log is applied again after a restart, in an earlier one.
    fn settled(&mut self, settled: &Settled<'_>, own: bool) {
        let _ = (settled, own);
    }
    /// A write of a client of this member was not refused, but the totals of a quota are above its limit.
    fn quota_exceeded(&mut self, _: &QuotaExcess) {}
    /// A session has ended; its connection, if it still has one here, is to be closed.
    /// `expired`: by its timeout, not by the client.
    fn session_closed(&mut self, session: i64, expired: bool);
    /// A session was resumed on another member; its connection, if it still has one here, is to be closed.
    fn session_moved(&mut self, session: i64);
    /// Another state has taken the place of the one before, with other sessions: every connection is to be
    /// closed, as no watch fires for what is different.
    fn restored(&mut self, tree: &Tree);
}

/// A command and what came of it.
#[derive(Debug)]
pub struct Settled<'a> {
    /// The facts of its entry.
    pub stamp: Stamp,
    /// The command.
    pub command: &'a Command<'a>,
    /// The verdict.
    pub applied: &'a Applied,
    /// The response record.
    pub reply: &'a [u8],
    /// What happened to znodes.
    pub changes: &'a Changes,
}

/// What applied entries mean to the member, for [`crate::Member::applied`].
#[derive(Debug, Default)]
pub struct Effects {
    /// What happened to sessions, in order.
    pub(crate) sessions: Vec<SessionEffect>,
    /// The connections of this member whose commands were applied, in order.
    pub(crate) own: Vec<u64>,
    /// (index, digest) behind each entry.
    pub(crate) samples: Vec<(u64, u64)>,
}

impl Effects {
    /// What happened to sessions, in order.
    pub fn sessions(&self) -> &[SessionEffect] {
        &self.sessions
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.sessions.clear();
        self.own.clear();
        self.samples.clear();
    }
}

/// A committed entry that this member cannot read. It must stop: going on would make it differ.
#[derive(Debug, thiserror::Error)]
#[error("log entry {index}: {cause}")]
pub struct EntryError {
    /// Index of the entry.
    pub index: u64,
    /// What is wrong.
    pub cause: EntryCause,
}

/// Why an entry cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum EntryCause {
    /// A command in it is damaged or unknown.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The membership change in it is damaged.
    #[error(transparent)]
    Membership(#[from] MembershipError),
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

    /// Applies one committed entry and appends what it did. True if the entry carries a membership change
    /// that is to be put into force, with [`crate::Member::apply_membership`], before the next entry: one
    /// that goes with a reconfiguration falls with it.
    ///
    /// # Errors
    /// The entry is damaged, or of a version that this program does not know.
    pub fn apply(
        &mut self,
        tree: &mut Tree,
        entry: &LogEntry,
        connections: &mut dyn Connections,
        effects: &mut Effects,
    ) -> Result<bool, EntryError> {
        let broken = |cause: EntryCause| EntryError {
            index: entry.index,
            cause,
        };
        let is_change = entry.kind != EntryKind::Normal;
        let commands = match is_change {
            true => conf_context(entry).map_err(|error| broken(error.into()))?,
            false => Some(entry.data.clone()),
        };
        let commands = commands.unwrap_or_default();
        let succeeded = self
            .apply_commands(tree, entry.term, &commands, connections, effects)
            .map_err(|error| broken(error.into()))?;
        tree.set_applied_index(entry.index, entry.term);
        effects.samples.push((entry.index, tree.digest()));
        Ok(is_change && succeeded)
    }

    /// True if all of them succeeded.
    fn apply_commands(
        &mut self,
        tree: &mut Tree,
        term: u64,
        commands: &Bytes,
        connections: &mut dyn Connections,
        effects: &mut Effects,
    ) -> Result<bool, CommandError> {
        if commands.is_empty() {
            return Ok(true);
        }
        let mut batch = Batch::open(commands)?;
        let stamp = Stamp {
            term,
            time_ms: batch.time_ms,
        };
        let mut succeeded = true;
        while let Some(code) = batch
            .next_with(|command| self.apply_command(tree, stamp, command, connections, effects))
        {
            succeeded &= code? == ErrorCode::Ok;
        }
        Ok(succeeded)
    }

    fn apply_command(
        &mut self,
        tree: &mut Tree,
        stamp: Stamp,
        command: &Command<'_>,
        connections: &mut dyn Connections,
        effects: &mut Effects,
    ) -> ErrorCode {
        self.reply.clear();
        self.changes.clear();
        let applied = tree.apply(stamp, command, &mut self.reply, &mut self.changes);
        if !self.changes.is_empty() {
            connections.deliver(tree, &self.changes);
        }
        if applied.session == SessionEffect::Restored {
            connections.restored(tree);
        }
        let origin = command.origin();
        if origin.member == self.member && origin.connection != 0 {
            effects.own.push(origin.connection);
            if let Some(path) = self.changes.over_quota() {
                connections.over_quota(path);
            }
            if let Some(excess) = self.changes.quota_excess() {
                connections.quota_exceeded(excess);
            }
            let connection = ConnectionId(origin.connection);
            connections.complete(tree, connection, &applied, &self.reply);
        }
        let settled = Settled {
            stamp,
            command,
            applied: &applied,
            reply: &self.reply,
            changes: &self.changes,
        };
        let own = origin.member == self.member && origin.connection != 0;
        connections.settled(&settled, own);
        match applied.session {
            SessionEffect::Closed { session } => {
                let expired = matches!(command, Command::ExpireSession { .. });
                connections.session_closed(session, expired);
            }
            SessionEffect::Resumed { session, .. } if origin.member != self.member => {
                connections.session_moved(session);
            }
            SessionEffect::None
            | SessionEffect::Refused
            | SessionEffect::Restored
            | SessionEffect::Opened { .. }
            | SessionEffect::Resumed { .. } => {}
        }
        if applied.session != SessionEffect::None {
            effects.sessions.push(applied.session);
        }
        applied.code
    }
}
