//! Frames and records written straight into the output.

use bytes::{BufMut, BytesMut};
use quenda_proto::ErrorCode;
use quenda_proto::frame::{OpenFrame, put_reply_header};
use quenda_proto::records::Stat;

/// Bytes of a Stat on the wire.
pub(crate) const STAT_LEN: usize = 68;
/// Bytes of a frame's length and reply header.
pub(crate) const HEADER_LEN: usize = 20;

/// Starts a successful reply with room for `body` more bytes.
pub(crate) fn begin(out: &mut BytesMut, xid: i32, zxid: i64, body: usize) -> OpenFrame {
    out.reserve(HEADER_LEN + body);
    let frame = OpenFrame::start(out);
    put_reply_header(out, xid, zxid, ErrorCode::Ok);
    frame
}

/// Appends a whole reply whose body is encoded already.
pub(crate) fn put_whole(out: &mut BytesMut, xid: i32, zxid: i64, body: &[u8]) {
    out.reserve(HEADER_LEN + body.len());
    out.put_i32((HEADER_LEN - 4 + body.len()) as i32);
    put_reply_header(out, xid, zxid, ErrorCode::Ok);
    out.put_slice(body);
}

/// Appends a Stat in one piece: it is part of most replies.
pub(crate) fn put_stat(out: &mut BytesMut, stat: &Stat) {
    let mut raw = [0; STAT_LEN];
    {
        let mut rest = &mut raw[..];
        rest.put_i64(stat.czxid);
        rest.put_i64(stat.mzxid);
        rest.put_i64(stat.ctime);
        rest.put_i64(stat.mtime);
        rest.put_i32(stat.version);
        rest.put_i32(stat.cversion);
        rest.put_i32(stat.aversion);
        rest.put_i64(stat.ephemeral_owner);
        rest.put_i32(stat.data_length);
        rest.put_i32(stat.num_children);
        rest.put_i64(stat.pzxid);
    }
    out.put_slice(&raw);
}

#[cfg(test)]
mod tests {
    use super::*;
    use quenda_proto::Encode;

    #[test]
    fn a_stat_is_encoded_as_its_record_says() {
        let stat = Stat {
            czxid: 1,
            mzxid: 2,
            ctime: 3,
            mtime: 4,
            version: 5,
            cversion: 6,
            aversion: 7,
            ephemeral_owner: 8,
            data_length: 9,
            num_children: 10,
            pzxid: 11,
        };
        let (mut own, mut record) = (BytesMut::new(), BytesMut::new());
        put_stat(&mut own, &stat);
        stat.encode(&mut record);
        assert_eq!(own, record);
    }
}
