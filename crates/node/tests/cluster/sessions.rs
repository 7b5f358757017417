//! Sessions: alive through any member, ended by silence alone.

use quenda_node::Service;
use quenda_node::frame::Frame;
use quenda_node::limits::TICK_MS;
use quenda_proto::ErrorCode;

use crate::harness::{Client, Cluster, Fate};

fn is_alive(cluster: &Cluster, client: &Client) -> bool {
    let mut hosts = cluster.hosts.values();
    hosts.all(|host| host.tree.session(client.session).is_some())
}

fn open_at_follower(cluster: &mut Cluster) -> Client {
    let follower = cluster.follower();
    cluster.open(follower, 4000)
}

/// Lets time pass while clients are heard on their members.
fn keep_alive(cluster: &mut Cluster, clients: &[Client], millis: u64) {
    for round in 0..millis / TICK_MS {
        if round.is_multiple_of(10) {
            for client in clients {
                let now_ms = cluster.now_ms;
                let host = cluster.host(client.member);
                host.member.touched(&[client.session], now_ms);
            }
        }
        cluster.tick();
    }
}

#[test]
fn a_session_that_is_heard_on_any_member_lives_and_a_silent_one_does_not() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[4]);
    let heard: Vec<Client> = (1..=4).map(|member| cluster.open(member, 4000)).collect();
    let silent = open_at_follower(&mut cluster);
    let ephemeral = 1;
    cluster.create_with(&silent, "/ephemeral", ephemeral);
    assert_eq!(cluster.answer(&silent), ErrorCode::Ok);
    keep_alive(&mut cluster, &heard, 3500);
    assert!(is_alive(&cluster, &silent));
    keep_alive(&mut cluster, &heard, 6500);
    for client in &heard {
        assert!(is_alive(&cluster, client));
    }
    assert!(!is_alive(&cluster, &silent));
    assert!(!cluster.has(1, "/ephemeral"));
    for host in cluster.hosts.values() {
        assert_eq!(host.record.closed, [(silent.session, true)]);
    }
}

#[test]
fn reports_that_get_lost_end_nobody() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let client = open_at_follower(&mut cluster);
    let mut number = 0u64;
    cluster.judge(move |_, _, frame| match frame {
        Frame::Touched { .. } | Frame::TouchedAck { .. } => {
            number += 1;
            match number % 3 {
                0 => Fate::Deliver,
                _ => Fate::Drop,
            }
        }
        _ => Fate::Deliver,
    });
    keep_alive(&mut cluster, &[client], 12_000);
    assert!(is_alive(&cluster, &client));
}

/// What a member has heard counts although its report is late.
#[test]
fn a_report_that_is_late_ends_nobody() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let client = open_at_follower(&mut cluster);
    let short = cluster.resume(&client, client.member, 1000);
    keep_alive(&mut cluster, &[short], 2000);
    cluster.judge(|_, _, frame| match frame {
        Frame::Touched { .. } => Fate::Drop,
        _ => Fate::Deliver,
    });
    keep_alive(&mut cluster, &[short], 2500);
    cluster.judge_nothing();
    keep_alive(&mut cluster, &[short], 2000);
    assert!(is_alive(&cluster, &short));
    // Not for ever: a member that is cut off has closed its clients.
    cluster.judge(|_, _, frame| match frame {
        Frame::Touched { .. } => Fate::Drop,
        _ => Fate::Deliver,
    });
    keep_alive(&mut cluster, &[short], 5000);
    assert!(!is_alive(&cluster, &short));
}

/// A client that was answered counts its silence from there, whether or not the leader learned of it.
#[test]
fn a_member_that_stops_between_hearing_and_reporting_ends_nobody() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let client = open_at_follower(&mut cluster);
    let others: Vec<u64> = (1..=3).filter(|id| *id != client.member).collect();
    keep_alive(&mut cluster, &[client], 500);
    cluster.run_for(2500);
    let now_ms = cluster.now_ms;
    let host = cluster.host(client.member);
    host.member.touched(&[client.session], now_ms);
    let until = now_ms + 4000;
    cluster.isolate(client.member);
    while cluster.now_ms < until {
        cluster.tick_of(&others);
    }
    let alive = |cluster: &mut Cluster| {
        let tree = &cluster.host(others[0]).tree;
        tree.session(client.session).is_some()
    };
    assert!(alive(&mut cluster));
    for _ in 0..1000 / TICK_MS {
        cluster.tick_of(&others);
    }
    assert!(!alive(&mut cluster));
}

#[test]
fn a_new_leader_gives_everybody_the_full_timeout() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let leader = cluster.leader();
    let client = cluster.open(leader, 4000);
    cluster.run_for(3500);
    cluster.kill(leader);
    cluster.until("another leads", |cluster| cluster.leader_of().is_some());
    cluster.run_for(3900);
    assert!(is_alive(&cluster, &client));
    cluster.run_for(1000);
    assert!(!is_alive(&cluster, &client));
}

#[test]
fn a_member_cut_off_while_the_leader_fails_may_have_heard_its_sessions_for_a_while() {
    let mut cluster = Cluster::started(&[1, 2, 3, 4, 5], &[]);
    let leader = cluster.leader();
    let client = open_at_follower(&mut cluster);
    cluster.run_for(1000);
    cluster.isolate(client.member);
    cluster.kill(leader);
    let others: Vec<u64> = (1..=5)
        .filter(|id| ![leader, client.member].contains(id))
        .collect();
    // It serves its clients until it misses the leader.
    let mut heard_ms = cluster.now_ms;
    while cluster.hosts[&client.member].member.service() == Service::Serving {
        heard_ms = cluster.now_ms;
        let host = cluster.host(client.member);
        host.member.touched(&[client.session], heard_ms);
        cluster.tick();
    }
    assert!(heard_ms > 0 && cluster.leader_of().is_some());
    let alive = |cluster: &mut Cluster| {
        let tree = &cluster.host(others[0]).tree;
        tree.session(client.session).is_some()
    };
    while cluster.now_ms < heard_ms + 4000 {
        cluster.tick();
    }
    assert!(alive(&mut cluster));
    cluster.run_for(2000);
    assert!(!alive(&mut cluster));
}

#[test]
fn a_leader_that_was_paused_ends_nobody_for_that() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let clients: Vec<Client> = (1..=3).map(|member| cluster.open(member, 4000)).collect();
    cluster.run_for(1000);
    // All of them stood still.
    cluster.now_ms += 20_000;
    cluster.run_for(1000);
    for client in &clients {
        assert!(is_alive(&cluster, client));
    }
}

#[test]
fn a_log_that_stands_still_ends_nobody() {
    for members in [&[1][..], &[1, 2, 3]] {
        let mut cluster = Cluster::started(members, &[]);
        let client = cluster.open(1, 4000);
        cluster.run_for(1000);
        for id in members {
            cluster.host(*id).syncs = false;
        }
        cluster.create(&client, "/a");
        cluster.run_for(20_000);
        for id in members {
            cluster.host(*id).syncs = true;
        }
        cluster.run_for(2000);
        assert!(is_alive(&cluster, &client));
        assert!(cluster.has(1, "/a"));
        cluster.run_for(3000);
        assert!(!is_alive(&cluster, &client));
    }
}

#[test]
fn a_deposed_leader_ends_nobody() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let (leader, follower) = (cluster.leader(), cluster.follower());
    let client = cluster.open(leader, 4000);
    cluster.isolate(leader);
    cluster.until("the others go on", |cluster| {
        cluster.leader_of().is_some_and(|other| other != leader)
    });
    let moved = cluster.resume(&client, follower, 4000);
    keep_alive(&mut cluster, &[moved], 10_000);
    cluster.heal();
    keep_alive(&mut cluster, &[moved], 2000);
    assert!(is_alive(&cluster, &client));
}

#[test]
fn a_session_that_moves_loses_its_old_connection() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let client = cluster.open(1, 4000);
    let moved = cluster.resume(&client, 2, 4000);
    assert_eq!(cluster.host(1).record.moved, [client.session]);
    assert!(cluster.host(2).record.moved.is_empty());
    cluster.create(&client, "/old");
    assert_eq!(cluster.answer(&client), ErrorCode::SessionMoved);
    cluster.create(&moved, "/new");
    assert_eq!(cluster.answer(&moved), ErrorCode::Ok);
}

/// It hears the leader, but the leader does not hear it.
#[test]
fn a_member_that_the_leader_does_not_hear_lets_go_of_its_clients() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let client = open_at_follower(&mut cluster);
    let (follower, leader) = (client.member, cluster.leader());
    cluster.judge(move |from, to, _| match (from, to) == (follower, leader) {
        true => Fate::Drop,
        false => Fate::Deliver,
    });
    let era = cluster.host(follower).member.era();
    cluster.create(&client, "/a");
    cluster.run_for(1500);
    assert!(cluster.all_serve());
    // Before anybody's session is ended.
    cluster.run_for(1000);
    let member = &cluster.host(follower).member;
    assert_eq!(member.service(), Service::NoLeader);
    assert_ne!(member.era(), era);
    assert!(is_alive(&cluster, &client));
    cluster.judge_nothing();
    cluster.until("it serves again", |cluster| cluster.all_serve());
}

#[test]
fn a_member_that_was_paused_serves_again_when_the_leader_hears_it() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let follower = cluster.follower();
    cluster.isolate(follower);
    let others: Vec<u64> = (1..=3).filter(|id| *id != follower).collect();
    for _ in 0..5000 / TICK_MS {
        cluster.tick_of(&others);
    }
    cluster.tick();
    assert_eq!(cluster.host(follower).member.service(), Service::NoLeader);
    cluster.heal();
    cluster.until("it serves again", |cluster| cluster.all_serve());
}
