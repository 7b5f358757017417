//! A tree from the rows of a checkpoint.

use crate::acl::AclLoader;
use crate::checkpoint::{Dirty, Table};
use crate::digest;
use crate::index::Index;
use crate::node::{NIL, NodeId, Owner, ROOT, flags};
use crate::reap::ReapQueue;
use crate::row::{self, State};
use crate::session::{Sessions, index_seed};
use crate::slab::SlabLoader;
use crate::tree::{BUILT_IN, Position, QUOTA, Totals, Tree};
use crate::zxid::Zxids;

/// Why rows do not make a tree: the store is damaged, or written by a newer version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The rows are of another layout.
    #[error("the checkpoint has layout {0}, this version reads {expected}", expected = row::FORMAT)]
    Format(u16),
    /// A row cannot be read.
    #[error("table {0:?} holds a row that cannot be read (key {1})")]
    Row(Table, String),
    /// Two rows claim the same place.
    #[error("table {0:?} holds two rows for the same place (key {1})")]
    Twice(Table, String),
    /// The row of the tree as a whole is missing.
    #[error("the checkpoint has no state row")]
    NoState,
    /// A row names another that is not there.
    #[error("znode {0} refers to {1}, which is missing")]
    Dangling(u32, &'static str),
    /// Rows are missing or left over.
    #[error("the checkpoint holds {found} {what}, its state row says {expected}")]
    Count {
        /// What was counted.
        what: &'static str,
        /// Rows found.
        found: u64,
        /// Rows that there should be.
        expected: u64,
    },
    /// The rows are not those that the state row was written with.
    #[error("the rows have the digest {found:#018x}, the state row says {expected:#018x}")]
    Digest {
        /// Of the rows.
        found: u64,
        /// That there should be.
        expected: u64,
    },
}

/// Collects the rows of a checkpoint, in any order.
#[derive(Debug)]
pub struct Loader {
    nodes: SlabLoader,
    acls: AclLoader,
    sessions: Sessions,
    state: Option<State>,
}

impl Default for Loader {
    fn default() -> Self {
        Loader::new()
    }
}

impl Loader {
    /// No rows yet.
    pub fn new() -> Loader {
        Loader {
            nodes: SlabLoader::new(),
            acls: AclLoader::new(),
            sessions: Sessions::default(),
            state: None,
        }
    }

    /// Takes one row.
    pub fn row(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<(), LoadError> {
        let bad = |_| LoadError::Row(table, hex(key));
        let is_new = match table {
            Table::Nodes => {
                let (id, mut node) = row::read_node(key, value).map_err(bad)?;
                node.set(flags::STORED, true);
                self.nodes.add(id, node)
            }
            Table::Acls => {
                let (id, entries) = row::read_acl(key, value).map_err(bad)?;
                self.acls.add(id, entries)
            }
            Table::Sessions => {
                let (id, session) = row::read_session(key, value).map_err(bad)?;
                if !Owner::can_be_session(id) {
                    return Err(LoadError::Row(table, hex(key)));
                }
                self.sessions.by_id.insert(id, session).is_none()
            }
            Table::Meta => {
                let format = row::read_format(value).map_err(bad)?;
                if format != row::FORMAT {
                    return Err(LoadError::Format(format));
                }
                let state = row::read_state(value).map_err(bad)?;
                self.state.replace(state).is_none()
            }
        };
        match is_new {
            true => Ok(()),
            false => Err(LoadError::Twice(table, hex(key))),
        }
    }

    /// The tree, if the rows are complete and their digest is the one of the state row.
    pub fn finish(self) -> Result<Tree, LoadError> {
        let (tree, state) = self.assemble()?;
        let counts = [
            ("znodes", tree.nodes.len() as u64, state.znodes),
            ("sessions", tree.sessions.by_id.len() as u64, state.sessions),
        ];
        for (what, found, expected) in counts {
            if found != expected {
                return Err(LoadError::Count {
                    what,
                    found,
                    expected,
                });
            }
        }
        match tree.digest() == state.digest {
            true => Ok(tree),
            false => Err(LoadError::Digest {
                found: tree.digest(),
                expected: state.digest,
            }),
        }
    }

    /// The tree and the state row, not compared yet.
    pub(crate) fn assemble(mut self) -> Result<(Tree, State), LoadError> {
        let state = self.state.take().ok_or(LoadError::NoState)?;
        let nodes = self.nodes.finish();
        let ids: Vec<NodeId> = nodes.ids().collect();
        for &id in &ids {
            let node = nodes.get(id);
            if !self.acls.acquire(node.acl) {
                return Err(LoadError::Dangling(id, "its access control list"));
            }
        }
        let acls = self.acls.finish().ok_or(LoadError::Dangling(
            ROOT,
            "the built-in access control lists",
        ))?;
        let seed = state
            .cluster
            .as_ref()
            .map_or(0, |cluster| index_seed(&cluster.secret));
        let mut tree = Tree {
            index: Index::with_capacity(seed, ids.len()),
            nodes,
            acls,
            sessions: self.sessions,
            reap: ReapQueue::default(),
            totals: Totals::default(),
            zxids: Zxids {
                last: state.last_zxid,
                offset: state.epoch_offset,
            },
            cluster: state.cluster.clone(),
            applied: Position {
                index: state.applied_index,
                term: state.applied_term,
            },
            dirty: Dirty::default(),
        };
        tree.link_all(&ids)?;
        tree.sum_up(ids.len())?;
        for &id in &ids {
            tree.reap.add(id, tree.nodes.get(id));
        }
        Ok((tree, state))
    }
}

impl Tree {
    fn link_all(&mut self, ids: &[NodeId]) -> Result<(), LoadError> {
        if self.nodes.find(ROOT).is_none_or(|root| root.parent != NIL) {
            return Err(LoadError::Dangling(ROOT, "the root"));
        }
        for (id, session) in &self.sessions.by_id {
            let part = digest::of_session(*id, session);
            self.totals.digest = self.totals.digest.wrapping_add(part);
        }
        for &id in ids {
            let node = self.nodes.get(id);
            self.totals.digest = self.totals.digest.wrapping_add(digest::of_node(node));
            let (parent, owner) = (node.parent, node.owner());
            if id != ROOT {
                let hash = self.index.hash(parent, node.name());
                self.link_loaded(parent, id)?;
                self.index.insert(hash, id);
            }
            self.count_loaded(id, owner)?;
        }
        Ok(())
    }

    fn link_loaded(&mut self, parent: NodeId, id: NodeId) -> Result<(), LoadError> {
        if self.nodes.find(parent).is_none() {
            return Err(LoadError::Dangling(id, "its parent"));
        }
        let above = self.nodes.get_mut(parent);
        let first = std::mem::replace(&mut above.first_child, id);
        above.children += 1;
        self.nodes.get_mut(id).next = first;
        if first != NIL {
            self.nodes.get_mut(first).prev = id;
        }
        Ok(())
    }

    fn count_loaded(&mut self, id: NodeId, owner: Owner) -> Result<(), LoadError> {
        if let Owner::Session(session) = owner
            && !self.sessions.by_id.contains_key(&session)
        {
            return Err(LoadError::Dangling(id, "its session"));
        }
        self.count_owner(id, owner, true);
        Ok(())
    }

    /// Subtree sums and the length of all paths. Children come before their parents when the walk is read
    /// backwards.
    fn sum_up(&mut self, expected: usize) -> Result<(), LoadError> {
        let mut order = Vec::with_capacity(expected);
        let mut path_bytes = 0;
        self.walk(|id, path| {
            order.push(id);
            path_bytes += path.len() as u64;
        });
        if order.len() != expected {
            return Err(LoadError::Count {
                what: "znodes below the root",
                found: order.len() as u64,
                expected: expected as u64,
            });
        }
        self.totals.path_bytes = path_bytes;
        for id in order.into_iter().rev() {
            let node = self.nodes.get(id);
            let (parent, nodes, bytes) = (node.parent, node.subtree_nodes, node.subtree_bytes);
            if parent != NIL {
                let above = self.nodes.get_mut(parent);
                above.subtree_nodes += nodes;
                above.subtree_bytes += bytes;
            }
        }
        let is_complete = BUILT_IN.iter().all(|path| self.lookup(path).is_some())
            && self.lookup("/zookeeper/quota") == Some(QUOTA);
        match is_complete {
            true => Ok(()),
            false => Err(LoadError::Dangling(ROOT, "a built-in znode")),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    const SHOWN: usize = 64;
    let mut text: String = bytes
        .iter()
        .take(SHOWN)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    if bytes.len() > SHOWN {
        text.push('…');
    }
    text
}
