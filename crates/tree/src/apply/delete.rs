//! delete, and the removal that it shares with the end of sessions, containers and TTL znodes.

use quenda_proto::ErrorCode;
use quenda_proto::acl::perms::DELETE;
use quenda_proto::records::DeleteRequest;

use super::{Transaction, check_version, given, split};
use crate::Tree;
use crate::changes::{Change, ChangeKind};
use crate::node::NodeId;
use crate::tree::BUILT_IN;

impl Tree {
    pub(super) fn delete(
        &mut self,
        tx: &mut Transaction<'_>,
        request: &DeleteRequest<'_>,
    ) -> Result<(), ErrorCode> {
        tx.session?;
        let path: &str = given(&request.path)?;
        let (parent_path, _) = split(path)?;
        if BUILT_IN.contains(&path) {
            return Err(ErrorCode::BadArguments);
        }
        let parent = self.lookup(parent_path).ok_or(ErrorCode::NoNode)?;
        self.check_permission(tx, self.nodes.get(parent).acl(), DELETE)?;
        let id = self.child_at(parent, path).ok_or(ErrorCode::NoNode)?;
        let node = self.nodes.get(id);
        check_version(request.version, node.version())?;
        if node.children() > 0 {
            return Err(ErrorCode::NotEmpty);
        }
        self.remove_node(tx, path, id);
        Ok(())
    }

    /// Removes a childless znode.
    pub(super) fn remove_node(&mut self, tx: &mut Transaction<'_>, path: &str, id: NodeId) {
        let node = self.nodes.get(id);
        let (acl, parent, bytes) = (node.acl(), node.parent, node.data_len());
        let parent_acl = self.parent_acl(id);
        let parent_pzxid = self.nodes.get(parent).pzxid();
        let removed = self.detach(id, path.len());
        self.alter(parent, |parent| parent.more_mut().pzxid = tx.zxid);
        if let Some(undo) = &mut tx.undo {
            undo.deleted(id, removed, parent, parent_pzxid, path.len());
        }
        tx.changed(Change {
            kind: ChangeKind::Deleted,
            path,
            zxid: tx.zxid,
            acl,
            parent_acl,
        });
        self.charge_quota(tx, path, -1, -(bytes as i64));
    }
}
