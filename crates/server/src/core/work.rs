//! The work that the member gives out: what is to be written, sent, applied, fetched and installed.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::RwLockWriteGuard;
use quenda_consensus::limits::RETAINED_LOG_BYTES;
use quenda_consensus::{EntryKind, LogEntry};
use quenda_frontend::{CloseReason, ConnectionId};
use quenda_node::{EntryError, Fetch, Install, Outgoing, Work};
use quenda_storage::{StoreError, load_tree};
use tracing::{info, warn};

use super::delivery::{Delivery, report_expired};
use super::{Core, CoreError};
use crate::connection_task::wake;
use crate::limits::STORE_RETRY;
use crate::log_writer::is_final;

impl Core {
    /// The order matters: what is abandoned must not be answered any more, and a batch is on its way to
    /// the disk before the messages about it are sent.
    pub(super) fn handle(&mut self, work: Work) -> Result<(), CoreError> {
        if let Some(era) = work.abandoned {
            self.abandon(era);
        }
        if let Some(install) = work.install {
            self.install_when_idle(install)?;
        }
        if let Some((number, batch)) = work.persist {
            if self.member.is_serving_leader() {
                let entries = batch.entries.iter();
                let sizes = entries.map(|entry| entry.data.len());
                self.shared.proposals.note(sizes);
            }
            self.count_persisting(number, &batch);
            self.log.write(number, batch);
        }
        self.send(work.outgoing);
        if !work.committed.is_empty() {
            self.apply(&work.committed)?;
        }
        self.pass_barriers(&work.barriers);
        if let Some(wanted) = work.snapshot_wanted {
            self.make_image(wanted.min_index);
        }
        if let Some(fetch) = work.fetch {
            self.fetch(fetch);
        }
        Ok(())
    }

    /// Nobody knows the fate of what is in flight: those connections are closed, as the protocol has it.
    /// Whoever holds the tree reads requests of the new era from now on.
    fn abandon(&mut self, era: u64) {
        let tree = self.shared.tree.write();
        self.shared.set_era(era);
        self.shared.backup.abandon();
        let mut closed = 0;
        for handle in self.shared.registry.all() {
            let mut connection = handle.connection.lock();
            if connection.in_flight() {
                connection.close(CloseReason::Member);
                handle.wake.notify_one();
                closed += 1;
            }
        }
        drop(tree);
        if closed > 0 {
            info!(
                closed,
                "connections with requests of unknown fate are closed"
            );
        }
    }

    fn send(&mut self, outgoing: Vec<Outgoing>) {
        for Outgoing { to, frame } in outgoing {
            if !self.neighbours.send(to, frame) {
                self.member.unreachable(to);
            }
        }
    }

    fn apply(&mut self, committed: &[LogEntry]) -> Result<(), EntryError> {
        self.count_committed(committed);
        let shared = Arc::clone(&self.shared);
        let mut tree = shared.tree.write();
        let started = Instant::now();
        let zxid = tree.last_zxid();
        let mut delivery = Delivery {
            shared: &shared,
            moment: shared.moment(),
            leads: self.member.is_serving_leader(),
            woken: &mut self.woken,
            answered: None,
            expired: &mut self.expired,
        };
        let mut changed = false;
        for entry in committed {
            let in_force =
                self.applier
                    .apply(&mut tree, entry, &mut delivery, &mut self.effects)?;
            if entry.kind != EntryKind::Normal && in_force {
                changed = true;
                if let Err(error) = self.member.apply_membership(entry) {
                    warn!(index = entry.index, %error, "membership change without effect");
                }
            }
        }
        // A new epoch begins at 0: those of the batch in which it begins are not counted.
        let transactions = u64::try_from(tree.last_zxid() - zxid).unwrap_or(0);
        let transactions = if transactions >> 32 == 0 {
            transactions
        } else {
            0
        };
        let tree = RwLockWriteGuard::downgrade(tree);
        self.count_applied(committed, transactions, started);
        let now_ms = shared.clock.now_ms();
        if let Some(last) = committed.last() {
            self.member
                .applied(last.index, &self.effects, &tree, now_ms);
        }
        self.neighbours.follow(&tree);
        drop(tree);
        self.effects.clear();
        report_expired(&mut self.expired);
        for handle in self.woken.drain(..) {
            shared.throttle.note(&handle, &handle.connection.lock());
            wake(&handle);
        }
        shared.throttle.give_turns();
        if changed {
            self.follow_membership();
        }
        Ok(())
    }

    /// What depends on how many members there are.
    pub(super) fn follow_membership(&mut self) {
        let membership = self.member.membership();
        let alone = membership.voters == [self.shared.member]
            && membership.outgoing_voters.is_empty()
            && membership.learners.is_empty();
        self.shared.set_with_barriers(!alone);
        self.shared.throttle.set_voters(membership.voters.len());
        self.log_retained = if alone { 0 } else { RETAINED_LOG_BYTES };
    }

    fn pass_barriers(&self, connections: &[u64]) {
        if connections.is_empty() {
            return;
        }
        let shared = &self.shared;
        let tree = shared.tree.read();
        let moment = shared.moment();
        for id in connections {
            let Some(handle) = shared.registry.get(ConnectionId(*id)) else {
                continue;
            };
            let world = shared.world_at(&tree, moment);
            let mut connection = handle.connection.lock();
            connection.complete_sync(&world);
            shared.output.note(&handle, &mut connection);
            shared.throttle.note(&handle, &connection);
            drop(connection);
            handle.wake.notify_one();
        }
        shared.throttle.give_turns();
    }

    /// A member lags so far behind that the log cannot serve it.
    fn make_image(&mut self, min_index: u64) {
        if self.checkpointed < min_index {
            self.checkpoint();
        }
        self.checkpointer.make_image();
        self.due.images = Instant::now() + crate::limits::IMAGE_INTERVAL;
    }

    fn fetch(&mut self, fetch: Fetch) {
        self.neighbours
            .fetch(fetch.from, fetch.index, fetch.manifest);
    }

    /// Installs a snapshot once nothing is on its way to the store it replaces, and as often as it takes.
    pub(super) fn install_when_idle(&mut self, install: Install) -> Result<(), CoreError> {
        let due = Instant::now() >= self.due.install;
        let idle = self.log.is_idle() && !self.checkpointer.is_busy();
        if due && idle && self.install(&install)? {
            return Ok(());
        }
        self.installing = Some(install);
        Ok(())
    }

    /// False when the store cannot do it now.
    fn install(&mut self, install: &Install) -> Result<bool, CoreError> {
        let started = Instant::now();
        if !self.switch_store(install)? {
            self.due.install = started + STORE_RETRY;
            return Ok(false);
        }
        let loaded = load_tree(&*self.store)?;
        let Install { image, number, .. } = install;
        let znodes = loaded.counts().znodes;
        let mut tree = self.shared.tree.write();
        if tree.restored() != loaded.restored()
            && let Some(sessions) = &self.shared.local_sessions
        {
            sessions.clear();
        }
        *tree = loaded;
        // What changed in between fired no watch here: clients come again and tell what they have seen.
        for handle in self.shared.registry.all() {
            handle.close(CloseReason::Member);
        }
        let tree = RwLockWriteGuard::downgrade(tree);
        self.checkpointed = tree.applied_index();
        self.checkpointed_zxid = tree.last_zxid();
        self.shared.backup.checkpointed(self.checkpointed);
        let now_ms = self.shared.clock.now_ms();
        self.member.installed(image.index, *number, &tree, now_ms);
        self.neighbours.follow(&tree);
        drop(tree);
        self.follow_membership();
        let took = started.elapsed();
        self.shared.metrics.checkpoints.installed(took);
        info!(
            index = image.index,
            znodes,
            millis = took.as_millis() as u64,
            "the snapshot is installed"
        );
        Ok(true)
    }

    /// Switches the store to the image. After a failed write only its checkpoint tells which of the two
    /// contents it has.
    fn switch_store(&self, install: &Install) -> Result<bool, StoreError> {
        let image = &install.image;
        let attempt = self
            .store
            .install_image(image.index, image.term, install.hard_state);
        let Err(error) = attempt else {
            return Ok(true);
        };
        match &error {
            StoreError::ImageIo(_) => {
                warn!(%error, "the snapshot cannot be installed yet");
                Ok(false)
            }
            StoreError::Write(_) | StoreError::NeedsReopen | StoreError::Open(_) => {
                warn!(%error, "the store is opened again to see whether the snapshot is installed");
                match self.store.reopen() {
                    Ok(reopened) => Ok(reopened.checkpoint_index == image.index),
                    Err(error) if is_final(&error) => Err(error),
                    Err(_) => Ok(false),
                }
            }
            _ => Err(error),
        }
    }
}
