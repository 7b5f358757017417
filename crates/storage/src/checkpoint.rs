use quenda_consensus::Membership;
use quenda_tree::{CheckpointSink, Table};

/// Changed rows, in order, in one piece of memory: they are collected under the tree's lock, where
/// nothing slower than a copy belongs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowBatch {
    bytes: Vec<u8>,
    rows: Vec<Row>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    table: Table,
    key_len: u32,
    /// `None` for a deletion.
    value_len: Option<u32>,
}

impl RowBatch {
    /// An empty batch with room for `bytes` of keys and values.
    pub fn with_capacity(bytes: usize) -> RowBatch {
        RowBatch {
            bytes: Vec::with_capacity(bytes),
            rows: Vec::new(),
        }
    }

    /// Bytes of keys and values.
    pub fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Number of changes.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Table, key and new value (`None` for a deletion) of each change, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Table, &[u8], Option<&[u8]>)> {
        let mut rest = self.bytes.as_slice();
        self.rows.iter().map(move |row| {
            let (key, tail) = rest.split_at(row.key_len as usize);
            let (value, tail) = tail.split_at(row.value_len.unwrap_or(0) as usize);
            rest = tail;
            (row.table, key, row.value_len.map(|_| value))
        })
    }

    fn push(&mut self, table: Table, key: &[u8], value: Option<&[u8]>) {
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value.unwrap_or_default());
        self.rows.push(Row {
            table,
            key_len: len_u32(key),
            value_len: value.map(len_u32),
        });
    }
}

/// Rows are bounded by the largest request, which is far below 4 GiB.
fn len_u32(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("a row is smaller than 4 GiB")
}

impl CheckpointSink for RowBatch {
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) {
        self.push(table, key, Some(value));
    }

    fn delete(&mut self, table: Table, key: &[u8]) {
        self.push(table, key, None);
    }
}

/// The tree as of one entry, or what changed since the checkpoint before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Index and term of the newest entry that is in it.
    pub applied: (u64, u64),
    /// The membership as of that entry.
    pub membership: Membership,
    /// The rows.
    pub rows: RowBatch,
    /// Whether `rows` are all rows there are: everything stored before goes.
    pub complete: bool,
}
