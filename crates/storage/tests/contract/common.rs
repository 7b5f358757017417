//! Stores to test, and writes to test them with.

use std::fs;
use std::path::{Path, PathBuf};

use quenda_consensus::{EntryKind, HardState, LogBatch, LogEntry, Membership, Recovered};
use quenda_storage::{
    Checkpoint, FaultyStore, MemoryStore, OpenError, OpenOptions, RocksStore, RowBatch, Store,
};
use quenda_tree::{CheckpointSink, Table};
use tempfile::TempDir;

pub const MEMBER: u64 = 1;

pub fn start() -> Recovered {
    Recovered::bootstrap([MEMBER], [])
}

/// A kind of store that a process can end with and begin again with.
pub trait Subject {
    fn store(&self) -> &dyn Store;
    /// The process ends in order and begins again.
    fn restart(&mut self);
    fn name(&self) -> &'static str;
}

impl Subject for MemoryStore {
    fn store(&self) -> &dyn Store {
        self
    }

    fn restart(&mut self) {}

    fn name(&self) -> &'static str {
        "memory"
    }
}

impl Subject for FaultyStore {
    fn store(&self) -> &dyn Store {
        self
    }

    fn restart(&mut self) {
        self.crash(usize::MAX);
    }

    fn name(&self) -> &'static str {
        "faulty"
    }
}

/// A store on disk, in a directory of its own.
pub struct OnDisk {
    pub directory: TempDir,
    pub separate_log: bool,
    start: Recovered,
    store: Option<RocksStore>,
}

impl OnDisk {
    pub fn new(separate_log: bool) -> OnDisk {
        OnDisk::starting(separate_log, start())
    }

    pub fn starting(separate_log: bool, start: Recovered) -> OnDisk {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut subject = OnDisk {
            directory,
            separate_log,
            start,
            store: None,
        };
        subject.open();
        subject
    }

    pub fn options(&self) -> OpenOptions {
        OpenOptions {
            start: self.start.clone(),
            ..options(self.directory.path(), self.separate_log)
        }
    }

    pub fn open(&mut self) -> Recovered {
        let (store, recovered) = RocksStore::open(self.options()).expect("opens");
        self.store = Some(store);
        recovered
    }

    pub fn close(&mut self) {
        self.store = None;
    }

    pub fn handle(&self) -> RocksStore {
        self.store.clone().expect("is open")
    }

    /// The directory as a crash at this moment would leave it.
    pub fn image(&self) -> TempDir {
        let copy = tempfile::tempdir().expect("a temporary directory");
        copy_all(self.directory.path(), copy.path());
        copy
    }
}

impl Subject for OnDisk {
    fn store(&self) -> &dyn Store {
        self.store.as_ref().expect("is open")
    }

    fn restart(&mut self) {
        self.close();
        self.open();
    }

    fn name(&self) -> &'static str {
        if self.separate_log {
            "on disk, log apart"
        } else {
            "on disk"
        }
    }
}

pub fn options(directory: &Path, separate_log: bool) -> OpenOptions {
    OpenOptions {
        directory: directory.join("data"),
        log_directory: separate_log.then(|| directory.join("log")),
        member: MEMBER,
        start: start(),
    }
}

pub fn open_image(image: &TempDir) -> Result<(RocksStore, Recovered), OpenError> {
    RocksStore::open(options(image.path(), false))
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_all(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The files of the database with this extension, oldest first.
pub fn files(image: &TempDir, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(image.path().join("data/db")).unwrap();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    files.sort();
    files
}

pub fn subjects() -> Vec<Box<dyn Subject>> {
    subjects_from(&start())
}

pub fn subjects_from(start: &Recovered) -> Vec<Box<dyn Subject>> {
    vec![
        Box::new(MemoryStore::new(start.clone())),
        Box::new(FaultyStore::new(start.clone())),
        Box::new(OnDisk::starting(false, start.clone())),
        Box::new(OnDisk::starting(true, start.clone())),
    ]
}

pub fn entry(index: u64, term: u64, data: &[u8]) -> LogEntry {
    LogEntry {
        index,
        term,
        kind: EntryKind::Normal,
        data: data.to_vec().into(),
    }
}

/// Entries `first..=last` of `term`; each holds its own index and term.
pub fn batch(first: u64, last: u64, term: u64) -> LogBatch {
    let entries = (first..=last)
        .map(|index| entry(index, term, format!("{index}@{term}").as_bytes()))
        .collect();
    LogBatch {
        hard_state: HardState {
            term,
            vote: MEMBER,
            commit: first - 1,
        },
        entries,
    }
}

/// A checkpoint whose rows all tell the entry that they belong to.
pub fn checkpoint(applied: u64, term: u64) -> Checkpoint {
    let mut rows = RowBatch::default();
    for table in Table::ALL {
        rows.put(table, b"applied", &applied.to_be_bytes());
        rows.put(table, &applied.to_be_bytes(), b"at");
        rows.delete(table, &applied.saturating_sub(3).to_be_bytes());
    }
    Checkpoint {
        applied: (applied, term),
        membership: Membership::of_voters([MEMBER]),
        rows,
        complete: false,
    }
}

pub type Rows = Vec<(Table, Vec<u8>, Vec<u8>)>;

pub fn rows(store: &dyn Store) -> Rows {
    let mut rows = Vec::new();
    store
        .scan(&mut |table, key, value| {
            rows.push((table, key.to_vec(), value.to_vec()));
            Ok(())
        })
        .expect("rows are readable");
    rows.sort();
    rows
}

/// Whether every row belongs to the entry that the store names.
pub fn assert_rows_fit(store: &dyn Store, applied: u64, context: &str) {
    let named: Vec<Vec<u8>> = rows(store)
        .into_iter()
        .filter(|(_, key, _)| key == b"applied")
        .map(|(_, _, value)| value)
        .collect();
    if named.is_empty() {
        assert_eq!(applied, start().applied, "{context}: rows are missing");
        return;
    }
    let expected = applied.to_be_bytes().to_vec();
    assert_eq!(named, vec![expected; Table::ALL.len()], "{context}");
}

/// Small, fast, the same everywhere.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
