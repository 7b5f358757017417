//! Texts of a stream.

/// UTF-8, also where characters beyond the basic plane are two surrogates of three bytes each, as ZooKeeper
/// writes them.
pub(super) fn from_bytes(bytes: Vec<u8>) -> Option<String> {
    match String::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) => join_surrogates(error.as_bytes()),
    }
}

fn join_surrogates(bytes: &[u8]) -> Option<String> {
    let mut text = String::with_capacity(bytes.len());
    let mut rest = bytes;
    while !rest.is_empty() {
        let pair = rest.first_chunk::<6>().and_then(|bytes| {
            let high = surrogate(&bytes[..3])?;
            let low = surrogate(&bytes[3..])?;
            char::decode_utf16([high, low]).next()?.ok()
        });
        let length = match pair {
            Some(character) => {
                text.push(character);
                6
            }
            None => {
                let length = rest
                    .utf8_chunks()
                    .next()?
                    .valid()
                    .chars()
                    .next()?
                    .len_utf8();
                text.push_str(std::str::from_utf8(&rest[..length]).ok()?);
                length
            }
        };
        rest = &rest[length..];
    }
    Some(text)
}

/// The surrogate that three bytes stand for.
fn surrogate(bytes: &[u8]) -> Option<u16> {
    match *bytes {
        [0xED, high @ 0xA0..=0xBF, low @ 0x80..=0xBF] => {
            Some(0xD000 | u16::from(high & 0x3F) << 6 | u16::from(low & 0x3F))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read_and_nothing_else() {
        let wide = "/a\u{1F512}é".as_bytes();
        let split = b"/a\xED\xA0\xBD\xED\xB4\x92\xC3\xA9";
        for bytes in [wide, split] {
            assert_eq!(from_bytes(bytes.to_vec()).as_deref(), Some("/a\u{1F512}é"));
        }
        for bad in [
            &b"\xFF"[..],
            b"a\xED\xA0\xBD",
            b"\xED\xB4\x92\xED\xA0\xBD",
            b"\xC3",
        ] {
            assert_eq!(from_bytes(bad.to_vec()), None, "{bad:x?}");
        }
    }
}
