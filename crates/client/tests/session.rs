//! The client against a scripted server: what it sends, how it matches replies, how it fails.

mod peer;

use std::time::Duration;

use bytes::{BufMut, BytesMut};
use peer::{PASSWORD, Peer, SESSION, accept, listen};
use quenda_client::{Client, ConnectOptions, Error, Events, Transaction, TransactionResult, Wire};
use quenda_proto::connect::Handshake;
use quenda_proto::event::{EventType, put_event};
use quenda_proto::frame::{OpenFrame, put_reply, put_reply_header};
use quenda_proto::jute::put_buffer;
use quenda_proto::multi::{put_created2, put_error, put_terminator};
use quenda_proto::records::{RequestHeader, Stat};
use quenda_proto::{Decode, Encode, ErrorCode, Op, Reader, XID_PING};

/// A session between a client and a scripted peer.
async fn session() -> (Client, Events, Peer) {
    let (listener, address) = listen().await;
    let options = ConnectOptions::default();
    let (client, peer) = tokio::join!(Client::connect(&address, &options), async {
        let mut peer = accept(&listener).await;
        peer.grant().await;
        peer
    });
    let (client, events) = client.expect("granted");
    (client, events, peer)
}

fn data_reply(xid: i32, data: &[u8]) -> BytesMut {
    let mut out = BytesMut::new();
    let open = OpenFrame::start(&mut out);
    put_reply_header(&mut out, xid, 9, ErrorCode::Ok);
    put_buffer(&mut out, data);
    Stat {
        version: 3,
        ..Stat::default()
    }
    .encode(&mut out);
    open.finish(&mut out);
    out
}

#[tokio::test]
async fn the_granted_session_is_told() {
    let (client, _events, _peer) = session().await;
    assert_eq!(client.session().id, SESSION);
    assert_eq!(client.session().password, PASSWORD);
    assert_eq!(client.session().timeout, Duration::from_millis(4000));
    assert!(!format!("{:?}", client.session()).contains("password"));
}

#[tokio::test]
async fn a_resume_sends_the_credentials_and_may_omit_the_read_only_byte() {
    let (client, _events, _peer) = session().await;
    let (listener, address) = listen().await;
    let options = ConnectOptions {
        resume: Some(client.session()),
        last_zxid_seen: 42,
        read_only: None,
        ..ConnectOptions::default()
    };
    let (wire, ()) = tokio::join!(Wire::connect(&address, &options), async {
        let mut peer = accept(&listener).await;
        let payload = peer.frame().await.expect("a handshake");
        assert_eq!(payload.len(), 44);
        let handshake = Handshake::decode(&payload).expect("decodes");
        assert_eq!(handshake.request.session_id, SESSION);
        assert_eq!(handshake.request.passwd, Some(&PASSWORD[..]));
        assert_eq!(handshake.request.last_zxid_seen, 42);
        peer.respond(SESSION, 5000, &PASSWORD, None).await;
    });
    assert_eq!(
        wire.expect("resumed").session().timeout,
        Duration::from_secs(5)
    );
}

#[tokio::test]
async fn a_refused_session_has_expired() {
    let (client, _events, _peer) = session().await;
    let (listener, address) = listen().await;
    let options = ConnectOptions {
        resume: Some(client.session()),
        ..ConnectOptions::default()
    };
    let (result, ()) = tokio::join!(Client::connect(&address, &options), async {
        let mut peer = accept(&listener).await;
        peer.frame().await.expect("a handshake");
        peer.respond(0, 0, &[0; 16], Some(false)).await;
    });
    assert!(matches!(result, Err(Error::SessionExpired(SESSION))));
}

#[tokio::test]
async fn a_close_and_a_silence_during_the_handshake_are_told_apart() {
    let (listener, address) = listen().await;
    let options = ConnectOptions {
        connect_timeout: Duration::from_millis(200),
        ..ConnectOptions::default()
    };
    let (closed, ()) = tokio::join!(Wire::connect(&address, &options), async {
        let mut peer = accept(&listener).await;
        peer.frame().await.expect("a handshake");
    });
    let closed = closed.expect_err("closed");
    assert!(matches!(closed, Error::HandshakeClosed { .. }));
    assert!(closed.to_string().ends_with("or speaks TLS only"));
    let by_tls = Error::HandshakeClosed {
        address: address.clone(),
        tls: true,
    };
    assert!(!by_tls.to_string().contains("TLS"), "{by_tls}");
    // The listener's queue completes the connection; nobody answers on it.
    let silent = Wire::connect(&address, &options).await;
    assert!(matches!(silent, Err(Error::HandshakeTimeout { .. })));
    drop(listener);
    let nobody = Wire::connect(&address, &options).await;
    assert!(matches!(nobody, Err(Error::Connect { .. })));
}

#[tokio::test]
async fn pipelined_requests_get_their_own_replies() {
    let (client, _events, mut peer) = session().await;
    let requests = async {
        tokio::join!(
            client.get_data("/a", false),
            client.get_data("/b", false),
            client.exists("/c", true),
        )
    };
    let script = async {
        let mut out = BytesMut::new();
        for (name, op) in [("/a", Op::GetData), ("/b", Op::GetData), ("/c", Op::Exists)] {
            let (header, body) = peer.request().await.expect("a request");
            assert_eq!(header.kind, op.code());
            assert_eq!(&body[4..6], name.as_bytes());
            match op {
                Op::Exists => put_reply(&mut out, header.xid, 9, ErrorCode::NoNode),
                _ => out.extend_from_slice(&data_reply(header.xid, name.as_bytes())),
            }
        }
        // Cut at an odd place: frames do not respect packets.
        let (first, second) = out.split_at(37);
        peer.send(first).await;
        peer.send(second).await;
    };
    let ((a, b, c), ()) = tokio::join!(requests, script);
    let (data, stat) = a.expect("answered");
    assert_eq!(data.as_deref(), Some(&b"/a"[..]));
    assert_eq!(stat.version, 3);
    assert_eq!(b.expect("answered").0.as_deref(), Some(&b"/b"[..]));
    assert_eq!(c.expect("absent is no error"), None);
}

#[tokio::test]
async fn an_error_code_names_the_operation_and_the_code() {
    let (client, _events, mut peer) = session().await;
    let (result, ()) = tokio::join!(client.delete("/x", 4), async {
        let (header, _) = peer.request().await.expect("a request");
        let mut out = BytesMut::new();
        put_reply(&mut out, header.xid, 9, ErrorCode::BadVersion);
        peer.send(&out).await;
    });
    let error = result.expect_err("refused");
    assert_eq!(error.code(), Some(-103));
    assert_eq!(error.to_string(), "delete failed: BadVersion (-103)");
}

#[tokio::test]
async fn events_arrive_in_order_between_replies() {
    let (client, mut events, mut peer) = session().await;
    let (result, ()) = tokio::join!(client.sync("/"), async {
        let (header, _) = peer.request().await.expect("a request");
        let mut out = BytesMut::new();
        put_event(&mut out, EventType::NodeCreated, "/a", 5);
        put_event(&mut out, EventType::NodeChildrenChanged, "/", 5);
        let open = OpenFrame::start(&mut out);
        put_reply_header(&mut out, header.xid, 9, ErrorCode::Ok);
        put_buffer(&mut out, b"/");
        open.finish(&mut out);
        peer.send(&out).await;
    });
    result.expect("answered");
    // Both came before the reply, so they are here already.
    let found: Vec<_> = std::iter::from_fn(|| events.try_next()).collect();
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].kind, EventType::NodeCreated);
    assert_eq!(found[0].zxid, 5);
    assert_eq!(found[1].path, "/");
}

#[tokio::test]
async fn a_lost_connection_fails_what_is_under_way_and_what_comes_later() {
    let (client, mut events, mut peer) = session().await;
    let under_way = client.clone();
    let (first, ()) = tokio::join!(under_way.get_data("/a", false), async {
        peer.request().await.expect("a request");
        drop(peer);
    });
    assert!(matches!(first, Err(Error::ConnectionLost(_))));
    assert_eq!(events.next().await, None);
    assert!(client.get_data("/a", false).await.is_err());
}

#[tokio::test]
async fn a_reply_nobody_waits_for_ends_the_connection() {
    let (client, _events, mut peer) = session().await;
    let (result, ()) = tokio::join!(client.get_data("/a", false), async {
        let (header, _) = peer.request().await.expect("a request");
        let out = data_reply(header.xid + 1, b"");
        peer.send(&out).await;
    });
    assert!(matches!(
        result,
        Err(Error::UnexpectedReply { found: 2, .. })
    ));
}

#[tokio::test]
async fn a_record_that_ends_early_is_an_error_of_its_request_alone() {
    let (client, _events, mut peer) = session().await;
    let script = async {
        let (header, _) = peer.request().await.expect("a request");
        let mut out = BytesMut::new();
        let open = OpenFrame::start(&mut out);
        put_reply_header(&mut out, header.xid, 9, ErrorCode::Ok);
        out.put_i32(100);
        open.finish(&mut out);
        peer.send(&out).await;
        let (header, _) = peer.request().await.expect("the connection lives");
        peer.send(&data_reply(header.xid, b"ok")).await;
    };
    let requests = async {
        let first = client.get_data("/a", false).await;
        (first, client.get_data("/b", false).await)
    };
    let ((first, second), ()) = tokio::join!(requests, script);
    assert!(matches!(first, Err(Error::Decode(_))));
    assert_eq!(second.expect("answered").0.as_deref(), Some(&b"ok"[..]));
}

#[tokio::test]
async fn a_transaction_gives_one_result_for_each_write() {
    let (client, _events, mut peer) = session().await;
    let acl = quenda_client::open_acl();
    let mode = quenda_proto::mode::CreateMode::Persistent;
    let transaction = || {
        Transaction::new()
            .create("/m", None, &acl, mode)
            .check("/n", 1)
    };
    let script = async {
        for failed in [false, true] {
            let (header, body) = peer.request().await.expect("a request");
            let ops = quenda_proto::multi::decode_writes(&mut Reader::new(&body));
            assert_eq!(ops.expect("decodes").len(), 2);
            let mut out = BytesMut::new();
            let open = OpenFrame::start(&mut out);
            put_reply_header(&mut out, header.xid, 9, ErrorCode::Ok);
            if failed {
                put_error(&mut out, ErrorCode::Ok);
                put_error(&mut out, ErrorCode::BadVersion);
            } else {
                put_created2(&mut out, "/m", &Stat::default());
                quenda_proto::multi::put_result_header(&mut out, Op::Check);
            }
            put_terminator(&mut out);
            open.finish(&mut out);
            peer.send(&out).await;
        }
    };
    let requests = async {
        let first = client.commit(transaction()).await;
        (first, client.commit(transaction()).await)
    };
    let ((first, second), ()) = tokio::join!(requests, script);
    assert_eq!(
        first.expect("committed"),
        [
            TransactionResult::Created {
                path: "/m".to_owned(),
                stat: Some(Stat::default())
            },
            TransactionResult::Checked
        ]
    );
    assert_eq!(
        second.expect("answered"),
        [
            TransactionResult::Failed(0),
            TransactionResult::Failed(-103)
        ]
    );
}

#[tokio::test]
async fn close_waits_for_the_servers_word() {
    let (client, _events, mut peer) = session().await;
    let (result, ()) = tokio::join!(client.close(), async {
        let (header, _) = peer.request().await.expect("a request");
        assert_eq!(header.kind, Op::CloseSession.code());
        let mut out = BytesMut::new();
        put_reply(&mut out, header.xid, 9, ErrorCode::Ok);
        peer.send(&out).await;
    });
    result.expect("closed");
}

#[tokio::test]
async fn an_idle_session_is_kept_alive_and_a_silent_server_is_noticed() {
    let (client, mut events, mut peer) = session().await;
    tokio::time::pause();
    let mut pings = 0;
    // Answers for ten timeouts, then falls silent.
    while pings < 30 {
        let mut payload = peer.frame().await.expect("a ping");
        let header = RequestHeader::decode(&mut Reader::new(&payload)).expect("a header");
        assert_eq!((header.xid, header.kind), (XID_PING, Op::Ping.code()));
        assert!(payload.split_off(8).is_empty());
        let mut out = BytesMut::new();
        put_reply(&mut out, XID_PING, 7, ErrorCode::Ok);
        peer.send(&out).await;
        pings += 1;
    }
    assert_eq!(events.next().await, None, "the silence ends the connection");
    assert!(client.sync("/").await.is_err());
}
