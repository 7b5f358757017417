use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::Extension;
use axum::routing::{get, post};

use super::*;
use crate::limits::HTTP_CONNECTIONS_MAX;

const PATIENCE: Duration = Duration::from_secs(20);

fn start(idle: Duration) -> (HttpServer, u16) {
    let router = Router::new()
        .route(
            "/who",
            get(|caller: Extension<Caller>| async move { caller.peer.ip().to_string() }),
        )
        .route(
            "/body",
            post(|body: Body| async move {
                match read_body(body, 8, Duration::from_millis(300)).await {
                    Ok(bytes) => bytes.len().to_string(),
                    Err(error) => error.to_string(),
                }
            }),
        )
        .route("/long", get(|| async { vec![b'x'; 64 << 20] }));
    let listener = HttpListener::bind(Some("127.0.0.1"), 0).expect("a free port");
    let port = listener.port().expect("bound");
    let server = HttpServer::start(HttpSetup {
        name: "test-http",
        listener,
        router,
        idle,
        tls: HttpTls::None,
    });
    (server.expect("a thread"), port)
}

fn connect(port: u16) -> TcpStream {
    let socket = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    socket.set_read_timeout(Some(PATIENCE)).expect("a time");
    socket
}

/// All that comes until the server closes.
fn rest(mut socket: TcpStream) -> String {
    let mut text = Vec::new();
    // A connection that is reset has ended too.
    let _ = socket.read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn ask(port: u16, request: &str) -> String {
    let mut socket = connect(port);
    socket.write_all(request.as_bytes()).expect("it reads");
    rest(socket)
}

fn get_who(port: u16) -> String {
    ask(
        port,
        "GET /who HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    )
}

#[test]
fn a_request_is_answered_and_its_caller_known() {
    let (server, port) = start(PATIENCE);
    let answer = get_who(port);
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\n127.0.0.1"), "{answer}");
    let trace = ask(
        port,
        "TRACE /who HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    );
    assert!(trace.starts_with("HTTP/1.1 403 "), "{trace}");
    drop(server);
    TcpStream::connect(("127.0.0.1", port)).expect_err("the port is closed");
}

#[test]
fn what_is_no_http_or_too_long_is_turned_away() {
    let (_server, port) = start(PATIENCE);
    let nonsense = ask(port, "\u{1}\u{2}\u{3}\u{4} nonsense\r\n\r\n");
    assert!(nonsense.starts_with("HTTP/1.1 400 "), "{nonsense}");
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(70_000));
    let long = ask(port, &long);
    assert!(long.is_empty() || long.starts_with("HTTP/1.1 4"), "{long}");
    let body = |length: usize, text: &str| {
        ask(
            port,
            &format!(
                "POST /body HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{text}"
            ),
        )
    };
    assert!(body(3, "abc").ends_with("\r\n3"));
    assert!(body(9, "123456789").ends_with("longer than 8 bytes"));
    assert!(body(5, "abc").ends_with("did not come in time"));
    assert!(get_who(port).ends_with("127.0.0.1"));
}

#[test]
fn who_keeps_silent_is_let_go() {
    let (_server, port) = start(Duration::from_millis(200));
    assert_eq!(rest(connect(port)), "", "no request at all");
    let mut half = connect(port);
    half.write_all(b"GET /who HTTP/1.1\r\nHost:")
        .expect("it reads");
    let half = rest(half);
    assert!(
        half.is_empty() || half.starts_with("HTTP/1.1 408 "),
        "{half}"
    );
}

#[test]
fn who_takes_nothing_of_an_answer_is_let_go() {
    let (_server, port) = start(Duration::from_millis(200));
    let mut socket = connect(port);
    socket
        .write_all(b"GET /long HTTP/1.1\r\nHost: x\r\n\r\n")
        .expect("it reads");
    let begun = Instant::now();
    // To write is all that tells of the end without taking anything.
    while socket.write_all(b"G").is_ok() {
        assert!(begun.elapsed() < PATIENCE, "it is still waited for");
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(rest(socket).len() < 64 << 20, "the answer was cut off");
}

#[test]
fn idle_connections_give_way() {
    let (_server, port) = start(PATIENCE);
    let idle: Vec<TcpStream> = (0..HTTP_CONNECTIONS_MAX * 2)
        .map(|_| connect(port))
        .collect();
    assert!(get_who(port).ends_with("127.0.0.1"));
    let mut idle = idle.into_iter();
    assert_eq!(rest(idle.next().expect("some")), "", "the oldest is closed");
}
