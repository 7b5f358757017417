//! The core thread: the only one that drives consensus and changes the tree.
//!
//! One turn: take what arrived, tick, do the work that the member gives out ([`work`]), see to what is
//! due ([`upkeep`]).

mod delivery;
mod figures;
mod stopping;
mod upkeep;
mod view;
mod work;

use std::sync::Arc;
use std::time::Instant;

use quenda_consensus::limits::RETAINED_LOG_BYTES;
use quenda_consensus::{SnapshotImage, StepError};
use quenda_node::frame::PeerFrameError;
use quenda_node::{Applier, Effects, EntryError, Install, Member};
use quenda_storage::{Store, StoreError};
use tracing::{debug, error};

use crate::calm::Calm;
use crate::checkpointer::Checkpointer;
use crate::clock::wall_ms;
use crate::inbox::{Arrivals, PeerNews};
use crate::limits::LOST_ENTRIES_REPORT;
use crate::log_writer::LogWriter;
use crate::neighbours::Neighbours;
use crate::registry::Handle;
use crate::shared::Shared;

use figures::Recollection;
use stopping::Stopping;
use upkeep::Due;
use view::Said;

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
    store: Arc<dyn Store>,
    log: LogWriter,
    checkpointer: Checkpointer,
    neighbours: Neighbours,
    effects: Effects,
    woken: Vec<Arc<Handle>>,
    expired: Vec<i64>,
    due: Due,
    /// Index of the last entry in the newest checkpoint that was collected.
    checkpointed: u64,
    /// zxid of the last transaction in it.
    checkpointed_zxid: i64,
    /// Bytes of log that the last cut has left in memory: more than usual while a member lags.
    window_left: u64,
    /// Bytes of log that stay behind a checkpoint for members that lag.
    log_retained: u64,
    /// A snapshot that waits for the log writer and the checkpointer to be idle. Nothing else is done
    /// meanwhile.
    installing: Option<Install>,
    /// How often it turned out that entries are gone.
    lost_entries: Calm,
    /// When that was last, by the server's clock.
    lost_entries_ms: Option<u64>,
    said: Said,
    recollection: Recollection,
    stopping: Option<Stopping>,
}

/// The parts that a core thread is made of.
pub struct Parts {
    /// The member.
    pub member: Member,
    /// Its store.
    pub store: Arc<dyn Store>,
    /// The log writer on that store.
    pub log: LogWriter,
    /// The checkpointer on that store.
    pub checkpointer: Checkpointer,
    /// The other members.
    pub neighbours: Neighbours,
}

impl Core {
    /// Everything is in place, nothing runs yet.
    pub fn new(shared: Arc<Shared>, parts: Parts) -> Core {
        let now = Instant::now();
        let (checkpointed, checkpointed_zxid) = {
            let tree = shared.tree.read();
            (tree.applied_index(), tree.last_zxid())
        };
        Core {
            applier: Applier::new(shared.member),
            member: parts.member,
            store: parts.store,
            log: parts.log,
            checkpointer: parts.checkpointer,
            neighbours: parts.neighbours,
            effects: Effects::default(),
            woken: Vec::new(),
            expired: Vec::new(),
            due: Due::starting(now, &shared.config),
            checkpointed,
            checkpointed_zxid,
            window_left: 0,
            log_retained: RETAINED_LOG_BYTES,
            installing: None,
            lost_entries: Calm::every(LOST_ENTRIES_REPORT),
            lost_entries_ms: None,
            said: Said::default(),
            recollection: Recollection::default(),
            stopping: None,
            shared,
        }
    }

    /// Runs until the server is told to stop and what it accepted is durable.
    ///
    /// # Errors
    /// The member must not go on, see [`CoreError`].
    pub fn run(mut self) -> Result<(), CoreError> {
        self.begin();
        loop {
            let leads = self.member.is_serving_leader();
            let arrivals = self.shared.inbox.take(self.due.idle_until(leads));
            self.absorb(arrivals)?;
            self.tick_if_due();
            self.reap_if_due();
            self.work()?;
            self.watch_office();
            self.follow_service();
            self.shared.inbox.set_queued(self.member.queued_bytes());
            self.checkpoint_if_due();
            if self.may_stop() {
                break;
            }
        }
        self.finish();
        Ok(())
    }

    /// A cluster of one leads at once; members of a larger one are told what is known of the others.
    fn begin(&mut self) {
        self.follow_membership();
        let tree = self.shared.tree.write();
        self.shared.set_era(self.member.era());
        drop(tree);
        self.neighbours.follow(&self.shared.tree.read());
        for (peer, state) in self.neighbours.seen() {
            self.member.peer_up(peer, state);
        }
        self.member.campaign();
    }

    fn absorb(&mut self, arrivals: Arrivals) -> Result<(), StoreError> {
        if let Some(error) = arrivals.lost {
            return Err(error);
        }
        let now_ms = self.shared.clock.now_ms();
        if arrivals.persisted != 0 {
            self.member.persisted(arrivals.persisted);
            self.count_persisted(arrivals.persisted);
        }
        for news in arrivals.peers {
            self.hear(news, now_ms);
        }
        self.follow_probe();
        if let Some(since) = arrivals.since {
            self.shared.metrics.requests.taken(since.elapsed());
        }
        if !arrivals.touched.is_empty() {
            self.member.touched(&arrivals.touched, now_ms);
        }
        // What comes once a stop was asked for is left out, all of it, so that a loaded server comes to an
        // end. Those connections are closed with the fate of their writes unknown.
        if self.stopping.is_none() {
            self.shared.load.turn(now_ms);
            self.member.submit(arrivals.era, arrivals.commands);
            for connection in arrivals.barriers {
                self.member.ask_barrier(arrivals.era, connection);
            }
        }
        if let Some((index, complete)) = arrivals.fetched {
            self.member.fetched(index, complete);
        }
        if let Some(image) = arrivals.image {
            self.member.offer_snapshot(SnapshotImage {
                index: image.index,
                term: image.term,
                membership: image.membership,
                manifest: image.manifest,
            });
        }
        if arrivals.checkpointed != 0 {
            self.cut_log(arrivals.checkpointed);
        }
        for question in arrivals.questions {
            question(&mut self.member);
        }
        if arrivals.stop && self.stopping.is_none() {
            self.begin_to_stop();
        }
        Ok(())
    }

    fn hear(&mut self, news: PeerNews, now_ms: u64) {
        match news {
            PeerNews::Frames(delivery) => {
                let from = delivery.from;
                for frame in &delivery.frames {
                    if let Err(error) = self.member.receive(from, frame, now_ms) {
                        self.complain(from, &error, now_ms);
                    }
                }
            }
            PeerNews::Up(peer, state) => self.member.peer_up(peer, state),
            PeerNews::Lost(peer) => self.member.peer_lost(peer),
            PeerNews::Unreachable(peer) => self.member.unreachable(peer),
        }
    }

    fn complain(&mut self, from: u64, error: &PeerFrameError, now_ms: u64) {
        if !matches!(error, PeerFrameError::Raft(StepError::LostEntries { .. })) {
            debug!(from, %error, "a frame of another member has no effect");
            return;
        }
        self.lost_entries_ms = Some(now_ms);
        if let Some(count) = self.lost_entries.turn(Instant::now()) {
            error!(
                count, %error,
                "this member's data is older than what it has confirmed: it cannot go on. Stop it, empty its data \
                 directory, and start it again; it fetches the state from the leader"
            );
        }
    }

    /// Does the work that the member gives out, until there is none or a snapshot has to be installed
    /// first.
    fn work(&mut self) -> Result<(), CoreError> {
        if let Some(install) = self.installing.take() {
            self.install_when_idle(install)?;
        }
        while self.installing.is_none()
            && let Some(work) = self.member.drive(wall_ms(), self.shared.clock.now_ms())
        {
            self.handle(work)?;
        }
        Ok(())
    }
}
