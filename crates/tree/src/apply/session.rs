//! Sessions: open, resume, end; containers and TTL znodes whose time has come.

use quenda_proto::ErrorCode;
use quenda_proto::connect::PASSWORD_LEN;

use super::{Applied, SessionEffect, Transaction};
use crate::Tree;
use crate::changes::Changes;
use crate::command::{Stamp, Switches};
use crate::digest;
use crate::node::{NodeId, Owner};
use crate::reap;
use crate::session::{Scope, Session, is_password, zookeeper_password};

impl Tree {
    pub(super) fn open_session(&mut self, stamp: Stamp, id: i64, timeout_ms: i32) -> Applied {
        let zxid = self.zxids.next(stamp.term);
        let is_free = Owner::can_be_session(id) && self.session(id).is_none();
        if !is_free {
            return refused(zxid);
        }
        self.put_session(id, Session::new(timeout_ms, 1));
        self.count_opened(id);
        Applied {
            zxid,
            code: ErrorCode::Ok,
            session: SessionEffect::Opened { session: id },
        }
    }

    pub(super) fn resume_session(
        &mut self,
        id: i64,
        timeout_ms: i32,
        password: &[u8; PASSWORD_LEN],
    ) -> Applied {
        let taken = match self.is_right_password(id, password) {
            true => self.take_session(id),
            false => None,
        };
        let Some(mut session) = taken else {
            return refused(0);
        };
        session.generation += 1;
        session.timeout_ms = timeout_ms;
        let generation = session.generation;
        self.put_session(id, session);
        Applied {
            zxid: 0,
            code: ErrorCode::Ok,
            session: SessionEffect::Resumed {
                session: id,
                generation,
                timeout_ms,
            },
        }
    }

    /// A session that was imported has been given another password by the ZooKeeper that opened it.
    fn is_right_password(&self, id: i64, password: &[u8; PASSWORD_LEN]) -> bool {
        let is_ours = self
            .cluster
            .as_ref()
            .is_some_and(|cluster| is_password(&cluster.secret, Scope::Replicated, id, password));
        let is_imported = self.session(id).is_some_and(|session| session.imported);
        is_ours || is_imported && *password == zookeeper_password(id)
    }

    pub(super) fn expire_session(
        &mut self,
        stamp: Stamp,
        id: i64,
        generation: u64,
        changes: &mut Changes,
    ) -> Applied {
        match self.session(id) {
            None => return Applied::verdict(0, Err(ErrorCode::SessionExpired)),
            // Its client came back before the verdict did.
            Some(session) if session.generation != generation => {
                return Applied::verdict(0, Err(ErrorCode::SessionMoved));
            }
            Some(_) => {}
        }
        let mut tx = self.own_transaction(stamp, changes);
        self.close_session(&mut tx, id)
    }

    pub(super) fn close_request(&mut self, tx: &mut Transaction<'_>) -> Applied {
        match tx.session {
            // Its end is no business of the log.
            Ok(_) if tx.local => Applied::verdict(tx.zxid, Err(ErrorCode::SessionExpired)),
            Ok(id) => self.close_session(tx, id),
            Err(code) => Applied::verdict(tx.zxid, Err(code)),
        }
    }

    /// Ends a session. Its ephemeral znodes go in the order of their paths, which is the same on every
    /// member.
    fn close_session(&mut self, tx: &mut Transaction<'_>, id: i64) -> Applied {
        let mut ephemerals: Vec<(String, NodeId)> = self
            .session(id)
            .into_iter()
            .flat_map(|session| &session.ephemerals)
            .map(|node| (self.path_of(*node), *node))
            .collect();
        ephemerals.sort_unstable();
        for (path, node) in &ephemerals {
            self.remove_node(tx, path, *node);
        }
        self.take_session(id);
        Applied {
            zxid: tx.zxid,
            code: ErrorCode::Ok,
            session: SessionEffect::Closed { session: id },
        }
    }

    /// Removes a container or TTL znode if its time has still come.
    pub(super) fn reap(
        &mut self,
        stamp: Stamp,
        path: &str,
        never_used_ms: i64,
        changes: &mut Changes,
    ) -> Applied {
        let mut tx = self.own_transaction(stamp, changes);
        let verdict = match self.lookup(path) {
            None => Err(ErrorCode::NoNode),
            Some(id) => {
                let node = self.nodes.get(id);
                if reap::is_due(node, stamp.time_ms, never_used_ms) {
                    self.remove_node(&mut tx, path, id);
                    Ok(())
                } else if node.children() > 0 {
                    Err(ErrorCode::NotEmpty)
                } else {
                    Err(ErrorCode::BadVersion)
                }
            }
        };
        Applied::verdict(tx.zxid, verdict)
    }

    /// A transaction that no client asked for.
    fn own_transaction<'a>(&mut self, stamp: Stamp, changes: &'a mut Changes) -> Transaction<'a> {
        Transaction {
            zxid: self.zxids.next(stamp.term),
            time_ms: stamp.time_ms,
            session: Err(ErrorCode::SessionExpired),
            local: false,
            identities: &[],
            switches: Switches::default(),
            acl_room: 0,
            changes,
            undo: None,
        }
    }

    /// Remembers the newest session of each member.
    pub(crate) fn count_opened(&mut self, id: i64) {
        if let Some(before) = self.sessions.newest.opened(id) {
            let old = before.map_or(0, digest::of_newest_session);
            let new = digest::of_newest_session(id);
            self.totals.digest = self.totals.digest.wrapping_sub(old).wrapping_add(new);
        }
    }

    fn put_session(&mut self, id: i64, session: Session) {
        let part = digest::of_session(id, &session);
        self.totals.digest = self.totals.digest.wrapping_add(part);
        self.sessions.by_id.insert(id, session);
        self.sessions.changed.insert(id);
    }

    fn take_session(&mut self, id: i64) -> Option<Session> {
        let session = self.sessions.by_id.remove(&id)?;
        let part = digest::of_session(id, &session);
        self.totals.digest = self.totals.digest.wrapping_sub(part);
        self.sessions.changed.insert(id);
        Some(session)
    }
}

fn refused(zxid: i64) -> Applied {
    Applied {
        zxid,
        code: ErrorCode::SessionExpired,
        session: SessionEffect::Refused,
    }
}
