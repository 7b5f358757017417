//! Numbers among the arguments.

use super::CommandError;
use super::options::Parsed;

/// Value of `-v`, −1 (any version) without it.
pub fn version(parsed: &Parsed) -> Result<i32, CommandError> {
    match parsed.value("v") {
        None => Ok(-1),
        Some(text) => text.parse().map_err(|_| {
            CommandError::failed(format!(
                "-v needs a version, a whole number, and \"{text}\" is none"
            ))
        }),
    }
}
