//! The part of a member that only its core thread touches: consensus, the queue of commands in front of
//! the log, and the leases of the sessions.

use bytes::{Buf, BytesMut};
use quenda_consensus::{
    Consensus, LogEntry, Membership, MembershipError, ProposeError, Ready, Role, Status,
};
use quenda_tree::command::{BATCH_HEADER_LEN, Command, start_batch};
use quenda_tree::{Session, SessionEffect, Tree};

use crate::limits::{ENTRY_BYTES, PAUSE_MS};
use crate::session_tracker::SessionTracker;

/// Entropy for a cluster that does not exist yet: drawn by the host, used only if this member founds it.
#[derive(Debug, Clone)]
pub struct Founding {
    /// Id of the cluster.
    pub cluster: u64,
    /// Secret that keys the session passwords.
    pub secret: [u8; 32],
}

/// One member.
pub struct Member {
    consensus: Consensus,
    tracker: SessionTracker,
    /// Encoded commands that are not in the log yet, in order of arrival.
    queue: BytesMut,
    /// Term in which this member took over the sessions; `None` while it does not lead.
    leading_since: Option<u64>,
    last_tick_ms: u64,
    founding: Founding,
}

impl Member {
    /// A member that starts at monotonic time `now_ms`.
    pub fn new(consensus: Consensus, founding: Founding, now_ms: u64) -> Member {
        Member {
            consensus,
            tracker: SessionTracker::default(),
            queue: BytesMut::new(),
            leading_since: None,
            last_tick_ms: now_ms,
            founding,
        }
    }

    /// Asks for leadership now instead of after a timeout.
    pub fn campaign(&mut self) {
        self.consensus.campaign();
    }

    /// Queues encoded commands for the log.
    pub fn submit(&mut self, commands: BytesMut) {
        if self.queue.is_empty() {
            self.queue = commands;
        } else {
            self.queue.extend_from_slice(&commands);
        }
    }

    /// Queues a command of the member itself.
    pub fn submit_command(&mut self, command: &Command<'_>) {
        command.encode(&mut self.queue);
    }

    /// Bytes of commands that are not in the log yet.
    pub fn queued_bytes(&self) -> usize {
        self.queue.len()
    }

    /// Sessions that were heard since the last call.
    pub fn touched(&mut self, sessions: &[i64], now_ms: u64) {
        for session in sessions {
            self.tracker.touch(*session, now_ms);
        }
    }

    /// Gives every session `millis` more: clients cannot reach their sessions meanwhile, through no fault
    /// of theirs.
    pub fn hold_leases(&mut self, millis: u64) {
        self.tracker.extend_all(millis);
    }

    /// One tick has passed. To be called after [`Member::touched`], so that nobody who was heard expires.
    /// `is_held_up` tells whether a session's connection waits for the log: it may be left unread
    /// meanwhile, and is not silent then.
    pub fn tick(&mut self, now_ms: u64, is_held_up: impl FnMut(i64) -> bool) {
        let gap_ms = now_ms.saturating_sub(self.last_tick_ms);
        if gap_ms > PAUSE_MS {
            self.tracker.extend_all(gap_ms);
        }
        self.last_tick_ms = now_ms;
        self.consensus.tick();
        if self.leading_since.is_none() {
            return;
        }
        for (session, generation) in self.tracker.expired(now_ms, is_held_up) {
            self.submit_command(&Command::ExpireSession {
                session,
                generation,
            });
        }
    }

    /// Everything up to this Ready is durable.
    pub fn persisted(&mut self, number: u64) -> Vec<quenda_consensus::Message> {
        self.consensus.on_persisted(number)
    }

    /// Moves queued commands into the log, stamped with the leader's wall time, and gives the next piece
    /// of work.
    pub fn drive(&mut self, time_ms: i64) -> Option<Ready> {
        while !self.queue.is_empty() && self.propose_next(time_ms) {}
        self.consensus.ready()
    }

    /// Proposes one entry; false when the log takes nothing now and the commands have to wait.
    fn propose_next(&mut self, time_ms: i64) -> bool {
        if !self.consensus.is_leader() {
            return false;
        }
        let length = batch_len(&self.queue);
        let mut entry = BytesMut::with_capacity(BATCH_HEADER_LEN + length);
        start_batch(time_ms, &mut entry);
        entry.extend_from_slice(&self.queue[..length]);
        match self.consensus.propose(entry.into()) {
            Ok(_) => {
                self.queue.advance(length);
                if self.queue.is_empty() {
                    self.queue = BytesMut::new();
                }
                true
            }
            Err(
                ProposeError::Full
                | ProposeError::Transferring
                | ProposeError::NotLeader { .. }
                | ProposeError::Removed,
            ) => false,
        }
    }

    /// A committed entry that carries a membership change takes effect.
    ///
    /// # Errors
    /// The change makes no sense; the membership stays.
    pub fn apply_membership(&mut self, entry: &LogEntry) -> Result<(), MembershipError> {
        self.consensus.apply_membership(entry).map(|_| ())
    }

    /// Entries up to `index` have been applied and did this to sessions. `tree` is the state after them.
    pub fn applied(&mut self, index: u64, effects: &[SessionEffect], tree: &Tree, now_ms: u64) {
        self.consensus.on_applied(index);
        self.follow_role(tree, now_ms);
        if self.leading_since.is_some() {
            for effect in effects {
                self.note(*effect, tree, now_ms);
            }
        }
    }

    fn note(&mut self, effect: SessionEffect, tree: &Tree, now_ms: u64) {
        match effect {
            SessionEffect::Opened { session } | SessionEffect::Resumed { session, .. } => {
                if let Some(state) = tree.session(session) {
                    self.track(session, state, now_ms);
                }
            }
            SessionEffect::Closed { session } => self.tracker.close(session),
            SessionEffect::None | SessionEffect::Refused => {}
        }
    }

    fn track(&mut self, session: i64, state: &Session, now_ms: u64) {
        let timeout_ms = u64::from(state.timeout_ms.unsigned_abs());
        self.tracker
            .open(session, state.generation, timeout_ms, now_ms);
    }

    /// A new leader that knows everything committed grants every session its full timeout, and founds
    /// the cluster if there is none.
    fn follow_role(&mut self, tree: &Tree, now_ms: u64) {
        let status = self.consensus.status();
        if status.role != Role::Leader {
            self.leading_since = None;
            return;
        }
        let complete = status.committed_in_term && status.applied == status.commit;
        if self.leading_since == Some(status.term) || !complete {
            return;
        }
        self.leading_since = Some(status.term);
        self.tracker = SessionTracker::default();
        for (session, state) in tree.sessions() {
            self.track(session, state, now_ms);
        }
        if tree.cluster().is_none() {
            let Founding { cluster, secret } = self.founding.clone();
            self.submit_command(&Command::Found {
                cluster,
                secret,
                config: "",
            });
        }
    }

    /// Whether this member leads and knows everything that was committed before it did.
    pub fn is_serving_leader(&self) -> bool {
        self.leading_since.is_some()
    }

    /// Entries up to `index` are in a durable checkpoint: cuts the log, keeping `retain` bytes of it for
    /// members that lag, and tells the index up to which the stored log may be cut too.
    pub fn compact(&mut self, index: u64, retain: u64) -> u64 {
        let through = self.consensus.compaction_point(index, retain);
        self.consensus.compact(through);
        through
    }

    /// The membership in force.
    pub fn membership(&self) -> Membership {
        self.consensus.membership()
    }

    /// Where consensus stands.
    pub fn status(&self) -> Status {
        self.consensus.status()
    }

    /// The leases of the sessions; meaningful on a leader.
    pub fn tracker(&self) -> &SessionTracker {
        &self.tracker
    }
}

/// Length of the commands that go into the next entry: whole ones, at least one, about [`ENTRY_BYTES`].
fn batch_len(queue: &[u8]) -> usize {
    if queue.len() <= ENTRY_BYTES {
        return queue.len();
    }
    let mut end = 0;
    while let Some(length) = queue[end..].first_chunk::<4>() {
        let next = end + 4 + u32::from_be_bytes(*length) as usize;
        if end > 0 && next > ENTRY_BYTES {
            break;
        }
        end = next;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_ends_between_commands() {
        let mut queue = BytesMut::new();
        for _ in 0..3 {
            queue.extend_from_slice(&300_000u32.to_be_bytes());
            queue.resize(queue.len() + 300_000, 0);
        }
        assert_eq!(batch_len(&queue), 300_004);
        assert_eq!(batch_len(&queue[300_004..]), 300_004);
        assert_eq!(batch_len(&queue[600_008..]), 300_004);
    }

    #[test]
    fn a_large_command_goes_alone() {
        let mut queue = BytesMut::new();
        for _ in 0..2 {
            queue.extend_from_slice(&1_000_000u32.to_be_bytes());
            queue.resize(queue.len() + 1_000_000, 0);
        }
        assert_eq!(batch_len(&queue), 1_000_004);
    }
}
