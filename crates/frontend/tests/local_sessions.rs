//! Sessions that only their member knows: what goes through the log and what does not, and who may go on with one.

mod driver;

use std::cell::RefCell;

use driver::{Member, connect, request, requests::*};
use quenda_frontend::{CloseReason, LocalSessionTable, Received, ServiceMode, Settings};
use quenda_proto::multi::put_request;
use quenda_proto::records::CreateRequest;
use quenda_proto::{ErrorCode, Op};

fn member(upgrading: bool) -> Member {
    let mut member = Member::new(Settings {
        local_sessions_upgrading: upgrading,
        ..Settings::default()
    });
    let end = member.session_ids.begin_reservation(0);
    member.session_ids.reserve(end);
    member.local_sessions = Some(RefCell::default());
    member
}

fn table(member: &Member) -> std::cell::RefMut<'_, LocalSessionTable> {
    member
        .local_sessions
        .as_ref()
        .expect("a table")
        .borrow_mut()
}

/// A client with a new local session, its id and its password. Nothing of it goes through the log.
fn local(member: &mut Member) -> (u64, i64, [u8; 16]) {
    let client = member.accept();
    let (zxid, digest) = (member.tree.last_zxid(), member.tree.digest());
    member.send(client, &connect(0, 10_000, 0, Some(&[0; 16]), Some(false)));
    let (session, timeout, password, _) = member.handshake(client);
    assert_eq!((timeout, member.proposed()), (10_000, 0));
    assert_eq!(
        (member.tree.last_zxid(), member.tree.digest()),
        (zxid, digest)
    );
    assert!(session != 0 && member.connection(client).is_local());
    (client, session, password)
}

/// A new connection that wants to go on with a session.
fn resume(member: &mut Member, session: i64, password: &[u8; 16]) -> u64 {
    let client = member.accept();
    member.send(
        client,
        &connect(0, 10_000, session, Some(password), Some(false)),
    );
    client
}

fn ephemeral(xid: i32, path: &'static str) -> Vec<u8> {
    create_ephemeral(xid, path)
}

fn owner(member: &Member, path: &str) -> i64 {
    member
        .tree
        .get(path)
        .expect("a znode")
        .stat()
        .ephemeral_owner
}

/// Every ephemeral znode has an owner.
fn assert_owned(member: &Member, paths: &[&str]) {
    for path in paths {
        if let Some(znode) = member.tree.get(path) {
            let owner = znode.stat().ephemeral_owner;
            assert!(member.tree.session(owner).is_some(), "{path} of {owner:#x}");
        }
    }
}

/// Xid and error of each reply that has come.
fn outcomes(member: &mut Member, client: u64) -> Vec<(i32, i32)> {
    let replies = member.replies(client);
    replies.iter().map(|reply| (reply.xid, reply.err)).collect()
}

#[test]
fn writes_of_a_session_that_the_state_does_not_know_are_applied() {
    let mut member = member(false);
    let (client, session, _) = local(&mut member);
    member.ok(client, &create(1, "/a"));
    member.ok(client, &set(2, "/a", b"x"));
    assert!(member.tree.session(session).is_none());
    member.expect(
        client,
        &ephemeral(3, "/e"),
        ErrorCode::EphemeralOnLocalSession,
    );
    member.expect(
        client,
        &ephemeral(4, "/no/e"),
        ErrorCode::EphemeralOnLocalSession,
    );
    member.ok(client, &get(5, "/a", true));
    member.ok(client, &sync(6, "/"));
    assert_eq!(member.wants_close(client), None);
    assert_eq!(
        (table(&member).len(), member.tree.counts().sessions),
        (1, 0)
    );
}

#[test]
fn an_end_is_told_to_nobody() {
    let mut member = member(false);
    let (client, session, password) = local(&mut member);
    member.send(client, &[create(1, "/a"), close_session(2)].concat());
    // The write is still under way, and is answered first.
    assert!(member.replies(client).is_empty() && table(&member).is_empty());
    assert_eq!(member.proposed(), 1);
    member.apply();
    assert_eq!(outcomes(&mut member, client), [(1, 0), (2, 0)]);
    assert_eq!(member.wants_close(client), Some(CloseReason::ClientClosed));
    let zxid = member.tree.last_zxid();
    let late = resume(&mut member, session, &password);
    member.apply();
    assert_eq!(member.handshake(late).0, 0);
    assert_eq!(member.tree.last_zxid(), zxid);
}

#[test]
fn a_client_goes_on_where_it_was() {
    let mut member = member(false);
    let (first, session, password) = local(&mut member);
    member.disconnect(first);
    let second = resume(&mut member, session, &password);
    assert_eq!(
        (member.handshake(second).0, member.proposed()),
        (session, 0)
    );
    let wrong = resume(&mut member, session, &[3; 16]);
    member.apply();
    assert_eq!(member.handshake(wrong).0, 0);
    member.ok(second, &create(1, "/a"));
    // The old connection is still there: it is closed, and what it may have sent has its place in front.
    let third = resume(&mut member, session, &password);
    assert_eq!(member.wants_close(second), Some(CloseReason::SessionMoved));
    assert_eq!(member.proposed(), 1);
    member.apply();
    assert_eq!(member.handshake(third).0, session);
    assert_eq!(table(&member).len(), 1);
}

#[test]
fn what_an_earlier_connection_has_sent_comes_first_or_never() {
    for open in [false, true] {
        let mut member = member(false);
        let (first, session, password) = local(&mut member);
        member.send(first, &create(1, "/a"));
        if !open {
            member.disconnect(first);
        }
        let second = resume(&mut member, session, &password);
        assert!(
            member.payloads(second).is_empty(),
            "an answer before the write"
        );
        // Two that give up meanwhile change nothing of that.
        member.disconnect(second);
        let third = resume(&mut member, session, &password);
        assert!(member.payloads(third).is_empty());
        member.apply();
        assert_eq!(member.handshake(third).0, session);
        member.ok(third, &exists(1, "/a", false));
        // And it is said once.
        member.disconnect(third);
        let fourth = resume(&mut member, session, &password);
        assert_eq!(
            (member.handshake(fourth).0, member.proposed()),
            (session, 0)
        );
    }
}

#[test]
fn a_lost_write_does_not_come_back_behind_the_next_connection() {
    let mut member = member(false);
    let (first, session, password) = local(&mut member);
    member.send(first, &create(1, "/a"));
    member.abandon();
    member.disconnect(first);
    let second = resume(&mut member, session, &password);
    assert!(member.payloads(second).is_empty());
    // The same fate: the session lives on.
    member.abandon();
    member.disconnect(second);
    let third = resume(&mut member, session, &password);
    member.apply();
    assert_eq!(member.handshake(third).0, session);
    member.expect(third, &exists(1, "/a", false), ErrorCode::NoNode);
}

#[test]
fn an_ephemeral_znode_makes_the_session_one_of_the_cluster() {
    let mut member = member(true);
    let (client, session, password) = local(&mut member);
    member.ok(client, &create(1, "/a"));
    let zxid = member.tree.last_zxid();
    member.ok(client, &ephemeral(2, "/e"));
    assert_eq!(member.tree.last_zxid(), zxid + 2);
    assert_eq!(owner(&member, "/e"), session);
    assert!(!member.connection(client).is_local() && table(&member).is_empty());
    assert_eq!(member.tree.session_password(session), password);
    assert_eq!(
        member
            .tree
            .session(session)
            .map(|session| session.timeout_ms),
        Some(10_000)
    );
    // It is resumed through the log from now on, by any member.
    let next = resume(&mut member, session, &password);
    assert_eq!(member.proposed(), 1);
    member.apply();
    assert_eq!(member.handshake(next).0, session);
    member.ok(next, &close_session(1));
    assert!(member.tree.get("/e").is_none());
    assert!(member.tree.session(session).is_none());
}

#[test]
fn only_what_creates_one_does() {
    let mut member = member(true);
    let flagged = |op: Op, path: &'static str, flags: i32| {
        let record = CreateRequest {
            flags,
            ..create_record(path, b"", open(), 0)
        };
        request(1, op, &record)
    };
    let multi = |op: Op, flags: i32| {
        let record = create_record("/m", b"", open(), flags);
        multi(1, Op::Multi, |out| put_request(out, op, &record))
    };
    let frames = [
        (flagged(Op::CreateContainer, "/c", 1), 1),
        (flagged(Op::Create, "/p", 0), 1),
        (driver::raw(1, Op::Create.code(), &[0, 0]), 1),
        (multi(Op::CreateContainer, 1), 1),
        (multi(Op::Create, 2), 1),
        (flagged(Op::Create2, "/e", 3), 2),
        (flagged(Op::Create, "/none/e", 1), 2),
        (multi(Op::Create2, 1), 2),
    ];
    for (frame, commands) in frames {
        let (client, ..) = local(&mut member);
        member.send(client, &frame);
        assert_eq!(member.proposed(), commands, "{frame:?}");
        member.apply();
        assert_eq!(member.connection(client).is_local(), commands == 1);
        assert_eq!(member.wants_close(client), None);
        member.payloads(client);
    }
}

#[test]
fn two_in_one_go_make_one_session() {
    let mut member = member(true);
    let (client, session, _) = local(&mut member);
    let frames = [
        set(1, "/zookeeper", b"x"),
        ephemeral(2, "/e"),
        get(3, "/e", false),
        ephemeral(4, "/f"),
    ];
    member.send(client, &frames.concat());
    assert_eq!(member.proposed(), 4);
    member.apply();
    assert_eq!(
        outcomes(&mut member, client),
        [(1, 0), (2, 0), (3, 0), (4, 0)]
    );
    assert_eq!(
        (owner(&member, "/e"), owner(&member, "/f")),
        (session, session)
    );
    assert_eq!(member.tree.counts().sessions, 1);
}

#[test]
fn an_upgrade_whose_client_leaves_takes_place_or_not() {
    for lost in [false, true] {
        let mut member = member(true);
        let (client, session, password) = local(&mut member);
        member.send(client, &ephemeral(1, "/e"));
        if lost {
            member.abandon();
        }
        member.disconnect(client);
        assert!(table(&member).is_empty());
        let next = resume(&mut member, session, &password);
        assert!(member.payloads(next).is_empty());
        member.apply();
        assert_owned(&member, &["/e"]);
        assert_eq!(member.tree.get("/e").is_none(), lost);
        assert_eq!(member.handshake(next).0, if lost { 0 } else { session });
        if !lost {
            member.ok(next, &ephemeral(1, "/f"));
            member.expire(session);
            assert!(member.tree.get("/e").is_none() && member.tree.get("/f").is_none());
        }
    }
}

#[test]
fn an_end_behind_an_upgrade_ends_the_session_of_the_cluster() {
    let mut member = member(true);
    let (client, session, password) = local(&mut member);
    member.send(client, &[ephemeral(1, "/e"), close_session(2)].concat());
    assert_eq!(member.proposed(), 3);
    member.apply();
    assert_eq!(outcomes(&mut member, client), [(1, 0), (2, 0)]);
    assert!(member.tree.get("/e").is_none() && member.tree.session(session).is_none());
    let late = resume(&mut member, session, &password);
    member.apply();
    assert_eq!(member.handshake(late).0, 0);
}

#[test]
fn nobody_upgrades_a_session_that_is_anothers_or_over() {
    let mut member = member(true);
    let (first, session, password) = local(&mut member);
    // The new connection has the session, and the old one does not know yet.
    table(&member).resume(session, 10_000, quenda_frontend::ConnectionId(99), 0);
    let received = member.send(first, &ephemeral(1, "/e"));
    assert_eq!(received, Received::Close(CloseReason::SessionMoved));
    assert_eq!(member.proposed(), 0);
    let late = resume(&mut member, session, &password);
    member.apply();
    assert_eq!(member.handshake(late).0, session);
    // It was found silent.
    assert!(table(&member).end(session, quenda_frontend::ConnectionId(late)));
    let received = member.send(late, &ephemeral(1, "/e"));
    assert_eq!(received, Received::Close(CloseReason::SessionMoved));
    assert!(member.tree.get("/e").is_none());
}

#[test]
fn without_a_quorum_a_session_reads_on() {
    let mut member = member(true);
    let (first, session, password) = local(&mut member);
    member.ok(first, &create(1, "/a"));
    member.send(first, &set(2, "/a", b"x"));
    member.service = ServiceMode::ReadOnly;
    member.abandon();
    member.disconnect(first);
    let reader = member.accept();
    let handshake = connect(0, 10_000, session, Some(&password), Some(true));
    member.send(reader, &handshake);
    let (resumed, _, same, _) = member.handshake(reader);
    assert_eq!((resumed, same), (session, password));
    member.ok(reader, &exists(1, "/a", false));
    member.expect(reader, &ephemeral(2, "/e"), ErrorCode::NotReadOnly);
    member.expect(reader, &sync(3, "/"), ErrorCode::NotReadOnly);
    assert_eq!(member.proposed(), 0);
    member.service = ServiceMode::Serving;
    let received = member.send(reader, &exists(4, "/a", false));
    assert_eq!(received, Received::Close(CloseReason::NotServing));
    member.disconnect(reader);
    // The write of the first connection has not been waited for yet.
    let next = resume(&mut member, session, &password);
    assert_eq!(member.proposed(), 1);
    member.apply();
    assert_eq!(member.handshake(next).0, session);
    member.ok(next, &ephemeral(1, "/e"));
}

#[test]
fn an_id_that_is_not_reserved_is_no_local_one() {
    let mut member = member(false);
    member.session_ids.reserve(0);
    let client = member.client();
    assert!(!member.connection(client).is_local());
    assert!(member.tree.session(member.session(client)).is_some());
}
