//! Bytes captured from a genuine ZooKeeper: every record decodes, encodes to the same bytes again, and
//! refuses every prefix of itself.

use std::collections::BTreeSet;
use std::path::Path;

use bytes::BytesMut;
use quenda_proto::connect::Handshake;
use quenda_proto::multi::{ReadOp, WriteOp, decode_reads, decode_writes};
use quenda_proto::records::*;
use quenda_proto::{Decode, Encode, Op, Reader};

/// One captured packet.
struct Packet {
    name: String,
    direction: String,
    bytes: Vec<u8>,
}

fn packets() -> Vec<Packet> {
    // From the crate's own folder, where cargo runs tests; not where this was compiled.
    let folder = Path::new("tests/golden");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("the golden files")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    let mut packets = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file).expect("a golden file");
        packets.extend(
            text.lines()
                .filter(|line| !line.starts_with('#'))
                .map(packet),
        );
    }
    packets
}

fn packet(line: &str) -> Packet {
    let mut parts = line.split(' ');
    let mut next = || parts.next().expect("name, direction, bytes").to_string();
    let (name, direction, hex) = (next(), next(), next());
    let bytes = (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex"))
        .collect();
    Packet {
        name,
        direction,
        bytes,
    }
}

/// Decodes a whole record, encodes it again, and cuts it at every byte.
fn check<'a, T: Decode<'a> + Encode>(what: &str, bytes: &'a [u8]) {
    let mut reader = Reader::new(bytes);
    let record = T::decode(&mut reader).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(reader.rest().is_empty(), "{what}: bytes are left over");
    let mut again = BytesMut::new();
    record.encode(&mut again);
    assert_eq!(&again[..], bytes, "{what}");
    for end in 0..bytes.len() {
        let cut = T::decode(&mut Reader::new(&bytes[..end]));
        assert!(
            cut.is_err(),
            "{what}: the first {end} bytes pass for a record"
        );
    }
}

/// The request record of an operation. `false` if its body is checked elsewhere or has none.
fn check_request(what: &str, op: Op, body: &[u8]) -> bool {
    match op {
        Op::Create | Op::Create2 | Op::CreateContainer => check::<CreateRequest>(what, body),
        Op::CreateTtl => check::<CreateTtlRequest>(what, body),
        Op::Delete => check::<DeleteRequest>(what, body),
        Op::DeleteContainer => check::<DeleteContainerRequest>(what, body),
        Op::Exists => check::<ExistsRequest>(what, body),
        Op::GetData => check::<GetDataRequest>(what, body),
        Op::SetData => check::<SetDataRequest>(what, body),
        Op::GetAcl => check::<GetAclRequest>(what, body),
        Op::SetAcl => check::<SetAclRequest>(what, body),
        Op::GetChildren => check::<GetChildrenRequest>(what, body),
        Op::GetChildren2 => check::<GetChildren2Request>(what, body),
        Op::Sync => check::<SyncRequest>(what, body),
        Op::Check => check::<CheckVersionRequest>(what, body),
        Op::Reconfig => check::<ReconfigRequest>(what, body),
        Op::CheckWatches => check::<CheckWatchesRequest>(what, body),
        Op::RemoveWatches => check::<RemoveWatchesRequest>(what, body),
        Op::Auth => check::<AuthPacket>(what, body),
        Op::SetWatches => check::<SetWatches>(what, body),
        Op::SetWatches2 => check::<SetWatches2>(what, body),
        Op::Sasl => check::<GetSaslRequest>(what, body),
        Op::GetEphemerals => check::<GetEphemeralsRequest>(what, body),
        Op::GetAllChildrenNumber => check::<GetAllChildrenNumberRequest>(what, body),
        Op::AddWatch => check::<AddWatchRequest>(what, body),
        Op::Multi => check_writes(what, body),
        Op::MultiRead => check_reads(what, body),
        Op::Ping | Op::WhoAmI | Op::CloseSession | Op::CreateSession => return false,
    }
    true
}

fn check_writes(what: &str, body: &[u8]) {
    let ops = decode_writes(&mut Reader::new(body)).expect(what);
    let mut again = BytesMut::new();
    for op in &ops {
        match op {
            WriteOp::Create(op, record) => {
                quenda_proto::multi::put_request(&mut again, *op, record)
            }
            WriteOp::CreateTtl(record) => {
                quenda_proto::multi::put_request(&mut again, Op::CreateTtl, record);
            }
            WriteOp::Delete(record) => {
                quenda_proto::multi::put_request(&mut again, Op::Delete, record);
            }
            WriteOp::SetData(record) => {
                quenda_proto::multi::put_request(&mut again, Op::SetData, record);
            }
            WriteOp::Check(record) => {
                quenda_proto::multi::put_request(&mut again, Op::Check, record);
            }
        }
    }
    quenda_proto::multi::put_terminator(&mut again);
    assert_eq!(&again[..], body, "{what}");
    for end in 0..body.len() {
        assert!(
            decode_writes(&mut Reader::new(&body[..end])).is_err(),
            "{what} cut at {end}"
        );
    }
}

fn check_reads(what: &str, body: &[u8]) {
    let ops = decode_reads(&mut Reader::new(body)).expect(what);
    let mut again = BytesMut::new();
    for op in &ops {
        match op {
            ReadOp::GetData(record) => {
                quenda_proto::multi::put_request(&mut again, Op::GetData, record);
            }
            ReadOp::GetChildren(record) => {
                quenda_proto::multi::put_request(&mut again, Op::GetChildren, record);
            }
        }
    }
    quenda_proto::multi::put_terminator(&mut again);
    assert_eq!(&again[..], body, "{what}");
    for end in 0..body.len() {
        assert!(
            decode_reads(&mut Reader::new(&body[..end])).is_err(),
            "{what} cut at {end}"
        );
    }
}

/// The response record of an operation that succeeded.
fn check_response(what: &str, op: Op, body: &[u8]) -> bool {
    match op {
        Op::Create => check::<CreateResponse>(what, body),
        Op::Create2 | Op::CreateContainer | Op::CreateTtl => check::<Create2Response>(what, body),
        Op::Exists => check::<ExistsResponse>(what, body),
        Op::GetData | Op::Reconfig => check::<GetDataResponse>(what, body),
        Op::SetData => check::<SetDataResponse>(what, body),
        Op::GetAcl => check::<GetAclResponse>(what, body),
        Op::SetAcl => check::<SetAclResponse>(what, body),
        Op::GetChildren => check::<GetChildrenResponse>(what, body),
        Op::GetChildren2 => check::<GetChildren2Response>(what, body),
        Op::Sync => check::<SyncResponse>(what, body),
        Op::Sasl => check::<SetSaslResponse>(what, body),
        Op::GetEphemerals => check::<GetEphemeralsResponse>(what, body),
        Op::GetAllChildrenNumber => check::<GetAllChildrenNumberResponse>(what, body),
        Op::AddWatch => check::<ErrorResponse>(what, body),
        Op::WhoAmI => check::<WhoAmIResponse>(what, body),
        Op::Multi | Op::MultiRead => check_results(what, body),
        Op::Delete
        | Op::Ping
        | Op::Check
        | Op::CheckWatches
        | Op::RemoveWatches
        | Op::SetWatches
        | Op::SetWatches2
        | Op::Auth
        | Op::CloseSession
        | Op::CreateSession
        | Op::DeleteContainer => {
            assert!(body.is_empty(), "{what}: a body where there is none");
            return false;
        }
    }
    true
}

/// The results of a multi: headers and records up to the terminator.
fn check_results(what: &str, body: &[u8]) {
    let mut reader = Reader::new(body);
    let mut again = BytesMut::new();
    loop {
        let header = MultiHeader::decode(&mut reader).expect(what);
        header.encode(&mut again);
        if header.done {
            break;
        }
        copy_result(header.kind, &mut reader, &mut again);
    }
    assert!(reader.rest().is_empty(), "{what}: bytes are left over");
    assert_eq!(&again[..], body, "{what}");
}

fn copy_result(kind: i32, reader: &mut Reader<'_>, again: &mut BytesMut) {
    fn copy<'a, T: Decode<'a> + Encode>(reader: &mut Reader<'a>, again: &mut BytesMut) {
        T::decode(reader).expect("a result").encode(again);
    }
    match Op::from_code(kind) {
        None => copy::<ErrorResponse>(reader, again),
        Some(Op::Create) => copy::<CreateResponse>(reader, again),
        Some(Op::Create2) => copy::<Create2Response>(reader, again),
        Some(Op::SetData) => copy::<SetDataResponse>(reader, again),
        Some(Op::GetData) => copy::<GetDataResponse>(reader, again),
        Some(Op::GetChildren) => copy::<GetChildrenResponse>(reader, again),
        Some(Op::Delete | Op::Check) => {}
        Some(other) => panic!("a multi has no result of {}", other.name()),
    }
}

#[test]
fn every_captured_packet_decodes_and_encodes_to_the_same_bytes() {
    let mut requests: BTreeSet<&'static str> = BTreeSet::new();
    let mut responses: BTreeSet<&'static str> = BTreeSet::new();
    let mut last_request = (String::new(), None);
    for packet in packets() {
        let what = format!("{} {}", packet.name, packet.direction);
        match packet.direction.as_str() {
            ">" if packet.name.starts_with("connect_") || packet.name.starts_with("resume") => {
                let handshake = Handshake::decode(&packet.bytes).expect(&what);
                let mut again = BytesMut::new();
                handshake.encode(&mut again);
                assert_eq!(&again[..], &packet.bytes[..], "{what}");
                last_request = (packet.name, None);
            }
            ">" => {
                check::<RequestHeader>(&what, &packet.bytes[..8]);
                let header = RequestHeader::decode(&mut Reader::new(&packet.bytes)).expect(&what);
                let op = Op::from_code(header.kind);
                if let Some(op) = op
                    && decodes(&packet.name)
                    && check_request(&what, op, &packet.bytes[8..])
                {
                    requests.insert(op.name());
                }
                last_request = (packet.name, op);
            }
            "<" if last_request.1.is_none() && packet.name == last_request.0 => {
                check_connect_response(&what, &packet.bytes);
            }
            "<" => {
                check::<ReplyHeader>(&what, &packet.bytes[..16]);
                let header = ReplyHeader::decode(&mut Reader::new(&packet.bytes)).expect(&what);
                assert_eq!(packet.name, last_request.0, "a reply without its request");
                if header.err == 0
                    && decodes(&packet.name)
                    && let Some(op) = last_request.1
                    && check_response(&what, op, &packet.bytes[16..])
                {
                    responses.insert(op.name());
                }
            }
            "event" => {
                check::<ReplyHeader>(&what, &packet.bytes[..16]);
                check::<WatcherEvent>(&what, &packet.bytes[16..]);
            }
            other => panic!("{what}: direction {other}"),
        }
    }
    for info in Op::TABLE {
        if matches!(
            info.op,
            Op::CreateSession | Op::Ping | Op::WhoAmI | Op::CloseSession
        ) {
            continue;
        }
        assert!(
            requests.contains(info.name),
            "no request of {} was captured",
            info.name
        );
    }
    for op in [
        Op::Create,
        Op::Create2,
        Op::GetData,
        Op::GetAcl,
        Op::Multi,
        Op::MultiRead,
        Op::WhoAmI,
    ] {
        assert!(
            responses.contains(op.name()),
            "no response of {} was captured",
            op.name()
        );
    }
}

/// Whether a capture is meant to decode and to encode to the same bytes: not one that is malformed on
/// purpose, and not one with a character beyond the basic plane, which goes out as a surrogate pair.
fn decodes(name: &str) -> bool {
    !name.contains("without_terminator") && !name.contains("supplementary")
}

fn check_connect_response(what: &str, bytes: &[u8]) {
    // Unknown operations are answered by a header alone.
    if bytes.len() == 16 {
        return check::<ReplyHeader>(what, bytes);
    }
    check::<ConnectResponse>(what, &bytes[..36]);
    assert!(matches!(bytes.len(), 36 | 37), "{what}");
}
