//! Frames as a client makes and reads them.

use bytes::{BufMut, BytesMut};
use quenda_proto::connect::Handshake;
use quenda_proto::event::ADD_WATCH_PERSISTENT_RECURSIVE;
use quenda_proto::frame::{self, OpenFrame};
use quenda_proto::multi;
use quenda_proto::records::{
    Acl, AddWatchRequest, CheckVersionRequest, ConnectRequest, ConnectResponse, CreateRequest,
    DeleteRequest, ExistsRequest, GetChildrenRequest, GetDataRequest, Id, ReconfigRequest,
    ReplyHeader, RequestHeader, SetDataRequest, SetWatches, SetWatches2, SyncRequest,
};
use quenda_proto::{Decode, Encode, Op, Reader, XID_PING, XID_SET_WATCHES};

use crate::client::Reconfiguration;

/// Longest frame that a client reads.
const FRAME_MAX: usize = 64 << 20;

/// Path of the replicated configuration.
pub const CONFIG_PATH: &str = "/zookeeper/config";

/// One write inside a multi.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// setData.
    Set {
        /// Where.
        path: String,
        /// What.
        data: Vec<u8>,
        /// Expected version, -1 for any.
        expected: i32,
    },
    /// check.
    Check {
        /// Where.
        path: String,
        /// Expected version, -1 for any.
        version: i32,
    },
}

fn request(out: &mut BytesMut, xid: i32, op: Op, record: &impl Encode) {
    let frame = OpenFrame::start(out);
    RequestHeader {
        xid,
        kind: op.code(),
    }
    .encode(out);
    record.encode(out);
    frame.finish(out);
}

/// The first frame of a connection.
pub fn connect(out: &mut BytesMut, session: i64, password: &[u8; 16], seen: i64, timeout_ms: i32) {
    let frame = OpenFrame::start(out);
    let handshake = Handshake {
        request: ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: seen,
            time_out: timeout_ms,
            session_id: session,
            passwd: Some(password),
        },
        read_only: Some(false),
    };
    handshake.encode(out);
    frame.finish(out);
}

/// create.
pub fn create(out: &mut BytesMut, xid: i32, path: &str, data: &[u8], flags: i32) {
    let anyone = Acl {
        perms: 31,
        id: Id {
            scheme: Some("world".into()),
            id: Some("anyone".into()),
        },
    };
    let record = CreateRequest {
        path: Some(path.into()),
        data: Some(data),
        acl: Some(vec![anyone]),
        flags,
    };
    request(out, xid, Op::Create, &record);
}

/// setData.
pub fn set(out: &mut BytesMut, xid: i32, path: &str, data: &[u8], version: i32) {
    request(out, xid, Op::SetData, &set_record(path, data, version));
}

fn set_record<'a>(path: &'a str, data: &'a [u8], version: i32) -> SetDataRequest<'a> {
    SetDataRequest {
        path: Some(path.into()),
        data: Some(data),
        version,
    }
}

/// delete.
pub fn delete(out: &mut BytesMut, xid: i32, path: &str, version: i32) {
    let record = DeleteRequest {
        path: Some(path.into()),
        version,
    };
    request(out, xid, Op::Delete, &record);
}

/// getData.
pub fn get(out: &mut BytesMut, xid: i32, path: &str, watch: bool) {
    let path = Some(path.into());
    request(out, xid, Op::GetData, &GetDataRequest { path, watch });
}

/// exists.
pub fn exists(out: &mut BytesMut, xid: i32, path: &str, watch: bool) {
    let path = Some(path.into());
    request(out, xid, Op::Exists, &ExistsRequest { path, watch });
}

/// getChildren.
pub fn children(out: &mut BytesMut, xid: i32, path: &str, watch: bool) {
    let path = Some(path.into());
    request(
        out,
        xid,
        Op::GetChildren,
        &GetChildrenRequest { path, watch },
    );
}

/// sync.
pub fn sync(out: &mut BytesMut, xid: i32, path: &str) {
    let path = Some(path.into());
    request(out, xid, Op::Sync, &SyncRequest { path });
}

/// ping.
pub fn ping(out: &mut BytesMut) {
    let frame = OpenFrame::start(out);
    RequestHeader {
        xid: XID_PING,
        kind: Op::Ping.code(),
    }
    .encode(out);
    frame.finish(out);
}

/// closeSession.
pub fn close(out: &mut BytesMut, xid: i32) {
    let frame = OpenFrame::start(out);
    RequestHeader {
        xid,
        kind: Op::CloseSession.code(),
    }
    .encode(out);
    frame.finish(out);
}

/// multi.
pub fn multi(out: &mut BytesMut, xid: i32, parts: &[Part]) {
    let frame = OpenFrame::start(out);
    RequestHeader {
        xid,
        kind: Op::Multi.code(),
    }
    .encode(out);
    for part in parts {
        match part {
            Part::Set {
                path,
                data,
                expected,
            } => multi::put_request(out, Op::SetData, &set_record(path, data, *expected)),
            Part::Check { path, version } => {
                let record = CheckVersionRequest {
                    path: Some(path.into()),
                    version: *version,
                };
                multi::put_request(out, Op::Check, &record);
            }
        }
    }
    multi::put_terminator(out);
    frame.finish(out);
}

/// reconfig.
pub fn reconfig(out: &mut BytesMut, xid: i32, wanted: &Reconfiguration) {
    let record = ReconfigRequest {
        joining_servers: wanted.joining.as_deref().map(Into::into),
        leaving_servers: wanted.leaving.as_deref().map(Into::into),
        new_members: wanted.all.as_deref().map(Into::into),
        cur_config_id: -1,
    };
    request(out, xid, Op::Reconfig, &record);
}

/// addWatch, of a recursive one.
pub fn add_recursive_watch(out: &mut BytesMut, xid: i32, path: &str) {
    let record = AddWatchRequest {
        path: Some(path.into()),
        mode: ADD_WATCH_PERSISTENT_RECURSIVE,
    };
    request(out, xid, Op::AddWatch, &record);
}

/// The watches that a client wants to have again.
#[derive(Debug, Default)]
pub struct WatchLists {
    /// For changes of data.
    pub data: Vec<String>,
    /// For creates.
    pub exist: Vec<String>,
    /// For changes of the children.
    pub child: Vec<String>,
    /// Persistent ones for everything below.
    pub recursive: Vec<String>,
}

/// setWatches, or setWatches2 if there are persistent ones.
pub fn set_watches(out: &mut BytesMut, seen: i64, lists: WatchLists) {
    let list = |paths: Vec<String>| Some(paths.into_iter().map(|path| Some(path.into())).collect());
    if lists.recursive.is_empty() {
        let record = SetWatches {
            relative_zxid: seen,
            data_watches: list(lists.data),
            exist_watches: list(lists.exist),
            child_watches: list(lists.child),
        };
        return request(out, XID_SET_WATCHES, Op::SetWatches, &record);
    }
    let record = SetWatches2 {
        relative_zxid: seen,
        data_watches: list(lists.data),
        exist_watches: list(lists.exist),
        child_watches: list(lists.child),
        persistent_watches: Some(Vec::new()),
        persistent_recursive_watches: list(lists.recursive),
    };
    request(out, XID_SET_WATCHES, Op::SetWatches2, &record);
}

/// Takes the next whole frame out of what has arrived.
pub fn next_frame(input: &mut BytesMut) -> Option<BytesMut> {
    let length = match frame::split(input, FRAME_MAX) {
        Ok(Some((payload, _))) => payload.len(),
        Ok(None) | Err(_) => return None,
    };
    let mut whole = input.split_to(4 + length);
    Some(whole.split_off(4))
}

/// The answer to the first frame: session, timeout, password.
pub fn read_connect(payload: &[u8]) -> Option<(i64, i32, [u8; 16])> {
    let response = ConnectResponse::decode(&mut Reader::new(payload)).ok()?;
    let password = response.passwd?.try_into().ok()?;
    Some((response.session_id, response.time_out, password))
}

/// Header and body of a reply or an event.
pub fn read_reply(payload: &[u8]) -> Option<(ReplyHeader, &[u8])> {
    let mut reader = Reader::new(payload);
    let header = ReplyHeader::decode(&mut reader).ok()?;
    Some((header, reader.rest()))
}

/// A record out of the body of a reply.
pub fn read<'a, T: Decode<'a>>(body: &'a [u8]) -> Option<T> {
    T::decode(&mut Reader::new(body)).ok()
}

/// Data of a znode that carries a value, padded so that logs grow.
pub fn data_of(value: u32, padding: usize) -> Vec<u8> {
    let mut data = Vec::with_capacity(4 + padding);
    data.put_u32(value);
    data.resize(4 + padding, b'.');
    data
}

/// The value in the data of a znode.
pub fn value_of(data: &[u8]) -> Option<u32> {
    data.first_chunk::<4>().map(|raw| u32::from_be_bytes(*raw))
}
