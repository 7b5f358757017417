//! The commands of a restore.

use quenda_proto::ErrorCode;

use super::build::{Built, CONFIG, build};
use super::{Pieces, Restored};
use crate::Tree;
use crate::apply::{Applied, SessionEffect};
use crate::command::Stamp;
use crate::node::marks;
use crate::session::NewestSessions;
use crate::snapshot::PersistedStat;

impl Tree {
    /// The last restore, if there was one.
    pub fn restored(&self) -> Option<Restored> {
        self.restored
    }

    /// The restore whose pieces are collected, and how many there are.
    pub fn restore_pieces(&self) -> Option<(u64, u32)> {
        self.pieces.progress()
    }

    /// Takes a piece; no transaction, as nobody can see it.
    pub(crate) fn add_piece(&mut self, restore: u64, number: u32, bytes: &[u8]) -> Applied {
        let verdict = self.change_pieces(|pieces| pieces.add(restore, number, bytes));
        Applied::verdict(0, verdict)
    }

    /// Forgets the pieces of a restore that comes to nothing.
    pub(crate) fn drop_pieces(&mut self, restore: u64) -> Applied {
        let is_there = self
            .restore_pieces()
            .is_some_and(|(known, _)| known == restore);
        if is_there {
            self.change_pieces(Pieces::clear);
        }
        Applied::verdict(0, Ok(()))
    }

    fn change_pieces<T>(&mut self, change: impl FnOnce(&mut Pieces) -> T) -> T {
        let before = self.pieces.digest();
        let result = change(&mut self.pieces);
        let digest = self.totals.digest.wrapping_sub(before);
        self.totals.digest = digest.wrapping_add(self.pieces.digest());
        result
    }

    /// Puts what the pieces hold in the place of everything but the cluster, its members, and what must never
    /// go back: zxids, and ids of sessions.
    pub(crate) fn restore(&mut self, stamp: Stamp, restore: u64, sum: (u32, u64, u64)) -> Applied {
        if let Some(done) = self.restored.filter(|done| done.id == restore) {
            return Applied::verdict(done.zxid, Ok(()));
        }
        let built = match self.pieces.whole(restore, sum) {
            None => Err(ErrorCode::NoNode),
            // Was found good before it was handed out in pieces.
            Some((input, size)) => {
                build(input, size, self.cluster.as_ref()).map_err(|_| ErrorCode::BadArguments)
            }
        };
        let built = match built {
            Ok(built) => built,
            Err(code) => {
                self.drop_pieces(restore);
                return Applied::verdict(0, Err(code));
            }
        };
        let zxid = self.zxids.next_behind(built.newest_zxid, stamp.term);
        self.take_over(built, Restored { id: restore, zxid });
        Applied {
            zxid,
            code: ErrorCode::Ok,
            session: SessionEffect::Restored,
        }
    }

    fn take_over(&mut self, built: Built, restored: Restored) {
        let mut next = built.tree;
        next.keep_config(self);
        next.zxids = self.zxids;
        next.ensemble = self.ensemble.take();
        next.applied = self.applied;
        next.restored = Some(restored);
        next.keep_sessions(self, restored.zxid as u64);
        next.totals.digest = next.totals.digest.wrapping_add(next.digest_beside_znodes());
        next.replace_rows(self);
        *self = next;
    }

    /// The znode with the members is this cluster's.
    fn keep_config(&mut self, old: &Tree) {
        let (Some(id), Some(kept)) = (self.lookup(CONFIG), old.lookup(CONFIG)) else {
            return;
        };
        let kept = old.nodes.get(kept);
        let list = self.acls.intern(old.acls.entries(kept.acl()).to_vec());
        self.acls.acquire(list);
        let before = self.alter(id, |node| node.replace_acl(list));
        self.acls.release(before);
        let stat = PersistedStat::of(kept);
        self.replace_data(id, CONFIG, kept.data(), |node| stat.put(node));
    }

    /// The sessions of the snapshot begin a generation that no connection had before.
    fn keep_sessions(&mut self, old: &Tree, generation: u64) {
        let mut newest: NewestSessions = old.sessions.newest.clone();
        for (id, session) in &mut self.sessions.by_id {
            session.generation = generation;
            newest.opened(*id);
        }
        self.sessions.newest = newest;
    }

    /// The rows of the last checkpoint go with what they were written from.
    fn replace_rows(&mut self, old: &mut Tree) {
        self.acls.replace(&old.acls);
        let ids = old.sessions.by_id.keys().chain(self.sessions.by_id.keys());
        self.sessions.changed = ids.copied().collect();
        self.sessions.changed.extend(&old.sessions.changed);
        self.dirty.take_removed(&mut old.dirty);
        for id in old.nodes.ids() {
            let node = old.nodes.get(id);
            if node.has(marks::STORED) {
                self.dirty.remove(node);
            }
        }
        self.pieces = std::mem::take(&mut old.pieces);
        self.pieces.clear();
    }
}
