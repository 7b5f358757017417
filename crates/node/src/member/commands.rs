//! Commands on their way: from the clients' queue into the log, or to the leader.

use bytes::BytesMut;
use quenda_consensus::{MembershipChange, MembershipError, ProposeError};
use quenda_proto::jute::{Decode, Reader};
use quenda_proto::records::ReconfigRequest;
use quenda_tree::command::{
    BATCH_HEADER_LEN, Command, Origin, ReconfigFacts, decode_first, first_origin, is_reconfig,
    set_reconfig_facts, start_batch,
};
use quenda_tree::ensemble::{Ensemble, is_member_id};

use super::Member;
use crate::frame::Frame;
use crate::limits::{FORWARD_WINDOW, RECONFIG_PATIENCE_TICKS};
use crate::outstanding::{batch_len, dequeue, enqueue, first_len};
use crate::view::View;

/// A reconfiguration that waits until an earlier one is in force, and what its connection has sent behind it.
/// All other connections go on.
pub(super) struct Held {
    origin: Origin,
    commands: BytesMut,
    since: u64,
}

impl Held {
    pub(super) fn bytes(&self) -> usize {
        self.commands.len()
    }
}

impl Member {
    /// Moves what waits into the log, stamped with the leader's wall time, or to the leader.
    pub(super) fn send_commands(&mut self, time_ms: i64) {
        let Some(view) = self.views.current() else {
            return;
        };
        if view.leader != self.id {
            self.forward(view);
            return;
        }
        if !self.consensus.is_leader() {
            return;
        }
        if !self.queue.is_empty() {
            self.outstanding.sent(&self.queue);
            let commands = std::mem::take(&mut self.queue);
            self.open_log_queue();
            enqueue(&mut self.log_queue, commands);
        }
        self.release_held();
        while !self.log_queue.is_empty() && self.propose_next(time_ms) {}
    }

    /// What is in the leader's queue belongs to its term: what an earlier one has left is dropped, those
    /// who wait for it give it up as well.
    pub(super) fn open_log_queue(&mut self) {
        let term = self.consensus.status().term;
        if self.log_term != term {
            self.log_term = term;
            self.log_queue = BytesMut::new();
            self.held = None;
            self.reconfig_refused = false;
        }
    }

    /// Takes a reconfiguration up again that waited long enough, with what stands behind it.
    fn release_held(&mut self) {
        let ready = self.held.as_ref().is_some_and(|held| {
            self.tick >= held.since + RECONFIG_PATIENCE_TICKS || self.is_settled()
        });
        if let Some(held) = self.held.take_if(|_| ready) {
            self.reconfig_refused = !self.is_settled();
            let mut commands = held.commands;
            commands.extend_from_slice(&self.log_queue);
            self.log_queue = commands;
        }
    }

    /// Lets the first command wait; false if another one does already.
    fn hold(&mut self, length: usize) -> bool {
        if self.held.is_some() {
            return false;
        }
        let commands = BytesMut::from(&self.log_queue[..length]);
        self.held = Some(Held {
            origin: first_origin(&commands),
            commands,
            since: self.tick,
        });
        dequeue(&mut self.log_queue, length);
        true
    }

    /// Whether the first command stands behind one that waits; it waits as well then.
    fn follow_held(&mut self) -> bool {
        let Some(held) = &mut self.held else {
            return false;
        };
        if first_origin(&self.log_queue) != held.origin {
            return false;
        }
        let length = first_len(&self.log_queue).unwrap_or_default();
        let length = length.min(self.log_queue.len());
        held.commands.extend_from_slice(&self.log_queue[..length]);
        dequeue(&mut self.log_queue, length);
        true
    }

    /// Whether the membership is what the configuration says, as far as that depends on members that are
    /// there, and this leader knows both.
    fn is_settled(&self) -> bool {
        let knows = self.leading_since == Some(self.consensus.status().term);
        let ensemble = self.ensemble.as_ref();
        knows
            && !self.consensus.is_membership_changing()
            && !ensemble.is_some_and(|ensemble| self.plan(ensemble).is_under_way())
    }

    fn forward(&mut self, view: View) {
        if !self.forwarder.may_send(view) {
            return;
        }
        while !self.queue.is_empty() && self.outstanding.bytes() < FORWARD_WINDOW {
            let length = batch_len(&self.queue, |_| false);
            let commands = &self.queue[..length];
            let (series, sequence) = self.forwarder.next();
            let frame = Frame::Forward {
                series,
                sequence,
                commands,
            };
            let frame = frame.encode();
            self.outstanding.sent(commands);
            dequeue(&mut self.queue, length);
            self.send(view.leader, frame);
        }
    }

    /// Proposes one entry; false when the log takes nothing now and the commands have to wait.
    fn propose_next(&mut self, time_ms: i64) -> bool {
        if self.follow_held() {
            return true;
        }
        if is_reconfig(&self.log_queue) {
            return self.propose_reconfig(time_ms);
        }
        let held = self.held.as_ref().map(|held| held.origin);
        let length = batch_len(&self.log_queue, |command| {
            is_reconfig(command) || held.is_some_and(|held| first_origin(command) == held)
        });
        let entry = batch(time_ms, &self.log_queue[..length]);
        let taken = self.consensus.propose(entry.into()).is_ok();
        if taken {
            dequeue(&mut self.log_queue, length);
        }
        taken
    }

    /// A reconfiguration gets an entry of its own, together with the change of the membership that can be
    /// made at once. It waits until an earlier one is in force, so that whoever was removed is not needed any
    /// more when a later removal is answered.
    fn propose_reconfig(&mut self, time_ms: i64) -> bool {
        let length = first_len(&self.log_queue).unwrap_or_default();
        let length = length.min(self.log_queue.len());
        let unapplied = self.reconfig_index > self.consensus.status().applied;
        let refused = self.reconfig_refused || unapplied;
        if !refused && !self.is_settled() && self.hold(length) {
            return true;
        }
        let in_progress = refused || !self.is_settled();
        let (facts, changes) = match in_progress {
            true => {
                let facts = ReconfigFacts {
                    in_progress,
                    quorum_synced: true,
                };
                (facts, Vec::new())
            }
            false => self.judge(&self.log_queue[..length]),
        };
        let mut entry = batch(time_ms, &self.log_queue[..length]);
        set_reconfig_facts(&mut entry[BATCH_HEADER_LEN..], facts);
        match self.propose_change(&changes, entry) {
            Ok(index) => {
                self.reconfig_index = index;
                self.reconfig_refused = false;
                dequeue(&mut self.log_queue, length);
                true
            }
            Err(_) => false,
        }
    }

    fn propose_change(
        &mut self,
        changes: &[MembershipChange],
        entry: BytesMut,
    ) -> Result<u64, ProposeError> {
        if !changes.is_empty() {
            match self
                .consensus
                .propose_membership(changes, entry.clone().into())
            {
                Ok(index) => return Ok(index),
                Err(MembershipError::Propose(error)) => return Err(error),
                // The configuration is put into force alone, and the membership follows it.
                Err(MembershipError::InProgress | MembershipError::Invalid(_)) => {}
            }
        }
        self.consensus.propose(entry.into())
    }

    /// What the leader knows about a reconfiguration, and what of it can be put into force with it. Where it
    /// is refused anyway, the reason lies elsewhere than in the quorum.
    fn judge(&self, command: &[u8]) -> (ReconfigFacts, Vec<MembershipChange>) {
        let Some(next) = self.reconfigured(command) else {
            let facts = ReconfigFacts {
                in_progress: false,
                quorum_synced: true,
            };
            return (facts, Vec::new());
        };
        let plan = self.plan(&next);
        let facts = ReconfigFacts {
            in_progress: false,
            quorum_synced: plan.is_quorum_synced(|id| self.is_there(id)),
        };
        let changes = match facts.quorum_synced {
            true => plan.at_once(),
            false => Vec::new(),
        };
        (facts, changes)
    }

    fn reconfigured(&self, mut command: &[u8]) -> Option<Ensemble> {
        let Some(Ok(Command::Reconfig { request, .. })) = decode_first(&mut command) else {
            return None;
        };
        let record = ReconfigRequest::decode(&mut Reader::new(request.body)).ok()?;
        let next = self.ensemble.as_ref()?.changed(&record).ok()?;
        let valid = next.servers().all(|server| is_member_id(server.id));
        valid.then_some(next)
    }
}

fn batch(time_ms: i64, commands: &[u8]) -> BytesMut {
    let mut entry = BytesMut::with_capacity(BATCH_HEADER_LEN + commands.len());
    start_batch(time_ms, &mut entry);
    entry.extend_from_slice(commands);
    entry
}
