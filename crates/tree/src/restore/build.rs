//! A tree from a snapshot.

use std::collections::HashMap;
use std::io::Read;

use quenda_proto::path::validate;

use crate::Tree;
use crate::acl::{AclEntry, AclId};
use crate::digest;
use crate::node::{Node, NodeId, Owner, ROOT};
use crate::session::{Cluster, Session};
use crate::snapshot::{self, Content, NO_CLUSTER, Record, SnapshotError};

/// Path of the membership, which is this cluster's and not that of a snapshot.
pub(crate) const CONFIG: &str = "/zookeeper/config";

/// Greatest epoch of a zxid that is taken over: there have to be others behind it.
const EPOCH_MAX: i64 = 0x3FFF_FFFF;
const ZXID_MAX: i64 = EPOCH_MAX << 32 | 0xFFFF_FFFF;

/// Bits of a TTL znode's owner that name a kind of znode; there is one kind.
const OWNER_KIND: i64 = 0xFFFF << 40;

/// A tree that was built. It does not know yet of members, of its place in the log, of zxids.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) tree: Tree,
    /// Greatest zxid anywhere in it.
    pub(crate) newest_zxid: i64,
    pub(crate) last_zxid: Option<i64>,
    pub(crate) orphans: u64,
    pub(crate) digest_fits: Option<bool>,
}

/// Builds the tree of a snapshot of `size` bytes, for this cluster.
pub(crate) fn build(
    input: impl Read,
    size: u64,
    cluster: Option<&Cluster>,
) -> Result<Built, SnapshotError> {
    let mut builder = Builder::new(cluster);
    let trailers = snapshot::read(input, size, &mut builder)?;
    if let Some(zxid) = trailers.last_zxid {
        builder.note_zxid(zxid)?;
    }
    builder.tree.acls.sweep();
    builder.tree.recount_quotas();
    Ok(Built {
        tree: builder.tree,
        newest_zxid: builder.newest_zxid,
        last_zxid: trailers.last_zxid,
        orphans: builder.orphans,
        digest_fits: trailers.digest_fits,
    })
}

struct Builder {
    tree: Tree,
    lists: HashMap<i64, AclId>,
    /// Whether the sessions are those of a ZooKeeper.
    imports: bool,
    /// The parent of the last znode: most have the same one.
    parent: (String, NodeId),
    newest_zxid: i64,
    orphans: u64,
}

impl Builder {
    fn new(cluster: Option<&Cluster>) -> Builder {
        let mut tree = Tree::new();
        if let Some(cluster) = cluster {
            tree.take_identity(cluster.clone());
        }
        Builder {
            tree,
            lists: HashMap::new(),
            imports: false,
            parent: ("/".to_string(), ROOT),
            newest_zxid: 0,
            orphans: 0,
        }
    }

    fn note_zxid(&mut self, zxid: i64) -> Result<(), SnapshotError> {
        if !(0..=ZXID_MAX).contains(&zxid) {
            return Err(SnapshotError::Zxid(zxid));
        }
        self.newest_zxid = self.newest_zxid.max(zxid);
        Ok(())
    }

    /// Metadata of a znode that is always there.
    fn overwrite(&mut self, id: NodeId, path: &str, acl: AclId, record: &Record<'_>) {
        let tree = &mut self.tree;
        tree.acls.acquire(acl);
        let before = tree.alter(id, |node| node.replace_acl(acl));
        tree.acls.release(before);
        tree.replace_data(id, path, record.data, |node| record.stat.put(node));
    }

    fn find_parent(&mut self, path: &str) -> Option<NodeId> {
        if self.parent.0 != path {
            let id = self.tree.lookup(path)?;
            path.clone_into(&mut self.parent.0);
            self.parent.1 = id;
        }
        let id = self.parent.1;
        (!self.tree.nodes.get(id).is_ephemeral()).then_some(id)
    }

    fn insert(
        &mut self,
        path: &str,
        acl: AclId,
        owner: Owner,
        record: &Record<'_>,
    ) -> Result<(), SnapshotError> {
        let orphan = || SnapshotError::Orphan(path.to_string());
        let (parent_path, name) = path.rsplit_once('/').ok_or_else(orphan)?;
        let parent = self.find_parent(parent_path).ok_or_else(orphan)?;
        if self.tree.child(parent, name.as_bytes()).is_some() {
            return Err(SnapshotError::Twice(format!("the znode {path}")));
        }
        if self.tree.check_room(owner, path.len()).is_err() {
            return Err(SnapshotError::TooMany(path.to_string()));
        }
        let mut node = Node::new(name, record.data, acl);
        record.stat.put(&mut node);
        node.content = digest::content(path, record.data, self.tree.acls.hash(acl));
        self.tree.attach(parent, node, path.len());
        Ok(())
    }
}

impl Content for Builder {
    fn header(&mut self, cluster: i64) {
        self.imports = cluster == NO_CLUSTER;
    }

    fn session(&mut self, id: i64, timeout_ms: i32) -> Result<(), SnapshotError> {
        if !Owner::can_be_session(id) || timeout_ms <= 0 {
            return Err(SnapshotError::Session { id, timeout_ms });
        }
        let mut session = Session::new(timeout_ms, 0);
        session.imported = self.imports;
        match self.tree.sessions.by_id.insert(id, session) {
            None => Ok(()),
            Some(_) => Err(SnapshotError::Twice(format!("the session {id:#x}"))),
        }
    }

    fn acl(&mut self, key: i64, entries: Vec<AclEntry>) -> Result<(), SnapshotError> {
        let list = self.tree.acls.intern(entries);
        match self.lists.insert(key, list) {
            None => Ok(()),
            Some(_) => Err(SnapshotError::Twice(format!(
                "the access control list {key}"
            ))),
        }
    }

    fn node(
        &mut self,
        path: &str,
        acl: Option<i64>,
        record: &Record<'_>,
    ) -> Result<(), SnapshotError> {
        let list = match acl {
            None => Some(AclId::OPEN),
            Some(key) => self.lists.get(&key).copied(),
        };
        let acl = list.ok_or_else(|| SnapshotError::UnknownAcl {
            path: path.to_string(),
            key: record.acl,
        })?;
        for zxid in [record.stat.czxid, record.stat.mzxid, record.stat.pzxid] {
            self.note_zxid(zxid)?;
        }
        check_path(path)?;
        let owner = check_owner(path, record.stat.owner)?;
        match path {
            "" => self.overwrite(ROOT, "/", acl, record),
            CONFIG => {}
            "/zookeeper" | "/zookeeper/quota" => {
                let id = self.find_parent(path);
                let id = id.ok_or_else(|| SnapshotError::Orphan(path.to_string()))?;
                self.overwrite(id, path, acl, record);
            }
            _ => match owner {
                Owner::Session(id) if self.tree.session(id).is_none() => self.orphans += 1,
                _ => self.insert(path, acl, owner, record)?,
            },
        }
        Ok(())
    }
}

/// What no client could create no client could reach and delete either.
fn check_path(path: &str) -> Result<(), SnapshotError> {
    match path.is_empty() || validate(path).is_ok() {
        true => Ok(()),
        false => Err(SnapshotError::Path(path.to_string())),
    }
}

fn check_owner(path: &str, raw: i64) -> Result<Owner, SnapshotError> {
    let owner = Owner::from_raw(raw);
    let is_known = match owner {
        Owner::Nobody => true,
        _ if crate::tree::BUILT_IN.contains(&path) || path.is_empty() => false,
        Owner::Session(_) | Owner::Container => true,
        Owner::Ttl(_) => raw & OWNER_KIND == 0,
    };
    match is_known {
        true => Ok(owner),
        false => Err(SnapshotError::Owner {
            path: path.to_string(),
            owner: raw,
        }),
    }
}
