//! What the core thread counts: elections, proposals, what becomes of them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use quenda_consensus::{EntryKind, LogBatch, LogEntry, Role};
use quenda_node::{Effects, PeerReport, Service};
use quenda_tree::SessionEffect;
use quenda_tree::command::Batch;

use super::Core;
use crate::clock::wall_ms;
use crate::ensemble_view::{EnsembleView, is_connected, is_synced};
use crate::metrics::{AppliedBatch, Quorum};

/// Proposals and batches that are remembered until they are committed or durable. Of more, the times are not counted.
const REMEMBERED: usize = 4096;

/// How long the members may take to have an entry whose way is followed.
const PROBE_PATIENCE: Duration = Duration::from_secs(10);

/// What the core thread remembers for its figures.
#[derive(Default)]
pub(super) struct Recollection {
    leader: Option<u64>,
    last_leader: Option<u64>,
    /// Since when there is no leader; `None` before the first look.
    leaderless: Option<Instant>,
    /// Since when clients are not served.
    unserved: Option<Instant>,
    /// Since when another member leads with whom this one has to catch up.
    catching_up: Option<Instant>,
    transferring: bool,
    /// Whether this member serves, and whether it leads.
    part: (bool, bool),
    /// Last indices of what this member proposed, and when.
    proposed: VecDeque<(u64, Instant)>,
    /// Numbers of batches on their way to the disk, and when their newest entry was made.
    persisting: VecDeque<(u64, i64)>,
    probe: Option<Probe>,
    /// Members that were behind at the last look, and whether they fetched a snapshot meanwhile.
    behind: Vec<(u64, bool)>,
}

/// An entry that is followed to the members.
struct Probe {
    index: u64,
    proposed: Instant,
    /// Those that have it.
    seen: Vec<u64>,
}

/// When the entry was made by its leader, by the wall clock; `None` if it says nothing of that.
fn made_ms(entry: &LogEntry) -> Option<i64> {
    if entry.kind != EntryKind::Normal || entry.data.is_empty() {
        return None;
    }
    Batch::open(&entry.data).ok().map(|batch| batch.time_ms)
}

/// Time since an entry was made. Clocks of members may differ: it is never negative.
fn age_ms(made_ms: i64) -> u64 {
    u64::try_from(wall_ms() - made_ms).unwrap_or(0)
}

impl Core {
    /// Takes notice of leaders that come and go. To be called with every turn.
    pub(super) fn watch_office(&mut self) {
        let now = Instant::now();
        let quorum = &self.shared.metrics.quorum;
        let memory = &mut self.recollection;
        let leader = self.member.status().leader;
        let serves = self.member.service() == Service::Serving;
        let alone = !self.shared.has_others();
        if leader.is_none() && memory.leaderless.is_none() {
            memory.leaderless = Some(now);
            // Who runs alone has nobody to look for.
            if !alone {
                quorum.looking.add(1);
            }
        }
        if let Some(leader) = leader {
            if let Some(since) = memory.leaderless.take()
                && !alone
            {
                quorum.election.observe(millis(now - since));
            }
            memory.found(leader, self.shared.member, serves, now, quorum);
        }
        memory.leader = leader;
        let leads = leader == Some(self.shared.member);
        if memory.part != (serves, leads) {
            memory.part = (serves, leads);
            quorum.takes_part(self.shared.clock.now_ms());
        }
        if !serves {
            memory.unserved.get_or_insert(now);
            return;
        }
        if let Some(since) = memory.unserved.take()
            && !alone
        {
            quorum.unavailable.observe(millis(now - since));
            if leads {
                quorum.leader_unavailable.observe(millis(now - since));
            }
        }
        if let Some(since) = memory.catching_up.take()
            && !leads
        {
            let observes = self.shared.config.observer;
            let sync = if observes {
                &quorum.observer_sync
            } else {
                &quorum.follower_sync
            };
            sync.observe(millis(now - since));
        }
    }

    /// Counts each handing over once.
    pub(super) fn watch_transfer(&mut self) {
        let transferring = self.member.is_transferring();
        if transferring && !self.recollection.transferring {
            self.shared.metrics.quorum.transfer();
        }
        self.recollection.transferring = transferring;
    }

    /// Entries are handed to the log writer.
    pub(super) fn count_persisting(&mut self, number: u64, batch: &LogBatch) {
        let Some(last) = batch.entries.last() else {
            return;
        };
        let metrics = &self.shared.metrics;
        metrics.log.queued();
        let entries = batch.entries.len() as u64;
        let memory = &mut self.recollection;
        let made_ms = made_ms(last);
        if self.member.status().role == Role::Leader {
            metrics.quorum.proposals.add(entries);
            let now = Instant::now();
            if memory.proposed.len() < REMEMBERED {
                memory.proposed.push_back((last.index, now));
            }
            memory.probe.get_or_insert_with(|| Probe {
                index: last.index,
                proposed: now,
                seen: Vec::new(),
            });
        } else {
            metrics.quorum.received.add(entries);
            memory.proposed.clear();
            memory.probe = None;
            if let Some(made_ms) = made_ms {
                metrics.quorum.proposal_latency.observe(age_ms(made_ms));
            }
        }
        if let Some(made_ms) = made_ms
            && memory.persisting.len() < REMEMBERED
        {
            memory.persisting.push_back((number, made_ms));
        }
    }

    /// Batches up to this number are durable.
    pub(super) fn count_persisted(&mut self, number: u64) {
        let acks = &self.shared.metrics.quorum.ack_creation;
        let persisting = &mut self.recollection.persisting;
        while let Some((_, made_ms)) = pop_through(persisting, number) {
            acks.observe(age_ms(made_ms));
        }
    }

    /// Entries are known to be committed and are about to be applied.
    pub(super) fn count_committed(&mut self, committed: &[LogEntry]) {
        let Some(last) = committed.last() else {
            return;
        };
        let quorum = &self.shared.metrics.quorum;
        let entries = committed.len() as u64;
        if self.member.status().role == Role::Leader {
            quorum.commits.add(entries);
            let proposed = &mut self.recollection.proposed;
            while let Some((_, at)) = pop_through(proposed, last.index) {
                quorum.committed(at.elapsed());
            }
        } else {
            quorum.learnt.add(entries);
            if let Some(made_ms) = made_ms(last) {
                quorum.commit_propagation.observe(age_ms(made_ms));
            }
        }
    }

    /// They were applied.
    pub(super) fn count_applied(
        &self,
        committed: &[LogEntry],
        transactions: u64,
        started: Instant,
    ) {
        let Some(last) = committed.last() else {
            return;
        };
        let quorum = &self.shared.metrics.quorum;
        quorum.applied(&AppliedBatch {
            entries: committed.len(),
            transactions,
            took: started.elapsed(),
            behind: self.member.status().commit.saturating_sub(last.index),
        });
        if let Some(made_ms) = made_ms(last) {
            quorum.propagation.observe(age_ms(made_ms));
        }
        self.count_sessions(&self.effects);
    }

    fn count_sessions(&self, effects: &Effects) {
        let clients = &self.shared.metrics.clients;
        for effect in effects.sessions() {
            match effect {
                SessionEffect::Opened { .. } => clients.opened.add(1),
                SessionEffect::Resumed { .. } => clients.resumed.add(1),
                SessionEffect::Closed { .. }
                | SessionEffect::Restored
                | SessionEffect::None
                | SessionEffect::Refused => {}
            }
        }
    }

    /// Looks how far the entry has come that is followed to the members.
    pub(super) fn follow_probe(&mut self) {
        let Some(probe) = &mut self.recollection.probe else {
            return;
        };
        let mut missing = 0;
        for (peer, matched) in self.member.matched() {
            if matched < probe.index {
                missing += 1;
            } else if !probe.seen.contains(&peer) {
                probe.seen.push(peer);
                if let Some(acks) = self.shared.metrics.quorum.acks.get(&peer.to_string()) {
                    acks.observe(millis(probe.proposed.elapsed()));
                }
            }
        }
        if missing == 0 || probe.proposed.elapsed() > PROBE_PATIENCE {
            self.recollection.probe = None;
        }
    }

    /// Looks at the others, with every tick.
    pub(super) fn count_peers(&mut self, view: &EnsembleView) {
        let quorum = &self.shared.metrics.quorum;
        let memory = &mut self.recollection;
        if view.leads_since_ms.is_none() {
            memory.behind.clear();
            return;
        }
        for peer in &view.peers {
            let known = memory.behind.iter().position(|(id, _)| *id == peer.id);
            match (is_synced(peer), known) {
                (false, None) => memory.behind.push((peer.id, peer.fetching.is_some())),
                (false, Some(place)) => memory.behind[place].1 |= peer.fetching.is_some(),
                (true, Some(place)) => {
                    let (_, fetched) = memory.behind.swap_remove(place);
                    let others = behind_alike(&memory.behind, fetched, view);
                    let (how, inflight) = if fetched {
                        (&quorum.snapshots, &quorum.inflight_snapshots)
                    } else {
                        (&quorum.diffs, &quorum.inflight_diffs)
                    };
                    how.add(1);
                    inflight.observe(1 + others);
                }
                (true, None) => {}
            }
        }
        for (peer, frames) in self.neighbours.queued() {
            if let Some(queue) = quorum.queues.get(&peer.to_string()) {
                queue.observe(frames as u64);
            }
        }
    }
}

/// Members among those that are being caught up, from the log or by a snapshot.
fn behind_alike(behind: &[(u64, bool)], by_snapshot: bool, view: &EnsembleView) -> u64 {
    let is_alike = |peer: &&PeerReport| behind.contains(&(peer.id, by_snapshot));
    let peers = view.peers.iter();
    peers
        .filter(|peer| is_connected(peer))
        .filter(is_alike)
        .count() as u64
}

impl Recollection {
    /// There is a leader.
    fn found(&mut self, leader: u64, own: u64, serves: bool, now: Instant, quorum: &Quorum) {
        if self.last_leader.is_some_and(|last| last != leader) {
            quorum.leader_changed();
        }
        self.last_leader = Some(leader);
        if self.leader != Some(leader) && leader != own && !serves {
            self.catching_up = Some(now);
        }
    }
}

/// Takes the front off while it is not beyond a number.
fn pop_through<T>(queue: &mut VecDeque<(u64, T)>, through: u64) -> Option<(u64, T)> {
    let is_due = queue.front().is_some_and(|(at, _)| *at <= through);
    if is_due { queue.pop_front() } else { None }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_gone_is_not_being_caught_up() {
        let peer = |id, heard_ms_ago| PeerReport {
            id,
            role: Role::Follower,
            voter: true,
            matched: None,
            applied: 0,
            zxid: 0,
            digest: None,
            lag: u64::MAX,
            heard_ms_ago,
            fetching: None,
        };
        let view = EnsembleView {
            peers: vec![peer(2, Some(0)), peer(3, Some(0)), peer(4, None)],
            ..EnsembleView::default()
        };
        let behind = [(2, false), (3, true), (4, false)];
        assert_eq!(behind_alike(&behind, false, &view), 1);
        assert_eq!(behind_alike(&behind, true, &view), 1);
    }
}
