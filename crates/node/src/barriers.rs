//! Barriers: who waits for one has seen everything that was committed anywhere before it asked.

use std::collections::{BTreeMap, VecDeque};

use crate::limits::{BARRIER_RETRY_TICKS, BARRIERS_ASKED};

/// Who waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiter {
    /// A client connection.
    Connection(u64),
    /// The member itself, which serves nobody before it has caught up.
    Gate,
}

/// A read index that was asked for.
#[derive(Debug)]
struct Asked {
    context: u64,
    tick: u64,
    waiters: Vec<Waiter>,
}

/// Barriers on their way.
#[derive(Debug)]
pub struct Barriers {
    next_context: u64,
    /// Have not been asked for.
    waiting: Vec<Waiter>,
    asked: VecDeque<Asked>,
    /// The newest of them is old: the answer may be lost.
    late: bool,
    /// By the index that has to be applied first.
    known: BTreeMap<u64, Vec<Waiter>>,
}

impl Barriers {
    /// No context is ever used twice, by this run or another of the member.
    pub fn new(incarnation: u64) -> Barriers {
        Barriers {
            next_context: incarnation << 20,
            waiting: Vec::new(),
            asked: VecDeque::new(),
            late: false,
            known: BTreeMap::new(),
        }
    }

    /// Another run of this member is known that seems to be later than this one.
    pub fn outrun(&mut self, incarnation: u64) {
        self.next_context = self.next_context.max(incarnation.saturating_add(1) << 20);
    }

    /// Somebody wants a barrier.
    pub fn wait(&mut self, waiter: Waiter) {
        self.waiting.push(waiter);
    }

    /// Whether the member's own barrier is on its way.
    pub fn has_gate(&self) -> bool {
        self.all().any(|waiter| *waiter == Waiter::Gate)
    }

    /// How many connections wait.
    pub fn connections(&self) -> usize {
        self.all().filter(|waiter| **waiter != Waiter::Gate).count()
    }

    fn all(&self) -> impl Iterator<Item = &Waiter> {
        let asked = self.asked.iter().flat_map(|asked| &asked.waiters);
        let known = self.known.values().flatten();
        self.waiting.iter().chain(asked).chain(known)
    }

    /// The context of a read index that is to be asked for now, on behalf of all who wait.
    pub fn next(&self) -> Option<u64> {
        let some = (self.late || !self.waiting.is_empty()) && self.asked.len() < BARRIERS_ASKED;
        some.then_some(self.next_context)
    }

    /// The read index of [`Barriers::next`] was asked for.
    pub fn asked(&mut self, tick: u64) {
        self.asked.push_back(Asked {
            context: self.next_context,
            tick,
            waiters: std::mem::take(&mut self.waiting),
        });
        self.next_context += 1;
        self.late = false;
    }

    /// A read index is known. It serves those too who asked earlier.
    pub fn answered(&mut self, context: u64, index: u64) {
        let Some(position) = self.asked.iter().position(|asked| asked.context == context) else {
            return;
        };
        let waiters = self.known.entry(index).or_default();
        for asked in self.asked.drain(..=position) {
            waiters.extend(asked.waiters);
        }
        self.late &= !self.asked.is_empty();
    }

    /// What was asked for long ago may be lost: it is asked for again, with a new context. The answer to the
    /// old one counts nevertheless: the way there and back may simply be longer than that.
    pub fn retry(&mut self, tick: u64) {
        let old = |asked: &Asked| tick >= asked.tick + BARRIER_RETRY_TICKS;
        self.late = self.asked.back().is_some_and(old);
        if self.late && self.asked.len() >= BARRIERS_ASKED {
            // Whoever asked first may as well wait for the next one.
            let first = self.asked.pop_front().map(|asked| asked.waiters);
            if let Some(next) = self.asked.front_mut() {
                next.waiters.extend(first.unwrap_or_default());
            }
        }
    }

    /// Everything that was asked for is asked for again: there is a new leader.
    pub fn restart(&mut self) {
        for asked in self.asked.drain(..) {
            self.waiting.extend(asked.waiters);
        }
        self.late = false;
    }

    /// Connections are closed: nobody but the member itself waits any more.
    pub fn abandon(&mut self) {
        let gate = self.has_gate();
        self.waiting.clear();
        self.asked.clear();
        self.late = false;
        self.known.clear();
        if gate {
            self.wait(Waiter::Gate);
        }
    }

    /// Entries up to `index` are applied: who has passed.
    pub fn passed(&mut self, index: u64) -> Vec<Waiter> {
        let mut passed = Vec::new();
        while let Some(entry) = self.known.first_entry()
            && *entry.key() <= index
        {
            passed.extend(entry.remove());
        }
        passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Waiter::{Connection, Gate};

    #[test]
    fn one_read_index_serves_all_who_waited_and_nobody_who_came_later() {
        let mut barriers = Barriers::new(1);
        assert_eq!(barriers.next(), None);
        barriers.wait(Connection(1));
        barriers.wait(Connection(2));
        assert_eq!(barriers.connections(), 2);
        let context = barriers.next().expect("two wait");
        barriers.asked(0);
        barriers.wait(Connection(3));
        barriers.answered(context, 10);
        assert_eq!(barriers.passed(9), []);
        assert_eq!(barriers.passed(10), [Connection(1), Connection(2)]);
        assert!(barriers.next().is_some_and(|next| next > context));
    }

    #[test]
    fn what_vanished_is_asked_for_again_with_a_new_context() {
        let mut barriers = Barriers::new(1);
        barriers.wait(Gate);
        let first = barriers.next().expect("one waits");
        barriers.asked(0);
        barriers.retry(BARRIER_RETRY_TICKS - 1);
        assert_eq!(barriers.next(), None);
        barriers.retry(BARRIER_RETRY_TICKS);
        let second = barriers.next().expect("it waits again");
        assert_ne!(first, second);
        barriers.asked(BARRIER_RETRY_TICKS);
        barriers.wait(Connection(1));
        barriers.asked(BARRIER_RETRY_TICKS);
        barriers.answered(second, 5);
        assert_eq!(barriers.passed(5), [Gate]);
        barriers.answered(first, 5);
        assert_eq!(barriers.passed(5), []);
        assert_eq!(barriers.connections(), 1);
    }

    #[test]
    fn an_answer_that_takes_longer_than_the_patience_counts() {
        let mut barriers = Barriers::new(1);
        barriers.wait(Gate);
        let first = barriers.next().expect("one waits");
        barriers.asked(0);
        for round in 1..3 * BARRIERS_ASKED as u64 {
            let tick = round * BARRIER_RETRY_TICKS;
            barriers.retry(tick);
            assert!(barriers.next().is_some(), "asked again");
            barriers.asked(tick);
            assert_eq!(barriers.next(), None, "once");
        }
        assert!(barriers.has_gate());
        let old = first + 2 * BARRIERS_ASKED as u64;
        barriers.answered(old, 5);
        assert_eq!(barriers.passed(5), [Gate]);
        assert_eq!(barriers.next(), None);
    }

    #[test]
    fn a_later_answer_serves_earlier_questions() {
        let mut barriers = Barriers::new(1);
        barriers.wait(Connection(1));
        barriers.asked(0);
        barriers.wait(Connection(2));
        let second = barriers.next().expect("one waits");
        barriers.asked(0);
        barriers.answered(second, 7);
        assert_eq!(barriers.passed(7), [Connection(1), Connection(2)]);
    }

    #[test]
    fn only_the_gate_outlives_an_era() {
        let mut barriers = Barriers::new(1);
        barriers.wait(Connection(1));
        barriers.wait(Gate);
        barriers.asked(0);
        barriers.abandon();
        let context = barriers.next().expect("the gate waits");
        barriers.asked(0);
        barriers.answered(context, 1);
        assert_eq!(barriers.passed(1), [Gate]);
    }
}
