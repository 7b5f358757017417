//! Bounds over all connections: who waits, who is answered with ThrottledOp, who is turned away.

mod driver;

use std::cell::Cell;

use driver::requests::{close_session, create, get, keep_alive, set};
use driver::{Member, connect};
use quenda_frontend::{
    Admission, CloseReason, Gates, Newcomer, Pause, Received, Settings, Throttling,
};
use quenda_proto::ErrorCode;

#[test]
fn above_the_bound_who_has_several_requests_awaits_its_turn_and_who_has_one_goes_on() {
    let mut member = Member::default();
    let (busy, idle) = (member.client(), member.client());
    member.gates.busy_room = 2;
    let frames: Vec<u8> = (0..10).flat_map(|_| create(1, "/a")).collect();
    assert_eq!(member.send(busy, &frames), Received::Paused(Pause::Busy));
    assert_eq!(member.connection(busy).queued(), 2);
    assert!(!member.connection(busy).must_receive());
    member.gates.busy_room = 0;
    assert_eq!(member.receive(busy), Received::Paused(Pause::Busy));
    assert_eq!(member.send(idle, &create(1, "/b")), Received::NeedMore);
    let two = [create(2, "/b"), create(3, "/b")].concat();
    assert_eq!(member.send(idle, &two), Received::Paused(Pause::Busy));
    let awaited = |member: &Member, client| member.connection(client).awaited();
    assert_eq!((awaited(&member, busy), awaited(&member, idle)), (2, 1));
    // What was taken is answered; the rest awaits its turn, and takes no more than that is for.
    member.apply();
    assert_eq!(
        (member.replies(busy).len(), member.replies(idle).len()),
        (2, 1)
    );
    assert!(!member.connection(busy).must_receive());
    assert!(member.connection(busy).awaits_turn());
    member.gates.busy_room = 3;
    assert_eq!(member.receive(busy), Received::Paused(Pause::Busy));
    assert_eq!(member.receive(idle), Received::NeedMore);
    assert_eq!((awaited(&member, busy), awaited(&member, idle)), (3, 2));
    member.gates.busy_room = 8;
    assert_eq!(member.receive(busy), Received::NeedMore);
    member.apply();
    assert_eq!(
        (member.replies(busy).len(), member.replies(idle).len()),
        (8, 2)
    );
}

#[test]
fn a_part_of_a_request_is_not_held_back() {
    let mut member = Member::default();
    let client = member.client();
    member.gates.busy_room = 0;
    let frame = create(2, "/a");
    member.send(client, &create(1, "/b"));
    assert_eq!(member.send(client, &frame[..9]), Received::NeedMore);
    assert_eq!(
        member.send(client, &frame[9..]),
        Received::Paused(Pause::Busy)
    );
}

#[test]
fn reads_that_wait_for_nothing_are_served_above_the_bound() {
    let mut member = Member::default();
    let client = member.client();
    member.gates.busy_room = 0;
    let frames: Vec<u8> = (0..10).flat_map(|_| get(1, "/", false)).collect();
    assert_eq!(member.send(client, &frames), Received::NeedMore);
    assert_eq!(member.replies(client).len(), 10);
}

fn waits_at_most_500_ms() -> Settings {
    Settings {
        throttling: Throttling {
            op_wait_ms: 500,
            ..Throttling::default()
        },
        ..Settings::default()
    }
}

#[test]
fn at_the_second_bound_nobody_goes_on_and_what_waited_too_long_is_answered_so() {
    let mut member = Member::new(waits_at_most_500_ms());
    let client = member.client();
    member.gates.room = 0;
    let first = [create(1, "/a"), get(2, "/a", false)].concat();
    assert_eq!(
        member.send(client, &first),
        Received::Paused(Pause::Throttled)
    );
    assert!(!member.connection(client).must_receive());
    member.now_ms += 400;
    let others = [keep_alive(), create(3, "/b"), close_session(4)].concat();
    member.send(client, &others);
    member.now_ms += 101;
    assert_eq!(member.connection(client).held_ms(member.now_ms), 501);
    member.gates = Gates::default();
    member.receive(client);
    member.apply();
    let errors: Vec<(i32, i32)> = member
        .replies(client)
        .iter()
        .map(|reply| (reply.xid, reply.err))
        .collect();
    let throttled = ErrorCode::ThrottledOp.code();
    assert_eq!(
        errors,
        [(1, throttled), (2, throttled), (-2, 0), (3, 0), (4, 0)]
    );
    let observed = member.take_observed(client);
    assert_eq!(observed.throttled_count, 2);
    assert_eq!(observed.throttle_waits, [(501, 2), (101, 3)]);
    assert!(member.tree.get("/a").is_none() && member.tree.get("/b").is_some());
}

#[test]
fn a_ping_that_waited_is_answered_all_the_same() {
    let mut member = Member::new(waits_at_most_500_ms());
    let client = member.client();
    member.gates.room = 0;
    member.send(client, &[keep_alive(), close_session(1)].concat());
    member.now_ms += 10_000;
    member.gates = Gates::default();
    member.receive(client);
    member.apply();
    let replies = member.replies(client);
    assert_eq!(
        replies.iter().map(|reply| reply.err).collect::<Vec<_>>(),
        [0, 0]
    );
}

#[test]
fn large_requests_have_a_bound_of_their_own() {
    let mut member = Member::new(Settings {
        throttling: Throttling {
            large_threshold: 1000,
            ..Throttling::default()
        },
        ..Settings::default()
    });
    let (first, second, third) = (member.client(), member.client(), member.client());
    member.gates.large_room = 5000;
    let large = set(1, "/", &[0; 3000]);
    assert_eq!(member.send(first, &large), Received::NeedMore);
    assert!(member.connection(first).large_bytes() > 3000);
    member.gates.large_room -= member.connection(first).large_bytes();
    let refused = member.send(second, &large[..4]);
    assert!(matches!(
        refused,
        Received::Close(CloseReason::LargeRequest(_))
    ));
    assert_eq!(
        member.send(third, &set(1, "/", &[0; 900])),
        Received::NeedMore
    );
    member.apply();
    assert_eq!(member.connection(first).large_bytes(), 0);
    member.gates.large_room = 5000;
    let both = [large.clone(), large].concat();
    let refused = member.send(first, &both);
    assert!(matches!(
        refused,
        Received::Close(CloseReason::LargeRequest(_))
    ));
}

struct Turns(Cell<u32>);

impl Admission for Turns {
    fn admit(&self, newcomer: Newcomer, _: u64) -> bool {
        assert_eq!(newcomer, Newcomer::Opens);
        self.0.set(self.0.get() + 1);
        self.0.get() % 2 == 1
    }
}

#[test]
fn sessions_are_asked_for_one_by_one() {
    let mut member = Member::default();
    let turns: &'static Turns = Box::leak(Box::new(Turns(Cell::new(0))));
    member.gates.admission = Some(turns);
    let admitted = member.client();
    assert!(member.connection(admitted).is_established());
    let refused = member.accept();
    let frame = connect(0, 10_000, 0, Some(&[0; 16]), Some(false));
    let expected = Received::Close(CloseReason::SessionThrottled);
    assert_eq!(member.send(refused, &frame), expected);
    assert!(member.payloads(refused).is_empty());
}
