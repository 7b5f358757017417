//! Whatever else comes to the quorum port.

use std::time::{Duration, Instant};

use bytes::{BufMut, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::super::frame::{Kind, put_header};
use super::harness::{Event, Member, Plan, connect, hello, shake};
use crate::config::LinkSettings;
use crate::limits::{PEER_FRAME_MAX, PEER_HANDSHAKES_MAX, PEER_IDLE_MAX};

/// A peer by hand that has been let in.
async fn guest(member: &Member) -> TcpStream {
    let (stream, _) = shake(member.address, hello(9, 1, 1))
        .await
        .expect("it is let in");
    member.until_up(9).await;
    stream
}

/// Reads until the other side closes.
async fn until_closed(mut stream: TcpStream) {
    let mut rest = Vec::new();
    // A reset is an end as well.
    let _ = stream.read_to_end(&mut rest).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_closes_the_connection_and_nothing_else() {
    let (one, two) = (Member::start(1), Member::start(2));
    connect(&[&one, &two]).await;
    let seeds: [&[u8]; 4] = [
        b"GET / HTTP/1.1\r\nHost: quorum\r\n\r\n",
        b"srvr",
        &[0; 4096],
        &[0xff; 4096],
    ];
    for seed in seeds {
        let mut stream = TcpStream::connect(one.address).await.expect("connected");
        // It may be closed while we write.
        let _ = stream.write_all(seed).await;
        let _ = stream.shutdown().await;
        until_closed(stream).await;
    }
    two.send(1, "still here".into()).await;
    one.until_told(Event::Frame(2, "still here".into())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_frames_close_the_connection_and_are_no_end_of_the_process() {
    let member = Member::start(1);
    let mut whole = BytesMut::new();
    put_header(&mut whole, Kind::Data, &[b"good"]);
    whole.extend_from_slice(b"good");
    let mut oversize = BytesMut::new();
    oversize.put_u32(PEER_FRAME_MAX as u32 + 1);
    let mut spoiled = whole.clone();
    spoiled[10] ^= 1;
    let mut unknown = BytesMut::new();
    unknown.put_u32(0);
    unknown.put_u32(crc32c::crc32c(&[99]));
    unknown.put_u8(99);
    let mut misplaced = BytesMut::new();
    put_header(&mut misplaced, Kind::Chunk, &[]);
    for bad in [oversize, spoiled, unknown, misplaced] {
        member.events.forget();
        let mut stream = guest(&member).await;
        stream.write_all(&whole).await.expect("written");
        member.until_told(Event::Frame(9, "good".into())).await;
        stream.write_all(&bad).await.expect("written");
        until_closed(stream).await;
        assert!(!member.events.has(&Event::Lost(9)));
        assert_eq!(member.events.frames_of(9).len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_say_nothing_do_not_keep_peers_out() {
    let (one, two) = (Member::start(1), Member::start(2));
    let mut silent = Vec::new();
    for _ in 0..3 * PEER_HANDSHAKES_MAX {
        silent.push(TcpStream::connect(one.address).await.expect("connected"));
    }
    two.dial(&[(1, one.address)]);
    one.until_up(2).await;
    // The first ones were closed to make room, the last ones are when their time is over.
    for stream in silent {
        until_closed(stream).await;
    }
    assert!(one.is_up(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_falls_silent_is_let_go() {
    let settings = LinkSettings {
        idle_max: PEER_IDLE_MAX / 4,
        ..LinkSettings::default()
    };
    let plan = Plan {
        links: settings.clone(),
        ..Plan::member(1)
    };
    let member = plan.start();
    let begun = Instant::now();
    let stream = guest(&member).await;
    until_closed(stream).await;
    let silent = begun.elapsed();
    assert!(silent >= settings.idle_max - Duration::from_millis(100));
    assert!(silent < PEER_IDLE_MAX, "{silent:?}: as the settings say");
    assert!(
        !member.events.has(&Event::Lost(9)),
        "nothing says that its process ended"
    );
}
