//! Several reads as one request.

use bytes::BytesMut;
use quenda_proto::acl::perms::READ;
use quenda_proto::multi::{self, ReadOp};
use quenda_proto::{ErrorCode, Op, Reader};

use crate::reads::{ReadContext, put_children, put_data, text};
use crate::reply::put_stat;

/// Operations are independent of each other: one that fails gives its own error. Watches are not left.
pub(crate) fn multi_read(cx: &mut ReadContext<'_>, body: &[u8]) -> Result<(), ErrorCode> {
    let ops =
        multi::decode_reads(&mut Reader::new(body)).map_err(|_| ErrorCode::MarshallingError)?;
    let start = cx.out.len();
    let frame = cx.begin(64);
    for op in &ops {
        if let Err(error) = put_result(cx, op) {
            multi::put_error(cx.out, error);
        }
        // A small request can name the same large znode many times.
        if cx.out.len() - start > cx.settings.limits.output_max {
            cx.overflow = true;
            break;
        }
    }
    multi::put_terminator(cx.out);
    frame.finish(cx.out);
    Ok(())
}

fn put_result(cx: &mut ReadContext<'_>, op: &ReadOp<'_>) -> Result<(), ErrorCode> {
    match op {
        ReadOp::GetData(request) => {
            let node = cx.node(text(&request.path)?, READ)?;
            let out: &mut BytesMut = cx.out;
            multi::put_result_header(out, Op::GetData);
            put_data(out, &node);
            put_stat(out, &node.stat());
        }
        ReadOp::GetChildren(request) => {
            let node = cx.node(text(&request.path)?, READ)?;
            multi::put_result_header(cx.out, Op::GetChildren);
            put_children(cx.out, &node);
        }
    }
    Ok(())
}
