//! The create family.

use std::borrow::Cow;

use bytes::BytesMut;
use quenda_proto::acl::perms::CREATE;
use quenda_proto::jute::{Encode, Reader, put_string};
use quenda_proto::mode::{CreateMode, TTL_MAX_MS};
use quenda_proto::path::validate;
use quenda_proto::records::{Acl, CreateRequest, CreateTtlRequest, Stat};
use quenda_proto::{ErrorCode, Op};

use super::{Transaction, decoded, given, split};
use crate::Tree;
use crate::acl::AclId;
use crate::changes::{Change, ChangeKind};
use crate::digest;
use crate::node::{Node, NodeId, Owner};

/// What keeps a znode that is about to be created alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Persistent,
    Ephemeral,
    Container,
    Ttl(i64),
}

/// A create, whatever operation asked for it.
#[derive(Debug)]
pub(super) struct NewNode<'a> {
    pub(super) path: Option<&'a str>,
    pub(super) data: Option<&'a [u8]>,
    pub(super) acl: Option<&'a [Acl<'a>]>,
    pub(super) kind: Kind,
    pub(super) sequential: bool,
}

/// What a create answers.
#[derive(Debug)]
pub(super) struct Created<'a> {
    pub(super) path: Cow<'a, str>,
    pub(super) stat: Stat,
}

impl Tree {
    /// create, create2 and createContainer alone: the operation decides the kind, the flags the suffix.
    pub(super) fn create_request(
        &mut self,
        tx: &mut Transaction<'_>,
        op: Op,
        body: &mut Reader<'_>,
        reply: &mut BytesMut,
    ) -> Result<(), ErrorCode> {
        let request: CreateRequest = decoded(body)?;
        let mode = CreateMode::from_flags(request.flags);
        if mode.is_some_and(CreateMode::is_ttl) {
            tx.demand_ttl()?;
        }
        let mode = mode
            .filter(|mode| !mode.is_ttl())
            .ok_or(ErrorCode::BadArguments)?;
        let kind = if op == Op::CreateContainer {
            Kind::Container
        } else if mode.is_ephemeral() {
            Kind::Ephemeral
        } else {
            Kind::Persistent
        };
        let created = self.create(tx, &NewNode::new(&request, kind, mode))?;
        put_string(reply, &created.path);
        if op != Op::Create {
            created.stat.encode(reply);
        }
        Ok(())
    }

    /// createTTL alone.
    pub(super) fn create_ttl_request(
        &mut self,
        tx: &mut Transaction<'_>,
        body: &mut Reader<'_>,
        reply: &mut BytesMut,
    ) -> Result<(), ErrorCode> {
        let request: CreateTtlRequest = decoded(body)?;
        let mode = CreateMode::from_flags(request.flags)
            .filter(|mode| mode.is_ttl())
            .ok_or(ErrorCode::BadArguments)?;
        tx.demand_ttl()?;
        let kind = ttl_kind(request.ttl)?;
        let created = self.create(tx, &NewNode::with_ttl(&request, kind, mode))?;
        put_string(reply, &created.path);
        created.stat.encode(reply);
        Ok(())
    }

    pub(super) fn create<'a>(
        &mut self,
        tx: &mut Transaction<'_>,
        new: &NewNode<'a>,
    ) -> Result<Created<'a>, ErrorCode> {
        let session = tx.session?;
        if tx.local && new.kind == Kind::Ephemeral {
            return Err(ErrorCode::EphemeralOnLocalSession);
        }
        let given_path = *given(&new.path)?;
        let (parent_path, _) = split(given_path)?;
        let acl = tx.resolve_acl(&mut self.acls, new.acl)?;
        let parent = self.lookup(parent_path).ok_or(ErrorCode::NoNode)?;
        self.check_permission(tx, self.nodes.get(parent).acl(), CREATE)?;
        let path = match new.sequential {
            true => Cow::Owned(numbered(given_path, self.nodes.get(parent).creates())),
            false => Cow::Borrowed(given_path),
        };
        validate(&path).map_err(|_| ErrorCode::BadArguments)?;
        if self.child_at(parent, &path).is_some() {
            return Err(ErrorCode::NodeExists);
        }
        if self.nodes.get(parent).is_ephemeral() {
            return Err(ErrorCode::NoChildrenForEphemerals);
        }
        let bytes = new.data.map_or(0, <[u8]>::len) as i64;
        self.check_quota(tx, &path, 1, bytes)?;
        let owner = new.kind.owner(session);
        self.check_room(owner, path.len())?;

        let id = self.insert_node(tx, parent, &path, new.data, acl, owner);
        let stat = self.nodes.get(id).stat();
        self.quota_created(tx, parent_path, &path, id);
        self.charge_quota(tx, &path, 1, bytes);
        Ok(Created { path, stat })
    }

    fn insert_node(
        &mut self,
        tx: &mut Transaction<'_>,
        parent: NodeId,
        path: &str,
        data: Option<&[u8]>,
        acl: AclId,
        owner: Owner,
    ) -> NodeId {
        let name = path.rsplit('/').next().unwrap_or_default();
        let mut node = Node::new(name, data, acl);
        (node.czxid, node.ctime) = (tx.zxid, tx.time_ms);
        if owner != Owner::Nobody {
            node.more_mut().owner = owner.raw();
        }
        node.content = digest::content(path, data, self.acls.hash(acl));
        let id = self.attach(parent, node, path.len());
        let zxid = tx.zxid;
        let parent_pzxid = self.alter(parent, |parent| {
            let more = parent.more_mut();
            more.creates = more.creates.wrapping_add(1);
            std::mem::replace(&mut more.pzxid, zxid)
        });
        if let Some(undo) = &mut tx.undo {
            undo.created(id, parent, parent_pzxid, path.len());
        }
        tx.changed(Change {
            kind: ChangeKind::Created,
            path,
            zxid,
            acl,
            parent_acl: self.nodes.get(parent).acl(),
        });
        id
    }
}

impl<'a> NewNode<'a> {
    pub(super) fn new(request: &'a CreateRequest<'a>, kind: Kind, mode: CreateMode) -> NewNode<'a> {
        NewNode {
            path: request.path.as_deref(),
            data: request.data,
            acl: request.acl.as_deref(),
            kind,
            sequential: mode.is_sequential(),
        }
    }

    pub(super) fn with_ttl(
        request: &'a CreateTtlRequest<'a>,
        kind: Kind,
        mode: CreateMode,
    ) -> NewNode<'a> {
        NewNode {
            path: request.path.as_deref(),
            data: request.data,
            acl: request.acl.as_deref(),
            kind,
            sequential: mode.is_sequential(),
        }
    }
}

impl Kind {
    fn owner(self, session: i64) -> Owner {
        match self {
            Kind::Persistent => Owner::Nobody,
            Kind::Ephemeral => Owner::Session(session),
            Kind::Container => Owner::Container,
            Kind::Ttl(ms) => Owner::Ttl(ms),
        }
    }
}

/// A TTL znode, if the time is in range.
pub(super) fn ttl_kind(ttl_ms: i64) -> Result<Kind, ErrorCode> {
    match ttl_ms {
        1..=TTL_MAX_MS => Ok(Kind::Ttl(ttl_ms)),
        _ => Err(ErrorCode::BadArguments),
    }
}

/// The path with the sequence suffix: ten characters, the sign included.
fn numbered(path: &str, number: i32) -> String {
    format!("{path}{number:010}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes() {
        for (number, path) in [
            (5, "/a-0000000005"),
            (-5, "/a--000000005"),
            (i32::MAX, "/a-2147483647"),
            (i32::MIN, "/a--2147483648"),
        ] {
            assert_eq!(numbered("/a-", number), path);
        }
    }

    #[test]
    fn times_to_live() {
        for bad in [0, -1, i64::MIN, 1 << 40, i64::MAX] {
            assert_eq!(ttl_kind(bad), Err(ErrorCode::BadArguments), "{bad}");
        }
        for good in [1, (1 << 40) - 1] {
            assert_eq!(ttl_kind(good), Ok(Kind::Ttl(good)));
        }
    }
}
