//! Threads whose end by panic is the end of the process: a member must not go on with half a state.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{Builder, JoinHandle};

use tracing::error;

/// Starts a named thread.
///
/// # Errors
/// The system gives no thread.
pub fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let label = name.to_string();
    Builder::new().name(name.to_string()).spawn(move || {
        if catch_unwind(AssertUnwindSafe(body)).is_err() {
            error!(
                thread = label,
                "a core thread panicked; what was acknowledged is on disk"
            );
            std::process::abort();
        }
    })
}
