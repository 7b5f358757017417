//! Several writes as one transaction.

use std::borrow::Cow;

use bytes::BytesMut;
use quenda_proto::mode::CreateMode;
use quenda_proto::multi::{put_request, put_terminator};
use quenda_proto::records::{
    Acl, CheckVersionRequest, CreateRequest, DeleteRequest, Id, MultiHeader, SetDataRequest, Stat,
};
use quenda_proto::{Decode, DecodeError, Op, Reader};

use crate::handle::Shared;
use crate::{Client, Error};

/// The writes of a transaction, in order.
#[derive(Debug, Default)]
pub struct Transaction {
    writes: Vec<Write>,
}

#[derive(Debug)]
enum Write {
    Create {
        path: String,
        data: Option<Vec<u8>>,
        acl: Vec<Acl<'static>>,
        mode: CreateMode,
    },
    Delete {
        path: String,
        version: i32,
    },
    SetData {
        path: String,
        data: Option<Vec<u8>>,
        version: i32,
    },
    Check {
        path: String,
        version: i32,
    },
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
        self.writes.push(Write::Create {
            path: path.to_owned(),
            data: data.map(<[u8]>::to_vec),
            acl: acl.iter().map(owned).collect(),
            mode,
        });
        self
    }

    /// Deletes a znode; version −1 means any.
    #[must_use]
    pub fn delete(mut self, path: &str, version: i32) -> Self {
        self.writes.push(Write::Delete {
            path: path.to_owned(),
            version,
        });
        self
    }

    /// Replaces the data; version −1 means any.
    #[must_use]
    pub fn set_data(mut self, path: &str, data: Option<&[u8]>, version: i32) -> Self {
        self.writes.push(Write::SetData {
            path: path.to_owned(),
            data: data.map(<[u8]>::to_vec),
            version,
        });
        self
    }

    /// Fails the transaction unless the znode has that version; −1 asks only that it exists.
    #[must_use]
    pub fn check(mut self, path: &str, version: i32) -> Self {
        self.writes.push(Write::Check {
            path: path.to_owned(),
            version,
        });
        self
    }

    /// Number of writes.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }
}

impl Write {
    fn encode(&self, shared: &Shared, out: &mut BytesMut) {
        match self {
            Write::Create {
                path,
                data,
                acl,
                mode,
            } => {
                let request = CreateRequest {
                    path: Some(shared.absolute(path)),
                    data: data.as_deref(),
                    acl: Some(acl.clone()),
                    flags: *mode as i32,
                };
                put_request(out, Op::Create2, &request);
            }
            Write::Delete { path, version } => {
                let request = DeleteRequest {
                    path: Some(shared.absolute(path)),
                    version: *version,
                };
                put_request(out, Op::Delete, &request);
            }
            Write::SetData {
                path,
                data,
                version,
            } => {
                let request = SetDataRequest {
                    path: Some(shared.absolute(path)),
                    data: data.as_deref(),
                    version: *version,
                };
                put_request(out, Op::SetData, &request);
            }
            Write::Check { path, version } => {
                let request = CheckVersionRequest {
                    path: Some(shared.absolute(path)),
                    version: *version,
                };
                put_request(out, Op::Check, &request);
            }
        }
    }
}

fn owned(entry: &Acl<'_>) -> Acl<'static> {
    let text = |text: &Option<Cow<'_, str>>| text.as_ref().map(|text| Cow::Owned(text.to_string()));
    Acl {
        perms: entry.perms,
        id: Id {
            scheme: text(&entry.id.scheme),
            id: text(&entry.id.id),
        },
    }
}

impl Client {
    /// Commits a transaction: all of it or nothing. One result for each write; the first
    /// [`TransactionResult::Failed`] means that nothing was done.
    pub async fn commit(&self, transaction: Transaction) -> Result<Vec<TransactionResult>, Error> {
        let mut out = BytesMut::new();
        for write in &transaction.writes {
            write.encode(&self.shared, &mut out);
        }
        put_terminator(&mut out);
        let reply = self.submit_raw(Op::Multi, out.freeze()).await?;
        let mut results = decode_results(&mut Reader::new(&reply.body))?;
        for result in &mut results {
            if let TransactionResult::Created { path, .. } = result {
                *path = self.shared.relative(std::mem::take(path));
            }
        }
        Ok(results)
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
