//! Uses the crate `zookeeper-client` where its own tests have no failover: sessions, watches and locks while a leader is lost.

use std::time::{Duration, Instant};

use programs::{equal, fail_over, holds, hosts, step, Outcome, PATIENCE};
use zookeeper_client::{
    Acls, AddWatchMode, Client, CreateMode, CreateOptions, Error, EventType, LockOptions,
    LockPrefix, SessionState,
};

const OPEN: &CreateOptions<'static> = &CreateMode::Persistent.with_acls(Acls::anyone_all());
const EPHEMERAL: &CreateOptions<'static> = &CreateMode::Ephemeral.with_acls(Acls::anyone_all());

async fn connect() -> Result<Client, Error> {
    Client::connector()
        .with_session_timeout(Duration::from_secs(30))
        .connect(&hosts())
        .await
}

/// Whether the fate of an operation is unknown since its connection is lost.
fn lost(error: &Error) -> bool {
    *error == Error::ConnectionLoss || error.to_string().contains("Connection reset")
}

/// Repeats an operation as long as its connection is lost.
async fn insist<T, F: std::future::Future<Output = Result<T, Error>>>(
    operation: impl Fn() -> F,
) -> Result<T, Error> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match operation().await {
            Err(error) if lost(&error) && Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(50)).await
            }
            result => return result,
        }
    }
}

async fn take_over() -> Outcome {
    let first = Client::connector()
        .with_session_timeout(Duration::from_secs(30))
        .with_detached()
        .connect(&hosts())
        .await?;
    let id = first.session_id();
    first.create("/taken", b"", EPHEMERAL).await?;
    let session = first.into_session();
    let second = Client::connector()
        .with_session(session)
        .connect(&hosts())
        .await?;
    equal(second.session_id(), id)?;
    let stat = second
        .check_stat("/taken")
        .await?
        .ok_or("the ephemeral is gone")?;
    equal(format!("0x{:x}", stat.ephemeral_owner), id.to_string())
}

async fn failover() -> Outcome {
    let mut clients = Vec::new();
    let first = connect().await?;
    first.mkdir("/failover/members", OPEN).await?;
    for number in 0..5 {
        let client = connect().await?;
        client.sync("/").await?;
        let path = format!("/failover/members/{number}");
        client.create(&path, b"", EPHEMERAL).await?;
        let (_, _, once) = client.get_and_watch_data("/failover").await?;
        let always = client
            .watch("/failover", AddWatchMode::PersistentRecursive)
            .await?;
        clients.push((client, path, once, always));
    }
    let sessions: Vec<_> = clients
        .iter()
        .map(|(client, ..)| client.session_id())
        .collect();
    let holder = first.clone();
    let options = LockOptions::new(Acls::anyone_all()).with_ancestor_options(OPEN.clone())?;
    let lock = holder
        .lock(
            LockPrefix::new_curator("/failover-lock", "latch-")?,
            b"",
            options,
        )
        .await?;

    tokio::task::spawn_blocking(fail_over).await??;

    insist(|| lock.create("/failover-under-lock", b"", OPEN)).await?;
    for ((client, path, ..), session) in clients.iter().zip(sessions) {
        holds(
            insist(|| client.check_stat(path)).await?.is_some(),
            format!("{path} is gone"),
        )?;
        equal(client.session_id(), session)?;
    }
    insist(|| first.set_data("/failover", b"over", None)).await?;
    for (client, path, once, mut always) in clients {
        let event = once.changed().await;
        equal(event.event_type, EventType::NodeDataChanged)?;
        // Events of the other members' nodes and of the connection come first.
        let mut seen = always.changed().await;
        while (seen.event_type, seen.path.as_ref()) != (EventType::NodeDataChanged, "/failover") {
            seen = always.changed().await;
        }
        insist(|| client.delete(&path, None)).await?;
    }
    Ok(())
}

async fn counter() -> Outcome {
    let client = connect().await?;
    client.create("/counter", b"0", OPEN).await?;
    let (mut acknowledged, mut open) = (0_i64, 0_i64);
    let mut failing_over: Option<tokio::task::JoinHandle<Outcome>> = None;
    let mut after = i64::MAX;
    while acknowledged < after {
        if acknowledged == 20 && failing_over.is_none() {
            failing_over = Some(tokio::task::spawn_blocking(fail_over));
        }
        if after == i64::MAX
            && failing_over
                .as_ref()
                .is_some_and(tokio::task::JoinHandle::is_finished)
        {
            after = acknowledged + 20;
        }
        let (data, stat) = match client.get_data("/counter").await {
            Err(error) if lost(&error) => continue,
            result => result?,
        };
        let next = String::from_utf8(data)?.parse::<i64>()? + 1;
        match client
            .set_data("/counter", next.to_string().as_bytes(), Some(stat.version))
            .await
        {
            Ok(_) => acknowledged += 1,
            Err(error) if lost(&error) => open += 1,
            Err(Error::BadVersion) => {}
            Err(error) => return Err(error.into()),
        }
    }
    failing_over.ok_or("no failover")?.await??;
    let (data, stat) = client.get_data("/counter").await?;
    let value = String::from_utf8(data)?.parse::<i64>()?;
    holds(
        (acknowledged..=acknowledged + open).contains(&value),
        format!("{value}: {acknowledged} acknowledged, {open} open"),
    )?;
    equal(i64::from(stat.version), value)?;
    equal(client.state(), SessionState::SyncConnected)
}

#[tokio::main]
async fn main() {
    step("session: taken over by its id and password", take_over()).await;
    step(
        "failover: sessions, ephemerals, watches and a lock live on",
        failover(),
    )
    .await;
    step(
        "failover: a counter that is added to all the while",
        counter(),
    )
    .await;
    println!("end");
}
