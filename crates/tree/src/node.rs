//! One znode as it lies in memory.

use quenda_proto::records::Stat;

use crate::acl::AclId;

/// Number of a znode's slot; also its identity in the checkpoint. Reused after a delete.
pub(crate) type NodeId = u32;

/// No znode.
pub(crate) const NIL: NodeId = u32::MAX;
/// The root's slot.
pub(crate) const ROOT: NodeId = 0;

/// Greatest number of an access control list: two bits beside it are [`marks`].
pub(crate) const LIST_MAX: u32 = (1 << 30) - 1;

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

/// What a slot says about its znode beside what clients see.
pub(crate) mod marks {
    /// The last checkpoint holds a row of this znode.
    pub(crate) const STORED: u32 = 1 << 31;
    /// The slot is in the list of slots to look at in the next checkpoint; survives a delete.
    pub(crate) const LISTED: u32 = 1 << 30;
    /// The bits below hold the number of the access control list.
    pub(super) const ALL: u32 = STORED | LISTED;
}

/// A znode, or a free slot. One cache line; a second one, [`More`], for what most znodes do not need.
#[derive(Debug, Clone, PartialEq, Eq)]
#[repr(align(64))]
pub(crate) struct Node {
    /// Head (see [`Head`]), name and data in one allocation; empty in a free slot.
    payload: Box<[u8]>,
    /// None if everything in it follows from the rest, see [`Node::more`].
    more: Option<Box<More>>,
    /// Hash of path, data and list, see `digest`.
    pub(crate) content: u64,
    pub(crate) czxid: i64,
    pub(crate) ctime: i64,
    pub(crate) parent: NodeId,
    /// Next sibling; in a free slot the next free one.
    pub(crate) next: NodeId,
    pub(crate) prev: NodeId,
    acl_and_marks: u32,
}

/// What changes, ownership and children add to a znode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct More {
    /// Data bytes of everything below.
    pub(crate) bytes_below: u64,
    pub(crate) mzxid: i64,
    pub(crate) pzxid: i64,
    pub(crate) mtime: i64,
    /// See [`Owner`].
    pub(crate) owner: i64,
    pub(crate) version: i32,
    /// Creates of children so far. What clients see is computed, see [`Node::stat`].
    pub(crate) creates: i32,
    pub(crate) aversion: i32,
    pub(crate) first_child: NodeId,
    pub(crate) children: u32,
    /// Znodes below this one.
    pub(crate) nodes_below: u32,
}

impl Node {
    /// A free slot.
    pub(crate) fn free(next: NodeId) -> Node {
        Node {
            payload: Box::default(),
            more: None,
            content: 0,
            czxid: 0,
            ctime: 0,
            parent: NIL,
            next,
            prev: NIL,
            acl_and_marks: AclId::OPEN.0,
        }
    }

    /// A znode without links, with everything that is not given at zero.
    pub(crate) fn new(name: &str, data: Option<&[u8]>, acl: AclId) -> Node {
        let mut node = Node::free(NIL);
        node.payload = joined(name.as_bytes(), data);
        node.set_acl(acl);
        node
    }

    /// Whether the slot holds a znode.
    pub(crate) fn is_live(&self) -> bool {
        !self.payload.is_empty()
    }

    fn head(&self) -> Head {
        Head::of(&self.payload)
    }

    /// Last component of the path.
    pub(crate) fn name(&self) -> &[u8] {
        let head = self.head();
        &self.payload[head.len..head.data]
    }

    /// The same as text.
    pub(crate) fn name_text(&self) -> &str {
        std::str::from_utf8(self.name()).expect("names enter the tree as text")
    }

    /// The data, null and empty told apart.
    pub(crate) fn data(&self) -> Option<&[u8]> {
        let head = self.head();
        (!head.is_null).then(|| &self.payload[head.data..])
    }

    /// The data, null as empty.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.payload[self.head().data..]
    }

    /// Bytes of data.
    pub(crate) fn data_len(&self) -> usize {
        self.payload.len() - self.head().data
    }

    /// Puts other data in and gives back what [`Node::restore_data`] needs.
    pub(crate) fn replace_data(&mut self, data: Option<&[u8]>) -> OldData {
        let payload = joined(self.name(), data);
        OldData(std::mem::replace(&mut self.payload, payload))
    }

    /// Puts the earlier data back.
    pub(crate) fn restore_data(&mut self, old: OldData) {
        self.payload = old.0;
    }

    /// Number of the access control list.
    pub(crate) fn acl(&self) -> AclId {
        AclId(self.acl_and_marks & !marks::ALL)
    }

    pub(crate) fn set_acl(&mut self, acl: AclId) {
        debug_assert!(acl.0 <= LIST_MAX, "the store gives out no greater number");
        self.acl_and_marks = self.acl_and_marks & marks::ALL | acl.0;
    }

    /// Puts another list in the place of the one that is given back.
    pub(crate) fn replace_acl(&mut self, acl: AclId) -> AclId {
        let before = self.acl();
        self.set_acl(acl);
        before
    }

    pub(crate) fn has(&self, mark: u32) -> bool {
        self.acl_and_marks & mark != 0
    }

    pub(crate) fn set(&mut self, mark: u32, on: bool) {
        if on {
            self.acl_and_marks |= mark;
        } else {
            self.acl_and_marks &= !mark;
        }
    }

    /// What a znode has that was never changed, belongs to nobody and never had children.
    fn fresh(&self) -> More {
        More {
            bytes_below: 0,
            mzxid: self.czxid,
            pzxid: self.czxid,
            mtime: self.ctime,
            owner: 0,
            version: 0,
            creates: 0,
            aversion: 0,
            first_child: NIL,
            children: 0,
            nodes_below: 0,
        }
    }

    /// The fields that have no memory of their own while they follow from the others.
    pub(crate) fn more(&self) -> More {
        match &self.more {
            Some(more) => **more,
            None => self.fresh(),
        }
    }

    /// The same to be changed. `czxid` and `ctime` stand by then.
    pub(crate) fn more_mut(&mut self) -> &mut More {
        if self.more.is_none() {
            self.more = Some(Box::new(self.fresh()));
        }
        self.more.as_deref_mut().expect("just made")
    }

    /// Replaces them; takes no memory for what follows from the others.
    pub(crate) fn set_more(&mut self, more: More) {
        self.more = (more != self.fresh()).then(|| Box::new(more));
    }

    pub(crate) fn mzxid(&self) -> i64 {
        self.more.as_ref().map_or(self.czxid, |more| more.mzxid)
    }

    pub(crate) fn pzxid(&self) -> i64 {
        self.more.as_ref().map_or(self.czxid, |more| more.pzxid)
    }

    pub(crate) fn mtime(&self) -> i64 {
        self.more.as_ref().map_or(self.ctime, |more| more.mtime)
    }

    pub(crate) fn version(&self) -> i32 {
        self.more.as_ref().map_or(0, |more| more.version)
    }

    pub(crate) fn creates(&self) -> i32 {
        self.more.as_ref().map_or(0, |more| more.creates)
    }

    pub(crate) fn aversion(&self) -> i32 {
        self.more.as_ref().map_or(0, |more| more.aversion)
    }

    pub(crate) fn first_child(&self) -> NodeId {
        self.more.as_ref().map_or(NIL, |more| more.first_child)
    }

    pub(crate) fn children(&self) -> u32 {
        self.more.as_ref().map_or(0, |more| more.children)
    }

    /// Znodes in this subtree, this one included.
    pub(crate) fn subtree_nodes(&self) -> u32 {
        1 + self.more.as_ref().map_or(0, |more| more.nodes_below)
    }

    /// Data bytes of this znode and everything below it.
    pub(crate) fn subtree_bytes(&self) -> u64 {
        self.data_len() as u64 + self.more.as_ref().map_or(0, |more| more.bytes_below)
    }

    pub(crate) fn owner(&self) -> Owner {
        self.more
            .as_ref()
            .map_or(Owner::Nobody, |more| Owner::from_raw(more.owner))
    }

    pub(crate) fn is_ephemeral(&self) -> bool {
        matches!(self.owner(), Owner::Session(_))
    }

    /// The metadata as clients see it.
    pub(crate) fn stat(&self) -> Stat {
        let more = self.more();
        Stat {
            czxid: self.czxid,
            mzxid: more.mzxid,
            ctime: self.ctime,
            mtime: more.mtime,
            version: more.version,
            cversion: more
                .creates
                .wrapping_mul(2)
                .wrapping_sub(more.children as i32),
            aversion: more.aversion,
            ephemeral_owner: match Owner::from_raw(more.owner) {
                Owner::Session(id) => id,
                Owner::Nobody | Owner::Container | Owner::Ttl(_) => 0,
            },
            data_length: self.data_len() as i32,
            num_children: more.children as i32,
            pzxid: more.pzxid,
        }
    }
}

/// Data that was replaced.
#[derive(Debug)]
pub(crate) struct OldData(Box<[u8]>);

/// The first bytes of a payload: one that holds the length of the name and whether the data is null (which is
/// not the same as empty), and four more with the length of a name that is too long for it.
struct Head {
    is_null: bool,
    /// Where the name begins.
    len: usize,
    /// Where the data begins.
    data: usize,
}

const NULL_DATA: u8 = 1 << 7;
/// In place of the length of a name that is this long or longer.
const LONG_NAME: u8 = 0x7F;
const LONG_HEAD: usize = 5;

impl Head {
    fn of(payload: &[u8]) -> Head {
        let Some(&first) = payload.first() else {
            return Head {
                is_null: true,
                len: 0,
                data: 0,
            };
        };
        let (len, name) = match first & !NULL_DATA {
            LONG_NAME => {
                let bytes = payload[1..].first_chunk().expect("a long head");
                (LONG_HEAD, u32::from_le_bytes(*bytes) as usize)
            }
            short => (1, usize::from(short)),
        };
        Head {
            is_null: first & NULL_DATA != 0,
            len,
            data: len + name,
        }
    }
}

fn joined(name: &[u8], data: Option<&[u8]>) -> Box<[u8]> {
    let null = if data.is_none() { NULL_DATA } else { 0 };
    let data = data.unwrap_or_default();
    let is_short = name.len() < usize::from(LONG_NAME);
    let head = if is_short { 1 } else { LONG_HEAD };
    let mut payload = Vec::with_capacity(head + name.len() + data.len());
    if is_short {
        payload.push(null | name.len() as u8);
    } else {
        payload.push(null | LONG_NAME);
        payload.extend_from_slice(&(name.len() as u32).to_le_bytes());
    }
    payload.extend_from_slice(name);
    payload.extend_from_slice(data);
    payload.into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_one_cache_line_and_at_most_one_more() {
        assert_eq!(std::mem::size_of::<Node>(), 64);
        assert_eq!(std::mem::size_of::<More>(), 64);
    }

    #[test]
    fn what_follows_from_the_rest_takes_no_memory() {
        let mut node = Node::new("n", None, AclId::OPEN);
        (node.czxid, node.ctime) = (7, 9);
        assert_eq!((node.mzxid(), node.pzxid(), node.mtime()), (7, 7, 9));
        node.set_more(node.more());
        assert_eq!(node.more, None);
        node.more_mut().version = 1;
        assert_eq!((node.stat().version, node.stat().mzxid), (1, 7));
        let changed = node.more();
        node.set_more(changed);
        assert_eq!(node.more(), changed);
        assert_eq!(node.version(), 1);
    }

    #[test]
    fn names_of_every_length() {
        for length in [0, 1, 126, 127, 128, 255, 256, 70_000] {
            let name = "n".repeat(length);
            for data in [None, Some(&b""[..]), Some(&b"data"[..])] {
                let mut node = Node::new(&name, data, AclId::OPEN);
                assert!(node.is_live());
                assert_eq!((node.name_text(), node.data()), (&name[..], data));
                assert_eq!(node.data_len(), data.map_or(0, <[u8]>::len));
                node.replace_data(Some(b"other"));
                assert_eq!((node.name_text(), node.bytes()), (&name[..], &b"other"[..]));
            }
        }
        assert!(!Node::free(NIL).is_live());
    }

    #[test]
    fn marks_and_list_do_not_touch_each_other() {
        let mut node = Node::new("n", None, AclId(LIST_MAX));
        node.set(marks::STORED, true);
        node.set_acl(AclId(5));
        node.set(marks::LISTED, true);
        node.set(marks::STORED, false);
        assert_eq!((node.acl(), node.has(marks::LISTED)), (AclId(5), true));
        assert!(!node.has(marks::STORED));
        node.set_acl(AclId(LIST_MAX));
        assert!(node.has(marks::LISTED) && !node.has(marks::STORED));
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
        let more = node.more_mut();
        (more.creates, more.children) = (3, 2);
        assert_eq!(node.stat().cversion, 4);
        let more = node.more_mut();
        (more.creates, more.children) = (i32::MIN, 1);
        assert_eq!(node.stat().cversion, -1);
    }
}
