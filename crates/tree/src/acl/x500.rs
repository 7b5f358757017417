//! Which texts name a subject of a certificate: what Java's `X500Principal` takes.

/// Attribute types that may be written by name, in any case. All others are object identifiers.
const KEYWORDS: [&str; 21] = [
    "CN",
    "C",
    "L",
    "S",
    "ST",
    "O",
    "OU",
    "T",
    "IP",
    "STREET",
    "DC",
    "DNQUALIFIER",
    "DNQ",
    "SURNAME",
    "GIVENNAME",
    "INITIALS",
    "GENERATION",
    "EMAIL",
    "EMAILADDRESS",
    "UID",
    "SERIALNUMBER",
];

/// What may stand behind a backslash by itself; everything else there are two hexadecimal digits.
const ESCAPABLE: &[u8] = b",+<>#;=\"\\ ";

/// Whether a text is an X.500 name. Nothing is one, too: the name without parts.
pub(super) fn is_name(text: &str) -> bool {
    let mut rest = text.as_bytes();
    if rest.is_empty() {
        return true;
    }
    loop {
        let Some(behind) = attribute(rest) else {
            return false;
        };
        match behind {
            [] => return true,
            [_separator, next @ ..] => rest = next,
        }
    }
}

/// Passes over `type=value`; gives the rest, which is empty or begins with a separator.
fn attribute(bytes: &[u8]) -> Option<&[u8]> {
    let equals = bytes.iter().position(|byte| *byte == b'=')?;
    let kind = std::str::from_utf8(&bytes[..equals]).ok()?.trim();
    if !is_type(kind) {
        return None;
    }
    let value = bytes[equals + 1..].trim_ascii_start();
    match value.first() {
        Some(b'"') => quoted(&value[1..]),
        Some(b'#') => hexadecimal(&value[1..]),
        _ => plain(value),
    }
}

fn is_type(text: &str) -> bool {
    if KEYWORDS
        .iter()
        .any(|keyword| keyword.eq_ignore_ascii_case(text))
    {
        return true;
    }
    let digits = match text.get(..4) {
        Some(prefix) if prefix.eq_ignore_ascii_case("OID.") => &text[4..],
        _ => text,
    };
    is_object_identifier(digits)
}

/// Numbers with dots between; the first says how great the second may be.
fn is_object_identifier(text: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let mut parts = text.split('.');
    let (Some(first), Some(second)) = (parts.next(), parts.next()) else {
        return false;
    };
    let second_max = match first {
        "0" | "1" => 39,
        "2" => u64::MAX,
        _ => return false,
    };
    is_number(second)
        && second
            .parse::<u64>()
            .is_ok_and(|second| second <= second_max)
        && parts.all(is_number)
}

/// Passes over a value up to a separator.
fn plain(mut rest: &[u8]) -> Option<&[u8]> {
    loop {
        match rest {
            [] | [b',' | b';' | b'+', ..] => return Some(rest),
            [b'"' | b'<' | b'>', ..] => return None,
            [b'\\', escaped @ ..] => rest = behind_escape(escaped)?,
            [_, next @ ..] => rest = next,
        }
    }
}

/// Passes over a value in quotes, up to what must be a separator or the end.
fn quoted(mut rest: &[u8]) -> Option<&[u8]> {
    loop {
        match rest {
            [] => return None,
            [b'"', behind @ ..] => {
                let behind = behind.trim_ascii_start();
                return matches!(behind, [] | [b',' | b';' | b'+', ..]).then_some(behind);
            }
            [b'\\', escaped @ ..] => rest = behind_escape(escaped)?,
            [_, next @ ..] => rest = next,
        }
    }
}

fn behind_escape(escaped: &[u8]) -> Option<&[u8]> {
    match escaped {
        [one, rest @ ..] if ESCAPABLE.contains(one) => Some(rest),
        [high, low, rest @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => Some(rest),
        _ => None,
    }
}

/// Passes over the bytes of a DER value: its tag, its length, and as much as the length says.
fn hexadecimal(text: &[u8]) -> Option<&[u8]> {
    let end = text
        .iter()
        .position(|byte| matches!(byte, b',' | b';' | b'+'))
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let digits = digits.trim_ascii_end();
    let bytes = digits.chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair)
            .ok()
            .filter(|pair| pair.len() == 2)?;
        u8::from_str_radix(pair, 16).ok()
    });
    let bytes: Vec<u8> = bytes.collect::<Option<_>>()?;
    is_der_value(&bytes).then_some(rest)
}

fn is_der_value(bytes: &[u8]) -> bool {
    let Some((length, rest)) = bytes.get(1).zip(bytes.get(2..)) else {
        return false;
    };
    if *length < 0x80 {
        return rest.len() == usize::from(*length);
    }
    let count = usize::from(length & 0x7f);
    if !(1..=4).contains(&count) || rest.len() < count {
        return false;
    }
    let (length, content) = rest.split_at(count);
    let length = length
        .iter()
        .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    content.len() == length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_java_takes() {
        let mut seen = 0;
        for line in include_str!("golden/x500.txt").lines() {
            let Some((verdict, text)) = line.split_once('\t') else {
                continue;
            };
            let text = text.replace("\\u0020", " ");
            assert_eq!(is_name(&text), verdict == "valid", "{text:?}");
            seen += 1;
        }
        assert!(seen > 80, "only {seen} texts");
    }

    #[test]
    fn long_der_values() {
        assert!(is_name(&format!("1.2.3=#0c8180{}", "41".repeat(128))));
        assert!(!is_name(&format!("1.2.3=#0c8180{}", "41".repeat(127))));
        assert!(!is_name("1.2.3=#0cff"));
    }
}
