//! Bodies of multi and multiRead: operations one behind the other, and their results.

use bytes::{BufMut, BytesMut};

use crate::ErrorCode;
use crate::jute::{Decode, DecodeError, Encode, Reader, put_string};
use crate::mode::CreateMode;
use crate::op::Op;
use crate::records::{
    CheckVersionRequest, CreateRequest, CreateTtlRequest, DeleteRequest, GetChildrenRequest,
    GetDataRequest, MultiHeader, SetDataRequest, Stat,
};

/// One write of a multi.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteOp<'a> {
    /// create, create2 or createContainer, as the operation code says.
    Create(Op, CreateRequest<'a>),
    /// createTTL.
    CreateTtl(CreateTtlRequest<'a>),
    /// delete.
    Delete(DeleteRequest<'a>),
    /// setData.
    SetData(SetDataRequest<'a>),
    /// check.
    Check(CheckVersionRequest<'a>),
}

/// One read of a multiRead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadOp<'a> {
    /// getData.
    GetData(GetDataRequest<'a>),
    /// getChildren.
    GetChildren(GetChildrenRequest<'a>),
}

/// The terminator behind the last operation and the last result.
const TERMINATOR: MultiHeader = MultiHeader {
    kind: -1,
    done: true,
    err: -1,
};

fn next_header(reader: &mut Reader<'_>) -> Result<Option<i32>, DecodeError> {
    let header = MultiHeader::decode(reader)?;
    Ok((!header.done).then_some(header.kind))
}

/// Decodes the operations of a multi. Foreign operations, a missing terminator, a null path, and in all
/// creates but createTTL flags that no mode has, a TTL mode and a null list refuse the whole request.
pub fn decode_writes<'a>(reader: &mut Reader<'a>) -> Result<Vec<WriteOp<'a>>, DecodeError> {
    let mut ops = Vec::new();
    while let Some(code) = next_header(reader)? {
        ops.push(decode_write(code, reader)?);
    }
    Ok(ops)
}

fn decode_write<'a>(code: i32, reader: &mut Reader<'a>) -> Result<WriteOp<'a>, DecodeError> {
    let op = Op::from_code(code).ok_or(DecodeError::Malformed)?;
    match op {
        Op::Create | Op::Create2 | Op::CreateContainer => decode_create(op, reader),
        Op::CreateTtl => {
            with_path(reader, |r: &CreateTtlRequest<'_>| r.path.is_some()).map(WriteOp::CreateTtl)
        }
        Op::Delete => {
            with_path(reader, |r: &DeleteRequest<'_>| r.path.is_some()).map(WriteOp::Delete)
        }
        Op::SetData => {
            with_path(reader, |r: &SetDataRequest<'_>| r.path.is_some()).map(WriteOp::SetData)
        }
        Op::Check => {
            with_path(reader, |r: &CheckVersionRequest<'_>| r.path.is_some()).map(WriteOp::Check)
        }
        Op::CloseSession
        | Op::CreateSession
        | Op::Exists
        | Op::GetData
        | Op::GetAcl
        | Op::SetAcl
        | Op::GetChildren
        | Op::Sync
        | Op::Ping
        | Op::GetChildren2
        | Op::Multi
        | Op::Reconfig
        | Op::CheckWatches
        | Op::RemoveWatches
        | Op::DeleteContainer
        | Op::MultiRead
        | Op::Auth
        | Op::SetWatches
        | Op::Sasl
        | Op::GetEphemerals
        | Op::GetAllChildrenNumber
        | Op::SetWatches2
        | Op::AddWatch
        | Op::WhoAmI => Err(DecodeError::Malformed),
    }
}

fn decode_create<'a>(op: Op, reader: &mut Reader<'a>) -> Result<WriteOp<'a>, DecodeError> {
    let request = CreateRequest::decode(reader)?;
    let mode = CreateMode::from_flags(request.flags).ok_or(DecodeError::Malformed)?;
    if mode.is_ttl() || request.acl.is_none() || request.path.is_none() {
        return Err(DecodeError::Malformed);
    }
    Ok(WriteOp::Create(op, request))
}

/// Decodes one operation; a null path refuses the whole request.
fn with_path<'a, T: Decode<'a>>(
    reader: &mut Reader<'a>,
    has_path: impl Fn(&T) -> bool,
) -> Result<T, DecodeError> {
    let request = T::decode(reader)?;
    if has_path(&request) {
        Ok(request)
    } else {
        Err(DecodeError::Malformed)
    }
}

/// Decodes the operations of a multiRead.
pub fn decode_reads<'a>(reader: &mut Reader<'a>) -> Result<Vec<ReadOp<'a>>, DecodeError> {
    let mut ops = Vec::new();
    while let Some(code) = next_header(reader)? {
        ops.push(decode_read(code, reader)?);
    }
    Ok(ops)
}

fn decode_read<'a>(code: i32, reader: &mut Reader<'a>) -> Result<ReadOp<'a>, DecodeError> {
    match Op::from_code(code).ok_or(DecodeError::Malformed)? {
        Op::GetData => {
            with_path(reader, |r: &GetDataRequest<'_>| r.path.is_some()).map(ReadOp::GetData)
        }
        Op::GetChildren => with_path(reader, |r: &GetChildrenRequest<'_>| r.path.is_some())
            .map(ReadOp::GetChildren),
        Op::CloseSession
        | Op::CreateSession
        | Op::Create
        | Op::Delete
        | Op::Exists
        | Op::SetData
        | Op::GetAcl
        | Op::SetAcl
        | Op::Sync
        | Op::Ping
        | Op::GetChildren2
        | Op::Check
        | Op::Multi
        | Op::Create2
        | Op::Reconfig
        | Op::CheckWatches
        | Op::RemoveWatches
        | Op::CreateContainer
        | Op::DeleteContainer
        | Op::CreateTtl
        | Op::MultiRead
        | Op::Auth
        | Op::SetWatches
        | Op::Sasl
        | Op::GetEphemerals
        | Op::GetAllChildrenNumber
        | Op::SetWatches2
        | Op::AddWatch
        | Op::WhoAmI => Err(DecodeError::Malformed),
    }
}

/// Appends one operation of a request as a client sends it.
pub fn put_request<T: Encode>(out: &mut BytesMut, op: Op, record: &T) {
    let header = MultiHeader {
        kind: op.code(),
        done: false,
        err: -1,
    };
    header.encode(out);
    record.encode(out);
}

/// Appends the header of a successful result; its record follows.
pub fn put_result_header(out: &mut BytesMut, op: Op) {
    let header = MultiHeader {
        kind: op.code(),
        done: false,
        err: 0,
    };
    header.encode(out);
}

/// Appends the result of a create whose answer is the path alone.
pub fn put_created(out: &mut BytesMut, path: &str) {
    put_result_header(out, Op::Create);
    put_string(out, path);
}

/// Appends the result of a create whose answer is path and metadata.
pub fn put_created2(out: &mut BytesMut, path: &str, stat: &Stat) {
    put_result_header(out, Op::Create2);
    put_string(out, path);
    stat.encode(out);
}

/// Appends an error result; operations before the one that failed get [`ErrorCode::Ok`].
pub fn put_error(out: &mut BytesMut, error: ErrorCode) {
    let header = MultiHeader {
        kind: -1,
        done: false,
        err: error.code(),
    };
    header.encode(out);
    out.put_i32(error.code());
}

/// Appends the terminator.
pub fn put_terminator(out: &mut BytesMut) {
    TERMINATOR.encode(out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_operation_refuses_the_whole() {
        let mut out = BytesMut::new();
        let request = GetDataRequest {
            path: Some("/a".into()),
            watch: false,
        };
        put_request(&mut out, Op::GetData, &request);
        put_terminator(&mut out);
        assert_eq!(
            decode_writes(&mut Reader::new(&out)),
            Err(DecodeError::Malformed)
        );
        assert_eq!(
            decode_reads(&mut Reader::new(&out)).map(|ops| ops.len()),
            Ok(1)
        );
    }

    #[test]
    fn a_null_path_refuses_the_whole() {
        let mut out = BytesMut::new();
        put_request(&mut out, Op::Check, &CheckVersionRequest::default());
        put_terminator(&mut out);
        assert_eq!(
            decode_writes(&mut Reader::new(&out)),
            Err(DecodeError::Malformed)
        );
    }

    #[test]
    fn a_missing_terminator_is_truncation() {
        let mut out = BytesMut::new();
        let request = DeleteRequest {
            path: Some("/a".into()),
            version: 0,
        };
        put_request(&mut out, Op::Delete, &request);
        assert_eq!(
            decode_writes(&mut Reader::new(&out)),
            Err(DecodeError::Truncated)
        );
    }
}
