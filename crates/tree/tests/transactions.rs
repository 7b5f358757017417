//! multi: one zxid, results, all or nothing.

mod common;

use common::*;
use quenda_proto::records::{CreateRequest, GetDataRequest};
use quenda_proto::{ErrorCode, Op};
use quenda_tree::ChangeKind::{Created, DataChanged, Deleted};

fn me() -> Client {
    Client::new(SESSION)
}

fn errors(codes: &[ErrorCode]) -> Vec<OpResult> {
    codes
        .iter()
        .map(|code| OpResult::Error(code.code()))
        .collect()
}

/// Everything about a tree that a failed multi must leave alone.
fn print_of(member: &Member) -> (u64, Store) {
    let mut store = Store::full(&member.tree);
    store
        .0
        .retain(|(table, _), _| *table != quenda_tree::Table::Meta);
    (member.tree.digest(), store)
}

#[test]
fn a_failure_leaves_nothing_behind() {
    let mut member = Member::new();
    for path in ["/a", "/b", "/b/c"] {
        member.must_create(path);
    }
    let before = print_of(&member);
    let zxid = member.tree.last_zxid();
    let multi = Multi::new()
        .create("/new", 0)
        .create("/new/seq-", 2)
        .create("/e", 1)
        .delete("/b/c", -1)
        .create("/b/c", 0)
        .create("/b/d", 0)
        .delete("/b/d", 0)
        .set("/a", b"text", 0)
        .set("/a", b"", 1)
        .delete("/a", 2)
        .delete("/nope", -1)
        .check("/a", -1)
        .set("/a", b"x", -1);
    let outcome = member.multi(&me(), &multi);
    assert_eq!((outcome.code, outcome.zxid), (ErrorCode::Ok, zxid + 1));
    let mut expected = vec![ErrorCode::Ok; 10];
    expected.push(ErrorCode::NoNode);
    expected.extend([ErrorCode::RuntimeInconsistency; 2]);
    assert_eq!(outcome.results(), errors(&expected));
    assert!(outcome.changes.is_empty(), "a failed multi fires nothing");
    assert_eq!(print_of(&member), before);
    assert_eq!(member.tree.ephemerals(SESSION).count(), 0);
    let next = member.create(&me(), "/b/s-", 2);
    assert_eq!(
        next.as_deref(),
        Ok("/b/s-0000000001"),
        "no number was burnt"
    );
}

#[test]
fn operations_see_the_earlier_ones() {
    let mut member = Member::new();
    let multi = Multi::new()
        .create("/t", 0)
        .create("/t/u", 0)
        .set("/t/u", b"ab", 0)
        .check("/t/u", 1)
        .delete("/t/u", 1)
        .delete("/t", -1);
    let outcome = member.multi(&me(), &multi);
    let results = outcome.results();
    assert_eq!(results[0], OpResult::Created("/t".to_string()));
    let OpResult::Set(stat) = &results[2] else {
        panic!("{results:?}")
    };
    assert_eq!(
        (stat.version, stat.data_length, stat.mzxid),
        (1, 2, outcome.zxid)
    );
    assert_eq!(
        results[3..],
        [OpResult::Checked, OpResult::Deleted, OpResult::Deleted]
    );
    assert_eq!(
        outcome.events(),
        [
            (Created, "/t"),
            (Created, "/t/u"),
            (DataChanged, "/t/u"),
            (Deleted, "/t/u"),
            (Deleted, "/t"),
        ]
    );
    assert!(
        outcome
            .changes
            .iter()
            .all(|change| change.zxid == outcome.zxid)
    );
    assert!(!member.has("/t"));
}

#[test]
fn an_empty_multi_takes_a_zxid() {
    let mut member = Member::new();
    let before = member.tree.last_zxid();
    let outcome = member.multi(&me(), &Multi::new());
    assert_eq!((outcome.zxid, outcome.results()), (before + 1, vec![]));
}

#[test]
fn an_error_of_the_whole_request() {
    let mut member = Member::new();
    let foreign = Multi::new()
        .create("/a", 0)
        .op(Op::GetData, &GetDataRequest::default());
    let bad_flags = Multi::new().create("/a", 0).create("/b", 7);
    let ttl_flags = Multi::new().create("/a", 0).create("/b", 5);
    let null_path = CreateRequest {
        path: None,
        ..create("", None, 0)
    };
    let null_path = Multi::new().create("/a", 0).op(Op::Create, &null_path);
    let null_acl = CreateRequest {
        acl: None,
        ..create("/b", None, 0)
    };
    let null_acl = Multi::new().create("/a", 0).op(Op::Create, &null_acl);
    for multi in [foreign, bad_flags, ttl_flags, null_path, null_acl] {
        let before = member.tree.last_zxid();
        let outcome = member.multi(&me(), &multi);
        assert_eq!(outcome.code, ErrorCode::MarshallingError);
        assert!(outcome.body.is_empty() && outcome.changes.is_empty());
        assert_eq!(outcome.zxid, before + 1);
        assert!(!member.has("/a"));
    }
    let no_terminator = Multi::new().create("/a", 0).0;
    let outcome = member.raw(&me(), Op::Multi.code(), &no_terminator);
    assert_eq!(outcome.code, ErrorCode::MarshallingError);
}

#[test]
fn failing_operations_answer_their_code() {
    let mut member = Member::new();
    member.must_create("/a");
    let empty_acl = create_acl("/b", vec![]);
    let cases = [
        (
            Multi::new().create("/e", 1).create("/e/x", 0),
            vec![ErrorCode::Ok, ErrorCode::NoChildrenForEphemerals],
        ),
        (
            Multi::new().check("/a", 9).set("/a", b"", 9),
            vec![ErrorCode::BadVersion, ErrorCode::RuntimeInconsistency],
        ),
        (
            Multi::new().op(Op::Create, &empty_acl),
            vec![ErrorCode::InvalidAcl],
        ),
        (Multi::new().check("/nope", -1), vec![ErrorCode::NoNode]),
        (Multi::new().check("/a/", -1), vec![ErrorCode::BadArguments]),
        (
            Multi::new().op(Op::CreateTtl, &create_ttl("/t", 5, 0)),
            vec![ErrorCode::BadArguments],
        ),
        (
            Multi::new().op(Op::CreateTtl, &create_ttl("/t", 9, 5)),
            vec![ErrorCode::BadArguments],
        ),
    ];
    for (multi, codes) in cases {
        assert_eq!(member.multi(&me(), &multi).results(), errors(&codes));
    }
}

#[test]
fn the_kind_of_znode_follows_the_flags() {
    let mut member = Member::new();
    let multi = Multi::new()
        .create("/plain", 0)
        .create("/container", 4)
        .op(Op::Create2, &create("/two", None, 0))
        .op(Op::CreateContainer, &create("/c", None, 1))
        .op(Op::CreateContainer, &create("/c-", None, 2))
        .op(Op::CreateTtl, &create_ttl("/ttl", 5, 1_000))
        .op(Op::CreateTtl, &create_ttl("/like-create", 0, -1))
        .op(Op::CreateTtl, &create_ttl("/like-container", 4, 7))
        .op(Op::CreateTtl, &create_ttl("/like-ephemeral", 1, 7))
        .create("/s-", 2)
        .create("/s-", 3);
    let outcome = member.multi(&me(), &multi);
    let shape: Vec<_> = outcome
        .results()
        .into_iter()
        .map(|result| match result {
            OpResult::Created(path) => (path, false),
            OpResult::Created2(path, stat) => {
                assert_eq!(stat.czxid, outcome.zxid);
                (path, true)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [
        ("/plain", false),
        ("/container", true),
        ("/two", true),
        ("/c", true),
        ("/c-0000000004", true),
        ("/ttl", true),
        ("/like-create", false),
        ("/like-container", true),
        ("/like-ephemeral", false),
        ("/s-0000000009", false),
        ("/s-0000000010", false),
    ];
    let expected = expected.map(|(path, with_stat)| (path.to_string(), with_stat));
    assert_eq!(shape, expected);
    let counts = member.tree.counts();
    assert_eq!(
        (counts.containers, counts.ttls, counts.ephemerals),
        (4, 1, 2)
    );
}

#[test]
fn a_stat_in_the_results_is_the_one_after_its_operation() {
    let mut member = Member::new();
    let multi = Multi::new()
        .op(Op::Create2, &create("/a", Some(b"123"), 0))
        .set("/a", b"4", 0)
        .create("/a/b", 0);
    let results = member.multi(&me(), &multi).results();
    let OpResult::Created2(_, stat) = &results[0] else {
        panic!("{results:?}")
    };
    assert_eq!(
        (stat.version, stat.data_length, stat.num_children),
        (0, 3, 0)
    );
    assert_eq!(member.stat("/a").num_children, 1);
}

#[test]
fn twenty_thousand_operations() {
    let mut member = Member::new();
    let mut multi = Multi::new().create("/q", 0);
    for _ in 0..20_000 {
        multi = multi.create("/q/n-", 2);
    }
    let failing = multi.clone().check("/nope", -1);
    let before = print_of(&member);
    assert_eq!(member.multi(&me(), &failing).results().len(), 20_002);
    assert_eq!(print_of(&member), before);
    assert_eq!(member.multi(&me(), &multi).results().len(), 20_001);
    assert_eq!(member.tree.descendants("/q"), Some(20_000));
}

#[test]
fn a_session_that_is_gone_fails_the_whole() {
    let mut member = Member::new();
    let outcome = member.multi(&Client::new(OTHER), &Multi::new().create("/a", 0));
    assert_eq!(outcome.code, ErrorCode::SessionExpired);
    assert!(outcome.body.is_empty());
}
