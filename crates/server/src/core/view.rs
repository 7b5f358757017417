//! What the core thread tells others of the ensemble.

use super::Core;

impl Core {
    /// Makes the view anew, for the four-letter words.
    pub(super) fn publish(&mut self) {
        let now_ms = self.shared.clock.now_ms();
        self.shared.ensemble.write().refresh(&self.member, now_ms);
    }
}
