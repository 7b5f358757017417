//! What waits to be written on one connection: a queue bounded in bytes that never makes its sender wait.

use std::collections::VecDeque;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// What one frame costs beside its bytes.
const FRAME_COST: usize = 64;

/// A queue of one connection.
#[derive(Debug)]
pub(super) struct Outbox {
    state: Mutex<State>,
    wake: Notify,
    max: usize,
}

#[derive(Debug, Default)]
struct State {
    frames: VecDeque<Bytes>,
    cost: usize,
    closed: bool,
}

impl Outbox {
    /// A queue of at most `max` bytes; one frame is always admitted when it is empty.
    pub(super) fn new(max: usize) -> Outbox {
        Outbox {
            state: Mutex::default(),
            wake: Notify::new(),
            max,
        }
    }

    /// Whether the frame was taken.
    pub(super) fn push(&self, frame: Bytes) -> bool {
        let mut state = self.state.lock();
        let cost = frame.len() + FRAME_COST;
        let was_empty = state.frames.is_empty();
        if state.closed || (!was_empty && state.cost + cost > self.max) {
            return false;
        }
        state.cost += cost;
        state.frames.push_back(frame);
        drop(state);
        if was_empty {
            self.wake.notify_one();
        }
        true
    }

    /// Frames that wait.
    pub(super) fn len(&self) -> usize {
        self.state.lock().frames.len()
    }

    /// Takes no more frames; those that are here are still written.
    pub(super) fn close(&self) {
        self.state.lock().closed = true;
        self.wake.notify_one();
    }

    /// Takes the oldest frames, about `bytes` of them, into `into`; `false` when there is nothing and nothing
    /// will come.
    pub(super) fn try_take(&self, bytes: usize, into: &mut Vec<Bytes>) -> bool {
        let mut state = self.state.lock();
        let mut taken = 0;
        while taken < bytes
            && let Some(frame) = state.frames.pop_front()
        {
            let cost = frame.len() + FRAME_COST;
            state.cost -= cost;
            taken += cost;
            into.push(frame);
        }
        !(into.is_empty() && state.closed)
    }

    /// Waits until there may be something to take.
    pub(super) async fn changed(&self) {
        self.wake.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_holds_and_is_given_back() {
        let outbox = Outbox::new(1000);
        assert!(
            outbox.push(Bytes::from(vec![0; 5000])),
            "one always fits an empty queue"
        );
        assert!(!outbox.push(Bytes::from_static(b"x")));
        let mut taken = Vec::new();
        assert!(outbox.try_take(1, &mut taken));
        assert_eq!(taken.len(), 1);
        assert!(outbox.push(Bytes::from(vec![0; 400])));
        assert!(outbox.push(Bytes::from(vec![0; 400])));
        assert!(!outbox.push(Bytes::from(vec![0; 400])));
    }

    #[test]
    fn a_closed_queue_is_emptied_first() {
        let outbox = Outbox::new(1000);
        assert!(outbox.push(Bytes::from_static(b"a")));
        outbox.close();
        assert!(!outbox.push(Bytes::from_static(b"b")));
        let mut taken = Vec::new();
        assert!(outbox.try_take(100, &mut taken));
        assert_eq!(taken, [Bytes::from_static(b"a")]);
        taken.clear();
        assert!(!outbox.try_take(100, &mut taken));
    }
}
