//! The conversation that was recorded with a genuine ZooKeeper 3.9.5, held with us: every byte of every
//! reply and event is the same, but for times, session ids and passwords.

mod driver;

use std::collections::BTreeMap;
use std::path::Path;

use bytes::BytesMut;
use driver::{Member, connect, framed, requests};
use quenda_frontend::{CloseReason, ServiceMode, Settings};
use quenda_proto::records::{GetChildren2Response, GetChildrenResponse, GetDataResponse};
use quenda_proto::{Decode, Encode, Op, Reader};

/// What the client sent under one name, and what it got: events first.
struct Exchange {
    name: String,
    request: Vec<u8>,
    answers: Vec<Vec<u8>>,
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).expect("hex digits");
        u8::from_str_radix(pair, 16).expect("hex digits")
    };
    digits.map(byte).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn exchanges(file: &str) -> Vec<Exchange> {
    // From the crate's own folder, where cargo runs tests; not where this was compiled.
    let folder = Path::new("../proto/tests/golden");
    let text = std::fs::read_to_string(folder.join(file)).expect("a recorded file");
    let mut exchanges: Vec<Exchange> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [name, direction, payload] = fields[..] else {
            panic!("{file}: {line}");
        };
        if direction == ">" {
            exchanges.push(Exchange {
                name: name.to_owned(),
                request: unhex(payload),
                answers: Vec::new(),
            });
        } else {
            let last = exchanges.last_mut().expect("a request before its answer");
            assert_eq!(last.name, name);
            last.answers.push(unhex(payload));
        }
    }
    exchanges
}

/// The same text for values that cannot agree: times lie in the same 49 days in both.
fn mask(payload: &str, session: &str) -> String {
    let mut masked = payload.replace(session, "<session owner>");
    while let Some(at) = masked.find("000001a2") {
        masked.replace_range(at..at + 16, "<time>");
    }
    // The children in the one reply of a multiRead: servers send them in any order.
    masked.replace("00000001740000000163", "00000001630000000174")
}

/// Children in order of their names: servers send them in any order.
fn sorted(op: Option<Op>, payload: &[u8]) -> Vec<u8> {
    let (header, body) = payload.split_at(16);
    if body.is_empty() {
        return payload.to_vec();
    }
    let mut out = BytesMut::from(header);
    let mut reader = Reader::new(body);
    match op {
        Some(Op::GetChildren) => {
            let mut response = GetChildrenResponse::decode(&mut reader).expect("a response");
            response.children.as_mut().expect("not null").sort();
            response.encode(&mut out);
        }
        Some(Op::GetChildren2) => {
            let mut response = GetChildren2Response::decode(&mut reader).expect("a response");
            response.children.as_mut().expect("not null").sort();
            response.encode(&mut out);
        }
        _ => return payload.to_vec(),
    }
    out.to_vec()
}

fn op_of(request: &[u8]) -> Option<Op> {
    let code = request[4..8].try_into().expect("a request header");
    Op::from_code(i32::from_be_bytes(code))
}

/// Holds the handshakes; returns the connections by name.
fn shake_hands(member: &mut Member) -> BTreeMap<String, u64> {
    let mut connections = BTreeMap::new();
    let mut to_resume = (Vec::new(), Vec::new());
    for exchange in exchanges("handshake.txt") {
        let mut request = exchange.request;
        if exchange.name == "resume_granted" {
            let (session, password): &(Vec<u8>, Vec<u8>) = &to_resume;
            request[16..24].copy_from_slice(session);
            request[28..44].copy_from_slice(password);
        }
        let client = member.accept();
        member.send(client, &framed(&request));
        member.apply();
        let got = member.payloads(client);
        let [answer] = &exchange.answers[..] else {
            panic!("{}: one answer was recorded", exchange.name);
        };
        assert_eq!(got.len(), 1, "{}", exchange.name);
        assert_eq!(got[0].len(), answer.len(), "{}", exchange.name);
        // Version, timeout, then behind session and password the read-only byte.
        assert_eq!(got[0][..8], answer[..8], "{}", exchange.name);
        assert_eq!(got[0][16..20], answer[16..20], "{}", exchange.name);
        assert_eq!(got[0][36..], answer[36..], "{}", exchange.name);
        let refused = answer[8..16] == [0; 8];
        assert_eq!(refused, got[0][8..16] == [0; 8], "{}", exchange.name);
        assert_eq!(refused, got[0][20..36] == [0; 16], "{}", exchange.name);
        if exchange.name == "resume_granted" {
            assert_eq!(got[0][8..16], to_resume.0);
            assert_eq!(got[0][20..36], to_resume.1);
        }
        to_resume = (got[0][8..16].to_vec(), got[0][20..36].to_vec());
        connections.insert(exchange.name, client);
    }
    connections
}

/// Where we differ on purpose: the reply without its zxid, which we do not take.
fn deviation(name: &str) -> Option<(&'static str, &'static str)> {
    match name {
        // A client may not remove containers.
        "delete_container" => Some(("0000002b", "fffffff8")),
        _ => None,
    }
}

#[test]
fn the_recorded_conversation_goes_the_same_way() {
    let mut member = Member::new(Settings {
        session_timeout_min_ms: 1_000,
        session_timeout_max_ms: 60_000,
        ..Settings::default()
    });
    member.time_ms = 0x1a2_298c_46c7;
    let connections = shake_hands(&mut member);
    let client = connections["connect_new_form"];
    let other = connections["connect_to_resume"];
    assert_eq!(
        member.wants_close(other),
        Some(quenda_frontend::CloseReason::SessionMoved)
    );
    let other = connections["connect_old_form"];
    let session = format!("{:016x}", member.session(client));
    let mut held = 0;
    for file in ["create", "read", "write", "auth", "watch", "multi"] {
        for exchange in exchanges(&format!("{file}.txt")) {
            member.send(client, &framed(&exchange.request));
            member.apply();
            let got = member.payloads(client);
            if let Some((xid, error)) = deviation(&exchange.name) {
                let reply = hex(&got[0]);
                assert_eq!((&reply[..8], &reply[24..]), (xid, error));
                // Keeps the zxids in step: whatever fails takes one.
                member.call(other, &requests::delete(1, "/nope"));
                continue;
            }
            let op = op_of(&exchange.request);
            let ours: Vec<String> = got
                .iter()
                .map(|payload| mask(&hex(&sorted(op, payload)), &session))
                .collect();
            let theirs: Vec<String> = exchange
                .answers
                .iter()
                .map(|payload| mask(&hex(&sorted(op, payload)), "0100000c88260000"))
                .collect();
            assert_eq!(ours, theirs, "{}", exchange.name);
            held += 1;
        }
    }
    assert!(held >= 72, "only {held} exchanges were recorded");
}

/// Exchanges that end a connection, each on its own.
#[test]
fn the_recorded_ends_go_the_same_way() {
    for exchange in exchanges("session.txt") {
        let mut member = Member::default();
        let client = member.client();
        member.send(client, &framed(&exchange.request));
        member.apply();
        let got = member.payloads(client);
        let without_zxid = |payload: &Vec<u8>| (payload[..4].to_vec(), payload[12..].to_vec());
        assert_eq!(
            got.iter().map(without_zxid).collect::<Vec<_>>(),
            exchange
                .answers
                .iter()
                .map(without_zxid)
                .collect::<Vec<_>>(),
            "{}",
            exchange.name
        );
        let ends = !exchange.name.starts_with("ping");
        assert_eq!(member.wants_close(client).is_some(), ends);
        if op_of(&exchange.request).is_none() || exchange.name == "check_alone" {
            assert_eq!(got[0][4..12], [0xFF; 8]);
        }
    }
}

/// The data in the answer to the first read: the text of the configuration, whose lines found the ensemble.
fn recorded_config(exchange: &Exchange) -> String {
    let mut reader = Reader::new(&exchange.answers[0][16..]);
    let response = GetDataResponse::decode(&mut reader).expect("a response");
    let text = String::from_utf8(response.data.expect("data").to_vec()).expect("a text");
    let (lines, version) = text.rsplit_once('\n').expect("lines");
    assert_eq!(version, "version=100000000");
    lines.to_owned()
}

#[test]
fn the_recorded_reconfigurations_go_the_same_way() {
    let exchanges = exchanges("reconfig.txt");
    let settings = Settings {
        reconfig_enabled: true,
        super_digest: Some("super:D/InIHSb7yEEbrWz8b9l71RjZJU=".to_owned()),
        ..Settings::default()
    };
    let mut member = Member::in_ensemble(settings, &recorded_config(&exchanges[0]));
    member.time_ms = 0x1a2_2a8c_46c7;
    let (by_super, plain) = (member.client(), member.client());
    for exchange in &exchanges {
        let client = match exchange.name.starts_with("plain_") {
            true => plain,
            false => by_super,
        };
        member.send(client, &framed(&exchange.request));
        member.apply();
        let masked = |payload: &Vec<u8>| mask(&hex(payload), "<none>");
        let ours: Vec<String> = member.payloads(client).iter().map(masked).collect();
        let theirs: Vec<String> = exchange.answers.iter().map(masked).collect();
        assert_eq!(ours, theirs, "{}", exchange.name);
    }
    assert!(
        exchanges.len() >= 70,
        "only {} were recorded",
        exchanges.len()
    );
}

/// The zxids of a reply as they are here: the recorded session had not taken one.
fn shifted(payload: &[u8]) -> String {
    let (xid, rest) = payload.split_at(4);
    hex(xid) + &hex(rest).replace("0000000100000001", "0000000100000002")
}

#[test]
fn the_recorded_read_only_service_goes_the_same_way() {
    let mut member = Member::in_ensemble(Settings::default(), "server.1=a:1:2;3\nserver.2=b:1:2;3");
    member.time_ms = 0x1a2_2a8c_46c7;
    let client = member.client();
    let record = requests::create_record("/there", b"data", requests::open(), 0);
    member.ok(client, &driver::request(1, Op::Create, &record));
    member.disconnect(client);
    member.service = ServiceMode::ReadOnly;
    let mut client = 0;
    let mut granted: BTreeMap<String, (Vec<u8>, Vec<u8>)> = BTreeMap::new();
    for exchange in exchanges("read_only.txt") {
        let mut request = exchange.request.clone();
        let name = exchange.name.as_str();
        if matches!(name, "connect" | "resume_refused" | "resume") {
            if let ("resume", Some((session, password))) = (name, granted.get("connect")) {
                request[16..24].copy_from_slice(session);
                request[28..44].copy_from_slice(password);
            }
            client = member.accept();
        }
        if name == "close_session" {
            client = member.accept();
            member.send(client, &connect(0, 10_000, 0, None, Some(true)));
            member.payloads(client);
        }
        member.send(client, &framed(&request));
        assert_eq!(member.proposed(), 0, "{name}");
        let mut ours = member.payloads(client);
        let mut theirs = exchange.answers.clone();
        if matches!(name, "connect" | "resume") {
            let given: Vec<u8> = ours[0][8..36].to_vec();
            granted.insert(name.to_owned(), (given[..8].to_vec(), given[12..].to_vec()));
            for payload in [&mut ours[0], &mut theirs[0]] {
                payload[8..16].fill(0);
                payload[20..36].fill(0);
            }
        }
        let ours: Vec<String> = ours
            .iter()
            .map(|payload| mask(&hex(payload), "<none>"))
            .collect();
        let theirs: Vec<String> = theirs
            .iter()
            .map(|payload| mask(&shifted(payload), "<none>"))
            .collect();
        assert_eq!(ours, theirs, "{name}");
    }
    assert_eq!(
        granted["connect"], granted["resume"],
        "it is the same session"
    );
    assert_eq!(member.wants_close(client), Some(CloseReason::ClientClosed));
}
