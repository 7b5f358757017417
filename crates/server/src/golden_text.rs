//! How goldens that Java made hold texts.

/// A text as goldens made by Java quote it: a backslash, `u` and four digits are one unit of UTF-16.
pub(crate) fn unquote(text: &str) -> String {
    let inner = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .expect("quotes");
    let mut pieces = inner.split("\\u");
    let mut units: Vec<u16> = pieces.next().unwrap_or_default().encode_utf16().collect();
    for piece in pieces {
        units.push(u16::from_str_radix(&piece[..4], 16).expect("four digits"));
        units.extend(piece[4..].encode_utf16());
    }
    String::from_utf16(&units).expect("no lone surrogate")
}
