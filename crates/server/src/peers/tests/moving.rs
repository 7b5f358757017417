//! A member whose quorum port changes while it runs.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::handshake::Verdict;
use super::super::resolve::{Resolve, SystemResolver};
use super::harness::{Member, Plan, connect, hello, shake, until};

/// Counts how often a name was looked up.
#[derive(Default)]
struct Counting(AtomicUsize);

impl Resolve for Counting {
    fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        SystemResolver.resolve(host, port)
    }
}

fn free_address() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    (listener, address)
}

async fn is_listening(member: &Member, address: SocketAddr) -> bool {
    let Ok((_, answer)) = shake(address, hello(9, member.id, 1)).await else {
        return false;
    };
    answer.id == member.id && answer.verdict == Verdict::Accepted
}

async fn until_listening(member: &Member, address: SocketAddr, expected: bool) {
    let runtime = tokio::runtime::Handle::current();
    until(&format!("listening on {address}: {expected}"), || {
        let listening = is_listening(member, address);
        tokio::task::block_in_place(|| runtime.block_on(listening)) == expected
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_old_port_is_open_until_the_new_one_is() {
    let resolver = Arc::new(Counting::default());
    let plan = Plan {
        resolver: Arc::clone(&resolver) as Arc<dyn Resolve>,
        ..Plan::member(1)
    };
    let member = plan.start();
    let (taken, new) = free_address();
    let wanted = vec![(Some("127.0.0.1".to_owned()), new.port())];
    member.peers.move_to(wanted);
    until("the first attempt has failed", || {
        resolver.0.load(Ordering::SeqCst) > 1
    })
    .await;
    assert!(is_listening(&member, member.address).await);
    drop(taken);
    until_listening(&member, new, true).await;
    until_listening(&member, member.address, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_moves_the_later_counts() {
    let member = Member::start(1);
    let (_taken, first) = free_address();
    let (free, second) = free_address();
    drop(free);
    let wanted = |address: SocketAddr| (Some("127.0.0.1".to_owned()), address.port());
    member.peers.move_to(vec![wanted(first)]);
    member
        .peers
        .move_to(vec![wanted(member.address), wanted(second)]);
    until_listening(&member, second, true).await;
    assert!(is_listening(&member, member.address).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn open_connections_stay() {
    let (one, two) = (Member::start(1), Member::start(2));
    connect(&[&one, &two]).await;
    one.events.forget();
    two.events.forget();
    let (free, new) = free_address();
    drop(free);
    one.peers
        .move_to(vec![(Some("127.0.0.1".to_owned()), new.port())]);
    until_listening(&one, new, true).await;
    two.dial(&[(1, new)]);
    two.until_up(1).await;
    assert!(one.is_up(2));
}
