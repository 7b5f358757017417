//! The order of requests, replies and events of one connection.

mod driver;

use driver::{Event, Member, Reply, raw, request, requests::*};
use quenda_frontend::{CloseReason, Pause, Received, Settings, SyncMode};
use quenda_proto::event::EventType;
use quenda_proto::records::GetDataResponse;
use quenda_proto::{ErrorCode, Op, multi};

fn xids(replies: &[Reply]) -> Vec<i32> {
    replies.iter().map(|reply| reply.xid).collect()
}

fn data(reply: &Reply) -> Vec<u8> {
    let response: GetDataResponse<'_> = reply.decode();
    response.data.expect("data").to_vec()
}

#[test]
fn a_read_between_two_writes_sees_the_state_between() {
    let mut member = Member::default();
    let client = member.client();
    member.ok(client, &create(1, "/a"));
    let frames = [
        get(2, "/a", false),
        set(3, "/a", b"one"),
        get(4, "/a", false),
        get(5, "/a", false),
        set(6, "/a", b"two"),
        get(7, "/a", false),
    ]
    .concat();
    member.send(client, &frames);
    // Both writes are on their way before either is applied.
    assert_eq!(member.proposed(), 2);
    assert_eq!(xids(&member.replies(client)), [2]);
    assert_eq!(member.connection(client).queued(), 5);
    member.apply();
    let replies = member.replies(client);
    assert_eq!(xids(&replies), [3, 4, 5, 6, 7]);
    assert_eq!(data(&replies[1]), b"one");
    assert_eq!(data(&replies[2]), b"one");
    assert_eq!(data(&replies[4]), b"two");
    assert_eq!(member.connection(client).queued(), 0);
}

#[test]
fn a_read_waits_for_no_write_of_another_session() {
    let mut member = Member::default();
    let (writer, reader) = (member.client(), member.client());
    member.send(writer, &create(1, "/a"));
    member.send(reader, &exists(1, "/a", false));
    assert_eq!(member.replies(reader)[0].err, ErrorCode::NoNode.code());
    member.apply();
    member.ok(reader, &exists(2, "/a", false));
}

/// B28: everything on one socket at once.
#[test]
fn replies_come_in_the_order_of_the_requests() {
    let mut member = Member::default();
    let client = member.client();
    let failing = multi(7, Op::Multi, |body| {
        multi::put_request(body, Op::Delete, &delete_record("/nope"));
    });
    let frames = [
        exists(1, "/a", true),
        create(2, "/a"),
        get(3, "/a", true),
        ping(-2),
        set(4, "/a", b"x"),
        sync(5, "/a"),
        add_watch(6, "/b", 0),
        failing,
        raw(8, Op::DeleteContainer.code(), &[0; 4]),
        raw(9, Op::GetData.code(), &[]),
        who_am_i(10),
        delete(11, "/a"),
        children(12, "/", false),
    ]
    .concat();
    let replies = member.call_all(client, &frames);
    let (events, answers): (Vec<Reply>, Vec<Reply>) =
        replies.into_iter().partition(Reply::is_event);
    assert_eq!(xids(&answers), [1, 2, 3, -2, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    let kinds: Vec<EventType> = events.iter().map(|event| event.event().0).collect();
    assert_eq!(kinds, [EventType::NodeCreated, EventType::NodeDataChanged]);
    let zxids: Vec<i64> = answers.iter().map(|reply| reply.zxid).collect();
    assert!(zxids.is_sorted(), "{zxids:?}");
}

/// Auth is served beside the order: its reply may overtake, and only what is read after it profits.
#[test]
fn auth_overtakes_and_counts_for_what_comes_behind_it() {
    let mut member = Member::default();
    let (owner, client) = (member.client(), member.client());
    member.call_all(owner, &auth("digest", b"u:p"));
    let private = vec![driver::acl(31, "auth", "")];
    member.ok(owner, &create_with(1, "/private", Some(private), 0));
    let frames = [
        create(1, "/a"),
        get(2, "/private", false),
        set(3, "/private", b"x"),
        auth("digest", b"u:p"),
        get(4, "/private", false),
        set(5, "/private", b"x"),
    ]
    .concat();
    member.send(client, &frames);
    assert_eq!(xids(&member.replies(client)), [-4]);
    member.apply();
    let replies = member.replies(client);
    let errors: Vec<(i32, i32)> = replies.iter().map(|reply| (reply.xid, reply.err)).collect();
    let refused = ErrorCode::NoAuth.code();
    assert_eq!(errors, [(1, 0), (2, refused), (3, refused), (4, 0), (5, 0)]);
}

/// B62.
#[test]
fn a_list_of_the_authenticated_may_be_pipelined_behind_auth() {
    let mut member = Member::default();
    let client = member.client();
    let mine = vec![driver::acl(31, "auth", "")];
    let frames = [
        auth("digest", b"u:p"),
        create_with(1, "/mine", Some(mine), 0),
        get_acl(2, "/mine"),
    ]
    .concat();
    let replies = member.call_all(client, &frames);
    assert_eq!(xids(&replies), [-4, 1, 2]);
    let text = String::from_utf8_lossy(&replies[2].body).into_owned();
    assert!(text.contains("u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ="), "{text}");
}

/// B14.
#[test]
fn what_is_behind_the_close_is_dropped() {
    let mut member = Member::default();
    let client = member.client();
    let session = member.session(client);
    let frames = [
        create(1, "/a"),
        create_ephemeral(2, "/e"),
        close_session(3),
        create(4, "/b"),
        exists(5, "/a", false),
    ]
    .concat();
    assert_eq!(
        member.send(client, &frames),
        Received::Paused(Pause::Closing)
    );
    assert_eq!(member.proposed(), 3);
    member.apply();
    let replies = member.replies(client);
    assert_eq!(xids(&replies), [1, 2, 3]);
    assert!(replies.iter().all(|reply| reply.err == 0 && reply.xid != 4));
    assert!(replies[2].body.is_empty());
    assert_eq!(member.wants_close(client), Some(CloseReason::ClientClosed));
    assert!(member.tree.get("/a").is_some());
    assert!(member.tree.get("/b").is_none());
    assert!(member.tree.get("/e").is_none());
    assert!(member.tree.session(session).is_none());
    assert_eq!(
        member.send(client, &exists(6, "/a", false)),
        Received::Close(CloseReason::ClientClosed)
    );
    assert!(member.replies(client).is_empty());
}

/// B10: reads of one session next to a close of another.
#[test]
fn a_close_of_another_session_costs_no_read() {
    let mut member = Member::default();
    let reader = member.client();
    member.ok(reader, &create(1, "/a"));
    for round in 0..1_000 {
        let writer = member.client();
        member.send(writer, &[set(1, "/a", b"x"), close_session(2)].concat());
        member.send(
            reader,
            &[set(2, "/a", b"y"), get(3, "/a", false), get(4, "/a", false)].concat(),
        );
        member.apply();
        assert_eq!(xids(&member.replies(reader)), [2, 3, 4], "round {round}");
        assert_eq!(xids(&member.replies(writer)), [1, 2], "round {round}");
        member.disconnect(writer);
    }
}

/// B29: the operation decides, not the xid.
#[test]
fn xids_are_echoed_whatever_they_are() {
    let mut member = Member::default();
    let client = member.client();
    for xid in [i32::MAX, 1, 0, -1, -2, -4, -8, i32::MIN] {
        assert_eq!(member.ok(client, &exists(xid, "/", false)).xid, xid);
        assert_eq!(member.ok(client, &set(xid, "/", b"x")).xid, xid);
        assert_eq!(member.ok(client, &ping(xid)).xid, -2);
        let packet = quenda_proto::records::AuthPacket {
            kind: 0,
            scheme: Some("ip".into()),
            auth: None,
        };
        let reply = member.ok(client, &request(xid, Op::Auth, &packet));
        assert_eq!((reply.xid, reply.zxid), (xid, 0));
    }
}

/// B19: the TTL is part of the record.
#[test]
fn create_ttl_takes_its_whole_record() {
    let mut member = Member::default();
    let client = member.client();
    let frames = [create_ttl(1, "/t", 1_000), exists(2, "/t", false)].concat();
    let replies = member.call_all(client, &frames);
    assert_eq!(xids(&replies), [1, 2]);
    assert!(replies.iter().all(|reply| reply.err == 0));
    for ttl in [0, -1, 1 << 40, i64::MAX] {
        member.expect(client, &create_ttl(3, "/u", ttl), ErrorCode::BadArguments);
    }
}

/// B68: a refused auth ends the connection before what is behind it.
#[test]
fn nothing_is_served_behind_a_refused_auth() {
    let mut member = Member::default();
    for scheme in ["foo", "world", "auth", "super", "sasl", "x509"] {
        let client = member.client();
        let replies = member.call_all(client, &[auth(scheme, b"x"), create(1, "/a")].concat());
        assert_eq!(replies.len(), 1);
        assert_eq!(
            (replies[0].xid, replies[0].zxid, replies[0].err),
            (-4, 0, ErrorCode::AuthFailed.code())
        );
        assert_eq!(member.wants_close(client), Some(CloseReason::AuthFailed));
        assert!(member.tree.get("/a").is_none());
    }
}

/// B23 and the private operations of other servers.
#[test]
fn unknown_operations_are_told_in_order_and_end_the_connection() {
    let mut member = Member::default();
    for code in [-10, -1, 0, 10, 13, 23, 50, 99, 108, 500, 599] {
        let client = member.client();
        let frames = [
            set(1, "/", b"x"),
            exists(2, "/", false),
            raw(3, code, &[0; 32]),
            create(4, "/never"),
        ]
        .concat();
        let replies = member.call_all(client, &frames);
        assert_eq!(xids(&replies), [1, 2, 3], "operation {code}");
        assert_eq!(
            (replies[2].zxid, replies[2].err, replies[2].body.len()),
            (-1, ErrorCode::Unimplemented.code(), 0)
        );
        assert_eq!(
            member.wants_close(client),
            Some(CloseReason::UnknownOperation(code))
        );
        assert!(member.tree.get("/never").is_none());
    }
}

#[test]
fn a_session_that_moved_loses_its_old_connection_at_the_next_write() {
    let mut member = Member::default();
    let client = member.client();
    let session = member.session(client);
    member.ok(client, &create(1, "/a"));
    // As another member would: the resume does not come from this one, which notices at the next write.
    member.closes = false;
    member.propose(&quenda_tree::command::Command::ResumeSession {
        origin: quenda_tree::command::Origin {
            member: 2,
            connection: 99,
        },
        session,
        timeout_ms: 10_000,
        password: member.tree.session_password(session),
    });
    member.send(
        client,
        &[
            set(2, "/a", b"x"),
            exists(3, "/a", false),
            set(4, "/a", b"y"),
        ]
        .concat(),
    );
    member.apply();
    assert!(member.replies(client).is_empty());
    assert_eq!(member.wants_close(client), Some(CloseReason::SessionMoved));
    let node = member.tree.get("/a").expect("the znode");
    assert_eq!(node.data(), Some(&b""[..]));
}

#[test]
fn requests_behind_the_expiry_are_told_so_or_dropped() {
    for closes in [true, false] {
        let mut member = Member::default();
        member.closes = closes;
        let client = member.client();
        let session = member.session(client);
        member.propose(&quenda_tree::command::Command::ExpireSession {
            session,
            generation: 1,
        });
        let frames = [create(1, "/a"), exists(2, "/", false), create(3, "/b")].concat();
        let replies = member.call_all(client, &frames);
        let answers: Vec<_> = replies.iter().map(|reply| (reply.xid, reply.err)).collect();
        let expected = [(1, ErrorCode::SessionExpired.code())];
        assert_eq!(answers, expected[usize::from(closes)..]);
        assert!(replies.iter().all(|reply| reply.zxid > 0));
        assert_eq!(
            member.wants_close(client),
            Some(CloseReason::SessionExpired)
        );
        assert!(member.tree.get("/a").is_none());
    }
}

/// B83 of the protocol sheet: the event comes first, also for the writer's own watch.
#[test]
fn an_event_precedes_the_reply_that_shows_its_cause() {
    let mut member = Member::default();
    let (client, other) = (member.client(), member.client());
    member.ok(client, &create(1, "/a"));
    member.ok(client, &get(2, "/a", true));
    let replies = member.call_all(client, &set(3, "/a", b"x"));
    assert_eq!(xids(&replies), [-1, 3]);
    assert_eq!(replies[0].zxid, replies[1].zxid);
    // B58: a reader that does not stop.
    member.ok(client, &get(4, "/a", true));
    member.send(other, &set(1, "/a", b"y"));
    member.send(client, &get(5, "/a", false));
    member.apply();
    member.send(client, &get(6, "/a", false));
    let replies = member.replies(client);
    assert_eq!(xids(&replies), [5, -1, 6]);
    assert_eq!(data(&replies[0]), b"x");
    assert_eq!(data(&replies[2]), b"y");
}

/// A read that waits behind an own write leaves its watch when it is served, not before.
#[test]
fn a_queued_read_leaves_its_watch_in_its_turn() {
    let mut member = Member::default();
    let client = member.client();
    let frames = [
        create(1, "/a"),
        get(2, "/a", true),
        set(3, "/a", b"x"),
        get(4, "/a", true),
    ]
    .concat();
    let replies = member.call_all(client, &frames);
    assert_eq!(xids(&replies), [1, 2, -1, 3, 4]);
    let event: Event = replies[2].event();
    assert_eq!((event.0, &*event.1), (EventType::NodeDataChanged, "/a"));
    assert_eq!(member.watch_count(), 1);
}

#[test]
fn the_events_of_a_closing_session_come_before_its_answer() {
    let mut member = Member::default();
    let (client, other) = (member.client(), member.client());
    member.ok(other, &children(1, "/", true));
    member.ok(client, &create(1, "/q"));
    member.events(other);
    member.ok(client, &children(2, "/q", true));
    member.ok(other, &children(2, "/q", true));
    let creates = [
        create_ephemeral(3, "/q/a"),
        create_ephemeral(4, "/q/b"),
        create_ephemeral(5, "/q/c"),
    ];
    member.call_all(client, &creates.concat());
    member.events(other);
    member.ok(client, &children(6, "/q", true));
    member.ok(other, &children(3, "/q", true));
    let replies = member.call_all(client, &close_session(7));
    assert_eq!(xids(&replies), [-1, 7]);
    let zxid = replies[1].zxid;
    let changed = (EventType::NodeChildrenChanged, "/q".to_owned(), zxid);
    assert_eq!(replies[0].event(), changed);
    assert_eq!(member.events(other), [changed]);
}

#[test]
fn sync_is_answered_in_order_and_echoes_anything() {
    let mut member = Member::default();
    let client = member.client();
    for path in ["/a", "/nope", "bad", "", "/\u{1F600}"] {
        // As a client sends it: plain UTF-8. The echo is written as ZooKeeper does.
        let body = [&(path.len() as i32).to_be_bytes()[..], path.as_bytes()].concat();
        let reply = member.ok(client, &raw(1, Op::Sync.code(), &body));
        let mut echo = bytes::BytesMut::new();
        quenda_proto::jute::put_string(&mut echo, path);
        assert_eq!(reply.body, echo);
    }
    let reply = member.ok(client, &raw(2, Op::Sync.code(), &[0xFF; 4]));
    assert_eq!(reply.body, [0xFF; 4]);
    member.send(client, &[create(3, "/a"), sync(4, "/a")].concat());
    assert!(member.replies(client).is_empty());
    member.apply();
    assert_eq!(xids(&member.replies(client)), [3, 4]);
}

#[test]
fn a_sync_with_a_barrier_holds_everything_behind_it() {
    let mut member = Member::default();
    member.sync = SyncMode::Barrier;
    let (client, other) = (member.client(), member.client());
    let frames = [
        create(1, "/a"),
        sync(2, "/a"),
        get(3, "/a", false),
        set(4, "/a", b"own"),
        sync(5, "/a"),
    ]
    .concat();
    assert_eq!(member.send(client, &frames), Received::Paused(Pause::Sync));
    assert_eq!((member.proposed(), member.barriers.len()), (1, 1));
    member.apply();
    assert_eq!(xids(&member.replies(client)), [1]);
    member.ok(other, &set(1, "/a", b"other"));
    member.pass_barrier();
    let replies = member.replies(client);
    assert_eq!(xids(&replies), [2, 3]);
    assert_eq!(data(&replies[1]), b"other");
    assert_eq!((member.proposed(), member.barriers.len()), (1, 1));
    // The barrier may be passed before the write in front of it is applied.
    member.pass_barrier();
    assert!(member.replies(client).is_empty());
    member.apply();
    assert_eq!(xids(&member.replies(client)), [4, 5]);
}

#[test]
fn pings_and_reads_go_on_where_reconfig_is_refused() {
    let record = || quenda_proto::records::ReconfigRequest {
        joining_servers: Some("server.2=a:1:2;3".into()),
        leaving_servers: None,
        new_members: None,
        cur_config_id: -1,
    };
    let mut member = Member::default();
    let client = member.client();
    let frame = request(1, Op::Reconfig, &record());
    member.expect(client, &frame, ErrorCode::ReconfigDisabled);
    let mut member = Member::new(Settings {
        reconfig_enabled: true,
        ..Settings::default()
    });
    let client = member.client();
    member.expect(client, &frame, ErrorCode::Unimplemented);
    member.expect(
        client,
        &raw(2, Op::DeleteContainer.code(), b"\0\0\0\x02/a"),
        ErrorCode::BadArguments,
    );
    member.ok(client, &keep_alive());
}
