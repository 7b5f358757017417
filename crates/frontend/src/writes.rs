//! Writes: proposed when they are read, answered when they were applied.

use bytes::BytesMut;
use quenda_proto::mode::CreateMode;
use quenda_proto::multi::{self, WriteOp};
use quenda_proto::records::{CreateRequest, SetDataRequest};
use quenda_proto::{Decode, ErrorCode, Op, Reader, frame};
use quenda_tree::command::{Command, Origin, ReconfigFacts, Request};
use quenda_tree::{Applied, SessionEffect};

use crate::connection::{CloseReason, Connection};
use crate::observe::{Answered, HEADER_BYTES, is_sequential, noted_part, path_of};
use crate::pending::Pending;
use crate::reply;
use crate::request::meter;
use crate::world::{Growth, Proposals, World};

/// Of a session that was just opened.
const FIRST_GENERATION: u64 = 1;

impl Connection {
    pub(crate) fn take_write(
        &mut self,
        op: Op,
        xid: i32,
        body: &[u8],
        world: &World<'_>,
        proposals: &mut Proposals,
    ) {
        if let Some(error) = self.refusal(op, body, world) {
            self.with_command(op, body, |command| command.encode(&mut proposals.refused));
            self.answer_in_turn(op, xid, error, world);
            return;
        }
        if self.needs_upgrade(op, body) && !self.upgrade(world, proposals) {
            return;
        }
        let settings = &self.settings.observation;
        self.observer.write_came(op, body, world.now_ms, settings);
        self.propose(op, body, proposals);
        self.batch.is_covered = true;
        let path = noted_part(path_of(op, body));
        let write = Pending::Write {
            xid,
            op,
            received_ms: world.now_ms,
            bytes: body.len(),
            path: path.len() as u16,
            sequential: is_sequential(op, body),
            large: body.len() > self.settings.throttling.large_threshold,
        };
        self.pending.push_write(write, path);
        // What is pipelined behind the close of the session is dropped.
        self.draining |= op == Op::CloseSession;
    }

    /// Why a write is not even proposed.
    fn refusal(&self, op: Op, body: &[u8], world: &World<'_>) -> Option<ErrorCode> {
        if world.growth == Growth::Refused && grows(op, body) {
            return Some(ErrorCode::SystemError);
        }
        self.is_forbidden(op, body, world)
            .then_some(ErrorCode::NoAuth)
    }

    fn propose(&mut self, op: Op, body: &[u8], proposals: &mut Proposals) {
        self.with_command(op, body, |command| proposals.push(command));
    }

    /// Makes the command that a write is.
    fn with_command(&mut self, op: Op, body: &[u8], take: impl FnOnce(&Command<'_>)) {
        let request = Request {
            origin: self.origin(),
            session: self.session,
            generation: self.generation,
            local: self.local,
            switches: self.settings.switches(),
            // Lent, so that no identity is copied for each write.
            identities: std::mem::take(&mut self.identities),
            op: op.code(),
            body,
        };
        let command = match op {
            Op::Reconfig => Command::Reconfig {
                request,
                facts: ReconfigFacts::default(),
            },
            _ => Command::Request(request),
        };
        take(&command);
        if let Command::Request(request) | Command::Reconfig { request, .. } = command {
            self.identities = request.identities;
        }
    }

    fn needs_upgrade(&self, op: Op, body: &[u8]) -> bool {
        self.local && self.settings.local_sessions_upgrading && creates_ephemeral(op, body)
    }

    /// Asks the log to make the session one of the cluster: an entry of its own in front of the write that
    /// needs it. There is no way back, whatever becomes of the entry: the member does not know the session
    /// any more. False if the session is not this connection's any more.
    fn upgrade(&mut self, world: &World<'_>, proposals: &mut Proposals) -> bool {
        let is_own = world
            .local_sessions
            .is_some_and(|sessions| sessions.end(self.session, self.id));
        if !is_own {
            self.close(CloseReason::SessionMoved);
            return false;
        }
        self.local = false;
        self.generation = FIRST_GENERATION;
        proposals.push(&Command::OpenSession {
            origin: self.origin(),
            session: self.session,
            timeout_ms: self.timeout_ms,
        });
        self.pending.push(Pending::Upgrade);
        true
    }

    pub(crate) fn complete_upgrade(&mut self, applied: &Applied) {
        if !matches!(applied.session, SessionEffect::Opened { .. }) {
            self.close(CloseReason::SessionExpired);
        }
    }

    pub(crate) fn origin(&self) -> Origin {
        Origin {
            member: self.member,
            connection: self.id.0,
        }
    }

    pub(crate) fn complete_write(&mut self, applied: &Applied, body: &[u8], world: &World<'_>) {
        let Some(Pending::Write {
            xid,
            op,
            received_ms,
            bytes,
            path,
            sequential,
            ..
        }) = self.pending.pop_write()
        else {
            debug_assert!(false, "an outcome for a connection that awaits none");
            return;
        };
        if applied.code == ErrorCode::SessionMoved {
            self.close(CloseReason::SessionMoved);
            return;
        }
        let zxid = match applied.zxid {
            0 => world.tree.last_zxid(),
            zxid => zxid,
        };
        let before = self.output.len();
        put_outcome(&mut self.output, xid, zxid, applied.code, body);
        self.stats
            .answered(op, xid, zxid, received_ms, world.now_ms);
        meter(world, op, received_ms, self.output.len() - before);
        let answered = Answered {
            op,
            sequential,
            bytes_in: HEADER_BYTES + bytes,
            bytes_out: self.output.len() - before,
            received_ms,
            now_ms: world.now_ms,
        };
        let named = || self.pending.write_path(path);
        let settings = &self.settings.observation;
        self.observer.answered(&answered, named, settings);
        self.pending.drop_write_path(path);
        self.bound_output(before);
        if op == Op::CloseSession {
            self.close(CloseReason::ClientClosed);
        } else if applied.code == ErrorCode::SessionExpired {
            self.close(CloseReason::SessionExpired);
        }
    }
}

fn put_outcome(out: &mut BytesMut, xid: i32, zxid: i64, code: ErrorCode, body: &[u8]) {
    if code == ErrorCode::Ok {
        reply::put_whole(out, xid, zxid, body);
    } else {
        frame::put_reply(out, xid, zxid, code);
    }
}

/// Whether a write creates ephemeral znodes, as far as its frame tells.
fn creates_ephemeral(op: Op, body: &[u8]) -> bool {
    let mut reader = Reader::new(body);
    match op {
        Op::Create | Op::Create2 => {
            CreateRequest::decode(&mut reader).is_ok_and(|request| is_ephemeral(&request))
        }
        Op::Multi => multi::decode_writes(&mut reader).is_ok_and(|ops| {
            ops.iter().any(|op| match op {
                WriteOp::Create(op, request) => *op != Op::CreateContainer && is_ephemeral(request),
                WriteOp::CreateTtl(request) => {
                    CreateMode::from_flags(request.flags).is_some_and(CreateMode::is_ephemeral)
                }
                WriteOp::Delete(_) | WriteOp::SetData(_) | WriteOp::Check(_) => false,
            })
        }),
        // Its flags are refused, or mean nothing.
        _ => false,
    }
}

fn is_ephemeral(request: &CreateRequest<'_>) -> bool {
    CreateMode::from_flags(request.flags).is_some_and(CreateMode::is_ephemeral)
}

/// Whether a write needs more room than it gives back. What does not decode is left to the tree's
/// verdict, which changes nothing.
fn grows(op: Op, body: &[u8]) -> bool {
    let mut reader = Reader::new(body);
    match op {
        Op::Create | Op::Create2 | Op::CreateContainer | Op::CreateTtl => true,
        Op::SetData => SetDataRequest::decode(&mut reader).is_ok_and(|request| has_data(&request)),
        Op::Multi => multi::decode_writes(&mut reader).is_ok_and(|ops| ops.iter().any(op_grows)),
        Op::Delete
        | Op::SetAcl
        | Op::CloseSession
        | Op::Reconfig
        | Op::CreateSession
        | Op::Exists
        | Op::GetData
        | Op::GetAcl
        | Op::GetChildren
        | Op::GetChildren2
        | Op::GetAllChildrenNumber
        | Op::GetEphemerals
        | Op::Sync
        | Op::Ping
        | Op::Check
        | Op::CheckWatches
        | Op::RemoveWatches
        | Op::DeleteContainer
        | Op::MultiRead
        | Op::Auth
        | Op::Sasl
        | Op::SetWatches
        | Op::SetWatches2
        | Op::AddWatch
        | Op::WhoAmI => false,
    }
}

fn op_grows(op: &WriteOp<'_>) -> bool {
    match op {
        WriteOp::Create(..) | WriteOp::CreateTtl(_) => true,
        WriteOp::SetData(request) => has_data(request),
        WriteOp::Delete(_) | WriteOp::Check(_) => false,
    }
}

fn has_data(request: &SetDataRequest<'_>) -> bool {
    request.data.is_some_and(|data| !data.is_empty())
}
