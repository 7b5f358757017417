//! What the server is measured against: it cuts frames as the server does and answers each at once with a frame of the
//! size that the reply to a getData has, without looking at anything but the operation. `integration/compare/run-floor`
//! drives it with `quenda bench get`.
//!
//!     echo SIZE        listens on a free port of 127.0.0.1, prints it, and answers until it is killed

use std::io;

use bytes::{Buf, BufMut, BytesMut};
use quenda_proto::frame::{MAX_FRAME_DEFAULT, OpenFrame, put_reply, put_reply_header, split};
use quenda_proto::jute::put_buffer;
use quenda_proto::records::{ConnectResponse, CreateRequest, RequestHeader};
use quenda_proto::{Decode, Encode, ErrorCode, Op, Reader};
use tokio::net::{TcpListener, TcpStream};

/// As in the server: the allocator must not make the difference.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Bytes read from a socket before its frames are answered; the server's bound.
const READ_BYTES: usize = 64 << 10;

/// Bytes of a Stat on the wire.
const STAT_LEN: usize = 68;

fn main() -> io::Result<()> {
    let size = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let Some(size) = size else {
        return Err(io::Error::other("usage: echo SIZE"));
    };
    // The server's runtime has as many threads.
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(listen(size))
}

async fn listen(size: usize) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?.port());
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(async move {
            if let Err(error) = serve(stream, size).await {
                eprintln!("echo: {error}");
            }
        });
    }
}

async fn serve(stream: TcpStream, size: usize) -> io::Result<()> {
    let data = vec![b'x'; size];
    let (mut input, mut output) = (BytesMut::new(), BytesMut::new());
    let mut greeted = false;
    loop {
        stream.readable().await?;
        input.reserve(READ_BYTES);
        match stream.try_read_buf(&mut input) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error),
        }
        while let Some((payload, rest)) =
            split(&input, MAX_FRAME_DEFAULT).map_err(io::Error::other)?
        {
            let taken = input.len() - rest.len();
            if greeted {
                answer(payload, &data, &mut output).map_err(io::Error::other)?;
            } else {
                greeted = true;
                greet(&mut output);
            }
            input.advance(taken);
        }
        flush(&stream, &mut output).await?;
    }
}

async fn flush(stream: &TcpStream, output: &mut BytesMut) -> io::Result<()> {
    while !output.is_empty() {
        match stream.try_write(output) {
            Ok(count) => output.advance(count),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => stream.writable().await?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn greet(output: &mut BytesMut) {
    let frame = OpenFrame::start(output);
    let response = ConnectResponse {
        protocol_version: 0,
        time_out: 30_000,
        session_id: 1,
        passwd: Some(&[0; 16]),
    };
    response.encode(output);
    output.put_u8(0);
    frame.finish(output);
}

fn answer(payload: &[u8], data: &[u8], output: &mut BytesMut) -> Result<(), String> {
    let mut reader = Reader::new(payload);
    let header = RequestHeader::decode(&mut reader).map_err(|error| error.to_string())?;
    match Op::from_code(header.kind) {
        Some(Op::GetData) => {
            output.put_i32((16 + 4 + data.len() + STAT_LEN) as i32);
            put_reply_header(output, header.xid, 1, ErrorCode::Ok);
            put_buffer(output, data);
            output.put_bytes(0, STAT_LEN);
        }
        Some(Op::Create) => {
            let request = CreateRequest::decode(&mut reader).map_err(|error| error.to_string())?;
            let frame = OpenFrame::start(output);
            put_reply_header(output, header.xid, 1, ErrorCode::Ok);
            put_buffer(output, request.path.unwrap_or_default().as_bytes());
            frame.finish(output);
        }
        _ => put_reply(output, header.xid, 1, ErrorCode::Ok),
    }
    Ok(())
}
