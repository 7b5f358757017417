//! Applying a command: the verdict, the change, the reply.

mod create;
mod delete;
mod members;
mod multi;
mod session;
mod set;

use bytes::BytesMut;
use quenda_proto::jute::{Decode, Encode, Reader};
use quenda_proto::records::Acl;
use quenda_proto::{ErrorCode, Op};

use crate::Tree;
use crate::acl::{self, AclId, AclStore};
use crate::changes::{Change, Changes};
use crate::command::{Command, Request, Stamp, Switches};
use crate::identity::Identity;
use crate::limits::ACL_BYTES_MAX;
use crate::node::NodeId;
use crate::session::Cluster;
use crate::undo::Undo;

/// The outcome of one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Applied {
    /// zxid of the transaction, 0 if the command took none.
    pub zxid: i64,
    /// The verdict; `Ok` for a multi that failed, whose results say so.
    pub code: ErrorCode,
    /// What became of the session.
    pub session: SessionEffect,
}

/// What a command did to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEffect {
    /// Nothing.
    None,
    /// It was opened, at generation 1.
    Opened {
        /// The session.
        session: i64,
    },
    /// It was resumed; its earlier connections have moved.
    Resumed {
        /// The session.
        session: i64,
        /// Its new generation.
        generation: u64,
        /// Its new timeout in milliseconds.
        timeout_ms: i32,
    },
    /// It is unknown, the password is wrong, or its id cannot be a session's.
    Refused,
    /// It ended, and its ephemeral znodes with it.
    Closed {
        /// The session.
        session: i64,
    },
    /// All sessions are those of a snapshot that was restored; every connection has moved.
    Restored,
}

impl Applied {
    pub(crate) fn verdict(zxid: i64, verdict: Result<(), ErrorCode>) -> Applied {
        Applied {
            zxid,
            code: verdict.err().unwrap_or(ErrorCode::Ok),
            session: SessionEffect::None,
        }
    }
}

/// One transaction: the facts it is decided by, and where its changes go.
pub(crate) struct Transaction<'a> {
    pub(crate) zxid: i64,
    pub(crate) time_ms: i64,
    /// The session that asks, or why it may not.
    pub(crate) session: Result<i64, ErrorCode>,
    /// That session is known to its member alone.
    pub(crate) local: bool,
    pub(crate) identities: &'a [Identity],
    pub(crate) switches: Switches,
    /// Bytes that the lists of this transaction may still have, see [`ACL_BYTES_MAX`].
    pub(crate) acl_room: usize,
    pub(crate) changes: &'a mut Changes,
    /// Kept while an earlier step may have to be taken back.
    pub(crate) undo: Option<Undo>,
}

impl Transaction<'_> {
    fn resolve_acl(
        &mut self,
        store: &mut AclStore,
        given: Option<&[Acl<'_>]>,
    ) -> Result<AclId, ErrorCode> {
        acl::resolve(
            store,
            given,
            self.identities,
            self.switches,
            &mut self.acl_room,
        )
    }

    /// Whether the origin's configuration lets znodes with a time to live be created.
    fn demand_ttl(&self) -> Result<(), ErrorCode> {
        if self.switches.without_ttl {
            self.session?;
            return Err(ErrorCode::Unimplemented);
        }
        Ok(())
    }

    fn changed(&mut self, change: Change<'_>) {
        self.changes.push(change);
    }
}

impl Tree {
    /// Applies one command. The reply's record is appended to `reply` if the verdict is `Ok` and the
    /// operation has one; what happened to znodes is appended to `changes` in the order in which watches
    /// fire. Lists that the last command left unused are readable until this call.
    pub fn apply(
        &mut self,
        stamp: Stamp,
        command: &Command<'_>,
        reply: &mut BytesMut,
        changes: &mut Changes,
    ) -> Applied {
        self.acls.sweep();
        match command {
            Command::Request(request) => self.request(stamp, request, reply, changes),
            Command::OpenSession {
                session,
                timeout_ms,
                ..
            } => self.open_session(stamp, *session, *timeout_ms),
            Command::ResumeSession {
                session,
                timeout_ms,
                password,
                ..
            } => self.resume_session(*session, *timeout_ms, password),
            Command::ExpireSession {
                session,
                generation,
            } => self.expire_session(stamp, *session, *generation, changes),
            Command::Reap {
                path,
                never_used_ms,
            } => self.reap(stamp, path, *never_used_ms, changes),
            Command::Found {
                cluster,
                secret,
                config,
            } => {
                let cluster = Cluster {
                    id: *cluster,
                    secret: *secret,
                };
                self.found(stamp, cluster, config, changes)
            }
            Command::Reconfig { request, facts } => {
                let mut tx = self.client_transaction(stamp, request, changes);
                let body = &mut Reader::new(request.body);
                let verdict = self.reconfig_request(&mut tx, *facts, body, reply);
                Applied::verdict(tx.zxid, verdict)
            }
            Command::Recover { cluster, config } => self.recover(stamp, *cluster, config, changes),
            Command::AddPiece {
                restore,
                number,
                bytes,
                ..
            } => self.add_piece(*restore, *number, bytes),
            Command::DropPieces { restore, .. } => self.drop_pieces(*restore),
            Command::Restore { restore, sum, .. } => self.restore(stamp, *restore, *sum),
        }
    }

    fn client_transaction<'a>(
        &mut self,
        stamp: Stamp,
        request: &'a Request<'_>,
        changes: &'a mut Changes,
    ) -> Transaction<'a> {
        Transaction {
            zxid: self.zxids.next(stamp.term),
            time_ms: stamp.time_ms,
            session: self.gate(request),
            local: request.local,
            identities: &request.identities,
            switches: request.switches,
            acl_room: ACL_BYTES_MAX,
            changes,
            undo: None,
        }
    }

    fn request(
        &mut self,
        stamp: Stamp,
        request: &Request<'_>,
        reply: &mut BytesMut,
        changes: &mut Changes,
    ) -> Applied {
        let mut tx = self.client_transaction(stamp, request, changes);
        let body = &mut Reader::new(request.body);
        let Some(op) = Op::from_code(request.op) else {
            return Applied::verdict(tx.zxid, Err(ErrorCode::Unimplemented));
        };
        let verdict = match op {
            Op::Create | Op::Create2 | Op::CreateContainer => {
                self.create_request(&mut tx, op, body, reply)
            }
            Op::CreateTtl => self.create_ttl_request(&mut tx, body, reply),
            Op::Delete => decoded(body).and_then(|request| self.delete(&mut tx, &request)),
            Op::SetData => decoded(body)
                .and_then(|request| self.set_data(&mut tx, &request))
                .map(|stat| stat.encode(reply)),
            Op::SetAcl => decoded(body)
                .and_then(|request| self.set_acl(&mut tx, &request))
                .map(|stat| stat.encode(reply)),
            Op::Multi => self.multi(&mut tx, body, reply),
            Op::CloseSession => return self.close_request(&mut tx),
            Op::Reconfig
            | Op::Check
            | Op::CreateSession
            | Op::DeleteContainer
            | Op::Exists
            | Op::GetData
            | Op::GetAcl
            | Op::GetChildren
            | Op::Sync
            | Op::Ping
            | Op::GetChildren2
            | Op::CheckWatches
            | Op::RemoveWatches
            | Op::MultiRead
            | Op::Auth
            | Op::SetWatches
            | Op::Sasl
            | Op::GetEphemerals
            | Op::GetAllChildrenNumber
            | Op::SetWatches2
            | Op::AddWatch
            | Op::WhoAmI => Err(ErrorCode::Unimplemented),
        };
        Applied::verdict(tx.zxid, verdict)
    }

    /// Whether the request's session exists and its connection is still the session's own. Of a local one
    /// its member has seen to that.
    fn gate(&self, request: &Request<'_>) -> Result<i64, ErrorCode> {
        match self.session(request.session) {
            _ if request.local => match request.generation == self.local_generation() {
                true => Ok(request.session),
                false => Err(ErrorCode::SessionMoved),
            },
            None => Err(ErrorCode::SessionExpired),
            Some(session) if request.generation < session.generation => {
                Err(ErrorCode::SessionMoved)
            }
            Some(_) => Ok(request.session),
        }
    }

    fn check_permission(
        &self,
        tx: &Transaction<'_>,
        acl: AclId,
        wanted: i32,
    ) -> Result<(), ErrorCode> {
        match tx.switches.skip_acl || self.allows(acl, wanted, tx.identities) {
            true => Ok(()),
            false => Err(ErrorCode::NoAuth),
        }
    }

    /// List of a znode's parent; of the root itself for the root.
    fn parent_acl(&self, id: NodeId) -> AclId {
        let node = self.nodes.get(id);
        self.nodes
            .find(node.parent)
            .map_or(node.acl(), |parent| parent.acl())
    }
}

fn decoded<'a, T: Decode<'a>>(body: &mut Reader<'a>) -> Result<T, ErrorCode> {
    T::decode(body).map_err(|_| ErrorCode::MarshallingError)
}

/// A path that was sent; null gets the same answer as a record that does not decode.
fn given<T>(text: &Option<T>) -> Result<&T, ErrorCode> {
    text.as_ref().ok_or(ErrorCode::MarshallingError)
}

/// The weaker rule for the paths of create and delete: parent and name around the last slash.
fn split(path: &str) -> Result<(&str, &str), ErrorCode> {
    match quenda_proto::path::split_parent(path) {
        Some(parts) if !path.contains('\0') => Ok(parts),
        _ => Err(ErrorCode::BadArguments),
    }
}

/// Compares an expected version; −1 stands for any.
fn check_version(expected: i32, current: i32) -> Result<(), ErrorCode> {
    match expected == -1 || expected == current {
        true => Ok(()),
        false => Err(ErrorCode::BadVersion),
    }
}

/// The version behind this one. −1 is left out, because it means "any".
fn next_version(current: i32) -> i32 {
    match current.wrapping_add(1) {
        -1 => 0,
        next => next,
    }
}

#[cfg(test)]
mod unit {
    use quenda_proto::op::OpKind;

    use super::*;
    use crate::command::Origin;

    #[test]
    fn exactly_the_writes_of_the_operation_table_are_applied() {
        for info in Op::TABLE {
            let request = Request {
                origin: Origin::default(),
                session: 1,
                generation: 1,
                local: false,
                switches: Switches::default(),
                identities: vec![],
                op: info.code,
                body: b"",
            };
            let stamp = Stamp {
                term: 1,
                time_ms: 0,
            };
            let command = Command::Request(request);
            let applied =
                Tree::new().apply(stamp, &command, &mut BytesMut::new(), &mut Changes::new());
            let is_applied = applied.code != ErrorCode::Unimplemented;
            // Has a command of its own.
            let is_request = info.op != Op::Reconfig;
            let is_write = info.kind == OpKind::Write && is_request;
            assert_eq!(is_applied, is_write, "{}", info.name);
        }
    }

    #[test]
    fn versions_wrap_and_leave_minus_one_out() {
        assert_eq!(next_version(0), 1);
        assert_eq!(next_version(i32::MAX), i32::MIN);
        assert_eq!(next_version(-3), -2);
        assert_eq!(next_version(-2), 0);
        assert_eq!(next_version(-1), 0);
    }

    #[test]
    fn only_minus_one_is_any_version() {
        assert_eq!(check_version(-1, 7), Ok(()));
        assert_eq!(check_version(7, 7), Ok(()));
        assert_eq!(check_version(-2, 2), Err(ErrorCode::BadVersion));
        assert_eq!(check_version(-2, -2), Ok(()));
    }
}
