//! Agreement: elections, proposals and what becomes of them.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::counter::Counter;
use super::histogram::Histogram;
use super::page::{Figures, Page, own};
use super::set::Set;
use super::startup::millis;
use super::summary::{Percentiles, Summary};
use crate::limits::PEERS_MAX;

/// Figures of agreement. Times are milliseconds where they have ZooKeeper's names.
#[derive(Debug)]
pub struct Quorum {
    /// Times without a leader that began.
    pub looking: Counter,
    /// How long they were.
    pub election: Summary,
    /// How long clients were not served, each time.
    pub unavailable: Summary,
    /// The same, where this member led afterwards.
    pub leader_unavailable: Summary,
    /// Time from a leader until its state was caught up with: a voter's.
    pub follower_sync: Summary,
    /// An observer's.
    pub observer_sync: Summary,
    /// Entries that this member put forward as the leader.
    pub proposals: Counter,
    /// Of those, and of others while it led, the committed ones.
    pub commits: Counter,
    /// Entries that came from a leader.
    pub received: Counter,
    /// Of those the committed ones.
    pub learnt: Counter,
    /// Members that were caught up from the log, and by a snapshot.
    pub diffs: Counter,
    /// See [`Self::diffs`].
    pub snapshots: Counter,
    /// When one was: how many were being caught up from the log just then, that one among them; and by a snapshot.
    pub inflight_diffs: Summary,
    /// See [`Self::inflight_diffs`].
    pub inflight_snapshots: Summary,
    quorum_ack: Percentiles,
    commit: Histogram,
    /// By member: from an entry's proposal until it was durable there.
    pub acks: Set<Percentiles>,
    /// By member: frames that wait for its connection.
    pub queues: Set<Summary>,
    /// From an entry's making until it came here.
    pub proposal_latency: Percentiles,
    /// Until it was durable here.
    pub ack_creation: Percentiles,
    /// Until this member knew that it is committed.
    pub commit_propagation: Percentiles,
    /// Until it was applied here.
    pub propagation: Percentiles,
    apply_ms: Summary,
    apply: Histogram,
    apply_entries: Histogram,
    queued: Counter,
    batch: Summary,
    transactions: Counter,
    leader_changes: Counter,
    transfers: Counter,
    lag: AtomicI64,
    /// When this member took up its present part, by the server's clock in ms.
    part_since_ms: AtomicU64,
}

impl Default for Quorum {
    fn default() -> Self {
        Quorum {
            looking: Counter::default(),
            election: Summary::default(),
            unavailable: Summary::default(),
            leader_unavailable: Summary::default(),
            follower_sync: Summary::default(),
            observer_sync: Summary::default(),
            proposals: Counter::default(),
            commits: Counter::default(),
            received: Counter::default(),
            learnt: Counter::default(),
            diffs: Counter::default(),
            snapshots: Counter::default(),
            inflight_diffs: Summary::default(),
            inflight_snapshots: Summary::default(),
            quorum_ack: Percentiles::default(),
            commit: Histogram::latencies(),
            acks: Set::bounded(PEERS_MAX),
            queues: Set::bounded(PEERS_MAX),
            proposal_latency: Percentiles::default(),
            ack_creation: Percentiles::default(),
            commit_propagation: Percentiles::default(),
            propagation: Percentiles::default(),
            apply_ms: Summary::default(),
            apply: Histogram::latencies(),
            apply_entries: Histogram::sizes(),
            queued: Counter::default(),
            batch: Summary::default(),
            transactions: Counter::default(),
            leader_changes: Counter::default(),
            transfers: Counter::default(),
            lag: AtomicI64::new(0),
            part_since_ms: AtomicU64::new(0),
        }
    }
}

/// A batch of committed entries that was applied.
#[derive(Debug, Clone, Copy)]
pub struct AppliedBatch {
    /// How many entries.
    pub entries: usize,
    /// How many zxids they took.
    pub transactions: u64,
    /// How long it took, with the tree locked.
    pub took: Duration,
    /// Committed entries that are not applied yet.
    pub behind: u64,
}

impl Quorum {
    /// An entry that this member proposed is committed.
    pub fn committed(&self, after: Duration) {
        self.quorum_ack.observe(millis(after));
        self.commit.observe_duration(after);
    }

    /// Entries were applied.
    pub fn applied(&self, batch: &AppliedBatch) {
        self.queued.add(batch.entries as u64);
        self.batch.observe(batch.entries as u64);
        self.apply_entries.observe(batch.entries as u64);
        self.apply_ms.observe(millis(batch.took));
        self.apply.observe_duration(batch.took);
        self.transactions.add(batch.transactions);
        self.lag
            .store(i64::try_from(batch.behind).unwrap_or(i64::MAX), Relaxed);
    }

    /// This member takes up another part: it begins to serve, or to lead.
    pub fn takes_part(&self, now_ms: u64) {
        self.part_since_ms.store(now_ms, Relaxed);
    }

    /// When it took up its present part, by the server's clock in ms.
    pub fn part_since_ms(&self) -> u64 {
        self.part_since_ms.load(Relaxed)
    }

    /// Another member leads now than did before.
    pub fn leader_changed(&self) {
        self.leader_changes.add(1);
    }

    /// This member began to hand its office over.
    pub fn transfer(&self) {
        self.transfers.add(1);
    }
}

impl Figures for Quorum {
    fn tell(&self, page: &mut dyn Page) {
        page.counter("looking_count", &self.looking);
        page.counter("diff_count", &self.diffs);
        page.counter("snap_count", &self.snapshots);
        page.summary("inflight_diff_count", &self.inflight_diffs);
        page.summary("inflight_snap_count", &self.inflight_snapshots);
        page.counter("proposal_count", &self.proposals);
        page.counter("commit_count", &self.commits);
        page.counter("learner_proposal_received_count", &self.received);
        page.counter("learner_commit_received_count", &self.learnt);
        page.counter("request_commit_queued", &self.queued);
        page.summary("election_time", &self.election);
        page.summary("unavailable_time", &self.unavailable);
        page.summary("leader_unavailable_time", &self.leader_unavailable);
        page.summary("follower_sync_time", &self.follower_sync);
        page.summary("observer_sync_time", &self.observer_sync);
        page.summary("commit_commit_proc_req_queued", &self.batch);
        page.summary("write_batch_time_in_commit_processor", &self.apply_ms);
        page.percentiles("quorum_ack_latency", &self.quorum_ack);
        page.percentiles("proposal_latency", &self.proposal_latency);
        page.percentiles("proposal_ack_creation_latency", &self.ack_creation);
        page.percentiles("commit_propagation_latency", &self.commit_propagation);
        page.percentiles("propagation_latency", &self.propagation);
        for (member, queue) in self.queues.all() {
            page.summary_of("learner_handler_qp_size", &member, &queue);
        }
        for (member, latency) in self.acks.all() {
            page.percentiles_of("ack_latency", &member, &latency);
        }
        self.tell_own(page);
    }
}

impl Quorum {
    fn tell_own(&self, page: &mut dyn Page) {
        page.own_histogram(
            own(
                "quenda_commit_seconds",
                "Time from an entry's proposal by this member until a quorum has it.",
            ),
            &[],
            &self.commit,
        );
        page.own_histogram(
            own(
                "quenda_apply_seconds",
                "Time to apply one batch of committed entries; reads wait meanwhile.",
            ),
            &[],
            &self.apply,
        );
        page.own_histogram(
            own(
                "quenda_apply_batch_entries",
                "Log entries applied in one go.",
            ),
            &[],
            &self.apply_entries,
        );
        page.own_gauge(
            own(
                "quenda_apply_queue_entries",
                "Committed log entries that were not applied when the last batch was.",
            ),
            &[],
            self.lag.load(Relaxed) as f64,
        );
        page.own_counter(
            own(
                "quenda_transactions_total",
                "Transactions applied: each has its zxid.",
            ),
            &[],
            &self.transactions,
        );
        page.own_counter(
            own(
                "quenda_leader_changes_total",
                "Times that this member learnt of another leader than before.",
            ),
            &[],
            &self.leader_changes,
        );
        page.own_counter(
            own(
                "quenda_leadership_transfers_total",
                "Times that this member began to hand the leadership over.",
            ),
            &[],
            &self.transfers,
        );
    }
}
