//! The file of the audit log: grows by whole lines, is turned over at its size, and is opened anew when it was moved.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::config::AuditSettings;

/// An open file.
#[derive(Debug)]
pub(super) struct AuditFile {
    path: PathBuf,
    bytes_max: u64,
    kept: u32,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    file: File,
    inode: u64,
    length: u64,
}

impl AuditFile {
    pub(super) fn open(settings: &AuditSettings) -> io::Result<AuditFile> {
        let mut file = AuditFile {
            path: settings.path.clone(),
            bytes_max: settings.bytes_max,
            kept: settings.kept,
            open: None,
        };
        file.current()?;
        Ok(file)
    }

    /// Appends whole lines, or nothing.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        self.turn_over_if_full()?;
        let open = self.current()?;
        match open.file.write_all(lines) {
            Ok(()) => {
                open.length += lines.len() as u64;
                Ok(())
            }
            Err(error) => {
                // A part of a line must not stay; where it cannot be taken away the next attempt starts anew anyway.
                let length = open.length;
                let cut = open.file.set_len(length);
                self.open = None;
                cut.and(Err(error))
            }
        }
    }

    /// The file under the path, also after somebody moved the one before.
    fn current(&mut self) -> io::Result<&mut Open> {
        let inode = fs::metadata(&self.path).map(|found| found.ino()).ok();
        let kept = self.open.take().filter(|open| Some(open.inode) == inode);
        let open = match kept {
            Some(open) => open,
            None => Open::at(&self.path)?,
        };
        Ok(self.open.insert(open))
    }

    /// As logback's fixed window: `.1` is the newest of the old ones.
    fn turn_over_if_full(&mut self) -> io::Result<()> {
        let length = self.current()?.length;
        if self.bytes_max == 0 || length < self.bytes_max {
            return Ok(());
        }
        self.open = None;
        for number in (1..self.kept).rev() {
            rename_if_there(&self.numbered(number), &self.numbered(number + 1))?;
        }
        if self.kept == 0 {
            return fs::remove_file(&self.path);
        }
        rename_if_there(&self.path, &self.numbered(1))
    }

    fn numbered(&self, number: u32) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }
}

impl Open {
    /// Paths and who does what are nobody's business but the operators'.
    fn at(path: &Path) -> io::Result<Open> {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o640)
            .open(path)?;
        let found = file.metadata()?;
        Ok(Open {
            inode: found.ino(),
            length: found.len(),
            file,
        })
    }
}

fn rename_if_there(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::AuditFormat;

    fn settings(path: PathBuf, bytes_max: u64, kept: u32) -> AuditSettings {
        AuditSettings {
            path,
            format: AuditFormat::Text,
            bytes_max,
            kept,
        }
    }

    #[test]
    fn a_full_file_is_turned_over_and_the_oldest_goes() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("audit.log");
        let mut file = AuditFile::open(&settings(path.clone(), 6, 2)).expect("opens");
        for line in ["one-1\n", "two-2\n", "three\n", "four\n"] {
            file.append(line.as_bytes()).expect("is written");
        }
        let text = |name: &str| fs::read_to_string(folder.path().join(name)).expect("is there");
        assert_eq!(text("audit.log"), "four\n");
        assert_eq!(text("audit.log.1"), "three\n");
        assert_eq!(text("audit.log.2"), "two-2\n");
        assert!(!folder.path().join("audit.log.3").exists());
    }

    #[test]
    fn a_file_that_was_moved_is_made_anew_and_one_that_is_there_goes_on() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("audit.log");
        fs::write(&path, "before\n").expect("is written");
        let mut file = AuditFile::open(&settings(path.clone(), 0, 2)).expect("opens");
        file.append(b"a\n").expect("is written");
        let moved = folder.path().join("moved");
        fs::rename(&path, &moved).expect("is moved");
        file.append(b"b\n").expect("is written");
        assert_eq!(fs::read_to_string(&moved).expect("is there"), "before\na\n");
        assert_eq!(fs::read_to_string(&path).expect("is there"), "b\n");
    }
}
