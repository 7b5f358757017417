//! Which database is the member's: an installed image is a database beside the old one, and one small file
//! says which of them counts.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::files;
use super::open::OpenOptions;
use crate::error::OpenError;

/// The file in the data directory that names the database. Without it, the database is the first one.
const ACTIVE_FILE: &str = "ACTIVE";

/// Images that other members may read, each in a folder of its own.
pub(super) const IMAGES: &str = "images";

/// The image that is being received.
pub(super) const INCOMING: &str = "incoming";

/// One database of a member: the first is in the folder `db`, the one of the *n*th installed image in
/// `db.n`. With a log directory of its own, the first one's write-ahead log lies there, and each later
/// one's in the folder `wal.n` there.
#[derive(Clone, Copy)]
pub(super) struct Place<'o> {
    pub(super) options: &'o OpenOptions,
    number: u64,
}

impl<'o> Place<'o> {
    /// The database that counts.
    pub(super) fn active(options: &'o OpenOptions) -> Result<Place<'o>, OpenError> {
        let file = options.directory.join(ACTIVE_FILE);
        let text = files::read(&file).map_err(|error| options.io(error))?;
        let number = match text {
            None => 0,
            Some(text) => parse(&text)
                .ok_or_else(|| options.damaged(format!("the file {ACTIVE_FILE} is unreadable")))?,
        };
        Ok(Place { options, number })
    }

    /// The database that an image would be installed in.
    pub(super) fn next(self) -> Place<'o> {
        Place {
            number: self.number + 1,
            ..self
        }
    }

    /// Whether no image was ever installed.
    pub(super) fn is_first(self) -> bool {
        self.number == 0
    }

    fn name(self) -> String {
        match self.number {
            0 => "db".to_owned(),
            number => format!("db.{number}"),
        }
    }

    pub(super) fn database(self) -> PathBuf {
        self.options.directory.join(self.name())
    }

    /// The write-ahead log's folder, if it is not the database's.
    pub(super) fn log_directory(self) -> Option<PathBuf> {
        let directory = self.options.log_directory.as_ref()?;
        Some(match self.number {
            0 => directory.clone(),
            number => directory.join(format!("wal.{number}")),
        })
    }

    /// The write-ahead log's folder.
    pub(super) fn wal(self) -> PathBuf {
        self.log_directory().unwrap_or_else(|| self.database())
    }

    /// Makes this the database that counts. After an error either one may, until the directory has been
    /// synced.
    pub(super) fn activate(self) -> io::Result<()> {
        let text = format!("database {}\n", self.name());
        let directory = &self.options.directory;
        files::replace(directory, ACTIVE_FILE, &text)?;
        files::sync_directory(directory)?;
        files::step("the name is durable");
        Ok(())
    }

    /// Removes what does not belong to this database: older ones, half-made ones, and images, which no
    /// other member reads from a process that has just begun.
    pub(super) fn sweep(self) -> io::Result<()> {
        let directory = &self.options.directory;
        files::remove(&directory.join(IMAGES))?;
        files::step("the images are gone");
        self.sweep_databases()
    }

    /// Removes every other database.
    pub(super) fn sweep_databases(self) -> io::Result<()> {
        let directory = &self.options.directory;
        let databases = files::names(directory)?;
        self.remove_others(
            directory,
            databases.into_iter().filter(|name| is_database(name)),
        )?;
        let Some(logs) = &self.options.log_directory else {
            return Ok(());
        };
        let is_log =
            |name: &String| numbered(name, "wal.") || (name.ends_with(".log") && !self.is_first());
        self.remove_others(logs, files::names(logs)?.into_iter().filter(is_log))
    }

    fn remove_others(self, folder: &Path, names: impl Iterator<Item = String>) -> io::Result<()> {
        for path in names.map(|name| folder.join(name)) {
            // A configuration may call its directories what it likes, and one may lie in the other.
            let is_configured = [
                Some(&self.options.directory),
                self.options.log_directory.as_ref(),
            ]
            .into_iter()
            .flatten()
            .any(|directory| directory.starts_with(&path));
            if path != self.database() && path != self.wal() && !is_configured {
                files::remove(&path)?;
                files::step("a part of another database is gone");
            }
        }
        Ok(())
    }

    /// Removes this database, which does not count.
    pub(super) fn discard(self) -> io::Result<()> {
        files::remove(&self.database())?;
        if let Some(log) = self.log_directory() {
            files::remove(&log)?;
        }
        Ok(())
    }

    /// Makes empty folders for this database, whatever was there before.
    pub(super) fn prepare(self) -> io::Result<()> {
        let database = self.database();
        files::remove(&database)?;
        fs::create_dir(&database)?;
        files::step("an empty folder is there");
        if let Some(log) = self.log_directory() {
            files::remove(&log)?;
            fs::create_dir(&log)?;
            files::step("an empty folder for the log is there");
        }
        Ok(())
    }
}

fn is_database(name: &str) -> bool {
    name == "db" || numbered(name, "db.")
}

fn numbered(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(is_number)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn parse(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let number = text.strip_prefix("database db.")?.strip_suffix('\n')?;
    is_number(number).then(|| number.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_name_is_no_name() {
        assert_eq!(parse(b"database db.12\n"), Some(12));
        for text in [
            "",
            "database db.12",
            "database db.\n",
            "database db.+1\n",
            "db.1\n",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text:?}");
        }
        assert!(is_database("db") && is_database("db.3"));
        assert!(!is_database("db.x") && !is_database("db2") && !is_database("images"));
    }
}
