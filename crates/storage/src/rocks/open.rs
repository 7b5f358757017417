//! Opening: whose directory it is, whether it is whole, and where a torn tail ends.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use quenda_consensus::Recovered;
use rocksdb::{DB, DBRecoveryMode, ErrorKind, WriteBatch};
use tracing::warn;

use super::options::{self, Buffers, LOG, RAFT_META};
use super::{read, wal};
use crate::error::OpenError;
use crate::format::{self, CheckpointRow, Progress};
use crate::space::Space;

/// The file in the data directory, and in a separate log directory, that says whose it is. It is checked
/// before the database is touched: RocksDB forgets a log that it does not find.
const OWNER_FILE: &str = "MEMBER";

/// Where a store is, and what it is when there is none yet.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// The data directory; the database is the folder `db` in it.
    pub directory: PathBuf,
    /// A directory of its own for the write-ahead log, if it is to have one.
    pub log_directory: Option<PathBuf>,
    /// The member that the store belongs to.
    pub member: u64,
    /// What an empty directory starts from: [`Recovered::bootstrap`] or [`Recovered::joining`].
    pub start: Recovered,
}

impl OpenOptions {
    pub(super) fn database(&self) -> PathBuf {
        self.directory.join("db")
    }

    fn wal(&self) -> PathBuf {
        self.log_directory
            .clone()
            .unwrap_or_else(|| self.database())
    }

    pub(super) fn damaged(&self, detail: impl ToString) -> OpenError {
        OpenError::damaged(&self.directory, detail)
    }

    pub(super) fn io(&self, detail: impl ToString) -> OpenError {
        OpenError::io(&self.directory, detail)
    }

    fn misplaced_log(&self, detail: impl ToString) -> OpenError {
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
    let exists = check_database(options)?;
    if !exists && missing == Missing::Damage {
        return Err(options.damaged("the database has vanished"));
    }
    check_owner(options, exists)?;
    check_log_directory(options, exists)?;
    fs::create_dir_all(options.database()).map_err(|error| options.io(error))?;
    if exists && missing == Missing::Create {
        refuse_if_in_use(options)?;
        look_without_touching(options)?;
    }
    let db = open_whole_or_cut(options)?;
    if read::meta(&db, format::FORMAT_KEY, options)?.is_none() {
        if missing == Missing::Damage || holds_anything(&db) {
            return Err(options.damaged("the row that names its format is missing"));
        }
        create(&db, options)?;
    }
    check_identity(&db, options)?;
    Ok(db)
}

/// Whether there is a database. RocksDB would silently start an empty one beside the remains of another.
fn check_database(options: &OpenOptions) -> Result<bool, OpenError> {
    let database = options.database();
    let names = names(options, &database)?;
    if names.iter().any(|name| name == "CURRENT") {
        return Ok(true);
    }
    let is_remains = |name: &str| name.ends_with(".sst") || name.ends_with(".log");
    if names.iter().any(|name| is_remains(name)) {
        let current = database.join("CURRENT");
        return Err(options.damaged(format!("{} is missing", current.display())));
    }
    Ok(false)
}

/// Asks for the lock that RocksDB holds while a database is open, and gives it back.
fn refuse_if_in_use(options: &OpenOptions) -> Result<(), OpenError> {
    use rustix::fs::{FlockOperation, fcntl_lock};
    let lock = options.database().join("LOCK");
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

/// Looks for the row that names the format before the database is opened for writing. With a damaged
/// manifest RocksDB takes an older state for the newest and deletes the files that are not part of it, which
/// would make the damage final.
fn look_without_touching(options: &OpenOptions) -> Result<(), OpenError> {
    let (database, families) = setup(options, DBRecoveryMode::PointInTime);
    let db = DB::open_cf_descriptors_read_only(&database, options.database(), families, false)
        .map_err(|error| explain(options, &error))?;
    match read::meta(&db, format::FORMAT_KEY, options)? {
        Some(_) => Ok(()),
        // A first start that was killed before it wrote anything.
        None if !holds_anything(&db) && !holds_tables(options)? => Ok(()),
        None => Err(options.damaged("the row that names its format is missing")),
    }
}

/// Whether there are files with rows, whatever the manifest says of them.
fn holds_tables(options: &OpenOptions) -> Result<bool, OpenError> {
    let names = names(options, &options.database())?;
    Ok(names.iter().any(|name| name.ends_with(".sst")))
}

/// The names in a directory; none if it does not exist.
fn names(options: &OpenOptions, directory: &Path) -> Result<Vec<String>, OpenError> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(options.io(error)),
    };
    entries
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<Vec<String>>>()
        .map_err(|error| options.io(error))
}

fn check_owner(options: &OpenOptions, exists: bool) -> Result<(), OpenError> {
    let Some(text) = owner_of(options, &options.directory)? else {
        if exists {
            let file = options.directory.join(OWNER_FILE);
            return Err(options.damaged(format!("{} is missing", file.display())));
        }
        refuse_zookeeper(options)?;
        let place = if options.log_directory.is_some() {
            "apart"
        } else {
            "inside"
        };
        let text = format!("member {}\nlog {place}\n", options.member);
        return claim(&options.directory, &text).map_err(|error| options.io(error));
    };
    let (member, place) = parse_owner(&text)
        .ok_or_else(|| options.damaged(format!("the file {OWNER_FILE} is unreadable")))?;
    check_member(options, member)?;
    match (place, &options.log_directory) {
        ("apart", None) => Err(options.misplaced_log("is a separate one, but none is configured: set dataLogDir to it")),
        ("inside", Some(_)) => Err(options.misplaced_log(
            "is the data directory itself; a separate one must be configured before the first start",
        )),
        _ => Ok(()),
    }
}

/// Whoever starts on a ZooKeeper's directory expects its znodes.
fn refuse_zookeeper(options: &OpenOptions) -> Result<(), OpenError> {
    let is_data = |name: &String| name.starts_with("snapshot.") || name.starts_with("log.");
    let directories = [Some(&options.directory), options.log_directory.as_ref()];
    for directory in directories.into_iter().flatten() {
        let files = names(options, &directory.join("version-2"))?;
        if files.iter().any(is_data) {
            return Err(OpenError::ZooKeeper {
                directory: directory.clone(),
            });
        }
    }
    Ok(())
}

/// A log directory that is empty, or another member's, would look like a store without recent writes.
fn check_log_directory(options: &OpenOptions, exists: bool) -> Result<(), OpenError> {
    let Some(directory) = &options.log_directory else {
        return Ok(());
    };
    match (owner_of(options, directory)?, exists) {
        (None, true) => Err(options.misplaced_log(format!(
            "is not {}: the file {OWNER_FILE} is missing there. If the log is lost, restore both from a \
             backup; in an ensemble, empty the data directory as well and let the member fetch the state \
             from the leader",
            directory.display()
        ))),
        (None, false) => {
            refuse_old_log(options, directory)?;
            let text = format!("member {}\n", options.member);
            claim(directory, &text).map_err(|error| options.io(error))
        }
        (Some(text), _) => {
            let member = parse_member(&text).ok_or_else(|| {
                options.misplaced_log(format!("has an unreadable file {OWNER_FILE}"))
            })?;
            if member != options.member {
                return Err(options.misplaced_log(format!(
                    "is {}, which belongs to member {member}",
                    directory.display()
                )));
            }
            if exists {
                return Ok(());
            }
            refuse_old_log(options, directory)
        }
    }
}

/// A new database must not find the log of an old one.
fn refuse_old_log(options: &OpenOptions, directory: &Path) -> Result<(), OpenError> {
    let is_log = |name: &str| name.ends_with(".log");
    if names(options, directory)?.iter().any(|name| is_log(name)) {
        return Err(options.misplaced_log(format!(
            "is {}, which holds the log of a database that is gone; empty it as well",
            directory.display()
        )));
    }
    Ok(())
}

fn check_member(options: &OpenOptions, found: u64) -> Result<(), OpenError> {
    if found == options.member {
        return Ok(());
    }
    Err(OpenError::WrongMember {
        directory: options.directory.clone(),
        found,
        expected: options.member,
    })
}

fn owner_of(options: &OpenOptions, directory: &Path) -> Result<Option<String>, OpenError> {
    match fs::read(directory.join(OWNER_FILE)) {
        // Bytes that are no text are found out by whoever parses it.
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(options.io(error)),
    }
}

fn parse_member(text: &str) -> Option<u64> {
    text.lines().next()?.strip_prefix("member ")?.parse().ok()
}

fn parse_owner(text: &str) -> Option<(u64, &str)> {
    let place = text.lines().nth(1)?.strip_prefix("log ")?;
    Some((parse_member(text)?, place))
}

/// Writes the owner's file in one piece: under another name first.
fn claim(directory: &Path, text: &str) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let unfinished = directory.join("MEMBER.new");
    fs::write(&unfinished, text)?;
    fs::File::open(&unfinished)?.sync_all()?;
    fs::rename(&unfinished, directory.join(OWNER_FILE))?;
    fs::File::open(directory)?.sync_all()
}

/// A log that ends cleanly opens at once. Otherwise its end is torn, which a power cut does to the last,
/// unacknowledged write, and is cut there; but if a later append can still be read, the damage lies in
/// what had been acknowledged.
fn open_whole_or_cut(options: &OpenOptions) -> Result<DB, OpenError> {
    let error = match attempt(options, DBRecoveryMode::AbsoluteConsistency) {
        Ok(db) => return Ok(db),
        Err(error) => error,
    };
    if error.kind() != ErrorKind::Corruption {
        return Err(explain(options, &error));
    }
    let readable = appends_readable(options)?;
    let beyond = wal::newest_append(&options.wal()).map_err(|error| options.io(error))?;
    if beyond > readable + 1 {
        return Err(options.damaged(format!(
            "the write-ahead log is unreadable behind append {readable}, but append {beyond} is there \
             ({error})"
        )));
    }
    warn!(
        directory = %options.directory.display(), append = readable, %error,
        "the write-ahead log ends in a torn record; it is cut there"
    );
    attempt(options, DBRecoveryMode::PointInTime).map_err(|error| explain(options, &error))
}

fn attempt(options: &OpenOptions, mode: DBRecoveryMode) -> Result<DB, rocksdb::Error> {
    let (database, families) = setup(options, mode);
    DB::open_cf_descriptors(&database, options.database(), families)
}

/// The newest append in front of the damage. Changes nothing.
fn appends_readable(options: &OpenOptions) -> Result<u64, OpenError> {
    let (database, families) = setup(options, DBRecoveryMode::PointInTime);
    let db = DB::open_cf_descriptors_read_only(&database, options.database(), families, false)
        .map_err(|error| explain(options, &error))?;
    Ok(read::progress(&db, options)?.appends)
}

fn setup(
    options: &OpenOptions,
    mode: DBRecoveryMode,
) -> (rocksdb::Options, Vec<rocksdb::ColumnFamilyDescriptor>) {
    // Where the size of the disk is unknown, assume a large one.
    let space = Space::of(&options.directory).unwrap_or(Space {
        free_bytes: u64::MAX,
        total_bytes: u64::MAX,
    });
    let buffers = Buffers::for_disk(space);
    (
        options::database(options.log_directory.as_deref(), buffers, mode),
        options::column_families(buffers),
    )
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
    db.write_opt(batch, &options::synced())
        .map_err(|error| options.io(error))
}

fn check_identity(db: &DB, options: &OpenOptions) -> Result<(), OpenError> {
    let found = read::required(db, format::FORMAT_KEY, format::decode_u32, options)?;
    if found != format::FORMAT {
        return Err(OpenError::Format {
            directory: options.directory.clone(),
            found,
            expected: format::FORMAT,
        });
    }
    let member = read::required(db, format::MEMBER_KEY, format::decode_u64, options)?;
    check_member(options, member)
}
