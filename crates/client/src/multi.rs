//! Several writes as one transaction.

use std::borrow::Cow;

use bytes::BytesMut;
use quenda_proto::mode::CreateMode;
use quenda_proto::multi::{put_request, put_terminator};
use quenda_proto::records::{
    Acl, CheckVersionRequest, CreateRequest, DeleteRequest, MultiHeader, SetDataRequest, Stat,
};
use quenda_proto::{Decode, DecodeError, Op, Reader};

use crate::{Client, Error};

/// The writes of a transaction, in order.
#[derive(Debug, Default)]
pub struct Transaction {
    out: BytesMut,
}

/// What became of one write of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransactionResult {
    /// A znode was created; servers tell the metadata only for create2.
    Created {
        /// Path with the sequence suffix, if any.
        path: String,
        /// Metadata as of this write.
        stat: Option<Stat>,
    },
    /// The data was replaced; metadata as of this write.
    Set(Stat),
    /// A znode was deleted.
    Deleted,
    /// The version was the expected one.
    Checked,
    /// The whole transaction failed. Code 0: this write was not the reason and came before it; −2: it
    /// came behind it; any other: this write is the reason.
    Failed(i32),
}

impl Transaction {
    /// An empty transaction.
    pub fn new() -> Self {
        Transaction::default()
    }

    /// Creates a znode.
    #[must_use]
    pub fn create(
        mut self,
        path: &str,
        data: Option<&[u8]>,
        acl: &[Acl<'_>],
        mode: CreateMode,
    ) -> Self {
        let request = CreateRequest {
            path: Some(path.into()),
            data,
            acl: Some(acl.to_vec()),
            flags: mode as i32,
        };
        put_request(&mut self.out, Op::Create2, &request);
        self
    }

    /// Deletes a znode; version −1 means any.
    #[must_use]
    pub fn delete(mut self, path: &str, version: i32) -> Self {
        let request = DeleteRequest {
            path: Some(path.into()),
            version,
        };
        put_request(&mut self.out, Op::Delete, &request);
        self
    }

    /// Replaces the data; version −1 means any.
    #[must_use]
    pub fn set_data(mut self, path: &str, data: Option<&[u8]>, version: i32) -> Self {
        let request = SetDataRequest {
            path: Some(path.into()),
            data,
            version,
        };
        put_request(&mut self.out, Op::SetData, &request);
        self
    }

    /// Fails the transaction unless the znode has that version; −1 asks only that it exists.
    #[must_use]
    pub fn check(mut self, path: &str, version: i32) -> Self {
        let request = CheckVersionRequest {
            path: Some(path.into()),
            version,
        };
        put_request(&mut self.out, Op::Check, &request);
        self
    }
}

impl Client {
    /// Commits a transaction: all of it or nothing. One result for each write; the first
    /// [`TransactionResult::Failed`] means that nothing was done.
    pub async fn commit(
        &self,
        mut transaction: Transaction,
    ) -> Result<Vec<TransactionResult>, Error> {
        put_terminator(&mut transaction.out);
        let reply = self.submit_raw(Op::Multi, transaction.out.freeze()).await?;
        Ok(decode_results(&mut Reader::new(&reply.body))?)
    }
}

fn decode_results(reader: &mut Reader<'_>) -> Result<Vec<TransactionResult>, DecodeError> {
    let mut results = Vec::new();
    loop {
        let header = MultiHeader::decode(reader)?;
        if header.done {
            return Ok(results);
        }
        results.push(decode_result(header.kind, reader)?);
    }
}

fn decode_result(kind: i32, reader: &mut Reader<'_>) -> Result<TransactionResult, DecodeError> {
    if kind == -1 {
        return Ok(TransactionResult::Failed(i32::decode(reader)?));
    }
    match Op::from_code(kind) {
        Some(Op::Create) => Ok(TransactionResult::Created {
            path: decode_path(reader)?,
            stat: None,
        }),
        Some(Op::Create2) => Ok(TransactionResult::Created {
            path: decode_path(reader)?,
            stat: Some(Stat::decode(reader)?),
        }),
        Some(Op::SetData) => Ok(TransactionResult::Set(Stat::decode(reader)?)),
        Some(Op::Delete) => Ok(TransactionResult::Deleted),
        Some(Op::Check) => Ok(TransactionResult::Checked),
        _ => Err(DecodeError::Malformed),
    }
}

fn decode_path(reader: &mut Reader<'_>) -> Result<String, DecodeError> {
    let path: Option<Cow<'_, str>> = Decode::decode(reader)?;
    Ok(path.unwrap_or_default().into_owned())
}
