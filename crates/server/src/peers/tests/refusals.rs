//! Peers that do not belong here, and two of which only one may stay.

use quenda_node::PeerState;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::super::handshake::{Answer, HandshakeError, Hello, Verdict};
use super::super::identity::About;
use super::harness::{CLUSTER, Event, Member, Plan, hello, member_of, shake, until};

async fn verdict_on(member: &Member, hello: Hello) -> Verdict {
    let (mut stream, answer) = shake(member.address, hello).await.expect("an answer");
    assert_eq!(answer.id, member.id);
    if answer.verdict != Verdict::Accepted {
        let mut rest = Vec::new();
        let read = stream.read_to_end(&mut rest).await;
        assert_eq!((read.ok(), rest.len()), (Some(0), 0), "it is closed");
    }
    answer.verdict
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_acceptor_refuses_with_a_reason() {
    let member = Member::start(1);
    let right = hello(2, 1, 1);
    assert_eq!(
        verdict_on(&member, hello(2, 3, 1)).await,
        Verdict::OtherMember
    );
    assert_eq!(verdict_on(&member, hello(1, 1, 1)).await, Verdict::OwnId);
    let mut foreign = right;
    foreign.about.facts.cluster = CLUSTER + 1;
    assert_eq!(verdict_on(&member, foreign).await, Verdict::OtherCluster);
    assert_eq!(member.events.all(), [], "none of them was let in");
    assert_eq!(verdict_on(&member, right).await, Verdict::Accepted);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_version_is_told_ours() {
    let member = Member::start(1);
    let mut stream = tokio::net::TcpStream::connect(member.address)
        .await
        .expect("a connection");
    let mut bytes = hello(2, 1, 1).encode();
    bytes[9] = 9;
    stream.write_all(&bytes).await.expect("written");
    let answer = Answer::read(&mut stream).await.expect("an answer");
    assert_eq!(answer.verdict, Verdict::OtherVersion);
    assert_eq!(member.events.all(), []);
}

/// A server that accepts everybody under this id and cluster.
async fn impostor(id: u64, cluster: u64, version: u8) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let read: Result<Hello, HandshakeError> = Hello::read(&mut stream).await;
            let Ok(hello) = read else { continue };
            let facts = member_of(cluster);
            let about = About {
                facts,
                ..hello.about
            };
            let verdict = Verdict::Accepted;
            let mut answer = Answer { verdict, id, about }.encode();
            answer[9] = version;
            if stream.write_all(&answer).await.is_ok() {
                tokio::spawn(async move { stream.read_to_end(&mut Vec::new()).await });
            }
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_dialer_does_not_take_the_acceptors_word_for_it() {
    let member = Member::start(1);
    let good = impostor(5, CLUSTER, 1).await;
    member.dial(&[
        (2, impostor(3, CLUSTER, 1).await),
        (3, impostor(3, CLUSTER + 1, 1).await),
        (4, impostor(4, CLUSTER, 2).await),
        (5, good),
    ]);
    member.until_up(5).await;
    // Each of the others was dialed as often by now, and more than once.
    let seen = member.peers.seen();
    assert_eq!(seen, [(5, PeerState::Member, CLUSTER)]);
    assert_eq!(member.events.all(), [Event::Up(5, PeerState::Member)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_sides_of_a_wrong_pair_stay_apart() {
    let one = Member::start(1);
    let foreign = Plan {
        facts: member_of(CLUSTER + 1),
        ..Plan::member(2)
    };
    let foreign = foreign.start();
    let third = Member::start(3);
    one.dial(&[(2, foreign.address), (3, third.address)]);
    foreign.dial(&[(1, one.address)]);
    one.until_up(3).await;
    assert!(!one.peers.send(2, "x".into()));
    assert_eq!(foreign.events.all(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_leads_to_the_member_itself_connects_nobody() {
    let member = Member::start(1);
    let other = Member::start(3);
    let port = member.address.port();
    let names = |host: &str, port| vec![(host.to_owned(), port)];
    member.peers.set_members(vec![
        (1, names("127.0.0.1", port)),
        (2, names("127.0.0.1", port)),
        (3, names("127.0.0.1", other.address.port())),
        (4, names("0.0.0.0", port)),
    ]);
    member.until_up(3).await;
    assert_eq!(member.events.all(), [Event::Up(3, PeerState::Member)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_newer_connection_of_a_peer_replaces_the_older() {
    let member = Member::start(1);
    let up = Event::Up(2, PeerState::Member);
    let (mut first, _) = shake(member.address, hello(2, 1, 7)).await.expect("first");
    until("it is up", || member.events.count(&up) == 1).await;
    let (mut second, _) = shake(member.address, hello(2, 1, 7)).await.expect("second");
    let mut rest = Vec::new();
    first.read_to_end(&mut rest).await.expect("it is closed");
    until("it is up again", || member.events.count(&up) >= 2).await;
    assert!(!member.events.has(&Event::Lost(2)), "the process lives on");

    // A later process means that the earlier one has ended.
    member.events.forget();
    let (third, _) = shake(member.address, hello(2, 1, 8)).await.expect("third");
    second.read_to_end(&mut rest).await.expect("it is closed");
    until("it is up", || member.events.has(&up)).await;
    let told = member.events.all();
    assert_eq!(told[..2], [Event::Lost(2), up.clone()]);

    // And an earlier process beside it is a mistake.
    assert_eq!(
        verdict_on(&member, hello(2, 1, 7)).await,
        Verdict::OlderProcess
    );
    member.events.forget();
    drop(third);
    member.until_told(Event::Lost(2)).await;
    assert_eq!(verdict_on(&member, hello(2, 1, 7)).await, Verdict::Accepted);
}
