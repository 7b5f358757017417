//! Frames on a connection between members: `length:u32 crc32c:u32 kind:u8 payload`. The length is the
//! payload's, the checksum covers kind and payload.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Bytes in front of the payload.
pub(super) const HEADER: usize = 9;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// A frame of the members.
    Data = 0,
    /// Nothing but a sign of life.
    Ping = 1,
    /// What the sender says of itself has changed.
    Facts = 2,
    /// Asks for a part of an image's file.
    Want = 3,
    /// A piece of that part.
    Chunk = 4,
    /// The image is not there (any more).
    Gone = 5,
    /// The image cannot be read.
    Failed = 6,
    /// Another member is being fed: come again later.
    Busy = 7,
}

impl Kind {
    fn from_code(code: u8) -> Option<Kind> {
        Some(match code {
            0 => Kind::Data,
            1 => Kind::Ping,
            2 => Kind::Facts,
            3 => Kind::Want,
            4 => Kind::Chunk,
            5 => Kind::Gone,
            6 => Kind::Failed,
            7 => Kind::Busy,
            _ => return None,
        })
    }
}

/// What came is not a frame; the connection is of no more use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FrameError {
    #[error("a frame of {0} bytes is longer than allowed")]
    TooLong(usize),
    #[error("a frame's checksum does not match")]
    Checksum,
    #[error("a frame of the unknown kind {0}")]
    UnknownKind(u8),
    #[error("a frame of kind {0:?} that does not belong here or is malformed")]
    Unexpected(Kind),
}

/// Writes the header of a frame whose payload is the concatenation of `payload`.
///
/// # Panics
/// The payload is 4 GiB or longer.
pub(super) fn put_header(out: &mut BytesMut, kind: Kind, payload: &[&[u8]]) {
    let length: usize = payload.iter().map(|part| part.len()).sum();
    let own = crc32c::crc32c(&[kind as u8]);
    let crc = payload
        .iter()
        .fold(own, |crc, part| crc32c::crc32c_append(crc, part));
    out.put_u32(u32::try_from(length).expect("frames are bounded far below"));
    out.put_u32(crc);
    out.put_u8(kind as u8);
}

/// Length of the frame that `input` begins with, header included; `None` while that is not known yet.
///
/// # Errors
/// It is longer than `max` bytes of payload.
pub(super) fn length(input: &[u8], max: usize) -> Result<Option<usize>, FrameError> {
    let Some(prefix) = input.first_chunk::<4>() else {
        return Ok(None);
    };
    let length = usize::try_from(u32::from_be_bytes(*prefix)).unwrap_or(usize::MAX);
    if length > max {
        return Err(FrameError::TooLong(length));
    }
    Ok(Some(HEADER + length))
}

/// Cuts the first frame off `input`; `None` while it is not complete.
///
/// # Errors
/// See [`FrameError`].
pub(super) fn cut(input: &mut BytesMut, max: usize) -> Result<Option<(Kind, Bytes)>, FrameError> {
    match length(input, max)? {
        Some(length) if input.len() >= length => {
            let mut frame = input.split_to(length);
            frame.advance(4);
            let crc = frame.get_u32();
            if crc32c::crc32c(&frame) != crc {
                return Err(FrameError::Checksum);
            }
            let code = frame.get_u8();
            let kind = Kind::from_code(code).ok_or(FrameError::UnknownKind(code))?;
            Ok(Some((kind, frame.freeze())))
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: Kind, payload: &[u8]) -> BytesMut {
        let mut out = BytesMut::new();
        put_header(&mut out, kind, &[payload]);
        out.extend_from_slice(payload);
        out
    }

    #[test]
    fn a_frame_comes_back_once_it_is_whole() {
        let whole = frame(Kind::Data, b"payload");
        for end in 0..whole.len() {
            let mut part = BytesMut::from(&whole[..end]);
            assert_eq!(cut(&mut part, 100), Ok(None));
            assert_eq!(part.len(), end);
        }
        let mut two = whole.clone();
        two.unsplit(frame(Kind::Ping, b""));
        let first = cut(&mut two, 100).expect("whole").expect("there");
        assert_eq!(first, (Kind::Data, Bytes::from_static(b"payload")));
        let second = cut(&mut two, 100).expect("whole").expect("there");
        assert_eq!(second, (Kind::Ping, Bytes::new()));
        assert!(two.is_empty());
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let whole = frame(Kind::Data, b"payload");
        for bit in 0..whole.len() * 8 {
            let mut bad = whole.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let found = cut(&mut bad, 100);
            // A longer length only waits for more, up to the bound.
            assert!(matches!(found, Err(_) | Ok(None)), "bit {bit}: {found:?}");
        }
    }

    #[test]
    fn an_oversize_frame_is_refused_by_its_length_alone() {
        let mut input = BytesMut::from(&101u32.to_be_bytes()[..]);
        assert_eq!(cut(&mut input, 100), Err(FrameError::TooLong(101)));
    }

    #[test]
    fn a_payload_in_parts_has_the_checksum_of_the_whole() {
        let mut parts = BytesMut::new();
        put_header(&mut parts, Kind::Chunk, &[b"pay", b"", b"load"]);
        parts.extend_from_slice(b"payload");
        assert_eq!(parts, frame(Kind::Chunk, b"payload"));
    }
}
