//! What another member sends, of any bytes: it is refused, or means the same after it was encoded again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quenda_node::frame::Frame;

fuzz_target!(|bytes: &[u8]| {
    let Ok(frame) = Frame::decode(bytes) else {
        return;
    };
    let encoded = frame.encode();
    assert_eq!(Frame::decode(&encoded).as_ref(), Ok(&frame));
});
