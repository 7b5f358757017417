//! What holds a connection back before it takes requests: bounds over all connections of a member.

use std::collections::VecDeque;

/// A client that wants a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Newcomer {
    /// A new one.
    Opens,
    /// A new one that only this member is to know.
    OpensLocally,
    /// One that it has.
    Resumes,
}

/// Decides who may have a session now.
pub trait Admission {
    /// Whether the client may go on. `now_ms` is monotonic.
    fn admit(&self, newcomer: Newcomer, now_ms: u64) -> bool;
}

/// The bounds as they are at the begin of a call; what the call itself adds is counted on top.
#[derive(Clone, Copy)]
pub struct Gates<'a> {
    /// Requests that this connection may queue on top. Beyond them it takes a write only if that is all it has.
    pub busy_room: usize,
    /// Requests that may be queued on top, over all connections, before nobody takes any.
    pub room: usize,
    /// Bytes of large requests that may be in flight on top.
    pub large_room: usize,
    /// Who decides about new sessions; none if nobody is turned away.
    pub admission: Option<&'a dyn Admission>,
}

impl Default for Gates<'_> {
    /// No bounds.
    fn default() -> Self {
        Gates {
            busy_room: usize::MAX,
            room: usize::MAX,
            large_room: usize::MAX,
            admission: None,
        }
    }
}

/// Bounds that do not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Throttling {
    /// Time that a request may have waited to be taken, ms; one that waited longer is answered with ThrottledOp
    /// (`throttled_op_wait_time`). Default: any.
    pub op_wait_ms: u64,
    /// Whether requests are counted that waited for longer than their session lasts (`request_stale_latency_check`).
    pub stale_by_latency: bool,
    /// Bytes above which a request is large (`largeRequestThreshold`). Default: none is.
    pub large_threshold: usize,
}

impl Default for Throttling {
    fn default() -> Self {
        Throttling {
            op_wait_ms: u64::MAX,
            large_threshold: usize::MAX,
            stale_by_latency: false,
        }
    }
}

/// When the bytes came that wait to be taken.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    /// Bytes that were taken since the begin of the connection.
    taken: u64,
    /// Apart, and none while nothing waits: most connections are never held back.
    marks: Option<Box<Marks>>,
}

/// Up to which byte something had come, and when; the oldest first.
type Marks = VecDeque<(u64, u64)>;

/// Marks that are kept. Beyond them what came last counts as come later.
const MARKS_MAX: usize = 64;

impl Arrivals {
    /// So many bytes wait now.
    pub fn wait(&mut self, bytes: usize, now_ms: u64) {
        let end = self.taken + bytes as u64;
        let marks = self.marks.get_or_insert_default();
        let is_full = marks.len() >= MARKS_MAX;
        match marks.back_mut() {
            Some((known, _)) if *known >= end => {}
            Some(last) if is_full => *last = (end, now_ms),
            Some(_) | None => marks.push_back((end, now_ms)),
        }
    }

    /// A frame of this length is taken; how long it has waited since its last byte was seen.
    pub fn take(&mut self, bytes: usize, now_ms: u64) -> u64 {
        self.taken += bytes as u64;
        let Some(marks) = &mut self.marks else {
            return 0;
        };
        while marks.front().is_some_and(|(end, _)| *end < self.taken) {
            marks.pop_front();
        }
        let since = marks.front().map_or(now_ms, |(_, since)| *since);
        if marks.back().is_none_or(|(end, _)| *end <= self.taken) {
            self.marks = None;
        }
        now_ms.saturating_sub(since)
    }

    /// How long the oldest byte has waited.
    pub fn oldest_ms(&self, now_ms: u64) -> u64 {
        let oldest = self.marks.as_ref().and_then(|marks| marks.front());
        oldest.map_or(0, |(_, since)| now_ms.saturating_sub(*since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_frame_has_waited_since_it_came() {
        let mut arrivals = Arrivals::default();
        assert_eq!(arrivals.take(10, 5), 0);
        arrivals.wait(30, 100);
        arrivals.wait(30, 150);
        arrivals.wait(70, 200);
        assert_eq!(arrivals.oldest_ms(300), 200);
        assert_eq!(arrivals.take(30, 300), 200);
        // The frame was not whole before its last bytes had come.
        assert_eq!(arrivals.take(40, 300), 100);
        assert_eq!((arrivals.take(10, 300), arrivals.oldest_ms(400)), (0, 0));
    }

    #[test]
    fn a_client_cannot_make_it_grow_for_ever() {
        let mut arrivals = Arrivals::default();
        for bytes in 1..10_000 {
            arrivals.wait(bytes, bytes as u64);
        }
        assert_eq!(arrivals.marks.map(|marks| marks.len()), Some(MARKS_MAX));
    }
}
