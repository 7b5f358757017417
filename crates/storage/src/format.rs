//! Rows of the log and of raft's state. All integers are big-endian. `docs/storage-format.md` describes
//! the layout.

use bytes::Bytes;
use quenda_consensus::{EntryKind, HardState, LogEntry, Membership};

/// Version of the layout of everything in the store.
pub(crate) const FORMAT: u32 = 1;

pub(crate) const FORMAT_KEY: &[u8] = b"format";
pub(crate) const MEMBER_KEY: &[u8] = b"member";
pub(crate) const PROGRESS_KEY: &[u8] = b"progress";
pub(crate) const COMPACTED_KEY: &[u8] = b"compacted";
pub(crate) const CHECKPOINT_KEY: &[u8] = b"checkpoint";

/// Bytes that are not a row of this layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadRow;

/// Raft's hard state, and how many appends there have been: append *n + 1* begins only when append *n*
/// is durable, so a number found on disk proves that all smaller ones had been there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) hard_state: HardState,
    pub(crate) appends: u64,
}

impl Progress {
    pub(crate) fn encode(&self) -> [u8; 32] {
        let hard = self.hard_state;
        let mut row = [0; 32];
        let values = [hard.term, hard.vote, hard.commit, self.appends];
        for (field, value) in row.chunks_exact_mut(8).zip(values) {
            field.copy_from_slice(&value.to_be_bytes());
        }
        row
    }

    pub(crate) fn decode(row: &[u8]) -> Result<Progress, BadRow> {
        let mut row = Cursor(row);
        let hard_state = HardState {
            term: row.u64()?,
            vote: row.u64()?,
            commit: row.u64()?,
        };
        let appends = row.u64()?;
        row.end(Progress {
            hard_state,
            appends,
        })
    }
}

/// Index and term.
pub(crate) fn encode_position(position: (u64, u64)) -> [u8; 16] {
    let mut row = [0; 16];
    row[..8].copy_from_slice(&position.0.to_be_bytes());
    row[8..].copy_from_slice(&position.1.to_be_bytes());
    row
}

pub(crate) fn decode_position(row: &[u8]) -> Result<(u64, u64), BadRow> {
    let mut row = Cursor(row);
    let position = (row.u64()?, row.u64()?);
    row.end(position)
}

/// What a checkpoint belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CheckpointRow {
    pub(crate) applied: (u64, u64),
    pub(crate) membership: Membership,
}

impl CheckpointRow {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut row = encode_position(self.applied).to_vec();
        let membership = &self.membership;
        row.push(u8::from(membership.auto_leave));
        for list in [
            &membership.voters,
            &membership.learners,
            &membership.outgoing_voters,
            &membership.next_learners,
        ] {
            let len = u32::try_from(list.len()).expect("an ensemble has fewer members");
            row.extend_from_slice(&len.to_be_bytes());
            for id in list {
                row.extend_from_slice(&id.to_be_bytes());
            }
        }
        row
    }

    pub(crate) fn decode(row: &[u8]) -> Result<CheckpointRow, BadRow> {
        let mut row = Cursor(row);
        let applied = (row.u64()?, row.u64()?);
        let auto_leave = row.flag()?;
        let mut list = || {
            let len = row.u32()? as usize;
            // Checked before memory is taken.
            if len > row.0.len() / 8 {
                return Err(BadRow);
            }
            (0..len).map(|_| row.u64()).collect::<Result<Vec<_>, _>>()
        };
        let membership = Membership {
            voters: list()?,
            learners: list()?,
            outgoing_voters: list()?,
            next_learners: list()?,
            auto_leave,
        };
        row.end(CheckpointRow {
            applied,
            membership,
        })
    }
}

pub(crate) fn entry_key(index: u64) -> [u8; 8] {
    index.to_be_bytes()
}

pub(crate) fn encode_entry(entry: &LogEntry, row: &mut Vec<u8>) {
    row.clear();
    row.push(entry.kind.code());
    row.extend_from_slice(&entry.term.to_be_bytes());
    row.extend_from_slice(&entry.data);
}

pub(crate) fn decode_entry(key: &[u8], row: &[u8]) -> Result<LogEntry, BadRow> {
    let index = decode_u64(key)?;
    let mut row = Cursor(row);
    let kind = EntryKind::from_code(row.u8()?).ok_or(BadRow)?;
    let term = row.u64()?;
    Ok(LogEntry {
        index,
        term,
        kind,
        data: Bytes::copy_from_slice(row.0),
    })
}

pub(crate) fn decode_u64(row: &[u8]) -> Result<u64, BadRow> {
    let mut row = Cursor(row);
    let value = row.u64()?;
    row.end(value)
}

pub(crate) fn decode_u32(row: &[u8]) -> Result<u32, BadRow> {
    let mut row = Cursor(row);
    let value = row.u32()?;
    row.end(value)
}

/// Reads fields off the front.
pub(crate) struct Cursor<'a>(pub(crate) &'a [u8]);

impl<'a> Cursor<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], BadRow> {
        let (head, rest) = self.0.split_first_chunk().ok_or(BadRow)?;
        self.0 = rest;
        Ok(*head)
    }

    /// The next `len` bytes as they are.
    pub(crate) fn bytes(&mut self, len: usize) -> Result<&'a [u8], BadRow> {
        let (head, rest) = self.0.split_at_checked(len).ok_or(BadRow)?;
        self.0 = rest;
        Ok(head)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, BadRow> {
        Ok(u8::from_be_bytes(self.take()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, BadRow> {
        Ok(u32::from_be_bytes(self.take()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, BadRow> {
        Ok(u64::from_be_bytes(self.take()?))
    }

    fn flag(&mut self) -> Result<bool, BadRow> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(BadRow),
        }
    }

    pub(crate) fn end<T>(self, value: T) -> Result<T, BadRow> {
        self.0.is_empty().then_some(value).ok_or(BadRow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_and_every_other_length_is_refused() {
        let progress = Progress {
            hard_state: HardState {
                term: 3,
                vote: 1,
                commit: 9,
            },
            appends: 77,
        };
        let row = progress.encode();
        assert_eq!(Progress::decode(&row), Ok(progress));
        assert_eq!(Progress::decode(&row[..31]), Err(BadRow));

        let checkpoint = CheckpointRow {
            applied: (12, 3),
            membership: Membership {
                voters: vec![1, 2, 3],
                learners: vec![4],
                outgoing_voters: vec![1, 5],
                next_learners: vec![5],
                auto_leave: true,
            },
        };
        let row = checkpoint.encode();
        assert_eq!(CheckpointRow::decode(&row), Ok(checkpoint));
        for len in 0..row.len() {
            assert_eq!(CheckpointRow::decode(&row[..len]), Err(BadRow), "{len}");
        }
        let longer = [&row[..], &[0]].concat();
        assert_eq!(CheckpointRow::decode(&longer), Err(BadRow));
    }

    #[test]
    fn a_list_longer_than_its_row_takes_no_memory() {
        let mut row = encode_position((1, 1)).to_vec();
        row.push(0);
        row.extend_from_slice(&u32::MAX.to_be_bytes());
        assert_eq!(CheckpointRow::decode(&row), Err(BadRow));
    }

    #[test]
    fn entries_come_back() {
        let entry = LogEntry {
            index: 5,
            term: 2,
            kind: EntryKind::ConfChangeV2,
            data: Bytes::from_static(b"data"),
        };
        let mut row = Vec::new();
        encode_entry(&entry, &mut row);
        assert_eq!(decode_entry(&entry_key(5), &row), Ok(entry));
        row[0] = 9;
        assert_eq!(decode_entry(&entry_key(5), &row), Err(BadRow));
        assert_eq!(decode_entry(&entry_key(5), &row[..8]), Err(BadRow));
    }
}
