//! The events of changes, with whom they go to.

use std::ops::Range;

use bytes::BytesMut;
use quenda_proto::event::{EventType, put_event};
use quenda_tree::AclId;

use crate::watchers::Watcher;
use crate::world::ConnectionId;

/// Events that [`WatchTable::fire`](crate::WatchTable::fire) found, in the order in which they are to be
/// delivered. Keep one and clear it: its buffers are used again.
#[derive(Debug, Default)]
pub struct Fired {
    frames: BytesMut,
    connections: Vec<ConnectionId>,
    steps: Vec<Step>,
    pub(crate) spent: Vec<Watcher>,
}

#[derive(Debug)]
struct Step {
    kind: EventType,
    frame: Range<usize>,
    connections: Range<usize>,
    acl: AclId,
}

/// One event and the connections that watch for it.
#[derive(Debug, Clone, Copy)]
pub struct FiredEvent<'a> {
    /// What has happened.
    pub kind: EventType,
    /// The whole event frame, the same for all connections.
    pub frame: &'a [u8],
    /// A connection may see the event if this list gives it READ.
    pub acl: AclId,
    /// Each at most once.
    pub connections: &'a [ConnectionId],
}

/// The connections of a step that is being collected start here.
#[derive(Debug)]
pub(crate) struct OpenStep(usize);

impl Fired {
    /// The events, in order.
    pub fn events(&self) -> impl Iterator<Item = FiredEvent<'_>> {
        self.steps.iter().map(|step| FiredEvent {
            kind: step.kind,
            frame: &self.frames[step.frame.clone()],
            acl: step.acl,
            connections: &self.connections[step.connections.clone()],
        })
    }

    /// Whether nobody is to be told.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Forgets all events. Call it before the next change that has other access control lists.
    pub fn clear(&mut self) {
        self.frames.clear();
        self.connections.clear();
        self.steps.clear();
    }

    pub(crate) fn start(&self) -> OpenStep {
        OpenStep(self.connections.len())
    }

    pub(crate) fn push(&mut self, connection: ConnectionId) {
        self.connections.push(connection);
    }

    /// Leaves each connection of the step in it once.
    pub(crate) fn unify(&mut self, step: &OpenStep) {
        let collected = &mut self.connections[step.0..];
        collected.sort_unstable();
        let mut kept = step.0;
        for index in step.0..self.connections.len() {
            if kept == step.0 || self.connections[index] != self.connections[kept - 1] {
                self.connections[kept] = self.connections[index];
                kept += 1;
            }
        }
        self.connections.truncate(kept);
    }

    /// Removes the connections from the step that an earlier one has told already.
    pub(crate) fn forget_those_in(&mut self, told: &Range<usize>, step: &OpenStep) {
        if told.is_empty() || step.0 == self.connections.len() {
            return;
        }
        let mut told = self.connections[told.clone()].to_vec();
        told.sort_unstable();
        let mut kept = step.0;
        for index in step.0..self.connections.len() {
            if told.binary_search(&self.connections[index]).is_err() {
                self.connections[kept] = self.connections[index];
                kept += 1;
            }
        }
        self.connections.truncate(kept);
    }

    /// Encodes the event once, if anybody is to be told; returns where the connections are.
    pub(crate) fn finish(
        &mut self,
        step: OpenStep,
        kind: EventType,
        path: &str,
        zxid: i64,
        acl: AclId,
    ) -> Range<usize> {
        let connections = step.0..self.connections.len();
        if !connections.is_empty() {
            let start = self.frames.len();
            put_event(&mut self.frames, kind, path, zxid);
            self.steps.push(Step {
                kind,
                frame: start..self.frames.len(),
                connections: connections.clone(),
                acl,
            });
        }
        connections
    }
}
