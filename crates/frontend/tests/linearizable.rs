//! Reads behind barriers, and what of a connection is on its way.

mod driver;

use driver::{Member, Reply, connect, requests::*};
use quenda_frontend::{Pause, Received, Settings, SyncMode};
use quenda_proto::records::GetDataResponse;

fn member() -> Member {
    let mut member = Member::new(Settings {
        linearizable_reads: true,
        ..Settings::default()
    });
    member.sync = SyncMode::Barrier;
    member
}

fn xids(replies: &[Reply]) -> Vec<i32> {
    replies.iter().map(|reply| reply.xid).collect()
}

fn data(reply: &Reply) -> Vec<u8> {
    let response: GetDataResponse<'_> = reply.decode();
    response.data.expect("data").to_vec()
}

#[test]
fn a_read_shows_what_was_committed_before_it_was_sent() {
    let mut member = member();
    let (reader, writer) = (member.client(), member.client());
    member.ok(writer, &create(1, "/a"));
    member.send(reader, &get(1, "/a", false));
    assert!(member.replies(reader).is_empty());
    // Here the tree lags behind what others know: it catches up before the barrier is passed.
    member.ok(writer, &set(2, "/a", b"new"));
    member.pass_barrier();
    let replies = member.replies(reader);
    assert_eq!(xids(&replies), [1]);
    assert_eq!(data(&replies[0]), b"new");
    assert!(member.barriers.is_empty());
}

#[test]
fn what_comes_together_shares_a_barrier() {
    let mut member = member();
    let client = member.client();
    let frames = [
        exists(1, "/a", false),
        get(2, "/a", false),
        keep_alive(),
        sync(3, "/"),
        children(4, "/", false),
    ];
    assert_eq!(member.send(client, &frames.concat()), Received::NeedMore);
    assert_eq!((member.proposed(), member.barriers.len()), (0, 1));
    // What comes later needs one of its own, and waits outside meanwhile.
    let received = member.send(client, &get(5, "/a", false));
    assert_eq!(received, Received::Paused(Pause::Sync));
    assert_eq!(member.barriers.len(), 1);
    assert!(member.replies(client).is_empty());
    member.pass_barrier();
    assert_eq!(xids(&member.replies(client)), [1, 2, -2, 3, 4]);
    assert_eq!(member.barriers.len(), 1);
    member.pass_barrier();
    assert_eq!(xids(&member.replies(client)), [5]);
}

#[test]
fn a_write_waits_until_the_reads_in_front_of_it_are_served() {
    let mut member = member();
    let client = member.client();
    member.ok(client, &create(1, "/a"));
    let frames = [
        get(2, "/a", false),
        set(3, "/a", b"mine"),
        get(4, "/a", false),
    ];
    let received = member.send(client, &frames.concat());
    assert_eq!(received, Received::Paused(Pause::Sync));
    assert_eq!((member.proposed(), member.barriers.len()), (0, 1));
    member.pass_barrier();
    let replies = member.replies(client);
    assert_eq!(xids(&replies), [2]);
    assert_eq!(data(&replies[0]), b"");
    // The read behind the write came with it: the write stands for a barrier.
    assert_eq!((member.proposed(), member.barriers.len()), (1, 0));
    member.apply();
    let replies = member.replies(client);
    assert_eq!(xids(&replies), [3, 4]);
    assert_eq!(data(&replies[1]), b"mine");
}

#[test]
fn a_read_that_comes_behind_an_older_write_needs_its_own_barrier() {
    let mut member = member();
    let client = member.client();
    member.send(client, &create(1, "/a"));
    member.send(client, &get(2, "/a", false));
    assert_eq!((member.proposed(), member.barriers.len()), (1, 1));
    member.apply();
    assert_eq!(xids(&member.replies(client)), [1]);
    member.pass_barrier();
    assert_eq!(xids(&member.replies(client)), [2]);
    // And the other way round.
    member.send(client, &set(3, "/a", b"x"));
    member.send(client, &get(4, "/a", false));
    member.pass_barrier();
    assert!(member.replies(client).is_empty());
    member.apply();
    assert_eq!(xids(&member.replies(client)), [3, 4]);
}

#[test]
fn what_is_about_the_connection_alone_waits_for_nothing() {
    let mut member = member();
    let client = member.client();
    let frames = [keep_alive(), who_am_i(1), add_watch(2, "/a", 0)].concat();
    member.send(client, &frames);
    assert_eq!(xids(&member.replies(client)), [-2, 1, 2]);
    assert!(member.barriers.is_empty());
}

#[test]
fn one_voter_needs_no_barrier() {
    let mut member = member();
    member.sync = SyncMode::Marker;
    let client = member.client();
    member.send(client, &[exists(1, "/", false), sync(2, "/")].concat());
    assert_eq!(xids(&member.replies(client)), [1, 2]);
    assert!(member.barriers.is_empty());
}

#[test]
fn reads_are_local_unless_it_is_set() {
    let mut member = Member::default();
    member.sync = SyncMode::Barrier;
    let client = member.client();
    member.send(client, &[exists(1, "/", false), sync(2, "/")].concat());
    assert_eq!(xids(&member.replies(client)), [1]);
    assert_eq!(member.barriers.len(), 1);
}

#[test]
fn what_is_on_its_way_is_told() {
    let mut member = member();
    let client = member.accept();
    let in_flight = |member: &Member| member.connection(client).in_flight();
    assert!(!in_flight(&member));
    member.send(client, &connect(0, 10_000, 0, Some(&[0; 16]), Some(false)));
    assert!(in_flight(&member), "a handshake");
    member.apply();
    assert!(!in_flight(&member));
    member.send(client, &create(1, "/a"));
    assert!(in_flight(&member), "a write");
    member.apply();
    assert!(!in_flight(&member));
    member.send(client, &get(2, "/a", false));
    assert!(in_flight(&member), "a barrier");
    member.pass_barrier();
    assert!(!in_flight(&member));
    member.send(client, &keep_alive());
    assert!(!in_flight(&member));
}
