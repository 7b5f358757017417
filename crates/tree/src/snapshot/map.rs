//! Rows of a checkpoint that are kept in a map.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::{RowCursor, RowView, ViewError};
use crate::checkpoint::Table;

/// Rows by table and key.
type Rows = BTreeMap<(Table, Vec<u8>), Vec<u8>>;

/// The rows in a map, as a view.
#[derive(Debug, Clone, Copy)]
pub struct MapView<'m>(pub &'m Rows);

struct MapCursor<'m> {
    rows: &'m Rows,
    table: Table,
    row: Option<(&'m [u8], &'m [u8])>,
}

impl MapCursor<'_> {
    fn go(&mut self, from: Bound<(Table, Vec<u8>)>) {
        let found = self.rows.range((from, Bound::Unbounded)).next();
        let found = found.filter(|((table, _), _)| *table == self.table);
        self.row = found.map(|((_, key), value)| (key.as_slice(), value.as_slice()));
    }
}

impl RowView for MapView<'_> {
    fn cursor(&self, table: Table) -> Result<Box<dyn RowCursor + '_>, ViewError> {
        Ok(Box::new(MapCursor {
            rows: self.0,
            table,
            row: None,
        }))
    }
}

impl RowCursor for MapCursor<'_> {
    fn seek(&mut self, key: &[u8]) -> Result<(), ViewError> {
        self.go(Bound::Included((self.table, key.to_vec())));
        Ok(())
    }

    fn next(&mut self) -> Result<(), ViewError> {
        if let Some((key, _)) = self.row {
            self.go(Bound::Excluded((self.table, key.to_vec())));
        }
        Ok(())
    }

    fn row(&self) -> Option<(&[u8], &[u8])> {
        self.row
    }
}
