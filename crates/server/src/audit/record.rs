//! What one line tells, and how it follows from a command and its outcome.

use std::fmt::Write as _;
use std::sync::Arc;

use quenda_node::Settled;
use quenda_proto::acl::perms::{ADMIN, CREATE, DELETE, READ, WRITE};
use quenda_proto::acl::{ANY_SASL_USER, DIGEST, SUPER};
use quenda_proto::jute::{Decode, Reader};
use quenda_proto::mode::CreateMode;
use quenda_proto::multi::{WriteOp, decode_writes};
use quenda_proto::records::{
    Acl, CreateRequest, CreateTtlRequest, DeleteRequest, SetAclRequest, SetDataRequest,
};
use quenda_proto::{ErrorCode, Op};
use quenda_tree::command::{Command, Request};
use quenda_tree::{ChangeKind, Changes, Identity};

use crate::clock::wall_ms;

/// One line of the audit log. What is `None` or empty is left out of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) time_ms: i64,
    pub(super) session: Option<i64>,
    pub(super) user: Arc<str>,
    pub(super) ip: Option<Arc<str>>,
    pub(super) operation: &'static str,
    pub(super) znode: Option<Box<str>>,
    pub(super) znode_type: Option<&'static str>,
    pub(super) acl: Option<Box<str>>,
    pub(super) result: &'static str,
    /// How many records the line stands for that were lost.
    pub(super) count: Option<u64>,
}

const SUCCESS: &str = "success";
/// What gives a line the level ERROR.
pub(super) const FAILURE: &str = "failure";

impl Record {
    pub(super) fn of_server(
        user: &Arc<str>,
        operation: &'static str,
        result: &'static str,
    ) -> Record {
        Record {
            time_ms: wall_ms(),
            session: None,
            user: Arc::clone(user),
            ip: None,
            operation,
            znode: None,
            znode_type: None,
            acl: None,
            result,
            count: None,
        }
    }

    pub(super) fn of_ephemeral(time_ms: i64, user: &Arc<str>, session: i64, path: &str) -> Record {
        Record {
            time_ms,
            session: Some(session),
            znode: Some(path.into()),
            ..Record::of_server(
                user,
                "ephemeralZNodeDeletionOnSessionCloseOrExpire",
                SUCCESS,
            )
        }
    }

    pub(super) fn of_loss(user: &Arc<str>, count: u64) -> Record {
        Record {
            count: Some(count),
            ..Record::of_server(user, "auditRecordsLost", FAILURE)
        }
    }

    /// About how much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        let length = |text: &Option<Box<str>>| text.as_ref().map_or(0, |text| text.len());
        size_of::<Record>() + self.user.len() + length(&self.znode) + length(&self.acl)
    }
}

/// Paths of the znodes that a command has removed.
pub(super) fn removed(changes: &Changes) -> impl Iterator<Item = &str> {
    let removed = changes
        .iter()
        .filter(|change| change.kind == ChangeKind::Deleted);
    removed.map(|change| change.path)
}

/// The records of a client's request: none for one that changes no znode, one for each operation of a multi that took
/// effect.
pub(super) fn of_request(time_ms: i64, settled: &Settled<'_>) -> Vec<Record> {
    let (Command::Request(request) | Command::Reconfig { request, .. }) = settled.command else {
        return Vec::new();
    };
    let ok = settled.applied.code == ErrorCode::Ok;
    let asked = Asked { time_ms, request };
    match Op::from_code(request.op) {
        Some(Op::Multi) if ok && !is_failed_multi(settled.reply) => asked.multi(settled.changes),
        Some(Op::Multi) => vec![asked.record("multiOperation", FAILURE)],
        Some(op) => asked.single(op, ok, settled.changes).into_iter().collect(),
        None => Vec::new(),
    }
}

/// The record of a client's request that was refused.
pub(super) fn of_refused(time_ms: i64, command: &Command<'_>) -> Option<Record> {
    let (Command::Request(request) | Command::Reconfig { request, .. }) = command else {
        return None;
    };
    let asked = Asked { time_ms, request };
    match Op::from_code(request.op)? {
        Op::Multi => Some(asked.record("multiOperation", FAILURE)),
        op => asked.single(op, false, &Changes::default()),
    }
}

/// Whether the results of a multi begin with an error entry: then all of them are.
fn is_failed_multi(reply: &[u8]) -> bool {
    let is_error = reply.starts_with(&(-1_i32).to_be_bytes());
    let is_end = reply.get(4) == Some(&1);
    is_error && !is_end
}

struct Asked<'a> {
    time_ms: i64,
    request: &'a Request<'a>,
}

impl Asked<'_> {
    fn record(&self, operation: &'static str, result: &'static str) -> Record {
        let identities = &self.request.identities;
        Record {
            time_ms: self.time_ms,
            session: Some(self.request.session),
            // A connection knows its address before anything else.
            ip: identities.first().map(|address| Arc::from(&*address.id)),
            ..Record::of_server(&users(identities), operation, result)
        }
    }

    fn single(&self, op: Op, ok: bool, changes: &Changes) -> Option<Record> {
        let (operation, znode, znode_type, acl) = self.particulars(op)?;
        // The name of a sequential znode is known only now.
        let created = changes
            .iter()
            .find(|change| change.kind == ChangeKind::Created)
            .map(|change| change.path.into());
        Some(Record {
            znode: created.filter(|_| operation == "create").or(znode),
            znode_type,
            acl,
            ..self.record(operation, if ok { SUCCESS } else { FAILURE })
        })
    }

    #[expect(clippy::type_complexity, reason = "the columns of a line, used once")]
    fn particulars(
        &self,
        op: Op,
    ) -> Option<(
        &'static str,
        Option<Box<str>>,
        Option<&'static str>,
        Option<Box<str>>,
    )> {
        let body = self.request.body;
        Some(match op {
            Op::Create | Op::Create2 | Op::CreateContainer => {
                let request: Option<CreateRequest<'_>> = decoded(body);
                let flags = request.as_ref().map(|request| request.flags);
                let path = request.and_then(|request| request.path);
                ("create", path.map(Into::into), flags.and_then(mode), None)
            }
            Op::CreateTtl => {
                let request: Option<CreateTtlRequest<'_>> = decoded(body);
                let flags = request.as_ref().map(|request| request.flags);
                let path = request.and_then(|request| request.path);
                ("create", path.map(Into::into), flags.and_then(mode), None)
            }
            Op::Delete => {
                let request: Option<DeleteRequest<'_>> = decoded(body);
                let path = request.and_then(|request| request.path);
                ("delete", path.map(Into::into), None, None)
            }
            Op::SetData => {
                let request: Option<SetDataRequest<'_>> = decoded(body);
                let path = request.and_then(|request| request.path);
                ("setData", path.map(Into::into), None, None)
            }
            Op::SetAcl => {
                let request: Option<SetAclRequest<'_>> = decoded(body);
                let acl = request.as_ref().map(|request| list(request.acl.as_deref()));
                let path = request.and_then(|request| request.path);
                ("setAcl", path.map(Into::into), None, acl)
            }
            Op::Reconfig => ("reconfig", None, None, None),
            _ => return None,
        })
    }

    /// Each operation but `check` has made one change.
    fn multi(&self, changes: &Changes) -> Vec<Record> {
        let ops = decode_writes(&mut Reader::new(self.request.body)).unwrap_or_default();
        let writes = ops.iter().filter(|op| !matches!(op, WriteOp::Check(_)));
        let pairs = writes.zip(changes.iter());
        let record = |(op, change): (&WriteOp<'_>, quenda_tree::Change<'_>)| {
            let operation = match op {
                WriteOp::Create(..) | WriteOp::CreateTtl(_) => "create",
                WriteOp::Delete(_) => "delete",
                WriteOp::SetData(_) | WriteOp::Check(_) => "setData",
            };
            // As ZooKeeper, which looks for the type under the name that was given.
            let znode_type = match op {
                WriteOp::Create(_, request) if request.path.as_deref() == Some(change.path) => {
                    mode(request.flags)
                }
                _ => None,
            };
            Record {
                znode: Some(change.path.into()),
                znode_type,
                ..self.record(operation, SUCCESS)
            }
        };
        pairs.map(record).collect()
    }
}

fn decoded<'a, T: Decode<'a>>(body: &'a [u8]) -> Option<T> {
    T::decode(&mut Reader::new(body)).ok()
}

/// Names of the identities, as their schemes show them: no hash of a password.
fn users(identities: &[Identity]) -> Arc<str> {
    let mut users = String::new();
    for identity in identities
        .iter()
        .filter(|identity| !matches!(&*identity.scheme, SUPER | ANY_SASL_USER))
    {
        let id = &*identity.id;
        let name = match &*identity.scheme {
            DIGEST => id.split_once(':').map_or(id, |(user, _)| user),
            _ => id,
        };
        if !users.is_empty() {
            users.push(',');
        }
        users.push_str(name);
    }
    users.into()
}

fn mode(flags: i32) -> Option<&'static str> {
    Some(match CreateMode::from_flags(flags)? {
        CreateMode::Persistent => "persistent",
        CreateMode::Ephemeral => "ephemeral",
        CreateMode::PersistentSequential => "persistent_sequential",
        CreateMode::EphemeralSequential => "ephemeral_sequential",
        CreateMode::Container => "container",
        CreateMode::PersistentTtl => "persistent_with_ttl",
        CreateMode::PersistentSequentialTtl => "persistent_sequential_with_ttl",
    })
}

/// The entries one behind the other, as ZooKeeper writes them.
fn list(entries: Option<&[Acl<'_>]>) -> Box<str> {
    let mut text = String::new();
    for entry in entries.unwrap_or_default() {
        let scheme = entry.id.scheme.as_deref().unwrap_or("null");
        let id = entry.id.id.as_deref().unwrap_or("null");
        let _ = write!(text, "{scheme}:{id}:");
        let perms = [
            (CREATE, 'c'),
            (DELETE, 'd'),
            (READ, 'r'),
            (WRITE, 'w'),
            (ADMIN, 'a'),
        ];
        let given = perms.iter().filter(|(perm, _)| entry.perms & perm != 0);
        text.extend(given.map(|(_, letter)| letter));
    }
    text.into()
}

#[cfg(test)]
mod tests {
    use quenda_tree::command::{Origin, Switches};

    use super::*;

    #[test]
    fn identities_are_named_without_their_secrets() {
        let identities = [
            Identity::new("ip", "10.0.0.7"),
            Identity::new("digest", "bob:hash="),
            Identity::new("super", ""),
            Identity::new("x509", "CN=app,O=Example"),
            Identity::new("sasl", "eve@REALM"),
        ];
        assert_eq!(
            &*users(&identities),
            "10.0.0.7,bob,CN=app,O=Example,eve@REALM"
        );
    }

    #[test]
    fn a_refused_write_is_a_failure_of_its_client() {
        let mut request = Request {
            origin: Origin::default(),
            session: 7,
            generation: 1,
            local: false,
            switches: Switches::default(),
            identities: vec![Identity::new("ip", "10.0.0.7")],
            op: Op::SetData.code(),
            body: b"\0\0\0\x02/a\0\0\0\x01x\xff\xff\xff\xff",
        };
        let of = |request: &Request<'_>| of_refused(5, &Command::Request(request.clone()));
        let record = of(&request).expect("a record");
        assert_eq!((record.operation, record.result), ("setData", FAILURE));
        assert_eq!(record.znode.as_deref(), Some("/a"));
        assert_eq!(
            (record.session, record.ip.as_deref()),
            (Some(7), Some("10.0.0.7"))
        );
        request.op = Op::Multi.code();
        let record = of(&request).expect("a record");
        assert_eq!((record.operation, record.znode), ("multiOperation", None));
        request.op = Op::CloseSession.code();
        assert_eq!(of(&request), None);
        assert_eq!(
            of_refused(
                5,
                &Command::Reap {
                    path: "/c",
                    never_used_ms: 0
                }
            ),
            None
        );
    }

    #[test]
    fn the_results_of_a_multi_say_whether_it_failed() {
        let header = |kind: i32, done: u8| [&kind.to_be_bytes()[..], &[done]].concat();
        assert!(is_failed_multi(&header(-1, 0)));
        assert!(!is_failed_multi(&header(-1, 1)), "an empty one");
        assert!(!is_failed_multi(&header(1, 0)));
    }
}
