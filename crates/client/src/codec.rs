//! Frames as a tokio-util codec, for code that works with `Framed`.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use quenda_proto::frame;
use tokio_util::codec::{Decoder, Encoder};

use crate::Error;

/// Cuts the payloads of frames off a stream and puts lengths in front of payloads.
#[derive(Debug, Clone)]
pub struct FrameCodec {
    max: usize,
}

impl FrameCodec {
    /// Refuses inbound frames above `max` bytes.
    pub fn new(max: usize) -> Self {
        FrameCodec { max }
    }
}

impl Decoder for FrameCodec {
    type Item = Bytes;
    type Error = Error;

    fn decode(&mut self, input: &mut BytesMut) -> Result<Option<Bytes>, Error> {
        let Some((payload, _)) = frame::split(input, self.max)? else {
            return Ok(None);
        };
        let length = payload.len();
        input.advance(4);
        Ok(Some(input.split_to(length).freeze()))
    }
}

impl Encoder<&[u8]> for FrameCodec {
    type Error = Error;

    fn encode(&mut self, payload: &[u8], out: &mut BytesMut) -> Result<(), Error> {
        out.reserve(4 + payload.len());
        out.put_i32(payload.len() as i32);
        out.put_slice(payload);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_survive_any_cut_of_the_stream() {
        let mut codec = FrameCodec::new(16);
        let mut stream = BytesMut::new();
        for payload in [&b"abc"[..], b"", b"0123456789abcdef"] {
            codec.encode(payload, &mut stream).expect("encodes");
        }
        let mut input = BytesMut::new();
        let mut found = Vec::new();
        for byte in stream {
            input.put_u8(byte);
            found.extend(codec.decode(&mut input).expect("legal frames"));
        }
        assert_eq!(found, [&b"abc"[..], b"", b"0123456789abcdef"]);
    }

    #[test]
    fn a_frame_above_the_bound_is_refused_before_its_payload_arrives() {
        let mut input = BytesMut::from(&17i32.to_be_bytes()[..]);
        assert!(matches!(
            FrameCodec::new(16).decode(&mut input),
            Err(Error::Frame(_))
        ));
    }
}
