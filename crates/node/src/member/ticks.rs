//! What a member does by the clock.

use quenda_consensus::Role;
use quenda_tree::command::Command;
use quenda_tree::ensemble::Ensemble;

use super::Member;
use crate::frame::{Frame, Standing};
use crate::limits::{
    CAUGHT_UP_ENTRIES, PAUSE_MS, RECONCILE_TICKS, REPORT_LOST_MS, STALL_MS, STATUS_TICKS,
};
use crate::reconcile::{Facts, Plan, Step};

impl Member {
    /// One tick has passed. To be called after [`Member::touched`], so that nobody who was heard expires.
    /// `is_held_up` tells whether a session's connection waits for the log: it may be left unread
    /// meanwhile, and is not silent then.
    pub fn tick(&mut self, now_ms: u64, is_held_up: impl FnMut(i64) -> bool) {
        self.now_ms = now_ms;
        self.tick += 1;
        let gap_ms = now_ms.saturating_sub(self.last_tick_ms);
        self.last_tick_ms = now_ms;
        if gap_ms > PAUSE_MS {
            self.peers.excuse(gap_ms);
        }
        if gap_ms > PAUSE_MS || self.is_stalled() {
            self.tracker.extend_all(gap_ms);
        }
        self.watch_disk(gap_ms > PAUSE_MS);
        let passive = self.is_alarmed() || self.is_removed() || self.disk.hangs;
        self.consensus.set_passive(passive);
        self.consensus.tick();
        self.elect_fast();
        self.miss_leader();
        self.follow_view();
        self.miss_acknowledgements();
        self.yield_to_disk();
        self.barriers.retry(self.tick);
        self.report_sessions();
        self.confess_failed_fetch();
        if self.tick % STATUS_TICKS == self.id % STATUS_TICKS {
            self.tell_standing();
            self.forwarder.forgive();
            self.compare();
        }
        // Also before anything is committed in the term: that may need the member that is fed.
        self.watch_snapshots();
        if self.leading_since.is_some() {
            self.expire(is_held_up);
            if self.tick.is_multiple_of(RECONCILE_TICKS) {
                self.reconcile();
            }
        }
    }

    /// Whether entries wait in the log and none gets through.
    fn is_stalled(&mut self) -> bool {
        let status = self.consensus.status();
        if status.applied == status.last_index || status.applied != self.progress.0 {
            self.progress = (status.applied, self.now_ms);
        }
        self.now_ms >= self.progress.1 + STALL_MS
    }

    /// Asks for the end of the sessions that nobody has heard for their timeout; only while a quorum is
    /// heard, and not of those that a member may have heard whose report is late.
    fn expire(&mut self, mut is_held_up: impl FnMut(i64) -> bool) {
        if !self.hears_quorum() {
            return;
        }
        let (own, now_ms, peers) = (self.id, self.now_ms, &self.peers);
        let is_elsewhere = |member| member != 0 && member != own;
        let is_held_up = |session, member| {
            is_held_up(session) || (is_elsewhere(member) && peers.is_report_late(member, now_ms))
        };
        let unheard_until_ms = self.unheard_until_ms();
        let may_have_heard_until = |member| match member {
            0 => unheard_until_ms,
            _ if is_elsewhere(member) => peers.may_have_heard_until(member, now_ms),
            _ => 0,
        };
        let expired = self
            .tracker
            .expired(now_ms, is_held_up, may_have_heard_until);
        for (session, generation) in expired {
            self.submit_command(&Command::ExpireSession {
                session,
                generation,
            });
        }
    }

    /// Until when a member that has not reported to this leader may have heard sessions that nobody else has: it may
    /// not have noticed yet that the leader before is gone, and serve its clients. 0 if all have reported, but for those
    /// whose process has ended.
    fn unheard_until_ms(&self) -> u64 {
        let members = self.membership.members().into_iter();
        let mut others = members.filter(|id| *id != self.id);
        let is_known =
            |id| self.peers.reported_since(id, self.took_over_ms) || self.peers.is_gone(id);
        match others.all(is_known) {
            true => 0,
            false => self.took_over_ms + REPORT_LOST_MS,
        }
    }

    fn hears_quorum(&self) -> bool {
        let majority = |voters: &[u64]| {
            let heard = voters
                .iter()
                .filter(|id| **id == self.id || self.peers.is_live(**id, self.now_ms));
            voters.is_empty() || 2 * heard.count() > voters.len()
        };
        majority(&self.membership.voters) && majority(&self.membership.outgoing_voters)
    }

    /// Tells the leader which sessions were heard here, and how many forwards it should have.
    fn report_sessions(&mut self) {
        let Some(view) = self.views.current() else {
            return;
        };
        if view.leader == self.id || self.consensus.is_joining() {
            return;
        }
        if let Some((number, sessions)) = self.reporter.report(self.tick) {
            let (series, forwarded) = self.forwarder.position();
            let frame = Frame::Touched {
                number,
                series,
                forwarded,
                sessions,
            };
            self.send(view.leader, frame.encode());
        }
    }

    /// Tells all others where this member stands.
    pub(super) fn tell_standing(&mut self) {
        let standing = Standing {
            applied: match self.consensus.is_joining() {
                true => 0,
                false => self.consensus.status().applied,
            },
            zxid: self.zxid,
            fetching: self.snapshots.index(),
            samples: self.agreement.to_tell(),
        };
        let frame = Frame::Status(standing).encode();
        let mut others = self.membership.members();
        others.extend(self.peers.up());
        others.sort_unstable();
        others.dedup();
        for id in others {
            if id != self.id {
                self.send(id, frame.clone());
            }
        }
    }

    /// Compares this member's state with that of the others. One that differs does not lead.
    fn compare(&mut self) {
        let members = self.membership.members();
        let leader = self.views.current().map(|view| view.leader);
        self.agreement.check(&members, leader, self.tick);
        if self.is_alarmed() && self.consensus.is_leader() && !self.consensus.is_transferring() {
            self.transfer_leadership();
        }
    }

    /// Takes the membership a step towards the configuration.
    fn reconcile(&mut self) {
        let status = self.consensus.status();
        let busy = self.consensus.is_transferring() || self.reconfig_index > status.applied;
        if busy || status.role != Role::Leader {
            return;
        }
        if self.consensus.is_membership_changing() {
            self.leave_joint();
            return;
        }
        if let Some(next) = self.prepared_for() {
            let preparation = self.plan(next).preparation();
            if let Some(change) = preparation {
                // Refused while another change is on its way, as below.
                let _refused = self.consensus.propose_membership(&[change], Vec::new());
            }
            return;
        }
        let Some(ensemble) = self.ensemble.as_ref().filter(|some| !some.is_empty()) else {
            return;
        };
        let step = self.plan(ensemble).next();
        match step {
            None => {}
            Some(Step::Change(changes)) => {
                // Refused while another change is on its way: the next look at it comes soon.
                let _refused = self.consensus.propose_membership(&changes, Vec::new());
            }
            Some(Step::HandOver(successor)) => self.consensus.transfer_leadership(successor),
        }
    }

    /// A leader that came after the one who began may have to end a joint membership itself.
    fn leave_joint(&mut self) {
        if self.membership.is_joint() {
            // Refused while raft does so by itself.
            let _refused = self.consensus.propose_membership(&[], Vec::new());
        }
    }

    pub(super) fn plan<'a>(&'a self, ensemble: &'a Ensemble) -> Plan<'a, impl Fn(u64) -> Facts> {
        let commit = self.consensus.status().commit;
        let peers = self.consensus.peers();
        Plan {
            leader: self.id,
            membership: &self.membership,
            ensemble,
            facts: move |id| {
                let known = peers.iter().find(|peer| peer.id == id);
                let matched = known.map_or(0, |peer| peer.matched);
                let votes = self.membership.votes(id);
                Facts {
                    live: self.is_there(id) && (!votes || self.peers.answers(id, self.now_ms)),
                    caught_up: matched > 0 && matched + CAUGHT_UP_ENTRIES >= commit,
                    wiped: self.peers.is_joining(id) && (votes || matched > 0),
                }
            },
        }
    }

    /// Whether a member, or one that is to become one, was heard lately.
    pub(super) fn is_there(&self, id: u64) -> bool {
        self.peers.is_live(id, self.now_ms)
    }
}
