//! Uses the crate `tokio-zookeeper` where its own tests leave off. It knows one address, and gives up when that refuses a
//! connection: what lives on is asked of members that are not killed.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures::StreamExt;
use programs::{equal, fail_over, holds, hosts, step, Outcome, PATIENCE};
use tokio_zookeeper::{error, Acl, CreateMode, WatchedEventType, ZooKeeper, ZooKeeperBuilder};

fn addresses() -> Vec<SocketAddr> {
    hosts()
        .split(',')
        .map(|host| host.parse().expect("an address"))
        .collect()
}

async fn connect(address: &SocketAddr) -> Result<ZooKeeper, programs::Failure> {
    let mut builder = ZooKeeperBuilder::default();
    builder.set_timeout(Duration::from_secs(30));
    let (client, _events) = builder.connect(address).await?;
    Ok(client)
}

async fn modes() -> Outcome {
    let address = addresses()[0];
    let client = connect(&address).await?;
    for (path, mode) in [
        ("/modes", CreateMode::Persistent),
        ("/modes/e", CreateMode::Ephemeral),
        ("/modes/s-", CreateMode::PersistentSequential),
        ("/modes/es-", CreateMode::EphemeralSequential),
        ("/modes/c", CreateMode::Container),
    ] {
        client
            .create(path, &b"x"[..], Acl::open_unsafe(), mode)
            .await??;
    }
    let mut children = client.get_children("/modes").await?.ok_or("no /modes")?;
    children.sort();
    equal(children, ["c", "e", "es-0000000002", "s-0000000001"])?;
    equal(
        client
            .create(
                "/modes",
                &b""[..],
                Acl::open_unsafe(),
                CreateMode::Persistent,
            )
            .await?,
        Err(error::Create::NodeExists),
    )?;
    equal(
        client
            .create(
                "/no/parent",
                &b""[..],
                Acl::open_unsafe(),
                CreateMode::Persistent,
            )
            .await?,
        Err(error::Create::NoNode),
    )?;
    equal(
        client
            .create(
                "/modes/e/child",
                &b""[..],
                Acl::open_unsafe(),
                CreateMode::Persistent,
            )
            .await?,
        Err(error::Create::NoChildrenForEphemerals),
    )?;
    equal(
        client.delete("/modes", None).await?,
        Err(error::Delete::NotEmpty),
    )?;
    equal(
        client.delete("/modes/c", Some(5)).await?,
        Err(error::Delete::BadVersion { expected: 5 }),
    )?;
    equal(client.delete("/modes/c", Some(0)).await?, Ok(()))?;
    let stat = client.set_data("/modes", Some(0), &b"new"[..]).await??;
    equal(stat.version, 1)?;
    let (data, stat) = client.get_data("/modes").await?.ok_or("no /modes")?;
    equal(
        (data.as_slice(), stat.version, stat.num_children),
        (&b"new"[..], 1, 3),
    )
}

async fn multi() -> Outcome {
    let client = connect(&addresses()[0]).await?;
    let results = client
        .multi()
        .create(
            "/multi",
            &b"a"[..],
            Acl::open_unsafe(),
            CreateMode::Persistent,
        )
        .set_data("/multi", Some(0), &b"b"[..])
        .check("/multi", 1)
        .create(
            "/multi/child",
            &b""[..],
            Acl::open_unsafe(),
            CreateMode::Ephemeral,
        )
        .delete("/multi/child", None)
        .run()
        .await?;
    holds(
        results.len() == 5 && results.iter().all(Result::is_ok),
        format!("{results:?}"),
    )?;
    let results = client
        .multi()
        .set_data("/multi", None, &b"lost"[..])
        .check("/multi", 7)
        .run()
        .await?;
    holds(
        results.len() == 2 && results.iter().all(Result::is_err),
        format!("{results:?}"),
    )?;
    let (data, _) = client.get_data("/multi").await?.ok_or("no /multi")?;
    equal(data.as_slice(), b"b")
}

async fn watches() -> Outcome {
    let (address, mut builder) = (addresses()[0], ZooKeeperBuilder::default());
    builder.set_timeout(Duration::from_secs(30));
    let (client, mut events) = builder.connect(&address).await?;
    let other = connect(&address).await?;
    let (created, _) = client.with_watcher().exists("/watched").await?;
    client.watch().exists("/watched").await?;
    other
        .create(
            "/watched",
            &b""[..],
            Acl::open_unsafe(),
            CreateMode::Persistent,
        )
        .await??;
    equal(created.await?.event_type, WatchedEventType::NodeCreated)?;
    let event = events.next().await.ok_or("no event")?;
    equal(
        (event.event_type, event.path.as_str()),
        (WatchedEventType::NodeCreated, "/watched"),
    )?;
    let (changed, ..) = client
        .with_watcher()
        .get_data("/watched")
        .await?
        .ok_or("no node")?;
    other.set_data("/watched", None, &b"x"[..]).await??;
    equal(changed.await?.event_type, WatchedEventType::NodeDataChanged)?;
    let (gone, ..) = client
        .with_watcher()
        .get_children("/watched")
        .await?
        .ok_or("no node")?;
    other.delete("/watched", None).await??;
    equal(gone.await?.event_type, WatchedEventType::NodeDeleted)
}

/// One client for each member. Whoever comes through has its session and ephemeral as before; whoever gave up is replaced.
async fn failover() -> Outcome {
    let mut clients = Vec::new();
    for address in addresses() {
        let client = connect(&address).await?;
        let path = client
            .create(
                "/failover-",
                &b""[..],
                Acl::open_unsafe(),
                CreateMode::EphemeralSequential,
            )
            .await??;
        clients.push((address, client, path));
    }
    tokio::task::spawn_blocking(fail_over).await??;
    let (all, mut alive) = (clients.len(), 0);
    for (address, client, path) in clients {
        let client = match client.exists(&path).await {
            Ok(found) => {
                alive += 1;
                holds(found.is_some(), format!("{path} is gone"))?;
                client
            }
            Err(_) => again(&address).await?,
        };
        client
            .create(
                "/failover-written-",
                &b""[..],
                Acl::open_unsafe(),
                CreateMode::PersistentSequential,
            )
            .await??;
    }
    println!("{alive} of {all} clients came through");
    Ok(())
}

async fn again(address: &SocketAddr) -> Result<ZooKeeper, programs::Failure> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match connect(address).await {
            Err(_) if Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(100)).await
            }
            result => return result,
        }
    }
}

#[tokio::main]
async fn main() {
    step("create, set, delete: modes, versions, refusals", modes()).await;
    step("multi: all or nothing", multi()).await;
    step("watches: creation, data, deletion", watches()).await;
    step(
        "failover: writes go on, and whose client comes through has its ephemeral",
        failover(),
    )
    .await;
    println!("end");
}
