//! Taking back what the earlier operations of a multi did, so that nothing is copied beforehand.

use crate::Tree;
use crate::node::{Node, NodeId, OldData};
use crate::tree::Totals;

/// One step, with what takes it back.
#[derive(Debug)]
enum Step {
    Created {
        id: NodeId,
        parent: NodeId,
        parent_pzxid: i64,
        path_len: usize,
    },
    Deleted {
        id: NodeId,
        parent: NodeId,
        parent_pzxid: i64,
        path_len: usize,
        node: Box<Node>,
    },
    DataReplaced {
        id: NodeId,
        content: u64,
        mzxid: i64,
        mtime: i64,
        version: i32,
        old: OldData,
    },
}

/// The steps of a multi so far.
#[derive(Debug)]
pub(crate) struct Undo {
    steps: Vec<Step>,
    totals: Totals,
}

impl Undo {
    /// Starts at the tree as it is.
    pub(crate) fn start(tree: &Tree) -> Undo {
        Undo {
            steps: Vec::new(),
            totals: tree.totals,
        }
    }

    /// A znode was created; the parent had this pzxid.
    pub(crate) fn created(
        &mut self,
        id: NodeId,
        parent: NodeId,
        parent_pzxid: i64,
        path_len: usize,
    ) {
        self.steps.push(Step::Created {
            id,
            parent,
            parent_pzxid,
            path_len,
        });
    }

    /// A znode was deleted; the parent had this pzxid.
    pub(crate) fn deleted(
        &mut self,
        id: NodeId,
        node: Node,
        parent: NodeId,
        parent_pzxid: i64,
        path_len: usize,
    ) {
        self.steps.push(Step::Deleted {
            id,
            parent,
            parent_pzxid,
            path_len,
            node: Box::new(node),
        });
    }

    /// Data was replaced; `before` is the znode's metadata from before.
    pub(crate) fn data_replaced(&mut self, id: NodeId, before: Metadata, old: OldData) {
        self.steps.push(Step::DataReplaced {
            id,
            content: before.content,
            mzxid: before.mzxid,
            mtime: before.mtime,
            version: before.version,
            old,
        });
    }

    /// Takes everything back, the last step first. Znodes that are back are written again in the next
    /// checkpoint, behind the deletion of their rows.
    pub(crate) fn roll_back(self, tree: &mut Tree) {
        for step in self.steps.into_iter().rev() {
            take_back(tree, step);
        }
        debug_assert_eq!(tree.totals, self.totals, "a roll back leaves no trace");
        tree.totals = self.totals;
    }
}

/// What a setData changes beside the data.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Metadata {
    pub(crate) content: u64,
    pub(crate) mzxid: i64,
    pub(crate) mtime: i64,
    pub(crate) version: i32,
}

impl Metadata {
    pub(crate) fn of(node: &Node) -> Metadata {
        Metadata {
            content: node.content,
            mzxid: node.mzxid(),
            mtime: node.mtime(),
            version: node.version(),
        }
    }
}

fn take_back(tree: &mut Tree, step: Step) {
    match step {
        Step::Created {
            id,
            parent,
            parent_pzxid,
            path_len,
        } => {
            tree.detach(id, path_len);
            tree.alter(parent, |parent| {
                let more = parent.more_mut();
                more.creates = more.creates.wrapping_sub(1);
                more.pzxid = parent_pzxid;
            });
        }
        Step::Deleted {
            id,
            parent,
            parent_pzxid,
            path_len,
            node,
        } => {
            tree.reattach(parent, id, *node, path_len);
            tree.alter(parent, |parent| parent.more_mut().pzxid = parent_pzxid);
        }
        Step::DataReplaced {
            id,
            content,
            mzxid,
            mtime,
            version,
            old,
        } => tree.restore_data(id, old, |node| {
            node.content = content;
            let more = node.more_mut();
            more.mzxid = mzxid;
            more.mtime = mtime;
            more.version = version;
        }),
    }
}
