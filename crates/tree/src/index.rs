//! Children by name: one hash table for the whole tree, from (parent, name) to the znode.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::node::NodeId;

/// Tables; a growing one moves its own entries only, so no single create pays for all of them.
const SHARDS: usize = 256;

#[derive(Debug, Clone, Copy)]
struct Slot {
    /// Kept, so that growing a table does not touch the znodes.
    hash: u32,
    node: NodeId,
}

/// The hash tables. Their order is never looked at.
#[derive(Debug)]
pub(crate) struct Index {
    shards: Vec<HashTable<Slot>>,
    /// From the cluster's secret, so that clients cannot choose names that collide.
    seed: u64,
}

impl Index {
    pub(crate) fn new(seed: u64) -> Index {
        Index::with_capacity(seed, 0)
    }

    /// Room for so many znodes.
    pub(crate) fn with_capacity(seed: u64, nodes: usize) -> Index {
        // The shards differ in size by chance; a sixteenth more spares most of them the growth.
        let each = nodes.div_ceil(SHARDS) + nodes / (16 * SHARDS);
        let shards = (0..SHARDS)
            .map(|_| HashTable::with_capacity(each))
            .collect();
        Index { shards, seed }
    }

    /// Hash of a child's place.
    pub(crate) fn hash(&self, parent: NodeId, name: &[u8]) -> u32 {
        let parent = u64::from(parent).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let hash = xxh3_64_with_seed(name, self.seed ^ parent);
        (hash ^ hash >> 32) as u32
    }

    /// The znode with this hash that `is_it` recognizes.
    pub(crate) fn find(&self, hash: u32, mut is_it: impl FnMut(NodeId) -> bool) -> Option<NodeId> {
        self.shards[shard(hash)]
            .find(spread(hash), |slot| slot.hash == hash && is_it(slot.node))
            .map(|slot| slot.node)
    }

    /// Adds a znode that is not in yet.
    pub(crate) fn insert(&mut self, hash: u32, node: NodeId) {
        self.shards[shard(hash)]
            .insert_unique(spread(hash), Slot { hash, node }, |slot| spread(slot.hash));
    }

    /// Takes a znode out.
    pub(crate) fn remove(&mut self, hash: u32, node: NodeId) {
        let entry = self.shards[shard(hash)].entry(
            spread(hash),
            |slot| slot.node == node,
            |slot| spread(slot.hash),
        );
        if let Entry::Occupied(entry) = entry {
            entry.remove();
        }
    }
}

fn shard(hash: u32) -> usize {
    (hash >> 24) as usize
}

/// A table takes the place from the low bits and a tag from the top ones.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
