//! What the core thread tells others of the ensemble.

use tracing::{info, warn};

use super::Core;
use crate::ensemble_view::{EnsembleView, Trouble};
use crate::limits::LOST_ENTRIES_FRESH_MS;

/// What the log said last about who leads.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Said {
    term: u64,
    leader: Option<u64>,
    removed: bool,
}

impl Core {
    /// Makes the view anew, for the four-letter words.
    pub(super) fn publish(&mut self) {
        let now_ms = self.shared.clock.now_ms();
        let mut view = self.shared.ensemble.write();
        view.refresh(&self.member, now_ms);
        let lost_entries = self.lost_entries_ms;
        view.rolled_back = lost_entries.is_some_and(|at| now_ms - at < LOST_ENTRIES_FRESH_MS);
        let now = view.clone();
        let member = self.shared.member;
        say_who_leads(&mut self.said, member, &view);
        drop(view);
        self.count_peers(&now);
        self.watch_transfer();
    }
}

/// One line when it changes, where there is more than one member.
fn say_who_leads(said: &mut Said, member: u64, view: &EnsembleView) {
    let now = Said {
        // A term without a leader is an attempt; there may be many.
        term: view.leader.map_or(said.term, |_| view.term),
        leader: view.leader,
        removed: view.trouble == Some(Trouble::Removed),
    };
    if now == *said || view.membership.voters.iter().all(|voter| *voter == member) {
        return;
    }
    *said = now;
    match view.leader {
        _ if now.removed => warn!("this member is not in the configuration (any more)"),
        Some(leader) if leader == member => info!(term = view.term, "this member leads"),
        Some(leader) => info!(term = view.term, leader, "this member follows"),
        None => info!("there is no leader"),
    }
}
