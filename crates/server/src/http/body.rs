//! Reading a request's body with bounds.

use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use tokio::time::timeout;

/// Why a body is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// It is longer than allowed.
    #[error("the body is longer than {0} bytes")]
    TooLong(usize),
    /// It did not come in time, or its sender has gone.
    #[error("the body did not come in time")]
    Incomplete,
}

/// The whole body of at most `most` bytes, which has to be there within `patience`.
///
/// # Errors
/// It is too long or does not come.
pub async fn read_body(body: Body, most: usize, patience: Duration) -> Result<Bytes, BodyError> {
    match timeout(patience, to_bytes(body, most)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if is_too_long(&error) => Err(BodyError::TooLong(most)),
        Ok(Err(_)) | Err(_) => Err(BodyError::Incomplete),
    }
}

fn is_too_long(error: &axum::Error) -> bool {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = cause {
        if error.to_string().contains("length limit exceeded") {
            return true;
        }
        cause = error.source();
    }
    false
}
