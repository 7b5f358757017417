//! SASL's mechanism DIGEST-MD5, what client and server have in common: the hashes of RFC 2831, section 2.1.2.1, for
//! quality of protection "auth".

use std::borrow::Cow;

use md5::{Digest, Md5};

/// What both sides know when they prove that they know the password.
#[derive(Debug)]
pub struct Facts<'a> {
    /// Name of the user.
    pub user: &'a str,
    /// Realm of the challenge.
    pub realm: &'a str,
    /// The server's share of randomness.
    pub nonce: &'a [u8],
    /// The client's share of randomness.
    pub cnonce: &'a [u8],
    /// Service and host that the client means.
    pub uri: &'a str,
    /// Whom the client wants to act for, if another.
    pub authzid: Option<&'a [u8]>,
}

/// The count of the only answer that a nonce is good for.
pub const NONCE_COUNT: &[u8] = b"00000001";

impl Facts<'_> {
    /// What a client sends that knows the password.
    pub fn of_client(&self, password: &str) -> [u8; 32] {
        self.proof(b"AUTHENTICATE:", password)
    }

    /// What the server answers, which shows that it knows the password too.
    pub fn of_server(&self, password: &str) -> [u8; 32] {
        self.proof(b":", password)
    }

    fn proof(&self, method: &[u8], password: &str) -> [u8; 32] {
        let a2 = hex(&md5(&[method, self.uri.as_bytes()]));
        let key = hex(&self.a1(password));
        let parts: [&[u8]; 6] = [&key, self.nonce, NONCE_COUNT, self.cnonce, b"auth", &a2];
        hex(&md5(&[&parts.join(&b':')]))
    }

    fn a1(&self, password: &str) -> [u8; 16] {
        let secret = [narrow(self.user), narrow(self.realm), narrow(password)].join(&b':');
        let secret = md5(&[&secret]);
        let mut parts: Vec<&[u8]> = vec![&secret, self.nonce, self.cnonce];
        parts.extend(self.authzid);
        md5(&[&parts.join(&b':')])
    }
}

fn md5(pieces: &[&[u8]]) -> [u8; 16] {
    let mut hash = Md5::new();
    for piece in pieces {
        hash.update(piece);
    }
    hash.finalize().into()
}

fn hex(hash: &[u8; 16]) -> [u8; 32] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [0; 32];
    for (pair, byte) in text.chunks_exact_mut(2).zip(hash) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    text
}

/// A text that ISO 8859-1 can write is hashed in it, any other in UTF-8.
fn narrow(text: &str) -> Cow<'_, [u8]> {
    if text.is_ascii() {
        return text.as_bytes().into();
    }
    let latin: Option<Vec<u8>> = text.chars().map(|sign| u8::try_from(sign).ok()).collect();
    latin.map_or(text.as_bytes().into(), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 2831, section 4.
    #[test]
    fn the_example_of_the_rfc() {
        let facts = Facts {
            user: "chris",
            realm: "elwood.innosoft.com",
            nonce: b"OA6MG9tEQGm2hh",
            cnonce: b"OA6MHXh6VqTrRk",
            uri: "imap/elwood.innosoft.com",
            authzid: None,
        };
        assert_eq!(
            facts.of_client("secret"),
            *b"d388dad90d4bbd760a152321f2143af7"
        );
        assert_eq!(
            facts.of_server("secret"),
            *b"ea40f60335c427b5527b84dbabcdfffd"
        );
    }

    #[test]
    fn texts_are_as_narrow_as_they_can_be() {
        assert_eq!(*narrow("abc"), *b"abc");
        assert_eq!(*narrow("jos\u{e9}"), *b"jos\xe9");
        assert_eq!(*narrow("\u{e9}\u{3b1}"), *"\u{e9}\u{3b1}".as_bytes());
    }
}
