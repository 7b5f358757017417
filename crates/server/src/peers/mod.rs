//! The transport between members.
//!
//! Each member dials every other one and sends its frames on the connection it dialed ([`dialer`]); what it
//! accepts ([`acceptor`]) brings the other's. An accepted connection also carries answers to a member that is
//! not dialed. Both sides say who they are first ([`handshake`]); after that a connection is served by
//! [`link`], and has its place in the [`roster`]: the newest of each peer and direction counts. Images go over
//! connections of their own ([`image_fetch`], [`image_server`]), so that they delay nothing. All of them are over TLS
//! where the settings say so ([`secure`]); behind it nothing is different.
//!
//! Nothing here makes the member wait: what cannot be sent is dropped, and the member is told.

mod acceptor;
mod complaints;
mod context;
mod delivery;
mod dialer;
mod flow;
mod frame;
mod handshake;
mod identity;
mod image_fetch;
mod image_server;
mod image_wire;
mod images;
mod link;
mod listen;
mod listening;
mod outbox;
mod reader;
mod resolve;
mod roster;
mod secure;
mod socket;
#[cfg(test)]
mod tests;
mod wire;
mod writer;

use std::collections::HashMap;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use quenda_node::PeerState;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{error, info, warn};

pub use delivery::{Delivery, PeerEvents};
pub use flow::LinkFigures;
pub use identity::{Facts, Identity, servers_hash};
pub use images::{ImageError, ImageSink, Images};
pub use listen::{Own, listen};
pub use resolve::{Resolve, SystemResolver};

use crate::config::LinkSettings;
use crate::limits::{PEER_FRAME_MAX, PEER_STOP_PATIENCE};
use crate::tls::Tls;
use complaints::About as Subject;
use context::Context;
use dialer::Dialer;
use listening::Listening;

/// What the transport is made of.
pub struct Setup {
    /// Who this member is.
    pub identity: Arc<Identity>,
    /// The quorum port, see [`listen`].
    pub listeners: Vec<TcpListener>,
    /// Who is told what happens.
    pub events: Arc<dyn PeerEvents>,
    /// The store's images.
    pub images: Arc<dyn Images>,
    /// Who knows the addresses of names.
    pub resolver: Arc<dyn Resolve>,
    /// Times and bounds.
    pub links: LinkSettings,
    /// TLS between members, if there is any.
    pub tls: Option<Arc<Tls>>,
}

/// The connections to all other members.
pub struct Peers {
    context: Arc<Context>,
    runtime: Handle,
    members: Mutex<HashMap<u64, Dialed>>,
    listening: Arc<Listening>,
    fetching: Mutex<CancellationToken>,
}

/// A member that is dialed.
struct Dialed {
    names: Vec<(String, u16)>,
    cancel: CancellationToken,
}

impl Peers {
    /// Starts to accept connections. Nobody is dialed before [`Peers::set_members`].
    ///
    /// # Errors
    /// The listeners cannot be used.
    pub fn start(setup: Setup, runtime: &Handle) -> io::Result<Peers> {
        let context = Context {
            identity: setup.identity,
            events: setup.events,
            images: setup.images,
            resolver: setup.resolver,
            tls: setup.tls,
            names: Mutex::default(),
            roster: roster::Roster::default(),
            complaints: complaints::Complaints::default(),
            image_turn: image_server::Turn::new(setup.links.image_feeds),
            links: setup.links,
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            stop: CancellationToken::new(),
        };
        let peers = Peers {
            context: Arc::new(context),
            runtime: runtime.clone(),
            members: Mutex::default(),
            listening: Arc::default(),
            fetching: Mutex::default(),
        };
        let _runtime = runtime.enter();
        peers.listening.add(setup.listeners, &peers.context)?;
        Ok(peers)
    }

    /// Accepts connections on these ports from now on, and on no others: those that are not open yet are opened, and
    /// only when that was possible the others are closed. Connections that are open stay.
    pub fn move_to(&self, wanted: Vec<Own>) {
        let token = self.listening.begin_move(&self.context);
        let (listening, context) = (Arc::clone(&self.listening), Arc::clone(&self.context));
        let moving = async move { listening.move_to(wanted, &context, token).await };
        self.context.tasks.spawn_on(moving, &self.runtime);
    }

    /// Dials these members from now on, by id, under these names and quorum ports; this member itself is left
    /// out. Connections that we dialed to others are closed; a member whose names are others is dialed anew.
    pub fn set_members(&self, members: Vec<(u64, Vec<(String, u16)>)>) {
        let wanted: HashMap<_, _> = members
            .into_iter()
            .filter(|(id, _)| *id != self.context.identity.id())
            .collect();
        self.context.names.lock().clone_from(&wanted);
        let mut dialed = self.members.lock();
        dialed.retain(|id, known| {
            let stays = wanted.get(id) == Some(&known.names);
            if !stays {
                known.cancel.cancel();
            }
            stays
        });
        for (id, names) in wanted {
            dialed.entry(id).or_insert_with(|| self.dial(id, names));
        }
    }

    fn dial(&self, id: u64, names: Vec<(String, u16)>) -> Dialed {
        let cancel = self.context.stop.child_token();
        let dialing = Dialer::new(id, names.clone()).run(Arc::clone(&self.context), cancel.clone());
        self.context.tasks.spawn_on(dialing, &self.runtime);
        Dialed { names, cancel }
    }

    /// Frames that wait for the connection to each peer.
    pub fn queued(&self) -> Vec<(u64, usize)> {
        self.context.roster.queued()
    }

    /// What passes between this member and each peer that is connected.
    pub fn figures(&self) -> Vec<LinkFigures> {
        self.context.roster.figures()
    }

    /// Counts anew what passes.
    pub fn reset_figures(&self) {
        self.context.roster.reset_figures();
    }

    /// Queues a frame for a peer, and never waits. `false` when it was dropped: the peer is not connected, or
    /// too much waits for it already.
    pub fn send(&self, to: u64, frame: Bytes) -> bool {
        if frame.len() > PEER_FRAME_MAX {
            error!(
                peer = to,
                bytes = frame.len(),
                "a frame that is too long was not sent"
            );
            return false;
        }
        self.context.roster.send(to, frame)
    }

    /// Fetches the image at `index`, which `manifest` describes, from a member that was given to
    /// [`Peers::set_members`]. [`PeerEvents::fetched`] tells what came of it, unless a newer fetch takes its
    /// place.
    pub fn fetch(&self, from: u64, index: u64, manifest: Bytes) {
        let token = self.context.closing.child_token();
        let before = std::mem::replace(&mut *self.fetching.lock(), token.clone());
        before.cancel();
        let names = self
            .members
            .lock()
            .get(&from)
            .map(|known| known.names.clone());
        let dialer = Dialer::new(from, names.unwrap_or_default());
        let context = Arc::clone(&self.context);
        let fetching = async move {
            let complaints = &context.complaints;
            let subject = Subject::Image(from);
            let beginning = "this member is far behind: it fetches a snapshot";
            if complaints.is_news(subject, beginning) {
                info!(peer = from, index, "{beginning}");
            }
            let fetched = tokio::select! {
                fetched = image_fetch::fetch(index, manifest, dialer, &context) => fetched,
                () = token.cancelled() => return,
            };
            match &fetched {
                Ok(()) => {
                    info!(peer = from, index, "the snapshot is here");
                    complaints.settle(subject);
                }
                Err(reason) => {
                    if complaints.is_news_but_for_numbers(subject, &reason.to_string()) {
                        warn!(peer = from, index, %reason, "the snapshot was not fetched; it is tried again");
                    }
                }
            }
            context.events.fetched(index, fetched.is_ok());
        };
        self.context.tasks.spawn_on(fetching, &self.runtime);
    }

    /// The peers with an open connection, in either direction, by id: their state and cluster (0 for none).
    pub fn seen(&self) -> Vec<(u64, PeerState, u64)> {
        self.context.roster.seen()
    }

    /// Ends all connections, once what is queued for the peers is sent or [`PEER_STOP_PATIENCE`] is over.
    pub async fn stop(&self) {
        self.context.closing.cancel();
        self.context.roster.close();
        self.context.tasks.close();
        if timeout(PEER_STOP_PATIENCE, self.context.tasks.wait())
            .await
            .is_err()
        {
            self.context.stop.cancel();
            self.context.tasks.wait().await;
        }
    }
}

impl std::fmt::Debug for Peers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Peers")
            .field("identity", &self.context.identity)
            .finish_non_exhaustive()
    }
}
