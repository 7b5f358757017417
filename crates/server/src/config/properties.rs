//! The text format of Java's `Properties`, in which `zoo.cfg` is written.
//!
//! Own code because the format's corners (continuation lines, escapes, separators) decide what an existing file means:
//! the tests compare with a Java runtime, `golden/properties.txt`.

/// A key and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// Number of the line it begins in, from 1.
    pub line: usize,
    /// The key.
    pub key: String,
    /// The value, not trimmed.
    pub value: String,
    /// Where it begins in the text.
    pub start: usize,
    /// The lines as they stand in the text, with their ends.
    pub raw: Vec<u8>,
}

/// An escape `\u` that is not followed by four hexadecimal digits.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed \\uxxxx encoding in line {line}")]
pub struct Malformed {
    /// Number of the line that its key begins in, from 1.
    pub line: usize,
}

/// What follows an escape is not what has to.
#[derive(Debug)]
struct BadEscape;

/// Reads a text. Bytes are ISO-8859-1, as Java takes them. The pairs come in the order of the text; a key may come more
/// than once, and its last value is the one that counts.
///
/// # Errors
/// [`Malformed`] if an escape is cut or not hexadecimal.
pub fn parse(bytes: &[u8]) -> Result<Vec<Pair>, Malformed> {
    let mut lines = Lines {
        rest: bytes,
        taken: 0,
    };
    let mut pairs = Vec::new();
    while let Some(logical) = lines.next_logical(bytes.len()) {
        let line = logical.line;
        let (key, value) = pair(&logical.content).map_err(|BadEscape| Malformed { line })?;
        let length = bytes.len() - lines.rest.len() - logical.start;
        pairs.push(Pair {
            line,
            key,
            value,
            start: logical.start,
            raw: bytes[logical.start..logical.start + length].to_vec(),
        });
    }
    Ok(pairs)
}

/// `key=value` as one line that [`parse`] reads back, without its end.
pub fn line(key: &str, value: &str) -> String {
    format!("{}={}", escape(key, true), escape(value, false))
}

fn escape(text: &str, is_key: bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for (index, sign) in text.chars().enumerate() {
        match sign {
            '\\' => escaped.push_str("\\\\"),
            '\t' => escaped.push_str("\\t"),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\x0c' => escaped.push_str("\\f"),
            '#' | '!' if is_key && index == 0 => escaped.extend(['\\', sign]),
            ' ' | '=' | ':' if is_key => escaped.extend(['\\', sign]),
            ' ' if index == 0 => escaped.push_str("\\ "),
            ' '..='~' => escaped.push(sign),
            other => {
                let mut units = [0; 2];
                for unit in other.encode_utf16(&mut units) {
                    escaped.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    escaped
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\x0c')
}

fn is_end_of_line(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

/// Natural lines joined to logical ones.
struct Lines<'a> {
    rest: &'a [u8],
    /// Natural lines so far.
    taken: usize,
}

/// A logical line, continuation lines joined, still escaped.
struct Logical {
    content: Vec<u8>,
    /// Number of its first natural line.
    line: usize,
    /// Where that begins in the text.
    start: usize,
}

impl Lines<'_> {
    /// The next line that is not blank and no comment.
    fn next_logical(&mut self, whole: usize) -> Option<Logical> {
        let mut logical = Logical {
            content: Vec::new(),
            line: 0,
            start: 0,
        };
        let mut continued = false;
        loop {
            let at = whole - self.rest.len();
            let Some(natural) = self.next_natural() else {
                // A lone backslash at the very end gives an empty pair, as in Java.
                return (continued || !logical.content.is_empty()).then_some(logical);
            };
            let start = natural
                .iter()
                .position(|&byte| !is_blank(byte))
                .unwrap_or(natural.len());
            let content = &natural[start..];
            // A line that is joined to nothing yet is a new one: it may be blank or a comment.
            if logical.content.is_empty() && matches!(content.first(), None | Some(b'#' | b'!')) {
                continued = false;
                continue;
            }
            debug_assert!(
                logical.content.is_empty() || continued,
                "only a continued line is joined"
            );
            let ends_escaped = ends_in_escape(content);
            if logical.content.is_empty() {
                logical.start = at;
            }
            logical.content.extend_from_slice(content);
            if logical.line == 0 || logical.start == at {
                logical.line = self.taken;
            }
            continued = ends_escaped;
            if !continued {
                return Some(logical);
            }
            logical.content.pop();
        }
    }

    /// The next line of the text without its end, which is LF, CR, CR LF or the end of the text.
    fn next_natural(&mut self) -> Option<&[u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let rest = self.rest;
        let end = rest
            .iter()
            .position(|&byte| is_end_of_line(byte))
            .unwrap_or(rest.len());
        let after = match rest.get(end..) {
            Some([b'\r', b'\n', ..]) => end + 2,
            Some([]) | None => end,
            Some(_) => end + 1,
        };
        self.rest = &rest[after..];
        self.taken += 1;
        Some(&rest[..end])
    }
}

/// Whether the last of the backslashes at the end escapes the end of the line itself.
fn ends_in_escape(line: &[u8]) -> bool {
    line.iter().rev().take_while(|&&byte| byte == b'\\').count() % 2 == 1
}

/// Cuts a logical line at its first unescaped separator.
fn pair(line: &[u8]) -> Result<(String, String), BadEscape> {
    let mut escaped = false;
    let key_end = line
        .iter()
        .position(|&byte| {
            let ends = !escaped && (is_blank(byte) || matches!(byte, b'=' | b':'));
            escaped = byte == b'\\' && !escaped;
            ends
        })
        .unwrap_or(line.len());
    let behind = skip_blanks(&line[key_end..]);
    let value = match behind {
        [b'=' | b':', value @ ..] => skip_blanks(value),
        value => value,
    };
    Ok((unescape(&line[..key_end])?, unescape(value)?))
}

fn skip_blanks(bytes: &[u8]) -> &[u8] {
    let start = bytes
        .iter()
        .position(|&byte| !is_blank(byte))
        .unwrap_or(bytes.len());
    &bytes[start..]
}

fn unescape(bytes: &[u8]) -> Result<String, BadEscape> {
    let mut units: Vec<u16> = Vec::with_capacity(bytes.len());
    let mut rest = bytes.iter();
    while let Some(&byte) = rest.next() {
        if byte != b'\\' {
            units.push(u16::from(byte));
            continue;
        }
        match rest.next() {
            Some(b'u') => units.push(code_unit(rest.by_ref().take(4))?),
            Some(b't') => units.push(u16::from(b'\t')),
            Some(b'n') => units.push(u16::from(b'\n')),
            Some(b'r') => units.push(u16::from(b'\r')),
            Some(b'f') => units.push(0x0c),
            Some(&other) => units.push(u16::from(other)),
            None => {}
        }
    }
    Ok(String::from_utf16_lossy(&units))
}

fn code_unit<'a>(digits: impl Iterator<Item = &'a u8>) -> Result<u16, BadEscape> {
    let mut unit = 0;
    let mut count = 0;
    for &digit in digits {
        let value = char::from(digit).to_digit(16).ok_or(BadEscape)?;
        unit = unit << 4 | u16::try_from(value).map_err(|_| BadEscape)?;
        count += 1;
    }
    if count == 4 { Ok(unit) } else { Err(BadEscape) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::golden_text::unquote;

    #[test]
    fn texts_mean_what_they_mean_to_java() {
        let mut seen = 0;
        for line in include_str!("golden/properties.txt")
            .lines()
            .filter(|line| !line.starts_with('#'))
        {
            let mut columns = line.split('\t');
            let text = unquote(columns.next().expect("a text"));
            let bytes: Vec<u8> = text
                .chars()
                .map(|sign| u8::try_from(sign).expect("ISO-8859-1"))
                .collect();
            let expected: Vec<&str> = columns.collect();
            let parsed = parse(&bytes).map(values);
            if expected == ["malformed"] {
                parsed.expect_err(line);
            } else {
                let expected = expected
                    .chunks(2)
                    .map(|pair| (unquote(pair[0]), unquote(pair[1])))
                    .collect();
                assert_eq!(parsed, Ok(expected), "{line}");
            }
            seen += 1;
        }
        assert!(seen > 300, "only {seen} texts");
    }

    fn values(pairs: Vec<Pair>) -> BTreeMap<String, String> {
        let pairs = pairs.into_iter();
        pairs.map(|pair| (pair.key, pair.value)).collect()
    }

    #[test]
    fn repeated_keys_come_in_order_with_their_lines() {
        let text = b"# note\na=1\n\n  b = 2\\\n   3\r\na=3";
        let pairs = parse(text).expect("a text");
        let shown: Vec<_> = pairs
            .iter()
            .map(|pair| (pair.line, &*pair.key, &*pair.value, &pair.raw[..]))
            .collect();
        assert_eq!(
            shown,
            [
                (2, "a", "1", &b"a=1\n"[..]),
                (4, "b", "23", b"  b = 2\\\n   3\r\n"),
                (6, "a", "3", b"a=3"),
            ]
        );
    }

    #[test]
    fn a_malformed_escape_is_told_with_its_line() {
        let line = |text: &[u8]| parse(text).expect_err("malformed").line;
        assert_eq!(line(b"a=1\n\nb=\\u12\n"), 3);
        assert_eq!(line(b"# \\u\na=1\\\n  2\nb\\ug=1"), 4);
    }

    #[test]
    fn a_line_that_is_written_is_read_back() {
        for (key, value) in [
            ("dataDir", "/a b\\c"),
            ("#key", " leading, trailing "),
            ("a:b=c d", "x=y:z\t\n\r\x0c"),
            ("ü", "日本 \u{1f600}"),
        ] {
            let text = line(key, value);
            let pairs = parse(text.as_bytes()).expect("a line");
            let [pair] = &pairs[..] else {
                panic!("{text:?} is no single line");
            };
            assert_eq!((&*pair.key, &*pair.value), (key, value), "{text}");
        }
    }
}
