//! Virtual time: what happens when.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Microseconds since the simulation began.
pub type Micros = u64;

/// Microseconds of a millisecond.
pub const MS: Micros = 1_000;

/// Microseconds of a second.
pub const SECOND: Micros = 1_000_000;

/// Events in the order in which they happen: by time, then by the order in which they were planned.
#[derive(Debug)]
pub struct Schedule<E> {
    now: Micros,
    planned: u64,
    heap: BinaryHeap<Planned<E>>,
}

#[derive(Debug)]
struct Planned<E> {
    at: Micros,
    number: u64,
    event: E,
}

impl<E> Default for Schedule<E> {
    fn default() -> Self {
        Schedule {
            now: 0,
            planned: 0,
            heap: BinaryHeap::new(),
        }
    }
}

impl<E> Schedule<E> {
    /// The present.
    pub fn now(&self) -> Micros {
        self.now
    }

    /// Plans an event `delay` from now.
    pub fn after(&mut self, delay: Micros, event: E) {
        self.at(self.now + delay, event);
    }

    /// Plans an event at a time, at once if that is past.
    pub fn at(&mut self, at: Micros, event: E) {
        self.planned += 1;
        self.heap.push(Planned {
            at: at.max(self.now),
            number: self.planned,
            event,
        });
    }

    /// The next event, to whose time the present moves, unless it is later than `end`.
    pub fn next_until(&mut self, end: Micros) -> Option<E> {
        if self.heap.peek()?.at > end {
            return None;
        }
        let planned = self.heap.pop()?;
        self.now = planned.at;
        Some(planned.event)
    }
}

impl<E> PartialEq for Planned<E> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}

impl<E> Eq for Planned<E> {}

impl<E> PartialOrd for Planned<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Planned<E> {
    /// The heap gives its largest first: that is the earliest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_then_by_plan() {
        let mut schedule = Schedule::default();
        schedule.at(20, 'c');
        schedule.at(10, 'a');
        schedule.at(10, 'b');
        schedule.at(99, 'd');
        let mut seen = String::new();
        while let Some(event) = schedule.next_until(50) {
            seen.push(event);
        }
        assert_eq!((seen.as_str(), schedule.now()), ("abc", 20));
        schedule.at(5, 'e');
        assert_eq!(schedule.next_until(50), Some('e'));
        assert_eq!(schedule.now(), 20);
    }
}
