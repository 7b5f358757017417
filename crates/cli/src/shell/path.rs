//! Paths of znodes: which are legal, in zkCli's words, and in what order they are shown.

use super::CommandError;

/// Fails with the Java client's text if the path is not legal.
pub fn check(path: &str) -> Result<(), CommandError> {
    match fault(path) {
        None => Ok(()),
        Some(text) => Err(CommandError::Failed(text)),
    }
}

/// The same for a path that gets a sequence suffix: it may end with a slash.
pub fn check_sequential(path: &str) -> Result<(), CommandError> {
    check(&format!("{path}1"))
}

fn fault(path: &str) -> Option<String> {
    if path.is_empty() {
        return Some("Path length must be > 0".to_owned());
    }
    if !path.starts_with('/') {
        return Some("Path must start with / character".to_owned());
    }
    if path.len() > 1 && path.ends_with('/') {
        return Some("Path must not end with / character".to_owned());
    }
    let reason = fault_inside(path)?;
    Some(format!("Invalid path string \"{path}\" caused by {reason}"))
}

/// Positions count UTF-16 units, as Java's strings do.
fn fault_inside(path: &str) -> Option<String> {
    let units: Vec<u16> = path.encode_utf16().collect();
    let slash = u16::from(b'/');
    let dot = u16::from(b'.');
    let ends = |index: usize| units.get(index).is_none_or(|unit| *unit == slash);
    for (index, unit) in units.iter().enumerate().skip(1) {
        let before = units[index - 1];
        let fault = match *unit {
            0 => Some("null character not allowed"),
            unit if unit == slash => (before == slash).then_some("empty node name specified"),
            unit if unit == dot && before == dot => {
                (units.get(index.wrapping_sub(2)) == Some(&slash) && ends(index + 1))
                    .then_some("relative paths not allowed")
            }
            unit if unit == dot => {
                (before == slash && ends(index + 1)).then_some("relative paths not allowed")
            }
            0x01..=0x1f | 0x7f..=0x9f | 0xd800..=0xf8ff | 0xfff0..=0xffff => {
                Some("invalid character")
            }
            _ => None,
        };
        if let Some(fault) = fault {
            return Some(format!("{fault} @{index}"));
        }
    }
    None
}

/// Path of a child.
pub fn child(parent: &str, name: &str) -> String {
    if parent == "/" {
        format!("/{name}")
    } else {
        format!("{parent}/{name}")
    }
}

/// Sorts as Java does, by UTF-16 units.
pub fn sort(names: &mut [String]) {
    names.sort_unstable_by(|left, right| left.encode_utf16().cmp(right.encode_utf16()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_have_the_java_clients_words() {
        let cases = [
            ("/", None),
            ("/a/b.c/..d/...", None),
            (
                "/größe/\u{1f600}",
                Some("Invalid path string \"/größe/\u{1f600}\" caused by invalid character @7"),
            ),
            ("", Some("Path length must be > 0")),
            ("a", Some("Path must start with / character")),
            ("/a/", Some("Path must not end with / character")),
            (
                "/a//b",
                Some("Invalid path string \"/a//b\" caused by empty node name specified @3"),
            ),
            (
                "/a/./b",
                Some("Invalid path string \"/a/./b\" caused by relative paths not allowed @3"),
            ),
            (
                "/a/..",
                Some("Invalid path string \"/a/..\" caused by relative paths not allowed @4"),
            ),
            (
                "/a\u{1}",
                Some("Invalid path string \"/a\u{1}\" caused by invalid character @2"),
            ),
        ];
        for (path, expected) in cases {
            assert_eq!(fault(path).as_deref(), expected, "{path:?}");
        }
        assert!(check_sequential("/a/").is_ok());
    }

    #[test]
    fn order_is_that_of_utf16() {
        let mut names = vec![
            "\u{ff5e}".to_owned(),
            "\u{1f600}".to_owned(),
            "a".to_owned(),
        ];
        sort(&mut names);
        assert_eq!(names, ["a", "\u{1f600}", "\u{ff5e}"]);
    }
}
