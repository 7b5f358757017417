//! `addauth`.

use super::{CommandError, Output, Session, options, usage};

/// Proves an identity. As in zkCli nothing is printed; a refusal shows as the event AuthFailed, and where events are
/// kept off as an error.
pub async fn add(session: &Session, args: &[String], out: &Output) -> Result<(), CommandError> {
    let parsed = options::parse(&[], args)?;
    let Some(scheme) = parsed.words.first() else {
        return Err(usage::of("addauth"));
    };
    let secret = parsed
        .words
        .get(1)
        .map(String::as_bytes)
        .unwrap_or_default();
    match session.client().add_auth(scheme, secret).await {
        Err(error) if out.is_quiet() => Err(CommandError::failed(format!(
            "The server refused this identity ({error}) and ended the connection: check the scheme and the secret, \
             then `connect`"
        ))),
        Ok(()) | Err(_) => Ok(()),
    }
}
