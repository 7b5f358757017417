//! Quotas: limits and totals of subtrees, kept in znodes below `/zookeeper/quota` that clients create.
//!
//! Which quotas are active follows from the znodes alone, so nothing has to be kept in step with them:
//! path P has one iff `/zookeeper/quota` + P + `/zookeeper_limits` exists. The root has none.

use quenda_proto::ErrorCode;

use crate::Tree;
use crate::apply::Transaction;
use crate::changes::QuotaExcess;
use crate::limits::QUOTA_TEXT_MAX;
use crate::node::NodeId;
use crate::tree::QUOTA;
use crate::undo::Metadata;

pub(crate) const QUOTA_PATH: &str = "/zookeeper/quota";
pub(crate) const LIMITS: &str = "zookeeper_limits";
pub(crate) const STATS: &str = "zookeeper_stats";

/// The deepest active quota above a path.
struct ActiveQuota<'p> {
    /// The path that the quota is for.
    prefix: &'p str,
    limits: NodeId,
    stats: Option<NodeId>,
}

impl Tree {
    fn active_quota<'p>(&self, path: &'p str) -> Option<ActiveQuota<'p>> {
        if self.nodes.get(QUOTA).children() == 0 {
            return None;
        }
        let mut found = None;
        let mut node = QUOTA;
        let mut end = 0;
        for name in path.strip_prefix('/')?.split('/') {
            let Some(below) = self.child(node, name.as_bytes()) else {
                break;
            };
            node = below;
            end += 1 + name.len();
            if let Some(limits) = self.child(node, LIMITS.as_bytes()) {
                found = Some((end, node, limits));
            }
        }
        found.map(|(end, node, limits)| ActiveQuota {
            prefix: &path[..end],
            limits,
            stats: self.child(node, STATS.as_bytes()),
        })
    }

    /// Refuses a change that goes over a hard limit, if the request's member enforces them.
    pub(crate) fn check_quota(
        &self,
        tx: &mut Transaction<'_>,
        path: &str,
        count: i64,
        bytes: i64,
    ) -> Result<(), ErrorCode> {
        if !tx.switches.enforce_quota {
            return Ok(());
        }
        let verdict = self.active_quota(path).and_then(|quota| {
            let limits = QuotaText::parse(self.nodes.get(quota.limits).bytes())?;
            let totals = QuotaText::parse(self.nodes.get(quota.stats?).bytes())?;
            let is_over = |by: i64, total: Option<i64>, limit: Option<i64>| {
                let limit = limit.filter(|limit| *limit > -1);
                by != 0 && limit.is_some_and(|limit| total.unwrap_or(-1).saturating_add(by) > limit)
            };
            let over_count = is_over(count, totals.count, limits.count_hard);
            let over_bytes = is_over(bytes, totals.bytes, limits.bytes_hard);
            (over_count || over_bytes).then_some(ErrorCode::QuotaExceeded)
        });
        if verdict.is_some() {
            tx.changes.refused_by_quota(path);
        }
        verdict.map_or(Ok(()), Err)
    }

    /// Adds a change to the totals of the deepest active quota.
    pub(crate) fn charge_quota(
        &mut self,
        tx: &mut Transaction<'_>,
        path: &str,
        count: i64,
        bytes: i64,
    ) {
        if count == 0 && bytes == 0 {
            return;
        }
        let Some(quota) = self.active_quota(path) else {
            return;
        };
        let Some(stats) = quota.stats else { return };
        let Some(mut text) = QuotaText::parse(self.nodes.get(stats).bytes()) else {
            return;
        };
        text.count = Some(text.count.unwrap_or(-1).saturating_add(count));
        text.bytes = Some(text.bytes.unwrap_or(-1).saturating_add(bytes));
        if let Some(excess) = self.excess(&quota, &text, count, bytes) {
            tx.changes.goes_over_quota(excess);
        }
        let stats_path = format!("{QUOTA_PATH}{}/{STATS}", quota.prefix);
        let text = text.to_string();
        self.replace_silently(tx, stats, &stats_path, text.as_bytes());
    }

    /// The limit that a growing total is above, the hard one if there is one.
    fn excess(
        &self,
        quota: &ActiveQuota<'_>,
        totals: &QuotaText<'_>,
        count: i64,
        bytes: i64,
    ) -> Option<QuotaExcess> {
        let limits = QuotaText::parse(self.nodes.get(quota.limits).bytes())?;
        let above = |by: i64, total: Option<i64>, soft: Option<i64>, hard: Option<i64>| {
            let hard = hard.filter(|limit| *limit > -1);
            let limit = hard.or(soft.filter(|limit| *limit > -1))?;
            let current = total?;
            (by > 0 && current > limit).then_some((hard.is_some(), current, limit))
        };
        let of_count = above(count, totals.count, limits.count, limits.count_hard);
        let of_bytes = above(bytes, totals.bytes, limits.bytes, limits.bytes_hard);
        let (in_bytes, (hard, current, limit)) = match (of_count, of_bytes) {
            (Some(excess), _) => (false, excess),
            (None, excess) => (true, excess?),
        };
        Some(QuotaExcess {
            path: quota.prefix.into(),
            bytes: in_bytes,
            hard,
            current,
            limit,
        })
    }

    /// A new `zookeeper_stats` is overwritten at once with the totals of its subtree.
    pub(crate) fn quota_created(
        &mut self,
        tx: &mut Transaction<'_>,
        parent_path: &str,
        path: &str,
        id: NodeId,
    ) {
        let prefix = match parent_path.strip_prefix(QUOTA_PATH) {
            Some(prefix) if prefix.starts_with('/') => prefix,
            _ => return,
        };
        if self.nodes.get(id).name() != STATS.as_bytes() {
            return;
        }
        let text = self.totals_of(prefix).to_string();
        self.replace_silently(tx, id, path, text.as_bytes());
    }

    /// Counts the totals of all quotas anew, as far as they are kept.
    pub(crate) fn recount_quotas(&mut self) {
        let mut kept = Vec::new();
        self.walk_below(QUOTA, QUOTA_PATH, |tree, id, path| {
            let parent = tree.nodes.get(id).parent;
            let is_stats = tree.nodes.get(id).name() == STATS.as_bytes();
            // The root has none.
            if is_stats && parent != QUOTA && tree.child(parent, LIMITS.as_bytes()).is_some() {
                kept.push((id, path.to_string()));
            }
        });
        for (id, path) in kept {
            let end = path.len() - STATS.len() - 1;
            let text = self.totals_of(&path[QUOTA_PATH.len()..end]).to_string();
            self.replace_data(id, &path, Some(text.as_bytes()), |_| {});
        }
    }

    /// Znodes and bytes of a subtree as the text says them.
    fn totals_of(&self, prefix: &str) -> QuotaText<'static> {
        let (count, bytes) = match self.lookup(prefix) {
            None => (0, 0),
            Some(top) => {
                let top = self.nodes.get(top);
                (i64::from(top.subtree_nodes()), top.subtree_bytes() as i64)
            }
        };
        QuotaText {
            count: Some(count),
            bytes: Some(bytes),
            ..QuotaText::default()
        }
    }

    /// Replaces data without a new version, time or watch event.
    fn replace_silently(&mut self, tx: &mut Transaction<'_>, id: NodeId, path: &str, data: &[u8]) {
        let before = Metadata::of(self.nodes.get(id));
        let old = self.replace_data(id, path, Some(data), |_| {});
        if let Some(undo) = &mut tx.undo {
            undo.data_replaced(id, before, old);
        }
    }
}

/// The text of a limits or stats znode: `key=number` pairs. Keys that are not there stand for −1.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct QuotaText<'a> {
    pub(crate) count: Option<i64>,
    pub(crate) bytes: Option<i64>,
    pub(crate) count_hard: Option<i64>,
    pub(crate) bytes_hard: Option<i64>,
    /// Keys of others, kept.
    unknown: Vec<(&'a str, i64)>,
}

const COUNT: &str = "count";
const BYTES: &str = "bytes";
const COUNT_HARD: &str = "countHardLimit";
const BYTES_HARD: &str = "byteHardLimit";

impl<'a> QuotaText<'a> {
    /// None if the text is not of this form; it is then as if there were no quota.
    pub(crate) fn parse(data: &'a [u8]) -> Option<QuotaText<'a>> {
        if data.len() > QUOTA_TEXT_MAX {
            return None;
        }
        let mut text = QuotaText::default();
        let pieces = std::str::from_utf8(data).ok()?.split([',', ';']);
        for piece in pieces.filter(|piece| !piece.is_empty()) {
            let mut parts = piece.split('=');
            let key = parts.next()?;
            let value = match parts.next()? {
                "" => -1,
                number => number.parse().ok()?,
            };
            match key {
                COUNT => text.count = Some(value),
                BYTES => text.bytes = Some(value),
                COUNT_HARD => text.count_hard = Some(value),
                BYTES_HARD => text.bytes_hard = Some(value),
                key => text.put_unknown(key, value),
            }
        }
        Some(text)
    }

    fn put_unknown(&mut self, key: &'a str, value: i64) {
        match self.unknown.binary_search_by_key(&key, |(key, _)| key) {
            Ok(found) => self.unknown[found].1 = value,
            Err(place) => self.unknown.insert(place, (key, value)),
        }
    }
}

impl std::fmt::Display for QuotaText<'_> {
    /// The oldest form, and what it has no room for behind "=;", where old readers do not look.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = self.count.unwrap_or(-1);
        let bytes = self.bytes.unwrap_or(-1);
        write!(f, "{COUNT}={count},{BYTES}={bytes}")?;
        let hard = [(BYTES_HARD, self.bytes_hard), (COUNT_HARD, self.count_hard)];
        let hard = hard
            .iter()
            .filter_map(|(key, value)| Some((*key, (*value)?)));
        let mut others: Vec<(&str, i64)> = hard.chain(self.unknown.iter().copied()).collect();
        others.sort_unstable();
        if !others.is_empty() {
            f.write_str("=")?;
        }
        for (key, value) in others {
            write!(f, ";{key}={value}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_round_trip() {
        for text in [
            "count=1,bytes=2",
            "count=-1,bytes=-1",
            "count=1,bytes=2=;byteHardLimit=5",
            "count=1,bytes=2=;byteHardLimit=5;countHardLimit=6;zeta=7",
        ] {
            let parsed = QuotaText::parse(text.as_bytes()).expect("a quota text");
            assert_eq!(parsed.to_string(), text);
        }
    }

    #[test]
    fn missing_values_are_minus_one() {
        let text = QuotaText::parse(b"count=,,bytes=").expect("a quota text");
        assert_eq!((text.count, text.bytes), (Some(-1), Some(-1)));
        assert_eq!(QuotaText::parse(b""), Some(QuotaText::default()));
    }

    #[test]
    fn what_is_no_quota_text() {
        for text in [
            &b"count=x"[..],
            b"rubbish",
            b"\xFF",
            &[b'a'; QUOTA_TEXT_MAX + 1],
        ] {
            assert_eq!(QuotaText::parse(text), None);
        }
    }
}
