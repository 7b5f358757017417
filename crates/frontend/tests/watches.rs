//! Watches on the wire.

mod driver;

use driver::{Event, Member, acl, raw, request, requests::*};
use quenda_proto::event::EventType;
use quenda_proto::event::EventType::{
    NodeChildrenChanged, NodeCreated, NodeDataChanged, NodeDeleted,
};
use quenda_proto::records::SetWatches2;
use quenda_proto::{ErrorCode, Op, multi};

/// A member with a client that watches and one that writes.
fn pair() -> (Member, u64, u64) {
    let mut member = Member::default();
    let watcher = member.client();
    let writer = member.client();
    (member, watcher, writer)
}

fn write(member: &mut Member, writer: u64, frames: &[Vec<u8>]) {
    for frame in frames {
        member.ok(writer, frame);
    }
}

/// Events without their zxid.
fn seen(member: &mut Member, client: u64) -> Vec<(EventType, String)> {
    let events = member.events(client);
    events
        .into_iter()
        .map(|(kind, path, zxid)| {
            assert!(zxid > 0);
            (kind, path)
        })
        .collect()
}

fn event(kind: EventType, path: &str) -> (EventType, String) {
    (kind, path.to_owned())
}

#[test]
fn an_exists_watch_waits_for_the_create_and_fires_once() {
    let (mut member, watcher, writer) = pair();
    member.expect(watcher, &exists(1, "/a", true), ErrorCode::NoNode);
    write(&mut member, writer, &[create(1, "/a"), set(2, "/a", b"x")]);
    assert_eq!(seen(&mut member, watcher), [event(NodeCreated, "/a")]);
    assert_eq!(member.watch_count(), 0);
}

#[test]
fn data_exists_and_child_watches_of_one_client_give_one_deletion() {
    let (mut member, watcher, writer) = pair();
    write(&mut member, writer, &[create(1, "/a")]);
    member.ok(watcher, &exists(1, "/a", true));
    member.ok(watcher, &get(2, "/a", true));
    member.ok(watcher, &children(3, "/a", true));
    assert_eq!(member.watch_count(), 2);
    write(&mut member, writer, &[delete(2, "/a"), create(3, "/a")]);
    assert_eq!(seen(&mut member, watcher), [event(NodeDeleted, "/a")]);
    assert_eq!(member.watch_count(), 0);
}

/// B56.
#[test]
fn a_child_watch_sees_children_and_its_own_deletion_only() {
    let (mut member, watcher, writer) = pair();
    write(&mut member, writer, &[create(1, "/p"), create(2, "/p/x")]);
    member.ok(watcher, &children(1, "/p", true));
    write(
        &mut member,
        writer,
        &[set(3, "/p", b"1"), set(4, "/p/x", b"1")],
    );
    assert!(seen(&mut member, watcher).is_empty());
    write(&mut member, writer, &[create(5, "/p/c")]);
    assert_eq!(
        seen(&mut member, watcher),
        [event(NodeChildrenChanged, "/p")]
    );
    member.ok(watcher, &children2(2, "/p", true));
    write(&mut member, writer, &[delete(6, "/p/c")]);
    assert_eq!(
        seen(&mut member, watcher),
        [event(NodeChildrenChanged, "/p")]
    );
    write(&mut member, writer, &[delete(7, "/p/x")]);
    member.ok(watcher, &children(3, "/p", true));
    write(&mut member, writer, &[delete(8, "/p")]);
    assert_eq!(seen(&mut member, watcher), [event(NodeDeleted, "/p")]);
}

#[test]
fn a_data_watch_fires_once() {
    let (mut member, watcher, writer) = pair();
    member.ok(watcher, &get(1, "/", true));
    member.ok(watcher, &get(2, "/", true));
    write(&mut member, writer, &[set(1, "/", b"x"), set(2, "/", b"y")]);
    assert_eq!(seen(&mut member, watcher), [event(NodeDataChanged, "/")]);
}

#[test]
fn failed_writes_and_lists_fire_nothing() {
    let (mut member, watcher, writer) = pair();
    write(&mut member, writer, &[create(1, "/a")]);
    member.ok(watcher, &get(1, "/a", true));
    member.ok(watcher, &children(2, "/a", true));
    member.expect(
        writer,
        &set_version(2, "/a", b"x", 9),
        ErrorCode::BadVersion,
    );
    member.ok(
        writer,
        &set_acl(3, "/a", vec![acl(31, "world", "anyone")], -1),
    );
    assert!(seen(&mut member, watcher).is_empty());
    assert_eq!(member.watch_count(), 2);
}

#[test]
fn failed_reads_leave_no_watch() {
    let (mut member, watcher, writer) = pair();
    let private = vec![acl(31, "digest", "a:b")];
    member.ok(writer, &create_with(1, "/private", Some(private), 0));
    member.expect(watcher, &get(1, "/nope", true), ErrorCode::NoNode);
    member.expect(watcher, &children(2, "/nope", true), ErrorCode::NoNode);
    member.expect(watcher, &get(3, "/private", true), ErrorCode::NoAuth);
    member.expect(watcher, &exists(4, "/private", true), ErrorCode::NoAuth);
    member.expect(watcher, &exists(5, "/\0", true), ErrorCode::BadArguments);
    assert_eq!(member.watch_count(), 0);
}

#[test]
fn a_persistent_watch_stays() {
    let (mut member, watcher, writer) = pair();
    write(&mut member, writer, &[create(1, "/p")]);
    assert_eq!(member.ok(watcher, &add_watch(1, "/p", 0)).body, [0; 4]);
    let writes = [
        create(2, "/p/b"),
        set(3, "/p", b"x"),
        set(4, "/p/b", b"x"),
        delete(5, "/p/b"),
    ];
    write(&mut member, writer, &writes);
    let expected = [
        event(NodeChildrenChanged, "/p"),
        event(NodeDataChanged, "/p"),
        event(NodeChildrenChanged, "/p"),
    ];
    assert_eq!(seen(&mut member, watcher), expected);
    write(&mut member, writer, &[delete(6, "/p"), create(7, "/p")]);
    let expected = [event(NodeDeleted, "/p"), event(NodeCreated, "/p")];
    assert_eq!(seen(&mut member, watcher), expected);
    assert_eq!(member.watch_count(), 2);
}

/// B46, B47.
#[test]
fn a_recursive_watch_tells_the_changed_path_and_no_children() {
    let (mut member, watcher, writer) = pair();
    write(&mut member, writer, &[create(1, "/w"), create(2, "/wx")]);
    member.ok(watcher, &add_watch(1, "/w", 1));
    let writes = [
        create(3, "/w/b"),
        create(4, "/w/b/c"),
        set(5, "/w/b/c", b"x"),
        set(6, "/wx", b"x"),
        delete(7, "/w/b/c"),
        delete(8, "/w/b"),
        set(9, "/w", b"x"),
    ];
    write(&mut member, writer, &writes);
    let expected = [
        event(NodeCreated, "/w/b"),
        event(NodeCreated, "/w/b/c"),
        event(NodeDataChanged, "/w/b/c"),
        event(NodeDeleted, "/w/b/c"),
        event(NodeDeleted, "/w/b"),
        event(NodeDataChanged, "/w"),
    ];
    assert_eq!(seen(&mut member, watcher), expected);
}

#[test]
fn recursive_and_child_watches_of_one_client_both_fire() {
    let (mut member, watcher, writer) = pair();
    write(&mut member, writer, &[create(1, "/w"), create(2, "/w/a")]);
    member.ok(watcher, &add_watch(1, "/w", 1));
    member.ok(watcher, &add_watch(2, "/", 1));
    member.ok(watcher, &children(3, "/w/a", true));
    write(&mut member, writer, &[create(3, "/w/a/x")]);
    let expected = [
        event(NodeCreated, "/w/a/x"),
        event(NodeChildrenChanged, "/w/a"),
    ];
    assert_eq!(seen(&mut member, watcher), expected);
}

#[test]
fn a_recursive_watch_on_the_root_sees_everything() {
    let (mut member, watcher, writer) = pair();
    member.ok(watcher, &add_watch(1, "/", 1));
    write(
        &mut member,
        writer,
        &[create(1, "/a"), create(2, "/a/b"), set(3, "/", b"x")],
    );
    let expected = [
        event(NodeCreated, "/a"),
        event(NodeCreated, "/a/b"),
        event(NodeDataChanged, "/"),
    ];
    assert_eq!(seen(&mut member, watcher), expected);
}

#[test]
fn one_shot_and_persistent_on_one_path_give_one_event() {
    let (mut member, watcher, writer) = pair();
    member.ok(watcher, &add_watch(1, "/", 0));
    member.ok(watcher, &add_watch(2, "/", 1));
    member.ok(watcher, &get(3, "/", true));
    write(&mut member, writer, &[set(1, "/", b"x")]);
    assert_eq!(seen(&mut member, watcher).len(), 1);
    member.expect(watcher, &check_watches(4, "/", 2), ErrorCode::NoWatcher);
    member.ok(watcher, &check_watches(5, "/", 4));
    member.ok(watcher, &check_watches(6, "/", 5));
}

#[test]
fn watches_on_odd_paths_are_taken_and_never_fire() {
    let (mut member, watcher, writer) = pair();
    for (mode, path) in [(0, "/missing"), (1, "odd"), (0, "/a/"), (1, "")] {
        assert_eq!(member.ok(watcher, &add_watch(1, path, mode)).body, [0; 4]);
    }
    member.expect(watcher, &add_watch(2, "/a", 9), ErrorCode::MarshallingError);
    member.ok(watcher, &exists(3, "", true));
    write(&mut member, writer, &[create(1, "/a"), set(2, "/", b"x")]);
    assert!(seen(&mut member, watcher).is_empty());
}

/// B55: every kind against every type.
#[test]
fn remove_watches_takes_the_named_kind_only() {
    let leave: [(&str, Vec<u8>); 4] = [
        ("child", children(1, "/p", true)),
        ("data", get(2, "/p", true)),
        ("persistent", add_watch(3, "/p", 0)),
        ("recursive", add_watch(4, "/p", 1)),
    ];
    let types = [1, 2, 4, 5];
    for (index, (name, frame)) in leave.iter().enumerate() {
        for kind in [1, 2, 3, 4, 5] {
            let mut member = Member::default();
            let client = member.client();
            member.ok(client, &create(9, "/p"));
            member.ok(client, frame);
            let matches = kind == 3 || types[index] == kind;
            let code = if matches {
                0
            } else {
                ErrorCode::NoWatcher.code()
            };
            let reply = member.call(client, &check_watches(5, "/p", kind));
            assert_eq!((reply.err, reply.body.len()), (code, 0), "{name}, {kind}");
            let reply = member.call(client, &remove_watches(6, "/p", kind));
            assert_eq!((reply.err, reply.body.len()), (code, 0), "{name}, {kind}");
            assert_eq!(member.watch_count() == 0, matches, "{name}, {kind}");
        }
    }
    let mut member = Member::default();
    let client = member.client();
    for (_, frame) in &leave {
        member.call(client, &create(9, "/p"));
        member.ok(client, frame);
    }
    for (kind, left) in [(2, 2), (4, 2), (5, 1), (1, 0)] {
        member.ok(client, &remove_watches(7, "/p", kind));
        member.expect(client, &remove_watches(8, "/p", kind), ErrorCode::NoWatcher);
        assert_eq!(member.watch_count(), left);
    }
    for kind in [0, 6, -1] {
        member.expect(
            client,
            &check_watches(8, "/p", kind),
            ErrorCode::MarshallingError,
        );
        member.expect(
            client,
            &remove_watches(8, "/p", kind),
            ErrorCode::MarshallingError,
        );
    }
}

#[test]
fn only_own_watches_are_looked_at() {
    let (mut member, watcher, other) = pair();
    member.ok(watcher, &get(1, "/", true));
    member.expect(other, &check_watches(1, "/", 3), ErrorCode::NoWatcher);
    member.expect(other, &remove_watches(2, "/", 3), ErrorCode::NoWatcher);
    member.expect(watcher, &remove_watches(2, "/a", 3), ErrorCode::NoWatcher);
    member.ok(watcher, &check_watches(3, "/", 2));
}

#[test]
fn an_exists_watch_on_an_absent_znode_can_be_removed() {
    let (mut member, watcher, writer) = pair();
    member.expect(watcher, &exists(1, "/a", true), ErrorCode::NoNode);
    member.ok(watcher, &remove_watches(2, "/a", 2));
    write(&mut member, writer, &[create(1, "/a")]);
    assert!(seen(&mut member, watcher).is_empty());
}

/// B37, B38.
#[test]
fn a_multi_fires_what_its_operations_would_and_nothing_when_it_fails() {
    let (mut member, watcher, writer) = pair();
    write(&mut member, writer, &[create(1, "/n")]);
    member.ok(watcher, &get(1, "/n", true));
    member.ok(watcher, &add_watch(2, "/", 1));
    member.ok(watcher, &children(3, "/n", true));
    let build = |version| {
        multi(2, Op::Multi, move |body| {
            multi::put_request(body, Op::SetData, &set_record("/n", b"x", -1));
            multi::put_request(body, Op::Create, &create_record("/n/c", b"", open(), 0));
            multi::put_request(body, Op::Delete, &delete_record("/n/c"));
            let check = quenda_proto::records::CheckVersionRequest {
                path: Some("/n".into()),
                version,
            };
            multi::put_request(body, Op::Check, &check);
        })
    };
    let reply = member.ok(writer, &build(7));
    assert!(seen(&mut member, watcher).is_empty());
    assert_eq!(reply.zxid, member.tree.last_zxid());
    let reply = member.ok(writer, &build(1));
    let expected: Vec<Event> = [
        (NodeDataChanged, "/n"),
        (NodeCreated, "/n/c"),
        (NodeChildrenChanged, "/n"),
        (NodeDeleted, "/n/c"),
    ]
    .map(|(kind, path)| (kind, path.to_owned(), reply.zxid))
    .to_vec();
    assert_eq!(member.events(watcher), expected);
}

#[test]
fn events_are_filtered_by_read_and_use_up_the_watch() {
    let (mut member, watcher, writer) = pair();
    let unreadable = || Some(vec![acl(30, "world", "anyone")]);
    member.expect(watcher, &exists(1, "/secret", true), ErrorCode::NoNode);
    member.ok(writer, &create_with(1, "/secret", unreadable(), 0));
    assert!(seen(&mut member, watcher).is_empty());
    assert_eq!(member.watch_count(), 0);
    // A znode that becomes unreadable after the watch was left.
    member.ok(writer, &create(2, "/a"));
    member.ok(watcher, &get(2, "/a", true));
    member.ok(watcher, &children(3, "/a", true));
    member.ok(writer, &set_acl(3, "/a", unreadable().expect("a list"), -1));
    write(
        &mut member,
        writer,
        &[set(4, "/a", b"x"), create(5, "/a/b")],
    );
    assert!(seen(&mut member, watcher).is_empty());
    assert_eq!(member.watch_count(), 0);
    // Recursive: the readable descendants only; the znode's own list decides, not the parent's.
    member.ok(watcher, &add_watch(4, "/", 1));
    member.ok(writer, &create_with(6, "/a/open", open(), 0));
    member.ok(writer, &create_with(7, "/a/closed", unreadable(), 0));
    write(
        &mut member,
        writer,
        &[delete(8, "/a/closed"), delete(9, "/a/open")],
    );
    let expected = [event(NodeCreated, "/a/open"), event(NodeDeleted, "/a/open")];
    assert_eq!(seen(&mut member, watcher), expected);
}

#[test]
fn the_current_identities_decide_about_an_event() {
    let (mut member, watcher, writer) = pair();
    member.call_all(writer, &auth("digest", b"u:p"));
    member.expect(watcher, &exists(1, "/mine", true), ErrorCode::NoNode);
    member.call_all(watcher, &auth("digest", b"u:p"));
    let mine = Some(vec![acl(31, "auth", "")]);
    member.ok(writer, &create_with(1, "/mine", mine, 0));
    assert_eq!(seen(&mut member, watcher), [event(NodeCreated, "/mine")]);
}

/// B50, B53, and the whole table of setWatches.
#[test]
fn set_watches_fires_what_was_missed_and_leaves_the_rest() {
    let (mut member, watcher, writer) = pair();
    write(
        &mut member,
        writer,
        &[create(1, "/old"), create(2, "/fresh")],
    );
    let seen_zxid = member.tree.last_zxid();
    write(
        &mut member,
        writer,
        &[set(3, "/fresh", b"x"), create(4, "/fresh/c")],
    );
    let frame = set_watches(
        seen_zxid,
        &["/gone", "/fresh", "/old"],
        &["/gone", "/fresh"],
        &["/gone", "/fresh", "/old"],
    );
    let replies = member.call_all(watcher, &frame);
    let expected: Vec<Event> = [
        (NodeDeleted, "/gone"),
        (NodeDataChanged, "/fresh"),
        (NodeCreated, "/fresh"),
        (NodeDeleted, "/gone"),
        (NodeChildrenChanged, "/fresh"),
    ]
    .map(|(kind, path)| (kind, path.to_owned(), -1))
    .to_vec();
    let (reply, events) = replies.split_last().expect("a reply");
    let events: Vec<Event> = events.iter().map(driver::Reply::event).collect();
    assert_eq!(events, expected);
    assert_eq!((reply.xid, reply.err, reply.body.len()), (-8, 0, 0));
    assert_eq!(reply.zxid, member.tree.last_zxid());
    // Registered: data and child of "/old", exists of "/gone"; each fires its own type.
    assert_eq!(member.watch_count(), 3);
    write(
        &mut member,
        writer,
        &[
            set(5, "/old", b"x"),
            create(6, "/old/c"),
            create(7, "/gone"),
            set(8, "/fresh", b"y"),
        ],
    );
    let expected = [
        event(NodeDataChanged, "/old"),
        event(NodeChildrenChanged, "/old"),
        event(NodeCreated, "/gone"),
    ];
    assert_eq!(seen(&mut member, watcher), expected);
}

/// B52: a deletion, also by the end of a session, counts for the parent's pzxid.
#[test]
fn a_child_that_went_away_meanwhile_is_reported() {
    let (mut member, watcher, writer) = pair();
    let owner = member.client();
    write(&mut member, writer, &[create(1, "/p"), create(2, "/p/c")]);
    member.ok(owner, &create_ephemeral(1, "/p/e"));
    let seen_zxid = member.tree.last_zxid();
    write(&mut member, writer, &[delete(3, "/p/c")]);
    let replies = member.call_all(watcher, &set_watches(seen_zxid, &[], &[], &["/p"]));
    assert_eq!(replies[0].event().0, NodeChildrenChanged);
    let seen_zxid = member.tree.last_zxid();
    let session = member.session(owner);
    member.expire(session);
    let replies = member.call_all(watcher, &set_watches(seen_zxid, &[], &[], &["/p"]));
    assert_eq!(replies[0].event().0, NodeChildrenChanged);
    let seen_zxid = member.tree.last_zxid();
    let replies = member.call_all(watcher, &set_watches(seen_zxid, &[], &[], &["/p"]));
    assert_eq!(replies.len(), 1);
}

/// B43: the events of one multi share a zxid; a client that saw only part of them gets the rest.
#[test]
fn set_watches_compares_with_greater() {
    let (mut member, watcher, writer) = pair();
    write(&mut member, writer, &[create(1, "/a"), create(2, "/b")]);
    let both = multi(3, Op::Multi, |body| {
        multi::put_request(body, Op::SetData, &set_record("/a", b"x", -1));
        multi::put_request(body, Op::SetData, &set_record("/b", b"x", -1));
    });
    let zxid = member.ok(writer, &both).zxid;
    let paths = ["/a", "/b"];
    let replies = member.call_all(watcher, &set_watches(zxid - 1, &paths, &[], &[]));
    assert_eq!(replies.len(), 3);
    let replies = member.call_all(watcher, &set_watches(zxid, &paths, &[], &[]));
    assert_eq!(replies.len(), 1);
    assert_eq!(member.watch_count(), 2);
}

#[test]
fn set_watches2_replays_persistent_ones_without_looking() {
    let (mut member, watcher, writer) = pair();
    let record = SetWatches2 {
        relative_zxid: 0,
        data_watches: Some(vec![]),
        exist_watches: Some(vec![]),
        child_watches: Some(vec![]),
        persistent_watches: Some(vec![Some("/p".into())]),
        persistent_recursive_watches: Some(vec![Some("/r".into())]),
    };
    let reply = member.ok(watcher, &request(17, Op::SetWatches2, &record));
    assert_eq!(reply.xid, 17);
    assert_eq!(member.watch_count(), 3);
    write(
        &mut member,
        writer,
        &[create(1, "/p"), create(2, "/r"), create(3, "/r/x")],
    );
    let expected = [
        event(NodeCreated, "/p"),
        event(NodeCreated, "/r"),
        event(NodeCreated, "/r/x"),
    ];
    assert_eq!(seen(&mut member, watcher), expected);
}

#[test]
fn a_null_list_fails_set_watches_at_its_place() {
    let (mut member, watcher, _) = pair();
    let mut record = set_watches_record(0, &["/gone"], &[], &[]);
    record.child_watches = None;
    let replies = member.call_all(watcher, &request(-8, Op::SetWatches, &record));
    assert_eq!(replies[0].event(), (NodeDeleted, "/gone".to_owned(), -1));
    assert_eq!(replies[1].err, ErrorCode::MarshallingError.code());
    let record = SetWatches2 {
        data_watches: Some(vec![]),
        exist_watches: Some(vec![]),
        child_watches: Some(vec![]),
        persistent_watches: None,
        ..SetWatches2::default()
    };
    member.expect(
        watcher,
        &request(-8, Op::SetWatches2, &record),
        ErrorCode::MarshallingError,
    );
    member.ok(watcher, &keep_alive());
}

/// B49.
#[test]
fn watches_that_were_used_leave_nothing_behind() {
    let (mut member, watcher, writer) = pair();
    member.ok(writer, &create(1, "/a"));
    for xid in 0..10_000 {
        member.send(watcher, &get(xid, "/a", true));
        member.send(writer, &set(xid, "/a", b"x"));
        member.apply();
        assert_eq!(member.replies(watcher).len(), 2);
        member.replies(writer);
    }
    assert_eq!(member.watch_count(), 0);
    let owner = member.client();
    for xid in 0..100 {
        let path = format!("/e{xid}");
        member.ok(owner, &create_ephemeral(xid, &path));
        member.ok(watcher, &get(xid, &path, true));
        member.ok(watcher, &children(xid, &path, true));
    }
    assert_eq!(member.watch_count(), 200);
    let session = member.session(owner);
    member.expire(session);
    assert_eq!(member.events(watcher).len(), 100);
    let counts = member.watches.borrow().counts();
    assert_eq!(
        (counts.watches(), counts.paths, counts.connections),
        (0, 0, 0)
    );
}

#[test]
fn watches_die_with_their_connection() {
    let (mut member, watcher, writer) = pair();
    member.ok(watcher, &add_watch(1, "/", 1));
    member.ok(watcher, &get(2, "/", true));
    member.ok(writer, &get(1, "/", true));
    member.disconnect(watcher);
    assert_eq!(member.watch_count(), 1);
    member.disconnect(writer);
    assert_eq!(member.watch_count(), 0);
}

/// B20: the one reply of the watch operations that has a body.
#[test]
fn add_watch_is_answered_with_an_empty_error_record() {
    let mut member = Member::default();
    let client = member.client();
    assert_eq!(member.ok(client, &add_watch(1, "/a", 0)).body, [0; 4]);
    assert!(
        member
            .ok(client, &check_watches(2, "/a", 3))
            .body
            .is_empty()
    );
    assert!(
        member
            .ok(client, &remove_watches(3, "/a", 3))
            .body
            .is_empty()
    );
}

#[test]
fn any_byte_but_zero_asks_for_a_watch() {
    let mut member = Member::default();
    let client = member.client();
    let reply = member.ok(client, &raw(1, Op::GetData.code(), b"\0\0\0\x01/\x07rest"));
    assert!(!reply.body.is_empty());
    assert_eq!(member.watch_count(), 1);
}
