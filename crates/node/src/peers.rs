//! What this member knows of the others, besides raft.

use std::collections::BTreeMap;

use crate::frame::Standing;
use crate::limits::{LIVE_MS, REPORT_LATE_MS, REPORT_LOST_MS};
use crate::work::PeerState;

/// One other member.
#[derive(Debug, Default)]
pub struct Peer {
    /// Whether there is a connection with it.
    pub up: bool,
    /// Whether its process has ended: it closed its connection and was not heard of since.
    pub gone: bool,
    /// What it said about itself in its last handshake.
    pub state: Option<PeerState>,
    /// When the last frame came.
    pub heard_ms: Option<u64>,
    /// When its last message of raft came.
    pub answered_ms: Option<u64>,
    /// When its last report of sessions came.
    pub reported_ms: Option<u64>,
    /// When the last report came before the reports were interrupted the last time.
    pub interrupted_ms: Option<u64>,
    /// Where it stands, as it said last.
    pub standing: Standing,
    /// When it last showed that it fetches a snapshot, in ticks.
    pub fetching_tick: u64,
    /// When it was last told that it is no member, in ticks.
    pub dismissed_tick: Option<u64>,
}

/// All other members that were ever heard in this run.
#[derive(Debug, Default)]
pub struct Peers {
    by_id: BTreeMap<u64, Peer>,
}

impl Peers {
    /// What is known of a member.
    pub fn get(&self, id: u64) -> Option<&Peer> {
        self.by_id.get(&id)
    }

    /// What is known of a member, to be changed.
    pub fn entry(&mut self, id: u64) -> &mut Peer {
        self.by_id.entry(id).or_default()
    }

    /// Members that there is a connection with.
    pub fn up(&self) -> impl Iterator<Item = u64> + '_ {
        let up = self.by_id.iter().filter(|(_, peer)| peer.up);
        up.map(|(id, _)| *id)
    }

    /// Whether a member was heard lately.
    pub fn is_live(&self, id: u64, now_ms: u64) -> bool {
        let heard = self.get(id).and_then(|peer| peer.heard_ms);
        heard.is_some_and(|heard| now_ms.saturating_sub(heard) <= LIVE_MS)
    }

    /// Whether a member answers this leader: one whose disk hangs is heard, but makes no promise.
    pub fn answers(&self, id: u64, now_ms: u64) -> bool {
        let answered = self.get(id).and_then(|peer| peer.answered_ms);
        answered.is_some_and(|answered| now_ms.saturating_sub(answered) <= LIVE_MS)
    }

    /// Whether a member has no data, and waits to be fed.
    pub fn is_joining(&self, id: u64) -> bool {
        let state = self.get(id).and_then(|peer| peer.state);
        state == Some(PeerState::Joining)
    }

    /// Whether what a member has heard may be on its way: its report is late, but not given up.
    pub fn is_report_late(&self, id: u64, now_ms: u64) -> bool {
        let reported = self.get(id).and_then(|peer| peer.reported_ms);
        reported.is_some_and(|reported| {
            let silent = now_ms.saturating_sub(reported);
            (REPORT_LATE_MS..REPORT_LOST_MS).contains(&silent)
        })
    }

    /// Whether a member's process has ended, as far as its connection shows.
    pub fn is_gone(&self, id: u64) -> bool {
        self.get(id).is_some_and(|peer| peer.gone)
    }

    /// Whether a member has reported its sessions since then.
    pub fn reported_since(&self, id: u64, since_ms: u64) -> bool {
        let reported = self.get(id).and_then(|peer| peer.reported_ms);
        reported.is_some_and(|reported| reported >= since_ms)
    }

    /// A report of a member's sessions has come.
    pub fn reported(&mut self, id: u64, now_ms: u64) {
        let peer = self.entry(id);
        let before = peer.reported_ms.replace(now_ms);
        let gap = before.filter(|before| now_ms.saturating_sub(*before) > REPORT_LATE_MS);
        peer.interrupted_ms = gap.or(peer.interrupted_ms);
    }

    /// Until when a member may have heard sessions without its being known here: it may have failed between hearing
    /// and reporting, and is back or not. 0 if its reports were never interrupted.
    pub fn may_have_heard_until(&self, id: u64, now_ms: u64) -> u64 {
        let Some(peer) = self.get(id) else {
            return 0;
        };
        let late = |reported: &u64| now_ms.saturating_sub(*reported) > REPORT_LATE_MS;
        let interrupted = peer.reported_ms.filter(late).or(peer.interrupted_ms);
        interrupted.map_or(0, |last| last + REPORT_LATE_MS)
    }

    /// This member was paused for so long and could hear nobody.
    pub fn excuse(&mut self, pause_ms: u64) {
        for peer in self.by_id.values_mut() {
            peer.heard_ms = peer.heard_ms.map(|heard| heard + pause_ms);
            peer.answered_ms = peer.answered_ms.map(|answered| answered + pause_ms);
            peer.reported_ms = peer.reported_ms.map(|reported| reported + pause_ms);
            peer.interrupted_ms = peer.interrupted_ms.map(|last| last + pause_ms);
        }
    }
}
