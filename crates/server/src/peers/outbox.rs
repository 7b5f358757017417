//! What waits to be written on one connection: a queue bounded in bytes that never makes its sender wait.
//!
//! While nothing waits, a short frame goes from its sender straight into the socket: that saves a wake-up of the
//! connection's task, which a write of a single client would wait for on its way to the other members and back.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Write};
use std::net::TcpStream;
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::flow::Flow;
use super::frame::{self, Kind};
use crate::limits::PEER_DIRECT_BYTES;

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
    /// The socket, which never blocks; none over TLS.
    socket: Option<TcpStream>,
    /// The connection's task leaves the socket to those who push.
    idle: bool,
    /// The rest of a frame whose beginning is in the socket already.
    rest: Option<Bytes>,
}

impl State {
    /// Whether the frame went out, or its beginning did.
    fn write(&mut self, frame: &Bytes) -> bool {
        let Some(socket) = self.socket.as_mut().filter(|_| self.idle) else {
            return false;
        };
        if frame.len() > PEER_DIRECT_BYTES {
            return false;
        }
        let mut head = BytesMut::with_capacity(frame::HEADER);
        frame::put_header(&mut head, Kind::Data, &[frame]);
        // What is wrong with the connection is found by its task.
        let Ok(written) = write_two(socket, &head, frame) else {
            return false;
        };
        if written < head.len() + frame.len() {
            head.extend_from_slice(frame);
            head.advance(written);
            self.rest = Some(head.freeze());
            self.idle = false;
        }
        written > 0
    }
}

fn write_two(socket: &mut TcpStream, head: &[u8], tail: &[u8]) -> io::Result<usize> {
    loop {
        match socket.write_vectored(&[IoSlice::new(head), IoSlice::new(tail)]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
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
        if was_empty && state.write(&frame) {
            let is_whole = state.rest.is_none();
            drop(state);
            self.flow.send(1);
            if !is_whole {
                self.wake.notify_one();
            }
            return true;
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

    /// Gives the connection's socket, for frames that need not wait.
    pub(super) fn connect(&self, socket: TcpStream) {
        self.state.lock().socket = Some(socket);
    }

    /// The connection has ended: its socket is not used any more.
    pub(super) fn disconnect(&self) {
        let mut state = self.state.lock();
        state.socket = None;
        state.idle = false;
    }

    /// The connection's task has nothing to write, and leaves the socket to those who push; not if there is something.
    pub(super) fn leave(&self) {
        let mut state = self.state.lock();
        state.idle = state.frames.is_empty() && !state.closed;
    }

    /// The task wants to write: from now on nobody else does. What has to be written in front of everything else.
    pub(super) fn claim(&self) -> Option<Bytes> {
        let mut state = self.state.lock();
        state.idle = false;
        state.rest.take()
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

    /// An outbox with one end of a connection, and the other end.
    fn connected() -> (Outbox, TcpStream) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let near = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        let (far, _) = listener.accept().expect("accepted");
        near.set_nonblocking(true).expect("a socket");
        let outbox = Outbox::new(1 << 20, Arc::new(Flow::start()));
        outbox.connect(near);
        (outbox, far)
    }

    fn next(far: &mut TcpStream, input: &mut BytesMut) -> Bytes {
        loop {
            if let Some((kind, frame)) = frame::cut(input, 1 << 20).expect("a frame") {
                assert_eq!(kind, Kind::Data);
                return frame;
            }
            let mut bytes = [0; 1 << 16];
            let count = io::Read::read(far, &mut bytes).expect("read");
            assert_ne!(count, 0, "the end");
            input.extend_from_slice(&bytes[..count]);
        }
    }

    #[test]
    fn a_frame_goes_straight_into_the_socket_that_was_left() {
        let (outbox, mut far) = connected();
        let mut input = BytesMut::new();
        outbox.leave();
        assert!(outbox.push(Bytes::from_static(b"first")));
        assert_eq!(outbox.len(), 0);
        assert_eq!(next(&mut far, &mut input), "first");
        // Nobody else writes while the task does.
        assert_eq!(outbox.claim(), None);
        assert!(outbox.push(Bytes::from_static(b"second")));
        assert_eq!(outbox.len(), 1);
        // Nothing overtakes what waits.
        outbox.leave();
        assert!(outbox.push(Bytes::from_static(b"third")));
        assert_eq!(outbox.len(), 2);
        let mut taken = Vec::new();
        assert!(outbox.try_take(1 << 20, &mut taken));
        assert_eq!(taken, ["second", "third"]);
        outbox.leave();
        assert!(outbox.push(vec![0; PEER_DIRECT_BYTES + 1].into()));
        assert_eq!(outbox.len(), 1, "a long one is left to the task");
        outbox.disconnect();
        assert!(outbox.try_take(1 << 20, &mut taken));
        assert!(outbox.push(Bytes::from_static(b"nowhere")));
        assert_eq!(outbox.len(), 1);
    }

    #[test]
    fn what_the_socket_does_not_take_is_left_to_the_task_to_the_byte() {
        let (outbox, mut far) = connected();
        let frame = |number: u32| Bytes::from(number.to_be_bytes().repeat(PEER_DIRECT_BYTES / 4));
        outbox.leave();
        let mut count = 0;
        while outbox.len() == 0 && outbox.state.lock().rest.is_none() {
            assert!(outbox.push(frame(count)));
            count += 1;
        }
        let mut task = outbox.state.lock().socket.take().expect("connected");
        task.set_nonblocking(false).expect("a socket");
        let writing = std::thread::spawn(move || {
            let rest = outbox.claim().unwrap_or_default();
            task.write_all(&rest).expect("written");
            let mut taken = Vec::new();
            assert!(outbox.try_take(1 << 20, &mut taken));
            for frame in taken {
                let mut head = BytesMut::new();
                frame::put_header(&mut head, Kind::Data, &[&frame]);
                task.write_all(&head).expect("written");
                task.write_all(&frame).expect("written");
            }
        });
        let mut input = BytesMut::new();
        for number in 0..count {
            assert_eq!(next(&mut far, &mut input), frame(number));
        }
        writing.join().expect("no panic");
        assert!(input.is_empty());
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
