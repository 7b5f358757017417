//! The rows of one checkpoint to be read in any order, while the store goes on.

use std::sync::atomic::{AtomicUsize, Ordering};

use quenda_tree::{RowCursor, RowView, Table, ViewError};
use rocksdb::{DB, DBRawIteratorWithThreadMode, Snapshot};

use super::{options, read};

/// A database as it was at one moment.
pub(super) struct DbView<'d> {
    db: &'d DB,
    snapshot: Snapshot<'d>,
    /// How many wait until nobody looks at the database any more.
    awaited: &'d AtomicUsize,
}

impl<'d> DbView<'d> {
    pub(super) fn new(db: &'d DB, awaited: &'d AtomicUsize) -> DbView<'d> {
        DbView {
            db,
            snapshot: db.snapshot(),
            awaited,
        }
    }
}

impl RowView for DbView<'_> {
    fn cursor(&self, table: Table) -> Result<Box<dyn RowCursor + '_>, ViewError> {
        let family = read::family(self.db, options::table_name(table))
            .map_err(|error| ViewError(error.to_string()))?;
        let rows = self.snapshot.raw_iterator_cf_opt(family, options::seek());
        Ok(Box::new(DbCursor {
            rows,
            awaited: self.awaited,
        }))
    }
}

struct DbCursor<'v> {
    rows: DBRawIteratorWithThreadMode<'v, DB>,
    awaited: &'v AtomicUsize,
}

impl DbCursor<'_> {
    fn check(&self) -> Result<(), ViewError> {
        if self.awaited.load(Ordering::Relaxed) > 0 {
            return Err(ViewError("the store is to be closed".into()));
        }
        self.rows
            .status()
            .map_err(|error| ViewError(error.to_string()))
    }
}

impl RowCursor for DbCursor<'_> {
    fn seek(&mut self, key: &[u8]) -> Result<(), ViewError> {
        self.rows.seek(key);
        self.check()
    }

    fn next(&mut self) -> Result<(), ViewError> {
        self.rows.next();
        self.check()
    }

    fn row(&self) -> Option<(&[u8], &[u8])> {
        self.rows.item()
    }
}
