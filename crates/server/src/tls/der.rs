//! Walking through DER: one value after the other, with the bytes that they stand in.

use der::Decode;
use der::asn1::ObjectIdentifier;

/// First bytes of values.
pub(super) const BOOLEAN: u8 = 0x01;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const OBJECT_IDENTIFIER: u8 = 0x06;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;
/// A value in a tag of its own, constructed.
pub(super) const CONTEXT_0: u8 = 0xa0;
/// The same, with another number.
pub(super) const CONTEXT_3: u8 = 0xa3;
/// The first, primitive.
pub(super) const CONTEXT_0_PRIMITIVE: u8 = 0x80;

/// One value.
#[derive(Clone, Copy)]
pub(super) struct Value<'a> {
    /// All its bytes.
    pub(super) whole: &'a [u8],
    /// Those behind its kind and length.
    pub(super) content: &'a [u8],
}

/// Values one behind the other. Ends at the first bytes that are none.
#[derive(Clone)]
pub(super) struct Values<'a>(pub(super) &'a [u8]);

impl<'a> Value<'a> {
    /// The value at the beginning of these bytes.
    pub(super) fn first(bytes: &'a [u8]) -> Option<Value<'a>> {
        Values(bytes).next()
    }

    /// What the first byte says it is.
    pub(super) fn kind(&self) -> u8 {
        self.whole[0]
    }

    /// The values in it, if it is of this kind.
    pub(super) fn values_of(&self, kind: u8) -> Option<Values<'a>> {
        (self.kind() == kind).then_some(Values(self.content))
    }

    /// Its content, if it is of this kind.
    pub(super) fn content_of(&self, kind: u8) -> Option<&'a [u8]> {
        (self.kind() == kind).then_some(self.content)
    }

    /// The object identifier that it is.
    pub(super) fn identifier(&self) -> Option<ObjectIdentifier> {
        ObjectIdentifier::from_der(self.whole).ok()
    }

    /// The number that it is, if it is not negative and not great.
    pub(super) fn number(&self) -> Option<u32> {
        let bytes = self.content_of(INTEGER)?;
        if bytes.first()? & 0x80 != 0 || bytes.len() > 5 {
            return None;
        }
        let number = bytes
            .iter()
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        u32::try_from(number).ok()
    }
}

impl<'a> Values<'a> {
    /// The next value, if it is of this kind; the values in it.
    pub(super) fn next_values(&mut self, kind: u8) -> Option<Values<'a>> {
        self.next()?.values_of(kind)
    }

    /// All of them; `None` if there is anything else.
    pub(super) fn all(mut self) -> Option<Vec<Value<'a>>> {
        let values = self.by_ref().collect();
        self.0.is_empty().then_some(values)
    }
}

impl<'a> Iterator for Values<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        let (header, length) = header(self.0)?;
        let (whole, rest) = self.0.split_at_checked(header.checked_add(length)?)?;
        self.0 = rest;
        Some(Value {
            whole,
            content: &whole[header..],
        })
    }
}

/// How many bytes say what a value is and how long, and its length. Kinds beyond 30 occur nowhere here.
fn header(bytes: &[u8]) -> Option<(usize, usize)> {
    let [kind, length, rest @ ..] = bytes else {
        return None;
    };
    if kind & 0x1f == 0x1f {
        return None;
    }
    match *length {
        0..=0x7f => Some((2, usize::from(*length))),
        0x81..=0x84 => {
            let count = usize::from(length & 0x7f);
            let digits = rest.get(..count)?;
            let length = digits
                .iter()
                .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
            Some((2 + count, length))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_one_by_one_until_something_is_none() {
        let bytes = [
            0x02, 0x01, 0x05, 0x30, 0x03, 0x04, 0x01, 0xff, 0x04, 0x09, 0x00,
        ];
        let mut values = Values(&bytes);
        let number = values.next().expect("a number");
        assert_eq!((number.kind(), number.number()), (INTEGER, Some(5)));
        let mut inner = values.next_values(SEQUENCE).expect("a sequence");
        let octets = inner.next().expect("octets");
        assert_eq!(octets.content_of(OCTET_STRING), Some(&[0xff][..]));
        assert_eq!(octets.whole, [0x04, 0x01, 0xff]);
        assert!(inner.next().is_none() && values.next().is_none());
        for length in 0..bytes.len() {
            assert!(Values(&bytes[..length]).count() <= 2);
        }
    }
}
