//! Writes that are refused before they are proposed (`enableEagerACLCheck`).

mod driver;

use driver::{Member, acl, requests::*};
use quenda_frontend::Settings;
use quenda_proto::ErrorCode;

/// A member with the znode `/private` that only its owner may do anything with, the owner, and somebody else.
fn member(eager_acl_check: bool) -> (Member, u64, u64) {
    let mut member = Member::new(Settings {
        eager_acl_check,
        ..Settings::default()
    });
    let (owner, client) = (member.client(), member.client());
    member.call_all(owner, &auth("digest", b"u:p"));
    let private = Some(vec![acl(31, "auth", "")]);
    member.ok(owner, &create_with(1, "/private", private, 0));
    member.ok(owner, &create(2, "/private/child"));
    (member, owner, client)
}

fn forbidden() -> [Vec<u8>; 4] {
    [
        create(1, "/private/other"),
        delete(1, "/private/child"),
        set(1, "/private", b"x"),
        set_acl(1, "/private", vec![acl(31, "world", "anyone")], -1),
    ]
}

#[test]
fn what_is_forbidden_is_refused_at_once_and_not_proposed() {
    let (mut member, owner, client) = member(true);
    let zxid = member.tree.last_zxid();
    for frame in forbidden() {
        member.send(client, &frame);
        let replies = member.replies(client);
        assert_eq!(replies.len(), 1, "nothing was applied");
        assert_eq!(replies[0].err, ErrorCode::NoAuth.code());
    }
    member.apply();
    assert_eq!(member.tree.last_zxid(), zxid, "nothing was proposed");
    assert!(!member.refused.is_empty(), "the audit log has them");
    // Whoever may, and what is not there, goes the usual way.
    member.ok(owner, &set(3, "/private", b"x"));
    member.expect(client, &set(2, "/none", b"x"), ErrorCode::NoNode);
}

#[test]
fn a_write_under_way_leaves_the_verdict_to_its_turn() {
    let (mut member, owner, _) = member(true);
    let mine = Some(vec![acl(31, "digest", "u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ=")]);
    let client = member.client();
    let frames = [
        create_with(1, "/mine", Some(vec![acl(1, "world", "anyone")]), 0),
        set(2, "/mine", b"x"),
    ];
    member.send(client, &frames.concat());
    assert!(member.replies(client).is_empty(), "both were proposed");
    member.apply();
    let errors: Vec<i32> = member.replies(client).iter().map(|one| one.err).collect();
    assert_eq!(errors, [0, ErrorCode::NoAuth.code()]);
    // The list that a client is about to change does not count for what it sends behind that.
    let frames = [
        set_acl(3, "/private", vec![acl(31, "world", "anyone")], -1),
        create_with(4, "/private/open", mine, 0),
    ];
    let replies = member.call_all(owner, &frames.concat());
    assert!(replies.iter().all(|reply| reply.err == 0), "{replies:?}");
}

#[test]
fn without_it_a_forbidden_write_is_applied_like_any_other() {
    let (mut member, _, client) = member(false);
    let zxid = member.tree.last_zxid();
    for frame in forbidden() {
        member.send(client, &frame);
        assert!(member.replies(client).is_empty());
        member.apply();
        assert_eq!(member.replies(client)[0].err, ErrorCode::NoAuth.code());
    }
    assert!(member.tree.last_zxid() > zxid);
}
