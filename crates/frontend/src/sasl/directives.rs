//! The list of directives in a client's answer: `username="bob",nc=00000001,…`.
//!
//! Own code because which odd lists are taken, and how they are read, is compared with a genuine server's reading.

use super::exchange::SaslRefusal;

/// The value of each directive that has a meaning, as bytes, without quotes and escapes.
#[derive(Debug, Default)]
pub(super) struct Directives {
    pub username: Option<Vec<u8>>,
    pub realm: Option<Vec<u8>>,
    pub nonce: Option<Vec<u8>>,
    pub cnonce: Option<Vec<u8>>,
    pub nonce_count: Option<Vec<u8>>,
    pub qop: Option<Vec<u8>>,
    pub digest_uri: Option<Vec<u8>>,
    pub response: Option<Vec<u8>>,
    pub maxbuf: Option<Vec<u8>>,
    pub charset: Option<Vec<u8>>,
    pub cipher: Option<Vec<u8>>,
    pub authzid: Option<Vec<u8>>,
    pub auth_param: Option<Vec<u8>>,
}

impl Directives {
    pub fn parse(text: &[u8]) -> Result<Directives, SaslRefusal> {
        let mut directives = Directives::default();
        let mut rest = Cursor(text);
        rest.skip_blanks();
        while let Some(key) = rest.key()? {
            let value = rest.value()?;
            directives.set(&key, value)?;
            rest.skip_blanks();
        }
        Ok(directives)
    }

    /// Where the value of a directive belongs. The RFC calls the count of the nonce `nc`; Java's server looks for it
    /// under another name, so that what clients send passes unread.
    fn slot(&mut self, key: &[u8]) -> Option<&mut Option<Vec<u8>>> {
        let slot = match key.to_ascii_lowercase().as_slice() {
            b"username" => &mut self.username,
            b"realm" => &mut self.realm,
            b"nonce" => &mut self.nonce,
            b"cnonce" => &mut self.cnonce,
            b"nonce-count" => &mut self.nonce_count,
            b"qop" => &mut self.qop,
            b"digest-uri" => &mut self.digest_uri,
            b"response" => &mut self.response,
            b"maxbuf" => &mut self.maxbuf,
            b"charset" => &mut self.charset,
            b"cipher" => &mut self.cipher,
            b"authzid" => &mut self.authzid,
            b"auth-param" => &mut self.auth_param,
            _ => return None,
        };
        Some(slot)
    }

    /// Unknown ones are passed over, known ones may stand once.
    fn set(&mut self, key: &[u8], value: Vec<u8>) -> Result<(), SaslRefusal> {
        match self.slot(key) {
            None => Ok(()),
            Some(slot) if slot.is_none() => {
                *slot = Some(value);
                Ok(())
            }
            Some(_) => Err(SaslRefusal::Format),
        }
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// What is not read yet.
struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn skip_blanks(&mut self) {
        let start = self.0.iter().position(|byte| !is_blank(*byte));
        self.0 = &self.0[start.unwrap_or(self.0.len())..];
    }

    /// The next key, behind which its value begins; none at the end.
    fn key(&mut self) -> Result<Option<Vec<u8>>, SaslRefusal> {
        let mut key = Vec::new();
        while let Some(byte) = self.next() {
            match byte {
                b',' if key.is_empty() => self.skip_blanks(),
                b',' => return Err(SaslRefusal::Format),
                b'=' if key.is_empty() => return Err(SaslRefusal::Format),
                b'=' => {
                    self.skip_blanks();
                    return match self.0.is_empty() {
                        true => Err(SaslRefusal::Format),
                        false => Ok(Some(key)),
                    };
                }
                blank if is_blank(blank) => {
                    self.skip_blanks();
                    if self.0.first() != Some(&b'=') {
                        return Err(SaslRefusal::Format);
                    }
                }
                byte => key.push(byte),
            }
        }
        // A key at the very end, without a value, is a directive with an empty one.
        Ok((!key.is_empty()).then_some(key))
    }

    /// The value up to a comma, a blank or the end, which is taken too.
    fn value(&mut self) -> Result<Vec<u8>, SaslRefusal> {
        if self.0.first() == Some(&b'"') {
            self.next();
            return self.quoted();
        }
        let end = self.0.iter().position(|byte| is_end(*byte));
        let (value, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        self.0 = rest;
        self.next();
        Ok(value.to_vec())
    }

    fn quoted(&mut self) -> Result<Vec<u8>, SaslRefusal> {
        let mut value = Vec::new();
        loop {
            match self.next().ok_or(SaslRefusal::Format)? {
                b'"' => break,
                b'\\' => value.push(self.next().ok_or(SaslRefusal::Format)?),
                byte => value.push(byte),
            }
        }
        match self.next() {
            Some(byte) if !is_end(byte) => Err(SaslRefusal::Format),
            Some(_) | None => Ok(value),
        }
    }
}

fn is_end(byte: u8) -> bool {
    byte == b',' || is_blank(byte)
}
