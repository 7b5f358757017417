//! One voter: the path that a standalone member takes.

use crate::common::Member;
use quenda_consensus::{
    BOOTSTRAP_INDEX, BOOTSTRAP_TERM, Config, Consensus, EntryKind, MembershipChange,
    MembershipError, ProposeError, ReadIndex, ReadIndexError, Recovered, RecoveredError, Role,
    StepError, conf_context,
};

fn fresh() -> Member {
    Member::start(1, 7, Recovered::bootstrap([1], []))
}

fn leading() -> Member {
    let mut member = fresh();
    member.raft.campaign();
    member.settle();
    member
}

#[test]
fn leads_at_once_without_ticks_or_messages() {
    let mut member = fresh();
    assert_eq!(member.raft.status().role, Role::Follower);
    member.raft.campaign();
    let status = member.raft.status();
    assert_eq!((status.role, status.leader), (Role::Leader, Some(1)));
    assert_eq!(status.term, BOOTSTRAP_TERM + 1);
    member.settle();
    assert!(member.outbox.is_empty());
    let status = member.raft.status();
    assert_eq!(status.applied, BOOTSTRAP_INDEX + 1, "its first entry");
    assert!(status.committed_in_term);
}

#[test]
fn first_entry_of_a_leader_is_an_empty_command() {
    let mut member = fresh();
    member.raft.campaign();
    let ready = member.raft.ready().expect("an election to persist");
    let batch = ready.persist.expect("vote and first entry");
    assert_eq!(batch.hard_state.vote, 1);
    assert_eq!(batch.entries.len(), 1);
    assert_eq!(batch.entries[0].kind, EntryKind::Normal);
    assert!(batch.entries[0].data.is_empty());
    assert_eq!(batch.entries[0].index, BOOTSTRAP_INDEX + 1);
}

#[test]
fn commits_only_what_is_durable_and_one_report_covers_earlier_batches() {
    let mut member = leading();
    let mut indices = Vec::new();
    for command in 0..5_u8 {
        indices.push(member.raft.propose(vec![command]).unwrap());
        member.pump();
    }
    assert_eq!(member.unsynced.len(), 5, "five batches are outstanding");
    assert!(member.commands().is_empty(), "nothing is durable yet");
    assert_eq!(member.raft.oldest_write(), Some(member.unsynced[0].0));

    member.sync(3);
    assert_eq!(member.raft.oldest_write(), Some(member.unsynced[0].0));
    member.pump();
    assert_eq!(member.commands(), [[0], [1], [2]]);
    assert_eq!(member.state.applied, indices[2]);

    let late = member.unsynced[0].0;
    member.sync(2);
    // Reports may be repeated or come late: a number covers every earlier one.
    assert!(member.raft.on_persisted(late).is_empty());
    member.pump();
    assert_eq!(member.commands(), [[0], [1], [2], [3], [4]]);
    assert_eq!(member.raft.oldest_write(), None);
}

#[test]
fn a_batch_of_proposals_gets_consecutive_indices_and_one_write() {
    let mut member = leading();
    let commands: Vec<Vec<u8>> = (0..100_u8).map(|n| vec![n; 10]).collect();
    let range = member.raft.propose_batch(commands.clone()).unwrap();
    assert_eq!(range.end - range.start, 100);
    member.pump();
    assert_eq!(member.unsynced.len(), 1);
    member.settle();
    assert_eq!(member.commands(), commands);
    assert_eq!(member.state.commands[0].0, range.start);
    let next = member.raft.propose_batch(Vec::<Vec<u8>>::new()).unwrap();
    assert!(next.is_empty());
}

#[test]
fn a_commit_index_alone_causes_no_write() {
    let mut member = leading();
    member.raft.propose(b"a".to_vec()).unwrap();
    member.settle();
    let before = member.disk.hard_state.commit;
    for _ in 0..50 {
        member.raft.tick();
        member.pump();
    }
    assert!(member.unsynced.is_empty(), "an idle member does not write");
    assert!(before < member.raft.status().commit);
    member.raft.propose(b"b".to_vec()).unwrap();
    member.settle();
    assert!(member.disk.hard_state.commit > before, "it goes along");
}

#[test]
fn restarts_from_what_is_durable() {
    let mut member = leading();
    for command in 0..10_u8 {
        member.raft.propose(vec![command]).unwrap();
        member.pump();
    }
    member.sync(6);
    member.pump();
    let term = member.raft.status().term;

    let mut member = member.crash(7);
    assert!(member.commands().is_empty(), "no checkpoint was taken");
    member.raft.campaign();
    member.settle();
    assert_eq!(member.commands(), [[0], [1], [2], [3], [4], [5]]);
    assert_eq!(member.raft.status().term, term + 1);

    member.checkpoint(0);
    let applied = member.state.applied;
    let mut member = member.crash(7);
    member.raft.campaign();
    member.settle();
    assert_eq!(member.commands().len(), 6, "nothing is applied twice");
    assert_eq!(member.state.applied, applied + 1, "the new leader's entry");
}

#[test]
fn an_applied_index_ahead_of_the_stored_commit_index_is_no_contradiction() {
    let mut member = leading();
    member.raft.propose(b"a".to_vec()).unwrap();
    member.settle();
    member.checkpoint(u64::MAX);
    assert!(member.disk.hard_state.commit < member.disk.checkpoint.applied);
    let mut member = member.crash(7);
    member.raft.campaign();
    member.settle();
    assert_eq!(member.commands(), [b"a"]);
}

#[test]
fn compaction_frees_the_window_and_keeps_what_was_asked_for() {
    let mut member = leading();
    for command in 0..100_u8 {
        member.raft.propose(vec![command; 100]).unwrap();
    }
    member.settle();
    let applied = member.state.applied;
    assert_eq!(member.raft.status().window_bytes, 10_000);

    member.checkpoint(2_000);
    let status = member.raft.status();
    assert_eq!(status.first_index, applied - 20 + 1);
    assert_eq!(status.window_bytes, 2_000);
    member.checkpoint(0);
    assert_eq!(member.raft.status().window_bytes, 0);
    assert_eq!(member.raft.status().first_index, applied + 1);

    member.raft.propose(b"after".to_vec()).unwrap();
    member.settle();
    assert_eq!(member.commands().len(), 101);
    let mut member = member.crash(7);
    member.raft.campaign();
    member.settle();
    assert_eq!(member.commands().last(), Some(&&b"after"[..]));
}

#[test]
fn compaction_never_reaches_beyond_what_is_applied() {
    let mut member = leading();
    member.raft.propose(b"a".to_vec()).unwrap();
    member.pump();
    let applied = member.state.applied;
    member.raft.compact(u64::MAX);
    assert_eq!(member.raft.status().first_index, applied + 1);
    member.settle();
    assert_eq!(member.commands(), [b"a"]);
}

#[test]
fn refuses_more_than_the_uncommitted_bound_until_something_commits() {
    let config = Config {
        max_message_bytes: 1_000,
        max_uncommitted_bytes: 1_000,
        ..Config::new(1)
    };
    let mut raft = Consensus::new(config, Recovered::bootstrap([1], [])).unwrap();
    raft.campaign();
    let first = raft.propose(vec![1; 800]).unwrap();
    assert_eq!(raft.propose(vec![2; 300]), Err(ProposeError::Full));
    assert_eq!(raft.status().last_index, first, "nothing was appended");
    while let Some(ready) = raft.ready() {
        if ready.persist.is_some() {
            assert!(raft.on_persisted(ready.number).is_empty());
        }
    }
    raft.propose(vec![3; 300]).unwrap();
}

#[test]
fn committed_entries_come_in_bounded_portions() {
    let config = Config {
        max_committed_bytes: 1_000,
        ..Config::new(1)
    };
    let mut raft = Consensus::new(config, Recovered::bootstrap([1], [])).unwrap();
    raft.campaign();
    let commands = (0..50_u8).map(|n| vec![n; 300]).collect();
    let range = raft.propose_batch(commands).unwrap();
    let mut next = BOOTSTRAP_INDEX + 1;
    while let Some(ready) = raft.ready() {
        let bytes: usize = ready.committed.iter().map(|e| e.data.len()).sum();
        assert!(bytes <= 1_000);
        for entry in &ready.committed {
            assert_eq!(entry.index, next);
            next += 1;
        }
        if ready.persist.is_some() {
            assert!(raft.on_persisted(ready.number).is_empty());
        }
    }
    assert_eq!(next, range.end);
}

#[test]
fn read_index_needs_a_leader_with_an_entry_of_its_term() {
    let mut member = fresh();
    assert_eq!(member.raft.read_index(1), Err(ReadIndexError::NoLeader));
    member.raft.campaign();
    assert_eq!(
        member.raft.read_index(1),
        Err(ReadIndexError::NotCommittedInTerm)
    );
    member.settle();
    let index = member.raft.propose(b"a".to_vec()).unwrap();
    member.settle();
    member.raft.read_index(2).unwrap();
    member.pump();
    assert_eq!(member.reads, [ReadIndex { context: 2, index }]);
}

#[test]
fn proposals_need_a_leader() {
    let mut member = fresh();
    assert_eq!(
        member.raft.propose(b"a".to_vec()),
        Err(ProposeError::NotLeader { leader: None })
    );
}

#[test]
fn membership_changes_are_checked_and_one_at_a_time() {
    let mut member = leading();
    let remove_all = member
        .raft
        .propose_membership(&[MembershipChange::Remove(1)], Vec::new());
    assert!(matches!(remove_all, Err(MembershipError::Invalid(_))));
    let leave = member.raft.propose_membership(&[], Vec::new());
    assert!(matches!(leave, Err(MembershipError::Invalid(_))));

    member
        .raft
        .propose_membership(&[MembershipChange::AddLearner(2)], Vec::new())
        .unwrap();
    assert_eq!(
        member
            .raft
            .propose_membership(&[MembershipChange::AddLearner(3)], Vec::new()),
        Err(MembershipError::InProgress)
    );
    member.settle();
    assert_eq!(member.state.membership.learners, [2]);
    assert_eq!(member.raft.membership(), member.state.membership);
    // The log does not reach back to the empty start, so a new member is served by a snapshot.
    assert!(member.raft.peers().iter().any(|peer| peer.id == 2));
}

/// What it had promised is gone with its data.
#[test]
fn a_member_without_a_past_votes_for_nobody_and_acknowledges_nothing_it_lacks() {
    let mut other = Member::start(2, 7, Recovered::bootstrap([1, 2], []));
    other.raft.campaign();
    other.settle();
    let request = other.outbox.pop().expect("asks for a vote");
    let mut joining = Member::start(1, 7, Recovered::joining());
    assert_eq!(
        joining.raft.step(&request.payload()),
        Err(StepError::Joining)
    );
    // A leader that does not know yet what is lost: MsgHeartbeat from 2 to 1 in term 2, commit 5.
    let heartbeat = [8, 8, 16, 1, 24, 2, 32, 2, 64, 5];
    assert_eq!(joining.raft.step(&heartbeat), Err(StepError::Joining));
    // A voter that answers as it should.
    let mut voter = Member::start(1, 7, Recovered::bootstrap([1, 2], []));
    voter.raft.step(&request.payload()).expect("a vote");
    let lost = StepError::LostEntries {
        believed: 5,
        last: 1,
    };
    assert_eq!(voter.raft.step(&heartbeat), Err(lost));
}

#[test]
fn a_passive_member_starts_no_election_and_a_forgotten_leader_is_none() {
    let mut member = Member::start(1, 7, Recovered::bootstrap([1], []));
    member.raft.set_passive(true);
    member.raft.campaign();
    for _ in 0..100 {
        member.raft.tick();
    }
    assert_eq!(member.raft.status().role, Role::Follower);
    member.raft.set_passive(false);
    member.raft.campaign();
    assert!(member.raft.is_leader());
    member.raft.forget_leader();
    assert_eq!(member.raft.status().leader, Some(1), "it leads itself");
}

#[test]
fn a_command_travels_with_a_membership_change() {
    let mut member = leading();
    let index = member
        .raft
        .propose_membership(&[MembershipChange::AddLearner(2)], b"command".to_vec())
        .expect("a leader");
    member.settle();
    let entries = &member.disk.entries;
    let entry = entries.iter().find(|entry| entry.index == index);
    let context = conf_context(entry.expect("the entry")).expect("readable");
    assert_eq!(context.as_deref(), Some(&b"command"[..]));
    assert_eq!(member.raft.membership().learners, [2]);
    for other in entries.iter().filter(|entry| entry.index != index) {
        assert_eq!(conf_context(other), Ok(None));
    }
}

#[test]
fn takes_no_foreign_or_damaged_message() {
    let mut member = leading();
    assert!(matches!(
        member.raft.step(&[0xff, 0xff]),
        Err(StepError::Undecodable(_))
    ));
    let mut other = Member::start(2, 7, Recovered::bootstrap([1, 2], []));
    other.raft.campaign();
    other.settle();
    let request = other.outbox.pop().expect("asks for a vote");
    assert_eq!((request.from, request.to), (2, 1));
    assert_eq!(
        other.raft.step(&request.payload()),
        Err(StepError::Misdirected { to: 1 })
    );
}

/// Raft would start an election in the term behind it, which is 0, and give up the process.
#[test]
fn takes_no_message_of_the_last_term() {
    let mut member = Member::start(1, 7, Recovered::bootstrap([1, 2], []));
    // Raft's encoding: timeout-now, to 1, from 2, in this term.
    let mut call = vec![0x08, 14, 0x10, 1, 0x18, 2, 0x20];
    call.extend([0xff; 9]);
    call.push(1);
    assert_eq!(member.raft.step(&call), Err(StepError::Unexpected));
    assert_eq!(member.raft.status().term, BOOTSTRAP_TERM);
    call.truncate(7);
    call.push(9);
    assert_eq!(member.raft.step(&call), Ok(()));
    assert_eq!(member.raft.status().term, 10, "its own election");
}

#[test]
fn contradictions_in_what_was_recovered_are_found() {
    let mut member = leading();
    for command in 0..4_u8 {
        member.raft.propose(vec![command]).unwrap();
    }
    member.settle();
    let good = member.disk.recovered();
    assert_eq!(good.validate(), Ok(()));

    let mut gap = good.clone();
    gap.entries.remove(2);
    assert!(matches!(gap.validate(), Err(RecoveredError::Gap { .. })));

    let mut back = good.clone();
    back.entries[2].term = 1;
    assert!(matches!(
        back.validate(),
        Err(RecoveredError::TermWentBack { .. })
    ));

    let mut applied = good.clone();
    applied.applied = good.last_index() + 1;
    assert!(matches!(
        applied.validate(),
        Err(RecoveredError::AppliedOutsideLog { .. })
    ));

    let mut commit = good.clone();
    commit.hard_state.commit = good.last_index() + 1;
    assert!(matches!(
        commit.validate(),
        Err(RecoveredError::CommitBeyondLog { .. })
    ));

    let mut term = good.clone();
    term.hard_state.term = 1;
    assert!(matches!(
        term.validate(),
        Err(RecoveredError::TermBehindLog { .. })
    ));
}

#[test]
fn useless_settings_are_refused() {
    let bad = Config {
        heartbeat_tick: 10,
        ..Config::new(1)
    };
    assert!(Consensus::new(bad, Recovered::bootstrap([1], [])).is_err());
    assert!(Consensus::new(Config::new(0), Recovered::bootstrap([1], [])).is_err());
}
