//! Whose directory it is. This is checked before a database is touched: RocksDB forgets a log that it does
//! not find.

use std::fs;
use std::io;
use std::path::Path;

use super::files;
use super::open::OpenOptions;
use super::place::Place;
use crate::error::OpenError;

/// The file in the data directory, and in a separate log directory, that says whose it is.
const OWNER_FILE: &str = "MEMBER";

/// The member that a directory belongs to.
pub(super) fn member(options: &OpenOptions) -> Result<u64, OpenError> {
    let text =
        owner_of(options, &options.directory)?.ok_or_else(|| options.io("there is no store"))?;
    parse_member(&text)
        .ok_or_else(|| options.damaged(format!("the file {OWNER_FILE} is unreadable")))
}

/// Checks the data directory, and claims it if it is new.
pub(super) fn check(options: &OpenOptions, exists: bool) -> Result<(), OpenError> {
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

/// Checks a directory without a store: unless a member has claimed it, nothing may be there that is another server's.
pub(super) fn check_unclaimed(options: &OpenOptions) -> Result<(), OpenError> {
    match owner_of(options, &options.directory)? {
        Some(_) => Ok(()),
        None => refuse_zookeeper(options),
    }
}

/// Whoever starts on a ZooKeeper's directory expects its znodes.
fn refuse_zookeeper(options: &OpenOptions) -> Result<(), OpenError> {
    let is_data = |name: &String| name.starts_with("snapshot.") || name.starts_with("log.");
    let directories = [Some(&options.directory), options.log_directory.as_ref()];
    for directory in directories.into_iter().flatten() {
        let files =
            files::names(&directory.join("version-2")).map_err(|error| options.io(error))?;
        if files.iter().any(is_data) {
            return Err(OpenError::ZooKeeper {
                directory: directory.clone(),
            });
        }
    }
    Ok(())
}

/// A log directory that is empty, or another member's, would look like a store without recent writes.
pub(super) fn check_log_directory(place: Place<'_>, exists: bool) -> Result<(), OpenError> {
    let options = place.options;
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
                return check_log_folder(place);
            }
            refuse_old_log(options, directory)
        }
    }
}

/// The log of an installed database is a folder of its own.
fn check_log_folder(place: Place<'_>) -> Result<(), OpenError> {
    let folder = place.wal();
    if folder.is_dir() {
        return Ok(());
    }
    let text = format!("has lost the folder {}", folder.display());
    Err(place.options.misplaced_log(text))
}

/// A new database must not find the log of an old one.
fn refuse_old_log(options: &OpenOptions, directory: &Path) -> Result<(), OpenError> {
    let is_log = |name: &str| name.ends_with(".log");
    let names = files::names(directory).map_err(|error| options.io(error))?;
    if names.iter().any(|name| is_log(name)) {
        return Err(options.misplaced_log(format!(
            "is {}, which holds the log of a database that is gone; empty it as well",
            directory.display()
        )));
    }
    Ok(())
}

pub(super) fn check_member(options: &OpenOptions, found: u64) -> Result<(), OpenError> {
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
    let bytes = files::read(&directory.join(OWNER_FILE)).map_err(|error| options.io(error))?;
    // Bytes that are no text are found out by whoever parses it.
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

fn parse_member(text: &str) -> Option<u64> {
    text.lines().next()?.strip_prefix("member ")?.parse().ok()
}

fn parse_owner(text: &str) -> Option<(u64, &str)> {
    let place = text.lines().nth(1)?.strip_prefix("log ")?;
    Some((parse_member(text)?, place))
}

fn claim(directory: &Path, text: &str) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    files::replace(directory, OWNER_FILE, text)?;
    files::sync_directory(directory)
}
