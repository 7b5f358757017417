//! The core thread: the only one that drives consensus and changes the tree.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::RwLockWriteGuard;
use quenda_consensus::limits::RETAINED_LOG_BYTES;
use quenda_consensus::{EntryKind, LogEntry, Ready};
use quenda_frontend::{CloseReason, ConnectionId};
use quenda_node::limits::TICK_MS;
use quenda_node::{Applier, Connections, EntryError, Member};
use quenda_storage::StoreError;
use quenda_tree::command::Command;
use quenda_tree::{Applied, Changes, SessionEffect, Tree};
use tracing::{error, info, warn};

use crate::checkpointer::Checkpointer;
use crate::clock::{Moment, wall_ms};
use crate::connection_task::wake;
use crate::inbox::Arrivals;
use crate::limits::{
    CHECKPOINT_BYTES, CHECKPOINT_INTERVAL, CHECKPOINT_LOG_BYTES, DISK_INTERVAL, STOP_PATIENCE,
};
use crate::log_writer::LogWriter;
use crate::registry::Handle;
use crate::shared::Shared;

/// Why the core thread ended before it was told to.
#[derive(Debug, thiserror::Error)]
pub enum CoreError {
    /// A committed entry cannot be read.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// The store has broken a promise.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What the core thread owns.
pub struct Core {
    shared: Arc<Shared>,
    member: Member,
    applier: Applier,
    log: LogWriter,
    checkpointer: Checkpointer,
    effects: Vec<SessionEffect>,
    woken: Vec<Arc<Handle>>,
    expired: Vec<i64>,
    next_tick: Instant,
    next_checkpoint: Instant,
    /// Index of the last entry in the newest checkpoint that was collected.
    checkpointed: u64,
    next_disk_check: Instant,
    next_reap: Instant,
    /// Set while the server stops: when it gives up waiting.
    stopping: Option<Instant>,
}

impl Core {
    /// Everything is in place, nothing runs yet.
    pub fn new(
        shared: Arc<Shared>,
        member: Member,
        log: LogWriter,
        checkpointer: Checkpointer,
    ) -> Core {
        let now = Instant::now();
        Core {
            applier: Applier::new(shared.member),
            member,
            log,
            checkpointer,
            effects: Vec::new(),
            woken: Vec::new(),
            expired: Vec::new(),
            next_tick: now,
            next_checkpoint: now + CHECKPOINT_INTERVAL,
            checkpointed: 0,
            next_disk_check: now,
            next_reap: now + Duration::from_millis(shared.config.container_check_interval_ms),
            stopping: None,
            shared,
        }
    }

    /// Runs until the server is told to stop and what it accepted is durable.
    ///
    /// # Errors
    /// The member must not go on, see [`CoreError`].
    pub fn run(mut self) -> Result<(), CoreError> {
        self.member.campaign();
        loop {
            let arrivals = self.shared.inbox.take(self.next_tick);
            self.absorb(arrivals)?;
            self.tick_if_due();
            while let Some(ready) = self.member.drive(wall_ms()) {
                self.handle(ready)?;
            }
            self.shared.inbox.set_queued(self.member.queued_bytes());
            self.checkpoint_if_due();
            if self.may_stop() {
                break;
            }
        }
        self.finish();
        Ok(())
    }

    fn absorb(&mut self, arrivals: Arrivals) -> Result<(), StoreError> {
        if let Some(error) = arrivals.lost {
            return Err(error);
        }
        let now_ms = self.shared.clock.now_ms();
        if !arrivals.touched.is_empty() {
            self.member.touched(&arrivals.touched, now_ms);
        }
        // What comes once a stop was asked for is left out, all of it, so that a loaded server comes to an
        // end. Those connections are closed with the fate of their writes unknown.
        if !arrivals.commands.is_empty() && self.stopping.is_none() {
            self.member.submit(arrivals.commands);
        }
        if arrivals.persisted != 0 {
            self.member.persisted(arrivals.persisted);
        }
        if arrivals.checkpointed != 0 {
            self.cut_log(arrivals.checkpointed);
        }
        for question in arrivals.questions {
            question(&self.member);
        }
        if arrivals.stop && self.stopping.is_none() {
            self.stopping = Some(Instant::now() + STOP_PATIENCE);
        }
        Ok(())
    }

    /// Everything up to this index is in a durable checkpoint: the log below it can go.
    fn cut_log(&mut self, index: u64) {
        let through = self.member.compact(index, self.log_retained());
        self.checkpointer.cut_log(through);
    }

    /// Bytes of log that stay behind a checkpoint for members that lag.
    fn log_retained(&self) -> u64 {
        match self.member.membership().voters.len() {
            1 => 0,
            _ => RETAINED_LOG_BYTES,
        }
    }

    fn tick_if_due(&mut self) {
        let now = Instant::now();
        if now < self.next_tick {
            return;
        }
        self.next_tick = now + Duration::from_millis(TICK_MS);
        if self.shared.is_log_failing() {
            self.close_undecided();
            self.member.hold_leases(TICK_MS);
        }
        let registry = &self.shared.registry;
        self.member.tick(self.shared.clock.now_ms(), |session| {
            let serving = registry.of_session(session);
            serving.is_some_and(|handle| handle.connection.lock().awaits_log())
        });
        if now >= self.next_disk_check {
            self.next_disk_check = now + DISK_INTERVAL;
            self.check_disk();
        }
        if now >= self.next_reap && self.member.is_serving_leader() {
            let interval = self.shared.config.container_check_interval_ms;
            self.next_reap = now + Duration::from_millis(interval);
            self.reap(interval);
        }
    }

    /// While the log cannot be written nobody knows the fate of what is in flight: those connections are
    /// closed, as the protocol has it, instead of waiting for the disk. Sessions live on.
    fn close_undecided(&self) {
        for handle in self.shared.registry.all() {
            let mut connection = handle.connection.lock();
            let handshaking = !connection.is_established() && !connection.is_fresh();
            if handshaking || connection.queued() > 0 {
                connection.close(CloseReason::Member);
                handle.wake.notify_one();
            }
        }
    }

    fn check_disk(&mut self) {
        let full = self.checkpointer.is_disk_full();
        if self.shared.set_disk_full(full) {
            if full {
                error!(
                    "the disk is nearly full: creates and sets are refused until there is space"
                );
            } else {
                info!("the disk has space again: all writes are taken");
            }
        }
    }

    /// Asks for the removal of containers and TTL znodes whose time has come.
    fn reap(&mut self, interval_ms: u64) {
        let config = &self.shared.config;
        let per_interval = u128::from(config.container_max_per_minute) * u128::from(interval_ms);
        let limit = usize::try_from((per_interval / 60_000).max(1)).unwrap_or(usize::MAX);
        let never_used_ms = config.container_max_never_used_ms;
        let candidates = self
            .shared
            .tree
            .read()
            .reap_candidates(wall_ms(), never_used_ms, limit);
        for path in candidates {
            self.member.submit_command(&Command::Reap {
                path: &path,
                never_used_ms,
            });
        }
    }

    fn handle(&mut self, ready: Ready) -> Result<(), EntryError> {
        if let Some(batch) = ready.persist {
            self.log.write(ready.number, batch);
        }
        if !ready.committed.is_empty() {
            self.apply(&ready.committed)?;
        }
        Ok(())
    }

    fn apply(&mut self, committed: &[LogEntry]) -> Result<(), EntryError> {
        let shared = Arc::clone(&self.shared);
        let mut tree = shared.tree.write();
        let mut delivery = Delivery {
            shared: &shared,
            moment: shared.moment(),
            woken: &mut self.woken,
            expired: &mut self.expired,
        };
        for entry in committed {
            if entry.kind != EntryKind::Normal {
                if let Err(error) = self.member.apply_membership(entry) {
                    warn!(index = entry.index, %error, "membership change without effect");
                }
                tree.set_applied_index(entry.index, entry.term);
                continue;
            }
            self.applier
                .apply(&mut tree, entry, &mut delivery, &mut self.effects)?;
        }
        let tree = RwLockWriteGuard::downgrade(tree);
        let now_ms = shared.clock.now_ms();
        if let Some(last) = committed.last() {
            self.member
                .applied(last.index, &self.effects, &tree, now_ms);
        }
        drop(tree);
        self.effects.clear();
        report_expired(&mut self.expired);
        if self.member.is_serving_leader() && !shared.is_serving() {
            shared.set_serving(true);
        }
        for handle in self.woken.drain(..) {
            wake(&handle);
        }
        Ok(())
    }

    fn checkpoint_if_due(&mut self) {
        if self.checkpointer.is_busy() {
            return;
        }
        let now = Instant::now();
        let dirty = self.shared.tree.read().dirty_bytes();
        let status = self.member.status();
        let behind = status.applied > self.checkpointed;
        // A complete one copies the whole tree: while the store fails, not more often than it has to.
        let log_max = self.log_retained() + CHECKPOINT_LOG_BYTES;
        let early = (dirty >= CHECKPOINT_BYTES || status.window_bytes >= log_max)
            && !self.shared.is_checkpoint_lost();
        let due = behind && (early || now >= self.next_checkpoint);
        if due {
            self.checkpoint();
        }
    }

    fn checkpoint(&mut self) {
        self.next_checkpoint = Instant::now() + CHECKPOINT_INTERVAL;
        let membership = self.member.membership();
        let mut tree = self.shared.tree.write();
        self.checkpointed = tree.applied_index();
        self.checkpointer.collect(&mut tree, membership);
    }

    /// A stop waits until nothing that was accepted is on its way to the disk.
    fn may_stop(&self) -> bool {
        let Some(deadline) = self.stopping else {
            return false;
        };
        let status = self.member.status();
        let settled = self.member.queued_bytes() == 0
            && status.persisted == status.last_index
            && status.applied == status.commit;
        if !settled && Instant::now() >= deadline {
            warn!("stopping although some writes are not on disk; none of them was acknowledged");
            return true;
        }
        settled
    }

    /// Leaves a checkpoint behind, so that the next start has nothing to replay.
    fn finish(mut self) {
        self.log.stop();
        if self.member.status().applied > self.checkpointed {
            self.checkpoint();
        }
        self.checkpointer.stop();
    }
}

/// Sessions that one log line names; it counts the others.
const EXPIRED_NAMED: usize = 8;

/// One line for all that expired together: there may be thousands.
fn report_expired(sessions: &mut Vec<i64>) {
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

/// The connections as apply reaches them.
struct Delivery<'a> {
    shared: &'a Shared,
    /// When the batch of entries was begun.
    moment: Moment,
    woken: &'a mut Vec<Arc<Handle>>,
    /// Sessions that timed out, to be named in the log.
    expired: &'a mut Vec<i64>,
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
}

impl Connections for Delivery<'_> {
    fn deliver(&mut self, tree: &Tree, changes: &Changes) {
        let shared = self.shared;
        for change in changes.iter() {
            shared.watches.fire(&change, &mut |connection, frame, acl| {
                if let Some(handle) = shared.registry.get(connection) {
                    let mut connection = handle.connection.lock();
                    connection.deliver(frame, acl, tree);
                    shared.output.note(&handle, &mut connection);
                    drop(connection);
                    self.mark(handle);
                }
            });
        }
    }

    fn complete(&mut self, tree: &Tree, connection: ConnectionId, applied: &Applied, body: &[u8]) {
        match applied.session {
            SessionEffect::Opened { session } | SessionEffect::Resumed { session, .. } => {
                self.take_over(session, connection);
            }
            SessionEffect::None | SessionEffect::Refused | SessionEffect::Closed { .. } => {}
        }
        // The client may have left meanwhile: its write counts all the same.
        if let Some(handle) = self.shared.registry.get(connection) {
            let world = self.shared.world_at(tree, self.moment);
            let mut connection = handle.connection.lock();
            connection.complete(applied, body, &world);
            self.shared.output.note(&handle, &mut connection);
            drop(connection);
            self.mark(handle);
        }
    }

    fn session_closed(&mut self, session: i64, expired: bool) {
        if expired {
            self.expired.push(session);
        }
        if let Some(handle) = self.shared.registry.unbind(session) {
            handle.connection.lock().close(CloseReason::SessionExpired);
            self.mark(handle);
        }
    }
}
