//! One exchange of tokens: challenge, answer, proof of the server.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use quenda_proto::digest_md5::Facts;
use quenda_proto::jute::text_from_utf8;
use subtle::ConstantTimeEq;

use super::directives::Directives;
use super::users::{Password, SaslUsers};

/// The realm, which is also the host part of the URI: clients have it built in, whatever the server's name is.
const REALM: &str = "zk-sasl-md5";
/// The service and the host that a client must mean.
const URI: &str = "zookeeper/zk-sasl-md5";
/// Longest token that is looked at, in bytes.
const TOKEN_MAX: usize = 4096;

/// Where a connection is in its exchange. There is one in the life of a connection.
#[derive(Debug, Default)]
pub(crate) enum Exchange {
    /// Nothing was sent yet.
    #[default]
    Fresh,
    /// The nonce of the challenge that was sent.
    Challenged(Box<str>),
    /// It was answered, rightly or not.
    Over,
}

/// A token for the client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The client has to answer it.
    Challenge(Vec<u8>),
    /// The last one: the client is this user.
    Accepted {
        /// Proves to the client that the server knows the password.
        token: Vec<u8>,
        user: String,
    },
}

/// Why a token of a client is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SaslRefusal {
    /// It is longer than any answer is.
    #[error("the token is longer than {TOKEN_MAX} bytes")]
    TooLong,
    /// The exchange of this connection is over.
    #[error("the connection has had its exchange")]
    Over,
    /// The list of directives is malformed, or lacks one, or has one twice.
    #[error("the list of directives is malformed or not complete")]
    Format,
    /// A number in it is none, or the user's name is empty. The one refusal that closes the connection without a reply.
    #[error("a number is malformed, or the user's name is empty")]
    Broken,
    /// Something else was to be negotiated than what was offered.
    #[error("charset, realm, nonce, protection or URI is not the one that was offered")]
    Mismatch,
    /// There is no such user.
    #[error("no such user")]
    UnknownUser,
    /// The client does not know the password.
    #[error("wrong password")]
    WrongPassword,
}

impl Exchange {
    /// Takes a token of the client. What an early one holds does not count: there is no fast re-authentication.
    ///
    /// `meant` is set to the user that the client says it is, as soon as that is known.
    pub fn take(
        &mut self,
        token: &[u8],
        users: &dyn SaslUsers,
        meant: &mut Option<Box<str>>,
    ) -> Result<Step, SaslRefusal> {
        if token.len() > TOKEN_MAX {
            return Err(SaslRefusal::TooLong);
        }
        match std::mem::replace(self, Exchange::Over) {
            Exchange::Fresh => {
                let nonce = STANDARD.encode(users.nonce());
                let challenge = challenge(&nonce);
                *self = Exchange::Challenged(nonce.into());
                Ok(Step::Challenge(challenge))
            }
            Exchange::Challenged(nonce) => {
                let answer = Directives::parse(token)?;
                *meant = answer.username.as_deref().map(name_for_the_log);
                verify(&answer, &nonce, users)
            }
            Exchange::Over => Err(SaslRefusal::Over),
        }
    }
}

/// Longest piece of a user's name that is remembered for the log, in characters.
const NAME_MAX: usize = 64;

fn name_for_the_log(name: &[u8]) -> Box<str> {
    let name = text_from_utf8(name);
    name.chars().take(NAME_MAX).collect::<String>().into()
}

fn challenge(nonce: &str) -> Vec<u8> {
    format!("realm=\"{REALM}\",nonce=\"{nonce}\",charset=utf-8,algorithm=md5-sess").into_bytes()
}

/// The order of the checks decides only between the refusals with and without a reply.
fn verify(answer: &Directives, nonce: &str, users: &dyn SaslUsers) -> Result<Step, SaslRefusal> {
    demand(
        answer
            .charset
            .as_deref()
            .is_none_or(|charset| charset == b"utf-8"),
    )?;
    number(answer.maxbuf.as_deref(), 10)?;
    let user = text_from_utf8(given(&answer.username)?);
    demand(answer.realm.as_deref() == Some(REALM.as_bytes()))?;
    demand(given(&answer.nonce)? == nonce.as_bytes())?;
    let cnonce = given(&answer.cnonce)?;
    demand(number(answer.nonce_count.as_deref(), 16)?.is_none_or(|count| count == 1))?;
    demand(answer.qop.as_deref().is_none_or(|qop| qop == b"auth"))?;
    let uri = text_from_utf8(given(&answer.digest_uri)?);
    demand(is_same_but_for_case(&uri, URI))?;
    let response = given(&answer.response)?;
    if user.is_empty() {
        return Err(SaslRefusal::Broken);
    }
    let facts = Facts {
        user: &user,
        realm: REALM,
        nonce: nonce.as_bytes(),
        cnonce,
        uri: &uri,
        authzid: answer.authzid.as_deref(),
    };
    let token = prove(&facts, response, users.password(&user))?;
    let user = user.into_owned();
    Ok(Step::Accepted { token, user })
}

/// Takes as long for a user who does not exist.
fn prove(
    facts: &Facts<'_>,
    response: &[u8],
    password: Option<Password>,
) -> Result<Vec<u8>, SaslRefusal> {
    let known = password.is_some();
    let password = password.unwrap_or_else(|| Password::new("nobody's password"));
    let expected = facts.of_client(password.text());
    let right = bool::from(expected.as_slice().ct_eq(response));
    match (known, right) {
        (false, _) => Err(SaslRefusal::UnknownUser),
        (true, false) => Err(SaslRefusal::WrongPassword),
        (true, true) => Ok([b"rspauth=", &facts.of_server(password.text())[..]].concat()),
    }
}

fn demand(condition: bool) -> Result<(), SaslRefusal> {
    if condition {
        Ok(())
    } else {
        Err(SaslRefusal::Mismatch)
    }
}

fn given(value: &Option<Vec<u8>>) -> Result<&[u8], SaslRefusal> {
    value.as_deref().ok_or(SaslRefusal::Format)
}

fn number(digits: Option<&[u8]>, radix: u32) -> Result<Option<i32>, SaslRefusal> {
    let parse = |digits| i32::from_str_radix(&text_from_utf8(digits), radix);
    digits
        .map(parse)
        .transpose()
        .map_err(|_| SaslRefusal::Broken)
}

/// As Java compares: sign by sign, each in upper and then in lower case.
fn is_same_but_for_case(one: &str, other: &str) -> bool {
    one.chars().map(folded).eq(other.chars().map(folded))
}

fn folded(sign: char) -> char {
    let upper = only(sign, sign.to_uppercase());
    only(upper, upper.to_lowercase())
}

/// The one sign that another becomes; itself if it would become several.
fn only(sign: char, mut others: impl Iterator<Item = char>) -> char {
    match (others.next(), others.next()) {
        (Some(other), None) => other,
        _ => sign,
    }
}

#[cfg(test)]
mod tests;
