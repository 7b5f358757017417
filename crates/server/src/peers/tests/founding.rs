//! Members that do not know yet which cluster they belong to.

use quenda_node::PeerState;

use super::super::Facts;
use super::harness::{CLUSTER, Event, Member, Plan, member_of, until};

fn fresh(id: u64, servers: u64) -> Plan {
    Plan {
        servers,
        facts: Facts {
            cluster: 0,
            state: PeerState::Fresh,
        },
        ..Plan::member(id)
    }
}

fn dial_each_other(members: &[&Member]) {
    let all: Vec<_> = members
        .iter()
        .map(|member| (member.id, member.address))
        .collect();
    for member in members {
        member.dial(&all);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_learns_what_the_others_become() {
    let members = [
        fresh(1, 5).start(),
        fresh(2, 5).start(),
        fresh(3, 5).start(),
    ];
    dial_each_other(&members.each_ref());
    let fresh_ones = vec![(2, PeerState::Fresh, 0), (3, PeerState::Fresh, 0)];
    let seen = || members[0].peers.seen();
    until("two fresh peers are seen", || seen() == fresh_ones).await;
    members[1].identity.set(Facts {
        cluster: 0,
        state: PeerState::Founding,
    });
    members[0]
        .until_told(Event::Up(2, PeerState::Founding))
        .await;
    members[1].identity.set(member_of(CLUSTER));
    members[0].until_up(2).await;
    let now = vec![(2, PeerState::Member, CLUSTER), (3, PeerState::Fresh, 0)];
    assert_eq!(seen(), now);
    members[0].identity.set(member_of(CLUSTER));
    members[1].until_up(1).await;
    members[2].until_up(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_that_turn_out_to_be_of_two_clusters_part() {
    let (one, two) = (fresh(1, 5).start(), fresh(2, 5).start());
    dial_each_other(&[&one, &two]);
    one.until_told(Event::Up(2, PeerState::Fresh)).await;
    two.until_told(Event::Up(1, PeerState::Fresh)).await;
    one.identity.set(member_of(1));
    two.identity.set(member_of(2));
    until("they have parted", || !one.is_up(2) && !two.is_up(1)).await;
    assert!(!one.peers.send(2, "x".into()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn different_servers_found_no_cluster_but_may_join_one() {
    let (one, two) = (fresh(1, 5).start(), fresh(2, 6).start());
    dial_each_other(&[&one, &two]);
    let third = Plan {
        servers: 7,
        ..Plan::member(3)
    };
    let third = third.start();
    one.dial(&[(2, two.address), (3, third.address)]);
    one.until_up(3).await;
    assert!(!one.is_up(2) && !two.is_up(1));
    assert_eq!(two.events.all(), []);
}
