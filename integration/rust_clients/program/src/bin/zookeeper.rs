//! Uses the crate `zookeeper` where its own tests leave off: access lists, watches and recipes while a leader is lost.

use std::sync::mpsc::{channel, Receiver};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use programs::{equal, fail_over, holds, hosts, report, Outcome, PATIENCE};
use zookeeper::recipes::leader::LeaderLatch;
use zookeeper::{
    Acl, CreateMode, WatchedEvent, WatchedEventType, ZkError, ZkResult, ZooKeeper, ZooKeeperExt,
};

fn connect() -> ZkResult<Arc<ZooKeeper>> {
    ZooKeeper::connect(&hosts(), Duration::from_secs(30), |_| {}).map(Arc::new)
}

fn insist<T>(operation: impl Fn() -> ZkResult<T>) -> ZkResult<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match operation() {
            Err(ZkError::ConnectionLoss | ZkError::OperationTimeout)
                if Instant::now() < deadline =>
            {
                sleep(Duration::from_millis(50))
            }
            result => return result,
        }
    }
}

fn next(events: &Receiver<WatchedEvent>) -> Result<WatchedEventType, programs::Failure> {
    Ok(events.recv_timeout(PATIENCE)?.event_type)
}

fn modes() -> Outcome {
    let client = connect()?;
    for (path, mode) in [
        ("/modes", CreateMode::Persistent),
        ("/modes/e", CreateMode::Ephemeral),
        ("/modes/s-", CreateMode::PersistentSequential),
        ("/modes/es-", CreateMode::EphemeralSequential),
        ("/modes/c", CreateMode::Container),
    ] {
        client.create(path, vec![1], Acl::open_unsafe().clone(), mode)?;
    }
    let mut children = client.get_children("/modes", false)?;
    children.sort();
    equal(children, ["c", "e", "es-0000000002", "s-0000000001"])?;
    equal(client.delete("/modes", None), Err(ZkError::NotEmpty))?;
    equal(
        client.set_data("/modes", vec![2], Some(4)).map(|_| ()),
        Err(ZkError::BadVersion),
    )?;
    equal(client.set_data("/modes", vec![2], Some(0))?.version, 1)?;
    client.delete_recursive("/modes")?;
    equal(client.exists("/modes", false)?.map(|_| ()), None)
}

fn access_lists() -> Outcome {
    let (owner, stranger) = (connect()?, connect()?);
    owner.add_auth("digest", b"ann:secret".to_vec())?;
    owner.create(
        "/acl",
        vec![1],
        Acl::creator_all().clone(),
        CreateMode::Ephemeral,
    )?;
    let (acl, _) = owner.get_acl("/acl")?;
    holds(
        acl.len() == 1 && acl[0].scheme == "digest" && acl[0].id.starts_with("ann:"),
        format!("{acl:?}"),
    )?;
    stranger.create(
        "/acl-barrier",
        vec![],
        Acl::open_unsafe().clone(),
        CreateMode::Ephemeral,
    )?;
    equal(
        stranger.get_data("/acl", false).map(|_| ()),
        Err(ZkError::NoAuth),
    )?;
    owner.set_acl("/acl", Acl::open_unsafe().clone(), Some(0))?;
    stranger.set_data("/acl-barrier", vec![], None)?;
    stranger.get_data("/acl", false)?;
    Ok(())
}

fn failover() -> Outcome {
    let client = connect()?;
    client.ensure_path("/failover")?;
    let path = client.create(
        "/failover/e-",
        vec![],
        Acl::open_unsafe().clone(),
        CreateMode::EphemeralSequential,
    )?;
    let latch = LeaderLatch::new(client.clone(), "one".to_owned(), "/latch".to_owned());
    latch.start()?;
    holds(latch.has_leadership(), "alone, and no leader")?;
    fail_over()?;
    holds(
        insist(|| client.exists(&path, false))?.is_some(),
        "the ephemeral is gone",
    )?;
    // It does not register its watches again on a new connection: this one is of the new connection.
    let (sender, events) = channel();
    insist(|| {
        let sender = sender.clone();
        client.get_data_w("/failover", move |event| {
            sender.send(event).expect("a receiver")
        })
    })?;
    insist(|| client.set_data("/failover", vec![1], None))?;
    equal(next(&events)?, WatchedEventType::NodeDataChanged)?;
    let deadline = Instant::now() + PATIENCE;
    while !latch.has_leadership() && Instant::now() < deadline {
        sleep(Duration::from_millis(50));
    }
    holds(latch.has_leadership(), "it does not lead again")
}

fn step(name: &str, run: fn() -> Outcome) {
    let began = Instant::now();
    report(name, began, run());
}

fn main() {
    step("create, set, delete: modes, versions, refusals", modes);
    step(
        "access lists: digest, and an unproven identity",
        access_lists,
    );
    step(
        "failover: the session, its ephemeral and its latch live on, and watches can be set",
        failover,
    );
    println!("end");
    // Clients of this crate leave threads behind that nothing ends.
    std::process::exit(0);
}
