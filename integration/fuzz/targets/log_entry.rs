//! A log entry of any bytes: it is refused, or applied without a panic, and the digest stays that of the
//! rows.
#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use quenda_tree::command::{Batch, Stamp};
use quenda_tree::{Changes, Tree};

fuzz_target!(|bytes: &[u8]| {
    let mut tree = Tree::new();
    let (mut reply, mut changes) = (BytesMut::new(), Changes::new());
    let Ok(batch) = Batch::open(bytes) else {
        return;
    };
    let stamp = Stamp {
        term: 2,
        time_ms: batch.time_ms,
    };
    for command in batch {
        let Ok(command) = command else {
            return;
        };
        reply.clear();
        changes.clear();
        let before = tree.last_zxid();
        let applied = tree.apply(stamp, &command, &mut reply, &mut changes);
        // A restore that is done already says again which zxid it had.
        let is_done = tree.restored().is_some_and(|done| done.zxid == applied.zxid);
        assert!(applied.zxid == 0 || applied.zxid > before || is_done);
    }
});
