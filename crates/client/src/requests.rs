//! One typed call for each operation of the protocol.

use bytes::{Bytes, BytesMut};
use quenda_proto::event::WatcherType;
use quenda_proto::mode::CreateMode;
use quenda_proto::records::{
    Acl, AddWatchRequest, CheckWatchesRequest, Create2Response, CreateRequest, CreateResponse,
    CreateTtlRequest, DeleteRequest, ExistsRequest, ExistsResponse, GetAclRequest, GetAclResponse,
    GetAllChildrenNumberRequest, GetAllChildrenNumberResponse, GetChildren2Request,
    GetChildren2Response, GetDataRequest, GetDataResponse, GetEphemeralsRequest,
    GetEphemeralsResponse, Id, ReconfigRequest, RemoveWatchesRequest, SetAclRequest,
    SetAclResponse, SetDataRequest, SetDataResponse, SetWatches2, Stat, SyncRequest,
    WhoAmIResponse,
};
use quenda_proto::{Encode, ErrorCode, Op, acl};

use crate::roamer::auth_record;
use crate::{Client, Error, Reply};

/// The znode of the membership.
const CONFIG_NODE: &str = "/zookeeper/config";

/// The list that lets everybody do everything.
pub fn open_acl() -> Vec<Acl<'static>> {
    vec![Acl {
        perms: acl::perms::ALL,
        id: Id {
            scheme: Some(acl::WORLD.into()),
            id: Some(acl::ANYONE.into()),
        },
    }]
}

fn owned(names: Option<Vec<Option<std::borrow::Cow<'_, str>>>>) -> Vec<String> {
    names
        .unwrap_or_default()
        .into_iter()
        .map(|name| name.unwrap_or_default().into_owned())
        .collect()
}

impl Client {
    /// Creates a znode and returns its path, with the sequence suffix if the mode asks for one.
    pub async fn create(
        &self,
        path: &str,
        data: Option<&[u8]>,
        acl: &[Acl<'_>],
        mode: CreateMode,
    ) -> Result<String, Error> {
        let path = self.shared.absolute(path);
        let request = create_request(&path, data, acl, mode);
        let reply = self.submit(Op::Create, &request).await?;
        let response: CreateResponse<'_> = reply.record()?;
        let path = response.path.unwrap_or_default().into_owned();
        Ok(self.shared.relative(path))
    }

    /// As [`Client::create`], with the metadata of the new znode.
    pub async fn create2(
        &self,
        path: &str,
        data: Option<&[u8]>,
        acl: &[Acl<'_>],
        mode: CreateMode,
    ) -> Result<(String, Stat), Error> {
        let op = match mode {
            CreateMode::Container => Op::CreateContainer,
            _ => Op::Create2,
        };
        let path = self.shared.absolute(path);
        let request = create_request(&path, data, acl, mode);
        self.created(&self.submit(op, &request).await?)
    }

    /// Creates a znode that is removed when it has been unchanged and childless for `ttl_ms`.
    pub async fn create_ttl(
        &self,
        path: &str,
        data: Option<&[u8]>,
        acl: &[Acl<'_>],
        mode: CreateMode,
        ttl_ms: i64,
    ) -> Result<(String, Stat), Error> {
        let request = CreateTtlRequest {
            path: Some(self.shared.absolute(path)),
            data,
            acl: Some(acl.to_vec()),
            flags: mode as i32,
            ttl: ttl_ms,
        };
        self.created(&self.submit(Op::CreateTtl, &request).await?)
    }

    /// Deletes a znode; version −1 means any.
    pub async fn delete(&self, path: &str, version: i32) -> Result<(), Error> {
        let request = DeleteRequest {
            path: Some(self.shared.absolute(path)),
            version,
        };
        self.submit(Op::Delete, &request).await.map(|_| ())
    }

    /// Metadata of a znode, `None` when it is absent; the watch is left in both cases.
    pub async fn exists(&self, path: &str, watch: bool) -> Result<Option<Stat>, Error> {
        let request = ExistsRequest {
            path: Some(self.shared.absolute(path)),
            watch,
        };
        match self.submit(Op::Exists, &request).await {
            Ok(reply) => Ok(Some(reply.record::<ExistsResponse>()?.stat)),
            Err(error) if error.code() == Some(ErrorCode::NoNode.code()) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Data (`None` is null, which is not the same as empty) and metadata.
    pub async fn get_data(&self, path: &str, watch: bool) -> Result<(Option<Bytes>, Stat), Error> {
        let request = GetDataRequest {
            path: Some(self.shared.absolute(path)),
            watch,
        };
        let reply = self.submit(Op::GetData, &request).await?;
        let response: GetDataResponse<'_> = reply.record()?;
        let data = response.data.map(|data| reply.body.slice_ref(data));
        Ok((data, response.stat))
    }

    /// The membership of the ensemble as text, and its metadata. It lies outside any root.
    pub async fn get_config(&self, watch: bool) -> Result<(Option<Bytes>, Stat), Error> {
        let request = GetDataRequest {
            path: Some(CONFIG_NODE.into()),
            watch,
        };
        let reply = self.submit(Op::GetData, &request).await?;
        let response: GetDataResponse<'_> = reply.record()?;
        let data = response.data.map(|data| reply.body.slice_ref(data));
        Ok((data, response.stat))
    }

    /// Changes the membership of the ensemble: either by servers that join and ids that leave, or by all members anew,
    /// with commas between; `version` is the expected one of the configuration, −1 means any. What comes back is the new
    /// configuration.
    pub async fn reconfig(
        &self,
        joining: Option<&str>,
        leaving: Option<&str>,
        members: Option<&str>,
        version: i64,
    ) -> Result<(Option<Bytes>, Stat), Error> {
        let request = ReconfigRequest {
            joining_servers: joining.map(Into::into),
            leaving_servers: leaving.map(Into::into),
            new_members: members.map(Into::into),
            cur_config_id: version,
        };
        let reply = self.submit(Op::Reconfig, &request).await?;
        let response: GetDataResponse<'_> = reply.record()?;
        let data = response.data.map(|data| reply.body.slice_ref(data));
        Ok((data, response.stat))
    }

    /// Replaces the data; version −1 means any.
    pub async fn set_data(
        &self,
        path: &str,
        data: Option<&[u8]>,
        version: i32,
    ) -> Result<Stat, Error> {
        let request = SetDataRequest {
            path: Some(self.shared.absolute(path)),
            data,
            version,
        };
        let reply = self.submit(Op::SetData, &request).await?;
        Ok(reply.record::<SetDataResponse>()?.stat)
    }

    /// Names of the children, in no particular order, and the metadata of the parent.
    pub async fn get_children(
        &self,
        path: &str,
        watch: bool,
    ) -> Result<(Vec<String>, Stat), Error> {
        let request = GetChildren2Request {
            path: Some(self.shared.absolute(path)),
            watch,
        };
        let reply = self.submit(Op::GetChildren2, &request).await?;
        let response: GetChildren2Response<'_> = reply.record()?;
        Ok((owned(response.children), response.stat))
    }

    /// As [`Client::get_children`] without a watch, but on its way when this returns, whether or not the future is awaited:
    /// for many at a time.
    pub fn get_children_ahead(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<(Vec<String>, Stat), Error>> + Send + use<> {
        let request = GetChildren2Request {
            path: Some(self.shared.absolute(path)),
            watch: false,
        };
        let reply = self.submit(Op::GetChildren2, &request);
        async move {
            let reply = reply.await?;
            let response: GetChildren2Response<'_> = reply.record()?;
            Ok((owned(response.children), response.stat))
        }
    }

    /// The same for [`Client::get_data`].
    pub fn get_data_ahead(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<(Option<Bytes>, Stat), Error>> + Send + use<> {
        let request = GetDataRequest {
            path: Some(self.shared.absolute(path)),
            watch: false,
        };
        let reply = self.submit(Op::GetData, &request);
        async move {
            let reply = reply.await?;
            let response: GetDataResponse<'_> = reply.record()?;
            let data = response.data.map(|data| reply.body.slice_ref(data));
            Ok((data, response.stat))
        }
    }

    /// Number of all descendants.
    pub async fn count_descendants(&self, path: &str) -> Result<i32, Error> {
        let request = GetAllChildrenNumberRequest {
            path: Some(self.shared.absolute(path)),
        };
        let reply = self.submit(Op::GetAllChildrenNumber, &request).await?;
        Ok(reply.record::<GetAllChildrenNumberResponse>()?.total_number)
    }

    /// Paths of this session's ephemeral znodes that begin with `prefix`.
    pub async fn get_ephemerals(&self, prefix: &str) -> Result<Vec<String>, Error> {
        let request = GetEphemeralsRequest {
            prefix_path: Some(self.shared.absolute(prefix)),
        };
        let reply = self.submit(Op::GetEphemerals, &request).await?;
        let paths = owned(reply.record::<GetEphemeralsResponse<'_>>()?.ephemerals);
        let paths = paths.into_iter().map(|path| self.shared.relative(path));
        Ok(paths.collect())
    }

    /// The access control list as (permissions, scheme, id), and the metadata.
    pub async fn get_acl(&self, path: &str) -> Result<(Vec<(i32, String, String)>, Stat), Error> {
        let request = GetAclRequest {
            path: Some(self.shared.absolute(path)),
        };
        let reply = self.submit(Op::GetAcl, &request).await?;
        let response: GetAclResponse<'_> = reply.record()?;
        let entries = response.acl.unwrap_or_default().into_iter().map(|entry| {
            let scheme = entry.id.scheme.unwrap_or_default().into_owned();
            let id = entry.id.id.unwrap_or_default().into_owned();
            (entry.perms, scheme, id)
        });
        Ok((entries.collect(), response.stat))
    }

    /// Replaces the access control list; `version` is compared with the ACL version, −1 means any.
    pub async fn set_acl(&self, path: &str, acl: &[Acl<'_>], version: i32) -> Result<Stat, Error> {
        let request = SetAclRequest {
            path: Some(self.shared.absolute(path)),
            acl: Some(acl.to_vec()),
            version,
        };
        let reply = self.submit(Op::SetAcl, &request).await?;
        Ok(reply.record::<SetAclResponse>()?.stat)
    }

    /// A barrier: reads behind it see at least what was committed when it was served.
    pub async fn sync(&self, path: &str) -> Result<(), Error> {
        let request = SyncRequest {
            path: Some(self.shared.absolute(path)),
        };
        self.submit(Op::Sync, &request).await.map(|_| ())
    }

    /// Leaves a persistent watch, for the znode alone or for everything below it too.
    pub async fn add_watch(&self, path: &str, recursive: bool) -> Result<(), Error> {
        let request = AddWatchRequest {
            path: Some(self.shared.absolute(path)),
            mode: i32::from(recursive),
        };
        self.submit(Op::AddWatch, &request).await.map(|_| ())
    }

    /// Whether this connection has a watch of that kind (numbers of the protocol) on the path.
    pub async fn has_watch(&self, path: &str, kind: i32) -> Result<bool, Error> {
        let request = CheckWatchesRequest {
            path: Some(self.shared.absolute(path)),
            kind,
        };
        match self.submit(Op::CheckWatches, &request).await {
            Ok(_) => Ok(true),
            Err(error) if error.code() == Some(ErrorCode::NoWatcher.code()) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Removes the watches of that kind (numbers of the protocol) on the path.
    pub async fn remove_watches(&self, path: &str, kind: i32) -> Result<(), Error> {
        let request = RemoveWatchesRequest {
            path: Some(self.shared.absolute(path)),
            kind,
        };
        self.submit(Op::RemoveWatches, &request).await.map(|_| ())
    }

    /// Removes the watches of a session made by [`Client::open`]. [`SessionEvent::Removed`](crate::SessionEvent::Removed)
    /// tells which they were. With `local` they are forgotten even if the server cannot be told.
    ///
    /// # Errors
    /// The server's code NoWatcher if this session has left none of them.
    pub async fn forget_watches(
        &self,
        path: &str,
        kind: WatcherType,
        local: bool,
    ) -> Result<(), Error> {
        let path = self.shared.absolute(path);
        let watches = self.shared.watches.as_ref();
        if !watches.is_some_and(|watches| watches.lock().holds(&path, kind)) {
            return Err(Error::Server {
                op: Op::RemoveWatches,
                code: ErrorCode::NoWatcher.code(),
            });
        }
        let request = RemoveWatchesRequest {
            path: Some(path),
            kind: kind.code(),
        };
        let mut record = BytesMut::new();
        request.encode(&mut record);
        let reply = self.hand_over(Op::RemoveWatches, record.freeze(), local);
        reply.await.map(|_| ())
    }

    /// Replays watches after a resume. The paths are those of the server.
    pub async fn set_watches(&self, watches: &SetWatches2<'_>) -> Result<(), Error> {
        self.submit(Op::SetWatches2, watches).await.map(|_| ())
    }

    /// Proves an identity. A refusal also closes the connection.
    pub async fn add_auth(&self, scheme: &str, auth: &[u8]) -> Result<(), Error> {
        let record = auth_record(scheme, auth);
        self.submit_raw(Op::Auth, record).await.map(|_| ())
    }

    /// The identities of this connection as (scheme, user).
    pub async fn who_am_i(&self) -> Result<Vec<(String, String)>, Error> {
        let reply = self.submit_raw(Op::WhoAmI, Bytes::new()).await?;
        let response: WhoAmIResponse<'_> = reply.record()?;
        let identities = response.client_info.unwrap_or_default().into_iter();
        Ok(identities
            .map(|info| {
                (
                    info.auth_scheme.unwrap_or_default().into_owned(),
                    info.user.unwrap_or_default().into_owned(),
                )
            })
            .collect())
    }

    fn created(&self, reply: &Reply) -> Result<(String, Stat), Error> {
        let response: Create2Response<'_> = reply.record()?;
        let path = response.path.unwrap_or_default().into_owned();
        Ok((self.shared.relative(path), response.stat))
    }
}

fn create_request<'a>(
    path: &'a str,
    data: Option<&'a [u8]>,
    acl: &[Acl<'a>],
    mode: CreateMode,
) -> CreateRequest<'a> {
    CreateRequest {
        path: Some(path.into()),
        data,
        acl: Some(acl.to_vec()),
        flags: mode as i32,
    }
}
