//! The pieces of a snapshot that is to be restored.

use std::collections::BTreeMap;
use std::io::{self, Read};

use quenda_proto::ErrorCode;
use xxhash_rust::xxh3::Xxh3;

use crate::checkpoint::{CheckpointSink, Table};
use crate::digest;
use crate::limits::{RESTORE_BYTES_MAX, RESTORE_PIECE_MAX};
use crate::row;

/// Pieces of one restore, the first ones of all; those of none, if there is none.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    /// Whose they are.
    restore: u64,
    pieces: Vec<Box<[u8]>>,
    bytes: u64,
    /// What they add to the digest.
    digest: u64,
    /// Pieces that the last checkpoint holds, whosever they are.
    rows: u32,
    /// Rows of them that are those of this restore.
    written: u32,
    /// Bytes behind them.
    unwritten: usize,
}

/// Pieces as a checkpoint holds them, in any order.
pub(crate) type LoadedPieces = BTreeMap<u32, (u64, Box<[u8]>)>;

impl Pieces {
    /// From the rows of a checkpoint; `None` if one is missing or another restore's.
    pub(crate) fn load(loaded: LoadedPieces) -> Option<Pieces> {
        let mut pieces = Pieces::default();
        for (number, (restore, bytes)) in loaded {
            let is_next = number == pieces.count() && (number == 0 || restore == pieces.restore);
            if !is_next {
                return None;
            }
            pieces.restore = restore;
            pieces.push(bytes);
        }
        pieces.rows = pieces.count();
        pieces.written = pieces.rows;
        pieces.unwritten = 0;
        Some(pieces)
    }

    /// Whose pieces there are, and how many.
    pub(crate) fn progress(&self) -> Option<(u64, u32)> {
        (!self.pieces.is_empty()).then(|| (self.restore, self.count()))
    }

    pub(crate) fn digest(&self) -> u64 {
        self.digest
    }

    pub(crate) fn unwritten(&self) -> usize {
        self.unwritten
    }

    fn count(&self) -> u32 {
        self.pieces.len() as u32
    }

    fn push(&mut self, bytes: Box<[u8]>) {
        let part = digest::of_piece(self.restore, self.count(), &bytes);
        self.digest = self.digest.wrapping_add(part);
        self.bytes += bytes.len() as u64;
        self.unwritten += bytes.len();
        self.pieces.push(bytes);
    }

    /// Takes a piece. The first one of a restore ends another one; one that is there already is no news.
    pub(crate) fn add(&mut self, restore: u64, number: u32, bytes: &[u8]) -> Result<(), ErrorCode> {
        if bytes.is_empty() || bytes.len() > RESTORE_PIECE_MAX {
            return Err(ErrorCode::BadArguments);
        }
        if restore != self.restore && number == 0 {
            self.clear();
            self.restore = restore;
        }
        if restore != self.restore || number > self.count() {
            return Err(ErrorCode::NoNode);
        }
        if let Some(known) = self.pieces.get(number as usize) {
            let same = **known == *bytes;
            return same.then_some(()).ok_or(ErrorCode::BadArguments);
        }
        if self.bytes + bytes.len() as u64 > RESTORE_BYTES_MAX {
            return Err(ErrorCode::SystemError);
        }
        self.push(bytes.into());
        Ok(())
    }

    /// Forgets the pieces.
    pub(crate) fn clear(&mut self) {
        *self = Pieces {
            rows: self.rows,
            ..Pieces::default()
        };
    }

    /// All pieces one behind the other with their length, if they are the ones that are meant.
    pub(crate) fn whole(&self, restore: u64, sum: (u32, u64, u64)) -> Option<(impl Read, u64)> {
        let is_whole = self.restore == restore && {
            let mut found = PieceSum::default();
            self.pieces.iter().for_each(|bytes| found.add(bytes));
            found.value() == sum
        };
        let joined = Joined {
            pieces: &self.pieces,
            at: 0,
        };
        is_whole.then_some((joined, self.bytes))
    }

    /// Writes the rows that changed.
    pub(crate) fn write_changed(&mut self, sink: &mut dyn CheckpointSink) {
        self.write_from(self.written, sink);
        for number in self.count()..self.rows {
            sink.delete(Table::Meta, &row::piece_key(number));
        }
        self.rows = self.count();
        self.written = self.rows;
        self.unwritten = 0;
    }

    /// Writes the rows from a number on.
    pub(crate) fn write_from(&self, first: u32, sink: &mut dyn CheckpointSink) {
        let mut value = Vec::new();
        for (number, bytes) in (0..).zip(&self.pieces).skip(first as usize) {
            value.clear();
            row::put_piece(&mut value, self.restore, bytes);
            sink.put(Table::Meta, &row::piece_key(number), &value);
        }
    }
}

/// Number, bytes and checksum of pieces.
#[derive(Clone, Default)]
pub struct PieceSum {
    count: u32,
    bytes: u64,
    hash: Box<Xxh3>,
}

impl PieceSum {
    /// Counts the next piece.
    pub fn add(&mut self, bytes: &[u8]) {
        self.count += 1;
        self.bytes += bytes.len() as u64;
        self.hash.update(bytes);
    }

    /// Number, bytes, checksum.
    pub fn value(&self) -> (u32, u64, u64) {
        (self.count, self.bytes, self.hash.digest())
    }
}

struct Joined<'p> {
    pieces: &'p [Box<[u8]>],
    at: usize,
}

impl Read for Joined<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some((first, rest)) = self.pieces.split_first() else {
            return Ok(0);
        };
        let left = &first[self.at..];
        let count = left.len().min(buffer.len());
        buffer[..count].copy_from_slice(&left[..count]);
        self.at += count;
        if self.at == first.len() {
            (self.pieces, self.at) = (rest, 0);
        }
        Ok(count)
    }
}
