//! The state and the few ways in which it changes.

use quenda_proto::ErrorCode;

use crate::acl::{AclId, AclStore};
use crate::checkpoint::{self, Dirty};
use crate::digest;
use crate::ensemble::Ensemble;
use crate::index::Index;
use crate::limits::EPHEMERAL_PATHS_MAX;
use crate::node::{NIL, Node, NodeId, OldData, Owner, ROOT, marks};
use crate::read::Counts;
use crate::reap::ReapQueue;
use crate::restore::{Pieces, Restored};
use crate::session::{Cluster, Sessions};
use crate::slab::Slab;
use crate::zxid::Zxids;

/// The replicated state: znodes, lists, sessions. `&Tree` reads, `&mut Tree` applies; two trees that have
/// applied the same commands are equal.
#[derive(Debug)]
pub struct Tree {
    pub(crate) nodes: Slab,
    pub(crate) index: Index,
    pub(crate) acls: AclStore,
    pub(crate) sessions: Sessions,
    pub(crate) reap: ReapQueue,
    pub(crate) totals: Totals,
    pub(crate) zxids: Zxids,
    pub(crate) cluster: Option<Cluster>,
    pub(crate) ensemble: Option<Ensemble>,
    pub(crate) applied: Position,
    pub(crate) restored: Option<Restored>,
    pub(crate) pieces: Pieces,
    pub(crate) dirty: Dirty,
}

/// Sums that every change keeps up to date. A multi that fails puts the old ones back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) digest: u64,
    pub(crate) path_bytes: u64,
    pub(crate) ephemerals: usize,
    pub(crate) containers: usize,
    pub(crate) ttls: usize,
}

/// Log position of the last entry that was applied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) index: u64,
    pub(crate) term: u64,
}

/// Slot of `/zookeeper/quota`, which is always there.
pub(crate) const QUOTA: NodeId = 2;

/// Paths that cannot be deleted.
pub(crate) const BUILT_IN: [&str; 4] = ["/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"];

impl Default for Tree {
    fn default() -> Self {
        Tree::new()
    }
}

impl Tree {
    /// A tree that holds the built-in znodes and belongs to no cluster yet.
    pub fn new() -> Tree {
        let mut tree = Tree {
            nodes: Slab::new(),
            index: Index::new(0),
            acls: AclStore::new(),
            sessions: Sessions::default(),
            reap: ReapQueue::default(),
            totals: Totals::default(),
            zxids: Zxids::default(),
            cluster: None,
            ensemble: None,
            applied: Position::default(),
            restored: None,
            pieces: Pieces::default(),
            dirty: Dirty::default(),
        };
        tree.build_in();
        tree
    }

    fn build_in(&mut self) {
        let mut root = Node::new("", Some(b""), AclId::OPEN);
        root.content = digest::content("/", Some(b""), self.acls.hash(AclId::OPEN));
        self.acls.acquire(AclId::OPEN);
        self.totals.digest = digest::of_node(&root);
        self.totals.path_bytes = 1;
        let id = self.nodes.insert(root);
        assert_eq!(id, ROOT);
        self.mark(ROOT);
        let children = [
            (ROOT, "/zookeeper", AclId::OPEN, 0),
            (1, "/zookeeper/quota", AclId::OPEN, 0),
            (1, "/zookeeper/config", AclId::READ_ONLY, -1),
        ];
        for (parent, path, acl, aversion) in children {
            let name = path.rsplit('/').next().unwrap_or_default();
            let mut node = Node::new(name, Some(b""), acl);
            if aversion != 0 {
                node.more_mut().aversion = aversion;
            }
            node.content = digest::content(path, Some(b""), self.acls.hash(acl));
            self.attach(parent, node, path.len());
        }
        assert_eq!(self.lookup("/zookeeper/quota"), Some(QUOTA));
    }

    /// zxid of the last transaction, 0 before the first.
    pub fn last_zxid(&self) -> i64 {
        self.zxids.last
    }

    /// Index of the last log entry that was applied.
    pub fn applied_index(&self) -> u64 {
        self.applied.index
    }

    /// Term of that entry.
    pub fn applied_term(&self) -> u64 {
        self.applied.term
    }

    /// To be called behind each log entry, whether it held commands or not.
    pub fn set_applied_index(&mut self, index: u64, term: u64) {
        self.applied = Position { index, term };
    }

    /// The running digest over znodes, lists, sessions and configuration. Trees that have applied the same commands have
    /// the same one.
    pub fn digest(&self) -> u64 {
        self.totals.digest
    }

    /// Id of the cluster, once it has one.
    pub fn cluster(&self) -> Option<u64> {
        self.cluster.as_ref().map(|cluster| cluster.id)
    }

    /// The members as the last reconfiguration left them; `None` for a member that stays alone.
    pub fn ensemble(&self) -> Option<&Ensemble> {
        self.ensemble.as_ref()
    }

    /// The newest session that was ever opened on a member, whether it is still there or not.
    pub fn newest_session(&self, member: u64) -> Option<i64> {
        self.sessions.newest.of(member)
    }

    /// Sizes.
    pub fn counts(&self) -> Counts {
        Counts {
            znodes: self.nodes.len(),
            ephemerals: self.totals.ephemerals,
            containers: self.totals.containers,
            ttls: self.totals.ttls,
            sessions: self.sessions.by_id.len(),
            data_bytes: self.totals.path_bytes + self.nodes.get(ROOT).subtree_bytes(),
        }
    }

    /// The secret of passwords; all zeros before the cluster has one, when nothing can be resumed.
    pub(crate) fn secret(&self) -> [u8; 32] {
        self.cluster
            .as_ref()
            .map_or([0; 32], |cluster| cluster.secret)
    }

    /// Changes fields of a znode that no link depends on, and all that is computed from them.
    pub(crate) fn alter<T>(&mut self, id: NodeId, change: impl FnOnce(&mut Node) -> T) -> T {
        let node = self.nodes.get_mut(id);
        self.totals.digest = self.totals.digest.wrapping_sub(digest::of_node(node));
        self.reap.remove(id, node);
        let result = change(node);
        self.reap.add(id, node);
        self.totals.digest = self.totals.digest.wrapping_add(digest::of_node(node));
        self.mark(id);
        result
    }

    /// Hangs a znode below its parent. The znode comes with its own list's number, which it now uses.
    pub(crate) fn attach(&mut self, parent: NodeId, node: Node, path_len: usize) -> NodeId {
        let id = self.nodes.insert(node);
        self.link(parent, id, path_len);
        let node = self.nodes.get(id);
        if node.has(marks::LISTED) {
            self.dirty.bytes += checkpoint::row_size(node);
        }
        self.mark(id);
        id
    }

    /// Undoes the last [`Tree::detach`] that is not undone yet.
    pub(crate) fn reattach(&mut self, parent: NodeId, id: NodeId, node: Node, path_len: usize) {
        self.nodes.put_back(id, node);
        self.link(parent, id, path_len);
        self.mark(id);
    }

    fn link(&mut self, parent: NodeId, id: NodeId, path_len: usize) {
        let first = self.nodes.get(parent).first_child();
        if first != NIL {
            self.nodes.get_mut(first).prev = id;
        }
        let node = self.nodes.get_mut(id);
        (node.parent, node.prev, node.next) = (parent, NIL, first);
        let (acl, owner) = (node.acl(), node.owner());
        self.reap.add(id, node);
        self.totals.digest = self.totals.digest.wrapping_add(digest::of_node(node));
        self.totals.path_bytes += path_len as u64;
        let hash = self.index.hash(parent, node.name());
        self.index.insert(hash, id);
        self.acls.acquire(acl);
        self.count_owner(id, owner, path_len, true);
        let (nodes, bytes) = self.subtree(id);
        self.alter_links(parent, |parent| {
            let more = parent.more_mut();
            more.first_child = id;
            more.children += 1;
        });
        self.grow(parent, nodes, bytes);
    }

    /// Takes a childless znode out.
    pub(crate) fn detach(&mut self, id: NodeId, path_len: usize) -> Node {
        let node = self.nodes.get(id);
        let (parent, prev, next) = (node.parent, node.prev, node.next);
        let (acl, owner) = (node.acl(), node.owner());
        self.reap.remove(id, node);
        self.totals.digest = self.totals.digest.wrapping_sub(digest::of_node(node));
        self.totals.path_bytes -= path_len as u64;
        let hash = self.index.hash(parent, node.name());
        self.index.remove(hash, id);
        self.acls.release(acl);
        self.count_owner(id, owner, path_len, false);
        if next != NIL {
            self.nodes.get_mut(next).prev = prev;
        }
        if prev != NIL {
            self.nodes.get_mut(prev).next = next;
        }
        let (nodes, bytes) = self.subtree(id);
        self.alter_links(parent, |parent| {
            let more = parent.more_mut();
            more.children -= 1;
            if prev == NIL {
                more.first_child = next;
            }
        });
        self.grow(parent, nodes.wrapping_neg(), bytes.wrapping_neg());
        self.mark_gone(id);
        self.nodes.remove(id)
    }

    /// Changes what rows and digest do not hold, but what decides whether a container may go.
    fn alter_links(&mut self, id: NodeId, change: impl FnOnce(&mut Node)) {
        let node = self.nodes.get_mut(id);
        self.reap.remove(id, node);
        change(node);
        self.reap.add(id, node);
    }

    fn subtree(&self, id: NodeId) -> (u32, u64) {
        let node = self.nodes.get(id);
        (node.subtree_nodes(), node.subtree_bytes())
    }

    /// Adds (wrapping, so also subtracts) to the sums of what is below a znode and below all above it.
    fn grow(&mut self, from: NodeId, nodes: u32, bytes: u64) {
        let mut id = from;
        while id != NIL {
            let node = self.nodes.get_mut(id);
            id = node.parent;
            let more = node.more_mut();
            more.nodes_below = more.nodes_below.wrapping_add(nodes);
            more.bytes_below = more.bytes_below.wrapping_add(bytes);
        }
    }

    /// Puts other data in; the caller says what becomes of the metadata.
    pub(crate) fn replace_data(
        &mut self,
        id: NodeId,
        path: &str,
        data: Option<&[u8]>,
        metadata: impl FnOnce(&mut Node),
    ) -> OldData {
        let acl_hash = self.acls.hash(self.nodes.get(id).acl());
        let content = digest::content(path, data, acl_hash);
        let before = self.nodes.get(id).data_len();
        let old = self.alter(id, |node| {
            node.content = content;
            metadata(node);
            node.replace_data(data)
        });
        let after = data.map_or(0, <[u8]>::len);
        self.resized(id, before, after);
        self.dirty.bytes += after.saturating_sub(before);
        old
    }

    /// Undoes [`Tree::replace_data`]; the caller puts the metadata and the content hash back.
    pub(crate) fn restore_data(
        &mut self,
        id: NodeId,
        old: OldData,
        metadata: impl FnOnce(&mut Node),
    ) {
        let before = self.nodes.get(id).data_len();
        self.alter(id, |node| {
            metadata(node);
            node.restore_data(old);
        });
        let after = self.nodes.get(id).data_len();
        self.resized(id, before, after);
    }

    fn resized(&mut self, id: NodeId, before: usize, after: usize) {
        if after != before {
            let parent = self.nodes.get(id).parent;
            self.grow(parent, 0, (after as u64).wrapping_sub(before as u64));
        }
    }

    pub(crate) fn count_owner(&mut self, id: NodeId, owner: Owner, path_len: usize, appears: bool) {
        let count = match owner {
            Owner::Nobody => return,
            Owner::Session(session) => {
                if let Some(session) = self.sessions.by_id.get_mut(&session) {
                    if appears {
                        session.ephemerals.insert(id);
                        session.path_bytes += path_len;
                    } else {
                        session.ephemerals.remove(&id);
                        session.path_bytes -= path_len;
                    }
                }
                &mut self.totals.ephemerals
            }
            Owner::Container => &mut self.totals.containers,
            Owner::Ttl(_) => &mut self.totals.ttls,
        };
        *count = if appears { *count + 1 } else { *count - 1 };
    }

    /// Whether one more znode fits.
    pub(crate) fn check_room(&self, owner: Owner, path_len: usize) -> Result<(), ErrorCode> {
        let fits_session = match owner {
            Owner::Session(id) => self
                .session(id)
                .is_none_or(|session| session.path_bytes + path_len <= EPHEMERAL_PATHS_MAX),
            Owner::Nobody | Owner::Container | Owner::Ttl(_) => true,
        };
        match fits_session && self.nodes.has_room() {
            true => Ok(()),
            false => Err(ErrorCode::SystemError),
        }
    }

    /// The digest from scratch, for tests and for a store that is suspected.
    pub fn recompute_digest(&self) -> u64 {
        let mut sum = self.digest_beside_znodes();
        self.walk(|id, path| {
            let mut node = self.nodes.get(id).clone();
            node.content = digest::content(path, node.data(), self.acls.hash(node.acl()));
            sum = sum.wrapping_add(digest::of_node(&node));
        });
        sum
    }

    /// What everything but the znodes adds to the digest.
    pub(crate) fn digest_beside_znodes(&self) -> u64 {
        let sessions = self
            .sessions()
            .map(|(id, session)| digest::of_session(id, session));
        let newest = self.sessions.newest.ids().map(digest::of_newest_session);
        let ensemble = self.ensemble().map(digest::of_ensemble);
        let restored = self.restored.as_ref().map(digest::of_restored);
        sessions
            .chain(newest)
            .chain(ensemble)
            .chain(restored)
            .fold(self.pieces.digest(), u64::wrapping_add)
    }

    /// Visits every znode with its path, parents first.
    pub(crate) fn walk(&self, mut visit: impl FnMut(NodeId, &str)) {
        visit(ROOT, "/");
        self.walk_below(ROOT, "", |_, id, path| visit(id, path));
    }

    /// Visits every znode below one, whose path is given (empty for the root's).
    pub(crate) fn walk_below(
        &self,
        top: NodeId,
        top_path: &str,
        mut visit: impl FnMut(&Tree, NodeId, &str),
    ) {
        let mut path = top_path.to_string();
        let mut id = top;
        loop {
            let node = self.nodes.get(id);
            let next = match node.first_child() {
                NIL => self.next_in_walk(top, id, &mut path),
                child => Some(child),
            };
            let Some(next) = next else { return };
            id = next;
            path.push('/');
            path.push_str(self.nodes.get(id).name_text());
            visit(self, id, &path);
        }
    }

    /// The next sibling, or that of the closest ancestor that has one; cuts the path back to its parent.
    fn next_in_walk(&self, top: NodeId, mut id: NodeId, path: &mut String) -> Option<NodeId> {
        while id != top {
            let node = self.nodes.get(id);
            path.truncate(path.len() - node.name().len() - 1);
            if node.next != NIL {
                return Some(node.next);
            }
            id = node.parent;
        }
        None
    }

    fn mark(&mut self, id: NodeId) {
        let node = self.nodes.get_mut(id);
        if !node.has(marks::LISTED) {
            node.set(marks::LISTED, true);
            self.dirty.bytes += checkpoint::row_size(node);
            self.dirty.list(id);
        }
    }

    fn mark_gone(&mut self, id: NodeId) {
        let node = self.nodes.get(id);
        if node.has(marks::STORED) {
            self.dirty.remove(node);
        }
    }
}
