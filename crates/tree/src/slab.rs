//! The znodes' memory: slots in chunks, so that growth never moves what is there.

use crate::limits::ZNODES_MAX;
use crate::node::{NIL, Node, NodeId, marks};

const CHUNK_BITS: u32 = 12;
/// Slots of a chunk.
const CHUNK: usize = 1 << CHUNK_BITS;

/// All slots. The free ones form a list, last freed first.
#[derive(Debug, Default)]
pub(crate) struct Slab {
    /// Each is empty (a hole that a sparse checkpoint left) or has room for [`CHUNK`] slots.
    chunks: Vec<Vec<Node>>,
    /// Empty chunks in front of the last one.
    holes: Vec<u32>,
    free: NodeId,
    live: usize,
}

impl Slab {
    pub(crate) fn new() -> Slab {
        Slab {
            chunks: Vec::new(),
            holes: Vec::new(),
            free: NIL,
            live: 0,
        }
    }

    /// Number of znodes.
    pub(crate) fn len(&self) -> usize {
        self.live
    }

    pub(crate) fn get(&self, id: NodeId) -> &Node {
        &self.chunks[(id >> CHUNK_BITS) as usize][id as usize & (CHUNK - 1)]
    }

    pub(crate) fn get_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.chunks[(id >> CHUNK_BITS) as usize][id as usize & (CHUNK - 1)]
    }

    /// The znode of a slot that may be free or not exist.
    pub(crate) fn find(&self, id: NodeId) -> Option<&Node> {
        self.chunks
            .get((id >> CHUNK_BITS) as usize)?
            .get(id as usize & (CHUNK - 1))
            .filter(|node| node.is_live())
    }

    /// Whether [`Slab::insert`] has a slot left.
    pub(crate) fn has_room(&self) -> bool {
        self.live < ZNODES_MAX as usize
    }

    /// Puts a znode into a slot. The caller has asked [`Slab::has_room`].
    pub(crate) fn insert(&mut self, mut node: Node) -> NodeId {
        self.live += 1;
        if self.free == NIL {
            return self.push(node);
        }
        let id = self.free;
        let slot = self.get_mut(id);
        let next = slot.next;
        node.set(marks::LISTED, slot.has(marks::LISTED));
        *slot = node;
        self.free = next;
        id
    }

    fn push(&mut self, node: Node) -> NodeId {
        let full = self.chunks.last().is_none_or(|chunk| chunk.len() == CHUNK);
        if full {
            let chunk = self.holes.pop().unwrap_or(self.chunks.len() as u32);
            return self.push_into(chunk, node);
        }
        self.push_into(self.chunks.len() as u32 - 1, node)
    }

    fn push_into(&mut self, index: u32, node: Node) -> NodeId {
        if index as usize == self.chunks.len() {
            self.chunks.push(Vec::new());
        }
        let chunk = &mut self.chunks[index as usize];
        if chunk.is_empty() {
            chunk.reserve_exact(CHUNK);
        }
        chunk.push(node);
        let id = index << CHUNK_BITS | (chunk.len() as u32 - 1);
        let filled_hole = index as usize + 1 < self.chunks.len();
        if filled_hole {
            self.free_rest_of(index);
        }
        id
    }

    /// Makes the slots of a former hole usable: only the last chunk may be partly filled.
    fn free_rest_of(&mut self, index: u32) {
        let start = self.chunks[index as usize].len();
        for offset in start..CHUNK {
            let next = match offset + 1 {
                CHUNK => self.free,
                after => index << CHUNK_BITS | after as u32,
            };
            self.chunks[index as usize].push(Node::free(next));
        }
        if start < CHUNK {
            self.free = index << CHUNK_BITS | start as u32;
        }
    }

    /// Frees a slot and gives back what it held.
    pub(crate) fn remove(&mut self, id: NodeId) -> Node {
        let free = self.free;
        let slot = self.get_mut(id);
        let mut empty = Node::free(free);
        empty.set(marks::LISTED, slot.has(marks::LISTED));
        let node = std::mem::replace(slot, empty);
        self.free = id;
        self.live -= 1;
        node
    }

    /// Undoes the last [`Slab::remove`] that is not undone yet.
    pub(crate) fn put_back(&mut self, id: NodeId, node: Node) {
        let taken = self.insert(node);
        assert_eq!(taken, id, "removals are undone in reverse order");
    }

    /// Ids of the slots that hold a znode, ascending.
    pub(crate) fn ids(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.chunks.iter().enumerate().flat_map(|(index, chunk)| {
            let first = (index as u32) << CHUNK_BITS;
            chunk
                .iter()
                .enumerate()
                .filter(|(_, node)| node.is_live())
                .map(move |(offset, _)| first | offset as u32)
        })
    }
}

/// Slots that come with their numbers, in any order.
#[derive(Debug)]
pub(crate) struct SlabLoader {
    slab: Slab,
}

impl SlabLoader {
    pub(crate) fn new() -> SlabLoader {
        SlabLoader { slab: Slab::new() }
    }

    /// Puts a znode into its slot; false if the slot is taken.
    pub(crate) fn add(&mut self, id: NodeId, node: Node) -> bool {
        if id == NIL {
            return false;
        }
        let index = (id >> CHUNK_BITS) as usize;
        let chunks = &mut self.slab.chunks;
        if index >= chunks.len() {
            chunks.resize_with(index + 1, Vec::new);
        }
        let chunk = &mut chunks[index];
        if chunk.is_empty() {
            chunk.reserve_exact(CHUNK);
            chunk.resize(CHUNK, Node::free(NIL));
        }
        let slot = &mut chunk[id as usize & (CHUNK - 1)];
        if slot.is_live() {
            return false;
        }
        *slot = node;
        self.slab.live += 1;
        true
    }

    /// The slab, with the gaps in its free list, lowest first.
    pub(crate) fn finish(mut self) -> Slab {
        let mut next = NIL;
        for (index, chunk) in self.slab.chunks.iter_mut().enumerate().rev() {
            if chunk.is_empty() {
                self.slab.holes.push(index as u32);
            }
            for (offset, slot) in chunk.iter_mut().enumerate().rev() {
                if !slot.is_live() {
                    slot.next = next;
                    next = (index as u32) << CHUNK_BITS | offset as u32;
                }
            }
        }
        self.slab.free = next;
        self.slab
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acl::AclId;

    fn node(name: &str) -> Node {
        Node::new(name, None, AclId::OPEN)
    }

    #[test]
    fn freed_slots_are_used_again() {
        let mut slab = Slab::new();
        let ids: Vec<_> = (0..10_000)
            .map(|n| slab.insert(node(&n.to_string())))
            .collect();
        assert_eq!(slab.len(), 10_000);
        for id in ids.iter().step_by(3) {
            slab.remove(*id);
        }
        let removed = ids.iter().step_by(3).count();
        for _ in 0..removed {
            assert!(ids.contains(&slab.insert(node("x"))));
        }
        assert_eq!(slab.insert(node("y")), 10_000);
        assert_eq!(slab.ids().count(), 10_001);
    }

    #[test]
    fn a_removal_can_be_undone() {
        let mut slab = Slab::new();
        let a = slab.insert(node("a"));
        let b = slab.insert(node("b"));
        let gone = slab.remove(a);
        let c = slab.insert(node("c"));
        slab.remove(c);
        slab.put_back(a, gone);
        assert_eq!(slab.get(a).name(), b"a");
        assert_eq!(slab.get(b).name(), b"b");
        assert_eq!(slab.len(), 2);
    }

    #[test]
    fn a_sparse_load_takes_memory_for_what_is_there() {
        let mut loader = SlabLoader::new();
        assert!(loader.add(0, node("root")));
        assert!(loader.add(3 * CHUNK as u32 + 5, node("far")));
        assert!(!loader.add(3 * CHUNK as u32 + 5, node("twice")));
        let mut slab = loader.finish();
        assert_eq!(
            slab.chunks.iter().filter(|chunk| chunk.is_empty()).count(),
            2
        );
        let mut taken: Vec<_> = (0..4 * CHUNK - 2).map(|_| slab.insert(node("n"))).collect();
        taken.sort_unstable();
        taken.dedup();
        assert_eq!(taken.len(), 4 * CHUNK - 2);
        assert_eq!(slab.insert(node("next")), 4 * CHUNK as u32);
        assert_eq!(slab.ids().count(), slab.len());
    }
}
