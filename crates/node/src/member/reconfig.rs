//! Reconfigurations on the leader: one waits until an earlier one is in force, and until voters that take the place of
//! others have caught up; then it becomes one entry together with the change of the membership.

use bytes::BytesMut;
use quenda_consensus::{MembershipChange, MembershipError, ProposeError};
use quenda_proto::jute::{Decode, Reader};
use quenda_proto::records::ReconfigRequest;
use quenda_tree::Tree;
use quenda_tree::command::{
    BATCH_HEADER_LEN, Command, Origin, ReconfigFacts, decode_first, first_origin,
    set_reconfig_facts,
};
use quenda_tree::ensemble::{Ensemble, is_member_id};

use super::Member;
use super::commands::batch;
use crate::limits::{ARRIVAL_TICKS, RECONFIG_PATIENCE_TICKS};
use crate::outstanding::{dequeue, first_len};

/// A reconfiguration that waits, and what its connection has sent behind it. All other connections go on.
pub(super) struct Held {
    pub(super) origin: Origin,
    commands: BytesMut,
    since: u64,
    wait: Wait,
}

/// What a reconfiguration waits for.
enum Wait {
    /// An earlier one is not in force yet.
    Earlier,
    /// Voters take the place of others, or several go: who comes has to catch up first, and who goes must not be
    /// needed any more. `begun` when the votes are on their way from these to those.
    Exchange {
        next: Ensemble,
        permit: Permit,
        begun: bool,
    },
}

/// Whether an exchange may be prepared: nothing is done for a request that is refused anyway.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Permit {
    /// The state was not looked at yet.
    Unasked,
    /// It is as soon as something is applied, and something is on its way.
    Asked,
    Granted,
    Denied,
}

/// What becomes of an exchange next.
enum Turn {
    Wait,
    /// The votes pass over.
    Begin(Vec<MembershipChange>),
    /// The command, the facts it is to be judged by, and what changes with it.
    Request(Vec<u8>, ReconfigFacts, Vec<MembershipChange>),
}

impl Held {
    pub(super) fn bytes(&self) -> usize {
        self.commands.len()
    }
}

impl Member {
    /// Takes a reconfiguration up again that waited long enough, with what stands behind it.
    pub(super) fn release_held(&mut self, time_ms: i64) {
        let exchanges = match &self.held {
            None => return,
            Some(held) => matches!(held.wait, Wait::Exchange { .. }),
        };
        if exchanges {
            self.release_exchange(time_ms);
        } else if self.has_waited() || self.is_settled() {
            self.reconfig_refused = !self.is_settled();
            self.resume_behind(0);
        }
    }

    fn has_waited(&self) -> bool {
        let held = self.held.as_ref();
        held.is_some_and(|held| self.tick >= held.since + RECONFIG_PATIENCE_TICKS)
    }

    /// Ends the wait, and puts what was held in front of the queue, but for the first bytes.
    fn resume_behind(&mut self, length: usize) {
        if let Some(held) = self.held.take() {
            let mut commands = held.commands;
            dequeue(&mut commands, length);
            commands.extend_from_slice(&self.log_queue);
            self.log_queue = commands;
        }
    }

    /// Sees to it that the state is looked at soon: see [`Member::permit_exchange`].
    pub(super) fn ask_permit(&mut self, time_ms: i64) {
        if let Some(held) = &mut self.held
            && let Wait::Exchange { permit, .. } = &mut held.wait
            && *permit == Permit::Unasked
            && self.consensus.propose(batch(time_ms, &[])).is_ok()
        {
            *permit = Permit::Asked;
        }
    }

    /// Looks whether the request that waits for an exchange will be granted.
    pub(super) fn permit_exchange(&mut self, tree: &Tree) {
        if let Some(held) = &mut self.held
            && let Wait::Exchange { permit, .. } = &mut held.wait
            && let Some(Ok(Command::Reconfig { request, .. })) =
                decode_first(&mut &held.commands[..])
        {
            *permit = match tree.may_reconfigure(&request) {
                true => Permit::Granted,
                false => Permit::Denied,
            };
        }
    }

    /// The members that the leader prepares for.
    pub(super) fn prepared_for(&self) -> Option<&Ensemble> {
        match &self.held.as_ref()?.wait {
            Wait::Exchange { next, permit, .. } => {
                Some(next).filter(|_| *permit == Permit::Granted)
            }
            Wait::Earlier => None,
        }
    }

    /// Takes an exchange a step further: the votes pass over when it is prepared, and when the membership is not
    /// joint any more the request follows, as an entry of its own. Whoever acknowledges that entry knows that those
    /// who go have no vote. A request that cannot be prepared, or is not granted, is refused.
    fn release_exchange(&mut self, time_ms: i64) {
        match self.judge_exchange() {
            Turn::Wait => {}
            Turn::Begin(changes) => self.begin_exchange(&changes),
            Turn::Request(command, facts, changes) => {
                if self.propose_request(&command, facts, &changes, time_ms) {
                    self.resume_behind(command.len());
                }
            }
        }
    }

    fn judge_exchange(&self) -> Turn {
        let Some(held) = &self.held else {
            return Turn::Wait;
        };
        let Wait::Exchange {
            next,
            permit,
            begun,
        } = &held.wait
        else {
            return Turn::Wait;
        };
        let plan = self.plan(next);
        let denied = *permit == Permit::Denied;
        let synced = plan.is_quorum_synced(|id| self.is_there(id)) && !self.has_waited();
        let refused = !begun && (denied || !synced);
        let ready = *begun || (*permit == Permit::Granted && plan.is_prepared());
        if !refused && (!ready || self.consensus.is_membership_changing()) {
            return Turn::Wait;
        }
        if !refused && !begun {
            let changes = plan.exchange();
            if !changes.is_empty() {
                return Turn::Begin(changes);
            }
        }
        let changes = match refused {
            true => Vec::new(),
            false => plan.at_once(),
        };
        let facts = ReconfigFacts {
            in_progress: false,
            quorum_synced: *begun || synced || denied,
        };
        let length = first_len(&held.commands).unwrap_or_default();
        let command = &held.commands[..length.min(held.commands.len())];
        Turn::Request(command.to_vec(), facts, changes)
    }

    fn begin_exchange(&mut self, changes: &[MembershipChange]) {
        let proposed = self.consensus.propose_membership(changes, Vec::new());
        if proposed.is_ok()
            && let Some(held) = &mut self.held
            && let Wait::Exchange { begun, .. } = &mut held.wait
        {
            *begun = true;
        }
    }

    /// Lets the first command wait; false if another one does already.
    fn hold(&mut self, length: usize, wait: Wait) -> bool {
        if self.held.is_some() {
            return false;
        }
        let commands = BytesMut::from(&self.log_queue[..length]);
        self.held = Some(Held {
            origin: first_origin(&commands),
            commands,
            since: self.tick,
            wait,
        });
        dequeue(&mut self.log_queue, length);
        true
    }

    /// Whether the first command stands behind one that waits; it waits as well then.
    pub(super) fn follow_held(&mut self) -> bool {
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
    /// there or expected, and this leader knows both.
    fn is_settled(&self) -> bool {
        let knows = self.leading_since == Some(self.consensus.status().term);
        let moves = self.ensemble.as_ref().is_some_and(|ensemble| {
            self.plan(ensemble).is_under_way() || self.expects_voters(ensemble)
        });
        knows && !self.consensus.is_membership_changing() && !moves
    }

    /// Whether new voters were named so lately that they may come yet: a member that waits for its configuration
    /// is heard a moment after it.
    fn expects_voters(&self, ensemble: &Ensemble) -> bool {
        let votes = |id| self.membership.voters.contains(&id);
        self.tick < self.ensemble_tick + ARRIVAL_TICKS
            && ensemble
                .voters()
                .any(|server| !votes(server.id) && !self.is_there(server.id))
    }

    /// A reconfiguration gets an entry of its own, together with the change of the membership that can be
    /// made at once. It waits until an earlier one is in force, and until voters that it exchanges have caught
    /// up, so that whoever was removed is not needed any more when a removal is answered.
    pub(super) fn propose_reconfig(&mut self, time_ms: i64) -> bool {
        let length = first_len(&self.log_queue).unwrap_or_default();
        let length = length.min(self.log_queue.len());
        let unapplied = self.reconfig_index > self.consensus.status().applied;
        let refused = self.reconfig_refused || unapplied;
        if !refused && !self.is_settled() && self.hold(length, Wait::Earlier) {
            return true;
        }
        let in_progress = refused || self.held.is_some() || !self.is_settled();
        let command = self.log_queue[..length].to_vec();
        let (facts, changes) = match in_progress {
            true => {
                let facts = ReconfigFacts {
                    in_progress,
                    quorum_synced: true,
                };
                (facts, Vec::new())
            }
            false => {
                if let Some(next) = self.exchange(&command) {
                    let wait = Wait::Exchange {
                        next,
                        permit: Permit::Unasked,
                        begun: false,
                    };
                    return self.hold(length, wait);
                }
                self.judge(&command)
            }
        };
        let proposed = self.propose_request(&command, facts, &changes, time_ms);
        if proposed {
            self.reconfig_refused = false;
            dequeue(&mut self.log_queue, length);
        }
        proposed
    }

    fn propose_request(
        &mut self,
        command: &[u8],
        facts: ReconfigFacts,
        changes: &[MembershipChange],
        time_ms: i64,
    ) -> bool {
        let mut entry = batch(time_ms, command);
        set_reconfig_facts(&mut entry[BATCH_HEADER_LEN..], facts);
        let proposed = self.propose_change(changes, entry);
        if let Ok(index) = proposed {
            self.reconfig_index = index;
        }
        proposed.is_ok()
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
        self.consensus.propose(entry)
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

    /// The members that a request asks for, if voters take the place of others.
    fn exchange(&self, command: &[u8]) -> Option<Ensemble> {
        let next = self.reconfigured(command)?;
        let waits = {
            let plan = self.plan(&next);
            plan.is_exchange() && plan.is_quorum_synced(|id| self.is_there(id))
        };
        waits.then_some(next)
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
