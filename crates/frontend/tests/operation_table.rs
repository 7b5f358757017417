//! The operation table against what a member does: permissions and effects on watches.

mod driver;

use driver::{Member, acl, request, requests::*};
use quenda_proto::op::{Needs, WatchEffect};
use quenda_proto::records::GetAllChildrenNumberRequest;
use quenda_proto::{ErrorCode, Op};

/// The request of an operation that is about `/p` or one of its children; `None` where the table says
/// nothing that depends on one znode.
fn about_p(op: Op) -> Option<Vec<u8>> {
    let new = |op, flags| request(9, op, &create_record("/p/new", b"", open(), flags));
    match op {
        Op::Create => Some(new(Op::Create, 0)),
        Op::Create2 => Some(new(Op::Create2, 0)),
        Op::CreateContainer => Some(new(Op::CreateContainer, 4)),
        Op::CreateTtl => Some(create_ttl(9, "/p/new", 1000)),
        Op::Delete => Some(delete(9, "/p/child")),
        Op::SetData => Some(set(9, "/p", b"x")),
        Op::SetAcl => Some(set_acl(9, "/p", vec![acl(31, "world", "anyone")], -1)),
        Op::Exists => Some(exists(9, "/p", true)),
        Op::GetData => Some(get(9, "/p", true)),
        Op::GetAcl => Some(get_acl(9, "/p")),
        Op::GetChildren => Some(children(9, "/p", true)),
        Op::GetChildren2 => Some(children2(9, "/p", true)),
        Op::GetAllChildrenNumber => {
            let path = Some("/p".into());
            Some(request(9, op, &GetAllChildrenNumberRequest { path }))
        }
        Op::CloseSession
        | Op::CreateSession
        | Op::Sync
        | Op::Ping
        | Op::Check
        | Op::Multi
        | Op::Reconfig
        | Op::CheckWatches
        | Op::RemoveWatches
        | Op::DeleteContainer
        | Op::MultiRead
        | Op::Auth
        | Op::SetWatches
        | Op::Sasl
        | Op::GetEphemerals
        | Op::SetWatches2
        | Op::AddWatch
        | Op::WhoAmI => None,
    }
}

/// A member with `/p`, which gives everybody these permissions, and `/p/child`.
fn member_with(perms: i32) -> (Member, u64) {
    let mut member = Member::default();
    let client = member.client();
    member.ok(client, &create(1, "/p"));
    member.ok(client, &create(2, "/p/child"));
    member.ok(
        client,
        &set_acl(3, "/p", vec![acl(perms, "world", "anyone")], -1),
    );
    (member, client)
}

#[test]
fn each_operation_needs_the_permission_that_the_table_names() {
    for info in Op::TABLE {
        let Some(frame) = about_p(info.op) else {
            let of_one_znode = matches!(info.needs, Needs::OnNode(_) | Needs::OnParent(_));
            let alone = !matches!(info.op, Op::Check | Op::Reconfig);
            assert!(!(of_one_znode && alone), "{} is not tried", info.name);
            continue;
        };
        let needed = match info.needs {
            Needs::OnNode(perms) | Needs::OnParent(perms) => perms,
            Needs::Nothing | Needs::OfEach => 31,
        };
        for bit in [1, 2, 4, 8, 16] {
            let (mut member, client) = member_with(bit);
            let reply = member.call(client, &frame);
            let refused = reply.err == ErrorCode::NoAuth.code();
            assert_eq!(refused, needed & bit == 0, "{} with {bit}", info.name);
        }
    }
}

#[test]
fn each_operation_does_to_watches_what_the_table_says() {
    for info in Op::TABLE {
        let Some(frame) = about_p(info.op) else {
            continue;
        };
        let (mut member, client) = member_with(31);
        let watcher = member.client();
        member.ok(watcher, &add_watch(1, "/p", 1));
        let before = member.watch_count();
        member.ok(client, &frame);
        let left = member.watch_count() - before;
        let fired = member.events(watcher).len();
        let expected = match info.watches {
            WatchEffect::None => (0, 0),
            WatchEffect::Leaves => (1, 0),
            WatchEffect::Fires => (0, 1),
            WatchEffect::Manages => (0, 0),
        };
        assert_eq!((left, fired), expected, "{}", info.name);
    }
}
