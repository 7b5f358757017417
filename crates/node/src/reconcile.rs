//! How the membership follows the configuration: step by step, and never so that the quorum would be lost.
//!
//! The configuration says who shall vote; raft's membership says who does. New voters come in as learners
//! and are promoted when they have caught up; a voter that lost its data is taken out and comes in again;
//! voters go only while a majority of those that stay is live.

use quenda_consensus::{Membership, MembershipChange};
use quenda_tree::ensemble::Ensemble;

/// What the leader knows of a member at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Facts {
    /// It was heard lately.
    pub live: bool,
    /// It has nearly the whole log.
    pub caught_up: bool,
    /// It is part of the membership but has lost its data.
    pub wiped: bool,
}

/// What is to be done next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// These changes, as one.
    Change(Vec<MembershipChange>),
    /// The leader shall not stay a voter: this member has to lead first.
    HandOver(u64),
}

/// A leader that looks at its ensemble.
pub struct Plan<'a, F: Fn(u64) -> Facts> {
    /// The leader.
    pub leader: u64,
    /// The membership in force.
    pub membership: &'a Membership,
    /// The configuration that it shall become.
    pub ensemble: &'a Ensemble,
    /// What is known of each member; of the leader itself nothing is asked.
    pub facts: F,
}

impl<F: Fn(u64) -> Facts> Plan<'_, F> {
    /// The next step; `None` when the membership is as configured, or has to wait.
    pub fn next(&self) -> Option<Step> {
        if let Some(wiped) = self.wiped() {
            return Some(Step::Change(vec![MembershipChange::Remove(wiped)]));
        }
        if let Some(change) = self.arrivals().next().or_else(|| self.promotion()) {
            return Some(Step::Change(vec![change]));
        }
        let departures = self.departures();
        if !departures.is_empty() {
            return Some(Step::Change(departures));
        }
        let stays = self.is_configured_voter(self.leader);
        let successor = self.successor().filter(|_| !stays && !self.awaits_voters());
        successor.map(Step::HandOver)
    }

    /// What of the configuration can be put into force at once, together with it. Who leaves is not needed
    /// any more when the request is answered, be it the leader.
    pub fn at_once(&self) -> Vec<MembershipChange> {
        let mut changes: Vec<MembershipChange> = self.arrivals().collect();
        let mut leaving = self.departures();
        let leader_stays = self.is_configured_voter(self.leader);
        if !leader_stays && !self.awaits_voters() {
            let mut voters = self.leaving_voters();
            voters.push(self.leader);
            if self.can_do_without(&voters) {
                leaving.push(self.departure(self.leader));
            }
        }
        changes.extend(leaving);
        changes
    }

    /// Whether voters go in a way that takes several changes. Those that go are needed until those that come
    /// have caught up, and until a joint membership is left.
    pub fn is_exchange(&self) -> bool {
        let leader_leaves = !self.is_configured_voter(self.leader);
        let leave = leader_leaves || !self.leaving_voters().is_empty();
        leave && (self.awaits_voters() || self.at_once().len() > 1)
    }

    /// What an exchange begins with, before anybody is told: a voter to come that is to be fed.
    pub fn preparation(&self) -> Option<MembershipChange> {
        let mut coming = self.coming_voters();
        let next = coming.find(|id| !self.membership.contains(*id));
        next.map(MembershipChange::AddLearner)
    }

    /// Whether all voters to come that are there have caught up.
    pub fn is_prepared(&self) -> bool {
        self.coming_voters().all(|id| {
            let facts = (self.facts)(id);
            self.membership.learners.contains(&id) && facts.caught_up && !facts.wiped
        })
    }

    /// What a prepared exchange changes before the request takes effect: those that come vote, and those that go
    /// do not any more, but for the leader. They stay as learners, so that they hear what becomes of the request.
    pub fn exchange(&self) -> Vec<MembershipChange> {
        let votes = self.coming_voters().map(MembershipChange::AddVoter);
        let leaving = self.leaving_voters().into_iter();
        let leaving = leaving.map(MembershipChange::AddLearner);
        votes.chain(self.arrivals()).chain(leaving).collect()
    }

    /// Whether members that are there are on their way to what the configuration says.
    pub fn is_under_way(&self) -> bool {
        let members = self.membership.members().into_iter();
        let leaving = members.filter(|id| {
            let votes = self.membership.votes(*id);
            match self.ensemble.server(*id) {
                None => true,
                Some(server) => server.observer && votes,
            }
        });
        self.awaits_voters() || leaving.count() > 0
    }

    /// Whether a majority of the configured voters is live and holds the leader's log; `is_up` tells of
    /// members that are not in the membership yet.
    pub fn is_quorum_synced(&self, is_up: impl Fn(u64) -> bool) -> bool {
        let ready = |id: u64| {
            if id == self.leader {
                return true;
            }
            if !self.membership.contains(id) {
                return is_up(id);
            }
            let facts = (self.facts)(id);
            facts.live && (facts.caught_up || !self.membership.votes(id))
        };
        let voters: Vec<u64> = self.ensemble.voters().map(|server| server.id).collect();
        let count = voters.iter().filter(|id| ready(**id)).count();
        2 * count > voters.len()
    }

    /// The voter that is to lead when the leader goes: one that stays, and has the most of the log.
    fn successor(&self) -> Option<u64> {
        let voters = self.membership.voters.iter().copied();
        voters
            .filter(|id| *id != self.leader && self.is_configured_voter(*id))
            .find(|id| {
                let facts = (self.facts)(*id);
                facts.live && facts.caught_up && !facts.wiped
            })
    }

    fn wiped(&self) -> Option<u64> {
        let mut members = self.membership.members().into_iter();
        members.find(|id| {
            let lost = *id != self.leader && (self.facts)(*id).wiped;
            lost && (!self.membership.votes(*id) || self.can_do_without(&[*id]))
        })
    }

    /// Configured members that are not in the membership.
    fn arrivals(&self) -> impl Iterator<Item = MembershipChange> + '_ {
        let servers = self.ensemble.servers();
        servers
            .filter(|server| !self.membership.contains(server.id))
            .map(|server| MembershipChange::AddLearner(server.id))
    }

    /// A learner that shall vote, and can.
    fn promotion(&self) -> Option<MembershipChange> {
        let mut learners = self.membership.learners.iter().copied();
        let ready = learners.find(|id| {
            let facts = (self.facts)(*id);
            self.is_configured_voter(*id) && facts.live && facts.caught_up && !facts.wiped
        });
        ready.map(MembershipChange::AddVoter)
    }

    /// Members that shall not be what they are any more, but for the leader. Voters stay as long as voters
    /// that shall take their place are on their way, so that there are never fewer copies than there were.
    fn departures(&self) -> Vec<MembershipChange> {
        let learners = self.membership.learners.iter().copied();
        let mut changes: Vec<MembershipChange> = learners
            .filter(|id| self.ensemble.server(*id).is_none())
            .map(MembershipChange::Remove)
            .collect();
        let leaving = self.leaving_voters();
        if leaving.is_empty() || self.awaits_voters() || !self.can_do_without(&leaving) {
            return changes;
        }
        changes.extend(leaving.into_iter().map(|id| self.departure(id)));
        changes
    }

    /// Voters that shall not vote, but for the leader.
    fn leaving_voters(&self) -> Vec<u64> {
        let others = self.membership.voters.iter().copied();
        others
            .filter(|id| *id != self.leader && !self.is_configured_voter(*id))
            .collect()
    }

    fn departure(&self, id: u64) -> MembershipChange {
        match self.ensemble.server(id) {
            Some(_) => MembershipChange::AddLearner(id),
            None => MembershipChange::Remove(id),
        }
    }

    /// Whether configured voters do not vote yet although they are there.
    fn awaits_voters(&self) -> bool {
        self.coming_voters().next().is_some()
    }

    /// Configured voters that do not vote yet and are there.
    fn coming_voters(&self) -> impl Iterator<Item = u64> + '_ {
        let voters = self.ensemble.voters().map(|server| server.id);
        voters.filter(|id| !self.membership.voters.contains(id) && (self.facts)(*id).live)
    }

    /// Whether a majority of the voters without these is live.
    fn can_do_without(&self, leaving: &[u64]) -> bool {
        let staying = self.membership.voters.iter().copied();
        let staying: Vec<u64> = staying.filter(|id| !leaving.contains(id)).collect();
        let live = |id: &&u64| {
            let facts = (self.facts)(**id);
            **id == self.leader || (facts.live && !facts.wiped)
        };
        2 * staying.iter().filter(live).count() > staying.len()
    }

    fn is_configured_voter(&self, id: u64) -> bool {
        let server = self.ensemble.server(id);
        server.is_some_and(|server| !server.observer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use MembershipChange::{AddLearner, AddVoter, Remove};
    use quenda_tree::ensemble::Server;

    const GOOD: Facts = Facts {
        live: true,
        caught_up: true,
        wiped: false,
    };
    const DOWN: Facts = Facts {
        live: false,
        caught_up: false,
        wiped: false,
    };
    const WIPED: Facts = Facts {
        live: true,
        caught_up: false,
        wiped: true,
    };

    fn ensemble(voters: &[u64], observers: &[u64]) -> Ensemble {
        let line = |id: &u64, role: &str| {
            let value = format!("h{id}:1:2:{role};3");
            Server::parse(&id.to_string(), &value).expect("a server line")
        };
        let voters = voters.iter().map(|id| line(id, "participant"));
        let observers = observers.iter().map(|id| line(id, "observer"));
        Ensemble::new(0, voters.chain(observers))
    }

    fn membership(voters: &[u64], learners: &[u64]) -> Membership {
        Membership {
            learners: learners.to_vec(),
            ..Membership::of_voters(voters.iter().copied())
        }
    }

    fn next(membership: &Membership, ensemble: &Ensemble, facts: &[(u64, Facts)]) -> Option<Step> {
        plan(membership, ensemble, facts).next()
    }

    fn plan<'a>(
        membership: &'a Membership,
        ensemble: &'a Ensemble,
        facts: &'a [(u64, Facts)],
    ) -> Plan<'a, impl Fn(u64) -> Facts + 'a> {
        Plan {
            leader: 1,
            membership,
            ensemble,
            facts: |id| {
                let known = facts.iter().find(|(member, _)| *member == id);
                known.map_or(GOOD, |(_, facts)| *facts)
            },
        }
    }

    fn change(change: MembershipChange) -> Option<Step> {
        Some(Step::Change(vec![change]))
    }

    #[test]
    fn a_membership_that_is_as_configured_stays() {
        let wanted = ensemble(&[1, 2, 3], &[4]);
        assert_eq!(next(&membership(&[1, 2, 3], &[4]), &wanted, &[]), None);
    }

    #[test]
    fn new_voters_come_as_learners_and_vote_when_they_have_caught_up() {
        let wanted = ensemble(&[1, 2, 3], &[]);
        let step = next(&membership(&[1], &[]), &wanted, &[]);
        assert_eq!(step, change(AddLearner(2)));
        let step = next(&membership(&[1], &[2]), &wanted, &[]);
        assert_eq!(step, change(AddLearner(3)));
        let both = membership(&[1], &[2, 3]);
        assert_eq!(next(&both, &wanted, &[(2, DOWN)]), change(AddVoter(3)));
        assert_eq!(next(&both, &wanted, &[(2, DOWN), (3, DOWN)]), None);
    }

    #[test]
    fn voters_go_when_those_that_stay_have_a_live_majority() {
        let wanted = ensemble(&[1, 2], &[]);
        let now = membership(&[1, 2, 3], &[]);
        assert_eq!(next(&now, &wanted, &[(3, DOWN)]), change(Remove(3)));
        assert_eq!(next(&now, &wanted, &[(2, DOWN)]), None);
    }

    #[test]
    fn voters_are_replaced_only_when_the_new_ones_vote() {
        let wanted = ensemble(&[1, 4, 5], &[]);
        let now = membership(&[1, 2, 3], &[]);
        assert_eq!(
            plan(&now, &wanted, &[]).at_once(),
            [AddLearner(4), AddLearner(5)]
        );
        let step = next(&membership(&[1, 2, 3, 4, 5], &[]), &wanted, &[]);
        assert_eq!(step, Some(Step::Change(vec![Remove(2), Remove(3)])));
        // A new one that is not there is not waited for.
        assert_eq!(
            plan(&now, &wanted, &[(4, DOWN), (5, DOWN)]).at_once(),
            [AddLearner(4), AddLearner(5), Remove(2), Remove(3)]
        );
    }

    #[test]
    fn an_exchange_feeds_who_comes_and_is_one_change_then() {
        let wanted = ensemble(&[1, 4, 5], &[6]);
        let now = membership(&[1, 2, 3], &[7]);
        assert!(plan(&now, &wanted, &[]).is_exchange());
        assert!(plan(&now, &wanted, &[(4, DOWN), (5, DOWN)]).is_exchange());
        let (few, none) = (membership(&[1, 2, 3], &[]), []);
        assert!(!plan(&few, &ensemble(&[1, 2], &[]), &none).is_exchange());
        assert!(!plan(&now, &ensemble(&[1, 2, 3, 4], &[]), &[]).is_exchange());
        assert_eq!(plan(&now, &wanted, &[]).preparation(), Some(AddLearner(4)));
        let one = membership(&[1, 2, 3], &[4, 7]);
        assert_eq!(plan(&one, &wanted, &[]).preparation(), Some(AddLearner(5)));
        assert!(!plan(&one, &wanted, &[]).is_prepared());
        // One that is not there is not waited for.
        assert!(plan(&one, &wanted, &[(5, DOWN)]).is_prepared());
        assert_eq!(
            plan(&one, &wanted, &[(5, DOWN)]).exchange(),
            [
                AddVoter(4),
                AddLearner(5),
                AddLearner(6),
                AddLearner(2),
                AddLearner(3)
            ]
        );
        let exchanged = membership(&[1, 4], &[2, 3, 5, 6, 7]);
        assert_eq!(
            plan(&exchanged, &wanted, &[(5, DOWN)]).at_once(),
            [Remove(2), Remove(3), Remove(7)]
        );
        let both = membership(&[1, 2, 3], &[4, 5]);
        assert_eq!(plan(&both, &wanted, &[]).preparation(), None);
        let behind = Facts {
            caught_up: false,
            ..GOOD
        };
        assert!(!plan(&both, &wanted, &[(5, behind)]).is_prepared());
        assert!(plan(&both, &wanted, &[]).is_prepared());
        let without_leader = ensemble(&[2, 4], &[3]);
        assert!(plan(&both, &without_leader, &[]).is_exchange());
        assert_eq!(
            plan(&both, &without_leader, &[]).exchange(),
            [AddVoter(4), AddLearner(3)]
        );
        let exchanged = membership(&[1, 2, 4], &[3, 5]);
        assert_eq!(
            plan(&exchanged, &without_leader, &[]).at_once(),
            [Remove(5), Remove(1)]
        );
    }

    #[test]
    fn the_leader_hands_over_before_it_goes() {
        let wanted = ensemble(&[2, 3], &[]);
        let now = membership(&[1, 2, 3], &[]);
        assert_eq!(next(&now, &wanted, &[]), Some(Step::HandOver(2)));
        let step = next(&now, &wanted, &[(2, DOWN)]);
        assert_eq!(step, Some(Step::HandOver(3)));
    }

    #[test]
    fn a_leader_that_a_request_removes_goes_with_it() {
        let two = membership(&[1, 2], &[]);
        let other = ensemble(&[2], &[]);
        assert_eq!(plan(&two, &other, &[]).at_once(), [Remove(1)]);
        assert_eq!(plan(&two, &other, &[(2, DOWN)]).at_once(), []);
        let three = membership(&[1, 2, 3], &[]);
        let last = ensemble(&[3], &[]);
        assert_eq!(plan(&three, &last, &[]).at_once(), [Remove(2), Remove(1)]);
        let observing = ensemble(&[2, 3], &[1]);
        assert_eq!(plan(&three, &observing, &[]).at_once(), [AddLearner(1)]);
    }

    #[test]
    fn a_change_is_under_way_until_those_who_are_there_have_their_part() {
        let wanted = ensemble(&[1, 2, 3], &[4]);
        let done = membership(&[1, 2, 3], &[4]);
        assert!(!plan(&done, &wanted, &[]).is_under_way());
        let learning = membership(&[1, 2], &[3, 4]);
        assert!(plan(&learning, &wanted, &[]).is_under_way());
        assert!(!plan(&learning, &wanted, &[(3, DOWN)]).is_under_way());
        let leaving = membership(&[1, 2, 3, 5], &[4]);
        assert!(plan(&leaving, &wanted, &[]).is_under_way());
    }

    #[test]
    fn voters_become_observers_and_observers_go() {
        let wanted = ensemble(&[1, 2], &[3]);
        let now = membership(&[1, 2, 3], &[4]);
        assert_eq!(
            next(&now, &wanted, &[]),
            Some(Step::Change(vec![Remove(4), AddLearner(3)]))
        );
    }

    #[test]
    fn a_voter_without_its_data_goes_and_comes_back() {
        let wanted = ensemble(&[1, 2, 3], &[]);
        let now = membership(&[1, 2, 3], &[]);
        assert_eq!(next(&now, &wanted, &[(3, WIPED)]), change(Remove(3)));
        assert_eq!(next(&now, &wanted, &[(3, WIPED), (2, DOWN)]), None);
        let step = next(&membership(&[1, 2], &[]), &wanted, &[]);
        assert_eq!(step, change(AddLearner(3)));
    }

    #[test]
    fn the_quorum_of_what_is_asked_for_must_be_there() {
        let now = membership(&[1, 2, 3], &[]);
        let none = |_: u64| false;
        let four = ensemble(&[1, 2, 3, 4], &[]);
        assert!(plan(&now, &four, &[]).is_quorum_synced(none));
        assert!(!plan(&now, &four, &[(2, DOWN)]).is_quorum_synced(none));
        assert!(plan(&now, &four, &[(2, DOWN)]).is_quorum_synced(|id| id == 4));
        let two = ensemble(&[1, 2], &[]);
        assert!(!plan(&now, &two, &[(2, DOWN)]).is_quorum_synced(none));
        let alone = membership(&[1], &[]);
        assert!(!plan(&alone, &two, &[]).is_quorum_synced(none));
    }
}
