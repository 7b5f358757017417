//! The grammar of znode paths.

use std::ops::ControlFlow;

/// What is wrong with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathError {
    /// It has no characters.
    Empty,
    /// It does not start with a slash.
    Relative,
    /// It ends in a slash and is not the root.
    TrailingSlash,
    /// A component is empty, "." or "..".
    Component,
    /// It holds a character that names may not contain.
    Character(char),
}

impl std::fmt::Display for PathError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PathError::Empty => write!(f, "a path cannot be empty"),
            PathError::Relative => write!(f, "a path starts with a slash"),
            PathError::TrailingSlash => write!(f, "a path does not end in a slash"),
            PathError::Component => write!(f, "a path has no empty, \".\" or \"..\" component"),
            PathError::Character(c) => write!(f, "a path cannot hold U+{:04X}", *c as u32),
        }
    }
}

impl std::error::Error for PathError {}

/// Checks the whole grammar of a path.
pub fn validate(path: &str) -> Result<(), PathError> {
    let rest = match path.strip_prefix('/') {
        Some("") => return Ok(()),
        Some(rest) => rest,
        None if path.is_empty() => return Err(PathError::Empty),
        None => return Err(PathError::Relative),
    };
    if let ControlFlow::Break(c) = forbidden_in(rest) {
        return Err(PathError::Character(c));
    }
    if rest.ends_with('/') {
        return Err(PathError::TrailingSlash);
    }
    if rest.split('/').any(|name| matches!(name, "" | "." | "..")) {
        return Err(PathError::Component);
    }
    Ok(())
}

fn forbidden_in(text: &str) -> ControlFlow<char> {
    if text.bytes().all(|byte| (0x20..0x7F).contains(&byte)) {
        return ControlFlow::Continue(());
    }
    match text.chars().find(|c| is_forbidden(*c)) {
        Some(c) => ControlFlow::Break(c),
        None => ControlFlow::Continue(()),
    }
}

/// Characters that no name may hold: controls, surrogates (so everything beyond the basic plane),
/// the private use area and U+FFF0 to U+FFFF.
fn is_forbidden(c: char) -> bool {
    matches!(c as u32, 0x00..=0x1F | 0x7F..=0x9F | 0xD800..=0xF8FF | 0xFFF0..)
}

/// Parent and last component: the text before and behind the last slash. The parent of "/a" is "".
pub fn split_parent(path: &str) -> Option<(&str, &str)> {
    path.rsplit_once('/')
}

/// The parent of a valid path that is not the root.
pub fn parent(path: &str) -> &str {
    match split_parent(path) {
        Some(("", _)) | None => "/",
        Some((parent, _)) => parent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legal_paths() {
        for path in [
            "/",
            "/a",
            "/a b",
            "/...",
            "/.a/a.",
            "/é/漢字",
            "/a/\u{F900}",
            "/\u{FFEF}",
        ] {
            assert_eq!(validate(path), Ok(()), "{path}");
        }
    }

    #[test]
    fn illegal_paths() {
        let cases = [
            ("", PathError::Empty),
            ("a", PathError::Relative),
            ("/a/", PathError::TrailingSlash),
            ("//", PathError::TrailingSlash),
            ("//a", PathError::Component),
            ("/a/./b", PathError::Component),
            ("/..", PathError::Component),
            ("/a\0", PathError::Character('\0')),
            ("/\u{1F}", PathError::Character('\u{1F}')),
            ("/\u{7F}", PathError::Character('\u{7F}')),
            ("/\u{E000}", PathError::Character('\u{E000}')),
            ("/\u{FFFD}", PathError::Character('\u{FFFD}')),
            ("/\u{1F600}", PathError::Character('\u{1F600}')),
        ];
        for (path, error) in cases {
            assert_eq!(validate(path), Err(error), "{path:?}");
        }
    }

    #[test]
    fn parents() {
        assert_eq!(parent("/a"), "/");
        assert_eq!(parent("/a/b"), "/a");
        assert_eq!(split_parent("/a"), Some(("", "a")));
    }
}
