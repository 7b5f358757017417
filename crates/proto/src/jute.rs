//! The primitive encodings of the protocol: big-endian integers, length-prefixed buffers and strings.
//!
//! Null (length −1) and empty (length 0) are different values. Strings follow the peers' habits: what
//! arrives ill-formed is replaced by U+FFFD instead of refused, and what lies beyond the basic plane is
//! written as a surrogate pair of three bytes each (CESU-8), because that is what ZooKeeper writes.

use std::borrow::Cow;

use bytes::{BufMut, BytesMut};

/// Why a record could not be decoded. Always the sender's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodeError {
    /// The bytes end inside a field.
    Truncated,
    /// A buffer or string has a length below −1.
    NegativeLength(i32),
    /// A value that the protocol does not allow at this place.
    Malformed,
}

impl std::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DecodeError::Truncated => write!(f, "the record ends early"),
            DecodeError::NegativeLength(n) => write!(f, "a field has the length {n}"),
            DecodeError::Malformed => write!(f, "a field has a value that is not allowed there"),
        }
    }
}

impl std::error::Error for DecodeError {}

/// A record or field that can be read from the wire.
pub trait Decode<'a>: Sized {
    /// Reads one value and moves the reader behind it.
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError>;
}

/// A record or field that can be written to the wire.
pub trait Encode {
    /// Appends the value.
    fn encode(&self, out: &mut BytesMut);
}

/// A cursor over the bytes of one frame.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the first byte of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes }
    }

    /// The bytes not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        if self.rest.len() < count {
            return Err(DecodeError::Truncated);
        }
        let (head, tail) = self.rest.split_at(count);
        self.rest = tail;
        Ok(head)
    }

    /// A raw length: −1 is null, anything below is an error.
    fn length(&mut self) -> Result<Option<usize>, DecodeError> {
        match i32::decode(self)? {
            -1 => Ok(None),
            n if n < 0 => Err(DecodeError::NegativeLength(n)),
            n => Ok(Some(n as usize)),
        }
    }
}

impl Decode<'_> for bool {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(reader.take(1)?[0] != 0)
    }
}

impl Decode<'_> for i32 {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut raw = [0; 4];
        raw.copy_from_slice(reader.take(4)?);
        Ok(i32::from_be_bytes(raw))
    }
}

impl Decode<'_> for i64 {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut raw = [0; 8];
        raw.copy_from_slice(reader.take(8)?);
        Ok(i64::from_be_bytes(raw))
    }
}

impl<'a> Decode<'a> for Option<&'a [u8]> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        match reader.length()? {
            None => Ok(None),
            Some(n) => reader.take(n).map(Some),
        }
    }
}

impl<'a> Decode<'a> for Option<Cow<'a, str>> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Option::<&[u8]>::decode(reader)?.map(text_from_utf8))
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for Option<Vec<T>> {
    /// −1 is null; any other negative count reads as empty, as in ZooKeeper.
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let count = i32::decode(reader)?;
        if count == -1 {
            return Ok(None);
        }
        let count = usize::try_from(count).unwrap_or(0);
        // Every element takes at least four bytes, so a count that lies reserves no memory.
        let mut items = Vec::with_capacity(count.min(reader.rest.len() / 4));
        for _ in 0..count {
            items.push(T::decode(reader)?);
        }
        Ok(Some(items))
    }
}

impl Encode for bool {
    fn encode(&self, out: &mut BytesMut) {
        out.put_u8(u8::from(*self));
    }
}

impl Encode for i32 {
    fn encode(&self, out: &mut BytesMut) {
        out.put_i32(*self);
    }
}

impl Encode for i64 {
    fn encode(&self, out: &mut BytesMut) {
        out.put_i64(*self);
    }
}

impl Encode for Option<&[u8]> {
    fn encode(&self, out: &mut BytesMut) {
        match self {
            None => out.put_i32(-1),
            Some(bytes) => put_buffer(out, bytes),
        }
    }
}

impl Encode for Option<Cow<'_, str>> {
    fn encode(&self, out: &mut BytesMut) {
        match self {
            None => out.put_i32(-1),
            Some(text) => put_string(out, text),
        }
    }
}

impl<T: Encode> Encode for Option<Vec<T>> {
    fn encode(&self, out: &mut BytesMut) {
        match self {
            None => out.put_i32(-1),
            Some(items) => {
                out.put_i32(items.len() as i32);
                for item in items {
                    item.encode(out);
                }
            }
        }
    }
}

/// Appends a buffer that is not null.
pub fn put_buffer(out: &mut BytesMut, bytes: &[u8]) {
    out.reserve(4 + bytes.len());
    out.put_i32(bytes.len() as i32);
    out.put_slice(bytes);
}

/// Appends a string that is not null.
pub fn put_string(out: &mut BytesMut, text: &str) {
    if text.bytes().all(|byte| byte < 0xF0) {
        put_buffer(out, text.as_bytes());
    } else {
        put_buffer(out, &cesu8(text));
    }
}

/// Number of bytes that [`put_string`] writes behind the length.
pub fn string_len(text: &str) -> usize {
    text.len() + 2 * text.bytes().filter(|byte| *byte >= 0xF0).count()
}

fn cesu8(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(string_len(text));
    let mut units = [0u16; 2];
    let mut utf8 = [0u8; 4];
    for c in text.chars() {
        if (c as u32) < 0x1_0000 {
            bytes.extend_from_slice(c.encode_utf8(&mut utf8).as_bytes());
            continue;
        }
        for unit in c.encode_utf16(&mut units) {
            bytes.push(0xE0 | (*unit >> 12) as u8);
            bytes.push(0x80 | (*unit >> 6 & 0x3F) as u8);
            bytes.push(0x80 | (*unit & 0x3F) as u8);
        }
    }
    bytes
}

/// Text from bytes that should be UTF-8; each ill-formed part becomes one U+FFFD, an encoded surrogate
/// (three bytes) becomes one too.
pub fn text_from_utf8(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(replace_ill_formed(bytes)),
    }
}

fn replace_ill_formed(mut bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    loop {
        match std::str::from_utf8(bytes) {
            Ok(valid) => {
                text.push_str(valid);
                return text;
            }
            Err(error) => {
                let (valid, bad) = bytes.split_at(error.valid_up_to());
                text.push_str(&String::from_utf8_lossy(valid));
                text.push('\u{FFFD}');
                let skip = match bad {
                    [0xED, 0xA0..=0xBF, 0x80..=0xBF, ..] => 3,
                    _ => error.error_len().unwrap_or(bad.len()),
                };
                bytes = &bad[skip..];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_and_empty_are_different() {
        for value in [None, Some(&b""[..]), Some(&b"x"[..])] {
            let mut out = BytesMut::new();
            value.encode(&mut out);
            assert_eq!(Option::<&[u8]>::decode(&mut Reader::new(&out)), Ok(value));
        }
    }

    #[test]
    fn supplementary_characters_leave_as_surrogate_pairs() {
        let mut out = BytesMut::new();
        put_string(&mut out, "a\u{1F600}");
        assert_eq!(&out[..], b"\x00\x00\x00\x07a\xED\xA0\xBD\xED\xB8\x80");
        assert_eq!(string_len("a\u{1F600}"), 7);
    }

    #[test]
    fn an_encoded_surrogate_reads_as_one_replacement() {
        assert_eq!(text_from_utf8(b"a\xED\xA0\xBDb"), "a\u{FFFD}b");
        assert_eq!(text_from_utf8(b"\xFFx\xC3"), "\u{FFFD}x\u{FFFD}");
    }

    #[test]
    fn a_count_that_lies_takes_no_memory() {
        let bytes = [0x7F, 0xFF, 0xFF, 0xFF, 0, 0, 0, 1];
        assert_eq!(
            Option::<Vec<i32>>::decode(&mut Reader::new(&bytes)),
            Err(DecodeError::Truncated)
        );
    }

    #[test]
    fn other_negative_counts_are_empty_vectors() {
        let bytes = (-7i32).to_be_bytes();
        assert_eq!(
            Option::<Vec<i32>>::decode(&mut Reader::new(&bytes)),
            Ok(Some(vec![]))
        );
    }
}
