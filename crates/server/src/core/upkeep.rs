//! What the core thread does by the clock.

use std::time::{Duration, Instant};

use quenda_consensus::Role;
use quenda_frontend::{CloseReason, ServiceMode};
use quenda_node::limits::TICK_MS;
use quenda_node::{PeerState, Service};
use quenda_tree::command::{Command, Origin};
use tracing::{error, info, warn};

use super::Core;
use super::delivery::report_expired;
use crate::clock::wall_ms;
use crate::config::ServerConfig;
use crate::limits::{
    CHECKPOINT_BYTES, CHECKPOINT_INTERVAL, DISK_INTERVAL, IMAGE_INTERVAL, LEADERLESS_REPORT,
    READ_ONLY_DELAY, RESTORE_IDLE,
};
use crate::served::Served;

/// When something is to be done next.
pub(super) struct Due {
    pub(super) tick: Instant,
    pub(super) checkpoint: Instant,
    pub(super) disk: Instant,
    pub(super) reap: Instant,
    pub(super) images: Instant,
    /// Pieces of a snapshot that is to be restored, and since when there are that many.
    pieces: Option<((u64, u32), Instant)>,
    /// The next attempt to install a snapshot.
    pub(super) install: Instant,
    /// Since when there is no quorum, while there is none.
    pub(super) leaderless: Option<Instant>,
    /// Whether the log says who is here then.
    leaderless_told: bool,
}

impl Due {
    pub(super) fn starting(now: Instant, config: &ServerConfig) -> Due {
        Due {
            tick: now,
            checkpoint: now + CHECKPOINT_INTERVAL,
            disk: now,
            reap: now + Duration::from_millis(config.container_check_interval_ms),
            images: now + IMAGE_INTERVAL,
            pieces: None,
            install: now,
            leaderless: Some(now),
            leaderless_told: false,
        }
    }

    /// Until when nothing has to be done by the clock. What is not here is looked at with every tick.
    pub(super) fn idle_until(&self, leads: bool) -> Instant {
        if leads {
            self.tick.min(self.reap)
        } else {
            self.tick
        }
    }
}

impl Core {
    pub(super) fn tick_if_due(&mut self) {
        let now = Instant::now();
        if now < self.due.tick {
            return;
        }
        self.due.tick = now + Duration::from_millis(TICK_MS);
        if self.shared.is_log_failing() {
            self.close_undecided();
            self.member.hold_leases(TICK_MS);
            // Others may have a disk that works.
            self.member.transfer_leadership();
        }
        self.publish();
        let registry = &self.shared.registry;
        self.member.tick(self.shared.clock.now_ms(), |session| {
            let serving = registry.of_session(session);
            serving.is_some_and(|handle| handle.connection.lock().awaits_log())
        });
        match self.shared.served() {
            Served::Readers => self.expire_read_only(),
            // Whoever leads and serves nobody may do so for long: clients of before have gone elsewhere.
            Served::All | Served::NobodyAsLeader if !self.shared.is_log_failing() => {
                self.expire_local();
            }
            Served::All | Served::NobodyAsLeader | Served::Nobody => {}
        }
        if now >= self.due.disk {
            self.due.disk = now + DISK_INTERVAL;
            self.check_disk();
        }
        if now >= self.due.images {
            self.due.images = now + IMAGE_INTERVAL;
            self.drop_images();
            self.drop_stale_pieces(now);
        }
    }

    /// Not bound to ticks: the interval that an operator sets may be shorter.
    pub(super) fn reap_if_due(&mut self) {
        let now = Instant::now();
        if now >= self.due.reap && self.member.is_serving_leader() {
            let interval = self.shared.config.container_check_interval_ms;
            self.due.reap = now + Duration::from_millis(interval);
            self.reap(interval);
        }
    }

    /// Who is served follows from where the member stands. Whoever is no longer served is disconnected.
    pub(super) fn follow_service(&mut self) {
        let now = Instant::now();
        let served = match self.member.service() {
            Service::Serving => {
                self.due.leaderless = None;
                self.due.leaderless_told = false;
                let leads = self.member.status().role == Role::Leader;
                Served::with_quorum(leads, self.shared.config.spares_leader())
            }
            Service::NoLeader => {
                let since = *self.due.leaderless.get_or_insert(now);
                // One that waits to be fed lacks no quorum, and has nothing to show.
                let takes_part = self.member.peer_state() == PeerState::Member;
                if takes_part && !self.member.disk_hangs() && now - since >= LEADERLESS_REPORT {
                    self.tell_leaderless();
                }
                let read_only = self.shared.config.read_only_mode && self.member.has_state();
                if read_only && now - since >= READ_ONLY_DELAY {
                    Served::Readers
                } else {
                    Served::Nobody
                }
            }
            Service::Removed | Service::Alarmed => Served::Nobody,
        };
        if served == self.shared.served() {
            return;
        }
        // Whoever sees that it serves also sees as what.
        self.publish();
        let tree = self.shared.tree.write();
        let before = self.shared.set_served(served);
        if before.mode() != ServiceMode::NotServing {
            for handle in self.shared.registry.all() {
                handle.close(CloseReason::NotServing);
            }
        }
        drop(tree);
        report_service(self.member.service(), served, self.member.disk_hangs());
    }

    /// Says once who of the voters is here, so that it is clear who is waited for.
    fn tell_leaderless(&mut self) {
        if std::mem::replace(&mut self.due.leaderless_told, true) {
            return;
        }
        let voters = self.member.membership().voters;
        let seen = self.neighbours.seen();
        let is_here =
            |id: &u64| *id == self.shared.member || seen.iter().any(|(peer, _)| peer == id);
        let here: Vec<u64> = voters.iter().copied().filter(is_here).collect();
        warn!(
            ?voters,
            ?here,
            "no quorum: this member waits until a majority of the voters agrees on a leader"
        );
    }

    /// Without a quorum nobody but this member sees to the sessions that it has opened meanwhile.
    fn expire_read_only(&self) {
        let now_ms = self.shared.clock.now_ms();
        for handle in self.shared.registry.all() {
            let mut connection = handle.connection.lock();
            if connection.is_local_expired(now_ms) {
                connection.close(CloseReason::SessionExpired);
                handle.wake.notify_one();
            }
        }
    }

    /// Nobody else sees to the sessions that only this member knows.
    fn expire_local(&mut self) {
        let Some(sessions) = &self.shared.local_sessions else {
            return;
        };
        let now_ms = self.shared.clock.now_ms();
        let mut expired = sessions.expire(&self.shared.registry, now_ms);
        let count = expired.len() as u64;
        self.shared.metrics.clients.expired.add(count);
        report_expired(&mut expired);
    }

    /// While the log cannot be written nobody knows the fate of what is in flight: those connections are
    /// closed, as the protocol has it, instead of waiting for the disk. Sessions live on.
    fn close_undecided(&self) {
        for handle in self.shared.registry.all() {
            let mut connection = handle.connection.lock();
            if connection.in_flight() || connection.queued() > 0 {
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

    /// Pieces of a snapshot whose sender is gone cost memory on every member.
    fn drop_stale_pieces(&mut self, now: Instant) {
        let pieces = self.shared.tree.read().restore_pieces();
        let Some((restore, count)) = pieces else {
            self.due.pieces = None;
            return;
        };
        let seen = self
            .due
            .pieces
            .filter(|(known, _)| *known == (restore, count));
        let (_, since) = *self
            .due
            .pieces
            .insert(seen.unwrap_or(((restore, count), now)));
        if now >= since + RESTORE_IDLE {
            let origin = Origin::default();
            self.member
                .submit_command(&Command::DropPieces { origin, restore });
        }
    }

    /// Images cost disk while the store changes beside them.
    fn drop_images(&mut self) {
        if !self.member.serves_snapshots() {
            self.member.withdraw_snapshot();
            self.checkpointer.drop_images();
        }
    }

    /// Everything up to this index is in a durable checkpoint: the log below it can go.
    pub(super) fn cut_log(&mut self, index: u64) {
        let through = self.member.compact(index, self.log_retained);
        self.window_left = self.member.status().window_bytes;
        self.checkpointer.cut_log(through);
    }

    pub(super) fn checkpoint_if_due(&mut self) {
        if self.checkpointer.is_busy() || self.installing.is_some() {
            return;
        }
        let now = Instant::now();
        let (dirty, zxid) = {
            let tree = self.shared.tree.read();
            (tree.dirty_bytes(), tree.last_zxid())
        };
        let wanted = self.shared.config.storage.snap_count;
        let counted = wanted.is_some_and(|count| zxid - self.checkpointed_zxid >= i64::from(count));
        let status = self.member.status();
        let behind = status.applied > self.checkpointed;
        // A complete one copies the whole tree: while the store fails, not more often than it has to.
        let log_bytes = self.shared.config.storage.snap_log_bytes;
        let log_max = self.window_left.max(self.log_retained) + log_bytes;
        let early = (dirty >= CHECKPOINT_BYTES || status.window_bytes >= log_max || counted)
            && !self.shared.is_checkpoint_lost();
        let wanted = self.shared.backup.takes_checkpoint();
        let due = behind && (early || wanted || now >= self.due.checkpoint);
        if due {
            self.checkpoint();
        }
    }

    pub(super) fn checkpoint(&mut self) {
        self.due.checkpoint = Instant::now() + CHECKPOINT_INTERVAL;
        let membership = self.member.membership();
        let mut tree = self.shared.tree.write();
        self.checkpointed = tree.applied_index();
        self.checkpointed_zxid = tree.last_zxid();
        self.checkpointer.collect(&mut tree, membership);
    }
}

fn report_service(service: Service, served: Served, disk_hangs: bool) {
    match (service, served) {
        (Service::Serving, Served::NobodyAsLeader) => {
            info!("this member leads and serves no clients (leaderServes=no): the others do");
        }
        (Service::Serving, _) => info!("clients are served"),
        (Service::NoLeader, Served::Readers) => {
            warn!("no quorum: clients that only read are served");
        }
        (Service::NoLeader, _) if disk_hangs => {
            warn!(
                "the log stands still, the disk takes nothing: clients are disconnected until it does"
            );
        }
        (Service::NoLeader, _) => warn!("no quorum: clients are disconnected"),
        (Service::Removed, _) => {
            warn!("this member is not in the configuration (any more): clients are disconnected");
        }
        (Service::Alarmed, _) => error!(
            "this member's state differs from the others': it serves nobody. Stop it, empty its data \
             directory, and start it again; it fetches the state from the leader"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leader_reaps_as_often_as_it_is_told_between_ticks_too() {
        let config = ServerConfig {
            container_check_interval_ms: 1,
            ..ServerConfig::default()
        };
        let now = Instant::now();
        let mut due = Due::starting(now, &config);
        due.tick = now + Duration::from_millis(TICK_MS);
        assert_eq!(due.idle_until(true), now + Duration::from_millis(1));
        assert_eq!(due.idle_until(false), due.tick);
        due.reap = due.tick + Duration::from_secs(60);
        assert_eq!(due.idle_until(true), due.tick);
    }
}
