//! Quotas.

mod common;

use common::*;
use quenda_proto::{ErrorCode, Op};

fn me() -> Client {
    Client::new(SESSION)
}

const STATS: &str = "/zookeeper/quota/q/zookeeper_stats";

/// `/q` with a child of 3 bytes, and a quota on it.
fn with_quota(limits: &str) -> Member {
    let mut member = Member::new();
    member.must_create_with("/q", b"ab");
    member.must_create_with("/q/x", b"123");
    member.must_create("/zookeeper/quota/q");
    member.must_create_with("/zookeeper/quota/q/zookeeper_limits", limits.as_bytes());
    member.must_create_with(STATS, b"");
    member
}

#[test]
fn stats_are_filled_in_and_kept_silently() {
    let mut member = with_quota("count=10,bytes=100");
    assert_eq!(member.text(STATS), "count=2,bytes=5");
    let before = member.stat(STATS);
    assert_eq!(before.data_length, 15);
    let outcome = member.send(&me(), Op::Create, &create("/q/y", Some(b"7 bytes"), 0));
    assert_eq!(outcome.changes.len(), 1, "no event for the stats");
    assert_eq!(member.text(STATS), "count=3,bytes=12");
    let after = member.stat(STATS);
    assert_eq!(
        (after.version, after.mzxid, after.mtime),
        (before.version, before.mzxid, before.mtime)
    );
    assert_eq!(after.data_length, 16);
    member.set(&me(), "/q", b"", -1).expect("a stat");
    assert_eq!(member.text(STATS), "count=3,bytes=10");
    assert_eq!(member.delete(&me(), "/q/y", -1), ErrorCode::Ok);
    assert_eq!(member.text(STATS), "count=2,bytes=3");
    member.create(&me(), "/q/e", 1).expect("a path");
    assert_eq!(member.text(STATS), "count=3,bytes=3");
    member.send(&me(), Op::CloseSession, &0i32);
    assert_eq!(member.text(STATS), "count=2,bytes=3");
    assert_eq!(member.tree.recompute_digest(), member.tree.digest());
}

#[test]
fn without_limits_or_elsewhere_nothing_is_charged() {
    let mut member = with_quota("count=10,bytes=100");
    member.must_create("/qq");
    member.must_create("/elsewhere");
    assert_eq!(member.text(STATS), "count=2,bytes=5");
    let limits = "/zookeeper/quota/q/zookeeper_limits";
    assert_eq!(member.delete(&me(), limits, -1), ErrorCode::Ok);
    member.must_create("/q/z");
    assert_eq!(member.text(STATS), "count=2,bytes=5");
}

#[test]
fn only_the_deepest_quota_counts() {
    let mut member = with_quota("count=10,bytes=100");
    member.must_create("/zookeeper/quota/q/x");
    member.must_create_with("/zookeeper/quota/q/x/zookeeper_limits", b"count=5,bytes=-1");
    let inner = "/zookeeper/quota/q/x/zookeeper_stats";
    member.must_create_with(inner, b"");
    assert_eq!(member.text(inner), "count=1,bytes=3");
    member.must_create_with("/q/x/deep", b"1234");
    assert_eq!(member.text(inner), "count=2,bytes=7");
    assert_eq!(member.text(STATS), "count=2,bytes=5");
}

#[test]
fn hard_limits_refuse_if_enforced() {
    let mut member = with_quota("count=1,bytes=1=;byteHardLimit=8;countHardLimit=3");
    let strict = me().enforcing_quotas();
    let big = create("/q/big", Some(b"1234"), 0);
    assert_eq!(
        member.send(&strict, Op::Create, &big).code,
        ErrorCode::QuotaExceeded
    );
    assert!(member.create(&strict, "/q/a", 0).is_ok());
    assert_eq!(
        member.create(&strict, "/q/b", 0),
        Err(ErrorCode::QuotaExceeded)
    );
    assert_eq!(
        member.create(&strict, "/q/a", 0),
        Err(ErrorCode::NodeExists),
        "comes first"
    );
    assert!(member.create(&me(), "/q/b", 0).is_ok(), "not enforced");
    assert_eq!(member.text(STATS), "count=4,bytes=5");
    let too_long = member.set(&strict, "/q/x", b"1234567", 9);
    assert_eq!(
        too_long,
        Err(ErrorCode::QuotaExceeded),
        "before the version"
    );
    assert!(member.set(&strict, "/q/x", b"abc", -1).is_ok(), "no growth");
    assert!(member.set(&me(), "/q/x", b"0123456789", -1).is_ok());
    let shrinking = member.set(&strict, "/q/x", b"012345678", -1);
    assert_eq!(
        shrinking,
        Err(ErrorCode::QuotaExceeded),
        "still over the limit"
    );
    assert!(member.set(&strict, "/q/x", b"", -1).is_ok());
}

#[test]
fn a_refusal_names_the_znode() {
    let mut member = with_quota("count=-1,bytes=-1=;countHardLimit=3");
    let strict = me().enforcing_quotas();
    let two = Multi::new().create("/q/a", 0).create("/q/b", 2);
    let outcome = member.multi(&strict, &two);
    assert_eq!(outcome.over_quota.as_deref(), Some("/q/b0000000002"));
    let outcome = member.send(&strict, Op::Create, &create("/q/c", None, 0));
    assert_eq!(
        (outcome.code, outcome.over_quota.as_deref()),
        (ErrorCode::Ok, None)
    );
    let outcome = member.send(&strict, Op::Create, &create("/q/d", None, 0));
    assert_eq!(outcome.over_quota.as_deref(), Some("/q/d"));
}

#[test]
fn soft_limits_refuse_nothing() {
    let mut member = with_quota("count=1,bytes=1");
    let strict = me().enforcing_quotas();
    assert!(member.create(&strict, "/q/a", 0).is_ok());
}

#[test]
fn texts_that_cannot_be_read_are_no_quota() {
    let mut member = with_quota("count=zero");
    let strict = me().enforcing_quotas();
    member.set(&strict, STATS, b"rubbish", -1).expect("a stat");
    assert!(member.create(&strict, "/q/a", 0).is_ok());
    assert_eq!(member.text(STATS), "rubbish");
}

#[test]
fn the_root_has_no_quota() {
    let mut member = Member::new();
    let strict = me().enforcing_quotas();
    let limits = "count=0,bytes=0=;byteHardLimit=0;countHardLimit=0";
    member.must_create_with("/zookeeper/quota/zookeeper_limits", limits.as_bytes());
    member.must_create_with("/zookeeper/quota/zookeeper_stats", b"plain");
    assert!(member.create(&strict, "/a", 0).is_ok());
    assert_eq!(member.text("/zookeeper/quota/zookeeper_stats"), "plain");
}

#[test]
fn a_failed_multi_takes_its_charges_back() {
    let mut member = with_quota("count=10,bytes=100");
    let digest = member.tree.digest();
    let multi = Multi::new()
        .create("/q/a", 0)
        .set("/q/x", b"123456", -1)
        .delete("/zookeeper/quota/q/zookeeper_limits", -1)
        .check("/nope", -1);
    member.multi(&me(), &multi);
    assert_eq!(member.text(STATS), "count=2,bytes=5");
    assert_eq!(member.tree.digest(), digest);
}
