//! Commands by name.

use super::{CommandError, Output, Session, get, ls, set};

/// Runs the command of that name.
pub async fn run(
    session: &Session,
    name: &str,
    args: &[String],
    out: &mut Output,
) -> Result<(), CommandError> {
    match name {
        "get" => get::run(session, args, out).await,
        "ls" => ls::run(session, args, out).await,
        "set" => set::run(session, args, out).await,
        _ => Err(CommandError::NotFound(name.to_owned())),
    }
}
