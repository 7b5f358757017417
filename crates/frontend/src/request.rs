//! From a frame to the code that serves it.

use quenda_proto::frame;
use quenda_proto::{Decode, ErrorCode, Op, Reader, records::RequestHeader};

use crate::connection::{CloseReason, Connection};
use crate::estimate;
use crate::pending::{Asked, Pending, Waiting};
use crate::reads::{self, ReadContext};
use crate::world::{Proposals, SyncMode, World};
use crate::{multi_read, watch_ops};

/// Serves one request in its turn: appends the whole reply, or nothing and says which error to send.
pub(crate) type Handler = fn(&mut ReadContext<'_>, &[u8]) -> Result<(), ErrorCode>;

/// How an operation is treated when its frame is read.
enum Route {
    /// Answered from the member's own state, in the order of the session's requests.
    Serve(Handler),
    /// A barrier in that order.
    Sync,
    /// Proposed at once.
    Write,
    /// Served at once, beside the order.
    Auth,
    /// The same.
    Sasl,
    /// Answered in order, then the connection ends.
    Unknown,
}

fn route(op: Op) -> Route {
    match op {
        Op::Exists => Route::Serve(reads::exists),
        Op::GetData => Route::Serve(reads::get_data),
        Op::GetAcl => Route::Serve(reads::get_acl),
        Op::GetChildren => Route::Serve(reads::get_children),
        Op::GetChildren2 => Route::Serve(reads::get_children2),
        Op::GetAllChildrenNumber => Route::Serve(reads::get_all_children_number),
        Op::GetEphemerals => Route::Serve(reads::get_ephemerals),
        Op::WhoAmI => Route::Serve(reads::who_am_i),
        Op::MultiRead => Route::Serve(multi_read::multi_read),
        Op::CheckWatches => Route::Serve(watch_ops::check_watches),
        Op::RemoveWatches => Route::Serve(watch_ops::remove_watches),
        Op::SetWatches => Route::Serve(watch_ops::set_watches),
        Op::SetWatches2 => Route::Serve(watch_ops::set_watches2),
        Op::AddWatch => Route::Serve(watch_ops::add_watch),
        Op::Ping => Route::Serve(reads::ping),
        Op::Sync => Route::Sync,
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
        Op::DeleteContainer => Route::Serve(reads::delete_container),
        Op::Auth => Route::Auth,
        Op::Sasl => Route::Sasl,
        Op::Check | Op::CreateSession => Route::Unknown,
    }
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
            Some((_, Route::Auth)) => return self.take_auth(xid, body),
            Some((_, Route::Sasl)) => return self.take_sasl(xid, body),
            Some((_, Route::Serve(_) | Route::Sync | Route::Write | Route::Unknown)) | None => {}
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
        match op {
            Some((op, Route::Serve(handler))) => self.take_ordered(op, handler, xid, body, world),
            Some((op, Route::Sync)) => self.take_sync(op, xid, body, world, proposals),
            Some((op, Route::Write)) => self.take_write(op, xid, body, world, proposals),
            Some((_, Route::Unknown | Route::Auth | Route::Sasl)) | None => {
                self.draining = true;
                self.pending.push(Pending::Unknown { xid, code });
                self.serve_queue(world);
            }
        }
    }

    fn take_ordered(&mut self, op: Op, handler: Handler, xid: i32, body: &[u8], world: &World<'_>) {
        let asked = self.asked(op, handler, xid, world);
        if self.pending.is_empty() {
            self.serve(asked, body, world);
        } else {
            let written = self.pending.largest_write();
            self.pending.push(Pending::Serve(Waiting {
                asked,
                reply_bytes: estimate::reply_bytes(op, body, world.tree, written),
                body: body.into(),
            }));
        }
    }

    fn take_sync(
        &mut self,
        op: Op,
        xid: i32,
        body: &[u8],
        world: &World<'_>,
        proposals: &mut Proposals,
    ) {
        match world.sync {
            SyncMode::Marker => self.take_ordered(op, reads::sync, xid, body, world),
            SyncMode::Barrier => {
                let request = Waiting {
                    asked: self.asked(op, reads::sync, xid, world),
                    body: body.into(),
                    reply_bytes: body.len(),
                };
                self.pending.push(Pending::Sync {
                    request,
                    passed: false,
                });
                proposals.barriers += 1;
            }
        }
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
            | Pending::Sync {
                request,
                passed: true,
            } => self.serve(request.asked, &request.body, world),
            Pending::Answer {
                xid,
                op,
                error,
                received_ms,
            } => self.answer_error(op, xid, error, received_ms, world),
            Pending::Unknown { xid, code } => {
                frame::put_reply(&mut self.output, xid, -1, ErrorCode::Unimplemented);
                self.stats.sent += 1;
                self.close(CloseReason::UnknownOperation(code));
            }
            // Never ready.
            Pending::Write { .. } | Pending::Sync { passed: false, .. } => {}
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
            }
            Err(error) => self.answer_error(op, xid, error, received_ms, world),
        }
        if overflow {
            self.overflow();
        } else {
            self.bound_output(before);
        }
    }
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
                Route::Serve(_) => &[OpKind::Read, OpKind::Ordering, OpKind::Refused][..],
                Route::Sync => &[OpKind::Ordering],
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
