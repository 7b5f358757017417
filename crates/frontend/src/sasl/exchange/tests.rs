//! What a genuine ZooKeeper makes of the answers of clients, compared byte by byte.

use std::collections::BTreeMap;

use super::*;
use crate::sasl::NONCE_BYTES;

struct Users {
    passwords: BTreeMap<String, String>,
    nonce: [u8; NONCE_BYTES],
}

impl SaslUsers for Users {
    fn nonce(&self) -> [u8; NONCE_BYTES] {
        self.nonce
    }

    fn password(&self, user: &str) -> Option<Password> {
        self.passwords.get(user).map(|text| Password::new(text))
    }
}

/// The goldens' notation: `\xHH` is a byte.
fn bytes(text: &str) -> Vec<u8> {
    let mut pieces = text.split("\\x");
    let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        bytes.push(u8::from_str_radix(&piece[..2], 16).expect("two digits"));
        bytes.extend_from_slice(&piece.as_bytes()[2..]);
    }
    bytes
}

fn text(text: &str) -> String {
    String::from_utf8(bytes(text)).expect("UTF-8")
}

/// Lines that begin with a word, their other columns.
fn lines<'a>(golden: &'a str, word: &'a str) -> impl Iterator<Item = Vec<&'a str>> {
    golden.lines().filter_map(move |line| {
        let columns = line.strip_prefix(word)?.strip_prefix('\t')?;
        Some(columns.split('\t').collect())
    })
}

const GOLDEN: &str = include_str!("../../../tests/golden/digest_md5.txt");

fn users(golden: &str) -> Users {
    let passwords = lines(golden, "user").map(|user| (text(user[0]), text(user[1])));
    let challenge = lines(golden, "challenge").next().expect("a challenge");
    let nonce = challenge[0].split('"').nth(3).expect("a nonce");
    Users {
        passwords: passwords.collect(),
        nonce: STANDARD
            .decode(nonce)
            .expect("base64")
            .try_into()
            .expect("30 bytes"),
    }
}

fn challenged(users: &Users) -> (Exchange, Vec<u8>) {
    let mut exchange = Exchange::default();
    match exchange.take(b"", users, &mut None) {
        Ok(Step::Challenge(token)) => (exchange, token),
        other => panic!("no challenge but {other:?}"),
    }
}

/// In the words of the goldens.
fn verdict(answer: &[u8], users: &Users) -> (&'static str, Vec<u8>, String) {
    let (mut exchange, _) = challenged(users);
    match exchange.take(answer, users, &mut None) {
        Ok(Step::Accepted { token, user }) => ("accepted", token, user),
        Err(SaslRefusal::Broken) => ("broken", Vec::new(), String::new()),
        Err(_) => ("refused", Vec::new(), String::new()),
        Ok(Step::Challenge(token)) => panic!("a second challenge: {token:?}"),
    }
}

#[test]
fn the_challenge_is_the_recorded_one() {
    let expected = lines(GOLDEN, "challenge").next().expect("a challenge");
    let (_, token) = challenged(&users(GOLDEN));
    assert_eq!(token, bytes(expected[0]));
}

#[test]
fn answers_are_judged_as_recorded() {
    let users = users(GOLDEN);
    let mut seen = BTreeMap::new();
    for word in ["accepted", "refused", "broken"] {
        for columns in lines(GOLDEN, word) {
            let expected = (word, bytes(columns[0]), text(columns[1]));
            let found = verdict(&bytes(columns[2]), &users);
            assert_eq!(found, expected, "{}", columns[2]);
            *seen.entry(word).or_insert(0) += 1;
        }
    }
    assert!(seen["accepted"] > 150 && seen["refused"] > 400, "{seen:?}");
    assert!(seen["broken"] > 10, "{seen:?}");
}

#[test]
fn an_initial_response_is_not_looked_at() {
    let users = users(GOLDEN);
    let first = Exchange::default().take(b"username=\"bob\"", &users, &mut None);
    assert!(matches!(first, Ok(Step::Challenge(_))), "{first:?}");
}

#[test]
fn a_long_token_leaves_the_exchange_where_it_was() {
    let users = users(GOLDEN);
    let mut exchange = Exchange::default();
    let long = vec![b','; TOKEN_MAX + 1];
    assert_eq!(
        exchange.take(&long, &users, &mut None),
        Err(SaslRefusal::TooLong)
    );
    assert!(matches!(
        exchange.take(b"", &users, &mut None),
        Ok(Step::Challenge(_))
    ));
}

#[test]
fn there_is_one_exchange_whatever_its_outcome() {
    let users = users(GOLDEN);
    for word in ["accepted", "refused"] {
        let columns = lines(GOLDEN, word).next().expect("a line");
        let (mut exchange, _) = challenged(&users);
        let _ = exchange.take(&bytes(columns[2]), &users, &mut None);
        for token in [bytes(""), bytes(columns[2])] {
            assert_eq!(
                exchange.take(&token, &users, &mut None),
                Err(SaslRefusal::Over)
            );
        }
    }
}

#[test]
fn the_log_can_tell_who_was_refused_for_what() {
    let mut users = users(GOLDEN);
    let right = lines(GOLDEN, "accepted").next().expect("a line")[2];
    let take = |users: &Users| challenged(users).0.take(&bytes(right), users, &mut None);
    users.passwords.insert("bob".to_owned(), "other".to_owned());
    assert_eq!(take(&users), Err(SaslRefusal::WrongPassword));
    users.passwords.remove("bob");
    assert_eq!(take(&users), Err(SaslRefusal::UnknownUser));
}

#[test]
fn no_answer_breaks_the_server() {
    const SIGNS: &[u8] = b"=,\"\\ \t\0\xff01aqnu-";
    let users = users(GOLDEN);
    let right = bytes(lines(GOLDEN, "accepted").next().expect("a line")[2]);
    let mut state = 1_u64;
    let mut below = |bound: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % bound
    };
    for _ in 0..20_000 {
        let mut answer = right[..below(right.len() + 1)].to_vec();
        for _ in 0..below(6) {
            let at = below(answer.len() + 1);
            answer.insert(at, SIGNS[below(SIGNS.len())]);
        }
        let (_, token, user) = verdict(&answer, &users);
        assert!(token.is_empty() || user == "bob", "{answer:?}");
    }
}

#[test]
fn who_fails_is_remembered_with_a_bounded_name() {
    let users = users(GOLDEN);
    for (name, expected) in [
        ("bob", "bob".to_owned()),
        (&*"ä".repeat(500), "ä".repeat(64)),
    ] {
        let mut meant = None;
        let mut exchange = Exchange::default();
        exchange.take(b"", &users, &mut meant).expect("a challenge");
        assert_eq!(meant, None);
        let answer = format!("username=\"{name}\"");
        exchange
            .take(answer.as_bytes(), &users, &mut meant)
            .expect_err("an incomplete answer");
        assert_eq!(meant.as_deref(), Some(&*expected));
    }
}
