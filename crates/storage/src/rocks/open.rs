//! Opening: whether a database is whole, and where a torn tail ends.

use std::fs;
use std::io;
use std::path::PathBuf;

use quenda_consensus::Recovered;
use rocksdb::properties::MIN_LOG_NUMBER_TO_KEEP;
use rocksdb::{DB, ErrorKind, WriteBatch};
use tracing::info;

use super::log_end::LogEnd;
use super::options::{self, Buffers, LOG, RAFT_META};
use super::place::Place;
use super::{files, owner, read, seal};
use crate::error::OpenError;
use crate::format::{self, CheckpointRow, Progress};
use crate::space::Space;

/// Where a store is, and what it is when there is none yet.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// The data directory.
    pub directory: PathBuf,
    /// A directory of its own for the write-ahead log, if it is to have one.
    pub log_directory: Option<PathBuf>,
    /// The member that the store belongs to.
    pub member: u64,
    /// What an empty directory starts from: [`Recovered::bootstrap`] or [`Recovered::joining`].
    pub start: Recovered,
}

impl OpenOptions {
    pub(super) fn damaged(&self, detail: impl ToString) -> OpenError {
        OpenError::damaged(&self.directory, detail)
    }

    pub(super) fn io(&self, detail: impl ToString) -> OpenError {
        OpenError::io(&self.directory, detail)
    }

    pub(super) fn misplaced_log(&self, detail: impl ToString) -> OpenError {
        OpenError::LogDirectory {
            directory: self.directory.clone(),
            detail: detail.to_string(),
        }
    }
}

/// Whether a store may be created where there is none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    Create,
    Damage,
}

pub(super) fn open(options: &OpenOptions, missing: Missing) -> Result<DB, OpenError> {
    let place = Place::active(options)?;
    let exists = check_database(place)?;
    if !exists && missing == Missing::Damage {
        return Err(options.damaged("the database has vanished"));
    }
    owner::check(options, exists)?;
    owner::check_log_directory(place, exists)?;
    if !place.is_first() {
        // Nothing may be acknowledged in a database whose name a power cut could take back.
        files::sync_directory(&options.directory).map_err(|error| options.io(error))?;
    }
    fs::create_dir_all(place.database()).map_err(|error| options.io(error))?;
    if exists && missing == Missing::Create {
        refuse_if_in_use(place)?;
    }
    let newest = if exists && !(missing == Missing::Create && is_half_created(place)?) {
        settle_log(place, &look_without_touching(place)?)?
    } else {
        0
    };
    let db = attempt(place).map_err(|error| explain(options, &error))?;
    if read::meta(&db, format::FORMAT_KEY, options)?.is_none() {
        if missing == Missing::Damage || holds_anything(&db) {
            return Err(options.damaged("the row that names its format is missing"));
        }
        create(&db, options)?;
    }
    check_identity(&db, options)?;
    let found = read::progress(&db, options)?.appends;
    if found < newest {
        return Err(options.damaged(format!(
            "append {newest} is in the write-ahead log, but the database has taken in only {found}"
        )));
    }
    if missing == Missing::Create {
        place.sweep().map_err(|error| options.io(error))?;
    }
    Ok(db)
}

/// Whether there is a database. RocksDB would silently start an empty one beside the remains of another.
fn check_database(place: Place<'_>) -> Result<bool, OpenError> {
    let (database, options) = (place.database(), place.options);
    let names = names(place)?;
    if names.iter().any(|name| name == "CURRENT") {
        return Ok(true);
    }
    let is_remains = |name: &str| name.ends_with(".sst") || name.ends_with(".log");
    if !place.is_first() || names.iter().any(|name| is_remains(name)) {
        let current = database.join("CURRENT");
        return Err(options.damaged(format!("{} is missing", current.display())));
    }
    Ok(false)
}

fn names(place: Place<'_>) -> Result<Vec<String>, OpenError> {
    files::names(&place.database()).map_err(|error| place.options.io(error))
}

/// Whether a store was created here before. One whose creation was cut short is none; one that cannot be
/// read is, and [`open`] says what is wrong with it.
pub(super) fn exists(options: &OpenOptions) -> Result<bool, OpenError> {
    let place = Place::active(options)?;
    if !check_database(place)? {
        owner::check_unclaimed(options)?;
        return Ok(false);
    }
    if is_half_created(place)? {
        return Ok(false);
    }
    let Ok(db) = open_read_only(place) else {
        return Ok(true);
    };
    let named = read::meta(&db, format::FORMAT_KEY, options)?.is_some();
    Ok(named || holds_anything(&db) || holds_tables(place)?)
}

/// Whether a first start was killed while RocksDB made the column families: some are missing, and nothing was
/// ever written.
fn is_half_created(place: Place<'_>) -> Result<bool, OpenError> {
    if !place.is_first() || holds_tables(place)? || holds_log(place)? {
        return Ok(false);
    }
    let (database, _) = setup(place);
    // A manifest that cannot be read is damage, which opening explains.
    let Ok(found) = DB::list_cf(&database, place.database()) else {
        return Ok(false);
    };
    Ok(options::family_names().any(|name| !found.iter().any(|family| family == name)))
}

/// Whether anything is in the write-ahead log.
fn holds_log(place: Place<'_>) -> Result<bool, OpenError> {
    let folder = place.wal();
    let names = files::names(&folder).map_err(|error| place.options.io(error))?;
    for name in names.iter().filter(|name| name.ends_with(".log")) {
        let file = fs::metadata(folder.join(name)).map_err(|error| place.options.io(error))?;
        if file.len() > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Asks for the lock that RocksDB holds while a database is open, and gives it back.
fn refuse_if_in_use(place: Place<'_>) -> Result<(), OpenError> {
    use rustix::fs::{FlockOperation, fcntl_lock};
    let options = place.options;
    let lock = place.database().join("LOCK");
    let file = match fs::File::options().write(true).open(&lock) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(options.io(error)),
    };
    match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::ACCESS) => Err(OpenError::InUse {
            directory: options.directory.clone(),
        }),
        Err(error) => Err(options.io(error)),
    }
}

/// What is to be known before a database is opened for writing.
struct Look {
    /// The newest append that can be read.
    appends: u64,
    /// The number of the first log file that is of use.
    first_log: u64,
}

/// Looks for the row that names the format before the database is opened for writing. With a damaged
/// manifest RocksDB takes an older state for the newest and deletes the files that are not part of it, which
/// would make the damage final.
fn look_without_touching(place: Place<'_>) -> Result<Look, OpenError> {
    let (db, options) = (open_read_only(place)?, place.options);
    let first_log = db
        .property_int_value(MIN_LOG_NUMBER_TO_KEEP)
        .map_err(|error| options.damaged(error))?
        .unwrap_or(0);
    let appends = match read::meta(&db, format::FORMAT_KEY, options)? {
        Some(_) => read::progress(&db, options)?.appends,
        // A first start that was killed before it wrote anything.
        None if !holds_anything(&db) && !holds_tables(place)? => 0,
        None => return Err(options.damaged("the row that names its format is missing")),
    };
    Ok(Look { appends, first_log })
}

/// Whether there are files with rows, whatever the manifest says of them.
fn holds_tables(place: Place<'_>) -> Result<bool, OpenError> {
    Ok(names(place)?.iter().any(|name| name.ends_with(".sst")))
}

/// Cuts the log where it ends, and tells the newest append in it. A crash tears at most the last,
/// unacknowledged append, and what was not synced since the one before; but if a later one can still be read, the
/// damage lies in what had been acknowledged.
fn settle_log(place: Place<'_>, look: &Look) -> Result<u64, OpenError> {
    let options = place.options;
    let end = LogEnd::find(&place.wal(), look.first_log).map_err(|error| options.io(error))?;
    let readable = match end.newest {
        0 => look.appends,
        newest => newest,
    };
    let beyond = end.beyond;
    if beyond > readable + 1 {
        return Err(options.damaged(format!(
            "the write-ahead log is unreadable behind append {readable}, but append {beyond} is there"
        )));
    }
    if !end.is_exact() {
        info!(
            directory = %options.directory.display(), append = readable,
            "the write-ahead log is cut behind its last whole write"
        );
        end.cut().map_err(|error| options.io(error))?;
    }
    Ok(end.newest)
}

fn attempt(place: Place<'_>) -> Result<DB, rocksdb::Error> {
    let (database, families) = setup(place);
    DB::open_cf_descriptors(&database, place.database(), families)
}

/// Opens the database without changing anything, also beside the process that has it open.
pub(super) fn open_read_only(place: Place<'_>) -> Result<DB, OpenError> {
    let (database, families) = setup(place);
    DB::open_cf_descriptors_read_only(&database, place.database(), families, false)
        .map_err(|error| explain(place.options, &error))
}

/// Opens a database that was prepared for an installation. It is as it was left: nothing of it is cut.
pub(super) fn open_prepared(place: Place<'_>) -> Result<DB, OpenError> {
    attempt(place).map_err(|error| explain(place.options, &error))
}

fn setup(place: Place<'_>) -> (rocksdb::Options, Vec<rocksdb::ColumnFamilyDescriptor>) {
    let buffers = buffers(place.options);
    (
        options::database(place.log_directory().as_deref(), buffers),
        options::column_families(buffers),
    )
}

pub(super) fn buffers(options: &OpenOptions) -> Buffers {
    // Where the size of the disk is unknown, assume a large one.
    let space = Space::of(&options.directory).unwrap_or(Space {
        free_bytes: u64::MAX,
        total_bytes: u64::MAX,
    });
    Buffers::for_disk(space)
}

/// RocksDB tells errors apart by text alone.
fn explain(options: &OpenOptions, error: &rocksdb::Error) -> OpenError {
    let text = error.to_string();
    match error.kind() {
        ErrorKind::IOError if text.contains("lock") && text.contains("LOCK") => OpenError::InUse {
            directory: options.directory.clone(),
        },
        ErrorKind::IOError if text.contains("No such file") => options.damaged(text),
        ErrorKind::Corruption | ErrorKind::InvalidArgument | ErrorKind::NotFound => {
            options.damaged(text)
        }
        _ => options.io(text),
    }
}

fn holds_anything(db: &DB) -> bool {
    let families = quenda_tree::Table::ALL.map(options::table_name);
    families
        .into_iter()
        .chain([LOG, RAFT_META])
        .filter_map(|name| db.cf_handle(name))
        .any(|family| {
            db.iterator_cf(family, rocksdb::IteratorMode::Start)
                .next()
                .is_some()
        })
}

fn create(db: &DB, options: &OpenOptions) -> Result<(), OpenError> {
    let family = read::family(db, RAFT_META).map_err(|error| options.damaged(error))?;
    let start = &options.start;
    let mut batch = WriteBatch::default();
    let progress = Progress {
        hard_state: start.hard_state,
        appends: 0,
    };
    let checkpoint = CheckpointRow {
        applied: start.compacted,
        membership: start.membership.clone(),
    };
    batch.put_cf(family, format::FORMAT_KEY, format::FORMAT.to_be_bytes());
    batch.put_cf(family, format::MEMBER_KEY, options.member.to_be_bytes());
    batch.put_cf(family, format::PROGRESS_KEY, progress.encode());
    batch.put_cf(
        family,
        format::COMPACTED_KEY,
        format::encode_position(start.compacted),
    );
    batch.put_cf(family, format::CHECKPOINT_KEY, checkpoint.encode());
    seal::write(db, batch, &options::synced()).map_err(|error| options.io(error))
}

pub(super) fn check_identity(db: &DB, options: &OpenOptions) -> Result<(), OpenError> {
    let found = read::required(db, format::FORMAT_KEY, format::decode_u32, options)?;
    if found != format::FORMAT {
        return Err(OpenError::Format {
            directory: options.directory.clone(),
            found,
            expected: format::FORMAT,
        });
    }
    let member = read::required(db, format::MEMBER_KEY, format::decode_u64, options)?;
    owner::check_member(options, member)
}
