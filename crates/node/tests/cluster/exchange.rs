//! Voters that take the place of others with one request.

use quenda_proto::ErrorCode;

use crate::harness::{Client, Cluster};

/// Three members and two that wait to be fed, with a snapshot.
fn with_two_more() -> (Cluster, u64, Vec<u64>) {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let leader = cluster.leader();
    cluster.host(leader).checkpoint(0);
    for id in [4, 5] {
        cluster.start_empty(id);
    }
    cluster.run_for(1000);
    let others = (1..=3).filter(|id| *id != leader).collect();
    (cluster, leader, others)
}

fn answers(cluster: &Cluster, client: &Client) -> Vec<ErrorCode> {
    cluster.hosts[&client.member].codes(client.connection)[1..].to_vec()
}

#[test]
fn those_who_went_may_be_switched_off_when_the_request_is_answered() {
    let (mut cluster, leader, leaving) = with_two_more();
    let client = cluster.open(leader, 600_000);
    let other = cluster.open(leaving[0], 600_000);
    cluster.fetching = false;
    cluster.exchange(&client, &[4, 5], &leaving);
    cluster.create(&client, "/behind");
    cluster.run_for(2000);
    // It waits, and what its connection sent behind it; nobody else does.
    assert_eq!(answers(&cluster, &client), []);
    assert!(cluster.is_membership(&[1, 2, 3], &[4, 5]));
    cluster.create(&other, "/other");
    assert_eq!(cluster.answer(&other), ErrorCode::Ok);
    cluster.fetching = true;
    cluster.until("it is answered", |cluster| {
        !answers(cluster, &client).is_empty()
    });
    for id in leaving {
        cluster.kill(id);
    }
    assert!(cluster.is_membership(&[leader, 4, 5], &[]));
    cluster.create(&client, "/after");
    cluster.until("all is answered", |cluster| {
        answers(cluster, &client) == [ErrorCode::Ok; 3]
    });
    cluster.assert_agreement();
    assert!(cluster.has(4, "/behind") && cluster.has(5, "/after"));
    assert!(cluster.hosts[&leader].eras.is_empty());
}

#[test]
fn a_leader_that_another_takes_the_place_of_may_be_switched_off_too() {
    let (mut cluster, leader, others) = with_two_more();
    let client = cluster.open(leader, 600_000);
    cluster.exchange(&client, &[4], &[leader]);
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    cluster.kill(leader);
    cluster.until("the others lead", |cluster| {
        cluster.is_membership(&[others[0], others[1], 4], &[])
    });
    cluster.kill(others[1]);
    cluster.until("the others lead", |cluster| cluster.leader_of().is_some());
    let client = cluster.open(others[0], 600_000);
    cluster.create(&client, "/after");
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    assert!(cluster.has(4, "/after"));
}

/// Not when everybody has heard of it: at the moment of the answer.
#[test]
fn those_who_went_are_not_needed_from_the_answer_on() {
    for with_leader in [false, true] {
        let (mut cluster, leader, others) = with_two_more();
        let (asked, leaving) = match with_leader {
            false => (leader, others),
            true => (others[1], vec![leader, others[0]]),
        };
        let client = cluster.open(asked, 600_000);
        cluster.exchange(&client, &[4, 5], &leaving);
        assert_answered_and_done_without(&mut cluster, &client, &leaving);
    }
    let mut cluster = Cluster::started(&[1, 2, 3, 4, 5], &[]);
    let leader = cluster.leader();
    let leaving: Vec<u64> = (1..=5).filter(|id| *id != leader).skip(1).collect();
    let client = cluster.open(leader, 600_000);
    let ids: Vec<String> = leaving.iter().map(u64::to_string).collect();
    cluster.reconfig(&client, None, Some(&ids.join(",")));
    assert_answered_and_done_without(&mut cluster, &client, &leaving);
}

fn assert_answered_and_done_without(cluster: &mut Cluster, client: &Client, gone: &[u64]) {
    cluster.until_amid("it is answered", |cluster| {
        !answers(cluster, client).is_empty()
    });
    assert_eq!(answers(cluster, client), [ErrorCode::Ok]);
    for id in gone {
        cluster.kill(*id);
    }
    cluster.until("somebody leads", |cluster| cluster.leader_of().is_some());
    let client = cluster.open(client.member, 600_000);
    cluster.create(&client, "/after");
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
}

/// Who asks at a member that goes is answered too.
#[test]
fn whoever_asks_at_a_member_that_goes_is_answered() {
    let (mut cluster, _, leaving) = with_two_more();
    let client = cluster.open(leaving[0], 600_000);
    cluster.exchange(&client, &[4, 5], &leaving);
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
}

#[test]
fn an_exchange_with_members_that_do_not_catch_up_is_refused_and_nothing_changes() {
    let (mut cluster, leader, leaving) = with_two_more();
    let client = cluster.open(leader, 600_000);
    let before = config_of(&cluster, leader);
    cluster.fetching = false;
    cluster.exchange(&client, &[4, 5], &leaving);
    cluster.create(&client, "/behind");
    let asked = cluster.now_ms;
    cluster.until("both are answered", |cluster| {
        answers(cluster, &client).len() == 2
    });
    assert!(cluster.now_ms - asked <= 6000);
    assert_eq!(
        answers(&cluster, &client),
        [ErrorCode::NewConfigNoQuorum, ErrorCode::Ok]
    );
    cluster.until("nothing has changed", |cluster| {
        cluster.is_membership(&[1, 2, 3], &[])
    });
    assert_eq!(config_of(&cluster, leader), before);
    // Those that do not even run are refused at once.
    for id in [4, 5] {
        cluster.kill(id);
    }
    cluster.run_for(2000);
    cluster.exchange(&client, &[4, 5], &leaving);
    cluster.run_for(100);
    assert_eq!(
        answers(&cluster, &client)[2..],
        [ErrorCode::NewConfigNoQuorum]
    );
    assert!(cluster.is_membership(&[1, 2, 3], &[]));
    assert!(cluster.hosts[&leader].eras.is_empty());
}

/// Whoever stays is a quorum of what is asked for: as in ZooKeeper, a new one may come later.
#[test]
fn one_that_is_not_there_is_not_waited_for() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let (leader, leaving) = (cluster.leader(), cluster.follower());
    let client = cluster.open(leader, 600_000);
    cluster.exchange(&client, &[4], &[leaving]);
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    let staying: Vec<u64> = (1..=3).filter(|id| *id != leaving).collect();
    assert!(cluster.is_membership(&staying, &[4]));
}

#[test]
fn nobody_is_fed_for_one_who_may_not_ask() {
    let (mut cluster, leader, leaving) = with_two_more();
    let client = cluster.open(leader, 600_000);
    cluster.skip_acl = false;
    cluster.fetching = false;
    cluster.exchange(&client, &[4, 5], &leaving);
    cluster.settle();
    // Nothing has to come for the answer.
    assert_eq!(answers(&cluster, &client), [ErrorCode::NoAuth]);
    cluster.run_for(1000);
    assert!(cluster.is_membership(&[1, 2, 3], &[]));
    assert_eq!(cluster.hosts[&4].tree.applied_index(), 0);
}

#[test]
fn a_second_change_meanwhile_is_refused() {
    let (mut cluster, leader, leaving) = with_two_more();
    let client = cluster.open(leader, 600_000);
    let second = cluster.open(leaving[0], 600_000);
    cluster.fetching = false;
    cluster.exchange(&client, &[4], &leaving[..1]);
    cluster.run_for(500);
    cluster.reconfig(&second, None, Some(&leaving[1].to_string()));
    assert_eq!(cluster.answer(&second), ErrorCode::ReconfigInProgress);
    cluster.fetching = true;
    assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    assert!(cluster.is_membership(&sorted([leader, leaving[1], 4]), &[]));
}

/// The leader that began is lost: the request's fate is unknown, what it prepared is undone or done.
#[test]
fn a_leader_lost_amid_an_exchange_leaves_nothing_half_done() {
    for at in (0..60).step_by(3) {
        let (mut cluster, leader, others) = with_two_more();
        let client = cluster.open(leader, 600_000);
        cluster.fetching = at >= 20;
        cluster.exchange(&client, &[4, 5], &others[..1]);
        for _ in 0..at % 20 {
            cluster.tick();
        }
        let disk = cluster.kill(leader);
        cluster.fetching = true;
        cluster.until("another leads", |cluster| cluster.leader_of().is_some());
        cluster.restart(leader, disk);
        let after = sorted([leader, others[1], 4, 5]);
        cluster.until("it is all or nothing", |cluster| {
            let leader = cluster.leader_of();
            let config = leader.map(|id| config_of(cluster, id).contains("server.4="));
            match config {
                Some(true) => cluster.is_membership(&after, &[]),
                Some(false) => cluster.is_membership(&[1, 2, 3], &[]),
                None => false,
            }
        });
    }
}

fn sorted<const N: usize>(mut ids: [u64; N]) -> [u64; N] {
    ids.sort_unstable();
    ids
}

fn config_of(cluster: &Cluster, id: u64) -> String {
    let ensemble = cluster.hosts[&id].tree.ensemble();
    ensemble.map(|ensemble| ensemble.text()).unwrap_or_default()
}
