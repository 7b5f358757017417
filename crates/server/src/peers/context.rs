//! What all connections share.

use std::collections::HashMap;
use std::pin::{Pin, pin};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, info, warn};

use super::complaints::{About as Subject, Complaints};
use super::delivery::PeerEvents;
use super::identity::Identity;
use super::image_server::Turn;
use super::images::Images;
use super::link::{self, End};
use super::resolve::Resolve;
use super::roster::{Direction, Left, Place, Roster};
use super::wire::Wire;
use crate::config::LinkSettings;
use crate::limits::{PEER_BRIEF, PEER_BRIEF_LOGGED};
use crate::tls::Tls;

pub(super) struct Context {
    pub(super) identity: Arc<Identity>,
    pub(super) events: Arc<dyn PeerEvents>,
    pub(super) images: Arc<dyn Images>,
    pub(super) resolver: Arc<dyn Resolve>,
    pub(super) tls: Option<Arc<Tls>>,
    /// The names and quorum ports of those that are dialed, by id.
    pub(super) names: Mutex<HashMap<u64, Vec<(String, u16)>>>,
    pub(super) roster: Roster,
    pub(super) complaints: Complaints,
    pub(super) image_turn: Turn,
    pub(super) links: LinkSettings,
    pub(super) tasks: TaskTracker,
    /// Nothing new begins.
    pub(super) closing: CancellationToken,
    /// Everything ends.
    pub(super) stop: CancellationToken,
}

impl Context {
    /// Serves a connection that both sides have agreed on.
    pub(super) async fn serve(&self, wire: Wire, place: Place) {
        let _turn = place.turn.lock().await;
        let peer = place.peer;
        if place.outlives {
            self.events.lost(peer);
        }
        self.events.up(peer, place.about.facts.state);
        let serving = pin!(link::serve(wire, &place, self));
        let (end, is_told) = follow(&place, serving).await;
        let left = self.roster.leave(&place);
        self.tell(&place, &end, left, is_told);
    }

    fn tell(&self, place: &Place, end: &End, left: Left, is_told: bool) {
        let peer = place.peer;
        match end {
            End::Replaced | End::Stopped => debug!(peer, reason = %end, "connection ended"),
            _ if !is_told => debug!(peer, reason = %end, "connection ended at once"),
            End::Closed | End::Silent(_) | End::Broken(_) => {
                info!(peer, direction = ?place.direction, reason = %end, "connection to the peer lost");
            }
            End::Garbage(_) | End::Foreign(_) => {
                let reason = end.to_string();
                if self.complaints.is_news(Subject::Accepted(peer), &reason) {
                    warn!(peer, reason, "connection to the peer closed");
                }
            }
        }
        let Left::Empty { connected } = left else {
            return;
        };
        let is_dialed = place.direction == Direction::Dialed;
        if is_dialed {
            self.events.unreachable(peer);
        }
        // The peer's own connection says it first; ours says it when there is no other.
        let tells_of_process = !is_dialed || !connected;
        if matches!(end, End::Closed) && tells_of_process && self.roster.mourn(peer) {
            self.events.lost(peer);
        }
    }
}

/// Waits for the end of a connection; whether the log speaks of it. Of many that end as soon as they have begun, as
/// with two processes of one id, it does not.
async fn follow(place: &Place, mut serving: Pin<&mut impl Future<Output = End>>) -> (End, bool) {
    let peer = place.peer;
    if place.brief == PEER_BRIEF_LOGGED {
        info!(
            peer,
            direction = ?place.direction,
            "connections with the peer end as soon as they have begun: more is said when one lasts"
        );
    }
    if place.brief >= PEER_BRIEF_LOGGED {
        tokio::select! {
            end = &mut serving => return (end, false),
            () = sleep(PEER_BRIEF) => {}
        }
    }
    match place.direction {
        Direction::Dialed => info!(peer, "connected to the peer"),
        Direction::Accepted => info!(peer, "the peer has connected"),
    }
    (serving.await, true)
}
