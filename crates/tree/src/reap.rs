//! Containers and TTL znodes that have no children, by the time at which they may go.

use std::collections::BTreeSet;

use crate::node::{Node, NodeId, Owner};

/// Since when a znode may be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    /// At a time, milliseconds since 1970.
    At(i64),
    /// A container that never had a child, so long after this time as the operator says.
    UnusedSince(i64),
}

fn due(node: &Node) -> Option<Due> {
    if node.children() > 0 {
        return None;
    }
    match node.owner() {
        Owner::Container if node.creates() != 0 => Some(Due::At(i64::MIN)),
        Owner::Container => Some(Due::UnusedSince(node.mtime())),
        Owner::Ttl(ttl) => Some(Due::At(node.mtime().saturating_add(ttl))),
        Owner::Nobody | Owner::Session(_) => None,
    }
}

/// Whether a znode may be removed now.
pub(crate) fn is_due(node: &Node, now_ms: i64, never_used_ms: i64) -> bool {
    match due(node) {
        Some(Due::At(time)) => time < now_ms,
        Some(Due::UnusedSince(time)) => {
            never_used_ms > 0 && time.saturating_add(never_used_ms) < now_ms
        }
        None => false,
    }
}

/// The childless containers and TTL znodes of a tree.
#[derive(Debug, Default)]
pub(crate) struct ReapQueue {
    due: BTreeSet<(i64, NodeId)>,
    unused: BTreeSet<(i64, NodeId)>,
}

impl ReapQueue {
    /// A znode appeared, or a change of it is over.
    pub(crate) fn add(&mut self, id: NodeId, node: &Node) {
        match due(node) {
            Some(Due::At(time)) => self.due.insert((time, id)),
            Some(Due::UnusedSince(time)) => self.unused.insert((time, id)),
            None => false,
        };
    }

    /// A znode is about to go or to change.
    pub(crate) fn remove(&mut self, id: NodeId, node: &Node) {
        match due(node) {
            Some(Due::At(time)) => self.due.remove(&(time, id)),
            Some(Due::UnusedSince(time)) => self.unused.remove(&(time, id)),
            None => false,
        };
    }

    /// Znodes that may be removed now, those that waited longest first.
    pub(crate) fn candidates(
        &self,
        now_ms: i64,
        never_used_ms: i64,
    ) -> impl Iterator<Item = NodeId> + '_ {
        let unused_before = match never_used_ms {
            ..=0 => i64::MIN,
            ms => now_ms.saturating_sub(ms),
        };
        let due = self.due.range(..(now_ms, 0));
        let unused = self.unused.range(..(unused_before, 0));
        due.chain(unused).map(|(_, id)| *id)
    }
}
