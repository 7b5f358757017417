//! Frames of other members.

use quenda_consensus::{StepError, announced_snapshot};

use super::Member;
use crate::forwarding::{Verdict, check_commands};
use crate::frame::{Frame, PeerFrameError, Refusal, Series, Standing};
use crate::limits::STATUS_TICKS;
use crate::outstanding::enqueue;
use crate::work::PeerState;

impl Member {
    /// Takes a frame of another member.
    ///
    /// # Errors
    /// The frame has no effect then; those who send repeat what matters.
    pub fn receive(&mut self, from: u64, frame: &[u8], now_ms: u64) -> Result<(), PeerFrameError> {
        self.now_ms = self.now_ms.max(now_ms);
        let frame = Frame::decode(frame)?;
        let peer = self.peers.entry(from);
        peer.heard_ms = Some(now_ms);
        peer.up = true;
        peer.gone = false;
        match frame {
            Frame::Raft {
                to_learner,
                payload,
            } => {
                peer.answered_ms = Some(now_ms);
                self.step(from, to_learner, payload)?;
            }
            Frame::SnapshotOffer { payload } => self.take_offer(from, payload)?,
            Frame::SnapshotResult { index, installed } => {
                self.snapshot_ended(from, index, installed);
            }
            Frame::Forward {
                series,
                sequence,
                commands,
            } => self.take_forward(from, series, sequence, commands)?,
            Frame::ForwardRefused {
                series,
                reason,
                incarnation,
            } => {
                let view = self.views.current();
                if self.forwarder.is_refused(series, reason, view) {
                    if reason == Refusal::Outrun {
                        self.forwarder.outrun(incarnation);
                        self.barriers.outrun(incarnation);
                    }
                    self.abandon();
                }
            }
            Frame::Touched {
                number,
                series,
                forwarded,
                sessions,
            } => self.take_report(from, number, series, forwarded, &sessions),
            Frame::TouchedAck { number } => {
                if self.views.current().is_some_and(|view| view.leader == from) {
                    self.acknowledged_ms = now_ms;
                }
                self.reporter.acknowledged(number);
            }
            Frame::Status(standing) => self.note_standing(from, standing),
            Frame::NotMember { index } => self.dismissed_at = self.dismissed_at.max(index),
        }
        Ok(())
    }

    fn step(&mut self, from: u64, to_learner: bool, payload: &[u8]) -> Result<(), StepError> {
        if self.consensus.is_joining() && !to_learner {
            return Err(StepError::Joining);
        }
        self.dismiss(from);
        self.consensus.step_from(from, payload)
    }

    /// Tells one who does not know that it has been removed: those that were there when it happened have no
    /// reason to talk to it any more.
    fn dismiss(&mut self, from: u64) {
        let leader = self.consensus.status().leader;
        let known = self.membership.is_empty() || self.membership.contains(from);
        if known || leader.is_none_or(|leader| leader == from) {
            return;
        }
        let tick = self.tick;
        let peer = self.peers.entry(from);
        if peer
            .dismissed_tick
            .is_none_or(|last| tick >= last + STATUS_TICKS)
        {
            peer.dismissed_tick = Some(tick);
            let index = self.consensus.status().applied;
            self.send(from, Frame::NotMember { index }.encode());
        }
    }

    fn take_offer(&mut self, from: u64, payload: &[u8]) -> Result<(), PeerFrameError> {
        let image = announced_snapshot(payload)?.ok_or(PeerFrameError::Field("snapshot"))?;
        if image.index <= self.consensus.status().commit {
            // Raft tells the leader how far this member is.
            self.consensus.step_from(from, payload)?;
        } else {
            self.snapshots.offered(from, image);
        }
        Ok(())
    }

    fn take_forward(
        &mut self,
        from: u64,
        series: Series,
        sequence: u64,
        commands: &[u8],
    ) -> Result<(), PeerFrameError> {
        let status = self.consensus.status();
        if !self.consensus.is_leader() || status.term != series.term {
            self.refuse(from, series, Refusal::NotLeading);
            return Ok(());
        }
        self.intake.lead(status.term);
        let readable = check_commands(commands, from);
        // What cannot be read is as good as lost.
        let sequence = if readable.is_ok() { sequence } else { u64::MAX };
        match self.intake.judge(from, series, sequence) {
            Verdict::Take => {
                self.open_log_queue();
                enqueue(&mut self.log_queue, commands.into());
            }
            Verdict::Ignore => {}
            Verdict::Refuse(reason) => self.refuse(from, series, reason),
        }
        readable
    }

    fn refuse(&mut self, to: u64, series: Series, reason: Refusal) {
        let frame = Frame::ForwardRefused {
            series,
            reason,
            incarnation: self.intake.incarnation(to),
        };
        self.send(to, frame.encode());
    }

    fn take_report(
        &mut self,
        from: u64,
        number: u64,
        series: Series,
        forwarded: u64,
        sessions: &[i64],
    ) {
        let status = self.consensus.status();
        if !self.consensus.is_leader() {
            return;
        }
        self.peers.reported(from, self.now_ms);
        for session in sessions {
            self.tracker.touch(*session, from, self.now_ms);
        }
        self.send(from, Frame::TouchedAck { number }.encode());
        if series.term == status.term {
            self.intake.lead(status.term);
            if !self.intake.is_complete(from, series, forwarded) {
                self.refuse(from, series, Refusal::Gap);
            }
        }
    }

    fn note_standing(&mut self, from: u64, standing: Standing) {
        self.agreement.told(from, &standing.samples);
        let tick = self.tick;
        let peer = self.peers.entry(from);
        peer.state = Some(match standing.applied {
            0 => PeerState::Joining,
            _ => PeerState::Member,
        });
        if standing.fetching != 0 {
            peer.fetching_tick = tick;
        }
        peer.standing = standing;
    }
}
