//! Changes of the members by clients.

use std::cell::Cell;

use quenda_node::Service;
use quenda_node::frame::Frame;
use quenda_node::limits::{ARRIVAL_TICKS, TICK_MS};
use quenda_proto::ErrorCode;

use crate::harness::{Cluster, Fate, config, server_line};

fn text(cluster: &Cluster, member: u64) -> String {
    let node = cluster.hosts[&member].tree.get("/zookeeper/config");
    let data = node
        .expect("the config znode")
        .data()
        .unwrap_or_default()
        .to_vec();
    String::from_utf8(data).expect("text")
}

#[test]
fn one_becomes_three_then_five_then_three() {
    let mut cluster = Cluster::started(&[1], &[]);
    let client = cluster.open(1, 600_000);
    cluster.create(&client, "/a");
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    for id in 2..=5 {
        cluster.start_empty(id);
    }
    cluster.run_for(1000);
    for id in 2..=5 {
        let member = &cluster.hosts[&id].member;
        assert_eq!(member.service(), Service::NoLeader);
        assert!(!member.has_state(), "it was never fed");
    }
    let three = config(&[1, 2, 3], &[]);
    cluster.reconfig_to(&client, &three);
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    cluster.until("three vote", |cluster| {
        cluster.is_membership(&[1, 2, 3], &[])
    });
    let joining = [4, 5].map(|id| server_line(id, "participant")).join(",");
    cluster.reconfig(&client, Some(&joining), None);
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    cluster.until("five vote", |cluster| {
        cluster.is_membership(&[1, 2, 3, 4, 5], &[]) && cluster.all_serve()
    });
    let mut hosts = cluster.hosts.values();
    assert!(hosts.all(|host| host.member.has_state()));
    cluster.assert_agreement();
    assert!(text(&cluster, 5).contains("server.5=h5:1:2:participant;h5:3"));
    cluster.reconfig(&client, None, Some("2,3"));
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    cluster.until("three vote", |cluster| {
        cluster.is_membership(&[1, 4, 5], &[])
    });
    cluster.until("those who left know", |cluster| {
        [2, 3]
            .iter()
            .all(|id| cluster.hosts[id].member.service() == Service::Removed)
    });
    assert!(cluster.has(4, "/a"));
    // Two of the three are enough.
    cluster.kill(5);
    cluster.create(&client, "/b");
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    assert!(cluster.hosts[&1].eras.is_empty(), "nobody was disturbed");
}

#[test]
fn an_id_is_used_again_by_an_empty_member() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let leader = cluster.leader();
    let client = cluster.open(leader, 600_000);
    let other = cluster.follower();
    cluster.reconfig(&client, None, Some(&other.to_string()));
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    cluster.kill(other);
    cluster.start_empty(other);
    cluster.run_for(500);
    cluster.reconfig(&client, Some(&server_line(other, "participant")), None);
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    cluster.until("it votes again", |cluster| {
        cluster.is_membership(&[1, 2, 3], &[]) && cluster.all_serve()
    });
}

#[test]
fn observers_come_and_go_and_change_their_part() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let leader = cluster.leader();
    let client = cluster.open(leader, 600_000);
    // One that is not there disturbs nobody.
    cluster.reconfig(&client, Some(&server_line(100, "observer")), None);
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    cluster.reconfig(&client, None, Some("100"));
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    cluster.start_empty(4);
    cluster.reconfig(&client, Some(&server_line(4, "observer")), None);
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    cluster.until("it observes", |cluster| {
        cluster.is_membership(&[1, 2, 3], &[4]) && cluster.all_serve()
    });
    cluster.reconfig(&client, Some(&server_line(4, "participant")), None);
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    cluster.until("it votes", |cluster| {
        cluster.is_membership(&[1, 2, 3, 4], &[])
    });
    let follower = cluster.follower();
    cluster.reconfig(&client, Some(&server_line(follower, "observer")), None);
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    cluster.until("a voter observes", |cluster| {
        let voters: Vec<u64> = (1..=4).filter(|id| *id != follower).collect();
        cluster.is_membership(&voters, &[follower])
    });
    cluster.run_for(1000);
    assert!(cluster.all_serve());
}

#[test]
fn the_leader_is_removed_and_answers_first() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let leader = cluster.leader();
    let client = cluster.open(leader, 600_000);
    cluster.reconfig(&client, None, Some(&leader.to_string()));
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    let staying: Vec<u64> = (1..=3).filter(|id| *id != leader).collect();
    cluster.until("the others lead", |cluster| {
        cluster.is_membership(&staying, &[])
    });
    cluster.until("it knows", |cluster| {
        cluster.hosts[&leader].member.service() == Service::Removed
    });
    cluster.kill(leader);
    let client = cluster.open(staying[0], 4000);
    cluster.create(&client, "/a");
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
}

/// Others know of the removal first, and say so.
#[test]
fn a_follower_is_removed_and_answers_first() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let (leader, follower) = (cluster.leader(), cluster.follower());
    let client = cluster.open(follower, 600_000);
    cluster.host(follower).syncs = false;
    cluster.reconfig(&client, None, Some(&follower.to_string()));
    cluster.run_for(200);
    let knowing = &cluster.hosts[&leader].member;
    assert!(!knowing.membership().contains(follower));
    let index = knowing.status().applied;
    let now_ms = cluster.now_ms;
    let frame = Frame::NotMember { index }.encode();
    let told = &mut cluster.host(follower).member;
    told.receive(leader, &frame, now_ms).expect("a frame");
    cluster.run_for(100);
    assert_eq!(cluster.hosts[&follower].member.service(), Service::Serving);
    cluster.host(follower).syncs = true;
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    cluster.until("it knows", |cluster| {
        cluster.hosts[&follower].member.service() == Service::Removed
    });
}

#[test]
fn nobody_leaves_before_the_one_that_has_just_been_named_votes() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let (leader, leaving) = (cluster.leader(), cluster.follower());
    let client = cluster.open(leader, 600_000);
    cluster.reconfig(&client, Some(&server_line(4, "participant")), None);
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    cluster.reconfig(&client, None, Some(&leaving.to_string()));
    cluster.run_for(300);
    // It was not heard yet.
    assert_eq!(cluster.hosts[&leader].codes(client.connection).len(), 2);
    cluster.start_empty(4);
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    let staying: Vec<u64> = (1..=4).filter(|id| *id != leaving).collect();
    assert!(cluster.is_membership(&staying, &[]));
    cluster.kill(leader);
    cluster.until("the others lead", |cluster| cluster.leader_of().is_some());
}

#[test]
fn a_voter_that_never_comes_holds_up_the_next_reconfiguration_for_a_moment_only() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let leader = cluster.leader();
    let client = cluster.open(leader, 600_000);
    cluster.reconfig(&client, Some(&server_line(4, "participant")), None);
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    let asked = cluster.now_ms;
    cluster.reconfig(&client, None, Some("4"));
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    assert!(cluster.now_ms - asked <= (ARRIVAL_TICKS + 10) * TICK_MS);
    cluster.until("all is as before", |cluster| {
        cluster.is_membership(&[1, 2, 3], &[])
    });
}

#[test]
fn a_member_that_was_away_when_it_was_removed_hears_of_it() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let (leader, away) = (cluster.leader(), cluster.follower());
    let client = cluster.open(leader, 600_000);
    let disk = cluster.kill(away);
    cluster.run_for(2000);
    cluster.reconfig(&client, None, Some(&away.to_string()));
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    // Those who were there have started anew since.
    for id in (1..=3).filter(|id| *id != away) {
        cluster.host(id).checkpoint(0);
        let disk = cluster.kill(id);
        cluster.restart(id, disk);
        cluster.until("everybody serves", Cluster::all_serve);
    }
    let leader = cluster.leader();
    let client = cluster.open(leader, 600_000);
    cluster.restart(away, disk);
    cluster.until("it knows", |cluster| {
        cluster.hosts[&away].member.service() == Service::Removed
    });
    assert_eq!(cluster.leader(), leader);
    // It may come back.
    cluster.reconfig(&client, Some(&server_line(away, "participant")), None);
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    cluster.until("it votes again", |cluster| {
        cluster.is_membership(&[1, 2, 3], &[]) && cluster.all_serve()
    });
}

/// Wherever the leader is lost while two members are replaced, the configuration and the membership of raft
/// agree in the end, and no joint membership is left over.
#[test]
fn a_leader_lost_amid_a_change_leaves_nothing_half_done() {
    let mut kept = 0;
    let mut changed = 0;
    for fatal in (0..120).step_by(4) {
        let mut cluster = Cluster::started(&[1, 2, 3, 4, 5], &[]);
        let leader = cluster.leader();
        let leaving: Vec<u64> = (1..=5).filter(|id| *id != leader).take(2).collect();
        let client = cluster.open(leader, 600_000);
        let count = Cell::new(0);
        cluster.judge(move |from, to, _| {
            count.set(count.get() + 1);
            match count.get() > fatal && (from == leader || to == leader) {
                true => Fate::Drop,
                false => Fate::Deliver,
            }
        });
        cluster.reconfig(
            &client,
            None,
            Some(&format!("{},{}", leaving[0], leaving[1])),
        );
        cluster.settle();
        cluster.kill(leader);
        cluster.judge_nothing();
        let remaining: Vec<u64> = (1..=5).filter(|id| !leaving.contains(id)).collect();
        cluster.until("somebody leads a settled membership", |cluster| {
            cluster.is_membership(&[1, 2, 3, 4, 5], &[]) || cluster.is_membership(&remaining, &[])
        });
        let leader = cluster.leader();
        let lines = text(&cluster, leader);
        let has_left = cluster.is_membership(&remaining, &[]);
        assert_eq!(
            !lines.contains(&format!("server.{}=", leaving[0])),
            has_left
        );
        assert_eq!(
            !lines.contains(&format!("server.{}=", leaving[1])),
            has_left
        );
        let client = cluster.open(leader, 600_000);
        cluster.create(&client, "/a");
        assert_eq!(cluster.answer(&client), ErrorCode::Ok);
        kept += usize::from(!has_left);
        changed += usize::from(has_left);
    }
    assert!(kept > 0 && changed > 0, "{kept} kept, {changed} changed");
}

/// Who was removed may be switched off at once, although another member was only just taken in.
#[test]
fn a_removal_waits_for_members_that_are_on_their_way_and_nobody_else_does() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let (leader, again) = (cluster.leader(), cluster.follower());
    let leaving = 6 - leader - again;
    let client = cluster.open(leader, 600_000);
    let other = cluster.open(leaving, 600_000);
    cluster.reconfig(&client, None, Some(&again.to_string()));
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    cluster.kill(again);
    cluster.fetching = false;
    cluster.host(leader).checkpoint(0);
    cluster.start_empty(again);
    cluster.run_for(1000);
    cluster.reconfig(&client, Some(&server_line(again, "participant")), None);
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    let before = cluster.host(leader).codes(client.connection).len();
    cluster.reconfig(&client, None, Some(&leaving.to_string()));
    cluster.create(&client, "/behind");
    cluster.run_for(1000);
    assert_eq!(cluster.host(leader).codes(client.connection).len(), before);
    cluster.create(&other, "/other");
    assert_eq!(cluster.answer(&other), ErrorCode::Ok);
    cluster.fetching = true;
    cluster.until("both are answered", |cluster| {
        cluster.hosts[&leader].codes(client.connection).len() == before + 2
    });
    cluster.kill(leaving);
    let codes = cluster.host(leader).codes(client.connection);
    assert_eq!(codes[before..], [ErrorCode::Ok, ErrorCode::Ok]);
    cluster.create(&client, "/after");
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    assert!(cluster.has(again, "/after"));
}

#[test]
fn a_change_that_waits_too_long_is_refused_and_what_stands_behind_it_goes_on() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let leader = cluster.leader();
    let client = cluster.open(leader, 600_000);
    cluster.host(leader).checkpoint(0);
    cluster.fetching = false;
    cluster.start_empty(4);
    cluster.run_for(1000);
    cluster.reconfig(&client, Some(&server_line(4, "participant")), None);
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    cluster.reconfig(&client, None, Some("4"));
    cluster.create(&client, "/behind");
    cluster.settle();
    cluster.create(&client, "/further-behind");
    let before = cluster.host(leader).codes(client.connection).len();
    cluster.until("all are answered", |cluster| {
        cluster.hosts[&leader].codes(client.connection).len() == before + 3
    });
    let codes = cluster.host(leader).codes(client.connection);
    assert_eq!(
        codes[before..],
        [ErrorCode::ReconfigInProgress, ErrorCode::Ok, ErrorCode::Ok]
    );
    assert!(cluster.hosts[&leader].eras.is_empty());
}

#[test]
fn of_two_members_the_leader_may_be_removed_and_switched_off() {
    let mut cluster = Cluster::started(&[1, 2], &[]);
    let (leader, other) = (cluster.leader(), cluster.follower());
    let client = cluster.open(leader, 600_000);
    cluster.reconfig(&client, None, Some(&leader.to_string()));
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    cluster.kill(leader);
    let client = cluster.open(other, 4000);
    cluster.create(&client, "/alone");
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    assert!(cluster.is_membership(&[other], &[]));
}

#[test]
fn what_would_lose_the_quorum_is_refused() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let (leader, down) = (cluster.leader(), cluster.follower());
    let live = 6 - leader - down;
    let client = cluster.open(leader, 600_000);
    cluster.kill(down);
    cluster.run_for(2000);
    cluster.reconfig(&client, None, Some(&live.to_string()));
    assert_eq!(cluster.answer(&client), ErrorCode::NewConfigNoQuorum);
    let absent = [7, 8, 9].map(|id| server_line(id, "participant")).join(",");
    cluster.reconfig(&client, Some(&absent), None);
    assert_eq!(cluster.answer(&client), ErrorCode::NewConfigNoQuorum);
    assert!(cluster.is_membership(&[1, 2, 3], &[]));
    // Without the one that is down there is a quorum.
    cluster.reconfig(&client, None, Some(&down.to_string()));
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    let mut staying = [leader, live];
    staying.sort_unstable();
    assert!(cluster.is_membership(&staying, &[]));
}

#[test]
fn a_second_change_while_one_is_on_its_way_is_refused() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let (leader, follower) = (cluster.leader(), cluster.follower());
    let first = cluster.open(leader, 600_000);
    let second = cluster.open(follower, 600_000);
    cluster.reconfig(&first, Some(&server_line(8, "observer")), None);
    cluster.reconfig(&first, Some(&server_line(9, "observer")), None);
    assert_eq!(cluster.answer(&first), ErrorCode::Ok);
    cluster.run_for(200);
    assert_eq!(
        cluster.hosts[&leader].codes(first.connection),
        [ErrorCode::Ok, ErrorCode::Ok, ErrorCode::ReconfigInProgress]
    );
    cluster.reconfig(&second, Some(&server_line(9, "observer")), None);
    assert_eq!(cluster.answer(&second), ErrorCode::Ok);
    assert!(cluster.is_membership(&[1, 2, 3], &[8, 9]));
}

#[test]
fn wrong_requests_change_nothing() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let client = cluster.open(1, 600_000);
    cluster.reconfig(&client, Some("server.4=nonsense"), None);
    assert_eq!(cluster.answer(&client), ErrorCode::BadArguments);
    cluster.reconfig(&client, None, Some("1,2,3"));
    assert_eq!(cluster.answer(&client), ErrorCode::BadArguments);
    // The membership change goes into the log with the request, and falls with it.
    cluster.reconfig_from(&client, 4711, &server_line(4, "observer"));
    assert_eq!(cluster.answer(&client), ErrorCode::BadVersion);
    assert!(cluster.is_membership(&[1, 2, 3], &[]));
    let mut alone = Cluster::started(&[1], &[]);
    let client = alone.open(1, 600_000);
    alone.reconfig(&client, None, Some("1"));
    assert_eq!(alone.answer(&client), ErrorCode::BadArguments);
}
