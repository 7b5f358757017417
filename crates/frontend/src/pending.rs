//! The queue of one connection: what was read and is not answered yet, in order.

use std::collections::VecDeque;

use quenda_proto::{ErrorCode, Op};

use crate::limits::Limits;
use crate::request::Handler;

/// One request that waits for its turn.
#[derive(Debug)]
pub(crate) enum Pending {
    /// A write that was proposed.
    Write {
        xid: i32,
        op: Op,
        received_ms: u64,
        bytes: usize,
        /// Bytes of its path in the queue of paths.
        path: u16,
        sequential: bool,
        /// Whether it counts among the large requests in flight.
        large: bool,
    },
    /// A local session is being made one of the cluster.
    Upgrade,
    /// A request that is served when it comes to the head.
    Serve(Waiting),
    /// The same, but not before the barrier that was asked for it is passed. Those behind it were read
    /// along with it and profit from the same barrier.
    Fenced { request: Waiting, passed: bool },
    /// A verdict that was known when the request was read.
    Answer {
        xid: i32,
        op: Op,
        error: ErrorCode,
        received_ms: u64,
    },
    /// An operation that nobody knows: its answer ends the connection.
    Unknown { xid: i32, code: i32 },
}

/// A request that is served from the member's own state, as it was read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub handler: Handler,
    pub op: Op,
    pub xid: i32,
    /// Identities that the connection had when the request was read: that many of the first ones, as
    /// they are only ever added to.
    pub identities: usize,
    pub received_ms: u64,
}

/// The same with an own copy of its record.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub asked: Asked,
    pub body: Box<[u8]>,
    /// Bytes of the reply, about.
    pub reply_bytes: usize,
}

impl Pending {
    fn bytes(&self) -> usize {
        match self {
            Pending::Write { bytes, .. } => *bytes,
            Pending::Serve(request) | Pending::Fenced { request, .. } => request.body.len(),
            Pending::Upgrade | Pending::Answer { .. } | Pending::Unknown { .. } => 0,
        }
    }

    fn reply_bytes(&self) -> usize {
        match self {
            Pending::Serve(request) | Pending::Fenced { request, .. } => request.reply_bytes,
            Pending::Upgrade
            | Pending::Write { .. }
            | Pending::Answer { .. }
            | Pending::Unknown { .. } => 0,
        }
    }

    fn large_bytes(&self) -> usize {
        match self {
            Pending::Write {
                bytes, large: true, ..
            } => *bytes,
            _ => 0,
        }
    }

    /// Whether it can only be answered after a call from outside.
    fn is_awaited(&self) -> bool {
        match self {
            Pending::Upgrade | Pending::Write { .. } | Pending::Fenced { passed: false, .. } => {
                true
            }
            Pending::Fenced { passed: true, .. }
            | Pending::Serve(_)
            | Pending::Answer { .. }
            | Pending::Unknown { .. } => false,
        }
    }
}

/// The queue, with its sums.
#[derive(Debug, Default)]
pub(crate) struct PendingQueue {
    items: VecDeque<Pending>,
    bytes: usize,
    /// Bytes of the replies to the reads among them, about.
    reply_bytes: usize,
    /// Bytes of the largest write since the queue was empty.
    largest_write: usize,
    /// Bytes of the large requests among them.
    large_bytes: usize,
    /// Items that wait for a call from outside.
    awaited: usize,
    /// One of them waits for a barrier.
    has_barrier: bool,
    /// Of the writes, in their order.
    paths: PathQueue,
}

/// Paths one behind the other, so that a write in flight costs no memory of its own for its path.
#[derive(Debug, Default)]
struct PathQueue {
    bytes: Vec<u8>,
    start: usize,
}

impl PathQueue {
    /// Bytes in front of the first path at which those behind are moved.
    const SLACK: usize = 4096;

    fn push(&mut self, path: &[u8]) {
        if self.start >= Self::SLACK && self.start >= self.bytes.len() / 2 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.bytes.extend_from_slice(path);
    }

    fn first(&self, length: usize) -> &[u8] {
        let from_start = &self.bytes[self.start..];
        &from_start[..length.min(from_start.len())]
    }

    fn drop_first(&mut self, length: usize) {
        self.start += length;
        if self.start >= self.bytes.len() {
            self.start = 0;
            if self.bytes.capacity() > Self::SLACK {
                self.bytes = Vec::new();
            } else {
                self.bytes.clear();
            }
        }
    }
}

/// A queue that once was long gives its memory back when it is empty.
const KEEP_CAPACITY: usize = 32;

impl PendingQueue {
    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Whether a write or barrier is under way.
    pub fn has_awaited(&self) -> bool {
        self.awaited > 0
    }

    pub fn is_full(&self, limits: &Limits) -> bool {
        self.items.len() >= limits.pending_max
            || self.bytes >= limits.pending_bytes_max
            || self.reply_bytes >= limits.pending_reply_bytes_max
    }

    /// The most that a write in flight may have stored in one znode.
    pub fn largest_write(&self) -> usize {
        self.largest_write
    }

    pub fn push(&mut self, item: Pending) {
        self.bytes += item.bytes();
        self.reply_bytes += item.reply_bytes();
        self.large_bytes += item.large_bytes();
        if let Pending::Write { bytes, .. } = item {
            self.largest_write = self.largest_write.max(bytes);
        }
        self.awaited += usize::from(item.is_awaited());
        self.has_barrier |= matches!(item, Pending::Fenced { passed: false, .. });
        self.items.push_back(item);
    }

    /// The head, unless it waits for a call from outside.
    pub fn pop_ready(&mut self) -> Option<Pending> {
        if self.items.front()?.is_awaited() {
            return None;
        }
        self.pop()
    }

    /// Whether the head can be served now.
    pub fn is_ready(&self) -> bool {
        self.items.front().is_some_and(|item| !item.is_awaited())
    }

    /// Bytes of large requests in flight.
    pub fn large_bytes(&self) -> usize {
        self.large_bytes
    }

    /// Adds a write with the path it names, at most `u16::MAX` bytes.
    pub fn push_write(&mut self, write: Pending, path: &[u8]) {
        self.paths.push(path);
        self.push(write);
    }

    /// The path of the oldest write, of that length.
    pub fn write_path(&self, length: u16) -> &[u8] {
        self.paths.first(length.into())
    }

    /// That write is answered.
    pub fn drop_write_path(&mut self, length: u16) {
        self.paths.drop_first(length.into());
    }

    /// The head if it is a write.
    pub fn pop_write(&mut self) -> Option<Pending> {
        match self.items.front()? {
            Pending::Write { .. } => self.pop(),
            Pending::Upgrade
            | Pending::Serve(_)
            | Pending::Fenced { .. }
            | Pending::Answer { .. }
            | Pending::Unknown { .. } => None,
        }
    }

    /// Takes the head if it is the upgrade of the session.
    pub fn pop_upgrade(&mut self) -> bool {
        let is_upgrade = matches!(self.items.front(), Some(Pending::Upgrade));
        if is_upgrade {
            self.pop();
        }
        is_upgrade
    }

    /// Whether a barrier has not been passed. There is one at a time, and no write is queued behind it:
    /// it could be applied before the reads that precede it.
    pub fn waits_for_barrier(&self) -> bool {
        self.has_barrier
    }

    /// Marks that barrier as passed; false if there is none.
    pub fn pass_barrier(&mut self) -> bool {
        let open = self.items.iter_mut().rev().find_map(|item| match item {
            Pending::Fenced { passed, .. } if !*passed => Some(passed),
            _ => None,
        });
        let Some(passed) = open else { return false };
        *passed = true;
        self.awaited -= 1;
        self.has_barrier = false;
        true
    }

    pub fn clear(&mut self) {
        *self = PendingQueue::default();
    }

    fn pop(&mut self) -> Option<Pending> {
        let item = self.items.pop_front()?;
        self.bytes -= item.bytes();
        self.reply_bytes -= item.reply_bytes();
        self.large_bytes -= item.large_bytes();
        self.awaited -= usize::from(item.is_awaited());
        if self.items.is_empty() {
            self.largest_write = 0;
            if self.items.capacity() > KEEP_CAPACITY {
                self.items = VecDeque::new();
            }
        }
        Some(item)
    }
}
