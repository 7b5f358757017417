//! Everything that can happen.

use bytes::Bytes;

use crate::faults::Fault;

/// One event. What concerns the process of a member carries the number of its start, and is void when
/// the member has started again since.
#[derive(Debug)]
pub enum Event {
    /// A tick of a member's own clock.
    Tick(u64, u64),
    /// The member's core looks at what came in.
    Core(u64, u64),
    /// A write of the log has reached the disk.
    LogWritten(u64, u64),
    /// A checkpoint has reached the disk.
    CheckpointWritten(u64, u64),
    /// An image has been installed.
    Installed(u64, u64),
    /// The next piece of an image arrives.
    Fetched(u64, u64),
    /// A stopping member ends.
    Stopped(u64, u64),
    /// A member's process starts.
    Start(u64),
    /// A dial has got through: (from, its start, to, its start).
    Dialed(u64, u64, u64, u64),
    /// A connection to a peer was found broken: (at, its start, peer).
    PeerLost(u64, u64, u64),
    /// The head of a stream between members: (from, to).
    Pump(u64, u64),
    /// A frame that travels alone: (from, to, start of the receiver, frame).
    Datagram(u64, u64, u64, Bytes),
    /// The head of a client's pipe: (link, towards the member).
    Pipe(u64, bool),
    /// A client looks around.
    Look(usize),
    /// A fault begins.
    Fault(Fault),
    /// What a fault did ends.
    Mend(Fault),
    /// A member is in order again, as far as one fault goes.
    Calm(u64),
}

impl Event {
    /// The member whose process has to run for this.
    pub fn member(&self) -> Option<u64> {
        match self {
            Event::Tick(member, _)
            | Event::Core(member, _)
            | Event::LogWritten(member, _)
            | Event::CheckpointWritten(member, _)
            | Event::Installed(member, _)
            | Event::Fetched(member, _)
            | Event::Stopped(member, _)
            | Event::PeerLost(member, ..)
            | Event::Pump(_, member)
            | Event::Datagram(_, member, ..) => Some(*member),
            // A paused process answers no dial.
            Event::Dialed(_, _, to, _) => Some(*to),
            Event::Start(_)
            | Event::Pipe(..)
            | Event::Look(_)
            | Event::Fault(_)
            | Event::Mend(_)
            | Event::Calm(_) => None,
        }
    }

    /// Whether it waits for the disk of its member.
    pub fn is_sync(&self) -> bool {
        matches!(
            self,
            Event::LogWritten(..) | Event::CheckpointWritten(..) | Event::Installed(..)
        )
    }

    /// Numbers for the trace.
    pub fn numbers(&self) -> [u64; 4] {
        match self {
            Event::Tick(a, b) => [1, *a, *b, 0],
            Event::Core(a, b) => [2, *a, *b, 0],
            Event::LogWritten(a, b) => [3, *a, *b, 0],
            Event::CheckpointWritten(a, b) => [4, *a, *b, 0],
            Event::Installed(a, b) => [5, *a, *b, 0],
            Event::Fetched(a, b) => [6, *a, *b, 0],
            Event::Stopped(a, b) => [7, *a, *b, 0],
            Event::Start(a) => [8, *a, 0, 0],
            Event::Dialed(a, b, c, _) => [9, *a, *b, *c],
            Event::PeerLost(a, b, c) => [10, *a, *b, *c],
            Event::Pump(a, b) => [11, *a, *b, 0],
            Event::Datagram(a, b, c, frame) => [12, *a << 32 | *b, *c, frame.len() as u64],
            Event::Pipe(a, b) => [13, *a, u64::from(*b), 0],
            Event::Look(a) => [14, *a as u64, 0, 0],
            Event::Fault(_) => [15, 0, 0, 0],
            Event::Mend(_) => [16, 0, 0, 0],
            Event::Calm(a) => [17, *a, 0, 0],
        }
    }
}
