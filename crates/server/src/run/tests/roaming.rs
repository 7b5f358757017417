//! Sessions that go on after the server was away.

use quenda_client::{SessionEvent, SessionEvents, SessionOptions, SessionState};

use super::*;

async fn until(events: &mut SessionEvents, wanted: &SessionEvent) -> Vec<SessionEvent> {
    let mut before = Vec::new();
    let search = async {
        loop {
            let event = events.next().await.expect("the session goes on");
            if event == *wanted {
                break;
            }
            before.push(event);
        }
    };
    let found = tokio::time::timeout(PATIENCE, search).await;
    assert!(found.is_ok(), "{wanted:?} did not come");
    before
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_on_after_a_restart_with_its_ephemerals_and_watches() {
    let disk = disk();
    let server = Running::start(disk.clone()).await;
    let address = server.address.clone();
    let connect = address.parse().expect("a connect string");
    let (client, mut events) = Client::open(SessionOptions::new(connect));
    for (path, mode) in [
        ("/a", CreateMode::Persistent),
        ("/mine", CreateMode::Ephemeral),
    ] {
        create(&client, path, mode).await.expect("created");
    }
    let session = client.session();
    client.get_data("/a", true).await.expect("a watch");
    client.add_watch("/a", true).await.expect("a watch");
    until(
        &mut events,
        &SessionEvent::State(SessionState::SyncConnected),
    )
    .await;

    server.stop().await;
    until(
        &mut events,
        &SessionEvent::State(SessionState::Disconnected),
    )
    .await;
    let port = address.rsplit(':').next().expect("a port");
    let server = Running::start_at(disk, port.parse().expect("a port")).await;
    let connected = SessionEvent::State(SessionState::SyncConnected);
    assert_eq!(until(&mut events, &connected).await, []);
    assert_eq!(client.session().id, session.id);
    let mine = client.get_ephemerals("/").await.expect("a list");
    assert_eq!(mine, ["/mine"]);

    let (other, _events) = server.connect().await;
    create(&other, "/a/b", CreateMode::Persistent)
        .await
        .expect("created");
    other.set_data("/a", None, -1).await.expect("set");
    let fired = |event: &SessionEvent, kind, path: &str| matches!(event, SessionEvent::Watch(event) if event.kind == kind && event.path == path);
    let first = events.next().await.expect("an event");
    assert!(fired(&first, EventType::NodeCreated, "/a/b"), "{first:?}");
    let second = events.next().await.expect("an event");
    assert!(
        fired(&second, EventType::NodeDataChanged, "/a"),
        "{second:?}"
    );
    client.close().await.expect("closed");
    until(&mut events, &SessionEvent::State(SessionState::Closed)).await;
    let gone = other.exists("/mine", false).await.expect("an answer");
    assert!(gone.is_none(), "closed sessions have no ephemerals");
    server.stop().await;
}
