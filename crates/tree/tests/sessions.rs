//! Sessions, ephemeral znodes, containers and TTL znodes.

mod common;

use common::*;
use quenda_proto::{ErrorCode, Op};
use quenda_tree::ChangeKind::Deleted;
use quenda_tree::SessionEffect;
use quenda_tree::command::{Command, Origin};

fn resume(member: &mut Member, session: i64, password: [u8; 16]) -> Outcome {
    member.apply(&Command::ResumeSession {
        origin: Origin::default(),
        session,
        timeout_ms: 5_000,
        password,
    })
}

fn reap(member: &mut Member, path: &str, never_used_ms: i64) -> ErrorCode {
    let before = member.tree.last_zxid();
    let outcome = member.apply(&Command::Reap {
        path,
        never_used_ms,
    });
    assert_eq!(
        outcome.zxid,
        before + 1,
        "also a failed attempt takes a zxid"
    );
    outcome.code
}

#[test]
fn open_takes_a_zxid_and_resume_does_not() {
    let mut member = Member::new();
    let before = member.tree.last_zxid();
    let opened = member.open(OTHER);
    assert_eq!(opened.session, SessionEffect::Opened { session: OTHER });
    assert_eq!(opened.zxid, before + 1);
    let password = member.tree.session_password(OTHER);
    let resumed = resume(&mut member, OTHER, password);
    assert_eq!(resumed.zxid, 0);
    let expected = SessionEffect::Resumed {
        session: OTHER,
        generation: 2,
        timeout_ms: 5_000,
    };
    assert_eq!(resumed.session, expected);
    let session = member.tree.session(OTHER).expect("a session");
    assert_eq!((session.timeout_ms, session.generation), (5_000, 2));
    assert_eq!(member.tree.sessions().count(), 2);
}

#[test]
fn a_resume_in_front_of_the_expiry_saves_the_session() {
    let mut member = Member::new();
    member.open(OTHER);
    let expire = |generation| Command::ExpireSession {
        session: OTHER,
        generation,
    };
    let password = member.tree.session_password(OTHER);
    resume(&mut member, OTHER, password);
    let late = member.apply(&expire(1));
    assert_eq!((late.zxid, late.session), (0, SessionEffect::None));
    assert!(member.tree.session(OTHER).is_some());
    let expired = member.apply(&expire(2));
    assert_eq!(expired.session, SessionEffect::Closed { session: OTHER });
}

#[test]
fn a_wrong_password_or_session_is_refused_and_disturbs_nobody() {
    let mut member = Member::new();
    let mut password = member.tree.session_password(SESSION);
    let digest = member.tree.digest();
    assert_eq!(
        resume(&mut member, OTHER, password).session,
        SessionEffect::Refused
    );
    password[0] ^= 1;
    assert_eq!(
        resume(&mut member, SESSION, password).session,
        SessionEffect::Refused
    );
    assert_eq!(
        resume(&mut member, SESSION, [0; 16]).session,
        SessionEffect::Refused
    );
    assert_eq!(member.tree.digest(), digest);
    assert!(member.create(&Client::new(SESSION), "/a", 0).is_ok());
}

#[test]
fn ids_that_mean_something_else_are_refused() {
    let mut member = Member::new();
    for id in [0, i64::MIN, -1, 0xFF00_0000_0000_0001u64 as i64, SESSION] {
        assert_eq!(member.open(id).session, SessionEffect::Refused, "{id:#x}");
    }
    assert_eq!(member.tree.sessions().count(), 1);
}

#[test]
fn an_older_connection_has_moved() {
    let mut member = Member::new();
    let password = member.tree.session_password(SESSION);
    resume(&mut member, SESSION, password);
    let mut client = Client::new(SESSION);
    assert_eq!(
        member.create(&client, "/a", 0),
        Err(ErrorCode::SessionMoved)
    );
    assert_eq!(
        member.send(&client, Op::CloseSession, &0i32).code,
        ErrorCode::SessionMoved
    );
    client.generation = 2;
    assert!(member.create(&client, "/a", 0).is_ok());
}

#[test]
fn ephemerals_go_with_their_session_in_one_zxid() {
    let mut member = Member::new();
    member.open(OTHER);
    let (mine, other) = (Client::new(SESSION), Client::new(OTHER));
    member.must_create("/q");
    for client in [&mine, &other, &mine] {
        member.create(client, "/q/e-", 3).expect("a path");
    }
    assert_eq!(member.stat("/q/e-0000000000").ephemeral_owner, SESSION);
    assert_eq!(
        member.tree.ephemeral_owners().collect::<Vec<_>>(),
        [(SESSION, 2), (OTHER, 1)]
    );
    let closed = member.send(&mine, Op::CloseSession, &0i32);
    assert_eq!(closed.session, SessionEffect::Closed { session: SESSION });
    assert!(closed.body.is_empty());
    assert_eq!(
        closed.events(),
        [(Deleted, "/q/e-0000000000"), (Deleted, "/q/e-0000000002")]
    );
    assert!(
        closed
            .changes
            .iter()
            .all(|change| change.zxid == closed.zxid)
    );
    let stat = member.stat("/q");
    assert_eq!(
        (stat.pzxid, stat.num_children, stat.cversion),
        (closed.zxid, 1, 5)
    );
    assert_eq!(
        member.create(&mine, "/x", 0),
        Err(ErrorCode::SessionExpired)
    );
    assert_eq!(member.tree.session(SESSION), None);

    let expire = Command::ExpireSession {
        session: OTHER,
        generation: 1,
    };
    let expired = member.apply(&expire);
    assert_eq!(expired.session, SessionEffect::Closed { session: OTHER });
    assert_eq!(expired.events(), [(Deleted, "/q/e-0000000001")]);
    let again = member.apply(&expire);
    assert_eq!(again.session, SessionEffect::None);
    member.open(SESSION);
    assert_eq!(
        member.delete(&mine, "/q", -1),
        ErrorCode::Ok,
        "no child is left behind"
    );
}

#[test]
fn anyone_with_the_permission_deletes_an_ephemeral() {
    let mut member = Member::new();
    member.open(OTHER);
    member
        .create(&Client::new(SESSION), "/e", 1)
        .expect("a path");
    assert_eq!(member.delete(&Client::new(OTHER), "/e", -1), ErrorCode::Ok);
    assert_eq!(member.tree.ephemerals(SESSION).count(), 0);
    assert_eq!(member.tree.counts().ephemerals, 0);
}

#[test]
fn a_hundred_thousand_ephemerals_close_at_once() {
    let mut member = Member::new();
    let client = Client::new(SESSION);
    let empty = member.tree.digest();
    let name = "n".repeat(200);
    for number in 0..100_000 {
        let path = format!("/{name}{number}");
        let outcome = member.send(&client, Op::Create, &create(&path, None, 1));
        assert_eq!(outcome.code, ErrorCode::Ok);
    }
    assert_ne!(member.tree.digest(), empty);
    assert_eq!(member.tree.counts().ephemerals, 100_000);
    let closed = member.send(&client, Op::CloseSession, &0i32);
    assert_eq!(closed.changes.len(), 100_000);
    assert_eq!(member.tree.counts().znodes, 4);
    assert_eq!(member.stat("/").num_children, 1);
    let loaded = Store::full(&member.tree).load();
    assert_eq!(loaded.digest(), member.tree.digest());
}

#[test]
fn containers_go_after_their_last_child() {
    let mut member = Member::new();
    let client = Client::new(SESSION);
    let request = create("/c", None, 0);
    member
        .create2(&client, Op::CreateContainer, &request)
        .expect("a container");
    assert_eq!(
        member.tree.reap_candidates(member.time_ms, 0, 10),
        Vec::<String>::new()
    );
    assert_eq!(
        reap(&mut member, "/c", 0),
        ErrorCode::BadVersion,
        "never used: kept"
    );
    member.must_create("/c/child");
    assert_eq!(
        member.tree.reap_candidates(member.time_ms, 1, 10),
        Vec::<String>::new()
    );
    assert_eq!(member.delete(&client, "/c/child", -1), ErrorCode::Ok);
    assert_eq!(member.tree.reap_candidates(member.time_ms, 0, 10), ["/c"]);
    member.must_create("/c/late");
    assert_eq!(
        reap(&mut member, "/c", 0),
        ErrorCode::NotEmpty,
        "a new child saves it"
    );
    assert_eq!(member.delete(&client, "/c/late", -1), ErrorCode::Ok);
    let outcome = member.apply(&Command::Reap {
        path: "/c",
        never_used_ms: 0,
    });
    assert_eq!(outcome.events(), [(Deleted, "/c")]);
    assert_eq!(reap(&mut member, "/c", 0), ErrorCode::NoNode);
    assert_eq!(member.tree.counts().containers, 0);
}

#[test]
fn containers_that_were_never_used_have_a_grace() {
    let mut member = Member::new();
    let request = create("/c", None, 0);
    member
        .create2(&Client::new(SESSION), Op::CreateContainer, &request)
        .expect("a container");
    member.time_ms += 300_000;
    assert!(
        member
            .tree
            .reap_candidates(member.time_ms, 300_000, 10)
            .is_empty()
    );
    assert_eq!(reap(&mut member, "/c", 300_000), ErrorCode::BadVersion);
    member.time_ms += 1;
    assert_eq!(
        member.tree.reap_candidates(member.time_ms, 300_000, 10),
        ["/c"]
    );
    assert_eq!(reap(&mut member, "/c", 300_000), ErrorCode::Ok);
}

#[test]
fn ttl_znodes_go_when_old_and_childless() {
    let mut member = Member::new();
    let client = Client::new(SESSION);
    for (path, ttl) in [("/t", 2_000), ("/long", 5_000)] {
        member
            .create2(&client, Op::CreateTtl, &create_ttl(path, 5, ttl))
            .expect("ok");
    }
    member.time_ms += 1_500;
    member.set(&client, "/t", b"", -1).expect("a stat");
    member.time_ms += 2_000;
    assert_eq!(
        reap(&mut member, "/t", 0),
        ErrorCode::BadVersion,
        "setData prolongs"
    );
    member.must_create("/t/child");
    member.time_ms += 1;
    assert!(
        member
            .tree
            .reap_candidates(member.time_ms, 0, 10)
            .is_empty()
    );
    assert_eq!(reap(&mut member, "/t", 0), ErrorCode::NotEmpty);
    assert_eq!(member.delete(&client, "/t/child", -1), ErrorCode::Ok);
    assert_eq!(member.tree.reap_candidates(member.time_ms, 0, 10), ["/t"]);
    member.time_ms += 10_000;
    assert_eq!(
        member.tree.reap_candidates(member.time_ms, 0, 10),
        ["/t", "/long"]
    );
    assert_eq!(member.tree.reap_candidates(member.time_ms, 0, 1), ["/t"]);
    let loaded = Store::full(&member.tree).load();
    assert_eq!(
        loaded.reap_candidates(member.time_ms, 0, 10),
        ["/t", "/long"]
    );
    assert_eq!(reap(&mut member, "/t", 0), ErrorCode::Ok);
    member.must_create("/plain");
    assert_eq!(reap(&mut member, "/plain", 0), ErrorCode::BadVersion);
}
