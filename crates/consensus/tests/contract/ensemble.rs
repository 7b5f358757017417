//! Three members over a network that loses, delays, reorders and duplicates; members crash and forget
//! what was not durable.

use std::collections::BTreeMap;

use crate::common::Member;
use quenda_consensus::{MembershipChange, Message, ProposeError, Recovered, Role};

/// Small, fast, the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }
}

struct Ensemble {
    members: BTreeMap<u64, Member>,
    network: Vec<Message>,
    /// The leader of each term, to see that there is only one.
    leaders: BTreeMap<u64, u64>,
    isolated: Option<u64>,
    seed: u64,
}

impl Ensemble {
    fn new(ids: &[u64], seed: u64) -> Ensemble {
        let start = |id| Member::start(id, seed, Recovered::bootstrap(ids.iter().copied(), []));
        Ensemble {
            members: ids.iter().map(|&id| (id, start(id))).collect(),
            network: Vec::new(),
            leaders: BTreeMap::new(),
            isolated: None,
            seed,
        }
    }

    fn member(&mut self, id: u64) -> &mut Member {
        self.members.get_mut(&id).expect("a member")
    }

    fn collect(&mut self) {
        for member in self.members.values_mut() {
            member.pump();
            self.network.append(&mut member.outbox);
            let status = member.raft.status();
            if status.role == Role::Leader {
                let known = *self.leaders.entry(status.term).or_insert(member.id);
                assert_eq!(known, member.id, "two leaders in term {}", status.term);
            }
        }
    }

    fn deliver(&mut self, message: &Message) {
        if [message.from, message.to]
            .iter()
            .any(|id| self.isolated == Some(*id))
        {
            return;
        }
        if let Some(member) = self.members.get_mut(&message.to) {
            // A message for an earlier life of the member may be refused; that is its right.
            let _outcome = member.raft.step(&message.payload());
        }
    }

    /// One round without faults.
    fn round(&mut self) {
        for member in self.members.values_mut() {
            member.raft.tick();
            member.settle();
        }
        self.collect();
        for message in std::mem::take(&mut self.network) {
            self.deliver(&message);
        }
        for member in self.members.values_mut() {
            member.settle();
        }
        self.collect();
        self.serve_snapshots();
    }

    /// What a host does when a follower needs more than the log has.
    fn serve_snapshots(&mut self) {
        for member in self.members.values_mut() {
            if let Some(wanted) = member.wanted.pop() {
                member.wanted.clear();
                let image = member.image();
                assert!(image.index >= wanted.min_index);
                member.raft.offer_snapshot(image);
            }
        }
        let announced: Vec<(u64, u64)> = self
            .network
            .iter()
            .filter(|message| message.snapshot_index.is_some())
            .map(|message| (message.from, message.to))
            .collect();
        for (from, to) in announced {
            self.member(from).raft.report_snapshot(to, true);
        }
    }

    fn rounds_until(&mut self, what: &str, done: impl Fn(&Ensemble) -> bool) {
        for _ in 0..2_000 {
            if done(self) {
                return;
            }
            self.round();
        }
        for member in self.members.values() {
            println!("{:?}", member.raft.status());
            println!("{:?}", member.raft.peers());
        }
        panic!("seed {}: never {what}", self.seed);
    }

    fn leader(&self) -> Option<u64> {
        let leaders = self.members.values().filter(|m| m.raft.is_leader());
        let newest = leaders.max_by_key(|m| m.raft.status().term)?;
        Some(newest.id)
    }

    fn elect(&mut self) -> u64 {
        self.rounds_until("elected", |ensemble| {
            ensemble.leader().is_some_and(|id| {
                Some(id) != ensemble.isolated
                    && ensemble.members[&id].raft.status().committed_in_term
            })
        });
        self.leader().expect("just seen")
    }

    fn has_everywhere(&self, command: &[u8]) -> bool {
        let mut members = self.members.values();
        members.all(|m| Some(m.id) == self.isolated || m.commands().contains(&command))
    }

    fn assert_same_history(&self) {
        for a in self.members.values() {
            for b in self.members.values() {
                let common = a.state.commands.len().min(b.state.commands.len());
                assert_eq!(
                    a.state.commands[..common],
                    b.state.commands[..common],
                    "seed {}: members {} and {} differ",
                    self.seed,
                    a.id,
                    b.id
                );
            }
        }
    }
}

#[test]
fn elects_one_leader_replicates_and_followers_refuse_proposals() {
    let mut ensemble = Ensemble::new(&[1, 2, 3], 11);
    let leader = ensemble.elect();
    for number in 0..20_u8 {
        ensemble.member(leader).raft.propose(vec![number]).unwrap();
    }
    ensemble.rounds_until("replicated", |e| e.has_everywhere(&[19]));
    ensemble.assert_same_history();
    let follower = (1..=3).find(|id| *id != leader).unwrap();
    assert_eq!(
        ensemble.member(follower).raft.propose(b"x".to_vec()),
        Err(ProposeError::NotLeader {
            leader: Some(leader)
        })
    );
    let peers = ensemble.member(leader).raft.peers();
    assert_eq!(peers.len(), 3);
    assert!(peers.iter().all(|peer| peer.voter && peer.active));
}

/// A disk that was set back, or that had lied: what the leader and this member alone had acknowledged must
/// not be outvoted by it and a member that lags.
#[test]
fn a_member_that_has_lost_entries_votes_for_nobody_who_lacks_them() {
    let mut ensemble = Ensemble::new(&[1, 2, 3], 5);
    let leader = ensemble.elect();
    let others: Vec<u64> = (1..=3).filter(|id| *id != leader).collect();
    let (lagging, set_back) = (others[0], others[1]);
    ensemble.rounds_until("settled", |ensemble| {
        let commit = |id| ensemble.members[id].raft.status().commit;
        [1, 2, 3].iter().all(|id| commit(id) == commit(&1))
    });
    let old = ensemble.members[&set_back].disk.clone();
    ensemble.isolated = Some(lagging);
    ensemble
        .member(leader)
        .raft
        .propose(b"kept".to_vec())
        .expect("a leader");
    ensemble.rounds_until("committed", |ensemble| ensemble.has_everywhere(b"kept"));
    let member = Member::from_disk(set_back, 5, old);
    ensemble.members.insert(set_back, member);
    for _ in 0..5 {
        ensemble.round();
    }
    // The leader is gone; the two others are on their own.
    ensemble.isolated = Some(leader);
    for _ in 0..200 {
        ensemble.round();
        assert!(
            ensemble
                .members
                .values()
                .all(|m| m.id == leader || !m.raft.is_leader())
        );
    }
    // It is back: nothing is lost, and everybody gets it.
    ensemble.isolated = None;
    ensemble.rounds_until("healed", |ensemble| ensemble.has_everywhere(b"kept"));
    ensemble.assert_same_history();
}

#[test]
fn a_vote_leaves_only_when_it_is_durable() {
    let mut ensemble = Ensemble::new(&[1, 2, 3], 12);
    ensemble.member(1).raft.campaign();
    ensemble.member(1).settle();
    let asked: Vec<Message> = std::mem::take(&mut ensemble.member(1).outbox);
    for message in asked.iter().filter(|message| message.to == 2) {
        ensemble.member(2).raft.step(&message.payload()).unwrap();
    }
    ensemble.member(2).settle();
    for message in std::mem::take(&mut ensemble.member(2).outbox) {
        ensemble.member(1).raft.step(&message.payload()).unwrap();
    }
    // The pre-vote is won; the real request must wait for the candidate's own vote on disk.
    ensemble.member(1).pump();
    assert!(ensemble.member(1).outbox.is_empty());
    assert_eq!(ensemble.member(1).unsynced.len(), 1);
    ensemble.member(1).sync(1);
    let asked: Vec<Message> = std::mem::take(&mut ensemble.member(1).outbox);
    assert_eq!(asked.len(), 2);
    for message in asked.iter().filter(|message| message.to == 2) {
        ensemble.member(2).raft.step(&message.payload()).unwrap();
    }
    ensemble.member(2).pump();
    assert!(
        ensemble.member(2).outbox.is_empty(),
        "the vote is not on disk"
    );
    ensemble.member(2).sync(1);
    assert_eq!(ensemble.member(2).outbox.len(), 1);
}

#[test]
fn a_follower_that_was_away_catches_up_from_the_window() {
    let mut ensemble = Ensemble::new(&[1, 2, 3], 13);
    let leader = ensemble.elect();
    let away = (1..=3).find(|id| *id != leader).unwrap();
    ensemble.isolated = Some(away);
    for number in 0..50_u8 {
        ensemble
            .member(leader)
            .raft
            .propose(vec![number; 64])
            .unwrap();
        ensemble.round();
    }
    ensemble.member(leader).checkpoint(u64::MAX);
    ensemble.isolated = None;
    ensemble.rounds_until("caught up", |e| e.has_everywhere(&[49; 64]));
    ensemble.assert_same_history();
    assert_eq!(
        ensemble.leader(),
        Some(leader),
        "its return disturbs nobody"
    );
}

#[test]
fn a_follower_behind_the_window_gets_a_snapshot() {
    let mut ensemble = Ensemble::new(&[1, 2, 3], 14);
    let leader = ensemble.elect();
    let away = (1..=3).find(|id| *id != leader).unwrap();
    ensemble.isolated = Some(away);
    for number in 0..50_u8 {
        ensemble
            .member(leader)
            .raft
            .propose(vec![number; 64])
            .unwrap();
        ensemble.round();
    }
    ensemble.member(leader).checkpoint(0);
    ensemble.isolated = None;
    ensemble.rounds_until("caught up", |e| e.has_everywhere(&[49; 64]));
    ensemble.assert_same_history();
    let installed = ensemble.member(away).disk.compacted.0;
    assert!(installed > 50, "by snapshot: {installed}");
    ensemble
        .member(leader)
        .raft
        .propose(b"behind it".to_vec())
        .unwrap();
    ensemble.rounds_until("replicated", |e| e.has_everywhere(b"behind it"));
}

#[test]
fn an_isolated_leader_steps_down_and_its_proposals_are_replaced() {
    let mut ensemble = Ensemble::new(&[1, 2, 3], 15);
    let old = ensemble.elect();
    ensemble.isolated = Some(old);
    ensemble.member(old).raft.propose(b"lost".to_vec()).unwrap();
    let new = ensemble.elect();
    assert_ne!(old, new);
    ensemble.member(new).raft.propose(b"kept".to_vec()).unwrap();
    ensemble.rounds_until("stepped down", |e| !e.members[&old].raft.is_leader());
    ensemble.isolated = None;
    ensemble.rounds_until("replicated", |e| e.has_everywhere(b"kept"));
    for member in ensemble.members.values() {
        assert_eq!(member.commands(), [b"kept"]);
        assert!(member.disk.entries.iter().all(|e| e.data != b"lost"[..]));
    }
}

#[test]
fn leadership_can_be_handed_over() {
    let mut ensemble = Ensemble::new(&[1, 2, 3], 16);
    let old = ensemble.elect();
    let to = (1..=3).find(|id| *id != old).unwrap();
    ensemble.member(old).raft.transfer_leadership(to);
    assert_eq!(
        ensemble.member(old).raft.propose(b"x".to_vec()),
        Err(ProposeError::Transferring)
    );
    ensemble.rounds_until("handed over", |e| e.leader() == Some(to));
}

#[test]
fn followers_get_a_read_index_through_the_leader() {
    let mut ensemble = Ensemble::new(&[1, 2, 3], 17);
    let leader = ensemble.elect();
    let follower = (1..=3).find(|id| *id != leader).unwrap();
    let index = ensemble.member(leader).raft.propose(b"a".to_vec()).unwrap();
    ensemble.rounds_until("replicated", |e| e.has_everywhere(b"a"));
    // The same context on two members must not be mixed up.
    ensemble.member(leader).raft.read_index(1).unwrap();
    ensemble.member(follower).raft.read_index(1).unwrap();
    ensemble.rounds_until("answered", |e| {
        [leader, follower]
            .iter()
            .all(|id| !e.members[id].reads.is_empty())
    });
    for id in [leader, follower] {
        let reads = &ensemble.members[&id].reads;
        assert_eq!(reads.len(), 1);
        assert!(reads[0].context == 1 && reads[0].index >= index);
    }
}

#[test]
fn a_new_member_starts_from_a_snapshot_as_learner_and_becomes_a_voter() {
    let mut ensemble = Ensemble::new(&[1], 18);
    ensemble.member(1).raft.campaign();
    ensemble.elect();
    ensemble.member(1).raft.propose(b"before".to_vec()).unwrap();
    ensemble.round();
    let mut joining = Member::start(2, 18, Recovered::joining());
    joining.raft.campaign();
    assert_eq!(joining.raft.status().role, Role::Follower, "it has no vote");
    ensemble.members.insert(2, joining);
    ensemble
        .member(1)
        .raft
        .propose_membership(&[MembershipChange::AddLearner(2)], Vec::new())
        .unwrap();
    ensemble.rounds_until("caught up", |e| e.has_everywhere(b"before"));
    assert!(ensemble.member(2).disk.compacted.0 > 0, "by snapshot");
    ensemble
        .member(1)
        .raft
        .propose_membership(&[MembershipChange::AddVoter(2)], Vec::new())
        .unwrap();
    ensemble.rounds_until("a voter", |e| {
        e.members
            .values()
            .all(|m| m.state.membership.voters == [1, 2])
    });
}

/// A leader may have to put its own removal into force: an earlier leader had proposed it.
#[test]
fn a_leader_that_is_removed_or_demoted_gives_way_although_entries_are_on_their_way() {
    for demoted in [false, true] {
        let mut ensemble = Ensemble::new(&[1, 2, 3], 21);
        let leader = ensemble.elect();
        let change = match demoted {
            true => MembershipChange::AddLearner(leader),
            false => MembershipChange::Remove(leader),
        };
        let raft = &mut ensemble.member(leader).raft;
        raft.propose_membership(&[change], Vec::new()).unwrap();
        raft.propose(b"behind".to_vec()).unwrap();
        let term = raft.status().term;
        for number in 0..20 {
            ensemble.round();
            let raft = &mut ensemble.member(leader).raft;
            // As long as it leads.
            let _ = raft.propose(format!("{number}").into_bytes());
        }
        ensemble.rounds_until("another leads", |ensemble| {
            ensemble.leader().is_some_and(|other| other != leader)
        });
        let other = ensemble.leader().unwrap();
        assert_eq!(ensemble.member(other).raft.status().term, term + 1);
        assert_eq!(ensemble.member(leader).raft.status().role, Role::Follower);
        ensemble
            .member(other)
            .raft
            .propose(b"after".to_vec())
            .unwrap();
        ensemble.rounds_until("the others go on", |ensemble| {
            let others = ensemble.members.values().filter(|m| m.id != leader);
            let mut commands = others.map(|m| &m.state.commands);
            commands.all(|all| all.iter().any(|(_, command)| command == b"after"))
        });
    }
}

#[test]
fn the_same_inputs_give_the_same_outputs() {
    let trace = |seed| {
        let mut ensemble = Ensemble::new(&[1, 2, 3], seed);
        let mut trace = Vec::new();
        for _ in 0..200 {
            ensemble.round();
            trace.extend(ensemble.network.iter().cloned());
            trace.retain(|message| !message.payload().is_empty());
        }
        let leader = ensemble.leader();
        (trace, leader, ensemble.leaders)
    };
    assert!(trace(19) == trace(19));
}

/// Faults of every kind, then peace: nothing that was applied anywhere is ever lost or differs, and the
/// ensemble works again.
#[test]
fn survives_loss_delay_reordering_duplication_and_crashes() {
    let mut applied = 0;
    for seed in 1..=30 {
        println!("seed {seed}");
        applied += storm(seed);
    }
    // One storm may be too bad to get anything done; all of them together are not.
    assert!(applied > 30 * 20, "only {applied} commands were applied");
}

/// Gives the number of commands that were applied before peace came.
fn storm(seed: u64) -> usize {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut ensemble = Ensemble::new(&[1, 2, 3], seed);
    let mut acknowledged: Vec<(u64, Vec<u8>)> = Vec::new();
    let mut next = 0_u32;
    for _ in 0..3_000 {
        let id = 1 + random.below(3) as u64;
        match random.below(100) {
            0 => crash(&mut ensemble, id, &mut random),
            1 => ensemble.isolated = random.percent(50).then_some(id),
            2..=4 => {
                let retain = random.next() % 2_000;
                ensemble.member(id).checkpoint(retain);
            }
            5..=24 => {
                next += 1;
                let command = next.to_be_bytes().to_vec();
                // Refused on followers; that is part of the test's mix.
                let _outcome = ensemble.member(id).raft.propose(command);
            }
            25..=54 => ensemble.member(id).raft.tick(),
            55..=74 => {
                let member = ensemble.member(id);
                let count = random.below(member.unsynced.len() + 1);
                member.sync(count);
            }
            _ => deliver_some(&mut ensemble, &mut random),
        }
        ensemble.collect();
        ensemble.serve_snapshots();
        remember(&ensemble, &mut acknowledged);
    }
    ensemble.isolated = None;
    // What is still under way may depose the leader of the moment; let it arrive first.
    for _ in 0..100 {
        ensemble.round();
    }
    let leader = ensemble.elect();
    ensemble
        .member(leader)
        .raft
        .propose(b"peace".to_vec())
        .unwrap();
    ensemble.rounds_until("at peace", |e| e.has_everywhere(b"peace"));
    ensemble.assert_same_history();
    for member in ensemble.members.values() {
        let known = &member.state.commands[..acknowledged.len()];
        assert_eq!(known, acknowledged, "seed {seed}: member {}", member.id);
    }
    acknowledged.len()
}

fn crash(ensemble: &mut Ensemble, id: u64, random: &mut Random) {
    let member = ensemble.members.remove(&id).expect("a member");
    ensemble.members.insert(id, member.crash(random.next()));
}

fn deliver_some(ensemble: &mut Ensemble, random: &mut Random) {
    for _ in 0..1 + random.below(8) {
        if ensemble.network.is_empty() {
            return;
        }
        let position = random.below(ensemble.network.len());
        let message = ensemble.network.swap_remove(position);
        if random.percent(10) {
            continue;
        }
        if random.percent(5) {
            ensemble.network.push(message.clone());
        }
        ensemble.deliver(&message);
    }
}

/// Whatever any member has applied may have been told to a client.
fn remember(ensemble: &Ensemble, acknowledged: &mut Vec<(u64, Vec<u8>)>) {
    for member in ensemble.members.values() {
        let commands = &member.state.commands;
        let common = commands.len().min(acknowledged.len());
        assert_eq!(
            commands[..common],
            acknowledged[..common],
            "seed {}: member {}",
            ensemble.seed,
            member.id
        );
        acknowledged.extend_from_slice(&commands[common..]);
    }
}
