//! From a frame to the code that serves it.

use quenda_proto::frame;
use quenda_proto::{Decode, ErrorCode, Op, Reader, records::RequestHeader};

use crate::connection::{CloseReason, Connection};
use crate::estimate;
use crate::observe::{Answered, HEADER_BYTES, path_of};
use crate::pending::{Asked, Pending, Waiting};
use crate::reads::{self, ReadContext};
use crate::world::{Proposals, ServiceMode, SyncMode, World};
use crate::{multi_read, watch_ops};

/// Serves one request in its turn: appends the whole reply, or nothing and says which error to send.
pub(crate) type Handler = fn(&mut ReadContext<'_>, &[u8]) -> Result<(), ErrorCode>;

/// How an operation is treated when its frame is read.
enum Route {
    /// Answered from the member's own state, in the order of the session's requests.
    Serve(Handler, Fence),
    /// Proposed at once.
    Write,
    /// Served at once, beside the order.
    Auth,
    /// The same.
    Sasl,
    /// Answered in order, then the connection ends.
    Unknown,
}

/// Which requests wait for a barrier, where there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fence {
    /// Those that do not answer from the tree.
    Never,
    /// Those that do, if [`Settings::linearizable_reads`](crate::Settings::linearizable_reads) is set.
    IfSet,
    /// Those that are there for it.
    Always,
}

fn route(op: Op) -> Route {
    match op {
        Op::Exists => Route::Serve(reads::exists, Fence::IfSet),
        Op::GetData => Route::Serve(reads::get_data, Fence::IfSet),
        Op::GetAcl => Route::Serve(reads::get_acl, Fence::IfSet),
        Op::GetChildren => Route::Serve(reads::get_children, Fence::IfSet),
        Op::GetChildren2 => Route::Serve(reads::get_children2, Fence::IfSet),
        Op::GetAllChildrenNumber => Route::Serve(reads::get_all_children_number, Fence::IfSet),
        Op::GetEphemerals => Route::Serve(reads::get_ephemerals, Fence::IfSet),
        Op::WhoAmI => Route::Serve(reads::who_am_i, Fence::Never),
        Op::MultiRead => Route::Serve(multi_read::multi_read, Fence::IfSet),
        Op::CheckWatches => Route::Serve(watch_ops::check_watches, Fence::Never),
        Op::RemoveWatches => Route::Serve(watch_ops::remove_watches, Fence::Never),
        Op::SetWatches => Route::Serve(watch_ops::set_watches, Fence::IfSet),
        Op::SetWatches2 => Route::Serve(watch_ops::set_watches2, Fence::IfSet),
        Op::AddWatch => Route::Serve(watch_ops::add_watch, Fence::Never),
        Op::Ping => Route::Serve(reads::ping, Fence::Never),
        Op::Sync => Route::Serve(reads::sync, Fence::Always),
        Op::Create
        | Op::Create2
        | Op::CreateContainer
        | Op::CreateTtl
        | Op::Delete
        | Op::SetData
        | Op::SetAcl
        | Op::Multi
        | Op::Reconfig
        | Op::CloseSession => Route::Write,
        Op::DeleteContainer => Route::Serve(reads::delete_container, Fence::Never),
        Op::Auth => Route::Auth,
        Op::Sasl => Route::Sasl,
        Op::Check | Op::CreateSession => Route::Unknown,
    }
}

/// What the call of `receive` under way has asked the log or the leader for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Batch {
    /// What is served behind this sees all that was committed before the call.
    pub is_covered: bool,
    /// That is so by a barrier, which is not passed yet.
    pub has_barrier: bool,
    /// Requests that were queued before the call.
    pub queued_before: usize,
    /// Bytes of large requests that were in flight before the call.
    pub large_before: usize,
    /// How long the request that is being taken has waited for it, ms.
    pub waited_ms: u64,
}

impl Connection {
    pub(crate) fn take_request(
        &mut self,
        payload: &[u8],
        world: &World<'_>,
        proposals: &mut Proposals,
    ) {
        let mut reader = Reader::new(payload);
        let Ok(RequestHeader { xid, kind: code }) = RequestHeader::decode(&mut reader) else {
            self.close(CloseReason::RequestHeader);
            return;
        };
        let body = reader.rest();
        let op = Op::from_code(code).map(|op| (op, route(op)));
        match op {
            Some((_, Route::Auth)) => return self.take_auth(xid, body, world),
            Some((_, Route::Sasl)) => return self.take_sasl(xid, body, world),
            Some((_, Route::Serve(..) | Route::Write | Route::Unknown)) | None => {}
        }
        if !self.has_required_identity() {
            frame::put_reply(
                &mut self.output,
                xid,
                0,
                ErrorCode::SessionClosedRequireSaslAuth,
            );
            self.stats.sent += 1;
            self.close(CloseReason::AuthRequired);
            return;
        }
        self.last_touch_ms = world.now_ms;
        if self.read_only != (world.service == ServiceMode::ReadOnly) {
            // The host closes all connections when the service changes; this one was overlooked.
            self.close(CloseReason::NotServing);
            return;
        }
        let throttling = &self.settings.throttling;
        let lasts_ms = u64::from(self.timeout_ms.unsigned_abs());
        if throttling.stale_by_latency && self.batch.waited_ms > lasts_ms {
            self.observer.stale(world.now_ms);
        }
        if self.batch.waited_ms > throttling.op_wait_ms
            && let Some((op, Route::Serve(..) | Route::Write)) = op
            && !matches!(op, Op::Ping | Op::CloseSession)
        {
            self.observer.throttled(world.now_ms);
            self.answer_in_turn(op, xid, ErrorCode::ThrottledOp, world);
            return;
        }
        match op {
            Some((Op::CloseSession, Route::Write)) if self.local => {
                self.draining = true;
                if let Some(sessions) = world.local_sessions {
                    // What is still in flight was sent before, and is answered first.
                    sessions.end(self.session, self.id);
                }
                let asked = self.asked(Op::CloseSession, reads::close_local, xid, world);
                self.take_ordered(asked, Fence::Never, body, world, proposals);
            }
            Some((op, Route::Write)) if self.read_only => self.refuse_write(op, xid, world),
            Some((op, Route::Serve(_, Fence::Always))) if self.read_only => {
                self.refuse_write(op, xid, world);
            }
            Some((op, Route::Serve(handler, fence))) => {
                let asked = self.asked(op, handler, xid, world);
                self.take_ordered(asked, fence, body, world, proposals);
            }
            Some((op, Route::Write)) => self.take_write(op, xid, body, world, proposals),
            Some((_, Route::Unknown | Route::Auth | Route::Sasl)) | None => {
                self.draining = true;
                self.pending.push(Pending::Unknown { xid, code });
                self.serve_queue(world);
            }
        }
    }

    fn take_ordered(
        &mut self,
        asked: Asked,
        fence: Fence,
        body: &[u8],
        world: &World<'_>,
        proposals: &mut Proposals,
    ) {
        if self.needs_barrier(fence, world) {
            let request = self.waiting(asked, body, world);
            self.fence(request, proposals);
        } else if self.pending.is_empty() {
            self.serve(asked, body, world);
        } else {
            let request = self.waiting(asked, body, world);
            self.pending.push(Pending::Serve(request));
        }
    }

    /// A read-only member changes nothing, and has no leader to ask.
    fn refuse_write(&mut self, op: Op, xid: i32, world: &World<'_>) {
        self.answer_in_turn(op, xid, ErrorCode::NotReadOnly, world);
    }

    /// A verdict that is known already takes its place in the order.
    pub(crate) fn answer_in_turn(&mut self, op: Op, xid: i32, error: ErrorCode, world: &World<'_>) {
        self.pending.push(Pending::Answer {
            xid,
            op,
            error,
            received_ms: world.now_ms,
        });
        self.serve_queue(world);
    }

    fn waiting(&self, asked: Asked, body: &[u8], world: &World<'_>) -> Waiting {
        let written = self.pending.largest_write();
        Waiting {
            asked,
            reply_bytes: estimate::reply_bytes(asked.op, body, world.tree, written),
            body: body.into(),
        }
    }

    /// A write of this connection that was proposed in the same call of `receive` stands for a barrier:
    /// it comes behind everything that was committed before the call.
    fn needs_barrier(&self, fence: Fence, world: &World<'_>) -> bool {
        let is_wanted = match fence {
            Fence::Never => false,
            Fence::IfSet => self.settings.linearizable_reads && !self.batch.is_covered,
            Fence::Always => !self.batch.has_barrier,
        };
        is_wanted && !self.read_only && world.sync == SyncMode::Barrier
    }

    fn fence(&mut self, request: Waiting, proposals: &mut Proposals) {
        self.pending.push(Pending::Fenced {
            request,
            passed: false,
        });
        proposals.barriers += 1;
        self.batch.is_covered = true;
        self.batch.has_barrier = true;
    }

    /// Whether a frame that comes behind a barrier of the same call of `receive` may be queued.
    pub(crate) fn may_follow_barrier(payload: &[u8]) -> bool {
        let header = RequestHeader::decode(&mut Reader::new(payload));
        let op = header.ok().and_then(|header| Op::from_code(header.kind));
        match op.map(route) {
            Some(Route::Serve(..)) => true,
            Some(Route::Write | Route::Auth | Route::Sasl | Route::Unknown) | None => false,
        }
    }

    /// Whether a frame is a write.
    pub(crate) fn goes_to_log(payload: &[u8]) -> bool {
        let header = RequestHeader::decode(&mut Reader::new(payload));
        let op = header.ok().and_then(|header| Op::from_code(header.kind));
        matches!(op.map(route), Some(Route::Write))
    }

    fn asked(&self, op: Op, handler: Handler, xid: i32, world: &World<'_>) -> Asked {
        Asked {
            handler,
            op,
            xid,
            identities: self.identities.len(),
            received_ms: world.now_ms,
        }
    }

    /// Serves what is at the head of the queue, up to what waits for a call from outside. While the
    /// client does not take its output the rest stays queued, unless a write of the session is in
    /// flight: the requests in front of it must not see its effect.
    pub(crate) fn serve_queue(&mut self, world: &World<'_>) {
        while self.pending.is_ready() {
            if self.output.len() >= self.settings.limits.output_pause && !self.pending.has_awaited()
            {
                return;
            }
            if let Some(item) = self.pending.pop_ready() {
                self.serve_item(item, world);
            }
        }
    }

    fn serve_item(&mut self, item: Pending, world: &World<'_>) {
        match item {
            Pending::Serve(request)
            | Pending::Fenced {
                request,
                passed: true,
            } => self.serve(request.asked, &request.body, world),
            Pending::Answer {
                xid,
                op,
                error,
                received_ms,
            } => {
                let before = self.output.len();
                self.answer_error(op, xid, error, received_ms, world);
                let answered = Answered {
                    op,
                    sequential: false,
                    bytes_in: HEADER_BYTES,
                    bytes_out: self.output.len() - before,
                    received_ms,
                    now_ms: world.now_ms,
                };
                let settings = &self.settings.observation;
                self.observer.answered(&answered, || &[], settings);
            }
            Pending::Unknown { xid, code } => {
                frame::put_reply(&mut self.output, xid, -1, ErrorCode::Unimplemented);
                self.stats.sent += 1;
                self.close(CloseReason::UnknownOperation(code));
            }
            // Never ready.
            Pending::Upgrade | Pending::Write { .. } | Pending::Fenced { passed: false, .. } => {}
        }
    }

    fn serve(&mut self, asked: Asked, body: &[u8], world: &World<'_>) {
        let Asked {
            op,
            xid,
            received_ms,
            ..
        } = asked;
        let before = self.output.len();
        let mut context = ReadContext {
            out: &mut self.output,
            xid,
            identities: &self.identities[..asked.identities],
            world,
            connection: self.id,
            session: self.session,
            settings: &self.settings,
            events: 0,
            overflow: false,
        };
        let result = (asked.handler)(&mut context, body);
        let (events, overflow) = (context.events, context.overflow);
        self.stats.sent += events;
        match result {
            Ok(()) => {
                let zxid = world.tree.last_zxid();
                self.stats
                    .answered(op, xid, zxid, received_ms, world.now_ms);
                let reply_bytes = self.output.len() - before;
                meter(world, op, received_ms, reply_bytes);
            }
            Err(error) => self.answer_error(op, xid, error, received_ms, world),
        }
        let answered = Answered {
            op,
            sequential: false,
            bytes_in: HEADER_BYTES + body.len(),
            bytes_out: self.output.len().saturating_sub(before),
            received_ms,
            now_ms: world.now_ms,
        };
        let settings = &self.settings.observation;
        self.observer
            .answered(&answered, || path_of(op, body), settings);
        if op == Op::CloseSession {
            self.close(CloseReason::ClientClosed);
        } else if overflow {
            self.overflow();
        } else {
            self.bound_output(before);
        }
    }
}

/// Tells the meter of an answer.
pub(crate) fn meter(world: &World<'_>, op: Op, received_ms: u64, reply_bytes: usize) {
    let latency_ms = world.now_ms.saturating_sub(received_ms);
    world.meter.answered(op, latency_ms, reply_bytes);
}

#[cfg(test)]
mod tests {
    use quenda_proto::op::OpKind;

    use super::*;

    /// The operation table says where an operation is served; this is the place that does it.
    #[test]
    fn every_operation_is_routed_as_the_table_says() {
        for info in Op::TABLE {
            let expected = match route(info.op) {
                Route::Serve(..) => &[OpKind::Read, OpKind::Ordering, OpKind::Refused][..],
                Route::Write => &[OpKind::Write],
                Route::Auth | Route::Sasl => &[OpKind::Connection],
                Route::Unknown => &[OpKind::Refused],
            };
            assert!(
                expected.contains(&info.kind),
                "{}: {:?}",
                info.name,
                info.kind
            );
        }
    }
}
