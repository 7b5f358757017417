//! A member's own commands: those that wait, and those that are on their way through the log.

use std::collections::VecDeque;

use bytes::{Buf, BytesMut};
use quenda_tree::command::first_origin;

use crate::limits::ENTRY_BYTES;

/// Own commands whose outcome is not known yet, oldest first. Commands of one member come back in the order
/// in which they were sent, or not at all.
#[derive(Debug, Default)]
pub struct Outstanding {
    /// (connection, bytes) of each.
    commands: VecDeque<(u64, usize)>,
    bytes: usize,
}

impl Outstanding {
    /// These encoded commands are on their way.
    pub fn sent(&mut self, mut commands: &[u8]) {
        while let Some(length) = first_len(commands) {
            let (command, rest) = commands.split_at(length.min(commands.len()));
            self.commands
                .push_back((first_origin(command).connection, command.len()));
            self.bytes += command.len();
            commands = rest;
        }
    }

    /// A command of this connection was applied. One that is not the oldest belongs to an earlier era or
    /// run of the member: its connection is closed.
    pub fn came_back(&mut self, connection: u64) {
        if self
            .commands
            .front()
            .is_some_and(|(oldest, _)| *oldest == connection)
            && let Some((_, bytes)) = self.commands.pop_front()
        {
            self.bytes -= bytes;
        }
    }

    /// Bytes of the commands that are on their way.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether nothing is on its way.
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Nobody waits for them any more.
    pub fn clear(&mut self) {
        *self = Outstanding::default();
    }
}

/// Appends commands to a queue; an empty one takes the buffer over.
pub fn enqueue(queue: &mut BytesMut, commands: BytesMut) {
    if queue.is_empty() {
        *queue = commands;
    } else {
        queue.extend_from_slice(&commands);
    }
}

/// Takes commands off a queue, and frees its memory when it gets empty.
pub fn dequeue(queue: &mut BytesMut, length: usize) {
    queue.advance(length);
    if queue.is_empty() {
        *queue = BytesMut::new();
    }
}

/// Length of the first of several encoded commands, its length field included.
pub fn first_len(commands: &[u8]) -> Option<usize> {
    let length = commands.first_chunk::<4>()?;
    Some(4 + u32::from_be_bytes(*length) as usize)
}

/// Length of the commands that go together: whole ones, at least one, about [`ENTRY_BYTES`], none behind
/// the first for which `ends` is true.
pub fn batch_len(queue: &[u8], mut ends: impl FnMut(&[u8]) -> bool) -> usize {
    let mut end = 0;
    while let Some(length) = first_len(&queue[end..]) {
        let next = (end + length).min(queue.len());
        if end > 0 && (next > ENTRY_BYTES || ends(&queue[end..next])) {
            break;
        }
        end = next;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;
    use quenda_tree::command::{Command, Origin};

    fn blanks(count: usize, length: usize) -> BytesMut {
        let mut queue = BytesMut::new();
        for _ in 0..count {
            queue.extend_from_slice(&(length as u32).to_be_bytes());
            queue.resize(queue.len() + length, 0);
        }
        queue
    }

    #[test]
    fn a_batch_ends_between_commands() {
        let queue = blanks(3, 300_000);
        assert_eq!(batch_len(&queue, |_| false), 300_004);
        assert_eq!(batch_len(&queue[600_008..], |_| false), 300_004);
        assert_eq!(batch_len(&blanks(3, 10), |_| false), 42);
        assert_eq!(batch_len(&blanks(3, 10), |_| true), 14);
        assert_eq!(batch_len(&[], |_| false), 0);
    }

    #[test]
    fn a_large_command_goes_alone() {
        assert_eq!(batch_len(&blanks(2, 1_000_000), |_| false), 1_000_004);
    }

    #[test]
    fn what_comes_back_is_what_was_sent() {
        let mut commands = BytesMut::new();
        for connection in [7, 8, 7] {
            let origin = Origin {
                member: 1,
                connection,
            };
            Command::OpenSession {
                origin,
                session: 1,
                timeout_ms: 1,
            }
            .encode(&mut commands);
        }
        let mut outstanding = Outstanding::default();
        outstanding.sent(&commands);
        assert_eq!(outstanding.bytes(), commands.len());
        // Of an earlier era.
        outstanding.came_back(6);
        outstanding.came_back(7);
        outstanding.came_back(7);
        assert!(!outstanding.is_empty());
        outstanding.came_back(8);
        outstanding.came_back(7);
        assert!(outstanding.is_empty());
        assert_eq!(outstanding.bytes(), 0);
    }
}
