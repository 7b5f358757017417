//! The text of a certificate's subject, byte for byte as Java writes it (`X500Principal.getName()`): existing access lists
//! name their owners so.

use std::fmt::Write as _;

use der::asn1::ObjectIdentifier;

use super::der::{SEQUENCE, SET, Value};

/// Attribute types with a name of their own; the others are written as numbers.
const NAMES: [(&str, &str); 9] = [
    ("2.5.4.3", "CN"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.9", "STREET"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("0.9.2342.19200300.100.1.1", "UID"),
];

/// Kinds of text: UTF8String, PrintableString, T61String, IA5String, GeneralString, BMPString. Java reads the bytes of all
/// of them as UTF-8.
const TEXTS: [u8; 6] = [0x0c, 0x13, 0x14, 0x16, 0x1b, 0x1e];

/// Characters with a backslash in front.
const ESCAPED: &str = ",=+<>#;\"\\";

/// An attribute: its type and its value.
pub(super) type Attribute<'a> = (ObjectIdentifier, Value<'a>);

/// The attributes of a name in its parts; `None` if any of it is something else: nothing may be left out of who somebody
/// is.
pub(super) fn parts(name: Value<'_>) -> Option<Vec<Vec<Attribute<'_>>>> {
    let parts = name.values_of(SEQUENCE)?.all()?;
    parts.into_iter().map(part).collect()
}

fn part(value: Value<'_>) -> Option<Vec<Attribute<'_>>> {
    let attributes = value.values_of(SET)?.all()?;
    attributes.into_iter().map(attribute).collect()
}

fn attribute(value: Value<'_>) -> Option<Attribute<'_>> {
    let fields = value.values_of(SEQUENCE)?.all()?;
    match fields[..] {
        [kind, value] => Some((kind.identifier()?, value)),
        _ => None,
    }
}

/// Writes a name: its parts from the last to the first.
pub(super) fn text(name: Value<'_>) -> Option<String> {
    let parts = parts(name)?.into_iter().rev().map(|part| {
        let attributes = part.into_iter();
        let texts = attributes.map(|(kind, value)| attribute_text(&kind.to_string(), value));
        texts.collect::<Vec<_>>().join("+")
    });
    Some(parts.collect::<Vec<_>>().join(","))
}

fn attribute_text(kind: &str, value: Value<'_>) -> String {
    let name = NAMES.iter().find(|(number, _)| *number == kind);
    match name {
        Some((_, name)) if TEXTS.contains(&value.kind()) => {
            format!(
                "{name}={}",
                escaped(&String::from_utf8_lossy(value.content))
            )
        }
        _ => {
            let name = name.map_or(kind, |(_, name)| name);
            format!("{name}=#{}", hexadecimal(value.whole))
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        // A String takes all.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn escaped(value: &str) -> String {
    let mut text = String::new();
    for character in value.chars() {
        match character {
            '\0' => text.push_str("\\00"),
            _ if ESCAPED.contains(character) => text.extend(['\\', character]),
            _ => text.push(character),
        }
    }
    let is_blank = |character: char| matches!(character, ' ' | '\r');
    let core = text.trim_matches(is_blank);
    if core.len() == text.len() {
        return text;
    }
    let start = text.len() - text.trim_start_matches(is_blank).len();
    let end = start + core.len();
    let blanks = |blanks: &str| {
        blanks
            .chars()
            .flat_map(|blank| ['\\', blank])
            .collect::<String>()
    };
    format!("{}{core}{}", blanks(&text[..start]), blanks(&text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each line has a name in DER, in hexadecimal digits, and what Java 17 writes for it, with `\u` escapes for what is no
    /// ASCII.
    #[test]
    fn names_are_written_as_java_writes_them() {
        let mut seen = 0;
        for line in include_str!("golden/subjects.txt").lines() {
            let Some((encoded, expected)) = line.split_once('\t') else {
                continue;
            };
            let bytes: Vec<u8> = (0..encoded.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&encoded[at..at + 2], 16).expect("hexadecimal"))
                .collect();
            let name = Value::first(&bytes).expect("a name");
            let units: Vec<u16> = text(name).expect("a whole name").encode_utf16().collect();
            let shown: String = units
                .iter()
                .map(|unit| match u8::try_from(*unit) {
                    Ok(byte @ 0x20..=0x7e) => char::from(byte).to_string(),
                    _ => format!("\\u{unit:04x}"),
                })
                .collect();
            assert_eq!(shown, expected, "{encoded}");
            seen += 1;
        }
        assert!(seen > 30, "only {seen} names");
    }

    #[test]
    fn nothing_is_left_out_of_a_name() {
        let whole = [
            0x30, 0x0e, 0x31, 0x0c, 0x30, 0x0a, 0x06, 0x03, 0x55, 0x04, 0x03, 0x0c, 0x03, b'j',
            b'o', b'e',
        ];
        let text_of = |bytes: &[u8]| Value::first(bytes).and_then(text);
        assert_eq!(text_of(&whole).as_deref(), Some("CN=joe"));
        for at in [2, 4, 6, 12] {
            let mut changed = whole;
            // A kind of value that is none, or not the right one.
            changed[at] ^= 0x1f;
            assert!(
                text_of(&changed).is_none_or(|text| text.contains("#")),
                "at {at}"
            );
        }
        for (at, length) in [(1, 0x0d), (3, 0x0b), (5, 0x09), (12, 0x02)] {
            let mut changed = whole;
            changed[at] = length;
            assert_ne!(
                text_of(&changed).as_deref(),
                Some("CN=joe"),
                "length at {at}"
            );
        }
    }
}
