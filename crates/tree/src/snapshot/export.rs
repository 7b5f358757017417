//! From the rows of a checkpoint to a stream, with memory for one path and one row.

use std::io::Write;

use super::write::Writer;
use super::{NO_CLUSTER, OPEN_ACL, PersistedStat, Record, SnapshotError};
use crate::acl::AclId;
use crate::checkpoint::Table;
use crate::node::{NIL, NodeId};
use crate::row::{self, BadRow, STATE_KEY};

/// Rows that cannot be read, or make no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the stored state cannot be read: {0}")]
pub struct ViewError(pub String);

/// The rows of one checkpoint, which do not change meanwhile.
pub trait RowView {
    /// A cursor that stands nowhere yet.
    ///
    /// # Errors
    /// The table cannot be read.
    fn cursor(&self, table: Table) -> Result<Box<dyn RowCursor + '_>, ViewError>;
}

/// A place among the rows of a table, in the order of their keys.
pub trait RowCursor {
    /// Moves to the first row at or behind a key.
    ///
    /// # Errors
    /// The table cannot be read (any more).
    fn seek(&mut self, key: &[u8]) -> Result<(), ViewError>;
    /// Moves to the next row.
    ///
    /// # Errors
    /// The table cannot be read (any more).
    fn next(&mut self) -> Result<(), ViewError>;
    /// Key and value of the row; `None` behind the last one.
    fn row(&self) -> Option<(&[u8], &[u8])>;
}

/// What a stream holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exported {
    /// zxid of the last transaction in it.
    pub last_zxid: i64,
    /// Log entry that it belongs to.
    pub index: u64,
    /// Its bytes.
    pub size: u64,
    /// Znodes in it.
    pub znodes: u64,
    /// Sessions in it.
    pub sessions: u64,
    /// ZooKeeper's digest of the tree.
    pub digest: i64,
}

/// Writes the state of a checkpoint.
///
/// # Errors
/// The rows cannot be read, or the bytes not be written.
pub fn export(view: &dyn RowView, out: impl Write) -> Result<Exported, SnapshotError> {
    let state = {
        let mut meta = view.cursor(Table::Meta)?;
        meta.seek(STATE_KEY)?;
        let row = meta.row().filter(|(key, _)| *key == STATE_KEY);
        let (_, value) = row.ok_or_else(|| ViewError("it has no state row".into()))?;
        row::read_state(value).map_err(|BadRow| bad(STATE_KEY))?
    };
    let mut writer = Writer::new(out);
    let cluster = state.cluster.as_ref().map(|cluster| cluster.id as i64);
    writer.header(cluster.unwrap_or(NO_CLUSTER))?;
    writer.count(state.sessions as usize)?;
    let sessions = each_row(view, Table::Sessions, |key, value| {
        let (id, session) = row::read_session(key, value).map_err(|BadRow| bad(key))?;
        Ok(writer.session(id, session.timeout_ms)?)
    })?;
    expect(sessions, state.sessions, "sessions")?;
    write_acls(view, &mut writer)?;
    let znodes = Walk::new(view)?.write(state.znodes, &mut writer)?;
    expect(znodes, state.znodes, "znodes")?;
    let (size, digest) = writer.end(state.last_zxid)?;
    Ok(Exported {
        last_zxid: state.last_zxid,
        index: state.applied_index,
        size,
        znodes,
        sessions,
        digest,
    })
}

fn bad(key: &[u8]) -> SnapshotError {
    ViewError(format!("row {key:02x?} is unreadable")).into()
}

fn expect(found: u64, expected: u64, what: &str) -> Result<(), ViewError> {
    match found == expected {
        true => Ok(()),
        false => Err(ViewError(format!(
            "it holds {found} {what}, its state row says {expected}"
        ))),
    }
}

/// The list that everybody may do everything by has no row of its own in a stream.
fn write_acls(view: &dyn RowView, writer: &mut Writer<impl Write>) -> Result<(), SnapshotError> {
    let is_written = |id: u32| AclId(id) != AclId::OPEN;
    let read = |key: &[u8], value: &[u8]| row::read_acl(key, value).map_err(|BadRow| bad(key));
    let mut count = 0;
    each_row(view, Table::Acls, |key, value| {
        count += usize::from(is_written(read(key, value)?.0));
        Ok(())
    })?;
    writer.count(count)?;
    each_row(view, Table::Acls, |key, value| {
        let (id, entries) = read(key, value)?;
        if is_written(id) {
            writer.acl(i64::from(id), &entries)?;
        }
        Ok(())
    })?;
    Ok(())
}

fn each_row(
    view: &dyn RowView,
    table: Table,
    mut visit: impl FnMut(&[u8], &[u8]) -> Result<(), SnapshotError>,
) -> Result<u64, SnapshotError> {
    let mut cursor = view.cursor(table)?;
    cursor.seek(&[])?;
    let mut count = 0;
    while let Some((key, value)) = cursor.row() {
        visit(key, value)?;
        count += 1;
        cursor.next()?;
    }
    Ok(count)
}

/// A walk over the znodes, parents first. The children of a znode are one range of keys.
struct Walk<'v> {
    siblings: Box<dyn RowCursor + 'v>,
    /// Looks whether a znode has children.
    probe: Box<dyn RowCursor + 'v>,
    path: String,
    /// The znodes above, with the lengths of their paths.
    above: Vec<(NodeId, usize)>,
    key: Vec<u8>,
    written: u64,
}

impl<'v> Walk<'v> {
    fn new(view: &'v dyn RowView) -> Result<Walk<'v>, ViewError> {
        Ok(Walk {
            siblings: view.cursor(Table::Nodes)?,
            probe: view.cursor(Table::Nodes)?,
            path: String::new(),
            above: Vec::new(),
            key: Vec::new(),
            written: 0,
        })
    }

    /// Writes all znodes; stops behind more than there should be, as damaged rows may lead in a circle.
    fn write(
        mut self,
        expected: u64,
        writer: &mut Writer<impl Write>,
    ) -> Result<u64, SnapshotError> {
        self.siblings.seek(&NIL.to_be_bytes())?;
        let root = self.write_sibling(NIL, writer)?;
        let root = root.ok_or_else(|| ViewError("it has no root".into()))?;
        self.above.push((root, 0));
        self.siblings.seek(&root.to_be_bytes())?;
        while let Some(&(parent, length)) = self.above.last()
            && self.written <= expected
        {
            self.path.truncate(length);
            match self.write_sibling(parent, writer)? {
                Some(id) => self.descend_or_go_on(id)?,
                None => self.ascend()?,
            }
        }
        Ok(self.written)
    }

    /// Writes the znode where `siblings` stands, if it still is a child of `parent`; its number.
    fn write_sibling(
        &mut self,
        parent: NodeId,
        writer: &mut Writer<impl Write>,
    ) -> Result<Option<NodeId>, SnapshotError> {
        let Some((key, value)) = self.siblings.row().filter(|row| is_below(row.0, parent)) else {
            return Ok(None);
        };
        let (id, node) = row::read_node(key, value).map_err(|BadRow| bad(key))?;
        if parent != NIL {
            self.path.push('/');
            self.path.push_str(node.name_text());
        }
        let acl = match node.acl() {
            AclId::OPEN => OPEN_ACL,
            acl => i64::from(acl.0),
        };
        let record = Record {
            data: node.data(),
            acl,
            stat: PersistedStat::of(&node),
        };
        writer.node(&self.path, &record)?;
        self.written += 1;
        Ok(Some(id))
    }

    fn descend_or_go_on(&mut self, id: NodeId) -> Result<(), ViewError> {
        self.probe.seek(&id.to_be_bytes())?;
        if self.probe.row().is_some_and(|row| is_below(row.0, id)) {
            self.above.push((id, self.path.len()));
            self.siblings.seek(&id.to_be_bytes())
        } else {
            self.siblings.next()
        }
    }

    /// Goes on behind the znode whose children are done.
    fn ascend(&mut self) -> Result<(), ViewError> {
        self.above.pop();
        let Some(&(parent, length)) = self.above.last() else {
            return Ok(());
        };
        let name = self.path.as_bytes().get(length + 1..).unwrap_or_default();
        self.key.clear();
        row::put_node_key(&mut self.key, parent, name);
        self.siblings.seek(&self.key)?;
        self.siblings.next()
    }
}

fn is_below(key: &[u8], parent: NodeId) -> bool {
    key.starts_with(&parent.to_be_bytes())
}
