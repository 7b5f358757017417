//! Command lines cut into words, as zkCli does it: blanks separate, quotes at the start of a word reach to the next
//! quote of their kind, nothing escapes anything.

/// Words of a line.
pub fn split(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        rest = rest.trim_start_matches(is_blank);
        let Some(first) = rest.chars().next() else {
            return words;
        };
        rest = if first == '"' || first == '\'' {
            take_quoted(rest, first, &mut words)
        } else {
            let end = rest.find(is_blank).unwrap_or(rest.len());
            words.push(rest[..end].to_owned());
            &rest[end..]
        };
    }
}

/// What Java's regular expressions take for white space.
fn is_blank(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\n' | '\u{b}' | '\u{c}' | '\r')
}

/// A quote that is never closed is passed over, as zkCli does.
fn take_quoted<'a>(rest: &'a str, quote: char, words: &mut Vec<String>) -> &'a str {
    let inner = &rest[1..];
    match inner.find(quote) {
        Some(end) => {
            words.push(inner[..end].to_owned());
            &inner[end + 1..]
        }
        None => inner,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_as_zkcli_cuts_them() {
        let cases: [(&str, &[&str]); 8] = [
            ("  ls   /a\t-s ", &["ls", "/a", "-s"]),
            (r#"set /a "two words" "#, &["set", "/a", "two words"]),
            (r#"set /a 'say "hi"'"#, &["set", "/a", r#"say "hi""#]),
            (r#"set /a """#, &["set", "/a", ""]),
            (r#"set /a b"c d"#, &["set", "/a", "b\"c", "d"]),
            (r#"set /a "b"c"#, &["set", "/a", "b", "c"]),
            (r#"set /a "open end"#, &["set", "/a", "open", "end"]),
            ("   ", &[]),
        ];
        for (line, words) in cases {
            assert_eq!(split(line), words, "{line}");
        }
    }
}
