//! What an exchange needs from outside.

use core::fmt;
use std::sync::Arc;

/// Random bytes in the nonce of a challenge.
pub const NONCE_BYTES: usize = 30;

/// Who may authenticate by SASL, and randomness.
pub trait SaslUsers {
    /// Bytes for a nonce that nobody can foresee, new at each call.
    fn nonce(&self) -> [u8; NONCE_BYTES];
    /// The password of a user; none if there is no such user.
    fn password(&self, user: &str) -> Option<Password>;
}

/// A password. Nothing shows it by accident.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(Arc<str>);

impl Password {
    /// The password with this text.
    pub fn new(text: &str) -> Password {
        Password(text.into())
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Password")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        let shown = format!("{:?}", Some(Password::new("secret")));
        assert_eq!(shown, "Some(Password)");
    }
}
