//! ZooKeeper's snapshot format: the whole tree as one stream of bytes, written and read.
//!
//! A header, the sessions, the access control lists by number, the znodes with parents first, an end mark; then
//! seals (Adler-32 over all that came before) around a digest of the znodes and the zxid of the last transaction.
//! `docs/storage-format.md` says what is particular to streams of this server.

mod digest;
mod export;
mod map;
mod read;
mod text;
mod write;

pub use export::{Exported, RowCursor, RowView, ViewError, export};
pub use map::MapView;
pub(crate) use read::{Content, read};

use crate::node::{More, Node};

/// First bytes of a stream: "ZKSN".
pub(crate) const MAGIC: i32 = 0x5A4B_534E;
/// Version of the layout.
const VERSION: i32 = 2;
/// What ZooKeeper writes for the number of the database.
pub(crate) const NO_CLUSTER: i64 = -1;
/// Number of the list `world:anyone` with all permissions, which is never written out.
const OPEN_ACL: i64 = -1;
/// Stands behind the last znode, and in every seal.
const END: &str = "/";
/// Version of the digest.
const DIGEST_VERSION: i32 = 2;
/// Bytes of a seal: the checksum and the end mark.
const SEAL_BYTES: u64 = 8 + 4 + 1;
/// Bytes of the last trailer with its seal.
const LAST_ZXID_BYTES: u64 = 8 + SEAL_BYTES;

/// Why bytes are no snapshot that can be taken over, or why one could not be written.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The bytes could not be read or written.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The rows to be written out cannot be read.
    #[error(transparent)]
    View(#[from] ViewError),
    /// The first bytes are others.
    #[error("this is no snapshot: it begins with {0:08x} instead of ZKSN")]
    Magic(i32),
    /// A field goes on behind the end.
    #[error("the snapshot ends early: {wanted} bytes are to follow at byte {at}, {left} are left")]
    Truncated {
        /// Where.
        at: u64,
        /// How many bytes the field says.
        wanted: u64,
        /// How many there are.
        left: u64,
    },
    /// A length or number is negative.
    #[error("the snapshot has the length {length} at byte {at}")]
    Length {
        /// Where.
        at: u64,
        /// What is there.
        length: i32,
    },
    /// A checksum is another one than that of the bytes in front of it.
    #[error("the snapshot is damaged: the checksum at byte {at} does not fit the bytes before it")]
    Checksum {
        /// Where.
        at: u64,
    },
    /// Something else than the end mark stands where it should.
    #[error("the snapshot is damaged: a seal at byte {at} has no end mark")]
    Mark {
        /// Where.
        at: u64,
    },
    /// There is something behind the last trailer.
    #[error("the snapshot has {0} bytes too many")]
    TooLong(u64),
    /// A text is not UTF-8.
    #[error("the snapshot has a text at byte {at} that is not UTF-8")]
    Text {
        /// Where.
        at: u64,
    },
    /// A session cannot have this number or timeout.
    #[error("the snapshot has a session {id:#x} with timeout {timeout_ms} ms, which cannot be")]
    Session {
        /// The session.
        id: i64,
        /// Its timeout.
        timeout_ms: i32,
    },
    /// Something is there twice.
    #[error("the snapshot has {0} twice")]
    Twice(String),
    /// A znode's list is missing.
    #[error("the znode {path} has the access control list {key}, which the snapshot does not hold")]
    UnknownAcl {
        /// The znode.
        path: String,
        /// Number of the list.
        key: i64,
    },
    /// A znode's parent has not come before it, or cannot have children.
    #[error("the znode {0} has no parent in the snapshot")]
    Orphan(String),
    /// A path is none.
    #[error("the snapshot has a znode with the path {0:?}, which is none")]
    Path(String),
    /// What keeps a znode alive is unknown, or cannot be for this znode.
    #[error("the znode {path} has the owner {owner:#x}, which has no meaning for it")]
    Owner {
        /// The znode.
        path: String,
        /// What the snapshot says.
        owner: i64,
    },
    /// A zxid leaves no room for later ones, or is negative.
    #[error("the snapshot holds the zxid {0:#x}, which is out of range")]
    Zxid(i64),
    /// There are too many znodes, or too many ephemeral ones of one session.
    #[error("the znode {0} is one too many")]
    TooMany(String),
}

/// One znode as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub(crate) data: Option<&'a [u8]>,
    pub(crate) acl: i64,
    pub(crate) stat: PersistedStat,
}

/// Metadata as it is written: the count of creates instead of what clients see, and all owners.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PersistedStat {
    pub(crate) czxid: i64,
    pub(crate) mzxid: i64,
    pub(crate) ctime: i64,
    pub(crate) mtime: i64,
    pub(crate) version: i32,
    pub(crate) creates: i32,
    pub(crate) aversion: i32,
    pub(crate) owner: i64,
    pub(crate) pzxid: i64,
}

impl PersistedStat {
    pub(crate) fn of(node: &Node) -> PersistedStat {
        let more = node.more();
        PersistedStat {
            czxid: node.czxid,
            mzxid: more.mzxid,
            ctime: node.ctime,
            mtime: more.mtime,
            version: more.version,
            creates: more.creates,
            aversion: more.aversion,
            owner: more.owner,
            pzxid: more.pzxid,
        }
    }

    pub(crate) fn put(&self, node: &mut Node) {
        let links = node.more();
        node.czxid = self.czxid;
        node.ctime = self.ctime;
        node.set_more(More {
            mzxid: self.mzxid,
            mtime: self.mtime,
            version: self.version,
            creates: self.creates,
            aversion: self.aversion,
            owner: self.owner,
            pzxid: self.pzxid,
            ..links
        });
    }
}
