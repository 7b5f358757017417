//! Snapshots: this member's own images for members that lag, and those that it gets itself.

use quenda_consensus::{Ready, SnapshotImage};
use quenda_tree::Tree;

use super::Member;
use crate::frame::Frame;
use crate::limits::{FETCH_RETRY_TICKS, HELD_LOG_BYTES, IMAGE_RETRY_TICKS, SNAPSHOT_STALL_TICKS};
use crate::work::Fetch;

/// What is under way.
#[derive(Default)]
pub(super) struct Snapshots {
    /// The snapshot that this member needs.
    offer: Option<Offer>,
    /// To be given to the host.
    fetch: Option<Fetch>,
    /// The piece of raft's work that brings a fetched snapshot; nothing may come between.
    restored: Option<Ready>,
    /// The snapshot that the host puts in place.
    installing: Option<u64>,
    /// When the host was asked for an image last, in ticks.
    wanted_tick: Option<u64>,
    /// A fetch that came to nothing: which one, whose, and when, in ticks.
    failed: Option<(u64, u64, u64)>,
}

struct Offer {
    from: u64,
    image: SnapshotImage,
    complete: bool,
}

impl Snapshots {
    /// A leader offers a snapshot. The same one again is no news.
    pub(super) fn offered(&mut self, from: u64, image: SnapshotImage) {
        let known = self
            .offer
            .as_ref()
            .is_some_and(|offer| offer.from == from && offer.image == image);
        if known || self.installing.is_some() {
            return;
        }
        self.failed = None;
        self.fetch = Some(Fetch {
            from,
            index: image.index,
            term: image.term,
            manifest: image.manifest.clone(),
        });
        self.offer = Some(Offer {
            from,
            image,
            complete: false,
        });
    }

    pub(super) fn next_fetch(&mut self) -> Option<Fetch> {
        self.fetch.take()
    }

    pub(super) fn take_restored(&mut self) -> Option<Ready> {
        self.restored.take()
    }

    pub(super) fn is_installing(&self) -> bool {
        self.installing.is_some()
    }

    pub(super) fn installing(&mut self, index: u64) {
        self.installing = Some(index);
    }

    /// The snapshot that is being fetched or put in place, 0 for none.
    pub(super) fn index(&self) -> u64 {
        let offered = self.offer.as_ref().map(|offer| offer.image.index);
        self.installing.or(offered).unwrap_or_default()
    }

    /// Whether the host is to be asked for an image now: not at every message that would need one.
    pub(super) fn wants_image(&mut self, tick: u64) -> bool {
        let waiting = self
            .wanted_tick
            .is_some_and(|asked| tick < asked + IMAGE_RETRY_TICKS);
        if !waiting {
            self.wanted_tick = Some(tick);
        }
        !waiting
    }
}

impl Member {
    /// The image that was asked for with [`crate::Work::snapshot_wanted`]: members that lag are served with
    /// it from now on.
    pub fn offer_snapshot(&mut self, image: SnapshotImage) {
        self.snapshots.wanted_tick = None;
        self.consensus.offer_snapshot(image);
    }

    /// The files of the image are not there any more: whoever needs one gets another.
    pub fn withdraw_snapshot(&mut self) {
        self.consensus.withdraw_snapshot();
    }

    /// The files that were asked for with [`crate::Work::fetch`] are here, or cannot be had.
    pub fn fetched(&mut self, index: u64, complete: bool) {
        let Some(offer) = &mut self.snapshots.offer else {
            return;
        };
        if offer.image.index != index {
            return;
        }
        offer.complete = complete;
        if !complete {
            let to = offer.from;
            self.snapshots.offer = None;
            self.snapshots.failed = Some((index, to, self.tick));
        }
    }

    /// Tells the leader after a while that a fetch has failed.
    pub(super) fn confess_failed_fetch(&mut self) {
        let tick = self.tick;
        let failed = self
            .snapshots
            .failed
            .take_if(|(_, _, at)| tick >= *at + FETCH_RETRY_TICKS);
        if let Some((index, to, _)) = failed {
            let result = Frame::SnapshotResult {
                index,
                installed: false,
            };
            self.send(to, result.encode());
        }
    }

    /// Gives raft a snapshot whose files are here, once there is a leader.
    pub(super) fn restore_if_fetched(&mut self) {
        let complete = self.snapshots.offer.take_if(|offer| offer.complete);
        let Some(offer) = complete else {
            return;
        };
        if self.consensus.restore(&offer.image) {
            self.snapshots.restored = self.consensus.ready();
        } else {
            self.snapshots.offer = Some(offer);
        }
    }

    /// [`crate::Work::install`] is done and durable; `tree` is the state that was loaded.
    pub fn installed(&mut self, image_index: u64, number: u64, tree: &Tree, now_ms: u64) {
        self.now_ms = now_ms;
        self.snapshots.installing = None;
        self.membership = self.consensus.membership();
        let messages = self.consensus.on_persisted(number);
        self.consensus.on_applied(image_index);
        self.agreement.restart();
        self.agreement
            .applied(&[(tree.applied_index(), tree.digest())]);
        self.learn(tree);
        // What was in flight may be in the snapshot or not.
        self.abandon();
        // The leader hears that this member has a state before raft tells what it holds.
        self.tell_standing();
        self.post(messages);
        self.pass_barriers();
    }

    /// A follower says what became of its snapshot.
    pub(super) fn snapshot_ended(&mut self, peer: u64, index: u64, installed: bool) {
        let peers = self.consensus.peers();
        let pending = peers.iter().find(|known| known.id == peer);
        if pending.is_some_and(|known| known.pending_snapshot == Some(index)) {
            self.consensus.report_snapshot(peer, installed);
        }
    }

    /// Offers a snapshot again to those who do not seem to fetch it.
    pub(super) fn watch_snapshots(&mut self) {
        for peer in self.consensus.peers() {
            let shown = self.peers.entry(peer.id).fetching_tick;
            let stalled = self.tick >= shown + SNAPSHOT_STALL_TICKS;
            if peer.pending_snapshot.is_some() && stalled {
                self.consensus.report_snapshot(peer.id, false);
            }
        }
    }

    /// Whether another member is being fed with a snapshot: images are kept meanwhile.
    pub fn serves_snapshots(&self) -> bool {
        let peers = self.consensus.peers();
        peers.iter().any(|peer| peer.pending_snapshot.is_some())
    }

    /// Entries up to `index` are in a durable checkpoint: cuts the log, keeping `retain` bytes of it for
    /// members that lag, and tells the index up to which the stored log may be cut too. For a live member
    /// that is behind, or installs a snapshot, more is kept.
    pub fn compact(&mut self, index: u64, retain: u64) -> u64 {
        let mut through = self.consensus.compaction_point(index, retain);
        if self.consensus.status().window_bytes <= HELD_LOG_BYTES {
            through = through.min(self.needed_index());
        }
        self.consensus.compact(through);
        through
    }

    /// The newest entry that every live member has, or will have with its snapshot.
    fn needed_index(&self) -> u64 {
        let peers = self.consensus.peers();
        let live = peers
            .iter()
            .filter(|peer| peer.id != self.id && self.peers.is_live(peer.id, self.now_ms));
        let has = live.filter_map(|peer| match peer.pending_snapshot {
            Some(snapshot) => Some(snapshot),
            // One that has nothing gets a snapshot, whatever is kept.
            None => Some(peer.matched).filter(|matched| *matched > 0),
        });
        has.min().unwrap_or(u64::MAX)
    }
}
