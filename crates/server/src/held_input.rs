//! What a connection that waits for its turn keeps of what its client has sent.

use bytes::BytesMut;

use crate::limits::HELD_BYTES;

/// Gives up the memory that a short rest does not need: thousands of connections may wait at once, each with a
/// buffer of a whole read for a request or two.
pub fn fit(input: &mut BytesMut) {
    if input.len() <= HELD_BYTES {
        *input = BytesMut::from(&input[..]);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Buf as _;

    use super::*;
    use crate::limits::READ_BYTES;

    #[test]
    fn a_short_rest_keeps_what_it_needs_and_a_long_one_is_not_copied() {
        let mut input = BytesMut::with_capacity(READ_BYTES);
        input.extend_from_slice(&[7; 150]);
        input.advance(50);
        fit(&mut input);
        assert_eq!(input[..], [7; 100]);
        assert!(input.capacity() <= HELD_BYTES);
        let mut long = BytesMut::with_capacity(READ_BYTES);
        long.extend_from_slice(&[7; HELD_BYTES + 1]);
        let before = long.as_ptr();
        fit(&mut long);
        assert_eq!(long.as_ptr(), before);
    }
}
