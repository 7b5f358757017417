//! Members compare their states.

use bytes::BytesMut;
use quenda_node::Service;
use quenda_proto::ErrorCode;
use quenda_tree::command::{Command, Origin, Stamp};
use quenda_tree::{Changes, Tree};

use crate::harness::Cluster;

/// Changes a state behind the log's back.
fn corrupt(tree: &mut Tree) {
    let stamp = Stamp {
        term: tree.applied_term(),
        time_ms: 1,
    };
    let command = Command::OpenSession {
        origin: Origin::default(),
        session: 0x0500_0000_0000_0001,
        timeout_ms: 4000,
    };
    tree.apply(
        stamp,
        &command,
        &mut BytesMut::new(),
        &mut Changes::default(),
    );
}

fn write(cluster: &mut Cluster, member: u64, count: usize) {
    let client = cluster.open(member, 60_000);
    for number in 0..count {
        cluster.create(&client, &format!("/{}-{number}", client.connection));
        assert_eq!(cluster.answer(&client), ErrorCode::Ok);
    }
}

#[test]
fn a_follower_that_differs_stops_to_serve_and_the_others_go_on() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let (leader, wrong) = (cluster.leader(), cluster.follower());
    write(&mut cluster, leader, 3);
    cluster.run_for(3000);
    for host in cluster.hosts.values() {
        assert_eq!(host.member.digest_mismatches(), 0);
    }
    corrupt(&mut cluster.host(wrong).tree);
    write(&mut cluster, leader, 3);
    cluster.until("it knows", |cluster| {
        cluster.hosts[&wrong].member.service() == Service::Alarmed
    });
    assert!(cluster.hosts[&wrong].member.difference().is_some());
    cluster.run_for(5000);
    for host in cluster.hosts.values() {
        assert_eq!(host.member.service() == Service::Alarmed, host.id == wrong);
        assert!(host.member.digest_mismatches() > 0, "member {}", host.id);
    }
    // It does not lead, but it still votes.
    cluster.kill(leader);
    cluster.until("the third leads", |cluster| cluster.leader_of().is_some());
    assert_ne!(cluster.leader(), wrong);
}

#[test]
fn a_leader_that_differs_gives_its_office_up() {
    let mut cluster = Cluster::started(&[1, 2, 3], &[]);
    let wrong = cluster.leader();
    corrupt(&mut cluster.host(wrong).tree);
    let follower = cluster.follower();
    write(&mut cluster, follower, 3);
    cluster.until("another leads", |cluster| {
        cluster.leader_of().is_some_and(|leader| leader != wrong)
    });
    assert_eq!(cluster.hosts[&wrong].member.service(), Service::Alarmed);
    cluster.run_for(3000);
    for host in cluster.hosts.values() {
        assert_eq!(host.member.service() == Service::Alarmed, host.id == wrong);
    }
}
