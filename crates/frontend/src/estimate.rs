//! How large the reply to a read will be, about, while it still waits behind a write.
//!
//! Reads behind a write in flight have to be served when that write is applied, whatever output waits, so
//! their replies are bounded beforehand: by what is taken in.

use quenda_proto::multi::{ReadOp, decode_reads};
use quenda_proto::records::{GetChildrenRequest, GetDataRequest};
use quenda_proto::{Decode, Op, Reader};
use quenda_tree::Tree;

/// Header and metadata of a reply, and all there is to a small one.
const SMALL: usize = 128;

/// Length of a child's name on the wire, about.
const NAME: usize = 32;

/// A list of paths or entries whose length only its handler knows.
const LIST: usize = 64 << 10;

/// Bytes of the reply to a request of this kind, about, by the state as it is now. `written` is the most
/// that a write in flight in front of it may have stored.
pub(crate) fn reply_bytes(op: Op, body: &[u8], tree: &Tree, written: usize) -> usize {
    let mut reader = Reader::new(body);
    match op {
        Op::GetData => match GetDataRequest::decode(&mut reader) {
            Ok(request) => SMALL + data(tree, request.path.as_deref()).max(written),
            Err(_) => SMALL,
        },
        // Both have the same record.
        Op::GetChildren | Op::GetChildren2 => match GetChildrenRequest::decode(&mut reader) {
            Ok(request) => SMALL + children(tree, request.path.as_deref()),
            Err(_) => SMALL,
        },
        Op::MultiRead => {
            let ops = decode_reads(&mut reader).unwrap_or_default();
            ops.iter().map(|op| read_bytes(op, tree, written)).sum()
        }
        Op::GetAcl | Op::GetEphemerals | Op::SetWatches | Op::SetWatches2 => LIST,
        Op::Exists
        | Op::Sync
        | Op::Ping
        | Op::CheckWatches
        | Op::RemoveWatches
        | Op::GetAllChildrenNumber
        | Op::AddWatch
        | Op::WhoAmI
        | Op::Create
        | Op::Create2
        | Op::CreateContainer
        | Op::CreateTtl
        | Op::Delete
        | Op::DeleteContainer
        | Op::SetData
        | Op::SetAcl
        | Op::Check
        | Op::Multi
        | Op::Reconfig
        | Op::Auth
        | Op::Sasl
        | Op::CreateSession
        | Op::CloseSession => SMALL,
    }
}

fn read_bytes(op: &ReadOp<'_>, tree: &Tree, written: usize) -> usize {
    match op {
        ReadOp::GetData(request) => SMALL + data(tree, request.path.as_deref()).max(written),
        ReadOp::GetChildren(request) => SMALL + children(tree, request.path.as_deref()),
    }
}

fn data(tree: &Tree, path: Option<&str>) -> usize {
    path.and_then(|path| tree.get(path))
        .and_then(|node| node.data())
        .map_or(0, <[u8]>::len)
}

fn children(tree: &Tree, path: Option<&str>) -> usize {
    let node = path.and_then(|path| tree.get(path));
    node.map_or(0, |node| node.child_count() * NAME)
}
