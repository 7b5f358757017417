//! Commands on their way: from the clients' queue into the log, or to the leader.

use bytes::BytesMut;
use quenda_tree::command::{BATCH_HEADER_LEN, first_origin, is_reconfig, start_batch};

use super::Member;
use crate::frame::Frame;
use crate::limits::FORWARD_WINDOW;
use crate::outstanding::{batch_len, dequeue, enqueue};
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
        self.release_held(time_ms);
        while !self.log_queue.is_empty() && self.propose_next(time_ms) {}
        self.ask_permit(time_ms);
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
        let taken = self.consensus.propose(entry).is_ok();
        if taken {
            dequeue(&mut self.log_queue, length);
        }
        taken
    }
}

/// An entry of these commands.
pub(super) fn batch(time_ms: i64, commands: &[u8]) -> BytesMut {
    let mut entry = BytesMut::with_capacity(BATCH_HEADER_LEN + commands.len());
    start_batch(time_ms, &mut entry);
    entry.extend_from_slice(commands);
    entry
}
