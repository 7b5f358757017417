//! What applied entries mean to the clients of this member: events, replies, ends of sessions.

use std::sync::Arc;

use quenda_frontend::{CloseReason, ConnectionId};
use quenda_node::{Connections, Settled};
use quenda_proto::ErrorCode;
use quenda_tree::{Applied, Changes, QuotaExcess, SessionEffect, Tree};
use tracing::{info, warn};

use crate::clock::Moment;
use crate::registry::Handle;
use crate::shared::Shared;

/// The connections as apply reaches them.
pub(super) struct Delivery<'a> {
    pub(super) shared: &'a Shared,
    /// When the batch of entries was begun.
    pub(super) moment: Moment,
    /// Whether this member leads.
    pub(super) leads: bool,
    pub(super) woken: &'a mut Vec<Arc<Handle>>,
    /// The connection that was answered last: the next command is often of the same.
    pub(super) answered: Option<Arc<Handle>>,
    /// Sessions that timed out, to be named in the log.
    pub(super) expired: &'a mut Vec<i64>,
}

impl Delivery<'_> {
    fn mark(&mut self, handle: Arc<Handle>) {
        if handle.mark() {
            self.woken.push(handle);
        }
    }

    /// A session is served by a new connection: the one before it is closed.
    fn take_over(&mut self, session: i64, connection: ConnectionId) {
        if let Some(before) = self.shared.registry.bind(session, connection) {
            before.connection.lock().close(CloseReason::SessionMoved);
            self.mark(before);
        }
    }

    /// What the client is told when a member is to join one that runs alone says nothing of the reason.
    fn explain(&self, settled: &Settled<'_>) {
        let is_refused = settled.applied.code == ErrorCode::NewConfigNoQuorum;
        if is_refused && self.shared.config.ensemble.is_empty() {
            warn!(
                "no member can join this one: it runs alone (one server.N line, standaloneEnabled=true) and opens no \
                 quorum port. Set standaloneEnabled=false in its configuration, start it again, and add the member then"
            );
        }
    }

    fn end(&mut self, session: i64, reason: CloseReason) {
        if let Some(handle) = self.shared.registry.unbind(session) {
            handle.connection.lock().close(reason);
            self.mark(handle);
        }
    }
}

impl Connections for Delivery<'_> {
    fn deliver(&mut self, tree: &Tree, changes: &Changes) {
        let shared = self.shared;
        for change in changes.iter() {
            let mut watchers = 0;
            shared.watches.fire(
                &change,
                &shared.metrics.fanout,
                &mut |connection, frame, acl| {
                    watchers += 1;
                    if let Some(handle) = shared.registry.get(connection) {
                        let mut connection = handle.connection.lock();
                        if connection.deliver(frame, acl, tree) {
                            shared.metrics.requests.event(frame.len());
                        }
                        shared.output.note(&handle, &mut connection);
                        drop(connection);
                        self.mark(handle);
                    }
                },
            );
            shared
                .load
                .fanned_out(change.path, watchers, self.moment.now_ms);
        }
    }

    fn complete(&mut self, tree: &Tree, connection: ConnectionId, applied: &Applied, body: &[u8]) {
        match applied.session {
            SessionEffect::Opened { session } | SessionEffect::Resumed { session, .. } => {
                self.take_over(session, connection);
            }
            SessionEffect::None
            | SessionEffect::Refused
            | SessionEffect::Restored
            | SessionEffect::Closed { .. } => {}
        }
        if self.shared.backup.complete(connection, applied) {
            return;
        }
        // The client may have left meanwhile: its write counts all the same.
        let last = self
            .answered
            .take()
            .filter(|handle| handle.id == connection);
        let found = last.or_else(|| self.shared.registry.get(connection));
        let Some(handle) = found else {
            self.shared.throttle.stale_replies.add(1);
            return;
        };
        let world = self.shared.world_at(tree, self.moment);
        let mut connection = handle.connection.lock();
        connection.complete(applied, body, &world);
        self.shared.output.note(&handle, &mut connection);
        drop(connection);
        if handle.mark() {
            self.woken.push(Arc::clone(&handle));
        }
        self.answered = Some(handle);
    }

    fn over_quota(&mut self, path: &str) {
        self.shared.quota_refusals.note(path);
    }

    fn quota_exceeded(&mut self, excess: &QuotaExcess) {
        self.shared.load.quota_exceeded(excess);
    }

    fn settled(&mut self, settled: &Settled<'_>, own: bool) {
        let connection = settled.command.origin().connection;
        let is_live = own && self.shared.is_of_this_run(connection);
        if is_live {
            self.explain(settled);
        }
        if let Some(audit) = &self.shared.audit {
            audit.settled(settled, is_live);
        }
    }

    fn session_closed(&mut self, session: i64, expired: bool) {
        let clients = &self.shared.metrics.clients;
        if expired {
            self.expired.push(session);
            clients.expired.add(1);
            if self.leads {
                clients.expired_here.add(1);
            }
        } else {
            clients.closed.add(1);
        }
        self.end(session, CloseReason::SessionExpired);
    }

    fn session_moved(&mut self, session: i64) {
        if self.leads {
            self.shared.metrics.clients.moved_elsewhere.add(1);
        }
        self.end(session, CloseReason::SessionMoved);
    }

    fn restored(&mut self, tree: &Tree) {
        let counts = tree.counts();
        warn!(
            znodes = counts.znodes,
            sessions = counts.sessions,
            zxid = format!("{:#x}", tree.last_zxid()),
            "a snapshot was restored: clients are disconnected"
        );
        if let Some(sessions) = &self.shared.local_sessions {
            sessions.clear();
        }
        for handle in self.shared.registry.all() {
            handle.connection.lock().close(CloseReason::Restored);
            self.mark(handle);
        }
    }
}

/// Sessions that one log line names; it counts the others.
const EXPIRED_NAMED: usize = 8;

/// One line for all that expired together: there may be thousands.
pub(super) fn report_expired(sessions: &mut Vec<i64>) {
    if sessions.is_empty() {
        return;
    }
    let ids = sessions.iter().take(EXPIRED_NAMED);
    let named: Vec<String> = ids.map(|id| format!("{id:#x}")).collect();
    info!(
        count = sessions.len(),
        sessions = named.join(" "),
        "sessions expired"
    );
    sessions.clear();
}
