//! setData, setACL and check.

use quenda_proto::ErrorCode;
use quenda_proto::acl::perms::{ADMIN, READ, WRITE};
use quenda_proto::path::validate;
use quenda_proto::records::{CheckVersionRequest, SetAclRequest, SetDataRequest, Stat};

use super::{Transaction, check_version, given, next_version};
use crate::Tree;
use crate::changes::{Change, ChangeKind};
use crate::digest;
use crate::node::NodeId;
use crate::undo::Metadata;

impl Tree {
    pub(super) fn set_data(
        &mut self,
        tx: &mut Transaction<'_>,
        request: &SetDataRequest<'_>,
    ) -> Result<Stat, ErrorCode> {
        tx.session?;
        let path = request.path.as_deref().ok_or(ErrorCode::BadArguments)?;
        let id = self.valid_node(path)?;
        let node = self.nodes.get(id);
        self.check_permission(tx, node.acl(), WRITE)?;
        let growth = request.data.map_or(0, <[u8]>::len) as i64 - node.data_len() as i64;
        self.check_quota(tx, path, 0, growth)?;
        check_version(request.version, node.version())?;

        let before = Metadata::of(node);
        let acl = node.acl();
        let (zxid, time_ms) = (tx.zxid, tx.time_ms);
        let old = self.replace_data(id, path, request.data, |node| {
            let more = node.more_mut();
            more.version = next_version(more.version);
            more.mzxid = zxid;
            more.mtime = time_ms;
        });
        if let Some(undo) = &mut tx.undo {
            undo.data_replaced(id, before, old);
        }
        tx.changed(Change {
            kind: ChangeKind::DataChanged,
            path,
            zxid,
            acl,
            parent_acl: self.parent_acl(id),
        });
        let stat = self.nodes.get(id).stat();
        self.charge_quota(tx, path, 0, growth);
        Ok(stat)
    }

    pub(super) fn set_acl(
        &mut self,
        tx: &mut Transaction<'_>,
        request: &SetAclRequest<'_>,
    ) -> Result<Stat, ErrorCode> {
        tx.session?;
        let path = request.path.as_deref().ok_or(ErrorCode::BadArguments)?;
        validate(path).map_err(|_| ErrorCode::BadArguments)?;
        let given = request.acl.as_deref();
        let list = tx.resolve_acl(&mut self.acls, given)?;
        let id = self.lookup(path).ok_or(ErrorCode::NoNode)?;
        let node = self.nodes.get(id);
        self.check_permission(tx, node.acl(), ADMIN)?;
        check_version(request.version, node.aversion())?;

        let old = node.acl();
        let content = digest::content(path, node.data(), self.acls.hash(list));
        self.acls.acquire(list);
        self.acls.release(old);
        self.alter(id, |node| {
            node.set_acl(list);
            node.content = content;
            let more = node.more_mut();
            more.aversion = next_version(more.aversion);
        });
        Ok(self.nodes.get(id).stat())
    }

    pub(super) fn check(
        &mut self,
        tx: &mut Transaction<'_>,
        request: &CheckVersionRequest<'_>,
    ) -> Result<(), ErrorCode> {
        tx.session?;
        let id = self.valid_node(given(&request.path)?)?;
        let node = self.nodes.get(id);
        self.check_permission(tx, node.acl(), READ)?;
        check_version(request.version, node.version())
    }

    /// The znode at a path that has to obey the whole grammar.
    fn valid_node(&self, path: &str) -> Result<NodeId, ErrorCode> {
        validate(path).map_err(|_| ErrorCode::BadArguments)?;
        self.lookup(path).ok_or(ErrorCode::NoNode)
    }
}
