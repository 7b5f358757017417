//! What all connections share.

use std::sync::Arc;

use tokio::net::TcpStream;
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

pub(super) struct Context {
    pub(super) identity: Arc<Identity>,
    pub(super) events: Arc<dyn PeerEvents>,
    pub(super) images: Arc<dyn Images>,
    pub(super) resolver: Arc<dyn Resolve>,
    pub(super) roster: Roster,
    pub(super) complaints: Complaints,
    pub(super) image_turn: Turn,
    pub(super) tasks: TaskTracker,
    /// Nothing new begins.
    pub(super) closing: CancellationToken,
    /// Everything ends.
    pub(super) stop: CancellationToken,
}

impl Context {
    /// Serves a connection that both sides have agreed on.
    pub(super) async fn serve(&self, stream: TcpStream, place: Place) {
        let _turn = place.turn.lock().await;
        let peer = place.peer;
        if place.outlives {
            self.events.lost(peer);
        }
        self.events.up(peer, place.about.facts.state);
        match place.direction {
            Direction::Dialed => info!(peer, "connected to the peer"),
            Direction::Accepted => info!(peer, "the peer has connected"),
        }
        let end = link::serve(stream, &place, self).await;
        let left = self.roster.leave(&place);
        self.tell(&place, &end, left);
    }

    fn tell(&self, place: &Place, end: &End, left: Left) {
        let peer = place.peer;
        match end {
            End::Replaced | End::Stopped => debug!(peer, reason = %end, "connection ended"),
            End::Closed | End::Silent | End::Broken(_) => {
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
