//! multi: several writes as one transaction.

use bytes::BytesMut;
use quenda_proto::jute::{Encode, Reader};
use quenda_proto::mode::CreateMode;
use quenda_proto::multi::{
    WriteOp, decode_writes, put_created, put_created2, put_error, put_result_header, put_terminator,
};
use quenda_proto::records::{CreateRequest, CreateTtlRequest};
use quenda_proto::{ErrorCode, Op};

use super::Transaction;
use super::create::{Created, Kind, NewNode, ttl_kind};
use crate::Tree;
use crate::undo::Undo;

impl Tree {
    /// Applies all operations or none. The error of an operation is part of the results; the request as
    /// a whole fails only if it does not decode or its session may not ask.
    pub(super) fn multi(
        &mut self,
        tx: &mut Transaction<'_>,
        body: &mut Reader<'_>,
        reply: &mut BytesMut,
    ) -> Result<(), ErrorCode> {
        let ops = decode_writes(body).map_err(|_| ErrorCode::MarshallingError)?;
        tx.session?;
        let (reply_start, changes_start) = (reply.len(), tx.changes.len());
        tx.undo = Some(Undo::start(self));
        let failure = ops
            .iter()
            .enumerate()
            .find_map(|(index, op)| Some((index, self.one(tx, op, reply).err()?)));
        let undo = tx.undo.take();
        let Some((failed, code)) = failure else {
            put_terminator(reply);
            return Ok(());
        };
        if let Some(undo) = undo {
            undo.roll_back(self);
        }
        tx.changes.truncate(changes_start);
        reply.truncate(reply_start);
        if code == ErrorCode::MarshallingError {
            return Err(code);
        }
        put_failure(ops.len(), failed, code, reply);
        Ok(())
    }

    fn one(
        &mut self,
        tx: &mut Transaction<'_>,
        op: &WriteOp<'_>,
        reply: &mut BytesMut,
    ) -> Result<(), ErrorCode> {
        match op {
            WriteOp::Create(op, request) => self.one_create(tx, *op, request, reply),
            WriteOp::CreateTtl(request) => self.one_create_ttl(tx, request, reply),
            WriteOp::Delete(request) => {
                self.delete(tx, request)?;
                put_result_header(reply, Op::Delete);
                Ok(())
            }
            WriteOp::SetData(request) => {
                let stat = self.set_data(tx, request)?;
                put_result_header(reply, Op::SetData);
                stat.encode(reply);
                Ok(())
            }
            WriteOp::Check(request) => {
                self.check(tx, request)?;
                put_result_header(reply, Op::Check);
                Ok(())
            }
        }
    }

    /// Inside a multi the flag 4 makes a container too, whatever the operation.
    fn one_create(
        &mut self,
        tx: &mut Transaction<'_>,
        op: Op,
        request: &CreateRequest<'_>,
        reply: &mut BytesMut,
    ) -> Result<(), ErrorCode> {
        let mode = CreateMode::from_flags(request.flags).ok_or(ErrorCode::MarshallingError)?;
        let kind = if op == Op::CreateContainer {
            Kind::Container
        } else {
            plain_kind(mode)
        };
        let created = self.create(tx, &NewNode::new(request, kind, mode))?;
        put_created_as(reply, kind, op == Op::Create, &created);
        Ok(())
    }

    /// Without a TTL mode the time is ignored, and the operation is a plain create.
    fn one_create_ttl(
        &mut self,
        tx: &mut Transaction<'_>,
        request: &CreateTtlRequest<'_>,
        reply: &mut BytesMut,
    ) -> Result<(), ErrorCode> {
        let mode = CreateMode::from_flags(request.flags).ok_or(ErrorCode::BadArguments)?;
        let kind = match mode.is_ttl() {
            true => {
                tx.demand_ttl()?;
                ttl_kind(request.ttl)?
            }
            false => plain_kind(mode),
        };
        let created = self.create(tx, &NewNode::with_ttl(request, kind, mode))?;
        put_created_as(reply, kind, true, &created);
        Ok(())
    }
}

fn plain_kind(mode: CreateMode) -> Kind {
    match mode {
        CreateMode::Container => Kind::Container,
        mode if mode.is_ephemeral() => Kind::Ephemeral,
        _ => Kind::Persistent,
    }
}

fn put_created_as(reply: &mut BytesMut, kind: Kind, is_create1: bool, created: &Created<'_>) {
    let is_plain = matches!(kind, Kind::Persistent | Kind::Ephemeral);
    if is_plain && is_create1 {
        put_created(reply, &created.path);
    } else {
        put_created2(reply, &created.path, &created.stat);
    }
}

/// Operations before the one that failed answer 0, those behind it −2.
fn put_failure(ops: usize, failed: usize, code: ErrorCode, reply: &mut BytesMut) {
    for index in 0..ops {
        let code = match index.cmp(&failed) {
            std::cmp::Ordering::Less => ErrorCode::Ok,
            std::cmp::Ordering::Equal => code,
            std::cmp::Ordering::Greater => ErrorCode::RuntimeInconsistency,
        };
        put_error(reply, code);
    }
    put_terminator(reply);
}
