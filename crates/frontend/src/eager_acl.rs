//! Writes that are seen to be forbidden before anybody is asked to agree on them (`enableEagerACLCheck`).

use quenda_proto::op::Needs;
use quenda_proto::{Op, path};

use crate::connection::Connection;
use crate::observe::path_of;
use crate::world::World;

impl Connection {
    /// Whether the tree of this member already says that the client may not do this write. A write or a barrier of the
    /// connection that is under way may change the verdict: then, and where there is no such znode, applying it decides.
    pub(crate) fn is_forbidden(&self, op: Op, body: &[u8], world: &World<'_>) -> bool {
        let settings = &self.settings;
        if !settings.eager_acl_check || settings.skip_acl || self.pending.has_awaited() {
            return false;
        }
        let Some((path, wanted)) = guarded(op, body) else {
            return false;
        };
        let node = world.tree.get(path);
        node.is_some_and(|node| !world.tree.allows(node.acl(), wanted, &self.identities))
    }
}

/// The znode whose list decides, and the permission that it must give. As in ZooKeeper a multi is left to be applied.
fn guarded(op: Op, body: &[u8]) -> Option<(&str, i32)> {
    let path = core::str::from_utf8(path_of(op, body)).ok();
    let path = path.filter(|path| !path.is_empty())?;
    match op.info().needs {
        Needs::OnNode(wanted) => Some((path, wanted)),
        Needs::OnParent(wanted) => Some((path::parent(path), wanted)),
        Needs::OfEach | Needs::Nothing => None,
    }
}
