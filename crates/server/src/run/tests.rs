//! The whole server in one process on a simulated disk, with the real client over the loopback device.

use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use bytes::Bytes;
use quenda_client::{Client, ConnectOptions, Error, Events, Session, open_acl};
use quenda_consensus::{HardState, LogBatch};
use quenda_proto::event::EventType;
use quenda_proto::mode::CreateMode;
use quenda_proto::records::{GetDataRequest, GetDataResponse, SetDataRequest};
use quenda_proto::{ErrorCode, Op};
use quenda_storage::{
    Checkpoint, Fault, FaultyStore, ImageInfo, ImageReceiver, MemoryStore, Reopened, RowLook,
    RowVisitor, Space, StoreError,
};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::*;
use crate::config::{Environment as JavaEnvironment, Overrides};
use crate::listener;

mod backups;
mod leader_serves;
mod roaming;

/// For what has to happen; reached only when it does not.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server that runs in this process.
struct Running {
    /// Its data directory, which only backups use: the store is elsewhere.
    folder: tempfile::TempDir,
    address: String,
    shared: Arc<Shared>,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<Result<(), ServeError>>,
}

impl Running {
    async fn start(store: Arc<dyn Store>) -> Running {
        Running::start_at(store, 0).await
    }

    /// On a port; 0 lets the system choose.
    async fn start_at(store: Arc<dyn Store>, port: u16) -> Running {
        Running::start_as(store, port, |_| {}).await
    }

    /// With a configuration that was changed by `adapt`.
    async fn start_as(
        store: Arc<dyn Store>,
        port: u16,
        adapt: impl FnOnce(&mut ServerConfig),
    ) -> Running {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let overrides = Overrides {
            client_port: Some(0),
            client_address: Some("127.0.0.1".into()),
            data_dir: Some(folder.path().to_owned()),
            ..Overrides::default()
        };
        let (mut config, _) = ServerConfig::load(None, &JavaEnvironment::default(), &overrides)
            .expect("a configuration");
        adapt(&mut config);
        let listener = listener::bind(Some("127.0.0.1"), port, None)
            .await
            .expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let listeners = Listeners {
            client: Some(listener),
            secure: None,
        };
        let recovered = store.recover().expect("the log");
        let tree = load_tree(&*store).expect("the checkpoint");
        let opened = Opened {
            log_read: Duration::ZERO,
            state_read: Duration::ZERO,
            store,
            recovered,
            tree,
        };
        let server = Server::start_on(opened, config, &listeners).expect("the server starts");
        let shared = Arc::clone(&server.shared);
        let (stop, stopped) = oneshot::channel();
        let ended = tokio::spawn(async move {
            let stop = async {
                // A test that fails drops the sender.
                drop(stopped.await);
                Ok("the test")
            };
            server.run(listeners, &Runtime::current(), stop).await
        });
        shared.wait_until_serving().await;
        Running {
            folder,
            address,
            shared,
            stop,
            ended,
        }
    }

    async fn connect(&self) -> (Client, Events) {
        self.resume(None).await.expect("a session")
    }

    async fn resume(&self, session: Option<Session>) -> Result<(Client, Events), Error> {
        let options = ConnectOptions {
            resume: session,
            ..ConnectOptions::default()
        };
        Client::connect(&self.address, &options).await
    }

    async fn stop(self) {
        self.stop.send(()).expect("the server still runs");
        self.ended.await.expect("no panic").expect("a clean end");
    }
}

fn disk() -> Arc<FaultyStore> {
    Arc::new(FaultyStore::new(Recovered::bootstrap([1], [])))
}

async fn create(client: &Client, path: &str, mode: CreateMode) -> Result<String, Error> {
    client.create(path, Some(b"0"), &open_acl(), mode).await
}

async fn data(client: &Client, path: &str) -> Vec<u8> {
    let (data, _) = client.get_data(path, false).await.expect("the znode");
    data.expect("data").to_vec()
}

/// Repeats an attempt until it succeeds.
async fn eventually<T>(what: &str, mut attempt: impl AsyncFnMut() -> Result<T, Error>) -> T {
    let start = Instant::now();
    loop {
        match attempt().await {
            Ok(value) => return value,
            Err(error) => assert!(start.elapsed() < PATIENCE, "{what}: {error}"),
        }
        tokio::task::yield_now().await;
    }
}

fn set(path: &'static str, data: &'static [u8]) -> SetDataRequest<'static> {
    SetDataRequest {
        path: Some(path.into()),
        data: Some(data),
        version: -1,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_behind_writes_of_its_session_sees_the_last_of_them_and_no_later_one() {
    let server = Running::start(disk()).await;
    let (client, _events) = server.connect().await;
    create(&client, "/a", CreateMode::Persistent)
        .await
        .expect("created");
    let get = GetDataRequest {
        path: Some("/a".into()),
        watch: false,
    };
    let mut answers = Vec::new();
    for _ in 0..500 {
        drop(client.submit(Op::SetData, &set("/a", b"x")));
        answers.push(client.submit(Op::GetData, &get));
    }
    for (written, answer) in (1..).zip(answers) {
        let reply = answer.await.expect("data");
        let response: GetDataResponse<'_> = reply.record().expect("a record");
        assert_eq!(response.stat.version, written);
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_comes_once_and_names_the_write() {
    let server = Running::start(disk()).await;
    let (watcher, mut events) = server.connect().await;
    let (writer, _) = server.connect().await;
    assert_eq!(watcher.exists("/w", true).await.expect("a reply"), None);
    create(&writer, "/w", CreateMode::Ephemeral)
        .await
        .expect("created");
    let czxid = watcher.exists("/w", true).await.expect("a reply");
    let czxid = czxid.expect("the znode").czxid;
    let event = events.try_next().expect("the event precedes the reply");
    assert_eq!((event.kind, event.zxid), (EventType::NodeCreated, czxid));
    writer.close().await.expect("closed");
    let event = events.next().await.expect("an event");
    assert_eq!(event.kind, EventType::NodeDeleted);
    assert_eq!(watcher.exists("/w", false).await.expect("a reply"), None);
    assert_eq!(events.try_next(), None);
    assert_eq!(server.shared.watches.counts().watches(), 0);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_and_data_outlive_a_stop() {
    let disk = disk();
    let server = Running::start(disk.clone()).await;
    let (client, _events) = server.connect().await;
    let session = client.session();
    create(&client, "/e", CreateMode::Ephemeral)
        .await
        .expect("created");
    server.stop().await;
    assert_eq!(disk.unsynced(), 0, "a stop leaves nothing behind");

    let server = Running::start(disk.clone()).await;
    let (client, _events) = server.resume(Some(session)).await.expect("resumed");
    assert_eq!(client.session().id, session.id);
    client.set_data("/e", Some(b"1"), 0).await.expect("set");
    server.stop().await;
    disk.crash(0);

    let server = Running::start(disk).await;
    let (client, _events) = server.resume(Some(session)).await.expect("resumed");
    assert_eq!(data(&client, "/e").await, b"1");
    client.close().await.expect("closed");
    let (client, _events) = server.connect().await;
    assert_eq!(client.exists("/e", false).await.expect("a reply"), None);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_fails_closes_its_connection_and_the_server_recovers_by_itself() {
    for fault in [Fault::Lost, Fault::Torn, Fault::Kept] {
        let disk = disk();
        let server = Running::start(disk.clone()).await;
        let (client, _events) = server.connect().await;
        let session = client.session();
        create(&client, "/a", CreateMode::Persistent)
            .await
            .expect("created");
        let (idle, _idle_events) = server.connect().await;
        disk.fail_at(disk.writes(), fault);
        let lost = client.set_data("/a", Some(b"1"), 0).await;
        assert!(
            matches!(lost, Err(Error::ConnectionLost(_) | Error::Io(_))),
            "{fault:?}: {lost:?}"
        );
        // Who has nothing in flight is served all the while.
        assert!(!data(&idle, "/a").await.is_empty());
        let (client, _events) =
            eventually("resume", async || server.resume(Some(session)).await).await;
        let stat = eventually("set", async || client.set_data("/a", Some(b"2"), -1).await).await;
        assert!(
            stat.version == 1 || stat.version == 2,
            "{fault:?}: {stat:?}"
        );
        assert_eq!(data(&idle, "/a").await, b"2");
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_growth_and_nothing_else() {
    let disk = disk();
    let server = Running::start(disk.clone()).await;
    let (client, _events) = server.connect().await;
    create(&client, "/a", CreateMode::Persistent)
        .await
        .expect("created");
    disk.set_space(Space {
        free_bytes: 1 << 20,
        total_bytes: 1 << 40,
    });
    let start = Instant::now();
    let refused = loop {
        match client.set_data("/a", Some(b"1"), -1).await {
            Ok(_) => assert!(start.elapsed() < PATIENCE, "the full disk is not noticed"),
            Err(error) => break error.code(),
        }
    };
    assert_eq!(refused, Some(ErrorCode::SystemError.code()));
    let created = create(&client, "/b", CreateMode::Persistent).await;
    assert_eq!(
        created.expect_err("refused").code(),
        Some(ErrorCode::SystemError.code())
    );
    client.delete("/a", -1).await.expect("deleted");
    assert_eq!(client.exists("/a", false).await.expect("a reply"), None);
    disk.set_space(Space {
        free_bytes: 1 << 40,
        total_bytes: 1 << 40,
    });
    eventually("create", async || {
        create(&client, "/a", CreateMode::Persistent).await
    })
    .await;
    server.stop().await;
}

/// A disk in trouble of one kind or another.
struct Troubled {
    disk: MemoryStore,
    /// Appends fail, and what was confirmed before is gone.
    forgets: AtomicBool,
    /// Checkpoints that still have to fail.
    bad_checkpoints: AtomicUsize,
    /// Appends wait while this is set.
    stuck: AtomicBool,
}

impl Troubled {
    fn new() -> Arc<Troubled> {
        Arc::new(Troubled {
            stuck: AtomicBool::new(false),
            disk: MemoryStore::new(Recovered::bootstrap([1], [])),
            forgets: AtomicBool::new(false),
            bad_checkpoints: AtomicUsize::new(0),
        })
    }
}

impl Store for Troubled {
    fn append(&self, batches: &[LogBatch]) -> Result<(), StoreError> {
        while self.stuck.load(Ordering::Relaxed) {
            std::thread::park_timeout(Duration::from_millis(1));
        }
        match self.forgets.load(Ordering::Relaxed) {
            false => self.disk.append(batches),
            true => Err(StoreError::NeedsReopen),
        }
    }

    fn checkpoint(&self, checkpoint: &Checkpoint) -> Result<(), StoreError> {
        let count = |left: usize| left.checked_sub(1);
        let order = Ordering::Relaxed;
        match self.bad_checkpoints.fetch_update(order, order, count) {
            Ok(_) => Err(StoreError::Write("a bad sector".into())),
            Err(_) => self.disk.checkpoint(checkpoint),
        }
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.disk.sync()
    }

    fn compact_log(&self, through: u64) -> Result<(), StoreError> {
        self.disk.compact_log(through)
    }

    fn recover(&self) -> Result<Recovered, StoreError> {
        self.disk.recover()
    }

    fn scan(&self, visit: &mut RowVisitor<'_>) -> Result<(), StoreError> {
        self.disk.scan(visit)
    }

    fn view(&self, look: &mut RowLook<'_>) -> Result<(), StoreError> {
        self.disk.view(look)
    }

    fn reopen(&self) -> Result<Reopened, StoreError> {
        match self.forgets.load(Ordering::Relaxed) {
            false => self.disk.reopen(),
            true => Err(StoreError::LostEntries {
                found: 1,
                promised: 2,
            }),
        }
    }

    fn make_image(&self) -> Result<ImageInfo, StoreError> {
        self.disk.make_image()
    }

    fn read_image(
        &self,
        index: u64,
        file: u32,
        offset: u64,
        max: usize,
    ) -> Result<Bytes, StoreError> {
        self.disk.read_image(index, file, offset, max)
    }

    fn drop_images(&self, keep: Option<u64>) {
        self.disk.drop_images(keep);
    }

    fn receive_image(&self, manifest: &[u8]) -> Result<Box<dyn ImageReceiver>, StoreError> {
        self.disk.receive_image(manifest)
    }

    fn install_image(
        &self,
        index: u64,
        term: u64,
        hard_state: HardState,
    ) -> Result<(), StoreError> {
        self.disk.install_image(index, term, hard_state)
    }

    fn space(&self) -> io::Result<Space> {
        self.disk.space()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_lost_what_it_had_confirmed_ends_the_server() {
    let store = Troubled::new();
    let server = Running::start(store.clone()).await;
    let (client, _events) = server.connect().await;
    store.forgets.store(true, Ordering::Relaxed);
    let unanswered = create(&client, "/a", CreateMode::Persistent);
    let lost = tokio::time::timeout(PATIENCE, unanswered).await;
    assert!(matches!(lost, Ok(Err(_))), "{lost:?}");
    let end = tokio::time::timeout(PATIENCE, server.ended)
        .await
        .expect("the server ends by itself")
        .expect("no panic");
    assert!(
        matches!(end, Err(ServeError::Lost(StoreError::LostEntries { .. }))),
        "{end:?}"
    );
    drop(server.stop);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_failed_checkpoint_should_have_held_is_in_the_next_one() {
    let store = Troubled::new();
    store.bad_checkpoints.store(1, Ordering::Relaxed);
    let server = Running::start(store.clone()).await;
    let (client, _events) = server.connect().await;
    create(&client, "/a", CreateMode::Persistent)
        .await
        .expect("created");
    // Enough for a checkpoint before its time.
    let large = vec![7; 900 << 10];
    let start = Instant::now();
    while store.bad_checkpoints.load(Ordering::Relaxed) > 0 {
        assert!(start.elapsed() < PATIENCE, "no checkpoint is written");
        client.set_data("/a", Some(&large), -1).await.expect("set");
        let path = create(&client, "/a/b", CreateMode::PersistentSequential).await;
        let path = path.expect("created");
        client.set_data(&path, Some(&large), 0).await.expect("set");
    }
    create(&client, "/last", CreateMode::Persistent)
        .await
        .expect("created");
    let digest = server.shared.tree.read().digest();
    server.stop().await;
    let tree = load_tree(&*store).expect("the checkpoint is complete");
    assert!(tree.get("/a/b0000000000").is_some() && tree.get("/last").is_some());
    assert_eq!(tree.digest(), digest);
    assert_eq!(tree.recompute_digest(), digest);
    let recovered = store.recover().expect("the log");
    assert_eq!(recovered.applied, tree.applied_index());
}

/// `request_throttler.shutdownTimeout`.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_waits_for_a_stuck_disk_as_long_as_the_settings_say() {
    let store = Troubled::new();
    let brief = |config: &mut ServerConfig| {
        config.throttle.stop_patience = Duration::from_millis(100);
    };
    let server = Running::start_as(store.clone(), 0, brief).await;
    let (client, _events) = server.connect().await;
    store.stuck.store(true, Ordering::Relaxed);
    let unanswered = client.submit(Op::SetData, &set("/zookeeper", b"x"));
    let start = Instant::now();
    let waits = |member: &mut Member| member.status().persisted < member.status().last_index;
    while server.shared.inbox.ask(PATIENCE, waits) != Some(true) {
        assert!(start.elapsed() < PATIENCE, "the write does not arrive");
    }
    server.stop.send(()).expect("the server still runs");
    // The core answers until it waits no longer.
    let asked = || server.shared.inbox.ask(Duration::from_secs(1), |_| ());
    while asked().is_some() {
        assert!(
            start.elapsed() < Duration::from_secs(9),
            "the default is 10 s"
        );
    }
    store.stuck.store(false, Ordering::Relaxed);
    server.ended.await.expect("no panic").expect("a clean end");
    assert!(unanswered.await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_waits_for_what_is_on_its_way_to_the_disk_and_takes_nothing_more() {
    let store = Troubled::new();
    let server = Running::start(store.clone()).await;
    let (early, _early_events) = server.connect().await;
    let (late, _late_events) = server.connect().await;
    create(&early, "/n", CreateMode::Persistent)
        .await
        .expect("created");
    store.stuck.store(true, Ordering::Relaxed);
    let accepted = early.submit(Op::SetData, &set("/n", b"early"));
    let core = |question: fn(&mut Member) -> u64| {
        let answer = server.shared.inbox.ask(PATIENCE, question);
        answer.expect("the core answers")
    };
    let before = core(|member| member.status().persisted);
    let start = Instant::now();
    while core(|member| member.status().last_index) == before {
        assert!(start.elapsed() < PATIENCE, "the write does not arrive");
    }
    server.stop.send(()).expect("the server still runs");
    // Once nobody listens any more, the core has been told; what it answers then, it answers behind that.
    while tokio::net::TcpStream::connect(&server.address)
        .await
        .is_ok()
    {
        assert!(start.elapsed() < PATIENCE, "the server does not stop");
    }
    core(|member| member.status().last_index);
    let refused = late.submit(Op::SetData, &set("/n", b"late"));
    let waits = |one: &Arc<crate::registry::Handle>| one.connection.lock().queued() > 0;
    while !server.shared.registry.all().iter().all(waits) {
        assert!(start.elapsed() < PATIENCE, "the late write does not arrive");
        tokio::task::yield_now().await;
    }
    core(|member| member.status().last_index);
    store.stuck.store(false, Ordering::Relaxed);
    accepted.await.expect("what was accepted is answered");
    assert!(refused.await.is_err());
    server.ended.await.expect("no panic").expect("a clean end");
    let tree = load_tree(&*store).expect("the checkpoint");
    assert_eq!(
        tree.get("/n").expect("the znode").data(),
        Some(&b"early"[..])
    );
}
