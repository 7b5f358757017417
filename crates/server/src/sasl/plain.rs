//! The plain file of users: `user: password`, one a line.

use std::collections::BTreeMap;

use quenda_frontend::Password;

use super::jaas::Malformed;

/// Reads a text. Blanks around a user and a password do not count; a line that begins with `#` is a comment.
///
/// # Errors
/// A line of another form, or a second one for a user.
pub fn parse(text: &str) -> Result<BTreeMap<String, Password>, Malformed> {
    let mut users = BTreeMap::new();
    for (line, content) in (1..).zip(text.lines()) {
        let content = content.trim();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let wrong = |problem: &str| Malformed {
            line,
            problem: problem.to_owned(),
        };
        let (user, password) = content
            .split_once(':')
            .map(|(user, password)| (user.trim(), password.trim()))
            .filter(|(user, password)| !user.is_empty() && !password.is_empty())
            .ok_or_else(|| wrong("wanted `user: password`"))?;
        let before = users.insert(user.to_owned(), Password::new(password));
        if before.is_some() {
            return Err(wrong(&format!("a second line for {user}")));
        }
    }
    Ok(users)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_passwords_are_cut_at_the_first_colon() {
        let text = "# users\n\nbob: bobsecret\n  eve :  a:b c#d  \r\njos\u{e9}:\u{3b1}";
        let expected = [
            ("bob", "bobsecret"),
            ("eve", "a:b c#d"),
            ("jos\u{e9}", "\u{3b1}"),
        ];
        let expected = expected.map(|(user, text)| (user.to_owned(), Password::new(text)));
        assert_eq!(parse(text), Ok(BTreeMap::from(expected)));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line_and_without_passwords() {
        for (text, expected) in [
            ("bob: x\nsecret\n", "line 2: wanted `user: password`"),
            (": secret", "line 1: wanted `user: password`"),
            ("\nbob:\n", "line 2: wanted `user: password`"),
            ("bob: secret\n\nbob: other", "line 3: a second line for bob"),
        ] {
            assert_eq!(parse(text).expect_err(text).to_string(), expected);
        }
    }
}
