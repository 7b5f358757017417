//! A scripted server.

use bytes::BytesMut;
use quenda_proto::connect::{Handshake, encode_response};
use quenda_proto::frame::{self, OpenFrame, put_reply};
use quenda_proto::records::RequestHeader;
use quenda_proto::{Decode, ErrorCode, Op, Reader, XID_PING};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub const SESSION: i64 = 0x1_0000_0001;
pub const PASSWORD: [u8; 16] = *b"0123456789abcdef";
pub const TIMEOUT_MS: i32 = 4000;

/// One accepted connection, frame by frame.
pub struct Peer {
    stream: TcpStream,
    input: BytesMut,
    /// Whether it says that it has no quorum.
    pub read_only: bool,
}

impl Peer {
    pub async fn frame(&mut self) -> Option<BytesMut> {
        loop {
            let payload =
                frame::split(&self.input, 1 << 20).expect("the client sends legal frames");
            if let Some((payload, _)) = payload {
                let length = payload.len();
                let mut whole = self.input.split_to(4 + length);
                return Some(whole.split_off(4));
            }
            if self.stream.read_buf(&mut self.input).await.expect("reads") == 0 {
                return None;
            }
        }
    }

    /// The next request that is no ping; pings are answered on the way.
    pub async fn request(&mut self) -> Option<(RequestHeader, BytesMut)> {
        loop {
            let mut payload = self.frame().await?;
            let header = RequestHeader::decode(&mut Reader::new(&payload)).expect("a header");
            if header.xid != XID_PING {
                return Some((header, payload.split_off(8)));
            }
            assert_eq!(header.kind, Op::Ping.code());
            let mut out = BytesMut::new();
            put_reply(&mut out, XID_PING, 7, ErrorCode::Ok);
            self.send(&out).await;
        }
    }

    pub async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("writes");
    }

    pub async fn grant(&mut self) -> Handshake<'static> {
        let payload = self.frame().await.expect("a handshake");
        let handshake = Handshake::decode(&payload).expect("a handshake");
        let read_only = handshake.read_only;
        let request = quenda_proto::records::ConnectRequest {
            passwd: None,
            ..handshake.request
        };
        self.respond(SESSION, TIMEOUT_MS, &PASSWORD, read_only)
            .await;
        Handshake { request, read_only }
    }

    pub async fn respond(
        &mut self,
        session: i64,
        timeout_ms: i32,
        password: &[u8; 16],
        read_only: Option<bool>,
    ) {
        let mut out = BytesMut::new();
        let open = OpenFrame::start(&mut out);
        encode_response(
            &mut out,
            session,
            timeout_ms,
            password,
            read_only.map(|_| self.read_only),
        );
        open.finish(&mut out);
        self.send(&out).await;
    }
}

pub async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let address = listener.local_addr().expect("bound").to_string();
    (listener, address)
}

pub async fn accept(listener: &TcpListener) -> Peer {
    let (stream, _) = listener.accept().await.expect("accepts");
    Peer {
        stream,
        input: BytesMut::new(),
        read_only: false,
    }
}
