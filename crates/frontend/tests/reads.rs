//! Reads, identities and what does not decode.

mod driver;

use std::collections::BTreeSet;

use driver::{Member, acl, raw, request, requests::*};
use quenda_frontend::{CloseReason, Settings};
use quenda_proto::records::{
    ExistsResponse, GetAclResponse, GetChildren2Response, GetChildrenResponse, GetDataRequest,
    GetDataResponse, GetEphemeralsResponse, WhoAmIResponse,
};
use quenda_proto::{ErrorCode, Op, multi};

fn names(children: Option<Vec<Option<std::borrow::Cow<'_, str>>>>) -> BTreeSet<String> {
    let children = children.expect("never null");
    let names = children.into_iter().map(|name| name.expect("never null"));
    names.map(|name| name.into_owned()).collect()
}

#[test]
fn a_fresh_tree_reads_as_in_zookeeper() {
    let mut member = Member::default();
    let client = member.client();
    for root in ["/", ""] {
        let reply = member.ok(client, &exists(1, root, false));
        let stat = reply.decode::<ExistsResponse>().stat;
        assert_eq!((stat.czxid, stat.cversion, stat.num_children), (0, -1, 1));
    }
    let reply = member.ok(client, &children(2, "/zookeeper", false));
    let response: GetChildrenResponse<'_> = reply.decode();
    assert_eq!(
        names(response.children),
        BTreeSet::from(["config".to_owned(), "quota".to_owned()])
    );
    let reply = member.ok(client, &all_children_number(3, "/"));
    assert_eq!(reply.body, 3i32.to_be_bytes());
    member.ok(client, &get(4, "/zookeeper/config", true));
}

#[test]
fn odd_paths_are_just_absent() {
    let mut member = Member::default();
    let client = member.client();
    member.ok(client, &create(1, "/a"));
    for path in ["a", "/a/", "/nope", "//", "/a//b"] {
        member.expect(client, &get(1, path, false), ErrorCode::NoNode);
        member.expect(client, &exists(2, path, false), ErrorCode::NoNode);
        member.expect(client, &children(3, path, false), ErrorCode::NoNode);
        member.expect(client, &children2(4, path, false), ErrorCode::NoNode);
        member.expect(client, &get_acl(5, path), ErrorCode::NoNode);
        member.expect(client, &all_children_number(6, path), ErrorCode::NoNode);
    }
    member.expect(client, &exists(7, "/\0", false), ErrorCode::BadArguments);
    member.expect(client, &get(8, "/\0", false), ErrorCode::NoNode);
}

#[test]
fn null_and_empty_data_are_different() {
    let mut member = Member::default();
    let client = member.client();
    member.ok(client, &create(1, "/empty"));
    let mut null = create_record("/null", b"", open(), 0);
    null.data = None;
    member.ok(client, &request(2, Op::Create, &null));
    for (path, data) in [("/empty", Some(&b""[..])), ("/null", None)] {
        let reply = member.ok(client, &get(3, path, false));
        let response: GetDataResponse<'_> = reply.decode();
        assert_eq!((response.data, response.stat.data_length), (data, 0));
    }
}

/// B35, B76.
#[test]
fn get_children2_has_the_stat_of_the_parent() {
    let mut member = Member::default();
    let client = member.client();
    member.ok(client, &create(1, "/p"));
    let reply = member.ok(client, &children(2, "/p", false));
    assert_eq!(reply.body, [0; 4]);
    let names_wanted: BTreeSet<String> = (0..20).map(|n| format!("c{n}")).collect();
    for name in &names_wanted {
        member.ok(client, &create(3, &format!("/p/{name}")));
    }
    let reply = member.ok(client, &children(4, "/p", false));
    let response: GetChildrenResponse<'_> = reply.decode();
    assert_eq!(names(response.children), names_wanted);
    let reply = member.ok(client, &children2(5, "/p", false));
    let response: GetChildren2Response<'_> = reply.decode();
    assert_eq!(response.stat.num_children, 20);
    assert_eq!(names(response.children), names_wanted);
}

#[test]
fn errors_of_reads_carry_the_last_zxid() {
    let mut member = Member::default();
    let client = member.client();
    let zxid = member.ok(client, &create(1, "/a")).zxid;
    let reply = member.call(client, &get(2, "/nope", false));
    assert_eq!((reply.err, reply.zxid), (ErrorCode::NoNode.code(), zxid));
    assert!(reply.body.is_empty());
}

/// B34.
#[test]
fn a_multi_read_answers_each_operation_for_itself() {
    let mut member = Member::default();
    let client = member.client();
    member.ok(client, &create(1, "/a"));
    let hidden = Some(vec![acl(30, "world", "anyone")]);
    member.ok(client, &create_with(2, "/hidden", hidden, 0));
    let frame = multi(3, Op::MultiRead, |body| {
        for path in ["/a", "/nope", "/hidden"] {
            let record = GetDataRequest {
                path: Some(path.into()),
                watch: true,
            };
            multi::put_request(body, Op::GetData, &record);
        }
        let record = quenda_proto::records::GetChildrenRequest {
            path: Some("/a".into()),
            watch: true,
        };
        multi::put_request(body, Op::GetChildren, &record);
    });
    let reply = member.ok(client, &frame);
    assert_eq!(reply.zxid, member.tree.last_zxid());
    let mut expected = bytes::BytesMut::new();
    multi::put_result_header(&mut expected, Op::GetData);
    let single = member.ok(client, &get(4, "/a", false));
    expected.extend_from_slice(&single.body);
    multi::put_error(&mut expected, ErrorCode::NoNode);
    multi::put_error(&mut expected, ErrorCode::NoAuth);
    multi::put_result_header(&mut expected, Op::GetChildren);
    expected.extend_from_slice(&[0; 4]);
    multi::put_terminator(&mut expected);
    assert_eq!(reply.body, expected);
    assert_eq!(member.watch_count(), 0);
    let empty = member.ok(client, &multi(5, Op::MultiRead, |_| {}));
    assert_eq!(empty.body.len(), 9);
    let foreign = multi(6, Op::MultiRead, |body| {
        multi::put_request(body, Op::Delete, &delete_record("/a"));
    });
    member.expect(client, &foreign, ErrorCode::MarshallingError);
}

#[test]
fn ephemerals_are_found_by_a_plain_prefix() {
    let mut member = Member::default();
    let (client, other) = (member.client(), member.client());
    member.ok(client, &create(1, "/p"));
    member.ok(other, &create_ephemeral(1, "/p/other"));
    for path in ["/p/a", "/p/ab", "/q"] {
        member.ok(client, &create_ephemeral(2, path));
    }
    let cases: [(Option<&str>, &[&str]); 6] = [
        (None, &["/p/a", "/p/ab", "/q"]),
        (Some(""), &["/p/a", "/p/ab", "/q"]),
        (Some(" "), &["/p/a", "/p/ab", "/q"]),
        (Some("/"), &["/p/a", "/p/ab", "/q"]),
        (Some("/p/a"), &["/p/a", "/p/ab"]),
        (Some("/nope"), &[]),
    ];
    for (prefix, expected) in cases {
        let reply = member.ok(client, &get_ephemerals(3, prefix));
        let response: GetEphemeralsResponse<'_> = reply.decode();
        let expected = expected.iter().map(|path| (*path).to_owned()).collect();
        assert_eq!(names(response.ephemerals), expected, "{prefix:?}");
    }
}

fn identities(member: &mut Member, client: u64) -> BTreeSet<(String, String)> {
    let reply = member.ok(client, &who_am_i(1));
    let response: WhoAmIResponse<'_> = reply.decode();
    let text = |field: Option<std::borrow::Cow<'_, str>>| field.expect("no null").into_owned();
    response
        .client_info
        .expect("never null")
        .into_iter()
        .map(|info| (text(info.auth_scheme), text(info.user)))
        .collect()
}

fn pairs(list: &[(&str, &str)]) -> BTreeSet<(String, String)> {
    list.iter()
        .map(|(scheme, user)| ((*scheme).to_owned(), (*user).to_owned()))
        .collect()
}

#[test]
fn identities_are_added_and_shown_without_secrets() {
    let mut member = Member::new(Settings {
        super_digest: Some("super:D/InIHSb7yEEbrWz8b9l71RjZJU=".to_owned()),
        ..Settings::default()
    });
    let client = member.client();
    let mut expected = vec![("ip", "127.0.0.1")];
    assert_eq!(identities(&mut member, client), pairs(&expected));
    member.ok(client, &auth("ip", b"whatever"));
    assert_eq!(identities(&mut member, client), pairs(&expected));
    for (credential, user) in [("u:p", "u"), ("nocolon", "nocolon"), ("u:p", "u")] {
        member.ok(client, &auth("digest", credential.as_bytes()));
        expected.push(("digest", user));
        assert_eq!(identities(&mut member, client), pairs(&expected));
    }
    member.expect(client, &get_acl(1, "/nope"), ErrorCode::NoNode);
    member.expect(client, &set(2, "/zookeeper/config", b""), ErrorCode::NoAuth);
    member.ok(client, &auth("digest", b"super:test"));
    expected.extend([("digest", "super"), ("super", "")]);
    assert_eq!(identities(&mut member, client), pairs(&expected));
    member.ok(client, &set(3, "/zookeeper/config", b""));
}

#[test]
fn null_digests_and_a_disabled_scheme_are_refused() {
    let null = quenda_proto::records::AuthPacket {
        kind: 0,
        scheme: Some("digest".into()),
        auth: None,
    };
    let mut member = Member::default();
    let client = member.client();
    member.expect(client, &request(-4, Op::Auth, &null), ErrorCode::AuthFailed);
    let mut null = null;
    null.scheme = None;
    let client = member.client();
    member.expect(client, &request(-4, Op::Auth, &null), ErrorCode::AuthFailed);
    let mut member = Member::new(Settings {
        digest_enabled: false,
        ..Settings::default()
    });
    let client = member.client();
    member.expect(client, &auth("digest", b"u:p"), ErrorCode::AuthFailed);
}

#[test]
fn undecodable_auth_and_sasl_close_without_a_word() {
    for op in [Op::Auth, Op::Sasl] {
        let mut member = Member::default();
        let client = member.client();
        let replies = member.call_all(client, &raw(1, op.code(), &[0, 0, 0]));
        assert!(replies.is_empty());
        assert_eq!(member.wants_close(client), Some(CloseReason::AuthPacket));
    }
    let mut member = Member::default();
    let client = member.client();
    let reply = member.ok(client, &raw(1, Op::Sasl.code(), &[0; 4]));
    assert_eq!((reply.zxid, &reply.body[..]), (0, &[0xFF; 4][..]));
}

fn acl_ids(member: &mut Member, client: u64, path: &str) -> Vec<String> {
    let reply = member.ok(client, &get_acl(1, path));
    let response: GetAclResponse<'_> = reply.decode();
    let list = response.acl.expect("never null");
    list.into_iter()
        .map(|entry| entry.id.id.expect("no null").into_owned())
        .collect()
}

/// B67.
#[test]
fn hashes_are_shown_to_administrators_only() {
    let mut member = Member::default();
    let (owner, reader, nobody) = (member.client(), member.client(), member.client());
    member.call_all(owner, &auth("digest", b"u:p"));
    member.call_all(reader, &auth("digest", b"r:p"));
    let list = vec![
        acl(31, "auth", ""),
        acl(1, "digest", "r:DDUo8GVhjhVYAqLmOyRtZBvYyOE="),
        acl(1, "ip", "10.0.0.1"),
    ];
    member.ok(owner, &create(1, "/a"));
    member.ok(owner, &set_acl(2, "/a", list, -1));
    let full = acl_ids(&mut member, owner, "/a");
    assert_eq!(full[0], "u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ=");
    // Let the reader in by its real hash.
    let hash = member.connection(reader).identities()[1].id.to_string();
    let hash: &'static str = Box::leak(hash.into_boxed_str());
    let list = vec![
        acl(31, "auth", ""),
        acl(1, "digest", hash),
        acl(1, "ip", "10.0.0.1"),
    ];
    member.ok(owner, &set_acl(3, "/a", list, -1));
    let masked = acl_ids(&mut member, reader, "/a");
    assert_eq!(masked, ["u:x", "r:x", "10.0.0.1"]);
    member.expect(nobody, &get_acl(4, "/a"), ErrorCode::NoAuth);
}

/// B64.
#[test]
fn exists_checks_the_znode_itself() {
    let mut member = Member::default();
    let client = member.client();
    let hidden = Some(vec![acl(30, "world", "anyone")]);
    member.ok(client, &create_with(1, "/hidden", hidden, 0));
    member.expect(client, &exists(2, "/hidden", false), ErrorCode::NoAuth);
    member.expect(client, &exists(3, "/hidden/x", false), ErrorCode::NoNode);
    member.expect(client, &get(4, "/hidden", false), ErrorCode::NoAuth);
    member.expect(client, &children(5, "/hidden", false), ErrorCode::NoAuth);
    member.expect(
        client,
        &all_children_number(6, "/hidden"),
        ErrorCode::NoAuth,
    );
    let mut member = Member::new(Settings {
        skip_acl: true,
        ..Settings::default()
    });
    let client = member.client();
    let hidden = Some(vec![acl(0, "world", "anyone")]);
    member.ok(client, &create_with(1, "/hidden", hidden, 0));
    member.ok(client, &get(2, "/hidden", false));
    member.ok(client, &set(3, "/hidden", b"x"));
}

#[test]
fn statistics_follow_the_requests() {
    let mut member = Member::default();
    let client = member.client();
    let stats = member.connection(client).stats();
    assert_eq!(
        (stats.received, stats.sent, stats.last_op_name()),
        (1, 1, "SESS")
    );
    let opened = Some(member.tree.last_zxid());
    assert_eq!((stats.last_xid, stats.last_zxid), (Some(0), opened));
    member.send(client, &create(7, "/a"));
    member.now_ms += 30;
    member.apply();
    let stats = member.connection(client).stats();
    assert_eq!(
        (stats.received, stats.sent, stats.last_op_name()),
        (2, 2, "CREA")
    );
    assert_eq!((stats.last_xid, stats.last_latency_ms), (Some(7), 30));
    assert_eq!(stats.last_zxid, Some(member.tree.last_zxid()));
    assert_eq!(stats.established_ms, member.time_ms);
    member.replies(client);
    member.ok(client, &get(8, "/a", true));
    member.call_all(client, &set(9, "/a", b"x"));
    let stats = member.connection(client).stats();
    assert_eq!((stats.received, stats.sent), (4, 5));
    assert_eq!((stats.min_latency_ms, stats.max_latency_ms), (0, 30));
    assert_eq!(
        stats.avg_latency_ms(),
        7,
        "four: a session, and three requests"
    );
    let touched = member.connection(client).last_touch_ms();
    member.now_ms += 100;
    member.ok(client, &auth("ip", b""));
    assert_eq!(member.connection(client).last_touch_ms(), touched);
    member.ok(client, &keep_alive());
    assert_eq!(member.connection(client).last_touch_ms(), touched + 100);
}

/// Every request, cut at every byte and with bytes behind it: a reply or a close, never more.
#[test]
fn truncated_and_padded_requests_are_answered_or_end_the_connection() {
    let batch = multi(1, Op::Multi, |body| {
        multi::put_request(body, Op::Create, &create_record("/m", b"x", open(), 0));
        multi::put_request(body, Op::SetData, &set_record("/m", b"y", -1));
        multi::put_request(body, Op::Delete, &delete_record("/m"));
    });
    let reads = multi(1, Op::MultiRead, |body| {
        let record = GetDataRequest {
            path: Some("/a".into()),
            watch: false,
        };
        multi::put_request(body, Op::GetData, &record);
    });
    let frames = [
        create(1, "/b"),
        create_ttl(1, "/c", 5),
        delete(1, "/b"),
        exists(1, "/a", true),
        get(1, "/a", true),
        set(1, "/a", b"x"),
        get_acl(1, "/a"),
        set_acl(1, "/a", vec![acl(31, "world", "anyone")], -1),
        children(1, "/a", true),
        children2(1, "/a", true),
        sync(1, "/a"),
        ping(1),
        batch,
        reads,
        request(1, Op::Create2, &create_record("/d", b"", open(), 0)),
        request(1, Op::CreateContainer, &create_record("/e", b"", open(), 4)),
        raw(1, Op::Reconfig.code(), &[0xFF; 20]),
        raw(1, Op::DeleteContainer.code(), b"\0\0\0\x02/a"),
        check_watches(1, "/a", 3),
        remove_watches(1, "/a", 3),
        set_watches(0, &["/a"], &["/b"], &["/a"]),
        request(
            1,
            Op::SetWatches2,
            &quenda_proto::records::SetWatches2::default(),
        ),
        add_watch(1, "/a", 0),
        get_ephemerals(1, Some("/")),
        all_children_number(1, "/a"),
        who_am_i(1),
        auth("digest", b"u:p"),
        raw(1, Op::Sasl.code(), &[0; 4]),
        close_session(1),
        raw(1, 99, &[0; 8]),
    ];
    let mut member = Member::default();
    let setup = member.client();
    member.ok(setup, &create(1, "/a"));
    for frame in &frames {
        let payload = &frame[4..];
        let padded = [payload, &[0xAA; 9]].concat();
        let cuts = (0..=payload.len()).map(|end| payload[..end].to_vec());
        for cut in cuts.chain([padded]) {
            let client = member.client();
            let replies = member.call_all(client, &driver::framed(&cut));
            let answers = replies.iter().filter(|reply| !reply.is_event()).count();
            match member.wants_close(client) {
                Some(_) => assert!(answers <= 1, "{cut:x?}"),
                None => {
                    assert_eq!(answers, 1, "{cut:x?}");
                    member.call_all(client, &exists(77, "/", false));
                }
            }
            member.disconnect(client);
        }
    }
    assert_eq!(member.watch_count(), 0);
}
