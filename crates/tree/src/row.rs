//! Rows of a checkpoint: how znodes, sessions and lists are written and read. All integers are
//! big-endian. `docs/storage-format.md` describes the layout.

use crate::acl::{AclEntry, AclId};
use crate::ensemble::Ensemble;
use crate::node::{LIST_MAX, More, Node, NodeId};
use crate::restore::Restored;
use crate::session::{Cluster, NewestSessions, Session};

/// Version of the layout of all rows that are written.
pub(crate) const FORMAT: u16 = 2;
/// Oldest version that is read: its state row ends behind the cluster.
pub(crate) const FORMAT_MIN: u16 = 1;

/// Key of the one row of the meta table.
pub(crate) const STATE_KEY: &[u8] = b"state";

/// Bytes of a znode's row beside name and data.
pub(crate) const NODE_FIXED: usize = 4 + NODE_HEAD;
const NODE_HEAD: usize = 4 + 1 + 4 + 5 * 8 + 3 * 4 + 8 + 8;

const NULL_DATA: u8 = 1;

/// Behind the fields of a session that came from a ZooKeeper.
const IMPORTED: u8 = 1;

/// Key of the row of the last restore, if there was one.
pub(crate) const RESTORED_KEY: &[u8] = b"restored";
/// Begin of the keys of the pieces of a snapshot that is to be restored; their numbers follow.
pub(crate) const PIECE_KEY: &[u8] = b"restore/";

/// Bytes that are not a row of this layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadRow;

/// What belongs to the tree as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) applied_index: u64,
    pub(crate) applied_term: u64,
    pub(crate) last_zxid: i64,
    pub(crate) epoch_offset: u64,
    pub(crate) digest: u64,
    pub(crate) znodes: u64,
    pub(crate) sessions: u64,
    pub(crate) cluster: Option<Cluster>,
    pub(crate) ensemble: Option<Ensemble>,
    /// `None` from the oldest layout.
    pub(crate) newest_sessions: Option<NewestSessions>,
}

pub(crate) fn put_node_key(out: &mut Vec<u8>, parent: NodeId, name: &[u8]) {
    out.extend_from_slice(&parent.to_be_bytes());
    out.extend_from_slice(name);
}

pub(crate) fn put_node(out: &mut Vec<u8>, id: NodeId, node: &Node) {
    out.extend_from_slice(&id.to_be_bytes());
    out.push(if node.data().is_none() { NULL_DATA } else { 0 });
    out.extend_from_slice(&node.acl().0.to_be_bytes());
    let more = node.more();
    for value in [node.czxid, more.mzxid, more.pzxid, node.ctime, more.mtime] {
        out.extend_from_slice(&value.to_be_bytes());
    }
    for value in [more.version, more.creates, more.aversion] {
        out.extend_from_slice(&value.to_be_bytes());
    }
    out.extend_from_slice(&more.owner.to_be_bytes());
    out.extend_from_slice(&node.content.to_be_bytes());
    out.extend_from_slice(node.bytes());
}

/// The znode's number and the znode, with its parent but without further links.
pub(crate) fn read_node(key: &[u8], value: &[u8]) -> Result<(NodeId, Node), BadRow> {
    let mut key = Cursor(key);
    let parent = key.u32()?;
    let name = std::str::from_utf8(key.0).map_err(|_| BadRow)?;
    let mut row = Cursor(value);
    let id = row.u32()?;
    let bits = row.array::<1>()?[0];
    let acl = AclId(row.u32()?);
    let head = row.take(NODE_HEAD - 9)?;
    let data = (bits & NULL_DATA == 0).then_some(row.0);
    let is_valid =
        acl.0 <= LIST_MAX && bits & !NULL_DATA == 0 && (data.is_some() || row.0.is_empty());
    if !is_valid {
        return Err(BadRow);
    }
    let mut node = Node::new(name, data, acl);
    let mut row = Cursor(head);
    node.parent = parent;
    node.czxid = row.i64()?;
    let (mzxid, pzxid) = (row.i64()?, row.i64()?);
    node.ctime = row.i64()?;
    node.set_more(More {
        mzxid,
        pzxid,
        mtime: row.i64()?,
        version: row.i32()?,
        creates: row.i32()?,
        aversion: row.i32()?,
        owner: row.i64()?,
        ..node.more()
    });
    node.content = row.i64()? as u64;
    Ok((id, node))
}

pub(crate) fn put_session(out: &mut Vec<u8>, session: &Session) {
    out.extend_from_slice(&session.timeout_ms.to_be_bytes());
    out.extend_from_slice(&session.generation.to_be_bytes());
    if session.imported {
        out.push(IMPORTED);
    }
}

pub(crate) fn read_session(key: &[u8], value: &[u8]) -> Result<(i64, Session), BadRow> {
    let mut key = Cursor(key);
    let id = key.i64()?;
    key.end()?;
    let mut row = Cursor(value);
    let mut session = Session::new(row.i32()?, row.i64()? as u64);
    session.imported = match row.0 {
        [] => false,
        [IMPORTED] => true,
        _ => return Err(BadRow),
    };
    Ok((id, session))
}

pub(crate) fn put_acl(out: &mut Vec<u8>, entries: &[AclEntry]) {
    out.extend_from_slice(&(entries.len() as u32).to_be_bytes());
    for entry in entries {
        out.extend_from_slice(&entry.perms.to_be_bytes());
        for text in [&entry.scheme, &entry.id] {
            put_text(out, text);
        }
    }
}

pub(crate) fn read_acl(key: &[u8], value: &[u8]) -> Result<(u32, Vec<AclEntry>), BadRow> {
    let mut key = Cursor(key);
    let id = key.u32()?;
    key.end()?;
    let mut row = Cursor(value);
    let mut entries = Vec::new();
    for _ in 0..row.u32()? {
        let perms = row.i32()?;
        let scheme = row.text()?;
        entries.push(AclEntry::new(perms, scheme, row.text()?));
    }
    row.end()?;
    Ok((id, entries))
}

pub(crate) fn put_state(out: &mut Vec<u8>, state: &State) {
    out.extend_from_slice(&FORMAT.to_be_bytes());
    for value in [
        state.applied_index,
        state.applied_term,
        state.last_zxid as u64,
        state.epoch_offset,
        state.digest,
        state.znodes,
        state.sessions,
    ] {
        out.extend_from_slice(&value.to_be_bytes());
    }
    out.push(u8::from(state.cluster.is_some()));
    if let Some(cluster) = &state.cluster {
        out.extend_from_slice(&cluster.id.to_be_bytes());
        out.extend_from_slice(&cluster.secret);
    }
    let config = state.ensemble.as_ref().map(Ensemble::text);
    put_text(out, config.as_deref().unwrap_or_default());
    let newest: Vec<i64> = state
        .newest_sessions
        .iter()
        .flat_map(NewestSessions::ids)
        .collect();
    out.extend_from_slice(&(newest.len() as u32).to_be_bytes());
    for id in newest {
        out.extend_from_slice(&id.to_be_bytes());
    }
}

pub(crate) fn piece_key(number: u32) -> Vec<u8> {
    [PIECE_KEY, &number.to_be_bytes()].concat()
}

pub(crate) fn put_piece(out: &mut Vec<u8>, restore: u64, bytes: &[u8]) {
    out.extend_from_slice(&restore.to_be_bytes());
    out.extend_from_slice(bytes);
}

/// Number, restore and bytes of a piece.
pub(crate) fn read_piece<'a>(key: &[u8], value: &'a [u8]) -> Result<(u32, u64, &'a [u8]), BadRow> {
    let mut key = Cursor(key.strip_prefix(PIECE_KEY).ok_or(BadRow)?);
    let number = key.u32()?;
    key.end()?;
    let mut row = Cursor(value);
    Ok((number, row.i64()? as u64, row.0))
}

pub(crate) fn put_restored(out: &mut Vec<u8>, restored: &Restored) {
    out.extend_from_slice(&restored.id.to_be_bytes());
    out.extend_from_slice(&restored.zxid.to_be_bytes());
}

pub(crate) fn read_restored(value: &[u8]) -> Result<Restored, BadRow> {
    let mut row = Cursor(value);
    let restored = Restored {
        id: row.i64()? as u64,
        zxid: row.i64()?,
    };
    row.end()?;
    Ok(restored)
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u32).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// The layout's version of a state row, whatever the rest is.
pub(crate) fn read_format(value: &[u8]) -> Result<u16, BadRow> {
    Ok(u16::from_be_bytes(Cursor(value).array()?))
}

pub(crate) fn read_state(value: &[u8]) -> Result<State, BadRow> {
    let mut row = Cursor(value);
    let format = u16::from_be_bytes(row.array()?);
    let mut values = [0; 7];
    for value in &mut values {
        *value = row.i64()? as u64;
    }
    let cluster = match row.array::<1>()?[0] {
        0 => None,
        1 => Some(Cluster {
            id: row.i64()? as u64,
            secret: row.array()?,
        }),
        _ => return Err(BadRow),
    };
    let (mut ensemble, mut newest_sessions) = (None, None);
    if format > FORMAT_MIN {
        ensemble = read_ensemble(row.text()?)?;
        let newest = newest_sessions.insert(NewestSessions::default());
        for _ in 0..row.u32()? {
            newest.opened(row.i64()?);
        }
    }
    row.end()?;
    let [
        applied_index,
        applied_term,
        last_zxid,
        epoch_offset,
        digest,
        znodes,
        sessions,
    ] = values;
    Ok(State {
        applied_index,
        applied_term,
        last_zxid: last_zxid as i64,
        epoch_offset,
        digest,
        znodes,
        sessions,
        cluster,
        ensemble,
        newest_sessions,
    })
}

fn read_ensemble(text: &str) -> Result<Option<Ensemble>, BadRow> {
    match text {
        "" => Ok(None),
        text => Ensemble::parse(text).map(Some).map_err(|_| BadRow),
    }
}

struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], BadRow> {
        let (head, tail) = self.0.split_at_checked(count).ok_or(BadRow)?;
        self.0 = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], BadRow> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn u32(&mut self) -> Result<u32, BadRow> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    fn i32(&mut self) -> Result<i32, BadRow> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    fn i64(&mut self) -> Result<i64, BadRow> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    fn text(&mut self) -> Result<&'a str, BadRow> {
        let length = self.u32()? as usize;
        std::str::from_utf8(self.take(length)?).map_err(|_| BadRow)
    }

    fn end(&self) -> Result<(), BadRow> {
        self.0.is_empty().then_some(()).ok_or(BadRow)
    }
}
