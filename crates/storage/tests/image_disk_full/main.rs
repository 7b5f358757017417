//! A disk that takes no more of an image while it is received. The operating system's limit on the size of
//! a file stands in for it; as it holds for a whole process, the test runs itself a second time as a child,
//! with the signal ignored that would otherwise end it.

use std::env;
use std::path::Path;
use std::process::Command;

use quenda_consensus::{EntryKind, HardState, LogBatch, LogEntry, Membership, Recovered};
use quenda_storage::{Checkpoint, OpenOptions, RocksStore, RowBatch, Store, StoreError};
use quenda_tree::{CheckpointSink, Table};
use rustix::process::{Resource, getrlimit, setrlimit};

const DIRECTORY: &str = "QUENDA_TEST_IMAGE_DISK_FULL";
const OWN: HardState = HardState {
    term: 2,
    vote: 1,
    commit: 0,
};

#[test]
fn a_full_disk_stops_an_image_and_not_the_store() {
    if let Some(directory) = env::var_os(DIRECTORY) {
        return work(directory.as_ref());
    }
    let directory = tempfile::tempdir().unwrap();
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; exec \"$0\" --nocapture"])
        .arg(env::current_exe().unwrap())
        .env(DIRECTORY, directory.path())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

fn work(directory: &Path) {
    let (leader, follower) = (open(directory, 2), open(directory, 1));
    leader.append(&[batch(2, 9)]).unwrap();
    leader.checkpoint(&checkpoint(9)).unwrap();
    let image = leader.make_image().unwrap();
    let mut receiver = follower.receive_image(&image.manifest).unwrap();

    limit_files(Some(1 << 20));
    let mut last = 1;
    let mut refused = 0;
    while refused < 3 {
        let (file, offset, len) = receiver.next().expect("it does not fit");
        let bytes = leader
            .read_image(9, file, offset, len.min(300_000))
            .unwrap();
        match receiver.write(file, offset, &bytes) {
            Ok(()) => {}
            Err(StoreError::ImageIo(_)) => refused += 1,
            Err(other) => panic!("{other}"),
        }
        // The member's own work goes on.
        follower.append(&[batch(last + 1, last + 1)]).unwrap();
        last += 1;
    }
    let (stopped_at, _) = receiver.progress();
    drop(receiver);

    limit_files(None);
    let mut receiver = follower.receive_image(&image.manifest).unwrap();
    let (received, total) = receiver.progress();
    assert!(
        received >= stopped_at && received < total,
        "{received} of {total}"
    );
    while let Some((file, offset, len)) = receiver.next() {
        let bytes = leader.read_image(9, file, offset, len).unwrap();
        receiver.write(file, offset, &bytes).unwrap();
    }
    receiver.finish().unwrap();

    // The installation does not fit either: everything stays as it was.
    limit_files(Some(16));
    let error = follower.install_image(9, 2, OWN).expect_err("no room");
    assert!(!matches!(error, StoreError::Write(_)), "{error}");
    limit_files(None);
    assert_eq!(follower.recover().unwrap().last_index(), last);
    follower.append(&[batch(last + 1, last + 1)]).unwrap();
    follower.install_image(9, 2, OWN).unwrap();
    let recovered = follower.recover().unwrap();
    assert_eq!((recovered.applied, recovered.last_index()), (9, 9));
}

fn limit_files(bytes: Option<u64>) {
    let mut limit = getrlimit(Resource::Fsize);
    limit.current = bytes.or(limit.maximum);
    setrlimit(Resource::Fsize, limit).unwrap();
}

fn open(directory: &Path, member: u64) -> RocksStore {
    let options = OpenOptions {
        directory: directory.join(member.to_string()),
        log_directory: None,
        member,
        start: Recovered::bootstrap([1, 2], []),
    };
    RocksStore::open(options).unwrap().0
}

fn batch(first: u64, last: u64) -> LogBatch {
    let entry = |index| LogEntry {
        index,
        term: 2,
        kind: EntryKind::Normal,
        data: b"an entry".as_slice().into(),
    };
    LogBatch {
        hard_state: OWN,
        entries: (first..=last).map(entry).collect(),
    }
}

/// Some megabytes that do not shrink when they are compressed.
fn checkpoint(applied: u64) -> Checkpoint {
    let mut rows = RowBatch::default();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for key in 0..15_000_u64 {
        let mut value = Vec::new();
        for _ in 0..25 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            value.extend_from_slice(&random.to_be_bytes());
        }
        rows.put(Table::Nodes, &key.to_be_bytes(), &value);
    }
    Checkpoint {
        applied: (applied, 2),
        membership: Membership::of_voters([1, 2]),
        rows,
        complete: false,
    }
}
