//! Logs whose files overwrite older ones, cut and garbled as a crash or a bad disk would: a store opens with
//! every append that was confirmed in front of that place, or says that there is damage.

use std::fs;
use std::path::{Path, PathBuf};

use quenda_consensus::{EntryKind, HardState, LogBatch, LogEntry, Membership, Recovered};
use quenda_tree::{CheckpointSink, Table};
use rocksdb::{DB, FlushOptions, WriteBatch};
use tempfile::TempDir;

use super::log_end::LogEnd;
use super::options::{self, Buffers};
use super::wal::LogFile;
use super::{OpenOptions, RocksStore, read};
use crate::checkpoint::{Checkpoint, RowBatch};
use crate::error::OpenError;
use crate::format::{self, Progress};
use crate::space::Space;
use crate::store::Store;

const BLOCK: u64 = 32 << 10;

fn options(root: &Path, apart: bool) -> OpenOptions {
    OpenOptions {
        directory: root.join("data"),
        log_directory: apart.then(|| root.join("log")),
        member: 1,
        start: Recovered::bootstrap([1], []),
    }
}

/// Entries of a thousand bytes, different in each.
fn batch(first: u64, last: u64) -> LogBatch {
    let entry = |index: u64| LogEntry {
        index,
        term: 2,
        kind: EntryKind::Normal,
        data: index.to_be_bytes().repeat(125).into(),
    };
    LogBatch {
        hard_state: HardState {
            term: 2,
            vote: 1,
            commit: 0,
        },
        entries: (first..=last).map(entry).collect(),
    }
}

fn checkpoint(applied: u64) -> Checkpoint {
    let mut rows = RowBatch::default();
    for key in 0..40_u64 {
        rows.put(Table::Nodes, &key.to_be_bytes(), &applied.to_be_bytes());
    }
    Checkpoint {
        applied: (applied, 2),
        membership: Membership::of_voters([1]),
        rows,
        complete: false,
    }
}

/// Flushes everything, so that the log files so far are of no use any more.
fn next_log_file(store: &RocksStore) {
    let db = store.db().unwrap();
    let mut flush = FlushOptions::default();
    flush.set_wait(true);
    for name in options::family_names() {
        let family = read::family(&db, name).unwrap();
        db.flush_cf_opt(family, &flush).unwrap();
    }
}

fn log_folder(root: &Path, apart: bool) -> PathBuf {
    root.join(if apart { "log" } else { "data/db" })
}

fn newest_log(folder: &Path) -> (u64, PathBuf) {
    let names = fs::read_dir(folder).unwrap();
    let logs = names.filter_map(|entry| {
        let path = entry.unwrap().path();
        let name = path.file_name()?.to_str()?;
        let number = name.strip_suffix(".log")?.parse().ok()?;
        Some((number, path))
    });
    logs.max().expect("a log")
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

fn copy(root: &Path) -> TempDir {
    let copy = TempDir::new().unwrap();
    copy_all(root, copy.path());
    copy
}

/// A store that writes over a file of an older life, and what was appended to that so far: for each append
/// where it ends, and its last entry.
struct Overwritten {
    root: TempDir,
    apart: bool,
    store: RocksStore,
    number: u64,
    log: PathBuf,
    /// Bytes of the former life.
    old: Vec<u8>,
    ends: Vec<(u64, u64)>,
}

fn overwritten(apart: bool, appends: u64) -> Overwritten {
    let root = TempDir::new().unwrap();
    let (store, _) = RocksStore::open(options(root.path(), apart)).unwrap();
    let mut last = 1;
    let folder = log_folder(root.path(), apart);
    // Until a file begins as long as the older one was.
    let (number, log) = loop {
        store.append(&[batch(last + 1, last + 300)]).unwrap();
        last += 300;
        let before = newest_log(&folder);
        next_log_file(&store);
        let (number, log) = newest_log(&folder);
        if fs::metadata(&log).unwrap().len() > 0 {
            assert!(number > before.0);
            break (number, log);
        }
    };
    let old = fs::read(&log).unwrap();
    assert!(old.len() > 290_000, "it is not overwritten: {}", old.len());
    let mut ends = Vec::new();
    for count in 0..appends {
        if count == 3 {
            store.checkpoint(&checkpoint(last)).unwrap();
        }
        let next = last + 1 + count * 3 % 40;
        store.append(&[batch(last + 1, next)]).unwrap();
        last = next;
        let file = LogFile::read(&fs::read(&log).unwrap(), number, None);
        ends.push((file.end as u64, last));
    }
    Overwritten {
        root,
        apart,
        store,
        number,
        log,
        old,
        ends,
    }
}

impl Overwritten {
    /// A copy of the directory, and the log in it.
    fn copy(&self) -> (TempDir, PathBuf) {
        let copy = copy(self.root.path());
        let log = newest_log(&log_folder(copy.path(), self.apart));
        assert_eq!(log.0, self.number);
        (copy, log.1)
    }

    /// The last entry of the newest append that ends at `at` or before.
    fn last_at(&self, at: u64) -> Option<u64> {
        let whole = self.ends.iter().rfind(|(end, _)| *end <= at);
        whole.map(|(_, last)| *last)
    }

    /// Opens a copy, which must have what was appended up to `at`.
    fn assert_opens_up_to(&self, copy: &TempDir, at: u64) {
        let (store, recovered) = RocksStore::open(options(copy.path(), self.apart))
            .unwrap_or_else(|error| panic!("{at}: {error}"));
        if let Some(last) = self.last_at(at) {
            assert_eq!(recovered.last_index(), last, "{at}");
        }
        let data = recovered.entries.iter();
        assert!(
            data.clone()
                .all(|entry| entry.data == batch(entry.index, entry.index).entries[0].data)
        );
        // And it goes on.
        let next = recovered.last_index() + 1;
        store.append(&[batch(next, next)]).unwrap();
        drop(store);
        let (_, recovered) = RocksStore::open(options(copy.path(), self.apart)).unwrap();
        assert_eq!(recovered.last_index(), next, "{at}");
    }

    /// Every end of a record and of a block, and places beside it.
    fn boundaries(&self) -> Vec<u64> {
        let (last, _) = *self.ends.last().unwrap();
        let blocks = (0..=last / BLOCK).map(|block| block * BLOCK);
        let ends = self.ends.iter().map(|(end, _)| *end).chain(blocks);
        let mut places: Vec<u64> = ends
            .flat_map(|end| [end.saturating_sub(1), end, end + 1, end + 7, end + 11])
            .filter(|place| *place <= last)
            .collect();
        places.sort_unstable();
        places.dedup();
        places
    }
}

#[test]
fn a_crash_leaves_every_confirmed_append_in_front_of_what_the_file_was() {
    for apart in [false, true] {
        for appends in 1..=8 {
            let log = overwritten(apart, appends);
            let (copy, _) = log.copy();
            log.assert_opens_up_to(&copy, u64::MAX);
        }
    }
}

#[test]
fn a_tail_torn_at_any_boundary_is_cut_there() {
    let log = overwritten(false, 9);
    for place in log.boundaries() {
        // The former life is still there, nothing is there, or the file ends.
        for fill in 0..3 {
            let (copy, path) = log.copy();
            let mut bytes = fs::read(&path).unwrap();
            let at = place as usize;
            match fill {
                0 => {
                    let rest = log.old.get(at..).unwrap_or_default();
                    bytes.truncate(at);
                    bytes.extend_from_slice(rest);
                }
                1 => bytes[at..].fill(0),
                _ => bytes.truncate(at),
            }
            fs::write(&path, bytes).unwrap();
            log.assert_opens_up_to(&copy, place);
        }
    }
}

#[test]
fn damage_at_any_boundary_is_told_from_a_torn_tail() {
    let log = overwritten(true, 9);
    let confirmed = log.ends[log.ends.len() - 3].0;
    for place in log
        .boundaries()
        .into_iter()
        .filter(|place| *place < confirmed)
    {
        for width in [1, 40, 5_000] {
            let (copy, path) = log.copy();
            let mut bytes = fs::read(&path).unwrap();
            let at = place as usize;
            let end = (at + width).min(confirmed as usize);
            for byte in &mut bytes[at..end] {
                *byte ^= 0x55;
            }
            fs::write(&path, &bytes).unwrap();
            match RocksStore::open(options(copy.path(), true)) {
                Err(error @ OpenError::Damaged { .. }) => {
                    assert!(
                        error.to_string().contains("is unreadable behind append"),
                        "{error}"
                    );
                    assert!(fs::read(&path).unwrap() == bytes, "{place}: it was changed");
                }
                Err(other) => panic!("{place}: {other}"),
                Ok((_, recovered)) => {
                    // Only bytes that fill up a block can be damaged without loss.
                    assert_eq!(
                        recovered.last_index(),
                        log.ends.last().unwrap().1,
                        "{place}"
                    );
                }
            }
        }
    }
}

/// A client can guess everything in a write of the future but the seal.
#[test]
fn what_a_client_made_up_behind_the_end_is_not_taken() {
    let log = overwritten(false, 4);
    let bytes = fs::read(&log.log).unwrap();
    let file = LogFile::read(&bytes, log.number, None);
    let mut made_up = WriteBatch::default();
    let db = log.store.db().unwrap();
    let progress = Progress {
        hard_state: HardState::default(),
        appends: file.newest + 1,
    };
    let family = read::family(&db, options::RAFT_META).unwrap();
    made_up.put_cf(family, format::PROGRESS_KEY, progress.encode());
    made_up.put_log_data([3; 16]);
    let mut payload = made_up.data().to_vec();
    let (_, next) = file.sequence.unwrap();
    payload[..8].copy_from_slice(&next.to_le_bytes());
    let mut covered = vec![5];
    covered.extend_from_slice(&(log.number as u32).to_le_bytes());
    covered.extend_from_slice(&payload);
    let crc = crc32c::crc32c(&covered)
        .rotate_right(15)
        .wrapping_add(0xa282_ead8);
    let mut record = crc.to_le_bytes().to_vec();
    record.extend_from_slice(&(payload.len() as u16).to_le_bytes());
    record.extend_from_slice(&covered);

    let (copy, path) = log.copy();
    let mut forged = bytes.clone();
    forged[file.end..file.end + record.len()].copy_from_slice(&record);
    fs::write(&path, &forged).unwrap();
    let place_options = options(copy.path(), false);
    let place = super::place::Place::active(&place_options).unwrap();
    let taken = super::open::open_read_only(place).unwrap();
    let appends = read::progress(&taken, &place_options).unwrap().appends;
    assert_eq!(appends, file.newest + 1, "RocksDB alone takes it");
    drop(taken);
    log.assert_opens_up_to(&copy, u64::MAX);
}

#[test]
fn a_crash_anywhere_in_cutting_leaves_the_same() {
    let log = overwritten(true, 5);
    let (copy_of_it, _) = log.copy();
    let folder = log_folder(copy_of_it.path(), true);
    let end = LogEnd::find(&folder, 0).unwrap();
    assert!(!end.is_exact() && end.beyond == 0);
    end.cut().unwrap();
    let again = LogEnd::find(&folder, 0).unwrap();
    assert!(again.is_exact());
    assert_eq!(again.newest, end.newest);
    log.assert_opens_up_to(&copy_of_it, u64::MAX);
}

#[test]
fn an_image_and_a_look_beside_an_overwritten_log() {
    let log = overwritten(true, 6);
    let image = log.store.make_image().unwrap();
    assert!(image.index > 0);
    let next = log.ends.last().unwrap().1 + 1;
    log.store.append(&[batch(next, next)]).unwrap();
    next_log_file(&log.store);
    log.store.append(&[batch(next + 1, next + 1)]).unwrap();
    let unfinished = log.root.path().join("data/images");
    let names = fs::read_dir(unfinished.join(image.index.to_string())).unwrap();
    for entry in names {
        let path = entry.unwrap().path();
        let is_log = path.extension().is_some_and(|end| end == "log");
        assert!(
            !is_log || fs::metadata(&path).unwrap().len() == 0,
            "{path:?}"
        );
    }
    drop(log.store);
    let options = options(log.root.path(), true);
    let look = super::StoreLook::new(options.directory, options.log_directory).unwrap();
    assert_eq!(look.recovered().last_index(), next + 1);
}

/// What the version before wrote: logs that overwrite nothing, writes without a seal.
#[test]
fn a_store_of_the_former_version_opens() {
    let root = TempDir::new().unwrap();
    drop(RocksStore::open(options(root.path(), false)).unwrap());
    let buffers = Buffers::for_disk(Space {
        free_bytes: u64::MAX,
        total_bytes: u64::MAX,
    });
    let mut database = options::database(None, buffers);
    database.set_recycle_log_file_num(0);
    let folder = log_folder(root.path(), false);
    let db =
        DB::open_cf_descriptors(&database, &folder, options::column_families(buffers)).unwrap();
    for appends in 1..=3_u64 {
        let mut write = WriteBatch::default();
        super::put_entries(&db, &mut write, appends, &[batch(appends + 1, appends + 1)]).unwrap();
        let progress = Progress {
            hard_state: batch(2, 2).hard_state,
            appends,
        };
        let family = read::family(&db, options::RAFT_META).unwrap();
        write.put_cf(family, format::PROGRESS_KEY, progress.encode());
        db.write_opt(write, &options::synced()).unwrap();
    }
    let crashed = copy(root.path());
    let (number, log) = newest_log(&log_folder(crashed.path(), false));
    let file = LogFile::read(&fs::read(&log).unwrap(), number, None);
    assert_eq!((file.newest, file.numbered), (3, false));
    let (store, recovered) = RocksStore::open(options(crashed.path(), false)).unwrap();
    assert_eq!(recovered.last_index(), 4);
    store.append(&[batch(5, 6)]).unwrap();
    drop(store);
    let (_, recovered) = RocksStore::open(options(crashed.path(), false)).unwrap();
    assert_eq!(recovered.last_index(), 6);
}
