//! Children by name: hash tables for the whole tree, from (parent, name) to the znode.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::node::NodeId;

/// Tables; a growing one moves its own entries only, so no single create pays for all of them.
const SHARDS: usize = 1 << SHARD_BITS;
const SHARD_BITS: u32 = 12;

/// An entry of a table: the half of the hash that does not choose the table, kept so that neither growing nor a
/// look at a wrong entry touches znodes; and the znode's number in two halves, as six bytes take less than eight.
#[derive(Debug, Clone, Copy)]
struct Slot([u16; 3]);

impl Slot {
    fn new(hash: u32, node: NodeId) -> Slot {
        Slot([hash as u16, node as u16, (node >> 16) as u16])
    }

    fn hash(self) -> u16 {
        self.0[0]
    }

    fn node(self) -> NodeId {
        NodeId::from(self.0[1]) | NodeId::from(self.0[2]) << 16
    }
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
        let shards = (0..SHARDS)
            .map(|shard| HashTable::with_capacity((nodes as f64 * part(shard)) as usize))
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
        let kept = hash as u16;
        self.shards[shard(hash)]
            .find(spread(kept), |slot| {
                slot.hash() == kept && is_it(slot.node())
            })
            .map(|slot| slot.node())
    }

    /// Adds a znode that is not in yet.
    pub(crate) fn insert(&mut self, hash: u32, node: NodeId) {
        let slot = Slot::new(hash, node);
        self.shards[shard(hash)]
            .insert_unique(spread(slot.hash()), slot, |slot| spread(slot.hash()));
    }

    /// Takes a znode out; a table that has become far too large gives memory back.
    pub(crate) fn remove(&mut self, hash: u32, node: NodeId) {
        let table = &mut self.shards[shard(hash)];
        let entry = table.entry(
            spread(hash as u16),
            |slot| slot.node() == node,
            |slot| spread(slot.hash()),
        );
        if let Entry::Occupied(entry) = entry {
            entry.remove();
        }
        if table.capacity() > LEAST_SHRUNK && table.len() < table.capacity() / 8 {
            table.shrink_to(table.len() * 2, |slot| spread(slot.hash()));
        }
    }
}

/// Tables with room for no more entries than this stay as they are.
const LEAST_SHRUNK: usize = 64;

/// The table of a hash. They get unequal parts of the znodes, the last one twice that of the first: so each doubles
/// at a time of its own, and at no number of znodes are all of them half empty.
fn shard(hash: u32) -> usize {
    let part = u64::from(hash >> 16);
    // The parabola x(4 - x)/3 leads from 0 to 1 and becomes half as steep.
    ((part * ((4 << 16) - part) / 3) >> (32 - SHARD_BITS)) as usize
}

/// The part of all znodes that a table gets.
fn part(shard: usize) -> f64 {
    let end = |shard: usize| 2.0 - (4.0 - 3.0 * shard as f64 / SHARDS as f64).sqrt();
    end(shard + 1) - end(shard)
}

/// A table takes the place from the low bits and a tag from the top ones.
fn spread(hash: u16) -> u64 {
    u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_small_and_hold_every_number() {
        assert_eq!(size_of::<Slot>(), 6);
        for node in [0, 1, 0xFFFF, 0x1_0000, 0x1234_5678, NodeId::MAX] {
            assert_eq!(Slot::new(0xABCD_EF01, node).node(), node);
        }
    }

    #[test]
    fn every_hash_has_a_table_and_each_gets_its_part() {
        assert_eq!((shard(0), shard(u32::MAX)), (0, SHARDS - 1));
        let mut counts = vec![0; SHARDS];
        for top in 0..1 << 16 {
            counts[shard(top << 16)] += 1;
        }
        for (shard, count) in counts.iter().enumerate() {
            let expected = part(shard) * 65_536.0;
            assert!((f64::from(*count) - expected).abs() <= 2.0, "{shard}");
        }
        assert!((0..SHARDS).map(part).sum::<f64>() > 0.999);
    }

    #[test]
    fn what_is_taken_out_gives_memory_back() {
        let mut index = Index::new(7);
        let names: Vec<String> = (0..200_000).map(|number| number.to_string()).collect();
        for (node, name) in (0..).zip(&names) {
            index.insert(index.hash(0, name.as_bytes()), node);
        }
        for (node, name) in (0..).zip(&names) {
            let hash = index.hash(0, name.as_bytes());
            assert_eq!(index.find(hash, |id| id == node), Some(node));
            if node >= 1000 {
                index.remove(hash, node);
                assert_eq!(index.find(hash, |id| id == node), None);
            }
        }
        let room: usize = index.shards.iter().map(HashTable::capacity).sum();
        assert!(room <= SHARDS * LEAST_SHRUNK, "{room}");
        for (node, name) in (0..1000).zip(&names) {
            let hash = index.hash(0, name.as_bytes());
            assert_eq!(index.find(hash, |id| id == node), Some(node));
        }
    }
}
