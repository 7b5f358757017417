//! Generated from jute-schema/zookeeper.jute by `quenda-xtask generate`. Do not edit.

use std::borrow::Cow;

use bytes::BytesMut;

use crate::jute::{Decode, DecodeError, Encode, Reader};

/// An identity: who somebody is, under which scheme that was proved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Id<'a> {
    /// Authentication scheme: world, auth, digest, ip, sasl, x509 or super.
    pub scheme: Option<Cow<'a, str>>,
    /// The identity in the scheme's own notation.
    pub id: Option<Cow<'a, str>>,
}

impl<'a> Decode<'a> for Id<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Id {
            scheme: Decode::decode(reader)?,
            id: Decode::decode(reader)?,
        })
    }
}

impl Encode for Id<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.scheme.encode(out);
        self.id.encode(out);
    }
}

/// One entry of an access control list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Acl<'a> {
    /// Permission bits: READ 1, WRITE 2, CREATE 4, DELETE 8, ADMIN 16.
    pub perms: i32,
    /// Whom the permissions are given to.
    pub id: Id<'a>,
}

impl<'a> Decode<'a> for Acl<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Acl {
            perms: Decode::decode(reader)?,
            id: Decode::decode(reader)?,
        })
    }
}

impl Encode for Acl<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.perms.encode(out);
        self.id.encode(out);
    }
}

/// The metadata of a znode as clients see it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stat {
    /// zxid of the create.
    pub czxid: i64,
    /// zxid of the create or of the last setData.
    pub mzxid: i64,
    /// Milliseconds since 1970 of the create.
    pub ctime: i64,
    /// Milliseconds since 1970 of the create or of the last setData.
    pub mtime: i64,
    /// Data version, 0 at the create.
    pub version: i32,
    /// Child version: rises by one for each create and each delete of a child.
    pub cversion: i32,
    /// ACL version, 0 at the create.
    pub aversion: i32,
    /// Session id of the owner of an ephemeral znode, else 0.
    pub ephemeral_owner: i64,
    /// Bytes of data, 0 for null.
    pub data_length: i32,
    /// Number of direct children.
    pub num_children: i32,
    /// zxid of the last create or delete of a direct child.
    pub pzxid: i64,
}

impl Decode<'_> for Stat {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Stat {
            czxid: Decode::decode(reader)?,
            mzxid: Decode::decode(reader)?,
            ctime: Decode::decode(reader)?,
            mtime: Decode::decode(reader)?,
            version: Decode::decode(reader)?,
            cversion: Decode::decode(reader)?,
            aversion: Decode::decode(reader)?,
            ephemeral_owner: Decode::decode(reader)?,
            data_length: Decode::decode(reader)?,
            num_children: Decode::decode(reader)?,
            pzxid: Decode::decode(reader)?,
        })
    }
}

impl Encode for Stat {
    fn encode(&self, out: &mut BytesMut) {
        self.czxid.encode(out);
        self.mzxid.encode(out);
        self.ctime.encode(out);
        self.mtime.encode(out);
        self.version.encode(out);
        self.cversion.encode(out);
        self.aversion.encode(out);
        self.ephemeral_owner.encode(out);
        self.data_length.encode(out);
        self.num_children.encode(out);
        self.pzxid.encode(out);
    }
}

/// First frame of a connection. A boolean readOnly may follow; it is decoded apart, since old clients omit it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConnectRequest<'a> {
    /// Ignored by servers; clients send 0.
    pub protocol_version: i32,
    /// Highest zxid the client has seen, 0 if none.
    pub last_zxid_seen: i64,
    /// Wanted session timeout in milliseconds.
    pub time_out: i32,
    /// 0 for a new session, else the session to resume.
    pub session_id: i64,
    /// Password of the session to resume.
    pub passwd: Option<&'a [u8]>,
}

impl<'a> Decode<'a> for ConnectRequest<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(ConnectRequest {
            protocol_version: Decode::decode(reader)?,
            last_zxid_seen: Decode::decode(reader)?,
            time_out: Decode::decode(reader)?,
            session_id: Decode::decode(reader)?,
            passwd: Decode::decode(reader)?,
        })
    }
}

impl Encode for ConnectRequest<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.protocol_version.encode(out);
        self.last_zxid_seen.encode(out);
        self.time_out.encode(out);
        self.session_id.encode(out);
        self.passwd.encode(out);
    }
}

/// Answer to a ConnectRequest. A boolean readOnly follows iff the request carried one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConnectResponse<'a> {
    /// Always 0.
    pub protocol_version: i32,
    /// Negotiated timeout in milliseconds, 0 when the session is refused.
    pub time_out: i32,
    /// The session, 0 when refused.
    pub session_id: i64,
    /// 16 bytes, all zero when refused.
    pub passwd: Option<&'a [u8]>,
}

impl<'a> Decode<'a> for ConnectResponse<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(ConnectResponse {
            protocol_version: Decode::decode(reader)?,
            time_out: Decode::decode(reader)?,
            session_id: Decode::decode(reader)?,
            passwd: Decode::decode(reader)?,
        })
    }
}

impl Encode for ConnectResponse<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.protocol_version.encode(out);
        self.time_out.encode(out);
        self.session_id.encode(out);
        self.passwd.encode(out);
    }
}

/// Starts every request after the handshake.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestHeader {
    /// Chosen by the client and echoed by the server.
    pub xid: i32,
    /// Operation code.
    pub kind: i32,
}

impl Decode<'_> for RequestHeader {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(RequestHeader {
            xid: Decode::decode(reader)?,
            kind: Decode::decode(reader)?,
        })
    }
}

impl Encode for RequestHeader {
    fn encode(&self, out: &mut BytesMut) {
        self.xid.encode(out);
        self.kind.encode(out);
    }
}

/// Starts every reply and every watch event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReplyHeader {
    /// xid of the request; -1 for events, -2 for pings.
    pub xid: i32,
    /// zxid of the write, or the last one applied where the reply was built.
    pub zxid: i64,
    /// Error code, 0 for success.
    pub err: i32,
}

impl Decode<'_> for ReplyHeader {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(ReplyHeader {
            xid: Decode::decode(reader)?,
            zxid: Decode::decode(reader)?,
            err: Decode::decode(reader)?,
        })
    }
}

impl Encode for ReplyHeader {
    fn encode(&self, out: &mut BytesMut) {
        self.xid.encode(out);
        self.zxid.encode(out);
        self.err.encode(out);
    }
}

/// Separates the operations of a multi and their results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MultiHeader {
    /// Operation code; -1 in the terminator and in error results.
    pub kind: i32,
    /// True only in the terminator.
    pub done: bool,
    /// Error code in results, ignored in requests.
    pub err: i32,
}

impl Decode<'_> for MultiHeader {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(MultiHeader {
            kind: Decode::decode(reader)?,
            done: Decode::decode(reader)?,
            err: Decode::decode(reader)?,
        })
    }
}

impl Encode for MultiHeader {
    fn encode(&self, out: &mut BytesMut) {
        self.kind.encode(out);
        self.done.encode(out);
        self.err.encode(out);
    }
}

/// Body of a watch event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatcherEvent<'a> {
    /// 1 created, 2 deleted, 3 data changed, 4 children changed.
    pub kind: i32,
    /// Always 3 (SyncConnected) from a server.
    pub state: i32,
    /// Path of the znode that changed.
    pub path: Option<Cow<'a, str>>,
}

impl<'a> Decode<'a> for WatcherEvent<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(WatcherEvent {
            kind: Decode::decode(reader)?,
            state: Decode::decode(reader)?,
            path: Decode::decode(reader)?,
        })
    }
}

impl Encode for WatcherEvent<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.kind.encode(out);
        self.state.encode(out);
        self.path.encode(out);
    }
}

/// create, create2, createContainer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CreateRequest<'a> {
    /// Absolute path of the znode.
    pub path: Option<Cow<'a, str>>,
    /// Data of the znode.
    pub data: Option<&'a [u8]>,
    /// Access control list.
    pub acl: Option<Vec<Acl<'a>>>,
    /// Create mode, 0 to 6.
    pub flags: i32,
}

impl<'a> Decode<'a> for CreateRequest<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(CreateRequest {
            path: Decode::decode(reader)?,
            data: Decode::decode(reader)?,
            acl: Decode::decode(reader)?,
            flags: Decode::decode(reader)?,
        })
    }
}

impl Encode for CreateRequest<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.path.encode(out);
        self.data.encode(out);
        self.acl.encode(out);
        self.flags.encode(out);
    }
}

/// createTTL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CreateTtlRequest<'a> {
    /// Absolute path of the znode.
    pub path: Option<Cow<'a, str>>,
    /// Data of the znode.
    pub data: Option<&'a [u8]>,
    /// Access control list.
    pub acl: Option<Vec<Acl<'a>>>,
    /// Create mode, 5 or 6.
    pub flags: i32,
    /// Time to live in milliseconds.
    pub ttl: i64,
}

impl<'a> Decode<'a> for CreateTtlRequest<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(CreateTtlRequest {
            path: Decode::decode(reader)?,
            data: Decode::decode(reader)?,
            acl: Decode::decode(reader)?,
            flags: Decode::decode(reader)?,
            ttl: Decode::decode(reader)?,
        })
    }
}

impl Encode for CreateTtlRequest<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.path.encode(out);
        self.data.encode(out);
        self.acl.encode(out);
        self.flags.encode(out);
        self.ttl.encode(out);
    }
}

/// delete.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteRequest<'a> {
    /// Absolute path of the znode.
    pub path: Option<Cow<'a, str>>,
    /// Expected data version, -1 for any.
    pub version: i32,
}

impl<'a> Decode<'a> for DeleteRequest<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(DeleteRequest {
            path: Decode::decode(reader)?,
            version: Decode::decode(reader)?,
        })
    }
}

impl Encode for DeleteRequest<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.path.encode(out);
        self.version.encode(out);
    }
}

/// deleteContainer; clients are refused.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteContainerRequest<'a> {
    /// The path as bytes.
    pub path: Option<&'a [u8]>,
}

impl<'a> Decode<'a> for DeleteContainerRequest<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(DeleteContainerRequest {
            path: Decode::decode(reader)?,
        })
    }
}

impl Encode for DeleteContainerRequest<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.path.encode(out);
    }
}

/// exists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExistsRequest<'a> {
    /// Absolute path of the znode.
    pub path: Option<Cow<'a, str>>,
    /// Whether to leave a watch.
    pub watch: bool,
}

impl<'a> Decode<'a> for ExistsRequest<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(ExistsRequest {
            path: Decode::decode(reader)?,
            watch: Decode::decode(reader)?,
        })
    }
}

impl Encode for ExistsRequest<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.path.encode(out);
        self.watch.encode(out);
    }
}

/// getData.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GetDataRequest<'a> {
    /// Absolute path of the znode.
    pub path: Option<Cow<'a, str>>,
    /// Whether to leave a watch.
    pub watch: bool,
}

impl<'a> Decode<'a> for GetDataRequest<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(GetDataRequest {
            path: Decode::decode(reader)?,
            watch: Decode::decode(reader)?,
        })
    }
}

impl Encode for GetDataRequest<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.path.encode(out);
        self.watch.encode(out);
    }
}

/// getChildren.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GetChildrenRequest<'a> {
    /// Absolute path of the znode.
    pub path: Option<Cow<'a, str>>,
    /// Whether to leave a watch.
    pub watch: bool,
}

impl<'a> Decode<'a> for GetChildrenRequest<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(GetChildrenRequest {
            path: Decode::decode(reader)?,
            watch: Decode::decode(reader)?,
        })
    }
}

impl Encode for GetChildrenRequest<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.path.encode(out);
        self.watch.encode(out);
    }
}

/// getChildren2.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GetChildren2Request<'a> {
    /// Absolute path of the znode.
    pub path: Option<Cow<'a, str>>,
    /// Whether to leave a watch.
    pub watch: bool,
}

impl<'a> Decode<'a> for GetChildren2Request<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(GetChildren2Request {
            path: Decode::decode(reader)?,
            watch: Decode::decode(reader)?,
        })
    }
}

impl Encode for GetChildren2Request<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.path.encode(out);
        self.watch.encode(out);
    }
}

/// setData.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SetDataRequest<'a> {
    /// Absolute path of the znode.
    pub path: Option<Cow<'a, str>>,
    /// Data of the znode.
    pub data: Option<&'a [u8]>,
    /// Expected data version, -1 for any.
    pub version: i32,
}

impl<'a> Decode<'a> for SetDataRequest<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(SetDataRequest {
            path: Decode::decode(reader)?,
            data: Decode::decode(reader)?,
            version: Decode::decode(reader)?,
        })
    }
}

impl Encode for SetDataRequest<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.path.encode(out);
        self.data.encode(out);
        self.version.encode(out);
    }
}

/// getACL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GetAclRequest<'a> {
    /// Absolute path of the znode.
    pub path: Option<Cow<'a, str>>,
}

impl<'a> Decode<'a> for GetAclRequest<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(GetAclRequest {
            path: Decode::decode(reader)?,
        })
    }
}

impl Encode for GetAclRequest<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.path.encode(out);
    }
}

/// setACL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SetAclRequest<'a> {
    /// Absolute path of the znode.
    pub path: Option<Cow<'a, str>>,
    /// Access control list.
    pub acl: Option<Vec<Acl<'a>>>,
    /// Expected ACL version, -1 for any.
    pub version: i32,
}

impl<'a> Decode<'a> for SetAclRequest<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(SetAclRequest {
            path: Decode::decode(reader)?,
            acl: Decode::decode(reader)?,
            version: Decode::decode(reader)?,
        })
    }
}

impl Encode for SetAclRequest<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.path.encode(out);
        self.acl.encode(out);
        self.version.encode(out);
    }
}

/// sync.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SyncRequest<'a> {
    /// Absolute path of the znode.
    pub path: Option<Cow<'a, str>>,
}

impl<'a> Decode<'a> for SyncRequest<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(SyncRequest {
            path: Decode::decode(reader)?,
        })
    }
}

impl Encode for SyncRequest<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.path.encode(out);
    }
}

/// check, only inside a multi.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckVersionRequest<'a> {
    /// Absolute path of the znode.
    pub path: Option<Cow<'a, str>>,
    /// Expected data version, -1 for any.
    pub version: i32,
}

impl<'a> Decode<'a> for CheckVersionRequest<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(CheckVersionRequest {
            path: Decode::decode(reader)?,
            version: Decode::decode(reader)?,
        })
    }
}

impl Encode for CheckVersionRequest<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.path.encode(out);
        self.version.encode(out);
    }
}

/// reconfig.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReconfigRequest<'a> {
    /// Comma-separated server lines to add or replace.
    pub joining_servers: Option<Cow<'a, str>>,
    /// Comma-separated ids to remove.
    pub leaving_servers: Option<Cow<'a, str>>,
    /// The whole membership; excludes the other two.
    pub new_members: Option<Cow<'a, str>>,
    /// Expected configuration version, -1 for any.
    pub cur_config_id: i64,
}

impl<'a> Decode<'a> for ReconfigRequest<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(ReconfigRequest {
            joining_servers: Decode::decode(reader)?,
            leaving_servers: Decode::decode(reader)?,
            new_members: Decode::decode(reader)?,
            cur_config_id: Decode::decode(reader)?,
        })
    }
}

impl Encode for ReconfigRequest<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.joining_servers.encode(out);
        self.leaving_servers.encode(out);
        self.new_members.encode(out);
        self.cur_config_id.encode(out);
    }
}

/// checkWatches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckWatchesRequest<'a> {
    /// Absolute path of the znode.
    pub path: Option<Cow<'a, str>>,
    /// Kind of watch: 1 children, 2 data, 3 any, 4 persistent, 5 persistent recursive.
    pub kind: i32,
}

impl<'a> Decode<'a> for CheckWatchesRequest<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(CheckWatchesRequest {
            path: Decode::decode(reader)?,
            kind: Decode::decode(reader)?,
        })
    }
}

impl Encode for CheckWatchesRequest<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.path.encode(out);
        self.kind.encode(out);
    }
}

/// removeWatches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemoveWatchesRequest<'a> {
    /// Absolute path of the znode.
    pub path: Option<Cow<'a, str>>,
    /// Kind of watch: 1 children, 2 data, 3 any, 4 persistent, 5 persistent recursive.
    pub kind: i32,
}

impl<'a> Decode<'a> for RemoveWatchesRequest<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(RemoveWatchesRequest {
            path: Decode::decode(reader)?,
            kind: Decode::decode(reader)?,
        })
    }
}

impl Encode for RemoveWatchesRequest<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.path.encode(out);
        self.kind.encode(out);
    }
}

/// setWatches: what a client replays after a reconnect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SetWatches<'a> {
    /// Last zxid the client has seen.
    pub relative_zxid: i64,
    /// See the record.
    pub data_watches: Option<Vec<Option<Cow<'a, str>>>>,
    /// See the record.
    pub exist_watches: Option<Vec<Option<Cow<'a, str>>>>,
    /// See the record.
    pub child_watches: Option<Vec<Option<Cow<'a, str>>>>,
}

impl<'a> Decode<'a> for SetWatches<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(SetWatches {
            relative_zxid: Decode::decode(reader)?,
            data_watches: Decode::decode(reader)?,
            exist_watches: Decode::decode(reader)?,
            child_watches: Decode::decode(reader)?,
        })
    }
}

impl Encode for SetWatches<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.relative_zxid.encode(out);
        self.data_watches.encode(out);
        self.exist_watches.encode(out);
        self.child_watches.encode(out);
    }
}

/// setWatches2: setWatches with persistent watches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SetWatches2<'a> {
    /// Last zxid the client has seen.
    pub relative_zxid: i64,
    /// See the record.
    pub data_watches: Option<Vec<Option<Cow<'a, str>>>>,
    /// See the record.
    pub exist_watches: Option<Vec<Option<Cow<'a, str>>>>,
    /// See the record.
    pub child_watches: Option<Vec<Option<Cow<'a, str>>>>,
    /// See the record.
    pub persistent_watches: Option<Vec<Option<Cow<'a, str>>>>,
    /// See the record.
    pub persistent_recursive_watches: Option<Vec<Option<Cow<'a, str>>>>,
}

impl<'a> Decode<'a> for SetWatches2<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(SetWatches2 {
            relative_zxid: Decode::decode(reader)?,
            data_watches: Decode::decode(reader)?,
            exist_watches: Decode::decode(reader)?,
            child_watches: Decode::decode(reader)?,
            persistent_watches: Decode::decode(reader)?,
            persistent_recursive_watches: Decode::decode(reader)?,
        })
    }
}

impl Encode for SetWatches2<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.relative_zxid.encode(out);
        self.data_watches.encode(out);
        self.exist_watches.encode(out);
        self.child_watches.encode(out);
        self.persistent_watches.encode(out);
        self.persistent_recursive_watches.encode(out);
    }
}

/// addWatch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddWatchRequest<'a> {
    /// Absolute path of the znode.
    pub path: Option<Cow<'a, str>>,
    /// 0 persistent, 1 persistent recursive.
    pub mode: i32,
}

impl<'a> Decode<'a> for AddWatchRequest<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(AddWatchRequest {
            path: Decode::decode(reader)?,
            mode: Decode::decode(reader)?,
        })
    }
}

impl Encode for AddWatchRequest<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.path.encode(out);
        self.mode.encode(out);
    }
}

/// getEphemerals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GetEphemeralsRequest<'a> {
    /// Plain text prefix of the paths wanted.
    pub prefix_path: Option<Cow<'a, str>>,
}

impl<'a> Decode<'a> for GetEphemeralsRequest<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(GetEphemeralsRequest {
            prefix_path: Decode::decode(reader)?,
        })
    }
}

impl Encode for GetEphemeralsRequest<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.prefix_path.encode(out);
    }
}

/// getAllChildrenNumber.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GetAllChildrenNumberRequest<'a> {
    /// Absolute path of the znode.
    pub path: Option<Cow<'a, str>>,
}

impl<'a> Decode<'a> for GetAllChildrenNumberRequest<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(GetAllChildrenNumberRequest {
            path: Decode::decode(reader)?,
        })
    }
}

impl Encode for GetAllChildrenNumberRequest<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.path.encode(out);
    }
}

/// auth.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuthPacket<'a> {
    /// Ignored.
    pub kind: i32,
    /// See the record.
    pub scheme: Option<Cow<'a, str>>,
    /// Credential in the scheme's own form.
    pub auth: Option<&'a [u8]>,
}

impl<'a> Decode<'a> for AuthPacket<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(AuthPacket {
            kind: Decode::decode(reader)?,
            scheme: Decode::decode(reader)?,
            auth: Decode::decode(reader)?,
        })
    }
}

impl Encode for AuthPacket<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.kind.encode(out);
        self.scheme.encode(out);
        self.auth.encode(out);
    }
}

/// sasl: one token from the client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GetSaslRequest<'a> {
    /// One token of the SASL exchange, null if none.
    pub token: Option<&'a [u8]>,
}

impl<'a> Decode<'a> for GetSaslRequest<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(GetSaslRequest {
            token: Decode::decode(reader)?,
        })
    }
}

impl Encode for GetSaslRequest<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.token.encode(out);
    }
}

/// Answer to create.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CreateResponse<'a> {
    /// The final path, with its sequence suffix.
    pub path: Option<Cow<'a, str>>,
}

impl<'a> Decode<'a> for CreateResponse<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(CreateResponse {
            path: Decode::decode(reader)?,
        })
    }
}

impl Encode for CreateResponse<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.path.encode(out);
    }
}

/// Answer to create2, createContainer and createTTL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Create2Response<'a> {
    /// The final path, with its sequence suffix.
    pub path: Option<Cow<'a, str>>,
    /// Metadata of the znode.
    pub stat: Stat,
}

impl<'a> Decode<'a> for Create2Response<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Create2Response {
            path: Decode::decode(reader)?,
            stat: Decode::decode(reader)?,
        })
    }
}

impl Encode for Create2Response<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.path.encode(out);
        self.stat.encode(out);
    }
}

/// Answer to exists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExistsResponse {
    /// Metadata of the znode.
    pub stat: Stat,
}

impl Decode<'_> for ExistsResponse {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(ExistsResponse {
            stat: Decode::decode(reader)?,
        })
    }
}

impl Encode for ExistsResponse {
    fn encode(&self, out: &mut BytesMut) {
        self.stat.encode(out);
    }
}

/// Answer to setData.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SetDataResponse {
    /// Metadata of the znode.
    pub stat: Stat,
}

impl Decode<'_> for SetDataResponse {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(SetDataResponse {
            stat: Decode::decode(reader)?,
        })
    }
}

impl Encode for SetDataResponse {
    fn encode(&self, out: &mut BytesMut) {
        self.stat.encode(out);
    }
}

/// Answer to setACL.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SetAclResponse {
    /// Metadata of the znode.
    pub stat: Stat,
}

impl Decode<'_> for SetAclResponse {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(SetAclResponse {
            stat: Decode::decode(reader)?,
        })
    }
}

impl Encode for SetAclResponse {
    fn encode(&self, out: &mut BytesMut) {
        self.stat.encode(out);
    }
}

/// Answer to getData and to reconfig.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GetDataResponse<'a> {
    /// Data of the znode.
    pub data: Option<&'a [u8]>,
    /// Metadata of the znode.
    pub stat: Stat,
}

impl<'a> Decode<'a> for GetDataResponse<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(GetDataResponse {
            data: Decode::decode(reader)?,
            stat: Decode::decode(reader)?,
        })
    }
}

impl Encode for GetDataResponse<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.data.encode(out);
        self.stat.encode(out);
    }
}

/// Answer to getChildren.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GetChildrenResponse<'a> {
    /// Names, not paths.
    pub children: Option<Vec<Option<Cow<'a, str>>>>,
}

impl<'a> Decode<'a> for GetChildrenResponse<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(GetChildrenResponse {
            children: Decode::decode(reader)?,
        })
    }
}

impl Encode for GetChildrenResponse<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.children.encode(out);
    }
}

/// Answer to getChildren2.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GetChildren2Response<'a> {
    /// Names, not paths.
    pub children: Option<Vec<Option<Cow<'a, str>>>>,
    /// Of the parent.
    pub stat: Stat,
}

impl<'a> Decode<'a> for GetChildren2Response<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(GetChildren2Response {
            children: Decode::decode(reader)?,
            stat: Decode::decode(reader)?,
        })
    }
}

impl Encode for GetChildren2Response<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.children.encode(out);
        self.stat.encode(out);
    }
}

/// Answer to getACL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GetAclResponse<'a> {
    /// Access control list.
    pub acl: Option<Vec<Acl<'a>>>,
    /// Metadata of the znode.
    pub stat: Stat,
}

impl<'a> Decode<'a> for GetAclResponse<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(GetAclResponse {
            acl: Decode::decode(reader)?,
            stat: Decode::decode(reader)?,
        })
    }
}

impl Encode for GetAclResponse<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.acl.encode(out);
        self.stat.encode(out);
    }
}

/// Answer to sync.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SyncResponse<'a> {
    /// Echo of the request's path.
    pub path: Option<Cow<'a, str>>,
}

impl<'a> Decode<'a> for SyncResponse<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(SyncResponse {
            path: Decode::decode(reader)?,
        })
    }
}

impl Encode for SyncResponse<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.path.encode(out);
    }
}

/// Answer to getEphemerals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GetEphemeralsResponse<'a> {
    /// Full paths.
    pub ephemerals: Option<Vec<Option<Cow<'a, str>>>>,
}

impl<'a> Decode<'a> for GetEphemeralsResponse<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(GetEphemeralsResponse {
            ephemerals: Decode::decode(reader)?,
        })
    }
}

impl Encode for GetEphemeralsResponse<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.ephemerals.encode(out);
    }
}

/// Answer to getAllChildrenNumber.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GetAllChildrenNumberResponse {
    /// Number of descendants.
    pub total_number: i32,
}

impl Decode<'_> for GetAllChildrenNumberResponse {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(GetAllChildrenNumberResponse {
            total_number: Decode::decode(reader)?,
        })
    }
}

impl Encode for GetAllChildrenNumberResponse {
    fn encode(&self, out: &mut BytesMut) {
        self.total_number.encode(out);
    }
}

/// One identity of a connection as whoAmI tells it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientInfo<'a> {
    /// See the record.
    pub auth_scheme: Option<Cow<'a, str>>,
    /// The identity without its secret part.
    pub user: Option<Cow<'a, str>>,
}

impl<'a> Decode<'a> for ClientInfo<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(ClientInfo {
            auth_scheme: Decode::decode(reader)?,
            user: Decode::decode(reader)?,
        })
    }
}

impl Encode for ClientInfo<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.auth_scheme.encode(out);
        self.user.encode(out);
    }
}

/// Answer to whoAmI.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WhoAmIResponse<'a> {
    /// See the record.
    pub client_info: Option<Vec<ClientInfo<'a>>>,
}

impl<'a> Decode<'a> for WhoAmIResponse<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(WhoAmIResponse {
            client_info: Decode::decode(reader)?,
        })
    }
}

impl Encode for WhoAmIResponse<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.client_info.encode(out);
    }
}

/// Answer to addWatch, and body of an error result in a multi.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ErrorResponse {
    /// Error code.
    pub err: i32,
}

impl Decode<'_> for ErrorResponse {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(ErrorResponse {
            err: Decode::decode(reader)?,
        })
    }
}

impl Encode for ErrorResponse {
    fn encode(&self, out: &mut BytesMut) {
        self.err.encode(out);
    }
}

/// Answer to sasl: one token from the server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SetSaslResponse<'a> {
    /// One token of the SASL exchange, null if none.
    pub token: Option<&'a [u8]>,
}

impl<'a> Decode<'a> for SetSaslResponse<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(SetSaslResponse {
            token: Decode::decode(reader)?,
        })
    }
}

impl Encode for SetSaslResponse<'_> {
    fn encode(&self, out: &mut BytesMut) {
        self.token.encode(out);
    }
}
