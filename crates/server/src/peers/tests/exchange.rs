//! Frames between members that get along.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use quenda_node::PeerState;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::timeout;

use super::super::resolve::Resolve;
use super::harness::{Event, Member, Plan, connect, until};
use super::proxy::Proxy;
use crate::config::LinkSettings;
use crate::limits::{PEER_DELIVERED_BYTES, PEER_FRAME_MAX, PEER_QUEUE_BYTES};

fn numbered(number: u64, length: usize) -> Bytes {
    let mut frame = number.to_be_bytes().to_vec();
    frame.resize(length.max(8), number as u8);
    frame.into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_arrive_whole_and_in_order() {
    let members = [Member::start(1), Member::start(2), Member::start(3)];
    connect(&members.each_ref()).await;
    let lengths = [8, 100, 8 << 10, (8 << 10) + 1, 1 << 20, 64];
    let frames: Vec<Bytes> = (0..600)
        .map(|number| numbered(number, lengths[number as usize % lengths.len()]))
        .collect();
    for frame in &frames {
        for from in &members {
            for to in members.iter().filter(|to| to.id != from.id) {
                from.send(to.id, frame.clone()).await;
            }
        }
    }
    for to in &members {
        for from in members.iter().filter(|from| from.id != to.id) {
            let all = || to.events.frames_of(from.id).len() == frames.len();
            until("all frames are there", all).await;
            assert!(to.events.frames_of(from.id) == frames);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_frame_is_a_frame_and_a_giant_is_none() {
    let (one, two) = (Member::start(1), Member::start(2));
    connect(&[&one, &two]).await;
    assert!(!one.peers.send(2, Bytes::from(vec![0; PEER_FRAME_MAX + 1])));
    assert!(!one.peers.send(3, Bytes::new()), "nobody is there");
    one.send(2, Bytes::new()).await;
    two.until_told(Event::Frame(1, Bytes::new())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_connection_is_told_and_made_again() {
    let (one, two) = (Member::start(1), Member::start(2));
    let proxy = Proxy::start(two.address).await;
    one.dial(&[(2, proxy.address)]);
    two.until_up(1).await;
    one.send(2, numbered(1, 8)).await;
    two.until_told(Event::Frame(1, numbered(1, 8))).await;
    one.events.forget();
    two.events.forget();
    proxy.cut();
    one.until_told(Event::Unreachable(2)).await;
    two.until_told(Event::Lost(1)).await;
    two.until_up(1).await;
    one.until_up(2).await;
    one.send(2, numbered(2, 8)).await;
    two.until_told(Event::Frame(1, numbered(2, 8))).await;
}

/// A port at which nobody answers: its queue of connections is full.
async fn deaf() -> (TcpListener, Vec<TcpStream>) {
    let socket = TcpSocket::new_v4().expect("a socket");
    let any = "127.0.0.1:0".parse().expect("an address");
    socket.bind(any).expect("a port");
    let listener = socket.listen(1).expect("it listens");
    let address = listener.local_addr().expect("an address");
    let mut waiting = Vec::new();
    let brief = Duration::from_millis(200);
    while let Ok(connected) = timeout(brief, TcpStream::connect(address)).await {
        waiting.push(connected.expect("connected"));
    }
    (listener, waiting)
}

/// `multiAddress.reachabilityCheckTimeoutMs`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_does_not_answer_gives_way_to_the_next_one() {
    let (listener, _waiting) = deaf().await;
    let deaf = listener.local_addr().expect("an address");
    let one = Plan {
        links: LinkSettings {
            dial_patience: Duration::from_secs(3600),
            dial_patience_of_many: Duration::from_millis(50),
            ..LinkSettings::default()
        },
        ..Plan::member(1)
    };
    let (one, two) = (one.start(), Member::start(2));
    let names = [deaf, two.address].map(|address| (address.ip().to_string(), address.port()));
    one.peers.set_members(vec![(2, names.to_vec())]);
    one.until_up(2).await;
}

/// `leaderConnectDelayDuringRetryMs`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_pause_between_dials_is_that_of_the_settings() {
    let pause = Duration::from_millis(700);
    let one = Plan {
        links: LinkSettings {
            dial_pause: pause,
            ..LinkSettings::default()
        },
        ..Plan::member(1)
    };
    let one = one.start();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    one.dial(&[(2, listener.local_addr().expect("an address"))]);
    drop(listener.accept().await.expect("the first dial"));
    let begun = Instant::now();
    drop(listener.accept().await.expect("the second dial"));
    assert!(begun.elapsed() > pause / 2, "{:?}", begun.elapsed());
}

/// `observer.reconnectDelayMs`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_was_lost_may_be_left_alone_for_a_while() {
    let delay = Duration::from_millis(900);
    let one = Plan {
        links: LinkSettings {
            reconnect_delay: delay,
            ..LinkSettings::default()
        },
        ..Plan::member(1)
    };
    let (one, two) = (one.start(), Member::start(2));
    let proxy = Proxy::start(two.address).await;
    one.dial(&[(2, proxy.address)]);
    one.until_up(2).await;
    one.events.forget();
    let begun = Instant::now();
    proxy.cut();
    one.until_up(2).await;
    assert!(begun.elapsed() >= delay, "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_sends_what_is_queued_and_is_seen_at_once() {
    let (one, two) = (Member::start(1), Member::start(2));
    connect(&[&one, &two]).await;
    let count = 3000;
    for number in 0..count {
        one.send(2, numbered(number, 1000)).await;
    }
    one.peers.stop().await;
    two.until_told(Event::Lost(1)).await;
    let frames = two.events.frames_of(1);
    assert_eq!(frames.len() as u64, count);
    assert_eq!(frames.last(), Some(&numbered(count - 1, 1000)));
    assert!(!one.peers.send(2, Bytes::new()), "it has stopped");
    two.until_told(Event::Unreachable(1)).await;
    until("both connections are gone", || !two.is_up(1)).await;
    assert_eq!(two.events.count(&Event::Lost(1)), 1, "told once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_starts_again_is_dialed_at_once() {
    let (one, two) = (Member::start(1), Member::start(2));
    connect(&[&one, &two]).await;
    two.peers.stop().await;
    one.until_told(Event::Lost(2)).await;
    one.events.forget();
    let again = Plan {
        incarnation: 2,
        port: two.address.port(),
        ..Plan::member(2)
    };
    let again = again.start();
    again.dial(&[(1, one.address)]);
    one.until_up(2).await;
    one.send(2, numbered(7, 8)).await;
    again.until_told(Event::Frame(1, numbered(7, 8))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_core_holds_up_one_peer_and_not_the_others() {
    let members = [Member::start(1), Member::start(2), Member::start(3)];
    connect(&members.each_ref()).await;
    let [slow, loud, other] = &members;
    slow.events.keep(loud.id);
    // Socket buffers take some megabytes; far more than all that waits is offered.
    let length = 64 << 10;
    let mut taken = 0;
    let mut refused = 0;
    while refused < 100 {
        if loud.peers.send(slow.id, numbered(taken, length)) {
            taken += 1;
        } else {
            refused += 1;
            tokio::task::yield_now().await;
        }
        assert!(taken < 4096, "the queue has no bound");
    }
    until("the peer's share is used up", || {
        slow.events.kept_bytes() > PEER_DELIVERED_BYTES / 2
    })
    .await;
    for number in 0..100 {
        other.send(slow.id, numbered(number, 100)).await;
        let arrived = Event::Frame(other.id, numbered(number, 100));
        slow.until_told(arrived).await;
    }
    assert!(slow.events.kept_bytes() <= PEER_DELIVERED_BYTES);
    assert!(taken as usize * length >= PEER_QUEUE_BYTES / 2);
    slow.events.release();
    let all = || slow.events.frames_of(loud.id).len() as u64 >= taken;
    until("everything that was taken arrives", all).await;
    for (number, frame) in slow.events.frames_of(loud.id).iter().enumerate() {
        assert!(frame == &numbered(number as u64, length), "frame {number}");
    }
    assert_eq!(slow.events.count(&Event::Lost(loud.id)), 0);
}

/// Names as a test has them.
#[derive(Default)]
struct Names(Mutex<HashMap<String, SocketAddr>>);

impl Names {
    fn set(&self, name: &str, address: SocketAddr) {
        self.0.lock().insert(name.to_owned(), address);
    }
}

impl Resolve for Names {
    fn resolve(&self, host: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        let names = self.0.lock();
        let address = names.get(host).ok_or(io::ErrorKind::NotFound)?;
        Ok(vec![*address])
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_is_looked_up_at_every_dial() {
    let names = Arc::new(Names::default());
    let plan = Plan {
        resolver: Arc::clone(&names) as Arc<dyn Resolve>,
        ..Plan::member(1)
    };
    let one = plan.start();
    let two = Member::start(2);
    one.peers
        .set_members(vec![(2, vec![("nowhere".into(), 1), ("two".into(), 1)])]);
    names.set("nowhere", "127.0.0.1:1".parse().expect("an address"));
    names.set("two", two.address);
    two.until_up(1).await;

    // It moves to another address, and then nobody knows names any more.
    two.peers.stop().await;
    one.events.forget();
    let moved = Plan {
        incarnation: 2,
        ..Plan::member(2)
    };
    let moved = moved.start();
    assert_ne!(moved.address, two.address);
    names.set("two", moved.address);
    moved.until_up(1).await;
    names.0.lock().clear();
    moved.peers.stop().await;
    let back = Plan {
        incarnation: 3,
        port: moved.address.port(),
        ..Plan::member(2)
    };
    back.start().until_up(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_is_not_dialed_is_answered_on_its_own_connection() {
    let (one, two) = (Member::start(1), Member::start(2));
    two.dial(&[(1, one.address)]);
    one.until_up(2).await;
    one.send(2, numbered(1, 8)).await;
    two.until_told(Event::Frame(1, numbered(1, 8))).await;
    one.dial(&[(2, two.address)]);
    two.until_up(1).await;
    one.send(2, numbered(2, 8)).await;
    two.until_told(Event::Frame(1, numbered(2, 8))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_come_and_go_at_run_time() {
    let members = [Member::start(1), Member::start(2), Member::start(3)];
    let [one, two, three] = &members;
    one.dial(&[(2, two.address)]);
    one.until_up(2).await;
    one.dial(&[(2, two.address), (3, three.address)]);
    one.until_up(3).await;
    assert_eq!(one.events.count(&Event::Up(2, PeerState::Member)), 1);
    one.dial(&[(3, three.address)]);
    two.until_told(Event::Lost(1)).await;
    until("member 2 is gone", || !one.is_up(2)).await;
    // The same id at another address is another server.
    let other = Member::start(2);
    one.dial(&[(2, other.address), (3, three.address)]);
    other.until_up(1).await;
    assert_eq!(three.events.count(&Event::Lost(1)), 0);
}
