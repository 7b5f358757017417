//! One znode as it lies in memory.

use quenda_proto::records::Stat;

use crate::acl::AclId;

/// Number of a znode's slot; also its identity in the checkpoint. Reused after a delete.
pub(crate) type NodeId = u32;

/// No znode.
pub(crate) const NIL: NodeId = u32::MAX;
/// The root's slot.
pub(crate) const ROOT: NodeId = 0;

/// Owner value of a container znode; the client sees 0.
const CONTAINER: i64 = i64::MIN;
/// High byte of the owner value of a TTL znode, over 40 bits of milliseconds; the client sees 0.
const TTL_MARK: i64 = 0xFF << 56;
const TTL_BITS: i64 = (1 << 40) - 1;

/// What keeps a znode alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Itself.
    Nobody,
    /// A session.
    Session(i64),
    /// Its children.
    Container,
    /// Its children, and changes that are younger than so many milliseconds.
    Ttl(i64),
}

impl Owner {
    /// From the one integer that rows and ZooKeeper's snapshots hold.
    pub(crate) fn from_raw(raw: i64) -> Owner {
        match raw {
            0 => Owner::Nobody,
            CONTAINER => Owner::Container,
            raw if raw & TTL_MARK == TTL_MARK => Owner::Ttl(raw & TTL_BITS),
            raw => Owner::Session(raw),
        }
    }

    /// The one integer.
    pub(crate) fn raw(self) -> i64 {
        match self {
            Owner::Nobody => 0,
            Owner::Session(id) => id,
            Owner::Container => CONTAINER,
            Owner::Ttl(ms) => TTL_MARK | ms,
        }
    }

    /// Whether an id can be a session's: not 0, and not one of the marks.
    pub(crate) fn can_be_session(id: i64) -> bool {
        Owner::from_raw(id) == Owner::Session(id)
    }
}

/// Bits of [`Node::flags`].
pub(crate) mod flags {
    /// The slot holds a znode.
    pub(crate) const LIVE: u8 = 1;
    /// The data is null, which is not the same as empty.
    pub(crate) const NULL_DATA: u8 = 1 << 1;
    /// The last checkpoint holds a row of this znode.
    pub(crate) const STORED: u8 = 1 << 2;
    /// The slot is in the list of slots to look at in the next checkpoint; survives a delete.
    pub(crate) const LISTED: u8 = 1 << 3;
}

/// A znode, or a free slot. Two cache lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    /// Name and data in one allocation.
    payload: Box<[u8]>,
    /// Data bytes of this znode and everything below it.
    pub(crate) subtree_bytes: u64,
    /// Hash of path, data and list, see `digest`.
    pub(crate) content: u64,
    pub(crate) czxid: i64,
    pub(crate) mzxid: i64,
    pub(crate) pzxid: i64,
    pub(crate) ctime: i64,
    pub(crate) mtime: i64,
    /// See [`Owner`].
    pub(crate) owner: i64,
    name_len: u32,
    pub(crate) version: i32,
    /// Creates of children so far. What clients see is computed, see [`Node::stat`].
    pub(crate) creates: i32,
    pub(crate) aversion: i32,
    pub(crate) parent: NodeId,
    pub(crate) first_child: NodeId,
    /// Next sibling; in a free slot the next free one.
    pub(crate) next: NodeId,
    pub(crate) prev: NodeId,
    pub(crate) children: u32,
    /// Znodes in this subtree, this one included.
    pub(crate) subtree_nodes: u32,
    pub(crate) acl: AclId,
    pub(crate) flags: u8,
}

impl Node {
    /// A free slot.
    pub(crate) fn free(next: NodeId) -> Node {
        Node {
            payload: Box::default(),
            subtree_bytes: 0,
            content: 0,
            czxid: 0,
            mzxid: 0,
            pzxid: 0,
            ctime: 0,
            mtime: 0,
            owner: 0,
            name_len: 0,
            version: 0,
            creates: 0,
            aversion: 0,
            parent: NIL,
            first_child: NIL,
            next,
            prev: NIL,
            children: 0,
            subtree_nodes: 0,
            acl: AclId::OPEN,
            flags: 0,
        }
    }

    /// A znode without links, with everything that is not given at zero.
    pub(crate) fn new(name: &str, data: Option<&[u8]>, acl: AclId) -> Node {
        let mut node = Node::free(NIL);
        node.acl = acl;
        node.flags = flags::LIVE;
        node.name_len = name.len() as u32;
        node.payload = joined(name.as_bytes(), data.unwrap_or_default());
        node.set(flags::NULL_DATA, data.is_none());
        node.subtree_nodes = 1;
        node.subtree_bytes = node.data_len() as u64;
        node
    }

    /// Last component of the path.
    pub(crate) fn name(&self) -> &[u8] {
        &self.payload[..self.name_len as usize]
    }

    /// The same as text.
    pub(crate) fn name_text(&self) -> &str {
        std::str::from_utf8(self.name()).expect("names enter the tree as text")
    }

    /// The data, null and empty told apart.
    pub(crate) fn data(&self) -> Option<&[u8]> {
        (!self.has(flags::NULL_DATA)).then(|| self.bytes())
    }

    /// The data, null as empty.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.payload[self.name_len as usize..]
    }

    /// Bytes of data.
    pub(crate) fn data_len(&self) -> usize {
        self.payload.len() - self.name_len as usize
    }

    /// Puts other data in and gives back what [`Node::restore_data`] needs.
    pub(crate) fn replace_data(&mut self, data: Option<&[u8]>) -> OldData {
        let payload = joined(self.name(), data.unwrap_or_default());
        let old = OldData {
            payload: std::mem::replace(&mut self.payload, payload),
            was_null: self.has(flags::NULL_DATA),
        };
        self.set(flags::NULL_DATA, data.is_none());
        old
    }

    /// Puts the earlier data back.
    pub(crate) fn restore_data(&mut self, old: OldData) {
        self.payload = old.payload;
        self.set(flags::NULL_DATA, old.was_null);
    }

    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub(crate) fn set(&mut self, flag: u8, on: bool) {
        if on {
            self.flags |= flag;
        } else {
            self.flags &= !flag;
        }
    }

    pub(crate) fn owner(&self) -> Owner {
        Owner::from_raw(self.owner)
    }

    pub(crate) fn is_ephemeral(&self) -> bool {
        matches!(self.owner(), Owner::Session(_))
    }

    /// The metadata as clients see it.
    pub(crate) fn stat(&self) -> Stat {
        Stat {
            czxid: self.czxid,
            mzxid: self.mzxid,
            ctime: self.ctime,
            mtime: self.mtime,
            version: self.version,
            cversion: self
                .creates
                .wrapping_mul(2)
                .wrapping_sub(self.children as i32),
            aversion: self.aversion,
            ephemeral_owner: match self.owner() {
                Owner::Session(id) => id,
                Owner::Nobody | Owner::Container | Owner::Ttl(_) => 0,
            },
            data_length: self.data_len() as i32,
            num_children: self.children as i32,
            pzxid: self.pzxid,
        }
    }
}

/// Data that was replaced.
#[derive(Debug)]
pub(crate) struct OldData {
    payload: Box<[u8]>,
    was_null: bool,
}

fn joined(name: &[u8], data: &[u8]) -> Box<[u8]> {
    let mut payload = Vec::with_capacity(name.len() + data.len());
    payload.extend_from_slice(name);
    payload.extend_from_slice(data);
    payload.into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_two_cache_lines() {
        assert_eq!(std::mem::size_of::<Node>(), 128);
    }

    #[test]
    fn owners_round_trip() {
        for owner in [
            Owner::Nobody,
            Owner::Session(0x0100_0000_0000_0001),
            Owner::Container,
            Owner::Ttl(1),
            Owner::Ttl(TTL_BITS),
        ] {
            assert_eq!(Owner::from_raw(owner.raw()), owner);
        }
    }

    #[test]
    fn marks_are_no_session_ids() {
        assert!(!Owner::can_be_session(0));
        assert!(!Owner::can_be_session(i64::MIN));
        assert!(!Owner::can_be_session(-1));
        assert!(Owner::can_be_session(1));
        assert!(Owner::can_be_session(i64::MIN + 1));
    }

    #[test]
    fn null_and_empty_data_differ() {
        let mut node = Node::new("n", None, AclId::OPEN);
        assert_eq!((node.data(), node.data_len()), (None, 0));
        let old = node.replace_data(Some(b""));
        assert_eq!(node.data(), Some(&b""[..]));
        node.replace_data(Some(b"abc"));
        assert_eq!(node.data(), Some(&b"abc"[..]));
        assert_eq!(node.name(), b"n");
        node.restore_data(old);
        assert_eq!(node.data(), None);
    }

    #[test]
    fn the_visible_cversion_counts_creates_and_deletes() {
        let mut node = Node::new("n", None, AclId::OPEN);
        (node.creates, node.children) = (3, 2);
        assert_eq!(node.stat().cversion, 4);
        (node.creates, node.children) = (i32::MIN, 1);
        assert_eq!(node.stat().cversion, -1);
    }
}
