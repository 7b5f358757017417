//! Request frames by operation.

use bytes::BytesMut;
use quenda_proto::records::{
    Acl, AddWatchRequest, AuthPacket, CheckWatchesRequest, CreateRequest, CreateTtlRequest,
    DeleteRequest, ExistsRequest, GetAclRequest, GetAllChildrenNumberRequest, GetChildren2Request,
    GetChildrenRequest, GetDataRequest, GetEphemeralsRequest, RemoveWatchesRequest, SetAclRequest,
    SetDataRequest, SetWatches, SyncRequest,
};
use quenda_proto::{Op, XID_AUTH, XID_PING, XID_SET_WATCHES, multi};

use super::{acl, raw, request};

pub fn open() -> Option<Vec<Acl<'static>>> {
    Some(vec![acl(31, "world", "anyone")])
}

pub fn create_record<'a>(
    path: &'a str,
    data: &'a [u8],
    acl: Option<Vec<Acl<'a>>>,
    flags: i32,
) -> CreateRequest<'a> {
    CreateRequest {
        path: Some(path.into()),
        data: Some(data),
        acl,
        flags,
    }
}

pub fn create(xid: i32, path: &str) -> Vec<u8> {
    create_with(xid, path, open(), 0)
}

pub fn create_ephemeral(xid: i32, path: &str) -> Vec<u8> {
    create_with(xid, path, open(), 1)
}

pub fn create_with(xid: i32, path: &str, acl: Option<Vec<Acl<'_>>>, flags: i32) -> Vec<u8> {
    request(xid, Op::Create, &create_record(path, b"", acl, flags))
}

pub fn create_ttl(xid: i32, path: &str, ttl: i64) -> Vec<u8> {
    let record = CreateTtlRequest {
        path: Some(path.into()),
        data: None,
        acl: open(),
        flags: 5,
        ttl,
    };
    request(xid, Op::CreateTtl, &record)
}

pub fn delete_record(path: &str) -> DeleteRequest<'_> {
    DeleteRequest {
        path: Some(path.into()),
        version: -1,
    }
}

pub fn delete(xid: i32, path: &str) -> Vec<u8> {
    request(xid, Op::Delete, &delete_record(path))
}

pub fn set_record<'a>(path: &'a str, data: &'a [u8], version: i32) -> SetDataRequest<'a> {
    SetDataRequest {
        path: Some(path.into()),
        data: Some(data),
        version,
    }
}

pub fn set(xid: i32, path: &str, data: &[u8]) -> Vec<u8> {
    set_version(xid, path, data, -1)
}

pub fn set_version(xid: i32, path: &str, data: &[u8], version: i32) -> Vec<u8> {
    request(xid, Op::SetData, &set_record(path, data, version))
}

pub fn get(xid: i32, path: &str, watch: bool) -> Vec<u8> {
    let path = Some(path.into());
    request(xid, Op::GetData, &GetDataRequest { path, watch })
}

pub fn exists(xid: i32, path: &str, watch: bool) -> Vec<u8> {
    let path = Some(path.into());
    request(xid, Op::Exists, &ExistsRequest { path, watch })
}

pub fn children(xid: i32, path: &str, watch: bool) -> Vec<u8> {
    let path = Some(path.into());
    request(xid, Op::GetChildren, &GetChildrenRequest { path, watch })
}

pub fn children2(xid: i32, path: &str, watch: bool) -> Vec<u8> {
    let path = Some(path.into());
    request(xid, Op::GetChildren2, &GetChildren2Request { path, watch })
}

pub fn get_acl(xid: i32, path: &str) -> Vec<u8> {
    let path = Some(path.into());
    request(xid, Op::GetAcl, &GetAclRequest { path })
}

pub fn set_acl(xid: i32, path: &str, acl: Vec<Acl<'_>>, version: i32) -> Vec<u8> {
    let record = SetAclRequest {
        path: Some(path.into()),
        acl: Some(acl),
        version,
    };
    request(xid, Op::SetAcl, &record)
}

pub fn sync(xid: i32, path: &str) -> Vec<u8> {
    let path = Some(path.into());
    request(xid, Op::Sync, &SyncRequest { path })
}

pub fn ping(xid: i32) -> Vec<u8> {
    raw(xid, Op::Ping.code(), &[])
}

pub fn keep_alive() -> Vec<u8> {
    ping(XID_PING)
}

pub fn close_session(xid: i32) -> Vec<u8> {
    raw(xid, Op::CloseSession.code(), &[])
}

pub fn who_am_i(xid: i32) -> Vec<u8> {
    raw(xid, Op::WhoAmI.code(), &[])
}

pub fn auth(scheme: &str, credential: &[u8]) -> Vec<u8> {
    let record = AuthPacket {
        kind: 0,
        scheme: Some(scheme.into()),
        auth: Some(credential),
    };
    request(XID_AUTH, Op::Auth, &record)
}

pub fn add_watch(xid: i32, path: &str, mode: i32) -> Vec<u8> {
    let path = Some(path.into());
    request(xid, Op::AddWatch, &AddWatchRequest { path, mode })
}

pub fn check_watches(xid: i32, path: &str, kind: i32) -> Vec<u8> {
    let path = Some(path.into());
    request(xid, Op::CheckWatches, &CheckWatchesRequest { path, kind })
}

pub fn remove_watches(xid: i32, path: &str, kind: i32) -> Vec<u8> {
    let path = Some(path.into());
    request(xid, Op::RemoveWatches, &RemoveWatchesRequest { path, kind })
}

pub fn get_ephemerals(xid: i32, prefix: Option<&str>) -> Vec<u8> {
    let prefix_path = prefix.map(Into::into);
    request(
        xid,
        Op::GetEphemerals,
        &GetEphemeralsRequest { prefix_path },
    )
}

pub fn all_children_number(xid: i32, path: &str) -> Vec<u8> {
    let path = Some(path.into());
    let record = GetAllChildrenNumberRequest { path };
    request(xid, Op::GetAllChildrenNumber, &record)
}

pub fn set_watches_record<'a>(
    seen: i64,
    data: &[&'a str],
    exist: &[&'a str],
    child: &[&'a str],
) -> SetWatches<'a> {
    let list = |paths: &[&'a str]| Some(paths.iter().map(|path| Some((*path).into())).collect());
    SetWatches {
        relative_zxid: seen,
        data_watches: list(data),
        exist_watches: list(exist),
        child_watches: list(child),
    }
}

pub fn set_watches(seen: i64, data: &[&str], exist: &[&str], child: &[&str]) -> Vec<u8> {
    let record = set_watches_record(seen, data, exist, child);
    request(XID_SET_WATCHES, Op::SetWatches, &record)
}

/// A multi (or multiRead) of operations that `build` appends.
pub fn multi(xid: i32, op: Op, build: impl FnOnce(&mut BytesMut)) -> Vec<u8> {
    let mut body = BytesMut::new();
    build(&mut body);
    multi::put_terminator(&mut body);
    raw(xid, op.code(), &body)
}
