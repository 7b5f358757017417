//! A member without a quorum that serves reads. What it says byte by byte is in `golden.rs`.

mod driver;

use driver::{Member, connect, requests::*};
use quenda_frontend::{CloseReason, Received, ServiceMode, Settings};
use quenda_proto::ErrorCode;

const WANTED: Option<bool> = Some(true);

fn handshake(session: i64, password: &[u8], read_only: Option<bool>) -> Vec<u8> {
    connect(0, 10_000, session, Some(password), read_only)
}

/// A member that lost its quorum, and a session of the cluster with its password.
fn cut_off() -> (Member, i64, [u8; 16]) {
    let mut member = Member::default();
    let client = member.client();
    member.ok(client, &create(1, "/a"));
    let session = member.session(client);
    member.disconnect(client);
    member.service = ServiceMode::ReadOnly;
    let password = member.tree.session_password(session);
    (member, session, password)
}

/// A read-only session, its id and its password.
fn reader(member: &mut Member) -> (u64, i64, [u8; 16]) {
    let client = member.accept();
    member.send(client, &handshake(0, &[0; 16], WANTED));
    let (session, timeout, password, length) = member.handshake(client);
    assert_eq!((timeout, length), (10_000, 37));
    (client, session, password)
}

#[test]
fn only_clients_that_accept_it_are_taken() {
    let (mut member, ..) = cut_off();
    for read_only in [None, Some(false)] {
        let client = member.accept();
        let received = member.send(client, &handshake(0, &[0; 16], read_only));
        assert_eq!(received, Received::Close(CloseReason::ReadOnly));
        assert!(member.payloads(client).is_empty());
    }
}

#[test]
fn sessions_of_the_cluster_are_left_alone() {
    let (mut member, session, password) = cut_off();
    for password in [&password, &[0; 16]] {
        let client = member.accept();
        let received = member.send(client, &handshake(session, password, WANTED));
        assert_eq!(received, Received::Close(CloseReason::ReadOnly));
        assert!(member.payloads(client).is_empty());
    }
    assert!(member.tree.session(session).is_some());
}

#[test]
fn a_client_that_is_ahead_is_sent_away() {
    let (mut member, ..) = cut_off();
    let ahead = member.tree.last_zxid() + 1;
    let client = member.accept();
    let received = member.send(client, &connect(ahead, 10_000, 0, None, WANTED));
    assert!(matches!(
        received,
        Received::Close(CloseReason::ClientAhead { .. })
    ));
}

#[test]
fn sessions_are_the_members_own() {
    let (mut member, ..) = cut_off();
    let before = member.tree.digest();
    let (client, session, password) = reader(&mut member);
    assert!(member.connection(client).is_local());
    assert_eq!(member.connection(client).session(), Some(session));
    assert!(member.tree.session(session).is_none());
    assert_eq!((member.tree.digest(), member.proposed()), (before, 0));
    // It can be resumed here…
    member.disconnect(client);
    let client = member.accept();
    member.send(client, &handshake(session, &password, WANTED));
    assert_eq!(member.handshake(client).0, session);
    // … with the right password…
    let client = member.accept();
    let received = member.send(client, &handshake(session, &[1; 16], WANTED));
    assert_eq!(received, Received::Close(CloseReason::SessionRefused));
    assert_eq!(member.handshake(client).0, 0);
    // … but never as a session of the cluster, whoever gets its id there.
    member.service = ServiceMode::Serving;
    let client = member.accept();
    member.send(client, &handshake(session, &password, WANTED));
    member.apply();
    assert_eq!(member.handshake(client).0, 0);
    assert_ne!(password, member.tree.session_password(session));
}

#[test]
fn reads_and_watches_are_served_and_writes_refused() {
    let (mut member, ..) = cut_off();
    let (client, ..) = reader(&mut member);
    let zxid = member.tree.last_zxid();
    let frames = [
        get(1, "/a", true),
        set(2, "/a", b"x"),
        sync(3, "/a"),
        exists(4, "/a", false),
    ];
    member.send(client, &frames.concat());
    let replies: Vec<_> = member
        .replies(client)
        .iter()
        .map(|reply| (reply.xid, reply.zxid, reply.err))
        .collect();
    let refused = ErrorCode::NotReadOnly.code();
    assert_eq!(
        replies,
        [
            (1, zxid, 0),
            (2, zxid, refused),
            (3, zxid, refused),
            (4, zxid, 0)
        ]
    );
    assert_eq!((member.proposed(), member.barriers.len()), (0, 0));
    assert!(!member.connection(client).in_flight());
    assert_eq!(member.wants_close(client), None);
}

#[test]
fn linearizable_reads_have_no_leader_to_ask() {
    let mut member = Member::new(Settings {
        linearizable_reads: true,
        ..Settings::default()
    });
    member.sync = quenda_frontend::SyncMode::Barrier;
    member.service = ServiceMode::ReadOnly;
    let (client, ..) = reader(&mut member);
    member.ok(client, &exists(1, "/", false));
    assert!(member.barriers.is_empty());
}

#[test]
fn silence_ends_a_session_that_nobody_else_knows() {
    let (mut member, ..) = cut_off();
    let (client, ..) = reader(&mut member);
    member.now_ms += 9_000;
    member.ok(client, &keep_alive());
    member.now_ms += 10_000;
    assert!(!member.connection(client).is_local_expired(member.now_ms));
    member.now_ms += 1;
    assert!(member.connection(client).is_local_expired(member.now_ms));
    member.service = ServiceMode::Serving;
    let client = member.client();
    assert!(!member.connection(client).is_local_expired(u64::MAX));
}

#[test]
fn no_connection_outlives_a_change_of_the_service() {
    let (mut member, ..) = cut_off();
    let (client, ..) = reader(&mut member);
    member.service = ServiceMode::Serving;
    let received = member.send(client, &create(1, "/b"));
    assert_eq!(received, Received::Close(CloseReason::NotServing));
    let client = member.client();
    member.service = ServiceMode::ReadOnly;
    let received = member.send(client, &create(1, "/b"));
    assert_eq!(received, Received::Close(CloseReason::NotServing));
    assert_eq!(member.proposed(), 0);
}

#[test]
fn new_ids_are_never_those_that_were_given_out() {
    let (mut member, session, _) = cut_off();
    let (_, local, _) = reader(&mut member);
    assert!(local > session);
    // The member starts again, and its clock has gone back.
    member.session_ids = quenda_frontend::SessionIds::new(1, 1).expect("a member");
    member.service = ServiceMode::Serving;
    let client = member.client();
    assert_eq!(member.session(client), session + 1);
}
