//! Frames and the handshake: any bytes are cut, refused or kept waiting, and what decodes encodes to the
//! same bytes again.
#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use quenda_proto::connect::Handshake;
use quenda_proto::frame;

fuzz_target!(|bytes: &[u8]| {
    let mut rest = bytes;
    while let Ok(Some((payload, behind))) = frame::split(rest, 4096) {
        assert_eq!(payload.len() + behind.len() + 4, rest.len());
        rest = behind;
    }
    if let Ok(handshake) = Handshake::decode(bytes) {
        let mut again = BytesMut::new();
        handshake.encode(&mut again);
        assert_eq!(Handshake::decode(&again).as_ref(), Ok(&handshake));
    }
});
