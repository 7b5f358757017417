//! Requests answered from the tree, encoded straight into the output.

use bytes::{BufMut, BytesMut};
use quenda_proto::acl::perms::{ADMIN, READ};
use quenda_proto::acl::{ANY_SASL_USER, DIGEST, SUPER};
use quenda_proto::frame::{self, OpenFrame};
use quenda_proto::jute::{put_buffer, put_string};
use quenda_proto::records::{
    ExistsRequest, GetAclRequest, GetAllChildrenNumberRequest, GetChildren2Request,
    GetChildrenRequest, GetDataRequest, GetEphemeralsRequest, SyncRequest,
};
use quenda_proto::{Decode, Encode, ErrorCode, Reader, XID_PING};
use quenda_tree::{AclId, Identity, Znode};

use crate::reply::{self, STAT_LEN, put_stat};
use crate::settings::Settings;
use crate::watch_kinds::WatchKinds;
use crate::world::{ConnectionId, World};

/// What a request is served with.
pub(crate) struct ReadContext<'a> {
    pub out: &'a mut BytesMut,
    pub xid: i32,
    pub identities: &'a [Identity],
    pub world: &'a World<'a>,
    pub connection: ConnectionId,
    pub session: i64,
    pub settings: &'a Settings,
    /// Events that the request itself sent.
    pub events: u64,
    /// The reply outgrew `Limits::output_max`; the connection ends.
    pub overflow: bool,
}

impl<'a> ReadContext<'a> {
    /// Starts a successful reply with room for `body` bytes.
    pub fn begin(&mut self, body: usize) -> OpenFrame {
        reply::begin(self.out, self.xid, self.world.tree.last_zxid(), body)
    }

    /// A successful reply without a body.
    pub fn reply_empty(&mut self) {
        let zxid = self.world.tree.last_zxid();
        frame::put_reply(self.out, self.xid, zxid, ErrorCode::Ok);
    }

    pub fn allows(&self, acl: AclId, wanted: i32) -> bool {
        self.settings.skip_acl || self.world.tree.allows(acl, wanted, self.identities)
    }

    /// The znode, if it is there and the client has one of the permissions.
    pub fn node(&self, path: &str, wanted: i32) -> Result<Znode<'a>, ErrorCode> {
        let node = self.world.tree.get(path).ok_or(ErrorCode::NoNode)?;
        if self.allows(node.acl(), wanted) {
            Ok(node)
        } else {
            Err(ErrorCode::NoAuth)
        }
    }

    /// Leaves a watch. The request that wanted it fails at the bound.
    pub fn watch(&self, path: &str, kinds: WatchKinds) -> Result<(), ErrorCode> {
        if self.world.watches.add(path, self.connection, kinds) {
            Ok(())
        } else {
            Err(ErrorCode::SystemError)
        }
    }
}

pub(crate) fn decode<'b, T: Decode<'b>>(body: &'b [u8]) -> Result<T, ErrorCode> {
    T::decode(&mut Reader::new(body)).map_err(|_| ErrorCode::MarshallingError)
}

/// The text of a field that may not be null.
pub(crate) fn text<T: AsRef<str>>(field: &Option<T>) -> Result<&str, ErrorCode> {
    field
        .as_ref()
        .map(AsRef::as_ref)
        .ok_or(ErrorCode::MarshallingError)
}

pub(crate) fn get_data(cx: &mut ReadContext<'_>, body: &[u8]) -> Result<(), ErrorCode> {
    let request: GetDataRequest<'_> = decode(body)?;
    let path = text(&request.path)?;
    let node = cx.node(path, READ)?;
    if request.watch {
        cx.watch(path, WatchKinds::DATA)?;
    }
    let frame = cx.begin(4 + node.data().map_or(0, <[u8]>::len) + STAT_LEN);
    put_data(cx.out, &node);
    put_stat(cx.out, &node.stat());
    frame.finish(cx.out);
    Ok(())
}

pub(crate) fn put_data(out: &mut BytesMut, node: &Znode<'_>) {
    match node.data() {
        Some(data) => put_buffer(out, data),
        None => out.put_i32(-1),
    }
}

pub(crate) fn exists(cx: &mut ReadContext<'_>, body: &[u8]) -> Result<(), ErrorCode> {
    let request: ExistsRequest<'_> = decode(body)?;
    let path = text(&request.path)?;
    if path.contains('\0') {
        return Err(ErrorCode::BadArguments);
    }
    let node = match cx.node(path, READ) {
        Err(ErrorCode::NoNode) => None,
        node => Some(node?),
    };
    // The one read that leaves its watch on a znode that is not there.
    if request.watch {
        cx.watch(path, WatchKinds::DATA)?;
    }
    let node = node.ok_or(ErrorCode::NoNode)?;
    let frame = cx.begin(STAT_LEN);
    put_stat(cx.out, &node.stat());
    frame.finish(cx.out);
    Ok(())
}

pub(crate) fn get_children(cx: &mut ReadContext<'_>, body: &[u8]) -> Result<(), ErrorCode> {
    let request: GetChildrenRequest<'_> = decode(body)?;
    children(cx, text(&request.path)?, request.watch, false)
}

pub(crate) fn get_children2(cx: &mut ReadContext<'_>, body: &[u8]) -> Result<(), ErrorCode> {
    let request: GetChildren2Request<'_> = decode(body)?;
    children(cx, text(&request.path)?, request.watch, true)
}

fn children(
    cx: &mut ReadContext<'_>,
    path: &str,
    watch: bool,
    with_stat: bool,
) -> Result<(), ErrorCode> {
    let node = cx.node(path, READ)?;
    if watch {
        cx.watch(path, WatchKinds::CHILD)?;
    }
    let frame = cx.begin(4 + STAT_LEN);
    put_children(cx.out, &node);
    if with_stat {
        put_stat(cx.out, &node.stat());
    }
    frame.finish(cx.out);
    Ok(())
}

pub(crate) fn put_children(out: &mut BytesMut, node: &Znode<'_>) {
    out.put_i32(node.child_count() as i32);
    for name in node.children() {
        put_string(out, name);
    }
}

pub(crate) fn get_all_children_number(
    cx: &mut ReadContext<'_>,
    body: &[u8],
) -> Result<(), ErrorCode> {
    let request: GetAllChildrenNumberRequest<'_> = decode(body)?;
    let path = text(&request.path)?;
    cx.node(path, READ)?;
    let mut count = cx.world.tree.descendants(path).ok_or(ErrorCode::NoNode)?;
    if path.is_empty() {
        // By its other name the root counts as a descendant of itself, as in ZooKeeper.
        count += 1;
    }
    let frame = cx.begin(4);
    cx.out.put_i32(i32::try_from(count).unwrap_or(i32::MAX));
    frame.finish(cx.out);
    Ok(())
}

/// Without ADMIN the hashes of digest entries are hidden.
pub(crate) fn get_acl(cx: &mut ReadContext<'_>, body: &[u8]) -> Result<(), ErrorCode> {
    let request: GetAclRequest<'_> = decode(body)?;
    let node = cx.node(text(&request.path)?, READ | ADMIN)?;
    let masked = !cx.allows(node.acl(), ADMIN);
    let entries = cx.world.tree.acl(node.acl());
    let frame = cx.begin(64 + STAT_LEN);
    cx.out.put_i32(entries.len() as i32);
    for entry in entries {
        cx.out.put_i32(entry.perms);
        put_string(cx.out, &entry.scheme);
        if masked && &*entry.scheme == DIGEST {
            put_string(cx.out, &mask_digest(&entry.id));
        } else {
            put_string(cx.out, &entry.id);
        }
    }
    put_stat(cx.out, &node.stat());
    frame.finish(cx.out);
    Ok(())
}

fn mask_digest(id: &str) -> String {
    match id.split_once(':') {
        Some((user, _)) => format!("{user}:x"),
        None => id.to_owned(),
    }
}

/// The session's ephemeral znodes whose path starts with a text; a blank text and "/" stand for all.
pub(crate) fn get_ephemerals(cx: &mut ReadContext<'_>, body: &[u8]) -> Result<(), ErrorCode> {
    let request: GetEphemeralsRequest<'_> = decode(body)?;
    let prefix = request.prefix_path.as_deref().unwrap_or_default();
    let prefix = match prefix {
        "/" => "",
        blank if blank.chars().all(char::is_whitespace) => "",
        prefix => prefix,
    };
    let frame = cx.begin(4);
    let count_at = cx.out.len();
    cx.out.put_i32(0);
    let mut count = 0i32;
    for path in cx.world.tree.ephemerals(cx.session) {
        if path.starts_with(prefix) {
            put_string(cx.out, &path);
            count += 1;
        }
    }
    cx.out[count_at..count_at + 4].copy_from_slice(&count.to_be_bytes());
    frame.finish(cx.out);
    Ok(())
}

pub(crate) fn who_am_i(cx: &mut ReadContext<'_>, _body: &[u8]) -> Result<(), ErrorCode> {
    let frame = cx.begin(64);
    let own = |identity: &&Identity| &*identity.scheme != ANY_SASL_USER;
    cx.out
        .put_i32(cx.identities.iter().filter(own).count() as i32);
    for identity in cx.identities.iter().filter(own) {
        put_string(cx.out, &identity.scheme);
        put_string(cx.out, display_name(identity));
    }
    frame.finish(cx.out);
    Ok(())
}

/// The part of an identity that is no secret.
fn display_name(identity: &Identity) -> &str {
    match &*identity.scheme {
        DIGEST => identity.id.split(':').next().unwrap_or_default(),
        SUPER => "",
        _ => &identity.id,
    }
}

/// Answers always with the same xid, whatever the request had.
pub(crate) fn ping(cx: &mut ReadContext<'_>, _body: &[u8]) -> Result<(), ErrorCode> {
    cx.xid = XID_PING;
    cx.reply_empty();
    Ok(())
}

/// Echoes the path, whatever it is: the barrier was passed before.
pub(crate) fn sync(cx: &mut ReadContext<'_>, body: &[u8]) -> Result<(), ErrorCode> {
    let request: SyncRequest<'_> = decode(body)?;
    let frame = cx.begin(4 + body.len());
    request.path.encode(cx.out);
    frame.finish(cx.out);
    Ok(())
}

/// The end of a session that only this member knows.
pub(crate) fn close_local(cx: &mut ReadContext<'_>, _body: &[u8]) -> Result<(), ErrorCode> {
    cx.reply_empty();
    Ok(())
}

/// Containers are removed by the member itself; a client that asks for it is told that it may not.
pub(crate) fn delete_container(_cx: &mut ReadContext<'_>, _body: &[u8]) -> Result<(), ErrorCode> {
    Err(ErrorCode::BadArguments)
}
