//! The cluster: its identity, its members, and how they change.

use bytes::BytesMut;
use quenda_proto::ErrorCode;
use quenda_proto::acl::perms::WRITE;
use quenda_proto::jute::{Encode, Reader, put_buffer};
use quenda_proto::records::{ReconfigRequest, Stat};

use super::{Applied, Transaction, decoded};
use crate::Tree;
use crate::changes::{Change, ChangeKind, Changes};
use crate::command::{ReconfigFacts, Request, Stamp, Switches};
use crate::digest;
use crate::ensemble::Ensemble;
use crate::index::Index;
use crate::node::{NodeId, ROOT};
use crate::session::{self, Cluster};

/// Where the members are to be read.
const CONFIG: &str = "/zookeeper/config";

impl Tree {
    /// Gives the cluster its identity and its first members, unless it has them. A cluster of one that ran
    /// alone so far has an identity, but no members: it keeps the one and gets the others.
    pub(super) fn found(
        &mut self,
        stamp: Stamp,
        cluster: Cluster,
        config: &str,
        changes: &mut Changes,
    ) -> Applied {
        let Ok(ensemble) = Ensemble::parse(config) else {
            return Applied::verdict(0, Err(ErrorCode::BadArguments));
        };
        if self.cluster.is_none() {
            self.take_identity(cluster);
        }
        if self.ensemble.is_none() && !ensemble.is_empty() {
            let version = self.zxids.begin_epoch(stamp.term);
            self.install_config(Some(ensemble), version, stamp.time_ms, changes);
        }
        Applied::verdict(0, Ok(()))
    }

    /// The hash tables get a seed that clients do not know.
    pub(crate) fn take_identity(&mut self, cluster: Cluster) {
        let ids: Vec<NodeId> = self.nodes.ids().filter(|id| *id != ROOT).collect();
        let seed = session::table_seed(&cluster.secret);
        self.acls.reseed(seed);
        self.index = Index::with_capacity(seed, ids.len());
        for id in ids {
            let node = self.nodes.get(id);
            let hash = self.index.hash(node.parent, node.name());
            self.index.insert(hash, id);
        }
        self.cluster = Some(cluster);
    }

    /// Goes on as another cluster with these members. Sessions and their passwords stay.
    pub(super) fn recover(
        &mut self,
        stamp: Stamp,
        id: u64,
        config: &str,
        changes: &mut Changes,
    ) -> Applied {
        let (Some(cluster), Ok(ensemble)) = (&mut self.cluster, Ensemble::parse(config)) else {
            return Applied::verdict(0, Err(ErrorCode::BadArguments));
        };
        cluster.id = id;
        let zxid = self.zxids.leap(stamp.term);
        let ensemble = Some(ensemble).filter(|ensemble| !ensemble.is_empty());
        self.install_config(ensemble, zxid, stamp.time_ms, changes);
        Applied::verdict(zxid, Ok(()))
    }

    /// A reconfig request. The order of the checks is ZooKeeper's; permission comes last but for ids
    /// that no member can have.
    pub(super) fn reconfig_request(
        &mut self,
        tx: &mut Transaction<'_>,
        facts: ReconfigFacts,
        body: &mut Reader<'_>,
        reply: &mut BytesMut,
    ) -> Result<(), ErrorCode> {
        let request: ReconfigRequest = decoded(body)?;
        if !tx.switches.reconfig_enabled {
            return Err(ErrorCode::ReconfigDisabled);
        }
        tx.session?;
        let current = self.ensemble.as_ref().ok_or(ErrorCode::Unimplemented)?;
        if facts.in_progress {
            return Err(ErrorCode::ReconfigInProgress);
        }
        let next = next_ensemble(current, &request, tx.switches)?;
        if !facts.quorum_synced {
            return Err(ErrorCode::NewConfigNoQuorum);
        }
        self.check_permission(tx, self.nodes.get(self.config_node()).acl(), WRITE)?;
        if !next.has_member_ids() {
            return Err(ErrorCode::BadArguments);
        }
        let stat = self.install_config(Some(next), tx.zxid, tx.time_ms, tx.changes);
        let data = self.nodes.get(self.config_node()).data();
        put_buffer(reply, data.unwrap_or_default());
        stat.encode(reply);
        Ok(())
    }

    /// The ensemble that a reconfig request would make of the present one, with the version of the
    /// present one: for the leader, which changes the membership of the log along with it. Sees neither
    /// to the session nor to permissions; [`Tree::apply`] does.
    ///
    /// # Errors
    /// What the client will be told, whatever the leader's facts are.
    pub fn plan_reconfig(&self, request: &Request<'_>) -> Result<Ensemble, ErrorCode> {
        let record: ReconfigRequest = decoded(&mut Reader::new(request.body))?;
        if !request.switches.reconfig_enabled {
            return Err(ErrorCode::ReconfigDisabled);
        }
        let current = self.ensemble.as_ref().ok_or(ErrorCode::Unimplemented)?;
        let next = next_ensemble(current, &record, request.switches)?;
        match next.has_member_ids() {
            true => Ok(next),
            false => Err(ErrorCode::BadArguments),
        }
    }

    /// Whether a reconfig request would be granted in this state, whatever the leader's facts are: before the
    /// leader prepares for it. Sees to everything but the session; [`Tree::apply`] decides.
    pub fn may_reconfigure(&self, request: &Request<'_>) -> bool {
        let acl = self.nodes.get(self.config_node()).acl();
        let permitted = request.switches.skip_acl || self.allows(acl, WRITE, &request.identities);
        permitted && self.plan_reconfig(request).is_ok()
    }

    fn config_node(&self) -> NodeId {
        // Built in; it cannot be deleted, and a checkpoint without it is not loaded.
        self.lookup(CONFIG).expect("the config znode")
    }

    /// Puts a configuration in force and its text into the znode.
    fn install_config(
        &mut self,
        ensemble: Option<Ensemble>,
        version: i64,
        time_ms: i64,
        changes: &mut Changes,
    ) -> Stat {
        let old = self.ensemble.as_ref().map_or(0, digest::of_ensemble);
        let ensemble = ensemble.map(|ensemble| ensemble.with_version(version));
        let new = ensemble.as_ref().map_or(0, digest::of_ensemble);
        self.totals.digest = self.totals.digest.wrapping_sub(old).wrapping_add(new);
        let text = ensemble.as_ref().map(Ensemble::text).unwrap_or_default();
        self.ensemble = ensemble;
        let id = self.config_node();
        self.replace_data(id, CONFIG, Some(text.as_bytes()), |node| {
            let more = node.more_mut();
            more.version = -1;
            more.mzxid = version;
            more.mtime = time_ms;
        });
        changes.push(Change {
            kind: ChangeKind::DataChanged,
            path: CONFIG,
            zxid: version,
            acl: self.nodes.get(id).acl(),
            parent_acl: self.parent_acl(id),
        });
        self.nodes.get(id).stat()
    }
}

/// What a request makes of the members: the checks that need nothing but both.
fn next_ensemble(
    current: &Ensemble,
    request: &ReconfigRequest<'_>,
    switches: Switches,
) -> Result<Ensemble, ErrorCode> {
    if request.cur_config_id != -1 && request.cur_config_id != current.version {
        return Err(ErrorCode::BadVersion);
    }
    let next = current.changed(request).map_err(|error| error.code())?;
    let fewest = if switches.standalone_enabled { 2 } else { 1 };
    if next.voters().count() >= fewest {
        Ok(next)
    } else if request.new_members.is_some() && next.observers().next().is_some() {
        // ZooKeeper fails to read such a membership as a whole.
        Err(ErrorCode::MarshallingError)
    } else {
        Err(ErrorCode::BadArguments)
    }
}
