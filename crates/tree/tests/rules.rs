//! The rules of single operations: precedence of errors, names, versions, metadata.

mod common;

use bytes::BytesMut;
use common::*;
use quenda_proto::ErrorCode::{
    self, BadArguments, BadVersion, InvalidAcl, MarshallingError, NoAuth, NoChildrenForEphemerals,
    NoNode, NodeExists, NotEmpty, Unimplemented,
};
use quenda_proto::Op;
use quenda_proto::jute::Encode;
use quenda_proto::records::{CreateRequest, SetDataRequest, Stat};
use quenda_tree::ChangeKind::{Created, DataChanged, Deleted};
use quenda_tree::command::Command;

const DONE: ErrorCode = ErrorCode::Ok;

fn me() -> Client {
    Client::new(SESSION)
}

fn create_code(member: &mut Member, path: &str, flags: i32) -> ErrorCode {
    member.create(&me(), path, flags).err().unwrap_or(DONE)
}

#[test]
fn built_in_znodes() {
    let member = Member::new();
    let rows = [
        ("/", -1, 0, 1, 31),
        ("/zookeeper", -2, 0, 2, 31),
        ("/zookeeper/quota", 0, 0, 0, 31),
        ("/zookeeper/config", 0, -1, 0, 1),
    ];
    for (path, cversion, aversion, num_children, perms) in rows {
        let expected = Stat {
            cversion,
            aversion,
            num_children,
            ..Stat::default()
        };
        assert_eq!(member.stat(path), expected, "{path}");
        assert_eq!(member.data(path), Some(&b""[..]), "{path}");
        let node = member.tree.get(path).expect(path);
        let list = member.tree.acl(node.acl());
        assert_eq!(list, [quenda_tree::AclEntry::new(perms, "world", "anyone")]);
    }
    assert_eq!(member.children("/zookeeper"), ["config", "quota"]);
    assert_eq!(member.tree.descendants("/"), Some(3));
    assert_eq!(member.tree.counts().znodes, 4);
}

#[test]
fn the_empty_path_reads_the_root_and_bad_syntax_is_absent() {
    let mut member = Member::new();
    member.must_create("/a");
    assert_eq!(member.stat(""), member.stat("/"));
    for path in [
        "a",
        "/a/",
        "//",
        "//a",
        "/nope",
        "/a//",
        "/a\0",
        "//zookeeper",
    ] {
        assert!(!member.has(path), "{path:?}");
    }
}

#[test]
fn create_names() {
    let mut member = Member::new();
    assert_eq!(create_code(&mut member, "/", 0), NodeExists);
    assert_eq!(create_code(&mut member, "a/b", 0), NoNode);
    assert_eq!(create_code(&mut member, "foo", 0), BadArguments);
    assert_eq!(create_code(&mut member, "", 0), BadArguments);
    assert_eq!(create_code(&mut member, "/a\0", 0), BadArguments);
    assert_eq!(create_code(&mut member, "/a/", 0), NoNode);
    member.must_create("/a");
    assert_eq!(create_code(&mut member, "/a", 0), NodeExists);
    for path in [
        "/a/",
        "/a/.",
        "/a/..",
        "//",
        "//x",
        "/\u{FFFD}",
        "/\u{E000}",
        "/\u{7F}",
    ] {
        assert_eq!(create_code(&mut member, path, 0), BadArguments, "{path:?}");
    }
    for path in ["/nope//x", "/a//x", "/a/../b", "/nope/\u{1F}"] {
        assert_eq!(create_code(&mut member, path, 0), NoNode, "{path:?}");
    }
    for path in ["/a/x y", "/a/...", "/a/.x", "/a/é"] {
        member.must_create(path);
    }
}

#[test]
fn sequence_suffixes() {
    let mut member = Member::new();
    assert_eq!(member.create(&me(), "/", 2).as_deref(), Ok("/0000000000"));
    member.must_create("/q");
    for number in 0..3 {
        member.must_create(&format!("/q/plain{number}"));
    }
    let rows = [
        ("/q/n-", 2, "/q/n-0000000003"),
        ("/q/", 2, "/q/0000000004"),
        ("/q/..", 3, "/q/..0000000005"),
        ("/q/.", 2, "/q/.0000000006"),
    ];
    for (path, flags, expected) in rows {
        assert_eq!(member.create(&me(), path, flags).as_deref(), Ok(expected));
    }
    assert_eq!(member.delete(&me(), "/q/.0000000006", -1), DONE);
    assert_eq!(create_code(&mut member, "/q/a/b", 2), NoNode);
    assert_eq!(create_code(&mut member, "/q/n\u{1}", 2), BadArguments);
    assert_eq!(
        member.create(&me(), "/q/n-", 2).as_deref(),
        Ok("/q/n-0000000007"),
        "deletes give no number back, failed creates burn none"
    );
}

#[test]
fn create_flags() {
    let mut member = Member::new();
    for flags in [-1, 5, 6, 7, i32::MAX] {
        assert_eq!(
            create_code(&mut member, "/x", flags),
            BadArguments,
            "{flags}"
        );
    }
    assert_eq!(create_code(&mut member, "/plain", 4), DONE);
    assert_eq!(
        member.tree.counts().containers,
        0,
        "type 1 makes no container"
    );
    for flags in 0..=4 {
        let path = format!("/c{flags}-");
        let request = create(&path, None, flags);
        let (created, stat) = member
            .create2(&me(), Op::CreateContainer, &request)
            .expect("a container");
        assert_eq!(
            created.len(),
            path.len() + if matches!(flags, 2 | 3) { 10 } else { 0 }
        );
        assert_eq!(stat.ephemeral_owner, 0);
    }
    assert_eq!(member.tree.counts().containers, 5);
    assert_eq!(member.tree.counts().ephemerals, 0);
    for flags in [5, 6] {
        let outcome = member.send(&me(), Op::CreateContainer, &create("/y", None, flags));
        assert_eq!(outcome.code, BadArguments);
    }
}

#[test]
fn times_to_live() {
    let mut member = Member::new();
    for ttl in [0, -1, 1 << 40, i64::MAX, i64::MIN] {
        let outcome = member.send(&me(), Op::CreateTtl, &create_ttl("/t", 5, ttl));
        assert_eq!(outcome.code, BadArguments, "{ttl}");
    }
    for flags in [0, 4, 7, -1] {
        for ttl in [-1, 5] {
            let outcome = member.send(&me(), Op::CreateTtl, &create_ttl("/t", flags, ttl));
            assert_eq!(outcome.code, BadArguments, "{flags} {ttl}");
        }
    }
    let longest = create_ttl("/t", 5, (1 << 40) - 1);
    let (path, stat) = member.create2(&me(), Op::CreateTtl, &longest).expect("ok");
    assert_eq!((path.as_str(), stat.ephemeral_owner), ("/t", 0));
    let sequential = create_ttl("/t", 6, 1);
    let (path, _) = member
        .create2(&me(), Op::CreateTtl, &sequential)
        .expect("ok");
    assert_eq!(path, "/t0000000001");
    assert_eq!(member.tree.counts().ttls, 2);
}

#[test]
fn create_precedence() {
    let mut member = Member::new();
    let no_acl = CreateRequest {
        acl: None,
        ..create("/nope/x", None, 0)
    };
    assert_eq!(member.send(&me(), Op::Create, &no_acl).code, InvalidAcl);
    let empty = create_acl("/nope/x", vec![]);
    assert_eq!(member.send(&me(), Op::Create, &empty).code, InvalidAcl);
    let bad_path_first = create_acl("nope", vec![]);
    assert_eq!(
        member.send(&me(), Op::Create, &bad_path_first).code,
        BadArguments
    );
    let null_path = CreateRequest {
        path: None,
        ..create("", None, 0)
    };
    assert_eq!(
        member.send(&me(), Op::Create, &null_path).code,
        MarshallingError
    );

    let read_only = create_acl("/ro", vec![acl(1, "world", "anyone")]);
    assert_eq!(member.send(&me(), Op::Create, &read_only).code, DONE);
    assert_eq!(
        create_code(&mut member, "/ro/..", 0),
        NoAuth,
        "before the name"
    );
    assert_eq!(create_code(&mut member, "/ro/x", 0), NoAuth);

    assert_eq!(create_code(&mut member, "/e", 1), DONE);
    assert_eq!(create_code(&mut member, "/e/x", 0), NoChildrenForEphemerals);
    assert_eq!(create_code(&mut member, "/e/..", 0), BadArguments);
    assert_eq!(create_code(&mut member, "/nope//x", 0), NoNode);
}

#[test]
fn delete_precedence() {
    let mut member = Member::new();
    for path in [
        "/",
        "/zookeeper",
        "/zookeeper/quota",
        "/zookeeper/config",
        "x",
        "/a\0",
        "",
    ] {
        assert_eq!(member.delete(&me(), path, -1), BadArguments, "{path:?}");
    }
    assert_eq!(member.delete(&me(), "/nope/x", -1), NoNode);
    assert_eq!(member.delete(&me(), "/nope", -1), NoNode);
    assert_eq!(member.delete(&me(), "//zookeeper", -1), NoNode);
    member.must_create("/p");
    member.must_create("/p/c");
    assert_eq!(member.delete(&me(), "/p/", -1), NoNode);
    assert_eq!(
        member.delete(&me(), "/p", 9),
        BadVersion,
        "before the children"
    );
    assert_eq!(member.delete(&me(), "/p", 0), NotEmpty);
    let closed = create_acl("/closed", vec![acl(1, "world", "anyone")]);
    assert_eq!(member.send(&me(), Op::Create, &closed).code, DONE);
    assert_eq!(member.delete(&me(), "/closed/nope", -1), NoAuth);
    assert_eq!(
        member.delete(&me(), "/closed", -1),
        DONE,
        "the parent decides"
    );
    assert_eq!(member.delete(&me(), "/p/c", 0), DONE);
    assert_eq!(member.delete(&me(), "/p", 0), DONE);
    assert!(!member.has("/p"));
}

#[test]
fn set_data_rules() {
    let mut member = Member::new();
    assert!(member.set(&me(), "/", b"x", -1).is_ok());
    for path in ["", "/a/", "a", "/zookeeper/", "//"] {
        assert_eq!(
            member.set(&me(), path, b"", -1),
            Err(BadArguments),
            "{path:?}"
        );
    }
    assert_eq!(member.set(&me(), "/nope", b"", -1), Err(NoNode));
    assert_eq!(member.set(&me(), "/zookeeper/config", b"", -1), Err(NoAuth));
    let root = me().with("super", "");
    assert!(member.set(&root, "/zookeeper/config", b"text", -1).is_ok());
    member.must_create("/a");
    for version in 0..2 {
        let stat = member.set(&me(), "/a", b"same", version).expect("a stat");
        assert_eq!((stat.version, stat.data_length), (version + 1, 4));
        assert_eq!(stat, member.stat("/a"));
    }
    assert_eq!(member.set(&me(), "/a", b"", -2), Err(BadVersion));
    assert_eq!(member.set(&me(), "/a", b"", 1), Err(BadVersion));
    let null = SetDataRequest {
        data: None,
        ..set("/a", b"", 2)
    };
    assert_eq!(member.send(&me(), Op::SetData, &null).code, DONE);
    assert_eq!(member.data("/a"), None);
    assert_eq!(member.stat("/a").data_length, 0);
}

#[test]
fn null_data_stays_null() {
    let mut member = Member::new();
    let outcome = member.send(&me(), Op::Create, &create("/null", None, 0));
    assert_eq!(outcome.code, DONE);
    member.must_create("/empty");
    assert_eq!(member.data("/null"), None);
    assert_eq!(member.data("/empty"), Some(&b""[..]));
    let loaded = Store::full(&member.tree).load();
    assert_eq!(loaded.get("/null").and_then(|node| node.data()), None);
    assert_eq!(
        loaded.get("/empty").and_then(|node| node.data()),
        Some(&b""[..])
    );
}

#[test]
fn set_acl_rules() {
    let mut member = Member::new();
    member.must_create("/a");
    let before = member.stat("/a");
    let list = vec![acl(31, "digest", "u:h"), acl(1, "world", "anyone")];
    let owner = me().with("digest", "u:h");
    let stat = member
        .set_acl(&me(), "/a", list.clone(), 0)
        .expect("a stat");
    let expected = Stat {
        aversion: 1,
        ..before
    };
    assert_eq!(stat, expected, "only aversion moves");
    assert_eq!(member.set_acl(&me(), "/a", vec![], 9), Err(InvalidAcl));
    assert_eq!(member.set_acl(&me(), "/nope", vec![], 9), Err(InvalidAcl));
    assert_eq!(member.set_acl(&me(), "/nope", list.clone(), 9), Err(NoNode));
    assert_eq!(member.set_acl(&me(), "/a/", vec![], 9), Err(BadArguments));
    assert_eq!(member.set_acl(&me(), "/a", list.clone(), 9), Err(NoAuth));
    assert_eq!(
        member.set_acl(&owner, "/a", list.clone(), 9),
        Err(BadVersion)
    );
    let stat = member
        .set_acl(&owner, "/a", list.clone(), 1)
        .expect("a stat");
    assert_eq!(stat.aversion, 2);
    let root = me().with("super", "");
    let stat = member.set_acl(&root, "/zookeeper/config", list, -1);
    assert_eq!(stat.map(|stat| stat.aversion), Ok(0));
}

#[test]
fn parents_count_creates_and_deletes_only() {
    let mut member = Member::new();
    member.must_create("/p");
    let created = member.stat("/p");
    assert_eq!(created.pzxid, created.czxid);
    for name in ["/p/a", "/p/b", "/p/c"] {
        member.must_create(name);
    }
    member.set(&me(), "/p/a", b"x", -1).expect("a stat");
    member
        .set_acl(&me(), "/p/a", open_acl(), -1)
        .expect("a stat");
    let stat = member.stat("/p");
    assert_eq!((stat.cversion, stat.num_children), (3, 3));
    assert_eq!(stat.pzxid, member.stat("/p/c").czxid);
    assert_eq!(member.delete(&me(), "/p/b", -1), DONE);
    let expected = Stat {
        cversion: 4,
        num_children: 2,
        pzxid: member.tree.last_zxid(),
        ..created
    };
    assert_eq!(member.stat("/p"), expected);
}

#[test]
fn a_failed_write_takes_a_zxid_and_changes_nothing() {
    let mut member = Member::new();
    member.must_create("/a");
    let digest = member.tree.digest();
    let before = member.tree.last_zxid();
    assert_eq!(member.delete(&me(), "/nope", -1), NoNode);
    assert_eq!(
        member.raw(&me(), Op::Create.code(), b"junk").code,
        MarshallingError
    );
    assert_eq!(member.raw(&me(), 99, b"").code, Unimplemented);
    for op in [
        Op::Check,
        Op::DeleteContainer,
        Op::CreateSession,
        Op::Reconfig,
        Op::GetData,
    ] {
        let outcome = member.raw(&me(), op.code(), b"");
        assert_eq!((outcome.code, outcome.body.len()), (Unimplemented, 0));
    }
    assert_eq!(member.tree.last_zxid(), before + 8);
    assert_eq!(member.tree.digest(), digest);
}

#[test]
fn trailing_bytes_are_ignored_and_truncation_is_not() {
    let mut member = Member::new();
    let mut body = BytesMut::new();
    create("/a", Some(b"data"), 0).encode(&mut body);
    for end in 0..body.len() {
        let outcome = member.raw(&me(), Op::Create.code(), &body[..end]);
        assert_eq!(outcome.code, MarshallingError, "{end}");
        assert!(outcome.body.is_empty());
    }
    body.extend_from_slice(b"more");
    assert_eq!(member.raw(&me(), Op::Create.code(), &body).code, DONE);
}

#[test]
fn changes_come_in_order_with_the_lists_that_filter_them() {
    let mut member = Member::new();
    member.must_create("/p");
    let private = vec![acl(31, "digest", "u:h")];
    let created = member.send(&me(), Op::Create, &create_acl("/p/c", private.clone()));
    assert_eq!(created.events(), [(Created, "/p/c")]);
    let change = &created.changes[0];
    assert_eq!(change.zxid, created.zxid);
    assert_eq!(&*change.acl[0].scheme, "digest");
    assert_eq!(&*change.parent_acl[0].scheme, "world");
    let owner = me().with("digest", "u:h");
    let changed = member.send(&owner, Op::SetData, &set("/p/c", b"x", -1));
    assert_eq!(changed.events(), [(DataChanged, "/p/c")]);
    let listed = member.set_acl(&owner, "/p/c", private, -1);
    assert!(listed.is_ok());
    let deleted = member.send(&me(), Op::Delete, &delete("/p/c", -1));
    assert_eq!(deleted.events(), [(Deleted, "/p/c")]);
    assert_eq!(
        &*deleted.changes[0].acl[0].scheme, "digest",
        "the list it had"
    );
    let root = member.send(&me(), Op::SetData, &set("/", b"x", -1));
    assert_eq!(root.events(), [(DataChanged, "/")]);
    assert_eq!(root.changes[0].acl, root.changes[0].parent_acl);
}

#[test]
fn permissions() {
    let mut member = Member::new();
    let list = vec![acl(1, "world", "anyone"), acl(4 | 8, "ip", "127.0.0.0/8")];
    assert_eq!(
        member.send(&me(), Op::Create, &create_acl("/l", list)).code,
        DONE
    );
    let local = me();
    let mut far = me();
    far.identities = vec![quenda_tree::Identity::new("ip", "10.0.0.1")];
    assert_eq!(member.create(&far, "/l/x", 0), Err(NoAuth));
    assert!(member.create(&local, "/l/x", 0).is_ok());
    assert_eq!(member.set(&local, "/l", b"", -1), Err(NoAuth));
    assert_eq!(member.delete(&far, "/l/x", -1), NoAuth);
    let mut skipping = far.clone();
    skipping.switches.skip_acl = true;
    assert!(member.set(&skipping, "/l", b"", -1).is_ok());
    let invalid = create_acl("/v", vec![acl(1, "nope", "")]);
    assert_eq!(
        member.send(&skipping, Op::Create, &invalid).code,
        InvalidAcl
    );
    assert_eq!(member.delete(&far.with("super", ""), "/l/x", -1), DONE);
    let node = member.tree.get("/l").expect("/l");
    assert!(member.tree.allows(node.acl(), 1 | 16, &[]));
    assert!(!member.tree.allows(node.acl(), 16, &local.identities));
}

#[test]
fn auth_entries_become_identities() {
    let mut member = Member::new();
    let request = create_acl("/a", vec![acl(31, "auth", "")]);
    assert_eq!(member.send(&me(), Op::Create, &request).code, InvalidAcl);
    let two = me().with("digest", "a:1").with("digest", "b:2");
    assert_eq!(member.send(&two, Op::Create, &request).code, DONE);
    let node = member.tree.get("/a").expect("/a");
    let ids: Vec<_> = member
        .tree
        .acl(node.acl())
        .iter()
        .map(|entry| &*entry.id)
        .collect();
    assert_eq!(ids, ["a:1", "b:2"]);
}

#[test]
fn a_null_id_in_a_list_is_malformed() {
    let mut member = Member::new();
    let mut entry = acl(31, "digest", "");
    entry.id.id = None;
    let outcome = member.send(&me(), Op::Create, &create_acl("/a", vec![entry]));
    assert_eq!(outcome.code, MarshallingError);
}

#[test]
fn epochs_follow_terms() {
    let mut member = Member::new();
    member.term = 5;
    member.must_create("/a");
    assert_eq!(member.stat("/a").czxid, 0x5_0000_0001);
    member.must_create("/b");
    assert_eq!(member.stat("/b").czxid, 0x5_0000_0002);
    let before = member.tree.last_zxid();
    member.apply(&Command::Found {
        cluster: 1,
        secret: [0; 32],
        config: "",
    });
    assert_eq!(member.tree.last_zxid(), before);
    assert_eq!(member.tree.cluster(), Some(77), "only the first counts");
}

#[test]
fn a_million_characters_deep() {
    let mut member = Member::new();
    let mut path = String::new();
    for depth in 0..3_000 {
        path.push_str("/d");
        let client = me();
        let flags = i32::from(depth == 2_999);
        assert_eq!(member.create(&client, &path, flags).as_deref(), Ok(&*path));
    }
    assert_eq!(member.tree.descendants("/d"), Some(2_999));
    assert_eq!(
        member.tree.ephemerals(SESSION).collect::<Vec<_>>(),
        [path.clone()]
    );
    let loaded = Store::full(&member.tree).load();
    assert!(loaded.get(&path).is_some());
    assert_eq!(loaded.recompute_digest(), member.tree.digest());
    let hostile = format!("/{}", "a/".repeat(500_000));
    assert_eq!(create_code(&mut member, &hostile, 0), NoNode);
}
