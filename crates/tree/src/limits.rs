//! Bounds of the tree. Whoever runs into one gets the error named there; nothing else happens.

/// Most znodes of one tree. A create beyond it gets `SystemError`.
pub const ZNODES_MAX: u32 = u32::MAX - 1;

/// Most entries of one access control list once `auth` is expanded. A longer one gets `InvalidAcl`.
/// A list that fits a frame of the default size (1 MiB) has fewer.
pub const ACL_ENTRIES_MAX: usize = 1 << 16;

/// Most bytes of schemes and ids of the access control lists of one request once `auth` is expanded, since
/// every `auth` entry stands for all identities of the connection, and a multi may hold many lists. One
/// more gets `InvalidAcl`.
pub const ACL_BYTES_MAX: usize = 4 << 20;

/// Most bytes of paths of one session's ephemeral znodes, since all of them are named at once when the
/// session ends. An ephemeral create beyond it gets `SystemError`.
pub const EPHEMERAL_PATHS_MAX: usize = 128 << 20;

/// Longest text of a quota znode that is looked at, in bytes; a longer one is no quota.
pub const QUOTA_TEXT_MAX: usize = 512;

/// Most bytes of paths that one look for expired znodes collects; the rest waits for the next look.
pub const REAP_BYTES_MAX: usize = 4 << 20;

/// Most bytes of a snapshot that can be restored. While it is, all of it is in memory, beside the old tree and
/// the new one. A piece beyond it gets `SystemError`.
pub const RESTORE_BYTES_MAX: u64 = 1 << 30;

/// Most bytes of one piece of such a snapshot. A longer one gets `BadArguments`.
pub const RESTORE_PIECE_MAX: usize = 512 << 10;
