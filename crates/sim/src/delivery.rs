//! The connections of a member as apply reaches them.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use quenda_frontend::{
    CloseReason, ConnectionId, Fired, Gates, Growth, LocalSessionTable, LocalSessions, NoMeter,
    ServiceMode, SessionIds, SyncMode, WatchTable, World,
};
use quenda_node::Connections;
use quenda_tree::{Applied, Changes, SessionEffect, Tree};

use crate::checks::Checks;
use crate::host::Served;
use crate::schedule::Micros;

/// What one entry reaches while it is applied.
pub struct Delivery<'a> {
    /// Its connections.
    pub connections: &'a mut BTreeMap<u64, Served>,
    /// Which connection serves a session.
    pub by_session: &'a mut BTreeMap<i64, u64>,
    /// Its watches.
    pub watches: &'a RefCell<WatchTable>,
    /// Ids for new sessions.
    pub session_ids: &'a SessionIds,
    /// Sessions that only this member knows, if there are such.
    pub local: Option<&'a RefCell<LocalSessionTable>>,
    /// Connections that have to be looked at afterwards.
    pub woken: &'a mut BTreeSet<u64>,
    /// What it does for clients.
    pub service: ServiceMode,
    /// How sync is served.
    pub sync: SyncMode,
    /// Monotonic time of the member.
    pub now_ms: u64,
    /// Wall time of the member.
    pub time_ms: i64,
    /// No member has applied this entry before.
    pub is_new: bool,
    /// Index and term of the entry.
    pub entry: (u64, u64),
    /// Virtual time.
    pub now: Micros,
    /// Znodes that the entry changes.
    pub touched: Vec<String>,
    /// Sessions that the entry ends.
    pub closed: Vec<i64>,
    /// Sessions that the entry opens for clients of this member.
    pub opened: Vec<i64>,
    /// The observers.
    pub checks: &'a mut Checks,
}

impl Delivery<'_> {
    fn close(&mut self, link: u64, reason: CloseReason) {
        if let Some(served) = self.connections.get_mut(&link) {
            served.connection.close(reason);
            self.woken.insert(link);
        }
    }
}

impl Connections for Delivery<'_> {
    fn deliver(&mut self, tree: &Tree, changes: &Changes) {
        if self.is_new {
            self.checks.changed(changes);
            self.touched
                .extend(changes.iter().map(|change| change.path.to_string()));
        }
        for change in changes.iter() {
            let mut fired = Fired::default();
            self.watches.borrow_mut().fire(&change, &mut fired);
            for event in fired.events() {
                for connection in event.connections {
                    if let Some(served) = self.connections.get_mut(&connection.0) {
                        served.connection.deliver(event.frame, event.acl, tree);
                        self.woken.insert(connection.0);
                    }
                }
            }
        }
    }

    fn complete(&mut self, tree: &Tree, connection: ConnectionId, applied: &Applied, body: &[u8]) {
        let link = connection.0;
        if let SessionEffect::Opened { session } = applied.session {
            self.opened.push(session);
            self.checks.counters.upgraded += u64::from(self.checks.sessions.is_local(session));
        }
        if let SessionEffect::Opened { session } | SessionEffect::Resumed { session, .. } =
            applied.session
        {
            let before = match self.connections.contains_key(&link) {
                true => self.by_session.insert(session, link),
                false => self.by_session.remove(&session),
            };
            if let Some(before) = before.filter(|before| *before != link) {
                self.close(before, CloseReason::SessionMoved);
            }
        }
        let world = World {
            tree,
            watches: self.watches,
            session_ids: self.session_ids,
            local_sessions: self.local.map(|sessions| sessions as &dyn LocalSessions),
            sasl: None,
            service: self.service,
            growth: Growth::Allowed,
            gates: Gates::default(),
            sync: self.sync,
            meter: &NoMeter,
            now_ms: self.now_ms,
            time_ms: self.time_ms,
        };
        if let Some(served) = self.connections.get_mut(&link) {
            served.connection.complete(applied, body, &world);
            self.woken.insert(link);
        }
    }

    fn over_quota(&mut self, _: &str) {}

    fn session_closed(&mut self, session: i64, expired: bool) {
        if self.is_new {
            self.closed.push(session);
            let ended = self
                .checks
                .sessions
                .ended(session, expired, self.entry, self.now);
            self.checks.counters.expired += u64::from(expired);
            if let Err(text) = ended {
                self.checks.fail(text);
            }
        }
        if let Some(link) = self.by_session.remove(&session) {
            self.close(link, CloseReason::SessionExpired);
        }
    }

    fn restored(&mut self, tree: &Tree) {
        if self.is_new {
            // What commands of the same entry did before it is gone.
            self.touched.clear();
            self.closed.clear();
            self.checks.restored(tree);
        }
        for session in self.opened.drain(..) {
            if tree.session(session).is_none() {
                self.checks.sessions.swept(session);
            }
        }
        if let Some(sessions) = self.local {
            sessions.borrow_mut().clear();
        }
        self.by_session.clear();
        for (link, served) in &mut *self.connections {
            served.connection.close(CloseReason::Restored);
            self.woken.insert(*link);
        }
    }

    fn session_moved(&mut self, session: i64) {
        if let Some(link) = self.by_session.remove(&session) {
            self.close(link, CloseReason::SessionMoved);
        }
    }
}
