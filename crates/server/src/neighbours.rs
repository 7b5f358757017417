//! The other members as the core thread reaches them: who they are follows the replicated configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use quenda_node::PeerState;
use quenda_storage::Store;
use quenda_tree::Tree;
use quenda_tree::ensemble::{Ensemble, Server};
use tracing::warn;

use crate::config::{ServerConfig, quorum_listen};
use crate::image_store::ImageStore;
use crate::inbox::PeerNews;
use crate::member_files::MemberFiles;
use crate::peers::{Delivery, Facts, Identity, Own, PeerEvents, Peers};
use crate::shared::Shared;

/// Host and port of one way to a member.
type Address = (String, u16);

/// The other members of the ensemble; nobody for a cluster of one without peers.
pub struct Neighbours {
    links: Option<Links>,
}

struct Links {
    member: u64,
    peers: Arc<Peers>,
    images: Arc<ImageStore>,
    identity: Arc<Identity>,
    /// What the configuration file says of the members.
    configured: Vec<Server>,
    /// Where it says that this member listens for the others.
    listen: Vec<Own>,
    /// Whether the addresses of the file go before the replicated ones: where nobody may change those.
    file_first: bool,
    /// Cluster and configuration version that are in effect.
    followed: (Option<u64>, Option<i64>),
    /// The configuration files, if they follow the replicated configuration.
    files: Option<MemberFiles>,
    /// The quorum ports that the replicated configuration gave this member last.
    own_ports: Option<BTreeSet<u16>>,
}

impl Neighbours {
    /// Nobody.
    pub fn none() -> Neighbours {
        Neighbours { links: None }
    }

    /// Those that `peers` connects with; the configuration file names them.
    pub fn new(
        config: &ServerConfig,
        peers: Arc<Peers>,
        images: Arc<ImageStore>,
        identity: Arc<Identity>,
        files: Option<MemberFiles>,
    ) -> Neighbours {
        let links = Links {
            member: config.my_id,
            peers,
            images,
            identity,
            configured: config.ensemble.clone(),
            listen: config.quorum_listen.clone(),
            file_first: !config.reconfig_enabled,
            followed: (None, None),
            files,
            own_ports: None,
        };
        links.dial(None);
        Neighbours { links: Some(links) }
    }

    /// Follows the cluster's identity and configuration, which are part of the tree.
    pub fn follow(&mut self, tree: &Tree) {
        let Some(links) = &mut self.links else {
            return;
        };
        let ensemble = tree.ensemble();
        let now = (tree.cluster(), ensemble.map(|ensemble| ensemble.version));
        if now == links.followed {
            return;
        }
        let before = std::mem::replace(&mut links.followed, now);
        if let Some(ensemble) = ensemble
            && before.1 != now.1
        {
            links.follow_members(ensemble, before.1.is_none());
        }
        if let Some(cluster) = tree.cluster() {
            links.identity.set(Facts {
                cluster,
                state: PeerState::Member,
            });
        }
        links.dial(ensemble);
        links.follow_own_ports(ensemble);
    }

    /// Tells the others what this member is, as long as it belongs to no cluster.
    pub fn set_state(&self, state: PeerState) {
        if let Some(links) = &self.links {
            links.identity.set(Facts { cluster: 0, state });
        }
    }

    /// The store is open: its images can be fetched, and others received.
    pub fn open_images(&self, store: &Arc<dyn Store>) {
        if let Some(links) = &self.links {
            links.images.open(Arc::clone(store));
        }
    }

    /// The connections to the others, to be closed at the end; `None` where there are no others.
    pub fn peers(&self) -> Option<Arc<Peers>> {
        self.links.as_ref().map(|links| Arc::clone(&links.peers))
    }

    /// Queues a frame for a member; false when it was dropped.
    pub fn send(&self, to: u64, frame: Bytes) -> bool {
        self.links
            .as_ref()
            .is_some_and(|links| links.peers.send(to, frame))
    }

    /// Frames that wait for the connection to each member.
    pub fn queued(&self) -> Vec<(u64, usize)> {
        let queued = self.links.as_ref().map(|links| links.peers.queued());
        queued.unwrap_or_default()
    }

    /// Fetches an image from a member; what comes of it is told to the inbox.
    pub fn fetch(&self, from: u64, index: u64, manifest: Bytes) {
        if let Some(links) = &self.links {
            links.peers.fetch(from, index, manifest);
        }
    }

    /// The members that are connected, with what they told.
    pub fn seen(&self) -> Vec<(u64, PeerState)> {
        let seen = self.links.as_ref().map(|links| links.peers.seen());
        let seen = seen.unwrap_or_default().into_iter();
        seen.map(|(peer, state, _)| (peer, state)).collect()
    }
}

impl Links {
    /// The files are for the next start. At the first look it shows whether they were behind.
    fn follow_members(&self, ensemble: &Ensemble, is_first: bool) {
        let parts = |servers: &mut dyn Iterator<Item = &Server>| -> BTreeMap<u64, bool> {
            servers.map(|server| (server.id, server.observer)).collect()
        };
        let configured = parts(&mut self.configured.iter());
        let members = parts(&mut ensemble.servers());
        if is_first && configured != members {
            warn!(
                file = ?configured.keys(), ensemble = ?members.keys(),
                "the configuration file names other members, or other roles, than the ensemble has: the ensemble's count"
            );
        }
        if let Some(files) = &self.files {
            files.follow(self.member, ensemble);
        }
    }

    /// Dials everybody in the replicated configuration, or in the file while there is none.
    fn dial(&self, ensemble: Option<&Ensemble>) {
        let mut members: BTreeMap<u64, Vec<Address>> = BTreeMap::new();
        match ensemble.filter(|ensemble| !ensemble.is_empty()) {
            Some(ensemble) => {
                members.extend(
                    ensemble
                        .servers()
                        .map(|server| (server.id, addresses(server))),
                );
            }
            None => {
                let configured = self.configured.iter();
                members.extend(configured.map(|server| (server.id, addresses(server))));
            }
        }
        if self.file_first {
            for server in &self.configured {
                if let Some(known) = members.get_mut(&server.id) {
                    *known = addresses(server);
                }
            }
        }
        members.remove(&self.member);
        self.peers.set_members(members.into_iter().collect());
    }

    /// Listens on the quorum ports that the replicated configuration gives this member. Those of the file stay open
    /// until a later configuration gives others: a translated address may lead there.
    fn follow_own_ports(&mut self, ensemble: Option<&Ensemble>) {
        let own = ensemble.and_then(|ensemble| ensemble.server(self.member));
        let Some(own) = own.filter(|_| !self.file_first) else {
            return;
        };
        let on_all = self.listen.iter().any(|(host, _)| host.is_none());
        let mut wanted = quorum_listen(own, on_all);
        let ports: BTreeSet<u16> = wanted.iter().map(|(_, port)| *port).collect();
        let before = self.own_ports.replace(ports);
        if before == self.own_ports {
            return;
        }
        if before.is_none() {
            wanted.extend(self.listen.iter().cloned());
        }
        self.peers.move_to(wanted);
    }
}

fn addresses(server: &Server) -> Vec<Address> {
    let addresses = server.addresses.iter();
    addresses
        .map(|address| (address.host.clone(), address.quorum_port))
        .collect()
}

/// What the transport tells goes to the inbox.
pub struct InboxEvents(pub Arc<Shared>);

impl PeerEvents for InboxEvents {
    fn deliver(&self, delivery: Delivery) {
        self.0.inbox.peer(PeerNews::Frames(delivery));
    }

    fn up(&self, peer: u64, state: PeerState) {
        self.0.inbox.peer(PeerNews::Up(peer, state));
    }

    fn lost(&self, peer: u64) {
        self.0.inbox.peer(PeerNews::Lost(peer));
    }

    fn unreachable(&self, peer: u64) {
        self.0.inbox.peer(PeerNews::Unreachable(peer));
    }

    fn fetched(&self, index: u64, complete: bool) {
        self.0.inbox.fetched(index, complete);
    }
}
