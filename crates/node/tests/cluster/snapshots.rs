//! Members that are far behind, or have lost everything.

use quenda_consensus::Role;
use quenda_node::frame::Frame;
use quenda_node::{PeerState, Service};
use quenda_proto::ErrorCode;

use crate::harness::{Client, Cluster, Fate};
use crate::host::Disk;

fn write_much(cluster: &mut Cluster, client: &Client, prefix: &str) {
    for number in 0..50 {
        cluster.create(client, &format!("/{prefix}-{number}"));
        assert_eq!(cluster.answer(client), ErrorCode::Ok);
    }
}

fn cut_log(cluster: &mut Cluster, id: u64) {
    cluster.host(id).checkpoint(0);
}

/// Kills a member and writes so much that the leader's log does not reach back to where it was.
fn left_behind(cluster: &mut Cluster, client: &Client, follower: u64, leader: u64) -> Disk {
    let disk = cluster.kill(follower);
    write_much(cluster, client, "a");
    cluster.run_for(2000);
    cut_log(cluster, leader);
    disk
}

#[test]
fn a_member_far_behind_gets_a_snapshot() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let (leader, follower) = (cluster.leader(), cluster.follower());
    let client = cluster.open(leader, 60_000);
    let disk = left_behind(&mut cluster, &client, follower, leader);
    cluster.restart(follower, disk);
    cluster.until("everybody serves", Cluster::all_serve);
    assert!(cluster.has(follower, "/a-49"));
    // Its clients were closed: what changed in between fired no watch.
    assert_eq!(cluster.hosts[&follower].eras, [1]);
    let client = cluster.open(follower, 4000);
    cluster.create(&client, "/behind");
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    cluster.assert_agreement();
}

#[test]
fn writes_go_on_while_a_snapshot_is_fetched_and_the_log_waits_for_it() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let (leader, follower) = (cluster.leader(), cluster.follower());
    let client = cluster.open(leader, 600_000);
    let disk = left_behind(&mut cluster, &client, follower, leader);
    cluster.fetching = false;
    cluster.restart(follower, disk);
    cluster.until("the snapshot is offered", |cluster| {
        cluster.hosts[&leader].member.serves_snapshots()
    });
    for round in 0..10 {
        write_much(&mut cluster, &client, &format!("b{round}"));
        cut_log(&mut cluster, leader);
        cluster.run_for(500);
    }
    assert!(!cluster.has(follower, "/a-49"));
    cluster.fetching = true;
    cluster.settle();
    assert!(cluster.has(follower, "/b9-49"));
    assert_eq!(
        cluster.hosts[&follower].eras,
        [1],
        "the log was cut too far"
    );
}

#[test]
fn a_member_killed_while_it_fetches_starts_again() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let (leader, follower) = (cluster.leader(), cluster.follower());
    let client = cluster.open(leader, 600_000);
    let disk = left_behind(&mut cluster, &client, follower, leader);
    cluster.fetching = false;
    cluster.restart(follower, disk);
    cluster.until("the snapshot is offered", |cluster| {
        cluster.hosts[&leader].member.serves_snapshots()
    });
    let disk = cluster.kill(follower);
    cluster.fetching = true;
    cluster.run_for(1000);
    cluster.restart(follower, disk);
    cluster.until("everybody serves", Cluster::all_serve);
    cluster.assert_agreement();
}

/// Nothing is written meanwhile, so the log does not say that the old image is of no use.
#[test]
fn images_that_were_removed_are_not_offered_again() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let (leader, follower) = (cluster.leader(), cluster.follower());
    let client = cluster.open(leader, 600_000);
    let disk = left_behind(&mut cluster, &client, follower, leader);
    cluster.fetching = false;
    cluster.restart(follower, disk);
    cluster.until("the snapshot is offered", |cluster| {
        cluster.hosts[&leader].member.serves_snapshots()
    });
    let disk = cluster.kill(follower);
    cluster.until("it is given up", |cluster| {
        !cluster.hosts[&leader].member.serves_snapshots()
    });
    cluster.drop_images(leader);
    cluster.fetching = true;
    cluster.restart(follower, disk);
    cluster.until("everybody serves", Cluster::all_serve);
    assert!(cluster.has(follower, "/a-49"));
    cluster.assert_agreement();
}

#[test]
fn a_fetch_that_fails_is_not_tried_again_at_once() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let (leader, follower) = (cluster.leader(), cluster.follower());
    let client = cluster.open(leader, 600_000);
    let disk = left_behind(&mut cluster, &client, follower, leader);
    cluster.fetching = false;
    cluster.restart(follower, disk);
    cluster.until("the snapshot is offered", |cluster| {
        cluster.hosts[&leader].member.serves_snapshots()
    });
    cluster.lose_images(leader);
    cluster.fetching = true;
    cluster.run_for(10_000);
    let tried = cluster.attempts;
    assert!((2..=10).contains(&tried), "{tried} attempts in ten seconds");
    cluster.drop_images(leader);
    cluster.until("everybody serves", Cluster::all_serve);
}

#[test]
fn a_leader_lost_while_its_snapshot_is_fetched_is_no_loss() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let (leader, follower) = (cluster.leader(), cluster.follower());
    let client = cluster.open(leader, 600_000);
    let disk = cluster.kill(follower);
    write_much(&mut cluster, &client, "a");
    cluster.run_for(2000);
    let ids: Vec<u64> = cluster.hosts.keys().copied().collect();
    for id in ids {
        cut_log(&mut cluster, id);
    }
    cluster.fetching = false;
    cluster.restart(follower, disk);
    cluster.until("the snapshot is offered", |cluster| {
        cluster.hosts[&leader].member.serves_snapshots()
    });
    cluster.kill(leader);
    cluster.fetching = true;
    cluster.until("everybody serves", Cluster::all_serve);
    cluster.assert_agreement();
    assert!(cluster.has(follower, "/a-49"));
}

/// What a member without data had promised is forgotten: it has no vote before it has caught up.
#[test]
fn a_wiped_voter_does_not_vote_before_it_has_caught_up() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let (leader, wiped) = (cluster.leader(), cluster.follower());
    let third = 6 - leader - wiped;
    let client = cluster.open(leader, 60_000);
    write_much(&mut cluster, &client, "a");
    cluster.kill(wiped);
    let disks = (cluster.kill(leader), cluster.kill(third));
    // Alone with the one that lost its data, nobody is elected.
    cluster.restart(third, disks.1);
    cluster.start_empty(wiped);
    cluster.run_for(10_000);
    assert_eq!(cluster.leader_of(), None);
    assert_eq!(cluster.role(wiped), Role::Follower);
    assert_eq!(cluster.host(wiped).member.peer_state(), PeerState::Joining);
    assert_eq!(cluster.host(wiped).member.service(), Service::NoLeader);
    // With the other one it comes in again.
    cluster.restart(leader, disks.0);
    cluster.until("it is a voter again", |cluster| {
        cluster.is_membership(&[1, 2, 3], &[]) && cluster.all_serve()
    });
    assert!(cluster.has(wiped, "/a-49"));
    cluster.assert_agreement();
    // And counts: the third is not needed.
    cluster.kill(third);
    cluster.until("the others go on", |cluster| cluster.leader_of().is_some());
    let client = cluster.open(wiped, 4000);
    cluster.create(&client, "/after");
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
}

#[test]
fn a_wiped_voter_comes_back_while_the_others_write() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let (leader, wiped) = (cluster.leader(), cluster.follower());
    let client = cluster.open(leader, 60_000);
    write_much(&mut cluster, &client, "a");
    cluster.kill(wiped);
    write_much(&mut cluster, &client, "b");
    cluster.start_empty(wiped);
    write_much(&mut cluster, &client, "c");
    cluster.until("it is a voter again", |cluster| {
        cluster.is_membership(&[1, 2, 3], &[]) && cluster.all_serve()
    });
    cluster.assert_agreement();
    assert!(cluster.has(wiped, "/c-49"));
}

#[test]
fn a_wiped_observer_comes_back_too() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[4]);
    let client = cluster.open(1, 60_000);
    write_much(&mut cluster, &client, "a");
    cluster.kill(4);
    cluster.start_empty(4);
    cluster.until("everybody serves", Cluster::all_serve);
    cluster.until("it is an observer again", |cluster| {
        cluster.is_membership(&[1, 2, 3], &[4])
    });
    assert!(cluster.has(4, "/a-49"));
}

/// The leader can commit nothing without the member that it feeds, and does not hear that it was fed.
#[test]
fn a_lost_answer_of_the_only_other_member_stops_nobody() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let (leader, behind) = (cluster.leader(), cluster.follower());
    let other = 6 - leader - behind;
    let client = cluster.open(leader, 60_000);
    let disk = cluster.kill(behind);
    write_much(&mut cluster, &client, "a");
    cluster.run_for(2000);
    cut_log(&mut cluster, other);
    cluster.kill(leader);
    cluster.fetching = false;
    cluster.restart(behind, disk);
    cluster.until("the snapshot is offered", |cluster| {
        cluster.hosts[&other].member.serves_snapshots()
    });
    cluster.judge(move |from, _, frame| match frame {
        Frame::Raft { .. } if from == behind => Fate::Drop,
        _ => Fate::Deliver,
    });
    cluster.fetching = true;
    cluster.settle();
    cluster.tick();
    assert!(cluster.has(behind, "/a-49"));
    cluster.judge_nothing();
    cluster.until("both serve", Cluster::all_serve);
}
