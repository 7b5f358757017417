//! Login by SASL's DIGEST-MD5, as Java's client does with a JAAS file.

use std::hash::{BuildHasher, Hasher, RandomState};

use quenda_proto::digest_md5::{Facts, NONCE_COUNT};
use quenda_proto::records::{GetSaslRequest, SetSaslResponse};
use quenda_proto::{Decode, Op, Reader};

use crate::{Error, SaslLogin, Wire, code_name};

/// The service and host that every client of this protocol means, whatever the server is called.
const URI: &str = "zookeeper/zk-sasl-md5";

/// Proves who the client is, on a connection that has no requests under way.
pub(crate) async fn login(wire: &mut Wire, login: &SaslLogin) -> Result<(), Error> {
    let refused = |why: &str| Error::AuthFailed(format!("SASL login of {}: {why}", login.user));
    let Some(challenge) = step(wire, 1, &[])
        .await
        .map_err(|error| said(error, login))?
    else {
        return Err(refused("the server takes no logins by SASL"));
    };
    let challenge = Challenge::parse(&challenge)
        .ok_or_else(|| refused("the server's challenge is none of DIGEST-MD5"))?;
    let nonce = fresh_nonce();
    let facts = Facts {
        user: &login.user,
        realm: &challenge.realm,
        nonce: challenge.nonce.as_bytes(),
        cnonce: nonce.as_bytes(),
        uri: URI,
        authzid: None,
    };
    let answer = answer(&facts, &challenge, &login.password);
    let last = step(wire, 2, answer.as_bytes()).await;
    let last = last.map_err(|error| said(error, login))?;
    let expected = [b"rspauth=", &facts.of_server(&login.password)[..]].concat();
    match last {
        Some(token) if token == expected => Ok(()),
        Some(_) | None => Err(refused(
            "the server has not shown that it knows the password",
        )),
    }
}

/// A refusal by a code is one of the identity; anything else is one of the connection.
fn said(error: Error, login: &SaslLogin) -> Error {
    match error.code() {
        Some(code) => Error::AuthFailed(format!(
            "SASL login of {}: the server answers {}, user or password are wrong",
            login.user,
            code_name(code)
        )),
        None => error,
    }
}

/// Sends a token and waits for the server's.
async fn step(wire: &mut Wire, xid: i32, token: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    wire.push(xid, Op::Sasl, &GetSaslRequest { token: Some(token) });
    loop {
        let mut reply = None;
        let moved = wire.exchange().await;
        wire.drain(|header, body| {
            if header.xid != xid {
                return Ok(());
            }
            if header.err != 0 {
                return Err(Error::Server {
                    op: Op::Sasl,
                    code: header.err,
                });
            }
            let response = SetSaslResponse::decode(&mut Reader::new(body))?;
            reply = Some(response.token.map(<[u8]>::to_vec));
            Ok(())
        })?;
        if let Some(token) = reply {
            return Ok(token);
        }
        moved?;
    }
}

/// What the server wants to have proved.
struct Challenge {
    realm: String,
    nonce: String,
    utf8: bool,
}

impl Challenge {
    fn parse(text: &[u8]) -> Option<Challenge> {
        let text = std::str::from_utf8(text).ok()?;
        let (mut realm, mut nonce, mut utf8, mut algorithm) = (None, None, false, None);
        let mut rest = text;
        while !rest.is_empty() {
            let (key, behind) = rest.split_once('=')?;
            let (value, behind) = value(behind)?;
            match key.trim() {
                "realm" => realm = realm.or(Some(value)),
                "nonce" => nonce = Some(value),
                "charset" => utf8 = value == "utf-8",
                "algorithm" => algorithm = Some(value),
                _ => {}
            }
            rest = behind.trim_start_matches([',', ' ', '\t']);
        }
        (algorithm? == "md5-sess").then_some(Challenge {
            realm: realm.unwrap_or_default(),
            nonce: nonce?,
            utf8,
        })
    }
}

/// A value, quoted or not, and what is behind it.
fn value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(',').unwrap_or(text.len());
        return Some((text[..end].trim().to_owned(), &text[end..]));
    };
    let mut value = String::new();
    let mut signs = quoted.char_indices();
    while let Some((at, sign)) = signs.next() {
        match sign {
            '"' => return Some((value, &quoted[at + 1..])),
            '\\' => value.push(signs.next()?.1),
            sign => value.push(sign),
        }
    }
    None
}

fn answer(facts: &Facts<'_>, challenge: &Challenge, password: &str) -> String {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let proof = facts.of_client(password);
    let charset = if challenge.utf8 { "charset=utf-8," } else { "" };
    format!(
        "{charset}username=\"{}\",realm=\"{}\",nonce=\"{}\",nc={},cnonce=\"{}\",digest-uri=\"{URI}\",maxbuf=65536,\
         response={},qop=auth",
        quoted(facts.user),
        quoted(&challenge.realm),
        quoted(&challenge.nonce),
        String::from_utf8_lossy(NONCE_COUNT),
        String::from_utf8_lossy(facts.cnonce),
        String::from_utf8_lossy(&proof),
    )
}

/// The client's share of what no listener can use twice; it is no secret.
fn fresh_nonce() -> String {
    let random = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", random(), random())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read() {
        let text = br#"realm="zk-sasl-md5",nonce="ab\"c=,",charset=utf-8,algorithm=md5-sess"#;
        let challenge = Challenge::parse(text).expect("a challenge");
        assert_eq!(challenge.realm, "zk-sasl-md5");
        assert_eq!(challenge.nonce, "ab\"c=,");
        assert!(challenge.utf8);
        assert!(Challenge::parse(b"nonce=\"a").is_none());
        assert!(Challenge::parse(b"realm=\"x\",algorithm=md5-sess").is_none());
        assert!(Challenge::parse(b"realm=\"x\",nonce=\"n\",algorithm=md5").is_none());
    }
}
