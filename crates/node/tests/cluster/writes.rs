//! Writes through any member: at most once, in order, answered where they were asked.

use std::cell::Cell;
use std::rc::Rc;

use quenda_node::frame::Frame;
use quenda_proto::ErrorCode;

use crate::harness::{Cluster, Fate};

#[test]
fn a_single_voter_serves_alone() {
    let mut cluster = Cluster::started(&[1], &[]);
    let client = cluster.open(1, 4000);
    cluster.create(&client, "/a");
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    cluster.sync(1, client.connection);
    cluster.until("the barrier is passed", |cluster| {
        cluster.hosts[&1].barriers == [client.connection]
    });
    assert!(cluster.hosts[&1].eras.is_empty());
}

#[test]
fn writes_through_every_member_are_answered_there_and_seen_everywhere() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[4]);
    for member in 1..=4 {
        let client = cluster.open(member, 4000);
        let path = format!("/from-{member}");
        cluster.create(&client, &path);
        assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    }
    cluster.assert_agreement();
    for member in 1..=4 {
        for origin in 1..=4 {
            assert!(cluster.has(member, &format!("/from-{origin}")));
        }
        let own = &cluster.hosts[&member].record.answers;
        assert_eq!(own.len(), 2, "answers of others: {own:?}");
        assert!(cluster.hosts[&member].eras.is_empty());
    }
}

#[test]
fn a_barrier_shows_what_others_were_told() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let (leader, follower) = (cluster.leader(), cluster.follower());
    let writer = cluster.open(leader, 4000);
    // The follower hears of nothing for a while.
    cluster.cut(leader, follower);
    cluster.create(&writer, "/a");
    assert_eq!(cluster.answer(&writer), ErrorCode::Ok);
    assert!(!cluster.has(follower, "/a"));
    cluster.sync(follower, 77);
    cluster.settle();
    assert!(cluster.hosts[&follower].barriers.is_empty());
    cluster.heal();
    cluster.until("the barrier is passed", |cluster| {
        cluster.hosts[&follower].barriers == [77]
    });
    assert!(cluster.has(follower, "/a"));
}

/// What is in flight when the leader dies is given up, and nothing of it is repeated.
#[test]
fn a_leader_change_ends_the_era_of_those_who_wait() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let (leader, follower) = (cluster.leader(), cluster.follower());
    let client = cluster.open(follower, 4000);
    // The forward gets lost with the leader.
    cluster.judge(|_, _, frame| match frame {
        Frame::Forward { .. } => Fate::Drop,
        _ => Fate::Deliver,
    });
    cluster.create(&client, "/lost");
    cluster.settle();
    let era = cluster.host(follower).member.era();
    cluster.kill(leader);
    cluster.until("the era ends", |cluster| {
        cluster.hosts[&follower].member.era() > era
    });
    cluster.judge_nothing();
    // Commands of the past era are dropped.
    cluster
        .host(follower)
        .member
        .submit(era, bytes::BytesMut::from(&b"garbage"[..]));
    let next = cluster.open(follower, 4000);
    cluster.create(&next, "/kept");
    assert_eq!(cluster.answer(&next), ErrorCode::Ok);
    cluster.assert_agreement();
    assert!(!cluster.has(follower, "/lost"));
    assert_eq!(cluster.hosts[&follower].codes(client.connection).len(), 1);
}

#[test]
fn a_leader_change_disturbs_nobody_who_has_nothing_in_flight() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let (leader, follower) = (cluster.leader(), cluster.follower());
    let client = cluster.open(follower, 10_000);
    cluster.kill(leader);
    cluster.until("another leads", |cluster| cluster.leader_of().is_some());
    assert!(cluster.all_serve());
    cluster.create(&client, "/a");
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    for host in cluster.hosts.values() {
        assert!(host.eras.is_empty());
    }
}

#[test]
fn a_clock_that_goes_back_between_two_starts_costs_one_era() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let follower = cluster.follower();
    for run in [50, 20] {
        let disk = cluster.kill(follower);
        cluster.run = run;
        cluster.restart(follower, disk);
        cluster.until("everybody serves", Cluster::all_serve);
        if run == 50 {
            cluster.open(follower, 4000);
        }
    }
    let client = cluster.connect(follower, 4000);
    cluster.until("the era ends", |cluster| {
        cluster.hosts[&follower].eras == [1]
    });
    let next = cluster.open(follower, 4000);
    assert!(cluster.host(1).tree.session(client.session).is_none());
    cluster.create(&next, "/a");
    assert_eq!(cluster.answer(&next), ErrorCode::Ok);
}

#[test]
fn a_lost_forward_is_found_and_nothing_behind_it_is_taken() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let follower = cluster.follower();
    let client = cluster.open(follower, 4000);
    let first = Rc::new(Cell::new(true));
    cluster.judge(move |_, _, frame| match frame {
        Frame::Forward { .. } if first.replace(false) => Fate::Drop,
        _ => Fate::Deliver,
    });
    cluster.create(&client, "/1");
    cluster.settle();
    cluster.create(&client, "/2");
    cluster.settle();
    cluster.until("the era ends", |cluster| {
        cluster.hosts[&follower].member.era() == 1
    });
    cluster.run_for(500);
    assert!(!cluster.has(follower, "/1") && !cluster.has(follower, "/2"));
    let next = cluster.open(follower, 4000);
    cluster.create(&next, "/3");
    assert_eq!(cluster.answer(&next), ErrorCode::Ok);
    assert_eq!(cluster.hosts[&follower].eras, [1]);
}

#[test]
fn a_lost_last_forward_is_found_too() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let follower = cluster.follower();
    let client = cluster.open(follower, 4000);
    cluster.judge(|_, _, frame| match frame {
        Frame::Forward { .. } => Fate::Drop,
        _ => Fate::Deliver,
    });
    cluster.create(&client, "/1");
    cluster.settle();
    cluster.until("the era ends", |cluster| {
        cluster.hosts[&follower].member.era() == 1
    });
}

#[test]
fn forwards_that_come_twice_or_late_are_proposed_once_and_never_overtake() {
    for late in [false, true] {
        let mut cluster = Cluster::started(&[1, 2, 3], &[]);
        let follower = cluster.follower();
        let client = cluster.open(follower, 4000);
        let count = Rc::new(Cell::new(0));
        cluster.judge(move |_, _, frame| match frame {
            Frame::Forward { .. } => {
                count.set(count.get() + 1);
                match (late, count.get()) {
                    (false, _) => Fate::Duplicate,
                    (true, 3) => Fate::Late,
                    (true, _) => Fate::Deliver,
                }
            }
            _ => Fate::Deliver,
        });
        cluster.create(&client, "/n");
        cluster.settle();
        let mut sent = 0;
        for round in 0..10 {
            let era = cluster.host(follower).member.era();
            if era > 0 {
                break;
            }
            cluster.set(&client, "/n", format!("{round}").as_bytes());
            // Several are on the wire at once.
            if round % 4 == 3 {
                cluster.settle();
            }
            sent += 1;
        }
        cluster.run_for(500);
        let codes = cluster.hosts[&follower].codes(client.connection);
        let version = cluster.hosts[&follower]
            .tree
            .get("/n")
            .expect("created")
            .stat()
            .version;
        assert_eq!(codes.len(), 2 + version as usize);
        assert!(codes.iter().all(|code| *code == ErrorCode::Ok));
        assert!(version <= sent);
        cluster.assert_agreement();
    }
}

/// A minority gives its clients up: those with something in flight, and after a while all of them.
#[test]
fn who_is_cut_off_stops_to_serve_and_serves_again_later() {
    use quenda_node::Service;
    let mut cluster = Cluster::started(&[1, 2, 3], &[4]);
    let (leader, follower) = (cluster.leader(), cluster.follower());
    for id in [leader, 4] {
        cluster.isolate(id);
    }
    let client = cluster.connect(leader, 4000);
    cluster.until("the others go on", |cluster| {
        let other = cluster.hosts[&follower].member.view();
        other.is_some_and(|view| view.leader != leader)
    });
    cluster.until("they do not serve", |cluster| {
        [leader, 4]
            .iter()
            .all(|id| cluster.hosts[id].member.service() == Service::NoLeader)
    });
    assert_eq!(cluster.hosts[&leader].eras, [1]);
    assert!(cluster.hosts[&leader].codes(client.connection).is_empty());
    cluster.heal();
    cluster.until("everybody serves", Cluster::all_serve);
    cluster.assert_agreement();
    assert!(
        cluster.hosts[&leader]
            .tree
            .session(client.session)
            .is_none()
    );
}
