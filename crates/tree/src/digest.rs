//! The running digest: a wrapping sum of one hash for each znode, each session and what else is replicated,
//! so that a change costs what it touches and two members that agree on the sum agree on the state.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::ensemble::Ensemble;
use crate::node::Node;
use crate::restore::Restored;
use crate::session::Session;

/// Hash of what a znode holds. Kept with the znode, so that a change of its metadata alone need not look
/// at path and data again.
pub(crate) fn content(path: &str, data: Option<&[u8]>, acl_hash: u64) -> u64 {
    let data_hash = match data {
        Some(data) => xxh3_64_with_seed(data, 1),
        None => 0,
    };
    let mut parts = [0; 24];
    parts[..8].copy_from_slice(&xxh3_64(path.as_bytes()).to_le_bytes());
    parts[8..16].copy_from_slice(&data_hash.to_le_bytes());
    parts[16..].copy_from_slice(&acl_hash.to_le_bytes());
    xxh3_64(&parts)
}

/// What a znode adds to the digest.
pub(crate) fn of_node(node: &Node) -> u64 {
    let more = node.more();
    let mut parts = [0; 68];
    let longs = [
        node.content as i64,
        node.czxid,
        more.mzxid,
        more.pzxid,
        node.ctime,
        more.mtime,
        more.owner,
    ];
    for (part, value) in parts.chunks_exact_mut(8).zip(longs) {
        part.copy_from_slice(&value.to_le_bytes());
    }
    let ints = [more.version, more.creates, more.aversion];
    for (part, value) in parts[56..].chunks_exact_mut(4).zip(ints) {
        part.copy_from_slice(&value.to_le_bytes());
    }
    xxh3_64(&parts)
}

/// What a session adds to the digest.
pub(crate) fn of_session(id: i64, session: &Session) -> u64 {
    let mut parts = [0; 20];
    parts[..8].copy_from_slice(&id.to_le_bytes());
    parts[8..16].copy_from_slice(&session.generation.to_le_bytes());
    parts[16..].copy_from_slice(&session.timeout_ms.to_le_bytes());
    let seed = if session.imported { 7 } else { 2 };
    xxh3_64_with_seed(&parts, seed)
}

/// What the newest session of a member adds to the digest.
pub(crate) fn of_newest_session(id: i64) -> u64 {
    xxh3_64_with_seed(&id.to_le_bytes(), 3)
}

/// What the configuration adds to the digest.
pub(crate) fn of_ensemble(ensemble: &Ensemble) -> u64 {
    xxh3_64_with_seed(ensemble.text().as_bytes(), 4)
}

/// What a piece of a snapshot that is to be restored adds to the digest.
pub(crate) fn of_piece(restore: u64, number: u32, bytes: &[u8]) -> u64 {
    let mut parts = [0; 20];
    parts[..8].copy_from_slice(&restore.to_le_bytes());
    parts[8..16].copy_from_slice(&xxh3_64(bytes).to_le_bytes());
    parts[16..].copy_from_slice(&number.to_le_bytes());
    xxh3_64_with_seed(&parts, 5)
}

/// What the last restore adds to the digest.
pub(crate) fn of_restored(restored: &Restored) -> u64 {
    let mut parts = [0; 16];
    parts[..8].copy_from_slice(&restored.id.to_le_bytes());
    parts[8..].copy_from_slice(&restored.zxid.to_le_bytes());
    xxh3_64_with_seed(&parts, 6)
}
