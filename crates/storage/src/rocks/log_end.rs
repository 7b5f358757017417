//! Where the write-ahead log ends, and whether what is missing there had been confirmed.
//!
//! What one file has behind its last write may be the torn next one, or remains of the file that it overwrote.
//! Neither RocksDB nor anybody else can tell them apart at that place. So the end is found before RocksDB opens
//! the log, and everything behind it is cut off: RocksDB reads only what is intact.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::wal::LogFile;

/// What is there of a write-ahead log.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LogEnd {
    /// The newest append that is there without a gap; 0 if there is none.
    pub(super) newest: u64,
    /// The newest append behind the first gap; 0 if there is none.
    pub(super) beyond: u64,
    /// Files that are longer than what of them counts, with the length that does.
    excess: Vec<(PathBuf, u64)>,
}

impl LogEnd {
    /// Looks at the files of a folder from the number `first` on. Those before are of no use any more.
    pub(super) fn find(directory: &Path, first: u64) -> io::Result<LogEnd> {
        let mut end = LogEnd::default();
        let (mut expected, mut seal) = (None, None);
        let (mut gap, mut excess_before) = (false, false);
        for (number, path) in log_files(directory, first)? {
            let bytes = fs::read(&path)?;
            let file = LogFile::read(&bytes, number, seal);
            seal = file.seal;
            let begins = file.sequence.map(|(first, _)| first);
            let must_fit = file.numbered || excess_before;
            gap |= must_fit && begins.is_some() && expected.is_some() && begins != expected;
            let len = if gap { 0 } else { file.end };
            if gap {
                end.beyond = end.beyond.max(file.newest);
            } else {
                end.newest = end.newest.max(file.newest);
                expected = file.sequence.map(|(_, next)| next).or(expected);
            }
            end.beyond = end.beyond.max(file.beyond);
            excess_before = len < bytes.len();
            if excess_before {
                end.excess.push((path, len as u64));
            }
        }
        Ok(end)
    }

    /// Whether there is anything to cut off.
    pub(super) fn is_exact(&self) -> bool {
        self.excess.is_empty()
    }

    /// Cuts off what does not count, from the end backwards: a crash meanwhile leaves no gap that is not seen.
    pub(super) fn cut(&self) -> io::Result<()> {
        for (path, len) in self.excess.iter().rev() {
            let file = fs::File::options().write(true).open(path)?;
            file.set_len(*len)?;
            file.sync_all()?;
            super::files::step("a log file is cut");
        }
        Ok(())
    }
}

fn log_files(directory: &Path, first: u64) -> io::Result<Vec<(u64, PathBuf)>> {
    let names = super::files::names(directory)?;
    let number = |name: &String| name.strip_suffix(".log")?.parse().ok();
    let mut files: Vec<(u64, PathBuf)> = names
        .iter()
        .filter_map(|name| Some((number(name)?, directory.join(name))))
        .filter(|(number, _)| *number >= first)
        .collect();
    files.sort();
    Ok(files)
}
