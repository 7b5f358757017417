//! Standard output of commands that print once.

use std::io::{self, Write as _};

/// Prints a text. A reader that has seen enough (`| head`) is no error.
///
/// # Errors
/// Standard output does not take it.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
