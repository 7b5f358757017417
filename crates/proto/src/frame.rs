//! Frames: a four-byte length and that many bytes.

use bytes::{BufMut, BytesMut};

use crate::ErrorCode;

/// Default bound of an inbound frame in bytes (`jute.maxbuffer`), inclusive.
pub const MAX_FRAME_DEFAULT: usize = 0xF_FFFF;

/// Why a stream of bytes cannot be cut any further. The connection has to be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameError {
    /// The length is negative.
    Negative(i32),
    /// The length is above the bound.
    TooLarge {
        /// Length that was announced, in bytes.
        length: usize,
        /// Bound in bytes.
        max: usize,
    },
}

impl std::fmt::Display for FrameError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FrameError::Negative(length) => write!(f, "a frame announces the length {length}"),
            FrameError::TooLarge { length, max } => {
                write!(
                    f,
                    "a frame announces {length} bytes, the limit (jute.maxbuffer) is {max}"
                )?;
                match spoken(*length) {
                    Some(other) => write!(f, "; with these bytes begins {other}"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl std::error::Error for FrameError {}

/// The protocol of a client that speaks another one, by the four bytes that were taken for a length.
fn spoken(length: usize) -> Option<&'static str> {
    match u32::try_from(length).ok()?.to_be_bytes() {
        [0x16, 3, 0..=4, _] => Some("TLS, which is spoken on secureClientPort"),
        [b'G', b'E', b'T', b' '] | [b'H', b'E', b'A', b'D'] | [b'P', b'O', b'S', b'T'] => {
            Some("a request of HTTP")
        }
        _ => None,
    }
}

/// Cuts the first frame off `bytes`: its payload and what lies behind it, or `None` when it is not
/// complete. Looks at the length before any memory is taken.
#[allow(clippy::type_complexity)]
pub fn split(bytes: &[u8], max: usize) -> Result<Option<(&[u8], &[u8])>, FrameError> {
    let Some((raw, rest)) = bytes.split_first_chunk::<4>() else {
        return Ok(None);
    };
    let announced = i32::from_be_bytes(*raw);
    let length = usize::try_from(announced).map_err(|_| FrameError::Negative(announced))?;
    if length > max {
        return Err(FrameError::TooLarge { length, max });
    }
    Ok(rest.split_at_checked(length))
}

/// Appends a reply frame without a body.
pub fn put_reply(out: &mut BytesMut, xid: i32, zxid: i64, error: ErrorCode) {
    out.reserve(20);
    out.put_i32(16);
    put_reply_header(out, xid, zxid, error);
}

/// Appends the 16 bytes of a reply header.
pub fn put_reply_header(out: &mut BytesMut, xid: i32, zxid: i64, error: ErrorCode) {
    out.put_i32(xid);
    out.put_i64(zxid);
    out.put_i32(error.code());
}

/// A frame whose length is filled in at the end.
#[derive(Debug)]
#[must_use = "a frame has no length before it is finished"]
pub struct OpenFrame {
    start: usize,
}

impl OpenFrame {
    /// Starts a frame at the end of `out`.
    pub fn start(out: &mut BytesMut) -> OpenFrame {
        let start = out.len();
        out.put_i32(0);
        OpenFrame { start }
    }

    /// Writes the length of what was appended since the start.
    pub fn finish(self, out: &mut BytesMut) {
        let length = (out.len() - self.start - 4) as i32;
        out[self.start..self.start + 4].copy_from_slice(&length.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_protocols_are_recognised() {
        let text = |begin: &[u8; 4]| split(begin, 9).expect_err("too large").to_string();
        assert!(
            text(&[0x16, 3, 1, 2]).ends_with("begins TLS, which is spoken on secureClientPort")
        );
        assert!(text(b"GET ").ends_with("begins a request of HTTP"));
        assert!(text(&[0x16, 4, 1, 2]).ends_with("is 9"));
    }

    #[test]
    fn the_bound_is_inclusive() {
        let mut bytes = BytesMut::new();
        bytes.put_i32(8);
        bytes.put_bytes(0, 8);
        assert!(matches!(split(&bytes, 8), Ok(Some((payload, []))) if payload.len() == 8));
        assert_eq!(
            split(&bytes, 7),
            Err(FrameError::TooLarge { length: 8, max: 7 })
        );
    }

    #[test]
    fn a_partial_frame_waits_and_a_negative_one_fails() {
        assert_eq!(split(&[0, 0, 0], 8), Ok(None));
        assert_eq!(split(&[0, 0, 0, 2, 1], 8), Ok(None));
        assert_eq!(
            split(&[0xFF, 0xFF, 0xFF, 0xFE], 8),
            Err(FrameError::Negative(-2))
        );
    }

    #[test]
    fn an_open_frame_gets_its_length() {
        let mut out = BytesMut::from(&b"x"[..]);
        let frame = OpenFrame::start(&mut out);
        out.put_slice(b"abc");
        frame.finish(&mut out);
        assert_eq!(&out[..], b"x\0\0\0\x03abc");
    }
}
