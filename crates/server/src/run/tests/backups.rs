//! Snapshots and restores of a whole server.

use flate2::write::GzEncoder;

use super::*;
use crate::backup::{BackupError, Compression, Destination, Intake, Restored, Snapshot, snapshot};

async fn bytes_of(mut snapshot: Snapshot) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some(piece) = snapshot.next().await.expect("the file") {
        bytes.extend_from_slice(&piece);
    }
    assert_eq!(bytes.len() as u64, snapshot.size);
    bytes
}

async fn restore(server: &Running, bytes: &[u8]) -> Result<Restored, BackupError> {
    let mut intake = Intake::begin(&server.shared).await?;
    for piece in bytes.chunks(10_000) {
        intake.write(piece).await?;
    }
    intake.finish().await
}

async fn take(server: &Running, compression: Compression) -> Vec<u8> {
    let made = snapshot(&server.shared, compression, Destination::Stream).await;
    bytes_of(made.expect("a snapshot")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_snapshot_holds_comes_back_with_its_session() {
    let disk = disk();
    let server = Running::start(disk.clone()).await;
    let (client, _events) = server.connect().await;
    let session = client.session();
    create(&client, "/a", CreateMode::Persistent)
        .await
        .expect("created");
    create(&client, "/e", CreateMode::Ephemeral)
        .await
        .expect("created");
    let before = server.shared.tree.read().last_zxid();
    let plain = take(&server, Compression::None).await;
    let packed = take(&server, Compression::Gzip).await;
    let snappy = take(&server, Compression::Snappy).await;
    // No entry of the log comes of it.
    assert_eq!(server.shared.tree.read().last_zxid(), before);
    assert!(packed.len() < plain.len() / 2);
    assert!(snappy.len() < plain.len());

    client.delete("/a", -1).await.expect("deleted");
    create(&client, "/later", CreateMode::Persistent)
        .await
        .expect("created");
    for bytes in [plain, packed, snappy] {
        let restored = restore(&server, &bytes).await.expect("restored");
        assert_eq!(restored.snapshot_zxid, Some(before));
        assert_eq!(restored.digest_fits, Some(true));
        assert!(restored.last_zxid > before);
        let (client, _events) = server.resume(Some(session)).await.expect("resumed");
        assert_eq!(client.session().id, session.id);
        assert_eq!(data(&client, "/a").await, b"0");
        assert_eq!(data(&client, "/e").await, b"0");
        assert_eq!(client.exists("/later", false).await.expect("a reply"), None);
        client.delete("/a", -1).await.expect("deleted");
    }
    let (restores, folder) = (
        &server.shared.backup.counters.restores,
        server.folder.path(),
    );
    assert_eq!(restores.load(Ordering::Relaxed), 3);
    assert_eq!(std::fs::read_dir(folder).expect("the folder").count(), 0);
    server.stop().await;
    // It is no less durable than any other entry.
    disk.crash(0);
    let server = Running::start(disk).await;
    let (client, _events) = server.resume(Some(session)).await.expect("resumed");
    assert_eq!(data(&client, "/e").await, b"0");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_may_stay_in_the_data_directory() {
    let server = Running::start(disk()).await;
    let (client, _events) = server.connect().await;
    for number in 0..2000 {
        let path = format!("/n{number}");
        client.submit(
            Op::Create,
            &quenda_proto::records::CreateRequest {
                path: Some(path.into()),
                data: Some(b"1234567890"),
                acl: Some(open_acl()),
                flags: 0,
            },
        );
    }
    client.sync("/").await.expect("synced");
    let made = snapshot(
        &server.shared,
        Compression::Gzip,
        Destination::DataDirectory,
    );
    let made = made.await.expect("a snapshot");
    let zxid = server.shared.tree.read().last_zxid();
    assert_eq!(made.last_zxid, zxid);
    let path = made.path.clone().expect("a path");
    assert_eq!(
        path,
        server
            .folder
            .path()
            .join(format!("snapshots/snapshot.{zxid:x}.gz"))
    );
    let stored = std::fs::read(&path).expect("the file");
    assert_eq!(stored, bytes_of(made).await);
    let restored = restore(&server, &stored).await.expect("restored");
    assert_eq!(restored.znodes, 2004);
    server.stop().await;
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, bytes).expect("in memory");
    encoder.finish().expect("in memory")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_takes_neither() {
    let disk = disk();
    let server = Running::start(disk.clone()).await;
    let bytes = take(&server, Compression::None).await;
    let mut intake = Intake::begin(&server.shared).await.expect("a turn");
    disk.set_space(Space {
        free_bytes: 1 << 20,
        total_bytes: 1 << 40,
    });
    let start = Instant::now();
    while !server.shared.is_disk_full() {
        assert!(start.elapsed() < PATIENCE, "the full disk is not noticed");
        tokio::task::yield_now().await;
    }
    intake.write(&bytes).await.expect("kept in memory");
    let refused = intake.finish().await.expect_err("no room");
    assert_eq!(refused.status(), 507, "{refused}");
    let made = snapshot(&server.shared, Compression::None, Destination::Stream).await;
    assert_eq!(made.err().map(|error| error.status()), Some(507));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_damaged_changes_nothing() {
    let server = Running::start(disk()).await;
    let (client, _events) = server.connect().await;
    create(&client, "/a", CreateMode::Persistent)
        .await
        .expect("created");
    let good = take(&server, Compression::None).await;
    let packed = take(&server, Compression::Gzip).await;
    let snappy = take(&server, Compression::Snappy).await;
    let digest = server.shared.tree.read().digest();
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 1;
    let cases = [
        (&good[..good.len() - 1], 500),
        (&flipped[..], 500),
        (&packed[..packed.len() - 9], 500),
        (&snappy[..snappy.len() - 1], 500),
        (&snappy[..16], 500),
        (&snappy[..9], 500),
        (b"", 500),
        (b"no snapshot", 500),
        (&gzipped(b"ZKSNnothing"), 500),
        (&gzipped(&[0; 1 << 20]), 500),
    ];
    for (bytes, status) in cases {
        let error = restore(&server, bytes).await.expect_err("damaged");
        assert_eq!(error.status(), status, "{error}");
    }
    // One that is broken off is forgotten, and so is its turn.
    let mut intake = Intake::begin(&server.shared).await.expect("a turn");
    intake.write(&good).await.expect("taken");
    let busy = Intake::begin(&server.shared).await.err();
    assert_eq!(busy.map(|error| error.status()), Some(409));
    drop(intake);
    let errors = &server.shared.backup.counters.restore_errors;
    assert_eq!(errors.load(Ordering::Relaxed), 11);
    assert_eq!(server.shared.tree.read().digest(), digest);
    assert_eq!(data(&client, "/a").await, b"0");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_from_before_a_restore_fires_although_the_znode_looks_older() {
    let server = Running::start(disk()).await;
    let (client, _events) = server.connect().await;
    create(&client, "/a", CreateMode::Persistent)
        .await
        .expect("created");
    let bytes = take(&server, Compression::None).await;
    client.set_data("/a", Some(b"1"), -1).await.expect("set");
    let (mut seen, session) = (
        client.exists("/a", false).await.expect("a reply"),
        client.session(),
    );
    let zxid = seen.take().expect("the znode").mzxid;
    restore(&server, &bytes).await.expect("restored");
    let (client, mut events) = server.resume(Some(session)).await.expect("resumed");
    let watches = quenda_proto::records::SetWatches {
        relative_zxid: zxid,
        data_watches: Some(vec![Some("/a".into()), Some("/none".into())]),
        exist_watches: Some(vec![Some("/none".into())]),
        child_watches: Some(vec![Some("/".into())]),
    };
    client
        .submit(Op::SetWatches, &watches)
        .await
        .expect("a reply");
    let mut told = Vec::new();
    while let Some(event) = events.try_next() {
        told.push((event.kind, event.path));
    }
    let expected = [
        (EventType::NodeDataChanged, "/a".to_string()),
        (EventType::NodeDeleted, "/none".to_string()),
        (EventType::NodeChildrenChanged, "/".to_string()),
    ];
    assert_eq!(told, expected);
    server.stop().await;
}
