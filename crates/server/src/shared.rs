//! What all threads of the server share.

use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::{Mutex, RwLock};
use quenda_frontend::{
    ConnectionId, Growth, LocalSessions, SaslUsers, ServiceMode, SessionIds, Settings, SyncMode,
    World,
};
use quenda_tree::Tree;
use rustix::process::{Resource, getrlimit};
use tokio::sync::watch;

use crate::admin::AdminFigures;
use crate::audit::Audit;
use crate::backup::Backup;
use crate::clock::{Clock, Moment, wall_ms};
use crate::config::ServerConfig;
use crate::directory_gauge::DirectoryGauge;
use crate::ensemble_view::EnsembleView;
use crate::four_letter::FourLetterWords;
use crate::inbox::Inbox;
use crate::listings::Listings;
use crate::load::{LoadMonitor, Throttle};
use crate::local_sessions::MemberSessions;
use crate::metrics::Metrics;
use crate::output_budget::OutputBudget;
use crate::peers::Peers;
use crate::proposals::Proposals;
use crate::quota_refusals::QuotaRefusals;
use crate::registry::Registry;
use crate::sasl::Accounts;
use crate::served::Served;
use crate::tls::Tls;
use crate::traffic::Traffic;
use crate::watches::LockedWatches;

/// One server: the replicated state, its readers' locks, and the ways between the threads.
///
/// Lock order: `tree`, then a connection, then `watches`, then everything else.
#[derive(Debug)]
pub struct Shared {
    /// Id of this member.
    pub member: u64,
    /// The state machine. Only the core thread locks it for writing.
    pub tree: RwLock<Tree>,
    /// Watches of this member's clients.
    pub watches: LockedWatches,
    /// This member's client connections.
    pub registry: Registry,
    /// The way to the core thread.
    pub inbox: Inbox,
    /// Ids for new sessions.
    pub session_ids: SessionIds,
    /// Sessions that only this member knows, if new ones are such.
    pub local_sessions: Option<MemberSessions>,
    /// Settings of the client protocol.
    pub settings: Arc<Settings>,
    /// Who may authenticate by SASL, if that is set up.
    pub accounts: Option<Accounts>,
    /// Configuration of the server.
    pub config: ServerConfig,
    /// Time.
    pub clock: Clock,
    /// Counters.
    pub traffic: Traffic,
    /// Figures.
    pub metrics: Metrics,
    /// What waits, and who is turned away for it.
    pub throttle: Throttle,
    /// Who loads the server.
    pub load: LoadMonitor,
    /// Output that clients have not taken.
    pub output: OutputBudget,
    /// TLS for clients, if a client port speaks it.
    pub tls: Option<Arc<Tls>>,
    /// TLS between members, if there is any.
    pub quorum_tls: Option<Arc<Tls>>,
    /// The words on the client port.
    pub words: FourLetterWords,
    /// The audit log, if there is one.
    pub audit: Option<Audit>,
    /// Who is served.
    served: watch::Sender<Served>,
    /// The member's era; changed only while the tree is locked for writing, so that whoever holds the
    /// tree may rely on it.
    era: AtomicU64,
    /// Whether a `sync` needs a barrier: there are other members that may lead.
    with_barriers: AtomicBool,
    /// Whether the disk has no room for growth.
    disk_full: AtomicBool,
    /// Whether the log writer waits for its store to work again.
    log_failing: AtomicBool,
    /// Whether the store may lack rows that were collected for a checkpoint: the next has to be complete.
    checkpoint_lost: AtomicBool,
    next_connection: AtomicU64,
    /// The first id that this run of the process gave out.
    first_connection: u64,
    /// The connections to the other members, once there are any.
    peers: OnceLock<Weak<Peers>>,
    /// What the core thread knows of the ensemble.
    pub ensemble: RwLock<EnsembleView>,
    /// Sizes of what this member proposed.
    pub proposals: Proposals,
    /// Writes of this member's clients that went over hard quotas.
    pub quota_refusals: QuotaRefusals,
    /// The newest checkpoint: its zxid, and when it was taken, in seconds since 1970.
    last_checkpoint: Mutex<Option<(i64, i64)>>,
    /// Snapshots and restores.
    pub backup: Backup,
    /// Bytes in the data directories.
    pub directories: Arc<DirectoryGauge>,
    /// What administration over HTTP counts.
    pub admin: AdminFigures,
    /// Long answers to four-letter words.
    pub listings: Listings,
    /// The client port that was bound, 0 for none.
    bound_port: AtomicU16,
    /// The client port with TLS that was bound, 0 for none.
    bound_secure_port: AtomicU16,
}

impl Shared {
    /// A server that does not serve yet; its tree is empty.
    pub fn new(
        config: ServerConfig,
        settings: Settings,
        accounts: Option<Accounts>,
        session_ids: SessionIds,
        words: FourLetterWords,
        tls: Option<Tls>,
        watch_seed: u64,
    ) -> Shared {
        // Connections of an earlier run stand in the log as origins; theirs are never used again.
        let first_connection = wall_ms().unsigned_abs() << 20 | 1;
        let local_sessions = config.has_local_sessions().then(MemberSessions::default);
        let directories = DirectoryGauge::new(config.data_dir.clone(), config.data_log_dir.clone());
        Shared {
            member: config.my_id,
            tree: RwLock::new(Tree::new()),
            watches: LockedWatches::new(watch_seed, settings.limits.watched_paths_max),
            registry: Registry::new(getrlimit(Resource::Nofile).current),
            inbox: Inbox::default(),
            session_ids,
            local_sessions,
            settings: Arc::new(settings),
            accounts,
            throttle: Throttle::new(config.throttle, watch_seed, 0),
            load: LoadMonitor::new(config.load),
            config,
            clock: Clock::start(),
            traffic: Traffic::default(),
            metrics: Metrics::default(),
            output: OutputBudget::default(),
            words,
            tls: tls.map(Arc::new),
            quorum_tls: None,
            served: watch::Sender::new(Served::Nobody),
            era: AtomicU64::new(0),
            with_barriers: AtomicBool::new(false),
            disk_full: AtomicBool::new(false),
            log_failing: AtomicBool::new(false),
            checkpoint_lost: AtomicBool::new(false),
            next_connection: AtomicU64::new(first_connection),
            first_connection,
            audit: None,
            peers: OnceLock::new(),
            ensemble: RwLock::default(),
            proposals: Proposals::default(),
            quota_refusals: QuotaRefusals::default(),
            last_checkpoint: Mutex::new(None),
            backup: Backup::default(),
            directories,
            admin: AdminFigures::default(),
            listings: Listings::default(),
            bound_port: AtomicU16::new(0),
            bound_secure_port: AtomicU16::new(0),
        }
    }

    /// An id for a new connection.
    pub fn next_connection(&self) -> ConnectionId {
        ConnectionId(self.next_connection.fetch_add(1, Ordering::Relaxed))
    }

    /// Whether a connection of this member is one of this run of the process.
    pub fn is_of_this_run(&self, connection: u64) -> bool {
        connection >= self.first_connection
    }

    /// The surroundings of a connection, with the tree locked by the caller.
    pub fn world<'a>(&'a self, tree: &'a Tree) -> World<'a> {
        self.world_at(tree, self.moment())
    }

    /// The time by both clocks.
    pub fn moment(&self) -> Moment {
        Moment {
            now_ms: self.clock.now_ms(),
            time_ms: wall_ms(),
        }
    }

    /// As [`Self::world`], at a moment that was taken before: one for a whole batch of entries.
    pub fn world_at<'a>(&'a self, tree: &'a Tree, moment: Moment) -> World<'a> {
        World {
            tree,
            watches: &self.watches,
            session_ids: &self.session_ids,
            local_sessions: self.local_sessions(),
            sasl: self.sasl_users(),
            service: self.service_of_sessions(),
            gates: self.throttle.gates(),
            growth: self.growth(),
            sync: self.sync_mode(),
            meter: &self.metrics.requests,
            now_ms: moment.now_ms,
            time_ms: moment.time_ms,
        }
    }

    fn local_sessions(&self) -> Option<&dyn LocalSessions> {
        let sessions = self.local_sessions.as_ref();
        sessions.map(|sessions| sessions as &dyn LocalSessions)
    }

    fn sasl_users(&self) -> Option<&dyn SaslUsers> {
        let accounts = self.accounts.as_ref();
        let open = accounts.filter(|accounts| accounts.is_open());
        open.map(|accounts| accounts as &dyn SaslUsers)
    }

    /// A session that cannot be written down is not opened; its client tries again.
    fn service_of_sessions(&self) -> ServiceMode {
        match self.service() {
            ServiceMode::Serving if self.is_log_failing() => ServiceMode::NotServing,
            service => service,
        }
    }

    fn sync_mode(&self) -> SyncMode {
        if self.with_barriers.load(Ordering::Relaxed) {
            SyncMode::Barrier
        } else {
            SyncMode::Marker
        }
    }

    /// Sets whether a `sync` needs a barrier.
    pub fn set_with_barriers(&self, with_barriers: bool) {
        self.with_barriers.store(with_barriers, Ordering::Relaxed);
    }

    /// Whether there are other members.
    pub fn has_others(&self) -> bool {
        self.with_barriers.load(Ordering::Relaxed)
    }

    /// The member's era. To be read while the tree is locked.
    pub fn era(&self) -> u64 {
        self.era.load(Ordering::Acquire)
    }

    /// A new era begins. To be called with the tree locked for writing.
    pub fn set_era(&self, era: u64) {
        self.era.store(era, Ordering::Release);
    }

    fn growth(&self) -> Growth {
        if self.disk_full.load(Ordering::Relaxed) || self.is_log_failing() {
            Growth::Refused
        } else {
            Growth::Allowed
        }
    }

    /// Sets whether the log writer waits for its store to work again.
    pub fn set_log_failing(&self, failing: bool) {
        self.log_failing.store(failing, Ordering::Relaxed);
    }

    /// Whether the log writer waits for its store to work again.
    pub fn is_log_failing(&self) -> bool {
        self.log_failing.load(Ordering::Relaxed)
    }

    /// Rows that were collected for a checkpoint may not be in the store.
    pub fn set_checkpoint_lost(&self) {
        self.checkpoint_lost.store(true, Ordering::Release);
    }

    /// Whether the next checkpoint has to be complete.
    pub fn is_checkpoint_lost(&self) -> bool {
        self.checkpoint_lost.load(Ordering::Acquire)
    }

    /// Whether the next checkpoint has to be complete; from now on it is assumed to be under way.
    pub fn take_checkpoint_lost(&self) -> bool {
        self.checkpoint_lost.swap(false, Ordering::AcqRel)
    }

    /// What a restart would begin from, if there is anything: the zxid, and since when, in seconds since 1970.
    pub fn last_checkpoint(&self) -> Option<(i64, i64)> {
        *self.last_checkpoint.lock()
    }

    /// A checkpoint of this zxid is durable now.
    pub fn set_last_checkpoint(&self, zxid: i64) {
        *self.last_checkpoint.lock() = Some((zxid, wall_ms() / 1000));
    }

    /// Who is served, as clients see it.
    pub fn service(&self) -> ServiceMode {
        self.served().mode()
    }

    /// Who is served.
    pub fn served(&self) -> Served {
        *self.served.borrow()
    }

    /// Sets who is served; gives who was before. To be called with the tree locked for writing when
    /// somebody is no longer served.
    pub fn set_served(&self, served: Served) -> Served {
        self.served.send_replace(served)
    }

    /// Waits until there is a quorum, so that all clients are served, or none by choice.
    pub async fn wait_until_serving(&self) {
        let mut served = self.served.subscribe();
        // The sender lives as long as `self`, so the wait cannot fail.
        let _ = served.wait_for(|served| served.has_quorum()).await;
    }

    /// Sets whether the disk has no room for growth; true if that is news.
    pub fn set_disk_full(&self, full: bool) -> bool {
        self.disk_full.swap(full, Ordering::Relaxed) != full
    }

    /// Whether the disk has no room for growth.
    pub fn is_disk_full(&self) -> bool {
        self.disk_full.load(Ordering::Relaxed)
    }

    /// These are the connections to the other members from now on; whoever started them keeps them.
    pub fn set_peers(&self, peers: &Arc<Peers>) {
        self.peers.get_or_init(|| Arc::downgrade(peers));
    }

    /// The connections to the other members, if there are any.
    pub fn peers(&self) -> Option<Arc<Peers>> {
        self.peers.get()?.upgrade()
    }

    /// The client port, once it is bound.
    pub fn bound_port(&self) -> Option<u16> {
        port(&self.bound_port)
    }

    /// The client port with TLS, once it is bound.
    pub fn bound_secure_port(&self) -> Option<u16> {
        port(&self.bound_secure_port)
    }

    /// Tells which client ports were bound.
    pub fn set_bound_ports(&self, client: Option<u16>, secure: Option<u16>) {
        self.bound_port
            .store(client.unwrap_or(0), Ordering::Relaxed);
        self.bound_secure_port
            .store(secure.unwrap_or(0), Ordering::Relaxed);
    }
}

fn port(bound: &AtomicU16) -> Option<u16> {
    match bound.load(Ordering::Relaxed) {
        0 => None,
        port => Some(port),
    }
}
