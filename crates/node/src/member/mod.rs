//! The part of a member that only its core thread touches: consensus, the commands on their way into the
//! log, the leases of the sessions, and what is known of the other members.

mod commands;
mod disk;
mod drive;
mod follow;
mod receive;
mod reconfig;
mod report;
mod snapshots;
mod ticks;

use bytes::BytesMut;
use quenda_consensus::{Consensus, LogEntry, Membership, MembershipError};
use quenda_tree::command::Command;
use quenda_tree::ensemble::Ensemble;
use quenda_tree::{Session, SessionEffect, Tree};

use crate::agreement::Agreement;
use crate::applier::Effects;
use crate::barriers::{Barriers, Waiter};
use crate::forwarding::{Forwarder, Intake};
use crate::outstanding::{Outstanding, enqueue};
use crate::peers::Peers;
use crate::session_tracker::SessionTracker;
use crate::touches::Reporter;
use crate::view::Views;
use crate::work::{Founding, Outgoing, PeerState, Setup};

use disk::Disk;
use follow::FastElection;
pub use follow::TransferRefusal;
use reconfig::Held;
use snapshots::Snapshots;

/// One member.
pub struct Member {
    id: u64,
    consensus: Consensus,
    /// The membership in force.
    membership: Membership,
    founding: Founding,
    tick: u64,
    now_ms: u64,
    last_tick_ms: u64,

    // What this member's own clients are waiting for.
    era: u64,
    abandoned: Option<u64>,
    /// Encoded commands that were not sent to the log yet, in order of arrival.
    queue: BytesMut,
    outstanding: Outstanding,
    barriers: Barriers,
    passed: Vec<u64>,
    views: Views,
    forwarder: Forwarder,
    reporter: Reporter,
    /// Whether this member has caught up with a leader since it last had none.
    serving: bool,
    /// When the leader last showed that it hears this member.
    acknowledged_ms: u64,
    has_cluster: bool,

    // The leader's part.
    /// Encoded commands in front of the log, of all members, and the term they are for.
    log_queue: BytesMut,
    log_term: u64,
    held: Option<Held>,
    intake: Intake,
    tracker: SessionTracker,
    /// Term in which this member took over the sessions; `None` while it does not lead.
    leading_since: Option<u64>,
    /// When that was, in milliseconds.
    took_over_ms: u64,
    /// The newest entry that was applied, and since when it is that one.
    progress: (u64, u64),
    /// Whether the reconfiguration in front of the queue has waited in vain.
    reconfig_refused: bool,
    /// The newest reconfiguration that was put into the log.
    reconfig_index: u64,

    disk: Disk,

    // The others.
    peers: Peers,
    outbox: Vec<Outgoing>,
    agreement: Agreement,
    ensemble: Option<Ensemble>,
    /// When the configuration changed, in ticks.
    ensemble_tick: u64,
    zxid: i64,
    snapshots: Snapshots,
    fast_election: Option<FastElection>,
    /// The entry as of which others say that this member is none, 0 if they do not.
    dismissed_at: u64,
}

impl Member {
    /// A member as it was left; `tree` is the state that was loaded.
    pub fn new(setup: Setup, tree: &Tree) -> Member {
        let id = setup.consensus.status().id;
        let membership = setup.consensus.membership();
        let mut member = Member {
            id,
            consensus: setup.consensus,
            membership,
            founding: setup.founding,
            tick: 0,
            now_ms: setup.now_ms,
            last_tick_ms: setup.now_ms,
            era: 0,
            abandoned: None,
            queue: BytesMut::new(),
            outstanding: Outstanding::default(),
            barriers: Barriers::new(setup.incarnation),
            passed: Vec::new(),
            views: Views::default(),
            forwarder: Forwarder::new(setup.incarnation),
            reporter: Reporter::default(),
            serving: false,
            acknowledged_ms: setup.now_ms,
            has_cluster: false,
            log_queue: BytesMut::new(),
            log_term: 0,
            held: None,
            intake: Intake::default(),
            tracker: SessionTracker::default(),
            leading_since: None,
            took_over_ms: setup.now_ms,
            progress: (0, setup.now_ms),
            reconfig_refused: false,
            reconfig_index: 0,
            disk: Disk::default(),
            peers: Peers::default(),
            outbox: Vec::new(),
            agreement: Agreement::new(id),
            ensemble: None,
            ensemble_tick: 0,
            zxid: 0,
            snapshots: Snapshots::default(),
            fast_election: None,
            dismissed_at: 0,
        };
        member.learn(tree);
        member
    }

    /// A member that needs nobody else's vote leads at once instead of after a timeout. Nothing happens on
    /// others.
    pub fn campaign(&mut self) {
        if self.is_only_voter() {
            self.consensus.campaign();
        }
    }

    fn is_only_voter(&self) -> bool {
        self.membership.voters == [self.id] && !self.membership.is_joint()
    }

    /// The era. What is in flight belongs to one; it ends with it.
    pub fn era(&self) -> u64 {
        self.era
    }

    /// Queues encoded commands of this member's clients for the log; those of an earlier era are dropped,
    /// their connections are closed.
    pub fn submit(&mut self, era: u64, commands: BytesMut) {
        if era == self.era {
            enqueue(&mut self.queue, commands);
        }
    }

    /// Queues a command of the leader itself, which nobody waits for; another member drops it.
    pub fn submit_command(&mut self, command: &Command<'_>) {
        if self.consensus.is_leader() {
            self.open_log_queue();
            command.encode(&mut self.log_queue);
        }
    }

    /// A connection waits until it has seen everything that was committed before now: it is named in
    /// [`crate::Work::barriers`] then. One of an earlier era is closed.
    pub fn ask_barrier(&mut self, era: u64, connection: u64) {
        if era == self.era {
            self.barriers.wait(Waiter::Connection(connection));
        }
    }

    /// Bytes of commands that are not in the log, and not on their way there, yet.
    pub fn queued_bytes(&self) -> usize {
        let held = self.held.as_ref().map_or(0, Held::bytes);
        self.queue.len() + self.log_queue.len() + held
    }

    /// Sessions that were heard here since the last call.
    pub fn touched(&mut self, sessions: &[i64], now_ms: u64) {
        if self.leading_since.is_none() {
            self.reporter.heard(sessions);
            return;
        }
        for session in sessions {
            self.tracker.touch(*session, self.id, now_ms);
        }
    }

    /// Gives every session `millis` more: clients cannot reach their sessions meanwhile, through no fault
    /// of theirs.
    pub fn hold_leases(&mut self, millis: u64) {
        self.tracker.extend_all(millis);
    }

    /// Everything up to this number is durable. What waited for that comes out of the next
    /// [`Member::drive`].
    pub fn persisted(&mut self, number: u64) {
        let messages = self.consensus.on_persisted(number);
        self.post(messages);
    }

    /// A handshake with another member succeeded, whoever asked for it.
    pub fn peer_up(&mut self, peer: u64, state: PeerState) {
        let known = self.peers.entry(peer);
        known.up = true;
        known.gone = false;
        known.state = Some(state);
    }

    /// Frames to another member were dropped.
    pub fn unreachable(&mut self, peer: u64) {
        self.consensus.report_unreachable(peer);
    }

    /// A committed membership change takes effect, see [`crate::Applier::apply`].
    ///
    /// # Errors
    /// The change makes no sense; it does so on every member, and the membership stays.
    pub fn apply_membership(&mut self, entry: &LogEntry) -> Result<(), MembershipError> {
        let changed = self.consensus.apply_membership(entry)?;
        if let Some(membership) = changed {
            self.membership = membership;
        }
        Ok(())
    }

    /// Entries up to `index` have been applied, with these effects. `tree` is the state after them.
    pub fn applied(&mut self, index: u64, effects: &Effects, tree: &Tree, now_ms: u64) {
        self.now_ms = now_ms;
        self.consensus.on_applied(index);
        for connection in &effects.own {
            self.outstanding.came_back(*connection);
        }
        self.agreement.applied(&effects.samples);
        self.learn(tree);
        self.permit_exchange(tree);
        self.take_over(tree);
        if self.leading_since.is_some() {
            for effect in &effects.sessions {
                self.note(*effect, tree);
            }
        }
        self.pass_barriers();
    }

    /// What the state says about the cluster.
    fn learn(&mut self, tree: &Tree) {
        self.zxid = tree.last_zxid();
        self.has_cluster = tree.cluster().is_some();
        if self.ensemble.as_ref() != tree.ensemble() {
            self.ensemble = tree.ensemble().cloned();
            self.ensemble_tick = self.tick;
        }
    }

    fn note(&mut self, effect: SessionEffect, tree: &Tree) {
        match effect {
            SessionEffect::Opened { session } | SessionEffect::Resumed { session, .. } => {
                if let Some(state) = tree.session(session) {
                    self.track(session, state);
                }
            }
            SessionEffect::Closed { session } => self.tracker.close(session),
            SessionEffect::Restored => self.track_all(tree),
            SessionEffect::None | SessionEffect::Refused => {}
        }
    }

    /// Every session gets its full timeout.
    fn track_all(&mut self, tree: &Tree) {
        self.tracker = SessionTracker::default();
        for (session, state) in tree.sessions() {
            self.track(session, state);
        }
    }

    fn track(&mut self, session: i64, state: &Session) {
        let timeout_ms = u64::from(state.timeout_ms.unsigned_abs());
        self.tracker
            .open(session, state.generation, timeout_ms, self.now_ms);
    }

    fn pass_barriers(&mut self) {
        let applied = self.consensus.status().applied;
        for waiter in self.barriers.passed(applied) {
            match waiter {
                Waiter::Connection(connection) => self.passed.push(connection),
                Waiter::Gate => {
                    self.serving = self.views.current().is_some() && !self.disk.hangs;
                    self.acknowledged_ms = self.now_ms;
                }
            }
        }
    }
}
