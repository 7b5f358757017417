//! Text for terminals: what is in znodes must not steer the terminal of the one who reads it.

use std::borrow::Cow;
use std::fmt::Write;

/// The text with what would steer a terminal in the form `\u001b`: control characters but for ends of lines and
/// tabulators, and the marks that turn the direction of writing. Colours stay, this shell's own among them.
pub fn harmless(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(start) = rest.find(steers) {
        shown.push_str(&rest[..start]);
        rest = &rest[start..];
        let taken = match colour(rest) {
            Some(sequence) => {
                shown.push_str(sequence);
                sequence.len()
            }
            None => {
                let sign = rest.chars().next().unwrap_or_default();
                // Writing to a string does not fail.
                let _written = write!(shown, "\\u{:04x}", u32::from(sign));
                sign.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    shown.push_str(rest);
    shown.into()
}

fn steers(sign: char) -> bool {
    match sign {
        '\n' | '\t' => false,
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        sign => sign.is_control(),
    }
}

/// The sequence at the beginning of the text if it is one of those that this shell colours with.
fn colour(text: &str) -> Option<&str> {
    let parameters = text.strip_prefix("\x1b[")?;
    let end = parameters.find('m')?;
    let known = matches!(
        &parameters[..end],
        "0" | "1" | "2" | "31" | "32" | "33" | "35" | "36"
    );
    known.then(|| &text[.."\x1b[".len() + end + 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_shown_and_not_obeyed() {
        for (text, shown) in [
            ("plain größe\n\tx", "plain größe\n\tx"),
            ("\x1b]0;title\x07", "\\u001b]0;title\\u0007"),
            ("a\x1b[2J\rb", "a\\u001b[2J\\u000db"),
            ("\x1b[36m/a\x1b[0m", "\x1b[36m/a\x1b[0m"),
            ("\x1b[8mhidden\x1b[", "\\u001b[8mhidden\\u001b["),
            ("\u{9b}2J\u{7f}", "\\u009b2J\\u007f"),
            ("abc\u{202e}cba", "abc\\u202ecba"),
        ] {
            assert_eq!(harmless(text), shown);
        }
    }
}
