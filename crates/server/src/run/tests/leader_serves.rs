//! A leader that leaves clients to the other members.

use quenda_frontend::{ConnectionId, LocalSessions};
use quenda_tree::ensemble::Server as Line;

use super::*;
use crate::backup::{Compression, Destination, Intake, snapshot};
use crate::member_status;
use crate::served::Served;
use crate::status::{Role, Service};

async fn start(store: Arc<dyn Store>, leader_serves: bool, in_ensemble: bool) -> Running {
    Running::start_as(store, 0, |config| {
        config.leader_serves = leader_serves;
        if in_ensemble {
            config.ensemble = vec![Line::parse("1", "127.0.0.1:1:2").expect("a line")];
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_is_spared_turns_clients_away_and_is_well() {
    let server = start(disk(), false, true).await;
    assert_eq!(server.shared.served(), Served::NobodyAsLeader);
    let refused = server.resume(None).await.map(|_| ());
    assert!(
        matches!(refused, Err(Error::HandshakeClosed { .. })),
        "{refused:?}"
    );
    let status = member_status::status(&server.shared);
    assert_eq!(
        (status.role, status.service),
        (Role::Leader, Service::LeadsOnly)
    );
    // What operators do with it is served.
    let made = snapshot(&server.shared, Compression::None, Destination::Stream).await;
    let mut made = made.expect("a snapshot");
    let mut intake = Intake::begin(&server.shared).await.expect("it restores");
    while let Some(piece) = made.next().await.expect("the file") {
        intake.write(&piece).await.expect("taken");
    }
    intake.finish().await.expect("restored");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn local_sessions_of_before_end_while_a_leader_is_spared() {
    let server = Running::start_as(disk(), 0, |config| {
        config.leader_serves = false;
        config.local_sessions = true;
        config.ensemble = vec![Line::parse("1", "127.0.0.1:1:2").expect("a line")];
    })
    .await;
    assert_eq!(server.shared.served(), Served::NobodyAsLeader);
    let sessions = server.shared.local_sessions.as_ref().expect("a table");
    let gone = ConnectionId(u64::MAX);
    let now_ms = server.shared.clock.now_ms();
    for session in 1..=3 {
        sessions.open(session, 200, gone, now_ms);
    }
    sessions.left(2, gone, now_ms, false);
    assert_eq!(sessions.count(), 3);
    for _ in 0..1_000 {
        if sessions.count() == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(sessions.count(), 0, "their clients went elsewhere");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_runs_alone_or_is_not_spared_serves() {
    for (leader_serves, in_ensemble) in [(false, false), (true, true)] {
        let server = start(disk(), leader_serves, in_ensemble).await;
        assert_eq!(server.shared.served(), Served::All);
        let (client, _events) = server.connect().await;
        create(&client, "/a", CreateMode::Persistent)
            .await
            .expect("created");
        server.stop().await;
    }
}
