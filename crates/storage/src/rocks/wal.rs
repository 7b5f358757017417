//! A look at the write-ahead log that RocksDB does not offer: which appends are there at all, also behind
//! a damaged place. RocksDB stops there, or skips the rest of the block.
//!
//! The file is a row of 32 KiB blocks. Each holds records of a masked CRC-32C (4 bytes), the length of the
//! payload (2 bytes), a kind (1 byte), all little-endian, and the payload. A write is one record of kind
//! *full*, or a *first*, any number of *middle* and a *last*. The row that counts appends is the last thing
//! in its write.

use std::fs;
use std::io;
use std::path::Path;

use crate::format::{PROGRESS_KEY, Progress};

const BLOCK: usize = 32 << 10;
const HEADER: usize = 7;
const FULL: u8 = 1;
const LAST: u8 = 4;
const PROGRESS_LEN: usize = 32;

/// The highest append number in the log files of `directory`, 0 if there is none.
pub(super) fn newest_append(directory: &Path) -> io::Result<u64> {
    let mut newest = 0;
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "log") {
            newest = newest.max(newest_append_in(&fs::read(path)?));
        }
    }
    Ok(newest)
}

fn newest_append_in(log: &[u8]) -> u64 {
    let blocks = log.chunks(BLOCK);
    let appends = blocks.flat_map(|block| Records { rest: block }.filter_map(append_number));
    appends.max().unwrap_or(0)
}

/// The append that a record ends, if it ends one. What a client sent is never at the end of a record, so
/// it cannot pass for a number.
fn append_number(payload: &[u8]) -> Option<u64> {
    let (rest, row) = payload.split_last_chunk::<PROGRESS_LEN>()?;
    let rest = rest.strip_suffix(&[PROGRESS_LEN as u8])?;
    let rest = rest.strip_suffix(PROGRESS_KEY)?;
    rest.strip_suffix(&[PROGRESS_KEY.len() as u8])?;
    Progress::decode(row).ok().map(|progress| progress.appends)
}

/// The intact payloads of a block that end a write. The length of a damaged record is taken on trust, to
/// find the next one.
struct Records<'l> {
    rest: &'l [u8],
}

impl<'l> Iterator for Records<'l> {
    type Item = &'l [u8];

    fn next(&mut self) -> Option<&'l [u8]> {
        loop {
            let (header, rest) = self.rest.split_first_chunk::<HEADER>()?;
            let [c0, c1, c2, c3, l0, l1, kind] = *header;
            let payload = rest.get(..usize::from(u16::from_le_bytes([l0, l1])))?;
            if kind == 0 && payload.is_empty() {
                return None;
            }
            self.rest = &rest[payload.len()..];
            let stored = u32::from_le_bytes([c0, c1, c2, c3]);
            let ends_a_write = kind == FULL || kind == LAST;
            if ends_a_write && stored == checksum(kind, payload) {
                return Some(payload);
            }
        }
    }
}

/// CRC-32C of kind and payload, masked as RocksDB does it for checksums that are stored beside what they
/// cover.
fn checksum(kind: u8, payload: &[u8]) -> u32 {
    let crc = crc32c::crc32c_append(crc32c::crc32c(&[kind]), payload);
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quenda_consensus::HardState;

    fn record(kind: u8, payload: &[u8]) -> Vec<u8> {
        let mut record = checksum(kind, payload).to_le_bytes().to_vec();
        record.extend_from_slice(&(payload.len() as u16).to_le_bytes());
        record.push(kind);
        record.extend_from_slice(payload);
        record
    }

    fn append(number: u64) -> Vec<u8> {
        let progress = Progress {
            hard_state: HardState::default(),
            appends: number,
        };
        let head = b"some entries\x05\x02\x08progress\x20";
        record(FULL, &[&head[..], &progress.encode()].concat())
    }

    #[test]
    fn finds_the_newest_append_also_behind_a_damaged_one() {
        let mut log = [append(1), append(2), append(3)].concat();
        assert_eq!(newest_append_in(&log), 3);
        let second = append(1).len();
        log[second + HEADER] ^= 1;
        assert_eq!(newest_append_in(&log), 3);
        let third = second + append(2).len();
        log[third + HEADER] ^= 1;
        assert_eq!(newest_append_in(&log), 1);
    }

    #[test]
    fn believes_only_the_end_of_intact_records() {
        let mut inside = append(9)[HEADER..].to_vec();
        inside.extend_from_slice(b"a row behind it");
        assert_eq!(newest_append_in(&record(FULL, &inside)), 0);
        let torn = append(9);
        for end in 0..torn.len() {
            assert_eq!(newest_append_in(&torn[..end]), 0, "{end}");
        }
        assert_eq!(newest_append_in(&[0; 3 * BLOCK]), 0);
    }
}
