//! An answer that counts until it was sent.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

/// A text, and the turn in which it was made: long answers are in memory for as long as their callers take to read them.
struct HeldBody {
    text: Option<Bytes>,
    _turn: OwnedSemaphorePermit,
}

/// A body that gives `turn` back when it was sent, or cannot be.
pub(super) fn held(text: String, turn: OwnedSemaphorePermit) -> Body {
    Body::new(HeldBody {
        text: Some(text.into()),
        _turn: turn,
    })
}

impl HttpBody for HeldBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.text.take().map(|text| Ok(Frame::data(text))))
    }

    fn is_end_stream(&self) -> bool {
        self.text.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.text.as_ref().map_or(0, |text| text.len() as u64))
    }
}
