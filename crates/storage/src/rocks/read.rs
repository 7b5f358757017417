//! Reading rows back.

use quenda_consensus::{LogEntry, Recovered};
use quenda_tree::Table;
use rocksdb::{ColumnFamily, DB, Direction, IteratorMode};

use super::open::OpenOptions;
use super::options::{self, LOG, RAFT_META};
use crate::error::{OpenError, StoreError};
use crate::format::{self, BadRow, CheckpointRow, Progress};
use crate::store::RowVisitor;

pub(super) fn family<'d>(db: &'d DB, name: &str) -> Result<&'d ColumnFamily, StoreError> {
    db.cf_handle(name)
        .ok_or_else(|| StoreError::Read(format!("column family {name} is missing")))
}

/// One row of raft's own state.
pub(super) fn meta(
    db: &DB,
    key: &[u8],
    options: &OpenOptions,
) -> Result<Option<Vec<u8>>, OpenError> {
    let family = family(db, RAFT_META).map_err(|error| options.damaged(error))?;
    db.get_cf(family, key)
        .map_err(|error| options.damaged(error))
}

pub(super) fn required<T>(
    db: &DB,
    key: &[u8],
    decode: impl Fn(&[u8]) -> Result<T, BadRow>,
    options: &OpenOptions,
) -> Result<T, OpenError> {
    let name = String::from_utf8_lossy(key);
    let row = meta(db, key, options)?
        .ok_or_else(|| options.damaged(format!("the row {name} is missing")))?;
    decode(&row).map_err(|BadRow| options.damaged(format!("the row {name} is unreadable")))
}

pub(super) fn progress(db: &DB, options: &OpenOptions) -> Result<Progress, OpenError> {
    required(db, format::PROGRESS_KEY, Progress::decode, options)
}

pub(super) fn recovered(db: &DB, options: &OpenOptions) -> Result<Recovered, StoreError> {
    let compacted = required(db, format::COMPACTED_KEY, format::decode_position, options)?;
    let checkpoint = required(db, format::CHECKPOINT_KEY, CheckpointRow::decode, options)?;
    let recovered = Recovered {
        hard_state: progress(db, options)?.hard_state,
        membership: checkpoint.membership,
        compacted,
        entries: entries(db, compacted.0 + 1, options)?,
        applied: checkpoint.applied.0,
    };
    recovered
        .validate()
        .map_err(|error| options.damaged(error))?;
    Ok(recovered)
}

fn entries(db: &DB, first: u64, options: &OpenOptions) -> Result<Vec<LogEntry>, StoreError> {
    let family = family(db, LOG)?;
    let start = format::entry_key(first);
    let mode = IteratorMode::From(&start, Direction::Forward);
    let mut entries = Vec::new();
    for row in db.iterator_cf_opt(family, options::scan(), mode) {
        let (key, value) = row.map_err(|error| options.damaged(error))?;
        let entry = format::decode_entry(&key, &value)
            .map_err(|BadRow| options.damaged("a log entry is unreadable"))?;
        entries.push(entry);
    }
    Ok(entries)
}

pub(super) fn scan(
    db: &DB,
    visit: &mut RowVisitor<'_>,
    options: &OpenOptions,
) -> Result<(), StoreError> {
    for table in Table::ALL {
        let family = family(db, options::table_name(table))?;
        let mut rows = db.raw_iterator_cf_opt(family, options::scan());
        rows.seek_to_first();
        while let Some((key, value)) = rows.item() {
            visit(table, key, value)?;
            rows.next();
        }
        rows.status().map_err(|error| options.damaged(error))?;
    }
    Ok(())
}
