//! A disk that hangs: what was handed out to be persisted does not come back, and no error comes either.
//!
//! Such a member applies nothing and promises nothing. A leader hands its office over; whatever it is, its
//! clients are let go, so that they find a member that works, until the log moves again.

use std::collections::BTreeSet;

use super::Member;
use crate::limits::{DISK_HANG_MS, HAND_OVER_TICKS};

/// What is known of the disk.
#[derive(Debug, Default)]
pub(super) struct Disk {
    /// The oldest batch on its way.
    oldest: Option<u64>,
    /// Since when it is that one, in milliseconds.
    since_ms: u64,
    /// Whether it has been for too long.
    pub(super) hangs: bool,
    /// Who was to take office, and when that was tried last, in ticks.
    tried: BTreeSet<u64>,
    tried_tick: Option<u64>,
}

impl Member {
    /// Looks whether batches come back. After a pause of the whole process the time begins anew: the disk
    /// stood still with it. A member that is the only voter waits however long it takes, nobody could do
    /// better.
    pub(super) fn watch_disk(&mut self, paused: bool) {
        let oldest = self.consensus.oldest_write();
        if paused || oldest != self.disk.oldest {
            self.disk.oldest = oldest;
            self.disk.since_ms = self.now_ms;
        }
        let waits = oldest.is_some() && !self.is_only_voter();
        self.disk.hangs = waits && self.now_ms.saturating_sub(self.disk.since_ms) >= DISK_HANG_MS;
    }

    /// Lets go of clients and of the leadership while the disk hangs.
    pub(super) fn yield_to_disk(&mut self) {
        if !self.disk.hangs {
            self.disk.tried.clear();
            self.disk.tried_tick = None;
            return;
        }
        if self.serving {
            self.stop_serving();
        }
        self.hand_over();
    }

    /// A leader hands over if the others may do without it; to another one when that comes to nothing.
    fn hand_over(&mut self) {
        let tried_tick = self.disk.tried_tick;
        let early = tried_tick.is_some_and(|tick| self.tick < tick + HAND_OVER_TICKS);
        if early
            || !self.consensus.is_leader()
            || self.consensus.is_transferring()
            || !self.others_can_do_without()
        {
            return;
        }
        let answers = |id| self.peers.answers(id, self.now_ms);
        let untried = self.heir(|id| answers(id) && !self.disk.tried.contains(&id));
        if untried.is_none() {
            self.disk.tried.clear();
        }
        let Some(heir) = untried.or_else(|| self.heir(answers)) else {
            return;
        };
        self.disk.tried.insert(heir);
        self.disk.tried_tick = Some(self.tick);
        self.consensus.transfer_leadership(heir);
    }

    /// Whether the other voters may be a majority: they elect nobody otherwise. One that is heard and makes no
    /// promise does not count. One that this member does not hear may be heard by the others.
    fn others_can_do_without(&self) -> bool {
        let may_promise = |id| self.peers.answers(id, self.now_ms) || !self.is_there(id);
        let majority = |voters: &[u64]| {
            let others = voters.iter().filter(|id| **id != self.id);
            let ready = others.filter(|id| may_promise(**id));
            voters.is_empty() || 2 * ready.count() > voters.len()
        };
        majority(&self.membership.voters) && majority(&self.membership.outgoing_voters)
    }
}
