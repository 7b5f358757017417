//! The text format of Java's `Properties`, in which `zoo.cfg` is written.
//!
//! Own code because the format's corners (continuation lines, escapes, separators) decide what an existing file means:
//! the tests compare with a Java runtime, `golden/properties.txt`.

/// An escape `\u` that is not followed by four hexadecimal digits.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed \\uxxxx encoding")]
pub struct Malformed;

/// Reads a text. Bytes are ISO-8859-1, as Java takes them. The pairs come in the order of the text; a key may come more
/// than once, and its last value is the one that counts.
///
/// # Errors
/// [`Malformed`] if an escape is cut or not hexadecimal.
pub fn parse(bytes: &[u8]) -> Result<Vec<(String, String)>, Malformed> {
    let mut lines = Lines { rest: bytes };
    std::iter::from_fn(|| lines.next_logical())
        .map(|line| pair(&line))
        .collect()
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
}

impl Lines<'_> {
    /// The next line that is not blank and no comment, continuation lines joined, still escaped.
    fn next_logical(&mut self) -> Option<Vec<u8>> {
        let mut logical = Vec::new();
        let mut continued = false;
        loop {
            let Some(natural) = self.next_natural() else {
                // A lone backslash at the very end gives an empty pair, as in Java.
                return (continued || !logical.is_empty()).then_some(logical);
            };
            let start = natural
                .iter()
                .position(|&byte| !is_blank(byte))
                .unwrap_or(natural.len());
            let content = &natural[start..];
            // A line that is joined to nothing yet is a new one: it may be blank or a comment.
            if logical.is_empty() && matches!(content.first(), None | Some(b'#' | b'!')) {
                continued = false;
                continue;
            }
            debug_assert!(
                logical.is_empty() || continued,
                "only a continued line is joined"
            );
            logical.extend_from_slice(content);
            continued = ends_in_escape(content);
            if !continued {
                return Some(logical);
            }
            logical.pop();
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
        Some(&rest[..end])
    }
}

/// Whether the last of the backslashes at the end escapes the end of the line itself.
fn ends_in_escape(line: &[u8]) -> bool {
    line.iter().rev().take_while(|&&byte| byte == b'\\').count() % 2 == 1
}

/// Cuts a logical line at its first unescaped separator.
fn pair(line: &[u8]) -> Result<(String, String), Malformed> {
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

fn unescape(bytes: &[u8]) -> Result<String, Malformed> {
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

fn code_unit<'a>(digits: impl Iterator<Item = &'a u8>) -> Result<u16, Malformed> {
    let mut unit = 0;
    let mut count = 0;
    for &digit in digits {
        let value = char::from(digit).to_digit(16).ok_or(Malformed)?;
        unit = unit << 4 | u16::try_from(value).map_err(|_| Malformed)?;
        count += 1;
    }
    if count == 4 { Ok(unit) } else { Err(Malformed) }
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
            let parsed = parse(&bytes).map(|pairs| pairs.into_iter().collect::<BTreeMap<_, _>>());
            if expected == ["malformed"] {
                assert_eq!(parsed, Err(Malformed), "{line}");
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

    #[test]
    fn repeated_keys_come_in_order() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(
            parse(b"a=1\nb=2\na=3"),
            Ok(vec![pair("a", "1"), pair("b", "2"), pair("a", "3")])
        );
    }
}
