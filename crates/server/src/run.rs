//! From a configuration to a running server, and to its clean end.

use std::io::{self, Write as _};
use std::net::TcpListener as QuorumListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quenda_consensus::{Config as RaftConfig, Consensus, Membership, Recovered};
use quenda_frontend::{CloseReason, Limits, SessionIds, Settings};
use quenda_node::{Founding, Member, PeerState, Setup};
use quenda_storage::{OpenOptions, RocksStore, Store, load_tree};
use quenda_tree::Tree;
use quenda_tree::ensemble::{Ensemble, Server as EnsembleServer};
use tokio::net::TcpListener;
use tokio::runtime::Handle as Runtime;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{error, info, warn};

use crate::admin;
use crate::audit::Audit;
use crate::checkpointer::Checkpointer;
use crate::clock::wall_ms;
use crate::config::{AuditSettings, ServerConfig};
use crate::connection_task::Quarters;
use crate::core::{Core, Parts};
use crate::founding::find_start;
use crate::four_letter::{Environment, FourLetterWords, Whitelist, version};
use crate::image_store::ImageStore;
use crate::limits::{CLOSE_PATIENCE, FINISH_PATIENCE};
use crate::listener::{Acceptor, Listeners};
use crate::load::{self, LoadMonitor};
use crate::local_sessions::reserve_ids;
use crate::log_writer::LogWriter;
use crate::member_files::MemberFiles;
use crate::metrics;
use crate::neighbours::{InboxEvents, Neighbours};
use crate::peers::{self, Facts, Identity, Peers, SystemResolver, servers_hash};
use crate::ports::{open_admin_port, open_metrics_ports, open_ports, open_quorum_port};
use crate::registry::Door;
use crate::sasl::{self, Accounts};
use crate::serve_error::ServeError;
use crate::shared::Shared;
use crate::tls::{self, Tls};

/// When this version was released, in seconds since 1970. `srvr` shows it: clients parse a date there.
const RELEASED_S: i64 = 1_795_910_400;

/// Looks at the files that a configuration names, as a start would: certificates, keys and who is trusted. Nothing is
/// opened, made or changed. All that is wrong is told: the server would not start.
pub fn check_files(config: &ServerConfig) -> Vec<ServeError> {
    let listeners = [
        config.tls.as_ref(),
        config.quorum_tls.as_ref(),
        config.admin.tls.as_ref(),
        config.metrics.tls(),
    ];
    let loaded = listeners.into_iter().flatten().map(Tls::load);
    let mut wrong: Vec<ServeError> = loaded.filter_map(|tls| Some(tls.err()?.into())).collect();
    let Some(audit) = &config.audit else {
        return wrong;
    };
    let parent = audit
        .path
        .parent()
        .filter(|parent| *parent != config.data_dir);
    if let Some(Err(cause)) = parent.map(std::fs::metadata) {
        wrong.push(ServeError::Audit {
            path: audit.path.clone(),
            cause,
        });
    }
    wrong
}

/// Serves until SIGTERM or SIGINT. Sessions survive the end.
///
/// # Errors
/// The server cannot start, or must not go on.
pub fn serve(config: ServerConfig) -> Result<(), ServeError> {
    raise_file_limit();
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .thread_name("quenda-client")
        .enable_all()
        .build()?;
    // Where connections are until they begin to speak the protocol: accepting, handshakes and four-letter words.
    let doors = tokio::runtime::Builder::new_multi_thread()
        .worker_threads((workers / 2).max(1))
        .thread_name("quenda-door")
        .enable_all()
        .build()?;
    // Before the store: a server that cannot listen must not touch it.
    let listeners = runtime.block_on(open_ports(&config))?;
    let quorum = open_quorum_port(&config)?;
    let admin_port = open_admin_port(&config)?;
    let metrics_ports = open_metrics_ports(&config)?;
    // Before the store, too: files for TLS that are not usable must not cost a touch of it.
    let admin_tls = admin::load_tls(&config.admin)?;
    let metrics_tls = metrics::load_tls(&config.metrics)?;
    let shared = Server::share(config, &listeners)?;
    // It answers already while the store is opened, which may take a while.
    let start_admin = |listener| admin::start(&shared, listener, admin_tls);
    let admin = admin_port.map(start_admin).transpose()?;
    let metrics = metrics::start(metrics_ports, &shared, metrics_tls)?;
    let server = Server::start(shared, quorum, runtime.handle())?;
    let serving = server.run(listeners, doors.handle(), stop_signal());
    let result = runtime.block_on(serving);
    drop(admin);
    drop(metrics);
    // Not to wait for a listing that still looks at a disk.
    doors.shutdown_background();
    runtime.shutdown_background();
    result
}

/// The threads of a server that was started.
pub(crate) struct Server {
    shared: Arc<Shared>,
    core: std::thread::JoinHandle<()>,
    /// Cancelled when the core thread has ended, for whatever reason.
    core_ended: CancellationToken,
    failure: Arc<parking_lot::Mutex<Option<ServeError>>>,
    /// The connections to the other members, if there are any.
    peers: Option<Arc<Peers>>,
}

/// A store that is open, and what it holds.
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) recovered: Recovered,
    pub(crate) tree: Tree,
    /// How long reading the log took.
    pub(crate) log_read: Duration,
    /// How long reading the state took.
    pub(crate) state_read: Duration,
}

impl Opened {
    fn open(config: &ServerConfig, start: Recovered) -> Result<Opened, ServeError> {
        let started = std::time::Instant::now();
        let (store, recovered) = RocksStore::open(open_options(config, start))?;
        let log_read = started.elapsed();
        if !config.storage.force_sync {
            store.leave_syncs_to_the_system();
        }
        remove_markers(config);
        let tree = load_tree(&store).map_err(ServeError::Load)?;
        info!(
            znodes = tree.counts().znodes,
            sessions = tree.counts().sessions,
            log_entries = recovered.entries.len(),
            millis = started.elapsed().as_millis() as u64,
            "the store is open"
        );
        Ok(Opened {
            store: Arc::new(store),
            recovered,
            tree,
            log_read,
            state_read: started.elapsed() - log_read,
        })
    }

    /// A member that has others must be able to reach them: without them it would wait for ever.
    fn demand_to_be_alone(&self, config: &ServerConfig) -> Result<(), ServeError> {
        let membership = &self.recovered.membership;
        if membership.voters == [config.my_id] && membership.outgoing_voters.is_empty() {
            return Ok(());
        }
        Err(ServeError::Members {
            directory: config.data_dir.clone(),
            members: membership.members().len(),
        })
    }
}

/// They stand for one start.
fn remove_markers(config: &ServerConfig) {
    for marker in &config.storage.markers {
        if let Err(error) = std::fs::remove_file(marker) {
            warn!(file = %marker.display(), %error, "the marker of a first start cannot be removed");
        }
    }
}

fn open_options(config: &ServerConfig, start: Recovered) -> OpenOptions {
    OpenOptions {
        directory: config.data_dir.clone(),
        log_directory: config.data_log_dir.clone(),
        member: config.my_id,
        start,
    }
}

impl Server {
    fn start(
        shared: Arc<Shared>,
        quorum: Vec<QuorumListener>,
        runtime: &tokio::runtime::Handle,
    ) -> Result<Server, ServeError> {
        let server = Server::start_shared(Arc::clone(&shared), quorum, runtime);
        if let Some(audit) = &shared.audit {
            match &server {
                Ok(_) => audit.server_started(),
                Err(_) => {
                    audit.server_failed();
                    audit.stop();
                }
            }
        }
        server
    }

    fn start_shared(
        shared: Arc<Shared>,
        quorum: Vec<QuorumListener>,
        runtime: &tokio::runtime::Handle,
    ) -> Result<Server, ServeError> {
        let config = &shared.config;
        let alone = Recovered::bootstrap([config.my_id], []);
        if config.ensemble.is_empty() {
            let opened = Opened::open(config, alone)?;
            opened.demand_to_be_alone(config)?;
            return Server::spawn(shared, Some(opened), Neighbours::none());
        }
        // A store that is there says itself what to start from.
        let is_there = RocksStore::exists(&open_options(config, alone.clone()))?;
        let opened = is_there.then(|| Opened::open(config, alone)).transpose()?;
        let neighbours = link(&shared, opened.as_ref(), quorum, runtime)?;
        Server::spawn(shared, opened, neighbours)
    }

    /// Starts a cluster of one on a store that is open.
    #[cfg(test)]
    pub(crate) fn start_on(
        opened: Opened,
        config: ServerConfig,
        listeners: &Listeners,
    ) -> Result<Server, ServeError> {
        let shared = Server::share(config, listeners)?;
        Server::spawn(shared, Some(opened), Neighbours::none())
    }

    fn share(config: ServerConfig, listeners: &Listeners) -> Result<Arc<Shared>, ServeError> {
        let shared = Arc::new(new_shared(config)?);
        let port = |listener: &Option<TcpListener>| {
            let address = listener.as_ref()?.local_addr().ok()?;
            Some(address.port())
        };
        shared.set_bound_ports(port(&listeners.client), port(&listeners.secure));
        Ok(shared)
    }

    fn spawn(
        shared: Arc<Shared>,
        opened: Option<Opened>,
        neighbours: Neighbours,
    ) -> Result<Server, ServeError> {
        let core_ended = CancellationToken::new();
        let failure = Arc::new(parking_lot::Mutex::new(None));
        let ended = core_ended.clone().drop_guard();
        let report = Arc::clone(&failure);
        let theirs = Arc::clone(&shared);
        let peers = neighbours.peers();
        let core = crate::thread::spawn("quenda-core", move || {
            let _ended = ended;
            if let Err(error) = run_core(&theirs, opened, neighbours) {
                *report.lock() = Some(error);
            }
        })?;
        Ok(Server {
            shared,
            core,
            core_ended,
            failure,
            peers,
        })
    }

    /// Serves until `stop` says what the reason is, or the core thread ends.
    pub(crate) async fn run(
        self,
        listeners: Listeners,
        doors: &Runtime,
        stop: impl Future<Output = io::Result<&'static str>>,
    ) -> Result<(), ServeError> {
        let tasks = TaskTracker::new();
        let closing = CancellationToken::new();
        self.accept_clients(listeners, doors, &tasks, &closing)?;
        tokio::spawn(sasl::watch(Arc::clone(&self.shared), closing.clone()));
        tokio::spawn(metrics::keep(Arc::clone(&self.shared), closing.clone()));
        tokio::spawn(load::watch(Arc::clone(&self.shared), closing.clone()));
        tokio::spawn({
            let shared = Arc::clone(&self.shared);
            async move {
                shared.wait_until_serving().await;
                announce(&shared);
            }
        });
        tokio::select! {
            signal = stop => info!(signal = signal?, "stopping; sessions stay alive"),
            () = self.core_ended.cancelled() => error!("the core thread has ended"),
        }
        if let Some(audit) = &self.shared.audit {
            audit.server_stops();
        }
        closing.cancel();
        self.shared.inbox.stop();
        // The final checkpoint included. A disk that does not answer at all would hold the core for ever.
        let patience = self.shared.config.throttle.stop_patience + FINISH_PATIENCE;
        let ended = tokio::time::timeout(patience, self.core_ended.cancelled()).await;
        self.close_connections(tasks).await;
        if let Some(peers) = &self.peers {
            peers.stop().await;
        }
        if let Some(audit) = &self.shared.audit {
            audit.stop();
        }
        if ended.is_err() {
            return Err(ServeError::Stuck);
        }
        if self.core.join().is_err() {
            error!("the core thread had panicked");
        }
        match self.failure.lock().take() {
            Some(error) => Err(error),
            None => {
                info!("stopped");
                Ok(())
            }
        }
    }

    /// Opens the doors.
    fn accept_clients(
        &self,
        listeners: Listeners,
        doors: &Runtime,
        tasks: &TaskTracker,
        closing: &CancellationToken,
    ) -> io::Result<()> {
        let ports = [
            (Door::Client, listeners.client),
            (Door::Secure, listeners.secure),
        ];
        let quarters = Quarters {
            tasks: tasks.clone(),
            runtime: Runtime::current(),
        };
        for (door, listener) in ports {
            let Some(listener) = listener else {
                continue;
            };
            let listener = listener.into_std()?;
            let _there = doors.enter();
            let listener = TcpListener::from_std(listener)?;
            let acceptor = Acceptor {
                door,
                shared: Arc::clone(&self.shared),
                quarters: quarters.clone(),
                stop: closing.clone(),
            };
            doors.spawn(acceptor.run(listener));
        }
        for (of, tls) in [
            ("clients", &self.shared.tls),
            ("members", &self.shared.quorum_tls),
        ] {
            if let Some(tls) = tls.as_ref().filter(|tls| tls.settings.reload) {
                tokio::spawn(tls::watch(of, Arc::clone(tls), closing.clone()));
            }
        }
        Ok(())
    }

    /// What was durable before the stop is answered; then every socket is closed.
    async fn close_connections(&self, tasks: TaskTracker) {
        for handle in self.shared.registry.all() {
            handle.close(CloseReason::Member);
        }
        tasks.close();
        if tokio::time::timeout(CLOSE_PATIENCE * 2, tasks.wait())
            .await
            .is_err()
        {
            warn!("some clients did not take their last replies");
        }
    }
}

/// Who plays which part: what members that found a cluster together must agree on. Each may know the others
/// under other names.
fn parts_played(servers: &[EnsembleServer]) -> String {
    let part = |server: &EnsembleServer| match server.observer {
        true => format!("{}:observer,", server.id),
        false => format!("{}:participant,", server.id),
    };
    servers.iter().map(part).collect()
}

/// Starts the transport to the other members.
fn link(
    shared: &Arc<Shared>,
    opened: Option<&Opened>,
    quorum: Vec<QuorumListener>,
    runtime: &tokio::runtime::Handle,
) -> Result<Neighbours, ServeError> {
    let config = &shared.config;
    let cluster = opened.and_then(|opened| opened.tree.cluster());
    let state = match opened {
        None => PeerState::Fresh,
        // The cluster's id may still be in the log alone. Who has entries must not be taken for a founder: with
        // a member whose disk is empty it would found a second ensemble, without what the first has acknowledged.
        Some(opened) if cluster.is_some() || opened.recovered.has_history() => PeerState::Member,
        Some(opened) if opened.recovered.membership == Membership::default() => PeerState::Joining,
        Some(_) => PeerState::Founding,
    };
    let facts = Facts {
        cluster: cluster.unwrap_or(0),
        state,
    };
    let incarnation = wall_ms().unsigned_abs();
    let servers = servers_hash(&parts_played(&config.ensemble));
    let identity = Arc::new(Identity::new(config.my_id, incarnation, servers, facts));
    let images = Arc::new(ImageStore::default());
    let setup = peers::Setup {
        identity: Arc::clone(&identity),
        listeners: quorum,
        events: Arc::new(InboxEvents(Arc::clone(shared))),
        images: Arc::clone(&images) as Arc<dyn peers::Images>,
        resolver: Arc::new(SystemResolver),
        links: config.links.clone(),
        tls: shared.quorum_tls.clone(),
    };
    let peers = Arc::new(Peers::start(setup, runtime)?);
    shared.set_peers(&peers);
    let files = config.written_file.as_deref();
    let files = files.map(MemberFiles::start).transpose()?;
    Ok(Neighbours::new(config, peers, images, identity, files))
}

/// The core thread from its first step: what to start from, the store, the member.
fn run_core(
    shared: &Arc<Shared>,
    opened: Option<Opened>,
    neighbours: Neighbours,
) -> Result<(), ServeError> {
    let opened = match opened {
        Some(opened) => opened,
        None => match find_start(shared, &neighbours) {
            Some(start) => Opened::open(&shared.config, start)?,
            None => return Ok(()),
        },
    };
    let Opened {
        store,
        recovered,
        tree,
        log_read,
        state_read,
    } = opened;
    let startup = &shared.metrics.startup;
    startup.loaded(log_read, recovered.entries.len(), state_read);
    neighbours.open_images(&store);
    let config = &shared.config;
    let consensus = Consensus::new(RaftConfig::new(config.my_id), recovered)?;
    let setup = Setup {
        consensus,
        founding: founding(config)?,
        incarnation: wall_ms().unsigned_abs(),
        now_ms: shared.clock.now_ms(),
    };
    let member = Member::new(setup, &tree);
    if tree.applied_index() > 0 {
        shared.set_last_checkpoint(tree.last_zxid());
    }
    shared.backup.open(Arc::clone(&store), tree.applied_index());
    *shared.tree.write() = tree;
    let log = LogWriter::start(Arc::clone(&store), Arc::clone(shared))?;
    let checkpointer = Checkpointer::start(Arc::clone(&store), Arc::clone(shared))?;
    let parts = Parts {
        member,
        store: Arc::clone(&store),
        log,
        checkpointer,
        neighbours,
    };
    let ended = Core::new(Arc::clone(shared), parts).run();
    // Snapshots and images that are under way hold it as well.
    store.close();
    Ok(ended?)
}

/// A server that serves nobody yet, with an empty tree.
fn new_shared(config: ServerConfig) -> Result<Shared, ServeError> {
    let tls = config.tls.as_ref().map(Tls::load).transpose()?;
    let session_ids = SessionIds::new(config.my_id, wall_ms())?;
    if config.has_local_sessions() {
        reserve_ids(&config.data_dir, &session_ids).map_err(|cause| ServeError::LocalSessions {
            directory: config.data_dir.clone(),
            cause,
        })?;
    }
    let settings = Settings {
        session_timeout_min_ms: config.min_session_timeout_ms as i32,
        session_timeout_max_ms: config.max_session_timeout_ms as i32,
        super_digest: config.super_digest.clone(),
        digest_algorithm: config.digest_algorithm,
        digest_enabled: config.digest_enabled,
        x509_enabled: config.x509_enabled,
        x509_super_user: config.x509_super_user.clone(),
        sasl_enabled: config.sasl.enabled,
        sasl_super_users: config.sasl.super_users.clone(),
        sasl_any_user: config.sasl.any_user.clone(),
        allow_sasl_failed_clients: config.sasl.allow_failed_clients,
        ensemble_names: config.ensemble_names.clone(),
        enforce_auth: config.enforce_auth_schemes.clone(),
        skip_acl: config.skip_acl,
        eager_acl_check: config.eager_acl_check,
        enforce_quota: config.enforce_quota,
        ttl_enabled: config.ttl_enabled,
        reconfig_enabled: config.reconfig_enabled,
        standalone_enabled: config.standalone_enabled,
        linearizable_reads: config.linearizable_reads,
        local_sessions_upgrading: config.local_sessions_upgrading,
        throttling: config.throttle.of_connections(),
        observation: LoadMonitor::observation(&config.load),
        limits: Limits {
            frame_max: config.max_frame,
            ..Limits::default()
        },
    };
    let whitelist = Whitelist::from_setting(
        config.four_letter_whitelist.as_deref(),
        config.read_only_mode,
    );
    let text = version(env!("CARGO_PKG_VERSION"), None, RELEASED_S);
    let words = FourLetterWords::new(whitelist, text, Environment::of_this_process());
    let mut seed = [0; 8];
    entropy(&mut seed)?;
    let seed = u64::from_le_bytes(seed);
    let accounts = accounts(&config)?;
    let mut shared = Shared::new(config, settings, accounts, session_ids, words, tls, seed);
    let quorum_tls = shared.config.quorum_tls.as_ref();
    shared.quorum_tls = quorum_tls.map(Tls::load).transpose()?.map(Arc::new);
    shared.audit = open_audit(&shared.config)?;
    Ok(shared)
}

fn open_audit(config: &ServerConfig) -> Result<Option<Audit>, ServeError> {
    let open = |settings: &AuditSettings| {
        // Beside the data it may be the first file there.
        let made = match settings.path.parent() {
            Some(parent) if parent == config.data_dir => std::fs::create_dir_all(parent),
            _ => Ok(()),
        };
        let started = made.and_then(|()| Audit::start(settings));
        started.map_err(|cause| ServeError::Audit {
            path: settings.path.clone(),
            cause,
        })
    };
    config.audit.as_ref().map(open).transpose()
}

fn accounts(config: &ServerConfig) -> Result<Option<Accounts>, ServeError> {
    let sasl = &config.sasl;
    let load = |source| Accounts::load(source, sasl.super_password.clone());
    Ok(sasl.users.clone().map(load).transpose()?)
}

fn founding(config: &ServerConfig) -> Result<Founding, ServeError> {
    let mut cluster = [0; 8];
    let mut secret = [0; 32];
    entropy(&mut cluster)?;
    entropy(&mut secret)?;
    Ok(Founding {
        cluster: u64::from_le_bytes(cluster),
        secret,
        config: Ensemble::new(0, config.ensemble.clone()).lines(),
    })
}

fn entropy(bytes: &mut [u8]) -> Result<(), ServeError> {
    getrandom::fill(bytes).map_err(|error| ServeError::System(io::Error::other(error.to_string())))
}

/// The one line that says where the server listens and where its data is. It goes to standard output, for
/// scripts that wait for it.
fn announce(shared: &Shared) {
    let config = &shared.config;
    let place = |address: Option<&str>, port| format!("{}:{port}", address.unwrap_or("*"));
    let client = shared.bound_port();
    let client = client.map(|port| place(config.client_address.as_deref(), port));
    let secure = shared.bound_secure_port().zip(config.tls.as_ref());
    let secure = secure.map(|(port, tls)| place(tls.address.as_deref(), port));
    let unified = config.tls.as_ref().is_some_and(|tls| tls.unified);
    let port = match (client, secure) {
        (None, None) => "no port".to_owned(),
        (Some(client), None) if unified => format!("{client} with and without TLS"),
        (Some(client), Some(secure)) if unified => {
            format!("{client} with and without TLS, with TLS alone on {secure}")
        }
        (Some(client), None) => client,
        (None, Some(secure)) => format!("{secure} with TLS"),
        (Some(client), Some(secure)) => format!("{client}, with TLS on {secure}"),
    };
    let data = std::path::absolute(&config.data_dir).unwrap_or_else(|_| config.data_dir.clone());
    let log: Option<PathBuf> = config.data_log_dir.clone();
    let log = log.map_or(String::new(), |dir| format!(", log in {}", dir.display()));
    let line = format!(
        "quenda {} listens on {port}, data in {}{log}",
        env!("CARGO_PKG_VERSION"),
        data.display()
    );
    let mut out = io::stdout();
    if let Err(error) = writeln!(out, "{line}").and_then(|()| out.flush()) {
        info!(%error, "{line} (standard output takes nothing)");
    }
}

async fn stop_signal() -> io::Result<&'static str> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => Ok("SIGTERM"),
        _ = interrupt.recv() => Ok("SIGINT"),
    }
}

/// Lets the process have as many descriptors as the system allows it: one connection, one descriptor.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    static RAISED: AtomicBool = AtomicBool::new(false);
    if RAISED.swap(true, Ordering::Relaxed) {
        return;
    }
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        warn!(%error, "the limit of open files stays as it is");
    }
}

#[cfg(test)]
mod tests;
