//! Request frames, as clients send them.

use bytes::{BufMut, BytesMut};
use quenda_proto::connect::Handshake;
use quenda_proto::records::{
    Acl, CheckVersionRequest, ConnectRequest, CreateRequest, DeleteRequest, ExistsRequest,
    GetChildren2Request, GetDataRequest, Id, SetDataRequest,
};
use quenda_proto::{Encode, Op, XID_PING, multi};

/// An access control list that lets everybody do everything.
pub fn open() -> Option<Vec<Acl<'static>>> {
    let id = Id {
        scheme: Some("world".into()),
        id: Some("anyone".into()),
    };
    Some(vec![Acl { perms: 31, id }])
}

/// The frame of a request.
pub fn request<T: Encode>(xid: i32, op: Op, record: &T) -> Vec<u8> {
    let mut body = BytesMut::new();
    record.encode(&mut body);
    raw(xid, op, &body)
}

fn raw(xid: i32, op: Op, body: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(12 + body.len());
    frame.put_i32(8 + body.len() as i32);
    frame.put_i32(xid);
    frame.put_i32(op.code());
    frame.put_slice(body);
    frame
}

pub fn connect() -> Vec<u8> {
    let handshake = Handshake {
        request: ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: 0,
            time_out: 10_000,
            session_id: 0,
            passwd: Some(&[0; 16]),
        },
        read_only: Some(false),
    };
    let mut payload = BytesMut::new();
    handshake.encode(&mut payload);
    let mut frame = (payload.len() as i32).to_be_bytes().to_vec();
    frame.extend_from_slice(&payload);
    frame
}

pub fn close() -> Vec<u8> {
    raw(1, Op::CloseSession, &[])
}

pub fn ping() -> Vec<u8> {
    raw(XID_PING, Op::Ping, &[])
}

pub fn get(xid: i32, path: &str, watch: bool) -> Vec<u8> {
    let path = Some(path.into());
    request(xid, Op::GetData, &GetDataRequest { path, watch })
}

pub fn exists(xid: i32, path: &str) -> Vec<u8> {
    let path = Some(path.into());
    request(xid, Op::Exists, &ExistsRequest { path, watch: false })
}

pub fn children(xid: i32, path: &str) -> Vec<u8> {
    let path = Some(path.into());
    let watch = false;
    request(xid, Op::GetChildren2, &GetChildren2Request { path, watch })
}

fn set_record<'a>(path: &'a str, data: &'a [u8]) -> SetDataRequest<'a> {
    SetDataRequest {
        path: Some(path.into()),
        data: Some(data),
        version: -1,
    }
}

pub fn set(xid: i32, path: &str, data: &[u8]) -> Vec<u8> {
    request(xid, Op::SetData, &set_record(path, data))
}

pub fn create_record<'a>(path: &'a str, data: &'a [u8], flags: i32) -> CreateRequest<'a> {
    CreateRequest {
        path: Some(path.into()),
        data: Some(data),
        acl: open(),
        flags,
    }
}

pub fn create(xid: i32, path: &str, data: &[u8], flags: i32) -> Vec<u8> {
    request(xid, Op::Create, &create_record(path, data, flags))
}

pub fn delete(xid: i32, path: &str) -> Vec<u8> {
    let path = Some(path.into());
    let version = -1;
    request(xid, Op::Delete, &DeleteRequest { path, version })
}

/// A check of one znode and a set of another.
pub fn check_and_set(xid: i32, checked: &str, path: &str, data: &[u8]) -> Vec<u8> {
    let check = CheckVersionRequest {
        path: Some(checked.into()),
        version: 0,
    };
    let mut body = BytesMut::new();
    multi::put_request(&mut body, Op::Check, &check);
    multi::put_request(&mut body, Op::SetData, &set_record(path, data));
    multi::put_terminator(&mut body);
    raw(xid, Op::Multi, &body)
}
