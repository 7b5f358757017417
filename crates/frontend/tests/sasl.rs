//! Clients that authenticate by SASL.

mod driver;

use driver::{Member, Users, acl, raw, requests::*};
use quenda_frontend::{CloseReason, Limits, NONCE_BYTES, SaslRefusal, Settings};
use quenda_proto::records::SetSaslResponse;
use quenda_proto::{ErrorCode, Op};
use quenda_tree::Identity;

/// A recorded exchange: the frames of the client, each with its answer.
struct Exchange {
    name: String,
    frames: Vec<(Vec<u8>, Vec<u8>)>,
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).expect("hex digits");
        u8::from_str_radix(pair, 16).expect("hex digits")
    };
    digits.map(byte).collect()
}

fn recorded() -> Vec<Exchange> {
    // From the crate's own folder, where cargo runs tests; not where this was compiled.
    let text = std::fs::read_to_string("tests/golden/sasl_clients.txt").expect("a recorded file");
    let mut exchanges: Vec<Exchange> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some(request) = line.strip_prefix("> ") {
            let last = exchanges.last_mut().expect("a name first");
            last.frames.push((unhex(request), Vec::new()));
        } else if let Some(answer) = line.strip_prefix("< ") {
            let last = exchanges.last_mut().expect("a name first");
            last.frames.last_mut().expect("a request").1 = unhex(answer);
        } else {
            exchanges.push(Exchange {
                name: line.to_owned(),
                frames: Vec::new(),
            });
        }
    }
    exchanges
}

/// The bytes that make the nonce of a recorded challenge.
fn nonce(challenge: &[u8]) -> [u8; NONCE_BYTES] {
    let text = String::from_utf8_lossy(challenge);
    let nonce = text.split('"').nth(3).expect("a nonce");
    let digit = |sign: u8| match sign {
        b'A'..=b'Z' => sign - b'A',
        b'a'..=b'z' => sign - b'a' + 26,
        b'0'..=b'9' => sign - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut bytes = Vec::new();
    for group in nonce.as_bytes().chunks(4) {
        let bits = group
            .iter()
            .fold(0, |bits, sign| bits << 6 | u32::from(digit(*sign)));
        bytes.extend_from_slice(&bits.to_be_bytes()[1..]);
    }
    bytes.try_into().expect("30 bytes")
}

fn member(settings: Settings, exchange: &Exchange) -> Member {
    let mut member = Member::new(settings);
    let passwords = [("bob", "bobsecret"), ("zo\u{eb}", "cl\u{e9}")];
    let passwords = passwords.map(|(user, password)| (user.to_owned(), password.to_owned()));
    member.sasl = Some(Users {
        passwords: passwords.into(),
        nonce: nonce(&exchange.frames[0].1),
    });
    member
}

fn settings() -> Settings {
    Settings {
        sasl_enabled: true,
        ..Settings::default()
    }
}

/// A recorded exchange in which bob succeeds, or does not.
fn of_bob(succeeds: bool) -> Exchange {
    let is_so = |exchange: &Exchange| {
        let last = &exchange.frames.last().expect("frames").1;
        exchange.name == "java as bob" && (last[12..16] == [0; 4]) == succeeds
    };
    recorded().into_iter().find(is_so).expect("one of them")
}

/// A client that has gone through a recorded exchange; the last answer is left to be looked at.
fn replayed(member: &mut Member, exchange: &Exchange) -> u64 {
    let client = member.client();
    for (request, _) in &exchange.frames {
        member.payloads(client);
        member.send(client, &driver::framed(request));
    }
    client
}

fn authenticated(settings: Settings) -> (Member, u64) {
    let exchange = of_bob(true);
    let mut member = member(settings, &exchange);
    let bob = replayed(&mut member, &exchange);
    assert_eq!(member.payloads(bob), [exchange.frames[1].1.clone()]);
    (member, bob)
}

#[test]
fn recorded_clients_get_the_recorded_answers() {
    let exchanges = recorded();
    assert_eq!(exchanges.len(), 6);
    for exchange in &exchanges {
        let mut member = member(settings(), exchange);
        let client = member.client();
        for (request, answer) in &exchange.frames {
            member.send(client, &driver::framed(request));
            assert_eq!(
                member.payloads(client),
                std::slice::from_ref(answer),
                "{}",
                exchange.name
            );
        }
    }
}

#[test]
fn the_user_is_an_identity_that_lists_name() {
    let (mut member, bob) = authenticated(settings());
    let identities = member.connection(bob).identities();
    assert_eq!(identities[1..], [Identity::new("sasl", "bob")]);
    let other = member.client();
    let list = |scheme, id| Some(vec![acl(31, scheme, id)]);
    member.ok(bob, &create_with(1, "/named", list("sasl", "bob"), 0));
    member.ok(bob, &create_with(2, "/auth", list("auth", ""), 0));
    for path in ["/named", "/auth"] {
        member.ok(bob, &get(3, path, false));
        member.expect(other, &get(3, path, false), ErrorCode::NoAuth);
    }
    let malformed = create_with(4, "/no", list("sasl", "a@b@c"), 0);
    member.expect(bob, &malformed, ErrorCode::InvalidAcl);
}

#[test]
fn without_the_scheme_lists_cannot_name_users() {
    let (mut member, bob) = authenticated(Settings::default());
    let list = Some(vec![acl(31, "sasl", "bob")]);
    member.expect(bob, &create_with(1, "/no", list, 0), ErrorCode::InvalidAcl);
}

#[test]
fn a_super_user_passes_every_check() {
    let (mut member, bob) = authenticated(Settings {
        sasl_super_users: vec!["ann".to_owned(), "bob".to_owned()],
        ..settings()
    });
    let expected = [Identity::new("sasl", "bob"), Identity::new("super", "")];
    assert_eq!(member.connection(bob).identities()[1..], expected);
    let nobodys = create_with(1, "/nobodys", Some(vec![acl(0, "world", "anyone")]), 0);
    member.ok(bob, &nobodys);
    member.ok(bob, &get(2, "/nobodys", false));
}

/// `letAnySaslUserDoX`.
#[test]
fn an_id_may_stand_for_every_user() {
    let (mut member, bob) = authenticated(Settings {
        sasl_any_user: Some("anybody".to_owned()),
        ..settings()
    });
    let other = member.client();
    let list = |scheme, id| Some(vec![acl(31, scheme, id)]);
    member.ok(bob, &create_with(1, "/shared", list("sasl", "anybody"), 0));
    member.ok(bob, &set(2, "/shared", b"x"));
    member.expect(other, &get(3, "/shared", false), ErrorCode::NoAuth);
    member.ok(bob, &create_with(4, "/ann", list("sasl", "ann"), 0));
    member.expect(bob, &get(5, "/ann", false), ErrorCode::NoAuth);
    // It is no identity of the user's own: neither shown, nor what `auth` stands for.
    let shown = member.ok(bob, &who_am_i(6)).body;
    assert!(
        !String::from_utf8_lossy(&shown).contains("any"),
        "{shown:?}"
    );
    member.ok(bob, &create_with(7, "/bobs", list("auth", ""), 0));
    let lists = member.ok(bob, &get_acl(8, "/bobs")).body;
    let lists = String::from_utf8_lossy(&lists).into_owned();
    assert!(lists.contains("bob") && !lists.contains("any"), "{lists}");
}

/// Answers the challenge wrongly; gives the answer and why the connection ends.
fn refused(settings: Settings) -> (Vec<u8>, Option<CloseReason>) {
    let exchange = of_bob(false);
    let mut member = member(settings, &exchange);
    let client = replayed(&mut member, &exchange);
    let answer = member.payloads(client).remove(0);
    (answer, member.wants_close(client))
}

#[test]
fn what_a_failure_costs_is_a_matter_of_settings() {
    let demanding = |scheme: &str| Settings {
        enforce_auth: vec![scheme.to_owned()],
        ..settings()
    };
    let tolerant = |settings| Settings {
        allow_sasl_failed_clients: true,
        ..settings
    };
    let closed = Some(CloseReason::Sasl(SaslRefusal::WrongPassword));
    for (settings, error, close) in [
        (settings(), ErrorCode::AuthFailed, closed),
        (demanding("digest"), ErrorCode::AuthFailed, closed),
        (
            demanding("sasl"),
            ErrorCode::SessionClosedRequireSaslAuth,
            closed,
        ),
        (tolerant(settings()), ErrorCode::Ok, None),
        (tolerant(demanding("digest")), ErrorCode::Ok, None),
        (
            tolerant(demanding("sasl")),
            ErrorCode::SessionClosedRequireSaslAuth,
            closed,
        ),
    ] {
        let (answer, reason) = refused(settings.clone());
        assert_eq!(answer[4..12], [0; 8], "the zxid of {settings:?}");
        assert_eq!(answer[12..16], (error as i32).to_be_bytes(), "{settings:?}");
        assert_eq!(answer[16..], [0xff; 4], "{settings:?}");
        assert_eq!(reason, close, "{settings:?}");
    }
}

#[test]
fn a_broken_number_closes_without_an_answer() {
    let exchange = of_bob(true);
    let mut member = member(settings(), &exchange);
    let client = member.client();
    member.send(client, &driver::framed(&exchange.frames[0].0));
    member.payloads(client);
    member.send(client, &raw(2, Op::Sasl.code(), b"\0\0\0\x08maxbuf=x"));
    assert!(member.payloads(client).is_empty());
    let reason = Some(CloseReason::Sasl(SaslRefusal::Broken));
    assert_eq!(member.wants_close(client), reason);
}

#[test]
fn where_sasl_is_demanded_it_opens_the_way() {
    let (mut member, bob) = authenticated(Settings {
        enforce_auth: vec!["sasl".to_owned()],
        ..settings()
    });
    member.ok(bob, &get(3, "/", false));
    let other = member.client();
    let error = ErrorCode::SessionClosedRequireSaslAuth;
    member.expect(other, &get(3, "/", false), error);
    assert_eq!(member.wants_close(other), Some(CloseReason::AuthRequired));
}

#[test]
fn without_users_the_answer_is_no_token() {
    let mut member = Member::new(settings());
    let client = member.client();
    for token in [&b"\0\0\0\0"[..], b"\0\0\0\x01x"] {
        let reply = member.ok(client, &raw(1, Op::Sasl.code(), token));
        let SetSaslResponse { token } = reply.decode();
        assert_eq!((token, reply.zxid), (None, 0));
    }
}

#[test]
fn a_user_counts_among_the_bounded_identities() {
    let exchange = of_bob(true);
    let limits = Limits {
        identities_max: 1,
        ..Limits::default()
    };
    let mut member = member(
        Settings {
            limits,
            ..settings()
        },
        &exchange,
    );
    let client = replayed(&mut member, &exchange);
    let answer = member.payloads(client).remove(0);
    assert_eq!(answer[12..16], (ErrorCode::AuthFailed as i32).to_be_bytes());
    assert_eq!(member.wants_close(client), Some(CloseReason::AuthFailed));
}

#[test]
fn another_hash_of_digests() {
    use quenda_tree::identity::DigestAlgorithm;
    let mut member = Member::new(Settings {
        digest_algorithm: DigestAlgorithm::Sha256,
        super_digest: Some("u:/Y8xRBngpX5duYn15uUqIRaIaCviy5TEwSk419hCwuA=".to_owned()),
        ..Settings::default()
    });
    let client = member.client();
    member.ok(client, &auth("digest", b"u:p"));
    let identities = member.connection(client).identities();
    assert_eq!(
        &*identities[1].id,
        "u:/Y8xRBngpX5duYn15uUqIRaIaCviy5TEwSk419hCwuA="
    );
    assert!(identities[2].is_super());
}
