//! The files of the write-ahead log, read as far as they are intact. RocksDB does not offer that.
//!
//! A file is a row of 32 KiB blocks. Each holds records of a masked CRC-32C (4 bytes), the length of the
//! payload (2 bytes), a kind (1 byte), in a file that may overwrite an older one its own number (4 bytes), all
//! little-endian, and the payload. A write is one record of kind *full*, or a *first*, any number of *middle*
//! and a *last*. Records of a former life of the file have another number.

use std::borrow::Cow;

use super::seal::{self, Seal};
use crate::format::{Cursor, PROGRESS_KEY, Progress};

const BLOCK: usize = 32 << 10;
const HEADER: usize = 7;
/// With the number of the file.
const NUMBERED_HEADER: usize = 11;
const PROGRESS_LEN: usize = 32;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Full,
    First,
    Middle,
    Last,
}

/// A record as its header describes it.
struct Record<'l> {
    part: Part,
    numbered: bool,
    payload: &'l [u8],
    /// Bytes with the header.
    len: usize,
    intact: bool,
}

impl<'l> Record<'l> {
    /// The record at the start of `rest`, which is the rest of a block.
    fn read(rest: &'l [u8], number: u64) -> Option<Record<'l>> {
        let (header, _) = rest.split_first_chunk::<HEADER>()?;
        let [c0, c1, c2, c3, l0, l1, kind] = *header;
        let (part, numbered) = part(kind)?;
        let start = if numbered { NUMBERED_HEADER } else { HEADER };
        let len = start + usize::from(u16::from_le_bytes([l0, l1]));
        let covered = rest.get(HEADER - 1..len)?;
        let own = (number as u32).to_le_bytes();
        let is_own = !numbered || covered[1..].starts_with(&own);
        let stored = u32::from_le_bytes([c0, c1, c2, c3]);
        Some(Record {
            part,
            numbered,
            payload: &rest[start..len],
            len,
            intact: is_own && stored == masked(crc32c::crc32c(covered)),
        })
    }
}

fn part(kind: u8) -> Option<(Part, bool)> {
    const PARTS: [Part; 4] = [Part::Full, Part::First, Part::Middle, Part::Last];
    let place = usize::from(kind).checked_sub(1)?;
    let part = *PARTS.get(place % PARTS.len())?;
    (place < 2 * PARTS.len()).then_some((part, place >= PARTS.len()))
}

/// As RocksDB does it for checksums that are stored beside what they cover.
fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// What is in one file of the log.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LogFile {
    /// The sequence number that the first write begins with, and the one behind the last.
    pub(super) sequence: Option<(u64, u64)>,
    /// Where the writes end that are there without a gap from the start of the file on.
    pub(super) end: usize,
    /// The newest append among them.
    pub(super) newest: u64,
    /// The newest append behind them.
    pub(super) beyond: u64,
    /// Whether older blocks may have been overwritten.
    pub(super) numbered: bool,
    /// What its writes end with, as far as that is known.
    pub(super) seal: Option<Seal>,
}

impl LogFile {
    /// Reads the file of this number. `before` is the seal of the file before it.
    pub(super) fn read(log: &[u8], number: u64, before: Option<Seal>) -> LogFile {
        let mut file = LogFile::default();
        let mut seal = None;
        let mut writes = Writes {
            log,
            number,
            at: 0,
            numbered: None,
        };
        while let Some(payload) = writes.next_payload() {
            let Some(write) = Write::read(&payload) else {
                break;
            };
            let numbered = writes.numbered == Some(true);
            // RocksDB itself writes one that changes nothing at the start of a log.
            if numbered && write.count > 0 {
                match (seal, write.seal) {
                    (None, Some(own)) => seal = Some(own),
                    (Some(seal), Some(own)) if seal == own => {}
                    _ => break,
                }
            }
            file.numbered = numbered;
            file.end = writes.at;
            file.newest = file.newest.max(write.append);
            let first = file.sequence.map_or(write.sequence, |(first, _)| first);
            file.sequence = Some((first, write.sequence + u64::from(write.count)));
        }
        file.seal = seal.or(before);
        file.beyond = newest_beyond(log, file.end, number, file.seal);
        file
    }
}

/// Intact payloads, one behind the other, each of a whole write.
struct Writes<'l> {
    log: &'l [u8],
    number: u64,
    /// Behind the last one.
    at: usize,
    numbered: Option<bool>,
}

impl<'l> Writes<'l> {
    fn next_payload(&mut self) -> Option<Cow<'l, [u8]>> {
        let mut at = self.at;
        let mut parts: Option<Vec<u8>> = None;
        loop {
            let record = self.record(&mut at)?;
            match (record.part, &mut parts) {
                (Part::Full, None) => {
                    self.at = at;
                    return Some(Cow::Borrowed(record.payload));
                }
                (Part::First, None) => parts = Some(record.payload.to_vec()),
                (Part::Middle, Some(parts)) => parts.extend_from_slice(record.payload),
                (Part::Last, Some(whole)) => {
                    whole.extend_from_slice(record.payload);
                    self.at = at;
                    return parts.map(Cow::Owned);
                }
                _ => return None,
            }
        }
    }

    fn record(&mut self, at: &mut usize) -> Option<Record<'l>> {
        let rest = rest_of_block(self.log, *at);
        if is_padding(rest, *at) {
            *at = (*at / BLOCK + 1) * BLOCK;
            return self.record(at);
        }
        let record = Record::read(rest, self.number).filter(|record| record.intact)?;
        if *self.numbered.get_or_insert(record.numbered) != record.numbered {
            return None;
        }
        *at += record.len;
        Some(record)
    }
}

fn rest_of_block(log: &[u8], at: usize) -> &[u8] {
    let end = (at / BLOCK + 1) * BLOCK;
    log.get(at..end.min(log.len())).unwrap_or_default()
}

/// Whether the rest of a block is too short for a record.
fn is_padding(rest: &[u8], at: usize) -> bool {
    let ends_block = (at + rest.len()).is_multiple_of(BLOCK) && !rest.is_empty();
    ends_block
        && (rest.len() < HEADER || rest.len() < NUMBERED_HEADER && rest.iter().all(|b| *b == 0))
}

/// The newest append that ends behind `end`, where something is not intact. With a seal to know them by, writes are
/// looked for at every byte. Otherwise the lengths in headers are taken on trust, to find the next record; each
/// block begins with one.
fn newest_beyond(log: &[u8], end: usize, number: u64, seal: Option<Seal>) -> u64 {
    let own = (number as u32).to_le_bytes();
    let mut newest = 0;
    let mut at = end;
    while at < log.len() {
        let mut rest = rest_of_block(log, at);
        at = (at / BLOCK + 1) * BLOCK;
        while rest.len() >= HEADER {
            let may_be_one = seal.is_none() || rest[HEADER..].starts_with(&own);
            let record = may_be_one.then(|| Record::read(rest, number)).flatten();
            let step = match record {
                Some(record) if record.intact => {
                    if matches!(record.part, Part::Full | Part::Last) {
                        newest = newest.max(append_at_end(&record, seal));
                    }
                    record.len
                }
                _ if seal.is_some() => 1,
                Some(record) => record.len,
                None => break,
            };
            rest = &rest[step..];
        }
    }
    newest
}

/// The append that a record ends, 0 if it ends none. What a client sent is never at the end of a record, so it
/// cannot pass for a number.
fn append_at_end(record: &Record<'_>, seal: Option<Seal>) -> u64 {
    let mut payload = record.payload;
    if record.numbered {
        let Some((rest, found)) = payload.split_last_chunk::<{ seal::LEN }>() else {
            return 0;
        };
        let Some(rest) = rest.strip_suffix(&[LOG_DATA, seal::LEN as u8]) else {
            return 0;
        };
        if seal.is_some_and(|seal| seal != *found) {
            return 0;
        }
        payload = rest;
    }
    let number = || {
        let (rest, row) = payload.split_last_chunk::<PROGRESS_LEN>()?;
        let rest = rest.strip_suffix(&[PROGRESS_LEN as u8])?;
        let rest = rest.strip_suffix(PROGRESS_KEY)?;
        rest.strip_suffix(&[PROGRESS_KEY.len() as u8])?;
        Progress::decode(row).ok().map(|progress| progress.appends)
    };
    number().unwrap_or(0)
}

// Kinds of changes in a write. Others are not used here.
const DELETE_DEFAULT: u8 = 0;
const PUT_DEFAULT: u8 = 1;
const LOG_DATA: u8 = 3;
const DELETE: u8 = 4;
const PUT: u8 = 5;
const NO_CHANGE: u8 = 13;
const DELETE_RANGE: u8 = 14;

/// What one write tells. RocksDB joins writes that wait at the same time, so there may be several seals in it,
/// and the row that counts appends need not be the last one.
struct Write {
    sequence: u64,
    count: u32,
    /// The append it belongs to, or 0.
    append: u64,
    /// What it ends with.
    seal: Option<Seal>,
}

impl Write {
    /// `None` for bytes that are not a write as the store makes them.
    fn read(payload: &[u8]) -> Option<Write> {
        let (sequence, rest) = payload.split_first_chunk()?;
        let (count, rest) = rest.split_first_chunk()?;
        let mut write = Write {
            sequence: u64::from_le_bytes(*sequence),
            count: u32::from_le_bytes(*count),
            append: 0,
            seal: None,
        };
        let mut changes = Cursor(rest);
        let mut counted = 0;
        while !changes.0.is_empty() {
            counted += write.change(&mut changes)?;
        }
        (counted == write.count).then_some(write)
    }

    /// Reads the next change; how many sequence numbers it takes.
    fn change(&mut self, changes: &mut Cursor<'_>) -> Option<u32> {
        let kind = changes.u8().ok()?;
        if matches!(kind, DELETE | PUT | DELETE_RANGE) {
            varint(changes)?;
        }
        self.seal = None;
        match kind {
            NO_CHANGE => return Some(0),
            LOG_DATA => {
                self.seal = text(changes)?.try_into().ok();
                return Some(0);
            }
            DELETE | DELETE_DEFAULT => {
                text(changes)?;
            }
            PUT | PUT_DEFAULT | DELETE_RANGE => {
                let (key, value) = (text(changes)?, text(changes)?);
                // No row of another table has this key and this length.
                if kind == PUT && key == PROGRESS_KEY && value.len() == PROGRESS_LEN {
                    self.append = self.append.max(Progress::decode(value).ok()?.appends);
                }
            }
            _ => return None,
        }
        Some(1)
    }
}

fn text<'a>(changes: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let len = varint(changes)?;
    changes.bytes(len).ok()
}

fn varint(changes: &mut Cursor<'_>) -> Option<usize> {
    let mut value = 0;
    for shift in (0..u32::BITS).step_by(7) {
        let byte = changes.u8().ok()?;
        value |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests;
