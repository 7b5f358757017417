//! ZooKeeper's digest of a tree, version 2.

use crc32fast::Hasher;

use super::Record;

/// A sum of one CRC-32 for each znode.
#[derive(Debug, Default)]
pub(super) struct TreeDigest(u64);

impl TreeDigest {
    /// Adds a znode; the root has the empty path. What lies below `/zookeeper` does not count.
    pub(super) fn add(&mut self, path: &str, record: &Record<'_>) {
        if path.starts_with("/zookeeper/") {
            return;
        }
        let mut hasher = Hasher::new();
        hasher.update(path.as_bytes());
        hasher.update(record.data.unwrap_or_default());
        let stat = &record.stat;
        for value in [stat.czxid, stat.mzxid, stat.pzxid, stat.ctime, stat.mtime] {
            hasher.update(&value.to_be_bytes());
        }
        for value in [stat.version, stat.creates, stat.aversion] {
            hasher.update(&value.to_be_bytes());
        }
        hasher.update(&stat.owner.to_be_bytes());
        self.0 = self.0.wrapping_add(u64::from(hasher.finalize()));
    }

    pub(super) fn value(&self) -> i64 {
        self.0 as i64
    }
}

#[cfg(test)]
mod tests {
    use super::super::PersistedStat;
    use super::*;

    /// As a fresh server of version 3.8 shows it.
    #[test]
    fn a_fresh_tree_has_the_digest_of_a_fresh_zookeeper() {
        let record = Record {
            data: Some(b""),
            acl: -1,
            stat: PersistedStat::default(),
        };
        let mut digest = TreeDigest::default();
        for path in ["", "/zookeeper", "/zookeeper/config", "/zookeeper/quota"] {
            digest.add(path, &record);
        }
        assert_eq!(digest.value(), 1_371_985_504);
    }
}
