//! The store on RocksDB.

mod files;
mod images;
mod incoming;
mod install;
mod log_end;
mod offline;
mod open;
mod options;
mod owner;
mod place;
mod read;
mod seal;
mod view;
mod wal;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::{MappedRwLockReadGuard, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use quenda_consensus::{HardState, LogBatch, Recovered};
use quenda_tree::Table;
use rocksdb::{DB, WriteBatch, WriteOptions};

pub use offline::StoreLook;
pub use open::OpenOptions;

use crate::checkpoint::Checkpoint;
use crate::content::Marks;
use crate::error::{OpenError, StoreError};
use crate::format::{self, CheckpointRow, Progress};
use crate::image::{ImageInfo, ImageReceiver, refused};
use crate::space::Space;
use crate::store::{Reopened, RowLook, RowVisitor, Store};
use images::{Images, Linked};
use incoming::Incoming;
use open::Missing;
use options::{LOG, RAFT_META};
use place::Place;
use view::DbView;

/// A member's store on disk. Clones are handles to the same store.
#[derive(Clone)]
pub struct RocksStore {
    shared: Arc<Shared>,
}

struct Shared {
    options: OpenOptions,
    /// `None` only while a reopening has failed.
    db: RwLock<Option<DB>>,
    /// Held over every append, so that they are numbered in the order of the log.
    log: Mutex<LogState>,
    checkpoint: Mutex<CheckpointState>,
    failed: AtomicBool,
    /// Whether an append is durable when it returns.
    syncs: AtomicBool,
    /// How many wait for `db` to change it: who looks at it for long is to let go.
    awaited: AtomicUsize,
    images: Images,
    incoming: Incoming,
}

/// Where the log stands, as of the last successful write.
#[derive(Clone, Copy)]
struct LogState {
    compacted: u64,
    last: u64,
    progress: Progress,
}

#[derive(Clone, Copy)]
struct CheckpointState {
    /// The entry of the last checkpoint written.
    written: u64,
}

impl RocksStore {
    /// Whether there is a store to be opened, or [`RocksStore::open`] would create one. Where it would refuse to,
    /// because of data of Apache ZooKeeper, this says so at once.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn exists(options: &OpenOptions) -> Result<bool, OpenError> {
        open::exists(options)
    }

    /// Opens the store of a member, or creates it in an empty directory, and reads raft's state and the
    /// log. The tree's rows are read with [`crate::load_tree`].
    ///
    /// # Errors
    /// See [`OpenError`]; its text says what to do.
    pub fn open(options: OpenOptions) -> Result<(RocksStore, Recovered), OpenError> {
        let db = open::open(&options, Missing::Create)?;
        let (log, checkpoint, recovered) = inspect(&db, &options)?;
        let images = Images::new(options.directory.join(place::IMAGES));
        let incoming = Incoming::new(options.directory.join(place::INCOMING));
        incoming
            .sweep(checkpoint.written)
            .map_err(|error| options.io(error))?;
        let shared = Shared {
            images,
            incoming,
            options,
            db: RwLock::new(Some(db)),
            log: Mutex::new(log),
            checkpoint: Mutex::new(checkpoint),
            failed: AtomicBool::new(false),
            syncs: AtomicBool::new(true),
            awaited: AtomicUsize::new(0),
        };
        let store = RocksStore {
            shared: Arc::new(shared),
        };
        Ok((store, recovered))
    }

    /// From now on appends are handed to the system and not waited for: they outlive this process, and not the machine.
    pub fn leave_syncs_to_the_system(&self) {
        self.shared.syncs.store(false, Ordering::Relaxed);
    }

    /// The open database, for reading.
    fn db(&self) -> Result<MappedRwLockReadGuard<'_, DB>, StoreError> {
        RwLockReadGuard::try_map(self.shared.db.read(), Option::as_ref)
            .map_err(|_| StoreError::NeedsReopen)
    }

    /// The open database, for writing.
    fn writable(&self) -> Result<MappedRwLockReadGuard<'_, DB>, StoreError> {
        let db = self.db()?;
        if self.shared.failed.load(Ordering::Acquire) {
            return Err(StoreError::NeedsReopen);
        }
        Ok(db)
    }

    /// The database, to be changed; those who look at it for long let go.
    fn exclusive(&self) -> RwLockWriteGuard<'_, Option<DB>> {
        self.shared.awaited.fetch_add(1, Ordering::Relaxed);
        let db = self.shared.db.write();
        self.shared.awaited.fetch_sub(1, Ordering::Relaxed);
        db
    }

    fn write_failed(&self, error: &rocksdb::Error) -> StoreError {
        self.shared.failed.store(true, Ordering::Release);
        StoreError::Write(error.to_string())
    }
}

fn inspect(
    db: &DB,
    options: &OpenOptions,
) -> Result<(LogState, CheckpointState, Recovered), OpenError> {
    let recovered = read::recovered(db, options).map_err(|error| match error {
        StoreError::Open(error) => error,
        other => options.damaged(other),
    })?;
    let log = LogState {
        compacted: recovered.compacted.0,
        last: recovered.last_index(),
        progress: read::progress(db, options)?,
    };
    let checkpoint = CheckpointState {
        written: recovered.applied,
    };
    Ok((log, checkpoint, recovered))
}

impl LogState {
    fn marks(&self, checkpoint: u64) -> Marks {
        Marks {
            compacted: self.compacted,
            last: self.last,
            checkpoint,
        }
    }
}

impl Store for RocksStore {
    fn append(&self, batches: &[LogBatch]) -> Result<(), StoreError> {
        let Some(newest) = batches.last() else {
            return Ok(());
        };
        let db = self.writable()?;
        let mut log = self.shared.log.lock();
        let last = log.marks(0).last_after(batches)?;
        let progress = Progress {
            hard_state: newest.hard_state,
            appends: log.progress.appends + 1,
        };
        let mut write = WriteBatch::with_capacity_bytes(append_bytes(batches));
        put_entries(&db, &mut write, log.last, batches)?;
        // Last, so that it can be found in a damaged log: see the module `wal`.
        write.put_cf(
            read::family(&db, RAFT_META)?,
            format::PROGRESS_KEY,
            progress.encode(),
        );
        let options = match self.shared.syncs.load(Ordering::Relaxed) {
            true => options::synced(),
            false => WriteOptions::default(),
        };
        seal::write(&db, write, &options).map_err(|error| self.write_failed(&error))?;
        log.last = last;
        log.progress = progress;
        Ok(())
    }

    fn checkpoint(&self, checkpoint: &Checkpoint) -> Result<(), StoreError> {
        let db = self.writable()?;
        let mut state = self.shared.checkpoint.lock();
        let marks = self.shared.log.lock().marks(state.written);
        marks.check_checkpoint(checkpoint.applied.0)?;
        let write = checkpoint_batch(&db, checkpoint, checkpoint.complete)?;
        seal::write(&db, write, &WriteOptions::default())
            .map_err(|error| self.write_failed(&error))?;
        state.written = checkpoint.applied.0;
        self.shared.incoming.discard_through(state.written);
        Ok(())
    }

    fn sync(&self) -> Result<(), StoreError> {
        let db = self.writable()?;
        db.flush_wal(true)
            .map_err(|error| self.write_failed(&error))
    }

    fn compact_log(&self, through: u64) -> Result<(), StoreError> {
        let db = self.writable()?;
        let state = self.shared.checkpoint.lock();
        let log = *self.shared.log.lock();
        log.marks(state.written).check_cut(through)?;
        if through <= log.compacted {
            return Ok(());
        }
        let term = read_term(&db, through, &self.shared.options)?;
        let family = read::family(&db, LOG)?;
        let (first, end) = (format::entry_key(0), format::entry_key(through + 1));
        let mut write = WriteBatch::default();
        write.put_cf(
            read::family(&db, RAFT_META)?,
            format::COMPACTED_KEY,
            format::encode_position((through, term)),
        );
        write.delete_range_cf(family, first, end);
        // Synced, and with it the checkpoint above: files are dropped next, for good.
        seal::write(&db, write, &options::synced()).map_err(|error| self.write_failed(&error))?;
        self.shared.log.lock().compacted = through;
        db.delete_file_in_range_cf(family, first, format::entry_key(through))
            .map_err(|error| self.write_failed(&error))
    }

    fn recover(&self) -> Result<Recovered, StoreError> {
        read::recovered(&*self.db()?, &self.shared.options)
    }

    fn scan(&self, visit: &mut RowVisitor<'_>) -> Result<(), StoreError> {
        read::scan(&*self.db()?, visit, &self.shared.options)
    }

    fn view(&self, look: &mut RowLook<'_>) -> Result<(), StoreError> {
        let db = self.writable()?;
        // No checkpoint is half in what is seen: see `options::database`.
        let state = self.shared.checkpoint.lock();
        let view = DbView::new(&db, &self.shared.awaited);
        drop(state);
        look(&view);
        Ok(())
    }

    fn reopen(&self) -> Result<Reopened, StoreError> {
        let mut db = self.exclusive();
        let mut log = self.shared.log.lock();
        let mut checkpoint = self.shared.checkpoint.lock();
        if db.is_some() {
            self.shared.failed.store(true, Ordering::Release);
            close(&mut db);
        }
        let opened = open::open(&self.shared.options, Missing::Damage)?;
        let (found, stored, _) = inspect(&opened, &self.shared.options)?;
        // Appends are numbered, so this also holds when entries were replaced by fewer ones.
        if found.progress.appends < log.progress.appends {
            return Err(StoreError::LostEntries {
                found: found.last,
                promised: log.last,
            });
        }
        let reopened = Reopened {
            last_index: found.last,
            checkpoint_index: stored.written,
            checkpoint_lost: stored.written < checkpoint.written,
        };
        *db = Some(opened);
        *log = found;
        *checkpoint = stored;
        self.shared.failed.store(false, Ordering::Release);
        Ok(reopened)
    }

    fn make_image(&self) -> Result<ImageInfo, StoreError> {
        let buffers = open::buffers(&self.shared.options);
        self.shared.images.make(buffers, |folder, is_made| {
            let db = self.writable()?;
            // Neither a checkpoint nor a cut of the log meanwhile; appends go on.
            let state = self.shared.checkpoint.lock();
            match state.written {
                0 => Err(refused("this store holds nothing yet")),
                index if is_made(index) => Ok(Linked::Already(index)),
                _ => images::link(&db, folder).map(Linked::New),
            }
        })
    }

    fn read_image(
        &self,
        index: u64,
        file: u32,
        offset: u64,
        max: usize,
    ) -> Result<Bytes, StoreError> {
        self.shared.images.read(index, file, offset, max)
    }

    fn drop_images(&self, keep: Option<u64>) {
        self.shared.images.drop_made(keep);
    }

    fn receive_image(&self, manifest: &[u8]) -> Result<Box<dyn ImageReceiver>, StoreError> {
        let written = self.shared.checkpoint.lock().written;
        self.shared.incoming.receive(manifest, written)
    }

    fn install_image(
        &self,
        index: u64,
        term: u64,
        hard_state: HardState,
    ) -> Result<(), StoreError> {
        // Everybody waits, and what was open before is closed: see `Shared::db`.
        let mut db = self.exclusive();
        let mut log = self.shared.log.lock();
        let mut checkpoint = self.shared.checkpoint.lock();
        let mut incoming = self.shared.incoming.lock();
        let (manifest, files) = incoming.finished()?;
        if manifest.position() != (index, term) {
            return Err(refused("another one has arrived"));
        }
        let (stored, appends) = (log.progress.hard_state, log.progress.appends);
        log.marks(checkpoint.written)
            .check_install((index, term), stored, hard_state)?;
        let place = Place::active(&self.shared.options)?.next();
        let progress = install::progress_behind(index, hard_state, appends);
        let new = match install::prepare(place, manifest, &files, progress) {
            Ok(new) => new,
            Err(error) => {
                install::abandon(place);
                if let StoreError::ImageRefused(_) = error {
                    // It would be refused again; another one may be better.
                    incoming.discard_or_warn();
                }
                return Err(error);
            }
        };
        if let Err(error) = place.activate() {
            // Either may count now. Opening again finds out.
            self.shared.failed.store(true, Ordering::Release);
            close(&mut db);
            return Err(StoreError::Write(error.to_string()));
        }
        close(&mut db);
        *db = Some(new);
        *log = LogState {
            compacted: index,
            last: index,
            progress,
        };
        checkpoint.written = index;
        self.shared.failed.store(false, Ordering::Release);
        install::forget_others(place);
        incoming.discard_or_warn();
        Ok(())
    }

    fn close(&self) {
        close(&mut self.exclusive());
    }

    fn space(&self) -> io::Result<Space> {
        let data = Space::of(&self.shared.options.directory)?;
        let Some(log_directory) = &self.shared.options.log_directory else {
            return Ok(data);
        };
        let log = Space::of(log_directory)?;
        Ok(if log.level() < data.level() {
            log
        } else {
            data
        })
    }
}

/// Closes what is open, if anything is.
fn close(db: &mut Option<DB>) {
    if let Some(old) = db.take() {
        old.cancel_all_background_work(true);
    }
}

fn append_bytes(batches: &[LogBatch]) -> usize {
    const ROW_OVERHEAD: usize = 32;
    let entries = batches.iter().flat_map(|batch| &batch.entries);
    entries
        .map(|entry| entry.data.len() + ROW_OVERHEAD)
        .sum::<usize>()
        + 128
}

/// Entries in order; a batch that begins inside the log first removes what it replaces.
fn put_entries(
    db: &DB,
    write: &mut WriteBatch,
    mut last: u64,
    batches: &[LogBatch],
) -> Result<(), StoreError> {
    let family = read::family(db, LOG)?;
    let mut row = Vec::new();
    for entries in batches.iter().map(|batch| &batch.entries) {
        let (Some(first), Some(newest)) = (entries.first(), entries.last()) else {
            continue;
        };
        if first.index <= last {
            let (from, to) = (format::entry_key(first.index), format::entry_key(last + 1));
            write.delete_range_cf(family, from, to);
        }
        for entry in entries {
            format::encode_entry(entry, &mut row);
            write.put_cf(family, format::entry_key(entry.index), &row);
        }
        last = newest.index;
    }
    Ok(())
}

fn checkpoint_batch(
    db: &DB,
    checkpoint: &Checkpoint,
    complete: bool,
) -> Result<WriteBatch, StoreError> {
    const ROW_OVERHEAD: usize = 16;
    let rows = &checkpoint.rows;
    let bytes = rows.len_bytes() + rows.len() * ROW_OVERHEAD + 256;
    let mut write = WriteBatch::with_capacity_bytes(bytes);
    let mut families = Vec::new();
    for table in Table::ALL {
        families.push((table, read::family(db, options::table_name(table))?));
    }
    let family = |wanted: Table| {
        let found = families.iter().find(|(table, _)| *table == wanted);
        found.expect("every table has its family").1
    };
    if complete {
        clear_tables(db, &mut write)?;
    }
    for (table, key, value) in rows.iter() {
        match value {
            Some(value) => write.put_cf(family(table), key, value),
            None => write.delete_cf(family(table), key),
        }
    }
    let row = CheckpointRow {
        applied: checkpoint.applied,
        membership: checkpoint.membership.clone(),
    };
    write.put_cf(
        read::family(db, RAFT_META)?,
        format::CHECKPOINT_KEY,
        row.encode(),
    );
    Ok(write)
}

fn clear_tables(db: &DB, write: &mut WriteBatch) -> Result<(), StoreError> {
    for table in Table::ALL {
        let family = read::family(db, options::table_name(table))?;
        let mut rows = db.raw_iterator_cf_opt(family, options::scan());
        rows.seek_to_last();
        if let Some(last) = rows.key() {
            // The end of a range is not part of it.
            let end = [last, &[0]].concat();
            write.delete_range_cf(family, &[][..], &end);
        }
        rows.status()
            .map_err(|error| StoreError::Read(error.to_string()))?;
    }
    Ok(())
}

fn read_term(db: &DB, index: u64, options: &OpenOptions) -> Result<u64, StoreError> {
    let key = format::entry_key(index);
    let row = db
        .get_cf(read::family(db, LOG)?, key)
        .map_err(|error| options.damaged(error))?
        .ok_or_else(|| options.damaged(format!("log entry {index} is missing")))?;
    let entry = format::decode_entry(&key, &row)
        .map_err(|_| options.damaged(format!("log entry {index} is unreadable")))?;
    Ok(entry.term)
}

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod overwritten_log_tests;
