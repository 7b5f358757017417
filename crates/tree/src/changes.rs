//! What happened to znodes, in the order in which watches fire.

use crate::acl::AclId;

/// What happened to a znode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChangeKind {
    /// It came into being.
    Created,
    /// It was removed.
    Deleted,
    /// Its data was replaced.
    DataChanged,
}

/// One change, as watches need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change<'a> {
    /// What happened.
    pub kind: ChangeKind,
    /// Path of the znode.
    pub path: &'a str,
    /// zxid of the transaction.
    pub zxid: i64,
    /// List of the znode: the new one's, the one it had, the current one. Readable through the tree
    /// until the next command is applied.
    pub acl: AclId,
    /// List of the parent; the root's own when the root changed.
    pub parent_acl: AclId,
}

#[derive(Debug, Clone, Copy)]
struct Item {
    kind: ChangeKind,
    start: usize,
    end: usize,
    zxid: i64,
    acl: AclId,
    parent_acl: AclId,
}

/// A list of changes. The paths share one buffer, which is kept over [`Changes::clear`].
#[derive(Debug, Default)]
pub struct Changes {
    paths: String,
    items: Vec<Item>,
    over_quota: Option<Box<str>>,
    quota_excess: Option<QuotaExcess>,
}

/// A quota that the totals of its subtree are above, although the write was not refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaExcess {
    /// The path that the quota is for.
    pub path: Box<str>,
    /// Bytes, not znodes.
    pub bytes: bool,
    /// The limit is a hard one, which is not enforced.
    pub hard: bool,
    /// The total.
    pub current: i64,
    /// The limit.
    pub limit: i64,
}

impl Changes {
    /// An empty list.
    pub fn new() -> Changes {
        Changes::default()
    }

    /// The changes, oldest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Change<'_>> + '_ {
        self.items.iter().map(|item| Change {
            kind: item.kind,
            path: &self.paths[item.start..item.end],
            zxid: item.zxid,
            acl: item.acl,
            parent_acl: item.parent_acl,
        })
    }

    /// Number of changes.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The znode that a write was refused for, as it would have gone over a hard quota.
    pub fn over_quota(&self) -> Option<&str> {
        self.over_quota.as_deref()
    }

    /// A quota that the write went over without being refused.
    pub fn quota_excess(&self) -> Option<&QuotaExcess> {
        self.quota_excess.as_ref()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.paths.clear();
        self.items.clear();
        self.over_quota = None;
        self.quota_excess = None;
    }

    pub(crate) fn goes_over_quota(&mut self, excess: QuotaExcess) {
        self.quota_excess = Some(excess);
    }

    pub(crate) fn refused_by_quota(&mut self, path: &str) {
        self.over_quota = Some(path.into());
    }

    pub(crate) fn push(&mut self, change: Change<'_>) {
        let start = self.paths.len();
        self.paths.push_str(change.path);
        self.items.push(Item {
            kind: change.kind,
            start,
            end: self.paths.len(),
            zxid: change.zxid,
            acl: change.acl,
            parent_acl: change.parent_acl,
        });
    }

    /// Forgets all but the first `len` changes. A write that was refused stays refused.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.quota_excess = None;
        if let Some(item) = self.items.get(len) {
            self.paths.truncate(item.start);
            self.items.truncate(len);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(path: &str) -> Change<'_> {
        Change {
            kind: ChangeKind::Created,
            path,
            zxid: 1,
            acl: AclId::OPEN,
            parent_acl: AclId::OPEN,
        }
    }

    #[test]
    fn what_is_cut_off_leaves_no_text_behind() {
        let mut changes = Changes::new();
        for path in ["/a", "/bb", "/ccc"] {
            changes.push(change(path));
        }
        changes.truncate(5);
        assert_eq!(changes.len(), 3);
        changes.truncate(1);
        changes.push(change("/d"));
        let paths: Vec<_> = changes.iter().map(|change| change.path).collect();
        assert_eq!(paths, ["/a", "/d"]);
    }
}
