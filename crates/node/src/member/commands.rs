//! Commands on their way: from the clients' queue into the log, or to the leader.

use bytes::BytesMut;
use quenda_consensus::{MembershipChange, MembershipError, ProposeError};
use quenda_proto::jute::{Decode, Reader};
use quenda_proto::records::ReconfigRequest;
use quenda_tree::command::{
    BATCH_HEADER_LEN, Command, ReconfigFacts, decode_first, is_reconfig, set_reconfig_facts,
    start_batch,
};
use quenda_tree::ensemble::{Ensemble, is_member_id};

use super::Member;
use crate::frame::Frame;
use crate::limits::FORWARD_WINDOW;
use crate::outstanding::{batch_len, dequeue, enqueue, first_len};
use crate::view::View;

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
        while !self.log_queue.is_empty() && self.propose_next(time_ms) {}
    }

    /// What is in the leader's queue belongs to its term: what an earlier one has left is dropped, those
    /// who wait for it give it up as well.
    pub(super) fn open_log_queue(&mut self) {
        let term = self.consensus.status().term;
        if self.log_term != term {
            self.log_term = term;
            self.log_queue = BytesMut::new();
        }
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
        if is_reconfig(&self.log_queue) {
            return self.propose_reconfig(time_ms);
        }
        let length = batch_len(&self.log_queue, is_reconfig);
        let entry = batch(time_ms, &self.log_queue[..length]);
        let taken = self.consensus.propose(entry.into()).is_ok();
        if taken {
            dequeue(&mut self.log_queue, length);
        }
        taken
    }

    /// A reconfiguration gets an entry of its own, together with the change of the membership that can be
    /// made at once.
    fn propose_reconfig(&mut self, time_ms: i64) -> bool {
        let status = self.consensus.status();
        let in_progress = self.reconfig_index > status.applied;
        let settled =
            self.leading_since == Some(status.term) && !self.consensus.is_membership_changing();
        if !in_progress && !settled {
            return false;
        }
        let length = first_len(&self.log_queue).unwrap_or_default();
        let length = length.min(self.log_queue.len());
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
