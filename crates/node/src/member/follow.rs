//! Who leads: what follows for this member when that changes, and how it is made to change.

use bytes::BytesMut;
use quenda_consensus::{Role, Status};
use quenda_tree::Tree;
use quenda_tree::command::Command;

use super::Member;
use crate::limits::{
    ELECTION_ATTEMPTS, ELECTION_DELAY_TICKS, ELECTION_SPACING_TICKS, LEADER_SILENT_MS,
    LEADERLESS_MS,
};
use crate::view::{Turn, View};
use crate::work::Founding;

/// An election without waiting for the timeout: the leader's process is known to be gone.
#[derive(Debug, Clone, Copy)]
pub(super) struct FastElection {
    tick: u64,
    attempts: u32,
}

/// Why the leadership is not handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TransferRefusal {
    /// This member does not lead; who does, if that is known.
    #[error("this member does not lead{}", .0.map_or(String::new(), |leader| format!(": ask member {leader}")))]
    NotLeader(Option<u64>),
    /// It is being handed over already.
    #[error("the leadership is being handed over already")]
    UnderWay,
    /// The member is to hand it to itself.
    #[error("this member leads already")]
    Itself,
    /// No other voter is there to take over.
    #[error("there is no other voter that could take over")]
    NoHeir,
    /// The member has no vote, so it cannot lead.
    #[error("member {0} has no vote: it cannot lead")]
    NoVoter(u64),
    /// The member does not answer.
    #[error("member {0} does not answer: it cannot take over")]
    Absent(u64),
}

impl Member {
    /// Looks at who leads. To be called before anything is sent.
    pub(super) fn follow_view(&mut self) {
        let status = self.consensus.status();
        if status.role != Role::Leader {
            self.leading_since = None;
            self.log_queue = BytesMut::new();
            self.held = None;
            self.reconfig_refused = false;
        }
        match self.views.follow(view_of(&status), self.now_ms) {
            Turn::Same | Turn::Leaderless => {}
            Turn::New(view) => self.turn_to(view),
            Turn::Lost => self.stop_serving(),
        }
    }

    pub(super) fn stop_serving(&mut self) {
        self.serving = false;
        if !self.queue.is_empty() || !self.outstanding.is_empty() {
            self.abandon();
        }
    }

    /// A leader that is heard but does not hear is as good as none: no write of this member's clients gets
    /// anywhere, and their sessions end although they are heard here. A pause of this member counts: the
    /// leader did not hear it meanwhile either.
    pub(super) fn miss_acknowledgements(&mut self) {
        let follows = self
            .views
            .current()
            .is_some_and(|view| view.leader != self.id);
        let unheard_ms = self.now_ms.saturating_sub(self.acknowledged_ms);
        if self.serving && follows && unheard_ms >= LEADERLESS_MS {
            self.stop_serving();
        }
    }

    fn turn_to(&mut self, view: View) {
        self.fast_election = None;
        self.acknowledged_ms = self.now_ms;
        if view.leader == self.id {
            self.open_log_queue();
            self.intake.lead(view.term);
            self.reconfig_index = 0;
        }
        self.forwarder.start(view.term, self.era);
        // Nothing was sent in this view yet: it went to an earlier leader, and may be lost.
        if !self.outstanding.is_empty() {
            self.abandon();
        }
        self.barriers.restart();
        self.reporter.restart();
    }

    /// Nobody knows the fate of what is in flight: it is given up, and those who wait for it are closed.
    pub(super) fn abandon(&mut self) {
        self.era += 1;
        self.abandoned = Some(self.era);
        self.queue = BytesMut::new();
        self.outstanding.clear();
        self.barriers.abandon();
        self.passed.clear();
        let term = self.views.current().map_or(0, |view| view.term);
        self.forwarder.start(term, self.era);
    }

    /// A new leader that knows everything committed grants every session its full timeout, and founds
    /// the cluster if there is none.
    pub(super) fn take_over(&mut self, tree: &Tree) {
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
        self.took_over_ms = self.now_ms;
        self.reporter.clear();
        self.track_all(tree);
        let grows = tree.ensemble().is_none() && !self.founding.config.is_empty();
        if tree.cluster().is_none() || grows {
            let Founding {
                cluster,
                secret,
                config,
            } = self.founding.clone();
            self.submit_command(&Command::Found {
                cluster,
                secret,
                config: &config,
            });
        }
    }

    /// A leader that was removed, or that is silent towards a member that starts no elections, is gone.
    pub(super) fn miss_leader(&mut self) {
        let Some(view) = self.views.current() else {
            return;
        };
        if view.leader == self.id {
            return;
        }
        let heard = self.peers.get(view.leader).and_then(|peer| peer.heard_ms);
        let silent = heard.is_some_and(|heard| self.now_ms >= heard + LEADER_SILENT_MS);
        if silent {
            self.consensus.forget_leader();
        }
    }

    /// The process of another member has closed its connection, or is unreachable at its port.
    pub fn peer_lost(&mut self, peer: u64) {
        let known = self.peers.entry(peer);
        known.up = false;
        known.gone = true;
        self.consensus.report_unreachable(peer);
        if self.consensus.status().leader != Some(peer) {
            return;
        }
        self.consensus.forget_leader();
        let voters = self.membership.voters.iter();
        let mut heirs = voters.filter(|id| **id != peer);
        if let Some(rank) = heirs.position(|id| *id == self.id) {
            let tick = self.tick + ELECTION_DELAY_TICKS + ELECTION_SPACING_TICKS * rank as u64;
            self.fast_election = Some(FastElection { tick, attempts: 0 });
        }
    }

    pub(super) fn elect_fast(&mut self) {
        let Some(election) = self.fast_election else {
            return;
        };
        if self.consensus.status().leader.is_some() {
            self.fast_election = None;
        } else if self.tick >= election.tick {
            self.consensus.campaign();
            let attempts = election.attempts + 1;
            let voters = self.membership.voters.len() as u64;
            let tick = self.tick + ELECTION_SPACING_TICKS * voters;
            self.fast_election =
                (attempts < ELECTION_ATTEMPTS).then_some(FastElection { tick, attempts });
        }
    }

    /// Hands the leadership to the voter that has the most of the log. False if this member does not lead,
    /// or there is nobody to take it. Nothing is proposed until it is done, or has failed.
    pub fn transfer_leadership(&mut self) -> bool {
        if !self.consensus.is_leader() {
            return false;
        }
        if self.consensus.is_transferring() {
            return true;
        }
        let heir = self.heir(|_| true);
        if let Some(heir) = heir {
            self.consensus.transfer_leadership(heir);
        }
        heir.is_some()
    }

    /// Hands the leadership to a certain voter, or to the one that has the most of the log; gives its id. Nothing is
    /// proposed until it is done, or has failed.
    ///
    /// # Errors
    /// This member does not lead, or the other one cannot take over.
    pub fn hand_over_to(&mut self, to: Option<u64>) -> Result<u64, TransferRefusal> {
        if !self.is_serving_leader() {
            let leader = self.consensus.status().leader;
            return Err(TransferRefusal::NotLeader(
                leader.filter(|id| *id != self.id),
            ));
        }
        if self.consensus.is_transferring() {
            return Err(TransferRefusal::UnderWay);
        }
        let heir = match to {
            None => self.heir(|_| true).ok_or(TransferRefusal::NoHeir)?,
            Some(id) if id == self.id => return Err(TransferRefusal::Itself),
            Some(id) if !self.membership.voters.contains(&id) => {
                return Err(TransferRefusal::NoVoter(id));
            }
            Some(id) => self
                .heir(|other| other == id)
                .filter(|_| self.peers.answers(id, self.now_ms))
                .ok_or(TransferRefusal::Absent(id))?,
        };
        self.consensus.transfer_leadership(heir);
        Ok(heir)
    }

    /// The voter that has the most of the log, of those that are there and that `may` take office; rather one
    /// that answers.
    pub(super) fn heir(&self, may: impl Fn(u64) -> bool) -> Option<u64> {
        let peers = self.consensus.peers();
        let heirs = peers.iter().filter(|peer| {
            let votes = self.membership.voters.contains(&peer.id);
            peer.id != self.id && votes && self.is_there(peer.id) && may(peer.id)
        });
        // The first of several that have as much.
        let heir = heirs.max_by_key(|peer| {
            let answers = self.peers.answers(peer.id, self.now_ms);
            (answers, peer.matched, std::cmp::Reverse(peer.id))
        });
        heir.map(|peer| peer.id)
    }
}

fn view_of(status: &Status) -> Option<View> {
    status.leader.map(|leader| View {
        term: status.term,
        leader,
    })
}
