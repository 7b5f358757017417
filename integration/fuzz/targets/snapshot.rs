//! A snapshot of any bytes, of any length that is claimed for it: it is refused, or can be restored, and the
//! digest stays that of the rows.
#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use quenda_proto::ErrorCode;
use quenda_tree::command::{Command, Origin, Stamp};
use quenda_tree::{Changes, PieceSum, Tree, check_snapshot};

fuzz_target!(|bytes: &[u8]| {
    // Too long a claim ends in an error of the reader, whatever is asked for.
    assert!(check_snapshot(bytes, bytes.len() as u64 + 1).is_err());
    let mut tree = Tree::new();
    let found_good = check_snapshot(bytes, bytes.len() as u64).is_ok();
    let (origin, stamp) = (Origin::default(), Stamp { term: 1, time_ms: 0 });
    let (mut reply, mut changes) = (BytesMut::new(), Changes::new());
    let mut sum = PieceSum::default();
    let mut number = 0;
    for piece in bytes.chunks(100) {
        sum.add(piece);
        let command = Command::AddPiece { origin, restore: 1, number, bytes: piece };
        let applied = tree.apply(stamp, &command, &mut reply, &mut changes);
        assert_eq!(applied.code, ErrorCode::Ok);
        number += 1;
    }
    let command = Command::Restore { origin, restore: 1, sum: sum.value() };
    let applied = tree.apply(stamp, &command, &mut reply, &mut changes);
    assert_eq!(applied.code == ErrorCode::Ok, found_good);
    assert_eq!(tree.digest(), tree.recompute_digest());
});
