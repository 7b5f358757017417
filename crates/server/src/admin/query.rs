//! The part of an address behind the question mark.

/// Parameters by name; the first one of a name counts.
#[derive(Debug, Default)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn parse(text: &str) -> Query {
        let pairs = text.split('&').filter_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let plain = |text: &str| decode(text.replace('+', " ").as_bytes());
            Some((plain(name)?, plain(value)?))
        });
        Query(pairs.collect())
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let mut pairs = self.0.iter();
        let found = pairs.find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Replaces `%XX`; `None` if that does not give a text.
pub(super) fn decode(bytes: &[u8]) -> Option<String> {
    let mut plain = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, behind @ ..] = rest {
        rest = behind;
        if *first != b'%' {
            plain.push(*first);
            continue;
        }
        let digits = behind.get(..2)?;
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let digits = std::str::from_utf8(digits).ok()?;
        plain.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &behind[2..];
    }
    String::from_utf8(plain).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_and_the_first_counts() {
        let query = Query::parse("to=2&to=3&a%20b=c+d&flag&bad=%zz&cut=%2");
        assert_eq!(query.get("to"), Some("2"));
        assert_eq!(query.get("a b"), Some("c d"));
        assert_eq!(query.get("flag"), Some(""));
        assert_eq!((query.get("bad"), query.get("cut")), (None, None));
        assert_eq!(Query::parse("").get("to"), None);
        assert_eq!(decode(b"a%3Cb%3E").as_deref(), Some("a<b>"));
    }
}
