//! The incremental checkpoint: rows of what changed, each once however often it changed.

use crate::Tree;
use crate::acl::AclId;
use crate::node::{Node, NodeId, marks};
use crate::row::{self, NODE_FIXED, STATE_KEY, State};

/// Tables of a checkpoint. Keys and values are described in `docs/storage-format.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Table {
    /// Znodes by parent and name.
    Nodes,
    /// Sessions by id.
    Sessions,
    /// Access control lists by number.
    Acls,
    /// One row for the tree as a whole.
    Meta,
}

impl Table {
    /// All tables.
    pub const ALL: [Table; 4] = [Table::Nodes, Table::Sessions, Table::Acls, Table::Meta];
}

/// Takes the rows of a checkpoint. All rows of one checkpoint must become durable together; a deletion and
/// a later row of the same key come in this order.
pub trait CheckpointSink {
    /// A row that is new or replaces the one of the same key.
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]);
    /// A row that goes, if it is there.
    fn delete(&mut self, table: Table, key: &[u8]);
}

/// What the next checkpoint has to write.
#[derive(Debug, Default)]
pub(crate) struct Dirty {
    /// Slots that changed; each once, see [`marks::LISTED`]. Some are free by now.
    listed: Vec<NodeId>,
    /// Keys of rows to delete.
    removed: Vec<Box<[u8]>>,
    /// Approximate size of all this.
    pub(crate) bytes: usize,
}

/// What a row costs beside key and value.
const ROW_OVERHEAD: usize = 16;

/// Approximate size of a znode's row.
pub(crate) fn row_size(node: &Node) -> usize {
    ROW_OVERHEAD + NODE_FIXED + node.name().len() + node.data_len()
}

impl Dirty {
    pub(crate) fn list(&mut self, id: NodeId) {
        self.listed.push(id);
    }

    /// Rows that another tree had removed since the last checkpoint.
    pub(crate) fn take_removed(&mut self, other: &mut Dirty) {
        self.bytes += other.bytes;
        self.removed.append(&mut other.removed);
    }

    pub(crate) fn remove(&mut self, node: &Node) {
        let mut key = Vec::with_capacity(4 + node.name().len());
        row::put_node_key(&mut key, node.parent, node.name());
        self.bytes += ROW_OVERHEAD + key.len();
        self.removed.push(key.into());
    }
}

impl Tree {
    /// Approximate number of bytes that [`Tree::write_checkpoint`] would write.
    pub fn dirty_bytes(&self) -> usize {
        let small = self.sessions.changed.len() + self.acls.pending();
        self.dirty.bytes + self.pieces.unwritten() + small * (ROW_OVERHEAD + 32)
    }

    /// Writes the rows that changed since the last call (or since the tree was made or loaded).
    pub fn write_checkpoint(&mut self, sink: &mut dyn CheckpointSink) {
        self.write_changed_acls(sink);
        self.write_changed_sessions(sink);
        self.write_changed_nodes(sink);
        self.pieces.write_changed(sink);
        self.write_state(sink);
        self.dirty.bytes = 0;
    }

    fn write_changed_acls(&mut self, sink: &mut dyn CheckpointSink) {
        let (removed, added) = self.acls.take_changed();
        for id in removed {
            sink.delete(Table::Acls, &id.to_be_bytes());
        }
        for id in added {
            self.write_acl(AclId(id), sink);
        }
    }

    fn write_changed_sessions(&mut self, sink: &mut dyn CheckpointSink) {
        let changed = std::mem::take(&mut self.sessions.changed);
        for id in changed {
            match self.sessions.by_id.contains_key(&id) {
                true => self.write_session(id, sink),
                false => sink.delete(Table::Sessions, &id.to_be_bytes()),
            }
        }
    }

    fn write_changed_nodes(&mut self, sink: &mut dyn CheckpointSink) {
        for key in self.dirty.removed.drain(..) {
            sink.delete(Table::Nodes, &key);
        }
        let mut writer = RowWriter::default();
        for id in std::mem::take(&mut self.dirty.listed) {
            let node = self.nodes.get_mut(id);
            node.set(marks::LISTED, false);
            if node.is_live() {
                node.set(marks::STORED, true);
                writer.node(id, node, sink);
            }
        }
    }

    /// Writes every row.
    pub fn write_full(&self, sink: &mut dyn CheckpointSink) {
        for id in self.acls.used() {
            self.write_acl(id, sink);
        }
        for (id, _) in self.sessions() {
            self.write_session(id, sink);
        }
        let mut writer = RowWriter::default();
        for id in self.nodes.ids() {
            writer.node(id, self.nodes.get(id), sink);
        }
        self.pieces.write_from(0, sink);
        self.write_state(sink);
    }

    fn write_acl(&self, id: AclId, sink: &mut dyn CheckpointSink) {
        let mut value = Vec::new();
        row::put_acl(&mut value, self.acls.entries(id));
        sink.put(Table::Acls, &id.0.to_be_bytes(), &value);
    }

    fn write_session(&self, id: i64, sink: &mut dyn CheckpointSink) {
        if let Some(session) = self.sessions.by_id.get(&id) {
            let mut value = Vec::new();
            row::put_session(&mut value, session);
            sink.put(Table::Sessions, &id.to_be_bytes(), &value);
        }
    }

    fn write_state(&self, sink: &mut dyn CheckpointSink) {
        let mut value = Vec::new();
        row::put_state(&mut value, &self.state());
        sink.put(Table::Meta, STATE_KEY, &value);
        if let Some(restored) = &self.restored {
            value.clear();
            row::put_restored(&mut value, restored);
            sink.put(Table::Meta, row::RESTORED_KEY, &value);
        }
    }

    pub(crate) fn state(&self) -> State {
        State {
            applied_index: self.applied.index,
            applied_term: self.applied.term,
            last_zxid: self.zxids.last,
            epoch_offset: self.zxids.offset,
            digest: self.totals.digest,
            znodes: self.nodes.len() as u64,
            sessions: self.sessions.by_id.len() as u64,
            cluster: self.cluster.clone(),
            ensemble: self.ensemble.clone(),
            newest_sessions: Some(self.sessions.newest.clone()),
        }
    }
}

/// Buffers for one row after the other.
#[derive(Default)]
struct RowWriter {
    key: Vec<u8>,
    value: Vec<u8>,
}

impl RowWriter {
    fn node(&mut self, id: NodeId, node: &Node, sink: &mut dyn CheckpointSink) {
        self.key.clear();
        self.value.clear();
        row::put_node_key(&mut self.key, node.parent, node.name());
        row::put_node(&mut self.value, id, node);
        sink.put(Table::Nodes, &self.key, &self.value);
    }
}
