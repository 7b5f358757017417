//! What is said on a connection that carries an image: the receiver asks for a part of a file, the source
//! sends it in pieces, the receiver asks for the next part.

use bytes::{Buf, BufMut, Bytes};

use crate::limits::IMAGE_CHUNK_BYTES;

/// Bytes in front of a piece.
pub(super) const CHUNK_HEAD: usize = 12;

/// The longest payload on such a connection.
pub(super) const IMAGE_FRAME_MAX: usize = IMAGE_CHUNK_BYTES + CHUNK_HEAD;

/// Asks for a part of a file of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Want {
    pub(super) index: u64,
    pub(super) file: u32,
    pub(super) offset: u64,
    pub(super) length: u64,
}

impl Want {
    pub(super) fn encode(self) -> Bytes {
        let mut out = Vec::with_capacity(28);
        out.put_u64(self.index);
        out.put_u32(self.file);
        out.put_u64(self.offset);
        out.put_u64(self.length);
        out.into()
    }

    /// Reads what [`Want::encode`] wrote; `None` when it is something else.
    pub(super) fn decode(mut input: &[u8]) -> Option<Want> {
        if input.len() != 28 {
            return None;
        }
        Some(Want {
            index: input.get_u64(),
            file: input.get_u32(),
            offset: input.get_u64(),
            length: input.get_u64(),
        })
    }
}

/// What stands in front of a piece: its file and offset.
pub(super) fn chunk_head(file: u32, offset: u64) -> [u8; CHUNK_HEAD] {
    let mut head = [0; CHUNK_HEAD];
    head[..4].copy_from_slice(&file.to_be_bytes());
    head[4..].copy_from_slice(&offset.to_be_bytes());
    head
}

/// A piece's file, offset and bytes; `None` when it is none.
pub(super) fn split_chunk(mut payload: Bytes) -> Option<(u32, u64, Bytes)> {
    if payload.len() <= CHUNK_HEAD {
        return None;
    }
    let file = payload.get_u32();
    let offset = payload.get_u64();
    Some((file, offset, payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let want = Want {
            index: 1,
            file: 2,
            offset: 3,
            length: 4,
        };
        let bytes = want.encode();
        assert_eq!(Want::decode(&bytes), Some(want));
        assert_eq!(Want::decode(&bytes[1..]), None);
        let mut chunk = chunk_head(7, 9).to_vec();
        assert_eq!(split_chunk(chunk.clone().into()), None);
        chunk.push(5);
        let piece = (7, 9, Bytes::from_static(&[5]));
        assert_eq!(split_chunk(chunk.into()), Some(piece));
    }
}
