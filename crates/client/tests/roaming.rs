//! A session that outlives its connections, against scripted servers.

mod peer;

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use peer::{Peer, SESSION, accept, listen};
use quenda_client::{
    Client, ConnectionState, Error, SessionEvent, SessionEvents, SessionOptions, SessionState,
    WatchRemoved,
};
use quenda_proto::event::{EventType, WatcherType, put_event};
use quenda_proto::frame::put_reply;
use quenda_proto::records::{
    AuthPacket, CreateRequest, GetDataRequest, RequestHeader, SetWatches2, Stat,
};
use quenda_proto::{Decode, Encode, ErrorCode, Op, Reader, XID_AUTH, XID_SET_WATCHES};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// For what has to happen; reached only when it does not.
const PATIENCE: Duration = Duration::from_secs(30);

fn options(hosts: &[&str], chroot: &str) -> SessionOptions {
    let text = format!("{}{chroot}", hosts.join(","));
    SessionOptions::new(text.parse().expect("a connect string"))
}

async fn next(events: &mut SessionEvents) -> SessionEvent {
    let event = tokio::time::timeout(PATIENCE, events.next()).await;
    event.expect("an event in time").expect("an event")
}

async fn expect_state(events: &mut SessionEvents, state: SessionState) {
    assert_eq!(next(events).await, SessionEvent::State(state));
}

async fn granted(listener: &TcpListener) -> (Peer, quenda_proto::records::ConnectRequest<'static>) {
    let mut peer = accept(listener).await;
    let handshake = peer.grant().await;
    (peer, handshake.request)
}

async fn request(peer: &mut Peer) -> (RequestHeader, Op, Bytes) {
    let asked = tokio::time::timeout(PATIENCE, peer.request()).await;
    let (header, record) = asked.expect("a request in time").expect("a request");
    let op = Op::from_code(header.kind).expect("a known operation");
    (header, op, record.freeze())
}

/// A reply with a zxid and a body.
async fn reply(peer: &mut Peer, xid: i32, zxid: i64, body: &[u8]) {
    let mut out = BytesMut::new();
    let open = quenda_proto::frame::OpenFrame::start(&mut out);
    quenda_proto::frame::put_reply_header(&mut out, xid, zxid, ErrorCode::Ok);
    out.extend_from_slice(body);
    open.finish(&mut out);
    peer.send(&out).await;
}

async fn refuse(peer: &mut Peer, xid: i32, code: ErrorCode) {
    let mut out = BytesMut::new();
    put_reply(&mut out, xid, 0, code);
    peer.send(&out).await;
}

fn stat() -> BytesMut {
    let mut out = BytesMut::new();
    Stat::default().encode(&mut out);
    out
}

/// Answers the `exists` that is due.
async fn answer_exists(peer: &mut Peer, zxid: i64) -> String {
    let (header, op, record) = request(peer).await;
    assert_eq!(op, Op::Exists);
    let asked = GetDataRequest::decode(&mut Reader::new(&record)).expect("a request");
    reply(peer, header.xid, zxid, &stat()).await;
    asked.path.expect("a path").into_owned()
}

#[tokio::test]
async fn a_broken_connection_fails_what_is_under_way_and_the_session_goes_on_elsewhere() {
    let (first, at_first) = listen().await;
    let (second, at_second) = listen().await;
    let mut options = options(&[&at_first, &at_second], "");
    options.auth = vec![("digest".to_owned(), b"bob:secret".to_vec())];
    let (client, mut events) = Client::open(options);
    assert_eq!(client.state(), ConnectionState::Connecting);

    // Asked before there is a connection: it waits.
    let early = tokio::spawn({
        let client = client.clone();
        async move { client.exists("/early", true).await }
    });
    let (mut peer, handshake) = granted(&first).await;
    assert_eq!((handshake.session_id, handshake.last_zxid_seen), (0, 0));
    expect_state(&mut events, SessionState::SyncConnected).await;
    let (header, op, record) = request(&mut peer).await;
    assert_eq!((header.xid, op), (XID_AUTH, Op::Auth));
    let packet = AuthPacket::decode(&mut Reader::new(&record)).expect("a packet");
    assert_eq!(packet.auth, Some(&b"bob:secret"[..]));
    refuse(&mut peer, XID_AUTH, ErrorCode::Ok).await;
    assert_eq!(answer_exists(&mut peer, 41).await, "/early");
    early.await.expect("no panic").expect("an answer");
    assert_eq!(client.server().as_deref(), Some(at_first.as_str()));

    // A write whose reply never comes.
    let write = tokio::spawn({
        let client = client.clone();
        async move { client.set_data("/a", None, -1).await }
    });
    let (_, op, _) = request(&mut peer).await;
    assert_eq!(op, Op::SetData);
    drop(peer);
    let lost = write.await.expect("no panic");
    assert!(matches!(lost, Err(Error::ConnectionLost(_))), "{lost:?}");
    expect_state(&mut events, SessionState::Disconnected).await;

    let (mut peer, handshake) = granted(&second).await;
    assert_eq!(handshake.session_id, SESSION);
    assert_eq!(handshake.last_zxid_seen, 41);
    let (header, op, _) = request(&mut peer).await;
    assert_eq!((header.xid, op), (XID_AUTH, Op::Auth));
    refuse(&mut peer, XID_AUTH, ErrorCode::Ok).await;
    let (header, op, record) = request(&mut peer).await;
    assert_eq!((header.xid, op), (XID_SET_WATCHES, Op::SetWatches2));
    let watches = SetWatches2::decode(&mut Reader::new(&record)).expect("watches");
    assert_eq!(watches.relative_zxid, 41);
    assert_eq!(watches.data_watches, Some(vec![Some("/early".into())]));
    refuse(&mut peer, XID_SET_WATCHES, ErrorCode::Ok).await;
    expect_state(&mut events, SessionState::SyncConnected).await;

    // The write is not sent again: the next request is the next that was asked.
    let (again, path) = tokio::join!(client.exists("/late", false), answer_exists(&mut peer, 42));
    again.expect("an answer");
    assert_eq!(path, "/late");
    assert_eq!(client.server().as_deref(), Some(at_second.as_str()));

    let (closed, ()) = tokio::join!(client.close(), async {
        let (header, op, _) = request(&mut peer).await;
        assert_eq!(op, Op::CloseSession);
        refuse(&mut peer, header.xid, ErrorCode::Ok).await;
        drop(peer);
    });
    closed.expect("closed");
    expect_state(&mut events, SessionState::Closed).await;
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn an_expired_session_is_over() {
    let (listener, address) = listen().await;
    let (client, mut events) = Client::open(options(&[&address], ""));
    let (peer, _) = granted(&listener).await;
    expect_state(&mut events, SessionState::SyncConnected).await;
    drop(peer);
    expect_state(&mut events, SessionState::Disconnected).await;
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.exists("/a", false).await }
    });
    let mut peer = accept(&listener).await;
    peer.frame().await.expect("a handshake");
    peer.respond(0, 0, &[0; 16], Some(false)).await;
    expect_state(&mut events, SessionState::Expired).await;
    assert_eq!(client.state(), ConnectionState::Expired);
    let failed = waiting.await.expect("no panic");
    assert!(
        matches!(failed, Err(Error::SessionExpired(SESSION))),
        "{failed:?}"
    );
    let late = client.exists("/a", false).await;
    assert!(
        matches!(late, Err(Error::SessionExpired(SESSION))),
        "{late:?}"
    );
    let wait = client.wait_connected(PATIENCE).await;
    assert!(
        matches!(wait, Err(Error::SessionExpired(SESSION))),
        "{wait:?}"
    );
}

#[tokio::test]
async fn a_refused_identity_ends_the_session_for_this_client() {
    let (listener, address) = listen().await;
    let (client, mut events) = Client::open(options(&[&address], ""));
    let (mut peer, _) = granted(&listener).await;
    expect_state(&mut events, SessionState::SyncConnected).await;
    let (refused, ()) = tokio::join!(client.add_auth("nonsense", b"x"), async {
        request(&mut peer).await;
        refuse(&mut peer, XID_AUTH, ErrorCode::AuthFailed).await;
    });
    assert!(matches!(refused, Err(Error::AuthFailed(_))), "{refused:?}");
    // Before the server closes the connection.
    assert_eq!(client.state(), ConnectionState::AuthFailed);
    let why = client.wait_connected(Duration::ZERO).await;
    let why = why.expect_err("refused").to_string();
    assert!(why.contains("nonsense"), "{why}");
    expect_state(&mut events, SessionState::AuthFailed).await;
    drop(peer);
    assert!(events.next().await.is_none(), "told once");
    let late = client.exists("/a", false).await.expect_err("refused");
    assert!(late.to_string().contains("nonsense"), "{late}");
}

#[tokio::test]
async fn requests_fail_when_a_round_over_the_servers_finds_none() {
    let nobody = || async { listen().await.1 };
    let (one, other) = (nobody().await, nobody().await);
    let (client, _events) = Client::open(options(&[&one, &other], ""));
    let lost = tokio::time::timeout(PATIENCE, client.exists("/a", false)).await;
    let lost = lost.expect("in time");
    assert!(matches!(lost, Err(Error::ConnectionLost(_))), "{lost:?}");
    let waited = client.wait_connected(Duration::from_millis(50)).await;
    let text = waited.expect_err("nobody").to_string();
    assert!(text.contains("cannot connect to"), "{text}");
    // What is closed while nobody can be told lives on for its timeout.
    let closed = client.close().await;
    assert!(
        matches!(closed, Err(Error::ConnectionLost(_))),
        "{closed:?}"
    );
}

#[tokio::test]
async fn paths_are_below_the_root() {
    let (listener, address) = listen().await;
    let (client, mut events) = Client::open(options(&[&address], "/app"));
    let (mut peer, _) = granted(&listener).await;
    expect_state(&mut events, SessionState::SyncConnected).await;
    let acl = quenda_client::open_acl();
    let mode = quenda_proto::mode::CreateMode::Persistent;
    let (made, ()) = tokio::join!(client.create("/a", None, &acl, mode), async {
        let (header, _, record) = request(&mut peer).await;
        let asked = CreateRequest::decode(&mut Reader::new(&record)).expect("a request");
        assert_eq!(asked.path.as_deref(), Some("/app/a"));
        let mut body = BytesMut::new();
        Some(std::borrow::Cow::Borrowed("/app/a")).encode(&mut body);
        reply(&mut peer, header.xid, 5, &body).await;
    });
    assert_eq!(made.expect("created"), "/a");
    let (there, path) = tokio::join!(client.exists("/", true), answer_exists(&mut peer, 5));
    there.expect("there");
    assert_eq!(path, "/app");
    let mut out = BytesMut::new();
    put_event(&mut out, EventType::NodeDataChanged, "/app", 6);
    peer.send(&out).await;
    let SessionEvent::Watch(event) = next(&mut events).await else {
        panic!("no watch event");
    };
    assert_eq!((event.path.as_str(), event.zxid), ("/", 6));
}

#[tokio::test]
async fn watches_are_forgotten_with_a_word() {
    let (listener, address) = listen().await;
    let (client, mut events) = Client::open(options(&[&address], ""));
    let (mut peer, _) = granted(&listener).await;
    expect_state(&mut events, SessionState::SyncConnected).await;
    let none = client.forget_watches("/a", WatcherType::Any, false).await;
    let none = none.expect_err("there are none");
    assert_eq!(none.code(), Some(ErrorCode::NoWatcher.code()));
    let (there, _) = tokio::join!(client.exists("/a", true), answer_exists(&mut peer, 1));
    there.expect("there");
    let (forgotten, ()) = tokio::join!(
        client.forget_watches("/a", WatcherType::Any, false),
        async {
            let (header, op, _) = request(&mut peer).await;
            assert_eq!(op, Op::RemoveWatches);
            refuse(&mut peer, header.xid, ErrorCode::Ok).await;
        }
    );
    forgotten.expect("forgotten");
    let removed = SessionEvent::Removed(WatchRemoved::Data, "/a".to_owned());
    assert_eq!(next(&mut events).await, removed);
    // Without the server, if that is what is asked for.
    let (there, _) = tokio::join!(client.exists("/a", true), answer_exists(&mut peer, 1));
    there.expect("there");
    let (forgotten, ()) = tokio::join!(
        client.forget_watches("/a", WatcherType::Data, true),
        async {
            request(&mut peer).await;
            drop(peer);
        }
    );
    forgotten.expect("forgotten");
    assert_eq!(next(&mut events).await, removed);
}

#[tokio::test]
async fn a_server_that_takes_writes_is_looked_for() {
    let (first, at_first) = listen().await;
    let (second, at_second) = listen().await;
    let mut options = options(&[&at_first, &at_second], "");
    options.read_only = true;
    let (client, mut events) = Client::open(options);
    let mut peer = accept(&first).await;
    peer.read_only = true;
    peer.grant().await;
    expect_state(&mut events, SessionState::ConnectedReadOnly).await;
    assert_eq!(client.state(), ConnectionState::ConnectedReadOnly);
    let (mut asked, _) = second.accept().await.expect("a question");
    let mut word = [0; 4];
    asked.read_exact(&mut word).await.expect("a word");
    assert_eq!(&word, b"isro");
    asked.write_all(b"rw").await.expect("written");
    drop(asked);
    let (_peer, handshake) = granted(&second).await;
    // A session of a server without quorum is worth nothing elsewhere.
    assert_eq!(handshake.session_id, 0);
    expect_state(&mut events, SessionState::Disconnected).await;
    expect_state(&mut events, SessionState::SyncConnected).await;
    assert_eq!(client.server().as_deref(), Some(at_second.as_str()));
}
