//! A disk that takes no more bytes, and then does again. The operating system's limit on the size of a file
//! stands in for it; as it holds for a whole process, the test runs itself a second time as a child that
//! does the work, with the signal ignored that would otherwise end it.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use quenda_consensus::{EntryKind, HardState, LogBatch, LogEntry, Recovered};
use quenda_storage::{OpenOptions, RocksStore, Store, StoreError};
use rustix::process::{Resource, getrlimit, setrlimit};

const DIRECTORY: &str = "QUENDA_TEST_WRITE_FAILURE";

#[test]
fn a_refused_write_loses_nothing_and_reopening_goes_on_when_there_is_room_again() {
    if let Some(directory) = env::var_os(DIRECTORY) {
        return work(directory.into());
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

fn work(directory: PathBuf) {
    let open = || {
        let options = OpenOptions {
            directory: directory.clone(),
            log_directory: None,
            member: 1,
            start: Recovered::bootstrap([1], []),
        };
        RocksStore::open(options).unwrap()
    };
    let (store, recovered) = open();
    limit_files(Some(2 << 20));
    let mut last = recovered.last_index();
    let error = loop {
        assert!(last < 10_000, "the limit has no effect");
        match store.append(&[batch(last + 1)]) {
            Ok(()) => last = batch(last + 1).entries.last().unwrap().index,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::Write(_)), "{error}");
    let refused = store.append(&[batch(last + 1)]);
    assert!(matches!(refused, Err(StoreError::NeedsReopen)));

    // Nothing fits at all: reopening fails as often as it is tried, and harms nothing.
    limit_files(Some(16));
    for _ in 0..3 {
        let error = store.reopen().expect_err("no room");
        assert!(matches!(error, StoreError::Open(_)), "{error}");
        assert!(!error.to_string().contains("damaged"), "{error}");
    }
    limit_files(None);
    let reopened = store.reopen().unwrap();
    assert!(reopened.last_index >= last && !reopened.checkpoint_lost);
    store.append(&[batch(last + 1)]).unwrap();
    last = batch(last + 1).entries.last().unwrap().index;
    drop(store);
    let (_, recovered) = open();
    assert_eq!(recovered.last_index(), last);
}

fn limit_files(bytes: Option<u64>) {
    let mut limit = getrlimit(Resource::Fsize);
    limit.current = bytes.or(limit.maximum);
    setrlimit(Resource::Fsize, limit).unwrap();
}

fn batch(first: u64) -> LogBatch {
    let entry = |index| LogEntry {
        index,
        term: 2,
        kind: EntryKind::Normal,
        data: vec![0x5a; 4 << 10].into(),
    };
    LogBatch {
        hard_state: HardState {
            term: 2,
            vote: 1,
            commit: first - 1,
        },
        entries: (first..first + 10).map(entry).collect(),
    }
}
