//! From answers to the report and its form.

use quenda_server::status::{Disk, Log, Membership, Role, Service, hex};

use super::*;

fn client(id: u64) -> String {
    format!("10.0.0.{id}:2181")
}

/// A member of three, all at the same entry; member 2 leads.
fn member(id: u64) -> MemberStatus {
    let server = |id: u64| ConfiguredServer {
        id,
        line: format!("server.{id}=10.0.0.{id}:2888:3888:participant;0.0.0.0:2181"),
        observer: false,
        client: Some(client(id)),
    };
    MemberStatus {
        version: "0".to_owned(),
        member: id,
        cluster: Some("0xc".to_owned()),
        role: if id == 2 {
            Role::Leader
        } else {
            Role::Follower
        },
        service: Service::Serving,
        term: 4,
        leader: Some(2),
        zxid: hex(0x4_0000_0001),
        digest: hex(77),
        log: Log {
            last: 10,
            persisted: 10,
            committed: 10,
            applied: 10,
        },
        sessions: 1,
        connections: 1,
        outstanding: 0,
        znodes: 4,
        uptime_ms: 1,
        disk: Disk::default(),
        membership: Membership {
            voters: vec![1, 2, 3],
            ..Membership::default()
        },
        peers: Vec::new(),
        config_version: Some("100000000".to_owned()),
        servers: (1..=3).map(server).collect(),
    }
}

fn refused() -> Answer {
    Err("nobody listens there".to_owned())
}

/// Asks a world in which only these members answer, each at its usual address.
fn collected(given: &[&str], members: &[MemberStatus]) -> Vec<Row> {
    let given: Vec<String> = given.iter().map(|&address| address.to_owned()).collect();
    let answer = |address: &String| {
        let found = members
            .iter()
            .find(|status| client(status.member) == *address);
        found.cloned().map_or_else(refused, Ok)
    };
    collect(&given, &|addresses| addresses.iter().map(answer).collect())
}

fn report(members: &[MemberStatus]) -> Report {
    judge::judge(collected(
        &["10.0.0.1", "10.0.0.2:2181", "10.0.0.3:2181"],
        members,
    ))
}

fn all() -> Vec<MemberStatus> {
    (1..=3).map(member).collect()
}

#[test]
fn the_others_are_found_through_one() {
    let rows = collected(&["10.0.0.3"], &all());
    let ids: Vec<_> = rows
        .iter()
        .map(|row| (row.id, row.status.is_some()))
        .collect();
    assert_eq!(ids, [(Some(1), true), (Some(2), true), (Some(3), true)]);
}

#[test]
fn a_member_without_an_address_is_named() {
    let mut members = all();
    for status in &mut members {
        status.servers[0].client = None;
    }
    let rows = collected(&["10.0.0.3"], &members);
    assert_eq!(rows[0].id, Some(1));
    assert!(
        rows[0]
            .error
            .as_ref()
            .is_some_and(|error| error.contains("--servers"))
    );
}

#[test]
fn a_stranger_with_the_id_of_a_member_is_shown_beside_it() {
    let mut stranger = member(1);
    stranger.cluster = Some("0xd".to_owned());
    stranger.config_version = None;
    stranger.servers = Vec::new();
    let other = "10.0.0.9:2181".to_owned();
    let answer = |address: &String| match all()
        .into_iter()
        .find(|status| client(status.member) == *address)
    {
        Some(status) => Ok(status),
        None => Ok(stranger.clone()),
    };
    for given in [[client(2), other.clone()], [other.clone(), client(3)]] {
        let report = judge::judge(collect(&given, &|addresses| {
            addresses.iter().map(answer).collect()
        }));
        assert_eq!(report.members.len(), 4);
        assert_eq!(report.cluster.as_deref(), Some("0xc"));
        assert_eq!(
            report.problems,
            ["member 1 (10.0.0.9:2181) belongs to another cluster, 0xd"]
        );
    }
}

#[test]
fn an_ensemble_that_is_well_is_healthy() {
    let report = report(&all());
    assert_eq!(report.problems, [""; 0]);
    assert_eq!((report.health, report.leader), (Health::Healthy, Some(2)));
    let expected = "\
cluster 0xc, term 4, member 2 leads, configuration 100000000
member  role      service  address        zxid         applied  lag  digest  sessions  clients
1       follower  serving  10.0.0.1:2181  0x400000001  10       0    0x4d    1         1
2       leader    serving  10.0.0.2:2181  0x400000001  10       0    0x4d    1         1
3       follower  serving  10.0.0.3:2181  0x400000001  10       0    0x4d    1         1
healthy: 3 of 3 voters answer, 1 of them may fail
";
    assert_eq!(table::text(&report), expected);
}

#[test]
fn a_leader_that_leaves_clients_to_others_is_well() {
    let mut members = all();
    members[1].service = Service::LeadsOnly;
    let well = report(&members);
    assert_eq!(well.problems, [""; 0]);
    assert_eq!((well.health, well.leader), (Health::Healthy, Some(2)));
    let text = table::text(&well);
    assert!(
        text.contains("\n2       leader    leads-only  10.0.0.2:2181"),
        "{text}"
    );
    assert!(
        text.ends_with("healthy: 3 of 3 voters answer, 1 of them may fail\n"),
        "{text}"
    );
}

#[test]
fn a_leader_that_leaves_clients_to_nobody_is_not() {
    let mut members = all();
    members[1].service = Service::LeadsOnly;
    let unseen = report(&members[1..2]);
    assert_eq!(unseen.health, Health::Degraded, "the others may serve");
    let expected = "no member that answers serves clients: member 2 leads";
    assert!(
        unseen
            .problems
            .iter()
            .any(|text| text.starts_with(expected)),
        "{:?}",
        unseen.problems
    );
    for status in &mut members {
        status.servers.retain(|server| server.id == 2);
        status.membership.voters = vec![2];
    }
    let alone = judge::judge(collected(&["10.0.0.2"], &members[1..2]));
    assert_eq!(
        (alone.health, alone.problems.len()),
        (Health::Down, 1),
        "{:?}",
        alone.problems
    );
}

#[test]
fn a_member_that_cannot_be_reached_degrades() {
    let report = report(&all()[1..]);
    assert_eq!(report.health, Health::Degraded);
    assert_eq!(
        report.problems,
        ["member 1 (10.0.0.1:2181) cannot be reached: nobody listens there"]
    );
    let text = table::text(&report);
    assert!(
        text.contains("\n1       -         unreachable  10.0.0.1:2181"),
        "{text}"
    );
    assert!(
        text.ends_with("degraded: 2 of 3 voters answer, 0 of them may fail\n"),
        "{text}"
    );
}

#[test]
fn a_leader_that_gives_no_answer_is_known_through_its_followers() {
    let report = report(&all()[..1]);
    assert_eq!((report.health, report.leader), (Health::Degraded, Some(2)));
    assert_eq!(
        report.problems[0],
        "member 2 leads, as its followers say, but gives no answer here"
    );
}

#[test]
fn a_participant_without_a_vote_is_said_to_have_none() {
    let mut members = all();
    for status in &mut members {
        status.membership.voters = vec![1, 2];
        status.membership.learners = vec![3];
    }
    let early = report(&members);
    assert_eq!(early.health, Health::Degraded);
    assert_eq!(early.problems, ["member 3 does not vote yet"]);
    members[2].role = Role::Joining;
    assert_eq!(
        report(&members).problems,
        ["member 3 (10.0.0.3:2181) does not vote yet: it is catching up"]
    );
}

#[test]
fn without_a_leader_it_is_down() {
    let mut alone = member(1);
    alone.service = Service::NoQuorum;
    alone.role = Role::Candidate;
    alone.leader = None;
    let report = report(&[alone]);
    assert_eq!((report.health, report.leader), (Health::Down, None));
    assert!(
        report.problems[0].starts_with("nobody leads"),
        "{:?}",
        report.problems
    );
    let nobody = judge::judge(collected(&["10.0.0.1"], &[]));
    assert_eq!(
        (nobody.health, nobody.problems[0].as_str()),
        (Health::Down, "no member answers")
    );
    assert_eq!(nobody.members.len(), 1);
}

/// Makes something of a member wrong.
type Change = fn(&mut MemberStatus);

#[test]
fn what_is_wrong_with_a_member_is_said() {
    let sentence = |change: Change| {
        let mut members = all();
        change(&mut members[2]);
        let report = report(&members);
        assert_eq!(report.health, Health::Degraded);
        assert_eq!(report.problems.len(), 1, "{:?}", report.problems);
        report.problems[0].clone()
    };
    let cases: [(Change, &str); 12] = [
        (
            |status| status.cluster = Some("0xd".to_owned()),
            "belongs to another cluster, 0xd",
        ),
        (|status| status.role = Role::Joining, "does not vote yet"),
        (|status| status.service = Service::ReadOnly, "has no quorum"),
        (|status| status.service = Service::Removed, "was taken out"),
        (
            |status| {
                status.role = Role::Removed;
                status.service = Service::Removed;
            },
            "was taken out",
        ),
        (
            |status| {
                status.role = Role::Waiting;
                status.service = Service::NoQuorum;
                status.cluster = None;
            },
            "is in no ensemble yet",
        ),
        (
            |status| status.service = Service::Alarmed,
            "state that differs",
        ),
        (|status| status.disk.full = true, "nearly full"),
        (
            |status| {
                status.role = Role::Candidate;
                status.service = Service::NoQuorum;
                status.log.applied = 3;
                status.disk.rolled_back = true;
            },
            "has data older than what it has confirmed",
        ),
        (
            |status| {
                status.service = Service::NoQuorum;
                status.disk.hanging = true;
            },
            "has a disk that does not answer",
        ),
        (|status| status.disk.failing = true, "cannot write"),
        (
            |status| status.digest = hex(78),
            "members 1 and 3 differ at log entry 10: 0x4d and 0x4e",
        ),
    ];
    for (change, expected) in cases {
        let text = sentence(change);
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn a_member_far_behind_is_said_to_lag() {
    let mut members = all();
    for status in &mut members {
        status.log = Log {
            last: 5000,
            persisted: 5000,
            committed: 5000,
            applied: 5000,
        };
    }
    members[2].log.applied = 3000;
    members[2].digest = hex(1);
    let report = report(&members);
    assert_eq!(report.members[2].lag, Some(2000));
    assert_eq!(
        report.problems,
        ["member 3 (10.0.0.3:2181) lags by 2000 log entries"]
    );
}

#[test]
fn the_leader_of_the_newest_term_counts() {
    let mut members = all();
    members[0].role = Role::Leader;
    members[0].term = 3;
    let report = report(&members);
    assert_eq!(report.leader, Some(2));
    assert_eq!(
        report.problems,
        ["member 1 believes to lead in term 3, but member 2 leads in term 4"]
    );
}

#[test]
fn a_port_that_is_not_given_is_the_usual_one() {
    let cases = [
        ("h", "h:2181"),
        (" h:1 ", "h:1"),
        ("::1", "[::1]:2181"),
        ("[::1]", "[::1]:2181"),
        ("[::1]:7", "[::1]:7"),
    ];
    for (given, expected) in cases {
        assert_eq!(with_port(given), expected);
    }
}
