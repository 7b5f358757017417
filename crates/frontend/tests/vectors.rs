//! The byte vectors of the protocol's fact sheet, in their order: what a client sends and what it gets.
//! A dot stands for a hex digit that cannot agree: times, session ids and passwords.

mod driver;

use driver::Member;
use quenda_frontend::{CloseReason, Settings};

const OPEN: &str = "00000001 0000001f 00000005 776f726c64 00000006 616e796f6e65";
const TIME: &str = "000001a2........";
const SESSION: &str = "01..............";

fn digits(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

fn bytes(text: &str) -> Vec<u8> {
    let text = digits(text);
    let pairs = (0..text.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex digits"))
        .collect()
}

fn matches(got: &str, wanted: &str) -> bool {
    got.len() == wanted.len()
        && got
            .chars()
            .zip(wanted.chars())
            .all(|(g, w)| w == '.' || g == w)
}

/// Sends a frame and compares everything that comes, lengths included.
fn exchange(member: &mut Member, client: u64, request: &str, answers: &[String]) {
    let payload = &bytes(request)[4..];
    assert_eq!(bytes(request), driver::framed(payload), "a wrong length");
    member.send(client, &bytes(request));
    member.apply();
    let got: String = member
        .payloads(client)
        .iter()
        .flat_map(|payload| driver::framed(payload))
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let wanted = digits(&answers.concat());
    assert!(
        matches(&got, &wanted),
        "{request}\n got {got}\nwant {wanted}"
    );
}

fn stat(czxid: &str, mzxid: &str, version: &str, owner: &str, length: &str) -> String {
    format!(
        "{czxid} {mzxid} {TIME} {TIME} {version} 00000000 00000000 {owner} {length} 00000000 {czxid}"
    )
}

fn zxid(number: u32) -> String {
    format!("{number:016x}")
}

#[test]
fn handshakes() {
    let mut member = Member::default();
    let password = ".".repeat(32);
    let zeros = "0".repeat(32);
    let cases = [
        (
            format!(
                "0000002d 00000000 {0} 00002710 {0} 00000010 {zeros} 00",
                zxid(0)
            ),
            format!("00000025 00000000 00002710 {SESSION} 00000010 {password} 00"),
        ),
        (
            format!(
                "0000002c 00000000 {0} 00002710 {0} 00000010 {zeros}",
                zxid(0)
            ),
            format!("00000024 00000000 00002710 {SESSION} 00000010 {password}"),
        ),
        (
            format!(
                "0000002d 00000000 {} 00002710 {} 00000010 {zeros} 00",
                zxid(0),
                zxid(1)
            ),
            format!("00000025 00000000 00000000 {} 00000010 {zeros} 00", zxid(0)),
        ),
    ];
    for (request, answer) in cases {
        let client = member.accept();
        exchange(&mut member, client, &request, &[answer]);
    }
}

#[test]
fn a_conversation() {
    let mut member = Member::new(Settings::default());
    let (client, _) = (member.client(), member.client());
    let mut exchange = |request: &str, answers: &[String]| {
        exchange(&mut member, client, request, answers);
    };
    let none = zxid(0);
    exchange(
        &format!("00000033 00000001 00000001 00000002 2f76 00000002 6869 {OPEN} 00000000"),
        &["00000016 00000001 0000000000000003 00000000 00000002 2f76".to_owned()],
    );
    exchange(
        &format!("00000033 00000002 00000001 00000002 2f76 00000002 6869 {OPEN} 00000000"),
        &["00000010 00000002 0000000000000004 ffffff92".to_owned()],
    );
    exchange(
        &format!("00000032 00000003 0000000f 00000003 2f762d 00000000 {OPEN} 00000003"),
        &[
            "00000065 00000003 0000000000000005 00000000 0000000d 2f762d30303030303030303031"
                .to_owned(),
            stat(&zxid(5), &zxid(5), "00000000", SESSION, "00000000"),
        ],
    );
    exchange(
        "0000000f 00000004 00000004 00000002 2f76 01",
        &[
            "0000005a 00000004 0000000000000005 00000000 00000002 6869".to_owned(),
            stat(&zxid(3), &zxid(3), "00000000", &none, "00000002"),
        ],
    );
    exchange(
        "00000012 00000005 00000003 00000005 2f6e6f7065 00",
        &["00000010 00000005 0000000000000005 ffffff9b".to_owned()],
    );
    exchange(
        "00000018 00000014 00000005 00000002 2f76 00000002 796f 00000000",
        &[
            "0000001e ffffffff 0000000000000006 00000000 00000003 00000003 00000002 2f76"
                .to_owned(),
            "00000054 00000014 0000000000000006 00000000".to_owned(),
            stat(&zxid(3), &zxid(6), "00000001", &none, "00000002"),
        ],
    );
    exchange(
        "00000008 fffffffe 0000000b",
        &["00000010 fffffffe 0000000000000006 00000000".to_owned()],
    );
    exchange(
        "0000001d fffffffc 00000064 00000000 00000006 646967657374 00000003 753a70",
        &["00000010 fffffffc 0000000000000000 00000000".to_owned()],
    );
    exchange(
        "00000022 fffffff8 00000065 0000000000000000 00000001 00000002 2f76 00000000 00000000",
        &[
            "0000001e ffffffff ffffffffffffffff 00000000 00000003 00000003 00000002 2f76"
                .to_owned(),
            "00000010 fffffff8 0000000000000006 00000000".to_owned(),
        ],
    );
    exchange(
        "00000012 00000007 0000006a 00000002 2f76 00000000",
        &["00000014 00000007 0000000000000006 00000000 00000000".to_owned()],
    );
    exchange(
        "00000008 00000008 0000006b",
        &[
            "00000036 00000008 0000000000000006 00000000 00000002 00000002 6970 00000009
            3132372e302e302e31 00000006 646967657374 00000001 75"
                .to_owned(),
        ],
    );
}

#[test]
fn multis_and_the_end() {
    let mut member = Member::default();
    let client = member.client();
    let setup = driver::requests::create(1, "/v");
    member.ok(client, &setup);
    member.ok(client, &driver::requests::add_watch(2, "/v", 0));
    let children_changed = |number| {
        let zxid = zxid(number);
        format!("0000001e ffffffff {zxid} 00000000 00000004 00000003 00000002 2f76")
    };
    let request = format!(
        "0000006d 00000009 0000000e
         0000000d 00 ffffffff 00000002 2f76 ffffffff
         00000001 00 ffffffff 00000004 2f762f61 00000000 {OPEN} 00000000
         00000002 00 ffffffff 00000004 2f762f61 ffffffff
         ffffffff 01 ffffffff"
    );
    exchange(
        &mut member,
        client,
        &request,
        &[
            children_changed(3),
            children_changed(3),
            "0000003c 00000009 0000000000000003 00000000 0000000d 00 00000000
             00000001 00 00000000 00000004 2f762f61 00000002 00 00000000 ffffffff 01 ffffffff"
                .to_owned(),
        ],
    );
    exchange(
        &mut member,
        client,
        "0000004d 0000000a 0000000e
         0000000d 00 ffffffff 00000002 2f76 ffffffff
         00000002 00 ffffffff 00000005 2f6e6f7065 ffffffff
         0000000d 00 ffffffff 00000002 2f76 ffffffff
         ffffffff 01 ffffffff",
        &["00000040 0000000a 0000000000000004 00000000
           ffffffff 00 00000000 00000000 ffffffff 00 ffffff9b ffffff9b
           ffffffff 00 fffffffe fffffffe ffffffff 01 ffffffff"
            .to_owned()],
    );
    exchange(
        &mut member,
        client,
        "00000012 0000000b 00000002 00000002 2f76 00000009",
        &["00000010 0000000b 0000000000000005 ffffff99".to_owned()],
    );
    exchange(
        &mut member,
        client,
        "00000008 0000000c fffffff5",
        &["00000010 0000000c 0000000000000006 00000000".to_owned()],
    );
    assert_eq!(member.wants_close(client), Some(CloseReason::ClientClosed));
}
