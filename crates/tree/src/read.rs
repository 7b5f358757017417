//! Reading the tree.

use quenda_proto::records::Stat;

use crate::Tree;
use crate::acl::{AclEntry, AclId};
use crate::identity::Identity;
use crate::limits::REAP_BYTES_MAX;
use crate::node::{NIL, Node, NodeId, ROOT};
use crate::session::{self, Scope, Session};

/// One znode of a tree that is not changing.
#[derive(Debug, Clone, Copy)]
pub struct Znode<'t> {
    tree: &'t Tree,
    node: &'t Node,
}

impl<'t> Znode<'t> {
    /// The data; null and empty are different.
    pub fn data(&self) -> Option<&'t [u8]> {
        self.node.data()
    }

    /// The metadata as clients see it.
    pub fn stat(&self) -> Stat {
        self.node.stat()
    }

    /// Number of the access control list.
    pub fn acl(&self) -> AclId {
        self.node.acl()
    }

    /// Number of direct children.
    pub fn child_count(&self) -> usize {
        self.node.children() as usize
    }

    /// Names of the children, in no order that means anything.
    pub fn children(&self) -> impl Iterator<Item = &'t str> + use<'t> {
        let tree = self.tree;
        let first = tree.nodes.find(self.node.first_child());
        std::iter::successors(first, |child| tree.nodes.find(child.next)).map(Node::name_text)
    }
}

/// Sizes of a tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Znodes, the built-in ones and the root included.
    pub znodes: usize,
    /// Ephemeral ones among them.
    pub ephemerals: usize,
    /// Containers among them.
    pub containers: usize,
    /// Those with a time to live among them.
    pub ttls: usize,
    /// Open sessions.
    pub sessions: usize,
    /// Bytes of all paths and data.
    pub data_bytes: u64,
}

impl Tree {
    /// The znode at a path; `""` is the root too. A path of bad syntax is just absent.
    pub fn get(&self, path: &str) -> Option<Znode<'_>> {
        let node = self.nodes.get(self.lookup(path)?);
        Some(Znode { tree: self, node })
    }

    /// The entries of a list, in their order.
    pub fn acl(&self, id: AclId) -> &[AclEntry] {
        self.acls.entries(id)
    }

    /// Whether a list gives one of the wanted permissions to one of the identities.
    pub fn allows(&self, acl: AclId, wanted: i32, identities: &[Identity]) -> bool {
        let matcher = self.acls.matcher(acl);
        matcher.allows_everybody(wanted)
            || matcher.allows(self.acls.entries(acl), wanted, identities)
    }

    /// Number of znodes below the one at a path.
    pub fn descendants(&self, path: &str) -> Option<usize> {
        let node = self.nodes.get(self.lookup(path)?);
        Some(node.subtree_nodes() as usize - 1)
    }

    /// One session.
    pub fn session(&self, id: i64) -> Option<&Session> {
        self.sessions.by_id.get(&id)
    }

    /// All sessions by id.
    pub fn sessions(&self) -> impl Iterator<Item = (i64, &Session)> + '_ {
        self.sessions
            .by_id
            .iter()
            .map(|(id, session)| (*id, session))
    }

    /// The password with which a session can be resumed.
    pub fn session_password(&self, id: i64) -> [u8; 16] {
        session::password(&self.secret(), Scope::Replicated, id)
    }

    /// The generation of all local sessions: another one behind each restore, so that nothing that was on its way
    /// changes the restored state.
    pub fn local_generation(&self) -> u64 {
        self.restored.map_or(0, |restored| restored.zxid as u64)
    }

    /// Whether this is the password of a session with this id, be it one of the cluster or of one member.
    pub fn is_session_password(&self, id: i64, password: &[u8; 16]) -> bool {
        let secret = self.secret();
        self.cluster().is_some() && session::is_password(&secret, Scope::Replicated, id, password)
    }

    /// The password of a session that a member without a quorum keeps for itself.
    pub fn local_session_password(&self, id: i64) -> [u8; 16] {
        session::password(&self.secret(), Scope::Local, id)
    }

    /// Whether a client presents such a session: its password can come from nowhere else.
    pub fn is_local_session(&self, id: i64, password: &[u8; 16]) -> bool {
        self.cluster().is_some() && session::is_password(&self.secret(), Scope::Local, id, password)
    }

    /// Paths of the ephemeral znodes of a session, ascending.
    pub fn ephemerals(&self, session: i64) -> impl Iterator<Item = String> + '_ {
        let mut paths: Vec<String> = self
            .sessions
            .by_id
            .get(&session)
            .into_iter()
            .flat_map(|session| &session.ephemerals)
            .map(|id| self.path_of(*id))
            .collect();
        paths.sort_unstable();
        paths.into_iter()
    }

    /// Sessions that own ephemeral znodes, with their number.
    pub fn ephemeral_owners(&self) -> impl Iterator<Item = (i64, usize)> + '_ {
        self.sessions()
            .map(|(id, session)| (id, session.ephemeral_count()))
            .filter(|(_, count)| *count > 0)
    }

    /// Paths of containers and TTL znodes that may be removed at `now_ms` (milliseconds since 1970),
    /// at most `limit` and [`REAP_BYTES_MAX`] of text. Containers that never had a child qualify `never_used_ms` after their last
    /// change, or never for 0.
    pub fn reap_candidates(&self, now_ms: i64, never_used_ms: i64, limit: usize) -> Vec<String> {
        let mut room = REAP_BYTES_MAX;
        self.reap
            .candidates(now_ms, never_used_ms)
            .take(limit)
            .map(|id| self.path_of(id))
            .take_while(|path| {
                let fits = room > 0;
                room = room.saturating_sub(path.len());
                fits
            })
            .collect()
    }

    /// The znode's number at a path.
    pub(crate) fn lookup(&self, path: &str) -> Option<NodeId> {
        if matches!(path, "" | "/") {
            return Some(ROOT);
        }
        let names = path.strip_prefix('/')?.as_bytes();
        names
            .split(|byte| *byte == b'/')
            .try_fold(ROOT, |parent, name| self.child(parent, name))
    }

    /// The child of this name.
    pub(crate) fn child(&self, parent: NodeId, name: &[u8]) -> Option<NodeId> {
        let hash = self.index.hash(parent, name);
        self.index.find(hash, |id| {
            let node = self.nodes.get(id);
            node.parent == parent && node.name() == name
        })
    }

    /// The child of a znode at `path`, which is the parent's own path, a slash and a name. Saves the second
    /// walk; the text decides where the two differ from the path itself.
    pub(crate) fn child_at(&self, parent: NodeId, path: &str) -> Option<NodeId> {
        match path.rsplit_once('/')? {
            ("", "") => Some(ROOT),
            ("/", _) => None,
            (_, name) => self.child(parent, name.as_bytes()),
        }
    }

    /// The path of a znode.
    pub(crate) fn path_of(&self, id: NodeId) -> String {
        let mut names = Vec::new();
        let mut node = self.nodes.get(id);
        while node.parent != NIL {
            names.push(node.name_text());
            node = self.nodes.get(node.parent);
        }
        if names.is_empty() {
            return "/".to_string();
        }
        let length = names.iter().map(|name| name.len() + 1).sum();
        let mut path = String::with_capacity(length);
        for name in names.iter().rev() {
            path.push('/');
            path.push_str(name);
        }
        path
    }
}
