//! What waits to be written on one connection: a queue bounded in bytes that never makes its sender wait.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::flow::Flow;

/// What one frame costs beside its bytes.
const FRAME_COST: usize = 64;

/// A queue of one connection.
#[derive(Debug)]
pub(super) struct Outbox {
    state: Mutex<State>,
    wake: Notify,
    max: usize,
    flow: Arc<Flow>,
}

#[derive(Debug, Default)]
struct State {
    frames: VecDeque<Bytes>,
    cost: usize,
    closed: bool,
}

impl Outbox {
    /// A queue of at most `max` bytes; one frame is always admitted when it is empty. What is taken is counted in `flow`.
    pub(super) fn new(max: usize, flow: Arc<Flow>) -> Outbox {
        Outbox {
            state: Mutex::default(),
            wake: Notify::new(),
            max,
            flow,
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

    /// The same, and their bytes.
    pub(super) fn load(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.frames.len(), state.cost)
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
        let before = into.len();
        while taken < bytes
            && let Some(frame) = state.frames.pop_front()
        {
            let cost = frame.len() + FRAME_COST;
            state.cost -= cost;
            taken += cost;
            into.push(frame);
        }
        self.flow.send(into.len() - before);
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
        let outbox = Outbox::new(1000, Arc::new(Flow::start()));
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
        let outbox = Outbox::new(1000, Arc::new(Flow::start()));
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
