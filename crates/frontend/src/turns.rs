//! Who goes on next of the connections that a bound over all of them holds back.

use std::collections::VecDeque;

/// Most requests of one turn. Few would cost each of them a wake-up, many would let the others wait long.
const TURN_MAX: usize = 128;

/// Turns that the bound is divided into at least.
const TURNS_MIN: usize = 8;

/// Connections that are held back, in the order in which they came.
///
/// A turn is a number of requests that its connection may take at once. It is given when there is room for half of it, and
/// who needs more comes again behind the others. Thus requests are taken in batches, and everybody waits for as many of them.
#[derive(Debug)]
pub struct Turns<C> {
    waiting: VecDeque<C>,
}

impl<C> Default for Turns<C> {
    fn default() -> Self {
        Turns {
            waiting: VecDeque::new(),
        }
    }
}

impl<C> Turns<C> {
    /// Whether nobody is held back.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Held back behind all others. Nobody is to wait twice.
    pub fn wait(&mut self, connection: C) {
        self.waiting.push_back(connection);
    }

    /// Whose turn it is, and for how many requests, while `queued` requests wait over all connections, turns that were
    /// given and not used yet included. `bound` is for all of them, or one for each that is held back if these are more.
    pub fn next(&mut self, queued: usize, bound: usize) -> Option<(C, usize)> {
        let bound = bound.max(self.waiting.len());
        let whole = (bound / TURNS_MIN).clamp(1, TURN_MAX);
        let turn = bound.saturating_sub(queued).min(whole);
        if turn < whole.div_ceil(2) {
            return None;
        }
        Some((self.waiting.pop_front()?, turn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that are held back always want more; what is in flight is answered, the oldest first, so many in a step.
    /// Gives what each was served and the most that waited at once.
    fn serve(clients: usize, bound: usize, answered: usize, steps: usize) -> (Vec<usize>, usize) {
        let mut turns = Turns::default();
        let mut served = vec![0; clients];
        let (mut in_flight, mut most) = (VecDeque::new(), 0);
        (0..clients).for_each(|client| turns.wait(client));
        for _ in 0..steps {
            while let Some((client, turn)) = turns.next(in_flight.len(), bound) {
                in_flight.extend(std::iter::repeat_n(client, turn));
                turns.wait(client);
            }
            most = most.max(in_flight.len());
            for client in in_flight.drain(..answered.min(in_flight.len())) {
                served[client] += 1;
            }
        }
        (served, most)
    }

    #[test]
    fn all_are_served_alike_and_the_bound_holds() {
        for (clients, bound, answered) in [(50, 1000, 333), (3, 1000, 1), (50, 1000, 1), (7, 10, 4)]
        {
            let (served, most) = serve(clients, bound, answered, 100_000 / answered);
            let (least, greatest) = (served.iter().min(), served.iter().max());
            let difference = greatest.unwrap() - least.unwrap();
            assert!(most <= bound, "{most} of {bound}");
            assert!(
                difference <= 2 * TURN_MAX,
                "{clients} clients, bound {bound}: {served:?}"
            );
        }
    }

    #[test]
    fn each_may_have_one_where_they_are_more_than_the_bound() {
        let (served, most) = serve(100, 1, 50, 100);
        assert!((50..=100).contains(&most), "{most}");
        assert!(served.iter().all(|served| *served > 0), "{served:?}");
    }

    #[test]
    fn a_turn_is_not_given_in_small_pieces() {
        let mut turns = Turns::default();
        "abc".chars().for_each(|name| turns.wait(name));
        assert_eq!(turns.next(938, 1000), None);
        assert_eq!(turns.next(937, 1000), Some(('a', 63)));
        assert_eq!(turns.next(800, 1000), Some(('b', 125)));
        assert_eq!(turns.next(1000, 1000), None);
        assert_eq!(turns.next(1100, 1000), None);
        assert_eq!(turns.next(0, usize::MAX), Some(('c', TURN_MAX)));
        assert_eq!(turns.next(0, 1000), None);
        assert!(turns.is_empty());
    }
}
