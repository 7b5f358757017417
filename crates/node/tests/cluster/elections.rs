//! Elections, and leadership that is handed over.

use quenda_consensus::Role;
use quenda_node::Service;
use quenda_node::frame::Frame;
use quenda_proto::ErrorCode;

use crate::harness::{Cluster, Fate};

#[test]
fn the_end_of_the_leaders_process_is_noticed_at_once() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let leader = cluster.leader();
    cluster.kill(leader);
    let start = cluster.now_ms;
    cluster.until("another leads", |cluster| cluster.leader_of().is_some());
    assert!(
        cluster.now_ms - start <= 250,
        "after {} ms",
        cluster.now_ms - start
    );
}

#[test]
fn a_broken_connection_does_not_depose_a_leader_that_lives() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let (leader, follower) = (cluster.leader(), cluster.follower());
    let term = cluster.host(leader).member.status().term;
    cluster.host(follower).member.peer_lost(leader);
    cluster.run_for(2000);
    assert_eq!(cluster.leader(), leader);
    assert_eq!(cluster.host(leader).member.status().term, term);
    assert!(cluster.all_serve());
}

#[test]
fn leadership_is_handed_over_and_nothing_in_flight_is_lost() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let leader = cluster.leader();
    let client = cluster.open(leader, 4000);
    cluster.create(&client, "/before");
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    assert!(cluster.host(leader).member.transfer_leadership());
    cluster.settle();
    assert_eq!(cluster.role(leader), Role::Follower);
    cluster.until("another leads", |cluster| cluster.leader_of().is_some());
    assert!(cluster.hosts[&leader].eras.is_empty());
    cluster.create(&client, "/after");
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    assert!(!cluster.host(leader).member.transfer_leadership());
}

#[test]
fn a_leader_without_followers_has_nobody_to_hand_over_to() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let leader = cluster.leader();
    cluster.isolate(leader);
    cluster.run_for(1100);
    assert!(!cluster.host(leader).member.transfer_leadership());
}

#[test]
fn everybody_restarts_and_nothing_acknowledged_is_lost() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let client = cluster.open(1, 4000);
    for number in 0..20 {
        cluster.create(&client, &format!("/{number}"));
        assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    }
    let disks: Vec<_> = [1, 2, 3].map(|id| (id, cluster.kill(id))).into();
    for (id, disk) in disks {
        cluster.restart(id, disk);
    }
    cluster.until("everybody serves", Cluster::all_serve);
    cluster.assert_agreement();
    for number in 0..20 {
        assert!(cluster.has(2, &format!("/{number}")));
    }
}

#[test]
fn nobody_serves_before_it_has_caught_up() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let (leader, follower) = (cluster.leader(), cluster.follower());
    cluster.host(follower).checkpoint(0);
    let disk = cluster.kill(follower);
    let client = cluster.open(leader, 4000);
    for number in 0..20 {
        cluster.create(&client, &format!("/{number}"));
        assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    }
    // It hears the leader, but gets no entries.
    cluster.judge(|_, _, frame| match frame {
        Frame::Raft { payload, .. } if payload.len() > 100 => Fate::Drop,
        _ => Fate::Deliver,
    });
    cluster.restart(follower, disk);
    cluster.run_for(1000);
    assert!(cluster.host(follower).member.view().is_some());
    assert_eq!(cluster.host(follower).member.service(), Service::NoLeader);
    cluster.judge_nothing();
    cluster.until("everybody serves", Cluster::all_serve);
    assert!(cluster.has(follower, "/19"));
}
