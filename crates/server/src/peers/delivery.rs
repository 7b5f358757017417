//! What the transport hands to the member.

use bytes::Bytes;
use quenda_node::PeerState;
use tokio::sync::OwnedSemaphorePermit;

/// Frames of one peer, in the order they were sent.
///
/// It holds room in the peer's share of the inbox until it is dropped: keep it until the frames are dealt
/// with. When a peer's share is used up, its connection is not read.
#[derive(Debug)]
pub struct Delivery {
    /// The peer.
    pub from: u64,
    /// Its frames.
    pub frames: Vec<Bytes>,
    /// `None` only when nobody counts.
    pub(super) _room: Option<OwnedSemaphorePermit>,
}

/// What the transport tells the member. None of it may block.
pub trait PeerEvents: Send + Sync {
    /// Frames have come.
    fn deliver(&self, delivery: Delivery);

    /// A peer is connected, in either direction, or says something else of itself than before.
    fn up(&self, peer: u64, state: PeerState);

    /// The peer's process has closed its connection to us: it has most likely ended.
    fn lost(&self, peer: u64);

    /// Our own connection to the peer broke: frames that were taken for it may be lost.
    fn unreachable(&self, peer: u64);

    /// The image at this index is here, or (not `complete`) could not be had.
    fn fetched(&self, index: u64, complete: bool);
}
