//! Quotas as operators see them: limits and totals by namespace.

use std::collections::BTreeMap;

use crate::Tree;
use crate::quota::{LIMITS, QUOTA_PATH, QuotaText, STATS};

/// Limits and totals of all quotas below one namespace, the first part of a path. Missing values are −1, as in the
/// znodes that hold them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NamespaceQuota {
    /// Znodes allowed: by the hard limits, where there are any.
    pub count_limit: i64,
    /// Bytes allowed.
    pub bytes_limit: i64,
    /// Znodes there are.
    pub count: i64,
    /// Bytes there are.
    pub bytes: i64,
}

impl Tree {
    /// The sums of the quotas of each namespace. Looks at `max` znodes below `/zookeeper/quota` at most.
    pub fn quotas(&self, max: usize) -> BTreeMap<&str, NamespaceQuota> {
        let mut found = BTreeMap::new();
        let mut open: Vec<(Option<&str>, String)> = vec![(None, QUOTA_PATH.to_owned())];
        let mut seen = 0;
        while let Some((namespace, path)) = open.pop() {
            let Some(znode) = self.get(&path) else {
                continue;
            };
            for name in znode.children() {
                seen += 1;
                if seen > max {
                    return found;
                }
                let below = format!("{path}/{name}");
                match namespace {
                    Some(namespace) if name == LIMITS || name == STATS => {
                        self.add_quota(found.entry(namespace).or_default(), &below, name);
                    }
                    _ => open.push((Some(namespace.unwrap_or(name)), below)),
                }
            }
        }
        found
    }

    fn add_quota(&self, sums: &mut NamespaceQuota, path: &str, name: &str) {
        let data = self.get(path).and_then(|znode| znode.data());
        let Some(text) = data.and_then(QuotaText::parse) else {
            return;
        };
        let soft = |value: Option<i64>| value.unwrap_or(-1);
        let limit =
            |hard: Option<i64>, value| hard.filter(|hard| *hard > -1).unwrap_or(soft(value));
        if name == LIMITS {
            sums.count_limit += limit(text.count_hard, text.count);
            sums.bytes_limit += limit(text.bytes_hard, text.bytes);
        } else {
            sums.count += soft(text.count);
            sums.bytes += soft(text.bytes);
        }
    }
}
