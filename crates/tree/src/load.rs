//! A tree from the rows of a checkpoint.

use crate::acl::AclLoader;
use crate::checkpoint::{Dirty, Table};
use crate::digest;
use crate::index::Index;
use crate::node::{NIL, NodeId, Owner, ROOT, marks};
use crate::reap::ReapQueue;
use crate::restore::{LoadedPieces, Pieces, Restored};
use crate::row::{self, State};
use crate::session::{Sessions, table_seed};
use crate::slab::SlabLoader;
use crate::tree::{BUILT_IN, Position, QUOTA, Totals, Tree};
use crate::zxid::Zxids;

/// Why rows do not make a tree: the store is damaged, or written by a newer version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The rows are of another layout.
    #[error("the checkpoint has layout {0}, this version reads {oldest} to {newest}",
        oldest = row::FORMAT_MIN, newest = row::FORMAT)]
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
    /// Pieces of a snapshot that is to be restored are missing, or of two of them.
    #[error("the pieces of a snapshot that is to be restored do not fit together")]
    Pieces,
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
    restored: Option<Restored>,
    pieces: LoadedPieces,
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
            restored: None,
            pieces: LoadedPieces::new(),
        }
    }

    /// Takes one row.
    pub fn row(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<(), LoadError> {
        let bad = |_| LoadError::Row(table, hex(key));
        let is_new = match table {
            Table::Nodes => {
                let (id, mut node) = row::read_node(key, value).map_err(bad)?;
                node.set(marks::STORED, true);
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
            Table::Meta if key == row::RESTORED_KEY => {
                let restored = row::read_restored(value).map_err(bad)?;
                self.restored.replace(restored).is_none()
            }
            Table::Meta if key.starts_with(row::PIECE_KEY) => {
                let (number, restore, bytes) = row::read_piece(key, value).map_err(bad)?;
                let piece = (restore, bytes.into());
                self.pieces.insert(number, piece).is_none()
            }
            Table::Meta => {
                let format = row::read_format(value).map_err(bad)?;
                if !(row::FORMAT_MIN..=row::FORMAT).contains(&format) {
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
        let (mut tree, state) = self.assemble()?;
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
        if tree.digest() != state.digest {
            return Err(LoadError::Digest {
                found: tree.digest(),
                expected: state.digest,
            });
        }
        if state.newest_sessions.is_none() {
            let open: Vec<i64> = tree.sessions().map(|(id, _)| id).collect();
            for id in open {
                tree.count_opened(id);
            }
        }
        Ok(tree)
    }

    /// The tree and the state row, not compared yet.
    pub(crate) fn assemble(mut self) -> Result<(Tree, State), LoadError> {
        let state = self.state.take().ok_or(LoadError::NoState)?;
        let nodes = self.nodes.finish();
        let ids: Vec<NodeId> = nodes.ids().collect();
        for &id in &ids {
            let node = nodes.get(id);
            if !self.acls.acquire(node.acl()) {
                return Err(LoadError::Dangling(id, "its access control list"));
            }
        }
        let seed = state
            .cluster
            .as_ref()
            .map_or(0, |cluster| table_seed(&cluster.secret));
        let acls = self.acls.finish(seed).ok_or(LoadError::Dangling(
            ROOT,
            "the built-in access control lists",
        ))?;
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
            ensemble: state.ensemble.clone(),
            applied: Position {
                index: state.applied_index,
                term: state.applied_term,
            },
            restored: self.restored,
            pieces: Pieces::load(self.pieces).ok_or(LoadError::Pieces)?,
            dirty: Dirty::default(),
        };
        tree.sessions.newest = state.newest_sessions.clone().unwrap_or_default();
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
        self.totals.digest = self.digest_beside_znodes();
        for &id in ids {
            let node = self.nodes.get(id);
            self.totals.digest = self.totals.digest.wrapping_add(digest::of_node(node));
            let parent = node.parent;
            if id != ROOT {
                let hash = self.index.hash(parent, node.name());
                self.link_loaded(parent, id)?;
                self.index.insert(hash, id);
            }
        }
        Ok(())
    }

    fn link_loaded(&mut self, parent: NodeId, id: NodeId) -> Result<(), LoadError> {
        if self.nodes.find(parent).is_none() {
            return Err(LoadError::Dangling(id, "its parent"));
        }
        let above = self.nodes.get_mut(parent).more_mut();
        let first = std::mem::replace(&mut above.first_child, id);
        above.children += 1;
        self.nodes.get_mut(id).next = first;
        if first != NIL {
            self.nodes.get_mut(first).prev = id;
        }
        Ok(())
    }

    fn count_loaded(&mut self, id: NodeId, path_len: usize) -> Result<(), LoadError> {
        let owner = self.nodes.get(id).owner();
        if let Owner::Session(session) = owner
            && !self.sessions.by_id.contains_key(&session)
        {
            return Err(LoadError::Dangling(id, "its session"));
        }
        self.count_owner(id, owner, path_len, true);
        Ok(())
    }

    /// Subtree sums and the length of all paths. Children come before their parents when the walk is read
    /// backwards.
    fn sum_up(&mut self, expected: usize) -> Result<(), LoadError> {
        let mut order = Vec::with_capacity(expected);
        self.walk(|id, path| order.push((id, path.len())));
        if order.len() != expected {
            return Err(LoadError::Count {
                what: "znodes below the root",
                found: order.len() as u64,
                expected: expected as u64,
            });
        }
        for (id, path_len) in order.into_iter().rev() {
            self.totals.path_bytes += path_len as u64;
            self.count_loaded(id, path_len)?;
            let node = self.nodes.get(id);
            let (parent, nodes, bytes) = (node.parent, node.subtree_nodes(), node.subtree_bytes());
            if parent != NIL {
                let above = self.nodes.get_mut(parent).more_mut();
                above.nodes_below += nodes;
                above.bytes_below += bytes;
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

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use quenda_proto::jute::Encode;
    use quenda_proto::records::{Acl, CreateRequest, Id, SetDataRequest};
    use quenda_proto::{ErrorCode, Op};

    use super::*;
    use crate::changes::Changes;
    use crate::checkpoint::CheckpointSink;
    use crate::command::{Command, Origin, Request, Stamp, Switches};
    use crate::limits::EPHEMERAL_PATHS_MAX;
    use crate::node::Node;

    const SESSION: i64 = 1;

    #[derive(Default)]
    struct Rows(Vec<(Table, Vec<u8>, Vec<u8>)>);

    impl CheckpointSink for Rows {
        fn put(&mut self, table: Table, key: &[u8], value: &[u8]) {
            self.0.push((table, key.to_vec(), value.to_vec()));
        }

        fn delete(&mut self, _: Table, _: &[u8]) {}
    }

    fn apply(tree: &mut Tree, command: &Command<'_>) -> (ErrorCode, BytesMut) {
        let stamp = Stamp {
            term: 1,
            time_ms: 1_000,
        };
        let mut reply = BytesMut::new();
        let applied = tree.apply(stamp, command, &mut reply, &mut Changes::new());
        (applied.code, reply)
    }

    fn send(tree: &mut Tree, op: Op, record: &impl Encode) -> (ErrorCode, BytesMut) {
        let mut body = BytesMut::new();
        record.encode(&mut body);
        let request = Request {
            origin: Origin::default(),
            session: SESSION,
            generation: 1,
            local: false,
            switches: Switches::default(),
            identities: vec![],
            op: op.code(),
            body: &body,
        };
        apply(tree, &Command::Request(request))
    }

    fn create(tree: &mut Tree, path: &str, flags: i32) -> (ErrorCode, String) {
        let open = Acl {
            perms: 31,
            id: Id {
                scheme: Some("world".into()),
                id: Some("anyone".into()),
            },
        };
        let request = CreateRequest {
            path: Some(path.into()),
            data: None,
            acl: Some(vec![open]),
            flags,
        };
        let (code, reply) = send(tree, Op::Create, &request);
        let name = reply.get(4..).unwrap_or_default();
        (code, String::from_utf8_lossy(name).into_owned())
    }

    /// A tree with `/p` as the caller wants it, by way of the rows of a checkpoint.
    fn prepared(change: impl FnOnce(&mut Node)) -> Tree {
        let mut tree = Tree::new();
        apply(
            &mut tree,
            &Command::OpenSession {
                origin: Origin::default(),
                session: SESSION,
                timeout_ms: 1_000,
            },
        );
        assert_eq!(create(&mut tree, "/p", 0).0, ErrorCode::Ok);
        let id = tree.lookup("/p").expect("/p");
        tree.alter(id, change);
        let mut rows = Rows::default();
        tree.write_full(&mut rows);
        let mut loader = Loader::new();
        for (table, key, value) in rows.0 {
            loader.row(table, &key, &value).expect("a row");
        }
        loader.finish().expect("a tree")
    }

    #[test]
    fn the_sequence_counter_wraps() {
        let mut tree = prepared(|node| node.more_mut().creates = i32::MAX - 1);
        for path in [
            "/p/n2147483646",
            "/p/n2147483647",
            "/p/n-2147483648",
            "/p/n-2147483647",
        ] {
            let expected = (ErrorCode::Ok, path.to_string());
            assert_eq!(create(&mut tree, "/p/n", 2), expected);
        }
        let mut tree = prepared(|node| node.more_mut().creates = -5);
        let expected = (ErrorCode::Ok, "/p/n-000000005".to_string());
        assert_eq!(create(&mut tree, "/p/n", 2), expected);
    }

    #[test]
    fn the_data_version_never_becomes_minus_one() {
        for (before, after) in [(-3, -2), (-2, 0), (i32::MAX, i32::MIN)] {
            let mut tree = prepared(|node| node.more_mut().version = before);
            let request = SetDataRequest {
                path: Some("/p".into()),
                data: None,
                version: before,
            };
            assert_eq!(send(&mut tree, Op::SetData, &request).0, ErrorCode::Ok);
            let stat = tree.get("/p").expect("/p").stat();
            assert_eq!(stat.version, after);
        }
    }

    #[test]
    fn a_state_row_of_another_digest_is_refused() {
        let tree = Tree::new();
        let mut rows = Rows::default();
        tree.write_full(&mut rows);
        let mut loader = Loader::new();
        for (table, key, mut value) in rows.0 {
            if table == Table::Nodes && key.ends_with(b"config") {
                value[30] ^= 1;
            }
            loader.row(table, &key, &value).expect("a row");
        }
        let error = loader.finish().err();
        assert!(matches!(error, Some(LoadError::Digest { .. })), "{error:?}");
    }

    #[test]
    fn znodes_that_hang_below_each_other_are_refused() {
        let mut tree = Tree::new();
        let quota = tree.lookup("/zookeeper/quota").expect("built in");
        let (a, b) = (100, 101);
        let mut loader = Loader::new();
        let mut rows = Rows::default();
        tree.write_full(&mut rows);
        for (table, key, value) in &rows.0 {
            loader.row(*table, key, value).expect("a row");
        }
        for (id, parent) in [(a, b), (b, a)] {
            let mut key = Vec::new();
            let mut value = Vec::new();
            row::put_node_key(&mut key, parent, b"x");
            row::put_node(&mut value, id, tree.nodes.get_mut(quota));
            loader.row(Table::Nodes, &key, &value).expect("a row");
        }
        let error = loader.finish().err();
        assert!(matches!(error, Some(LoadError::Count { .. })), "{error:?}");
    }

    #[test]
    fn a_session_cannot_hoard_paths() {
        let mut tree = prepared(|_| {});
        let others = EPHEMERAL_PATHS_MAX - 10;
        let session = |tree: &mut Tree| tree.sessions.by_id.remove(&SESSION).expect("open");
        let mut hoarder = session(&mut tree);
        hoarder.path_bytes = others;
        tree.sessions.by_id.insert(SESSION, hoarder);
        assert_eq!(create(&mut tree, "/12345678", 1).0, ErrorCode::Ok);
        assert_eq!(create(&mut tree, "/2", 1).0, ErrorCode::SystemError);
        assert_eq!(create(&mut tree, "/2", 0).0, ErrorCode::Ok);
        let mut rows = Rows::default();
        tree.write_full(&mut rows);
        let mut loader = Loader::new();
        for (table, key, value) in rows.0 {
            loader.row(table, &key, &value).expect("a row");
        }
        let mut tree = loader.finish().expect("a tree");
        assert_eq!(session(&mut tree).path_bytes, "/12345678".len());
    }
}
