//! Disks that do not give back what they were handed, without an error.

use std::cell::Cell;
use std::rc::Rc;

use quenda_node::Service;
use quenda_node::frame::Frame;
use quenda_node::limits::{DISK_HANG_MS, LIVE_MS, TICK_MS};
use quenda_proto::ErrorCode;

use crate::harness::{Client, Cluster, Fate};

fn service(cluster: &Cluster, id: u64) -> Service {
    cluster.hosts[&id].member.service()
}

/// Lets a disk hang, with something on its way to it.
fn hang(cluster: &mut Cluster, id: u64, writer: &Client, path: &str) {
    cluster.host(id).syncs = false;
    cluster.create(writer, path);
    cluster.settle();
}

#[test]
fn a_leader_whose_disk_hangs_hands_over_and_lets_its_clients_go_until_the_log_moves() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let (leader, follower) = (cluster.leader(), cluster.follower());
    let own = cluster.open(leader, 20_000);
    let client = cluster.open(follower, 20_000);
    hang(&mut cluster, leader, &own, "/waits");
    cluster.run_for(DISK_HANG_MS - 2 * TICK_MS);
    assert_eq!(cluster.leader(), leader);
    assert!(cluster.all_serve());
    assert!(cluster.hosts[&leader].eras.is_empty());
    cluster.until("another leads", |cluster| {
        cluster.leader_of().is_some_and(|other| other != leader)
    });
    assert_eq!(service(&cluster, leader), Service::NoLeader);
    assert!(cluster.hosts[&leader].member.disk_hangs());
    assert_eq!(cluster.hosts[&leader].eras, [1]);
    // The clients of the others were not disturbed, and nobody waits for that disk.
    assert!(cluster.hosts[&follower].eras.is_empty());
    cluster.create(&client, "/after");
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    cluster.run_for(10_000);
    assert_eq!(service(&cluster, leader), Service::NoLeader);
    assert_ne!(cluster.leader(), leader);
    cluster.host(leader).syncs = true;
    cluster.until("everybody serves", Cluster::all_serve);
    assert_eq!(cluster.hosts[&leader].eras, [1]);
    assert!(cluster.has(leader, "/after") && cluster.has(leader, "/waits"));
    cluster.assert_agreement();
}

#[test]
fn a_disk_that_is_slow_but_comes_back_costs_nobody_anything() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let (leader, follower) = (cluster.leader(), cluster.follower());
    let clients = [leader, follower].map(|id| cluster.open(id, 60_000));
    let term = cluster.hosts[&leader].member.status().term;
    for slow in [leader, follower] {
        cluster.host(slow).syncs = false;
        for round in 0..60_000 / TICK_MS {
            for client in &clients {
                let path = format!("/{slow}-{}-{round}", client.member);
                cluster.create(client, &path);
            }
            cluster.tick();
            if round.is_multiple_of(10) {
                cluster.host(slow).syncs = true;
                cluster.host(slow).sync();
                cluster.host(slow).syncs = false;
                cluster.settle();
            }
            assert!(cluster.all_serve(), "round {round}");
        }
        cluster.host(slow).syncs = true;
    }
    assert_eq!(cluster.leader(), leader);
    assert_eq!(cluster.hosts[&leader].member.status().term, term);
    assert!(cluster.hosts.values().all(|host| host.eras.is_empty()));
}

#[test]
fn a_member_alone_waits_for_its_disk_and_so_do_its_clients() {
    let mut cluster = Cluster::started(&[1], &[]);
    let client = cluster.open(1, 4000);
    hang(&mut cluster, 1, &client, "/a");
    cluster.run_for(60_000);
    assert_eq!(service(&cluster, 1), Service::Serving);
    assert!(cluster.hosts[&1].eras.is_empty());
    cluster.host(1).syncs = true;
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
}

/// Those of its sessions that go elsewhere live on.
#[test]
fn a_follower_whose_disk_hangs_lets_its_clients_go() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[4]);
    let (leader, follower) = (cluster.leader(), cluster.follower());
    for hung in [follower, 4] {
        let client = cluster.open(hung, 4000);
        hang(&mut cluster, hung, &client, &format!("/{hung}"));
        for _ in 0..DISK_HANG_MS / TICK_MS {
            let now_ms = cluster.now_ms;
            let host = cluster.host(hung);
            host.member.touched(&[client.session], now_ms);
            cluster.tick();
        }
        cluster.run_for(100);
        assert_eq!(service(&cluster, hung), Service::NoLeader);
        assert_eq!(cluster.hosts[&hung].eras.len(), 1);
        assert_eq!(cluster.leader(), leader);
        cluster.run_for(3000);
        let moved = cluster.resume(&client, leader, 4000);
        assert!(cluster.has(leader, &format!("/{hung}")));
        cluster.create(&moved, &format!("/{hung}-moved"));
        assert_eq!(cluster.answer(&moved), ErrorCode::Ok);
        cluster.host(hung).syncs = true;
        cluster.until("everybody serves", Cluster::all_serve);
        assert_eq!(cluster.hosts[&hung].eras.len(), 1);
    }
}

/// Without the leader they would elect nobody.
#[test]
fn a_leader_keeps_its_office_while_the_others_are_no_majority() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let (leader, hung) = (cluster.leader(), cluster.follower());
    let works = 6 - leader - hung;
    let client = cluster.open(works, 60_000);
    let term = cluster.hosts[&leader].member.status().term;
    cluster.host(hung).syncs = false;
    hang(&mut cluster, leader, &client, "/a");
    cluster.run_for(10_000);
    assert_eq!(cluster.leader(), leader);
    assert_eq!(cluster.hosts[&leader].member.status().term, term);
    assert_eq!(service(&cluster, works), Service::Serving);
    for id in [leader, hung] {
        assert_eq!(service(&cluster, id), Service::NoLeader);
    }
    // They are two of three again.
    cluster.host(hung).syncs = true;
    cluster.until("another leads", |cluster| {
        cluster.leader_of().is_some_and(|other| other != leader)
    });
    assert_eq!(cluster.hosts[&works].codes(client.connection).len(), 2);
    cluster.host(leader).syncs = true;
    cluster.until("everybody serves", Cluster::all_serve);
    cluster.assert_agreement();
}

/// One of them does not hear it, and is heard by the other.
#[test]
fn a_leader_hands_over_although_it_does_not_hear_all_others() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let (leader, heir) = (cluster.leader(), cluster.follower());
    let deaf = 6 - leader - heir;
    let client = cluster.open(heir, 60_000);
    cluster.cut(leader, deaf);
    cluster.cut(deaf, leader);
    cluster.run_for(5000);
    hang(&mut cluster, leader, &client, "/a");
    cluster.run_for(DISK_HANG_MS + 500);
    assert_eq!(cluster.leader(), heir);
    // Two cannot do without one of them.
    let mut two = Cluster::started(&[1, 2], &[]);
    let (leader, other) = (two.leader(), two.follower());
    let client = two.open(other, 60_000);
    hang(&mut two, leader, &client, "/a");
    two.run_for(10_000);
    assert_eq!(two.leader(), leader);
    assert_eq!(service(&two, other), Service::Serving);
}

#[test]
fn a_voter_whose_disk_hangs_takes_no_office() {
    let mut cluster = Cluster::started(&[1, 2, 3, 4, 5], &[]);
    let leader = cluster.leader();
    let others: Vec<u64> = (1..=5).filter(|id| *id != leader).collect();
    let client = cluster.open(leader, 60_000);
    // The first in line has the whole log.
    let hung = others[0];
    hang(&mut cluster, hung, &client, "/a");
    cluster.run_for(LIVE_MS + 2 * TICK_MS);
    assert!(cluster.host(leader).member.transfer_leadership());
    cluster.until("another leads", |cluster| {
        cluster.leader_of().is_some_and(|other| other != leader)
    });
    assert_ne!(cluster.leader(), hung);
    // Not by an election either, wherever its log ends.
    for _ in 0..3 {
        let leader = cluster.leader();
        let disk = cluster.kill(leader);
        cluster.until("another leads", |cluster| cluster.leader_of().is_some());
        assert_ne!(cluster.leader(), hung);
        cluster.restart(leader, disk);
        cluster.run_for(1000);
    }
}

#[test]
fn a_hand_over_that_comes_to_nothing_is_tried_again_with_another() {
    let mut cluster = Cluster::started(&[1, 2, 3, 4, 5], &[]);
    let leader = cluster.leader();
    let client = cluster.open(leader, 60_000);
    let called: Rc<Cell<Vec<u64>>> = Rc::default();
    let seen = Rc::clone(&called);
    // Two do not hear that they are to lead (a message's first field is its kind).
    cluster.judge(move |_, to, frame| match frame {
        Frame::Raft {
            payload: [8, 14, ..],
            ..
        } => {
            let mut calls = seen.take();
            calls.push(to);
            let fate = match calls.len() > 2 {
                true => Fate::Deliver,
                false => Fate::Drop,
            };
            seen.set(calls);
            fate
        }
        _ => Fate::Deliver,
    });
    hang(&mut cluster, leader, &client, "/a");
    cluster.until("another leads", |cluster| {
        cluster.leader_of().is_some_and(|other| other != leader)
    });
    let calls = called.take();
    assert_eq!(cluster.leader(), calls[2]);
    assert!(calls[0] != calls[1] && calls[0] != calls[2] && calls[1] != calls[2]);
}

/// What was on its way to the disk when the process was stopped did not hang.
#[test]
fn a_pause_is_no_hanging_disk() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let leader = cluster.leader();
    let client = cluster.open(leader, 60_000);
    hang(&mut cluster, leader, &client, "/a");
    cluster.tick();
    // All of them stood still, so that nobody else is elected.
    cluster.now_ms += 20_000;
    cluster.run_for(DISK_HANG_MS - 2 * TICK_MS);
    assert!(cluster.all_serve());
    assert_eq!(cluster.leader(), leader);
    cluster.host(leader).syncs = true;
    cluster.run_for(1000);
    assert_eq!(cluster.leader(), leader);
    assert!(cluster.hosts[&leader].eras.is_empty());
    assert!(cluster.has(leader, "/a"));
}
