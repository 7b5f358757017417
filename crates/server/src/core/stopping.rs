//! The clean end of the core thread.

use std::time::Instant;

use tracing::{info, warn};

use super::Core;
use crate::limits::{HANDOVER_PATIENCE, STOP_FAILING_PATIENCE};

/// A stop that was asked for.
pub(super) struct Stopping {
    /// When it was asked for.
    since: Instant,
    /// Until when it waits for another member to lead; `None` if there is nobody to wait for.
    handover: Option<Instant>,
}

impl Core {
    /// A leader hands its office over, so that nobody has to wait for an election.
    pub(super) fn begin_to_stop(&mut self) {
        let now = Instant::now();
        self.log.hurry();
        let handing_over = self.member.transfer_leadership();
        if handing_over {
            info!("handing the leadership over");
        }
        self.stopping = Some(Stopping {
            since: now,
            handover: handing_over.then(|| now + HANDOVER_PATIENCE),
        });
    }

    /// A stop waits until nothing that was accepted is on its way to the disk, and somebody else leads.
    pub(super) fn may_stop(&self) -> bool {
        let Some(stopping) = &self.stopping else {
            return false;
        };
        let now = Instant::now();
        if self.member.is_serving_leader() && stopping.handover.is_some_and(|until| now < until) {
            return false;
        }
        let status = self.member.status();
        // What a member that does not lead has queued was never sent: nobody waits for it.
        let sent = self.member.queued_bytes() == 0 || !self.member.is_serving_leader();
        let settled = sent
            && status.persisted == status.last_index
            && status.applied == status.commit
            && self.installing.is_none();
        let set = self.shared.config.throttle.stop_patience;
        let patience = match self.shared.is_log_failing() {
            true => STOP_FAILING_PATIENCE.min(set),
            false => set,
        };
        if !settled && now >= stopping.since + patience {
            warn!("stopping although some writes are not on disk; none of them was acknowledged");
            return true;
        }
        settled
    }

    /// Leaves a checkpoint behind, so that the next start has nothing to replay.
    pub(super) fn finish(mut self) {
        self.log.stop();
        // A store that takes no log takes no checkpoint either.
        let possible = self.installing.is_none() && !self.shared.is_log_failing();
        if possible && self.member.status().applied > self.checkpointed {
            self.checkpoint();
        }
        self.checkpointer.stop();
    }
}
