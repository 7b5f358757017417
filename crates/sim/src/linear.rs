//! Is there an order of the operations on one znode that explains what the clients saw? The search is
//! Wing and Gong's with Lowe's cache of configurations.
//!
//! An operation takes effect at one moment between its call and its return; one of unknown fate at any
//! moment after its call, or never.

use std::collections::HashSet;

/// Configurations that one search looks at before it gives up.
const STEPS_MAX: usize = 300_000;

/// What a znode holds: a number for its data, and its version.
pub type State = Option<(u32, i32)>;

/// An operation together with what its client was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A read, and what it saw.
    Read(State),
    /// setData of this value, if the version (-1: any) fits.
    Set(u32, i32, Outcome),
    /// create with this value.
    Create(u32, Outcome),
    /// delete, if the version (-1: any) fits.
    Delete(i32, Outcome),
    /// It becomes this, whatever it was: a snapshot is restored.
    Become(State),
}

/// What the client was told about a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Done; for a set the version it led to.
    Done(i32),
    /// The znode is missing.
    NoNode,
    /// The znode is there.
    NodeExists,
    /// Another version.
    BadVersion,
    /// Nothing: the connection broke.
    Unknown,
}

/// One operation of a history. Times are any numbers that order calls and returns.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    /// When it was sent.
    pub call: u64,
    /// When its answer came; the end of time for unknown fates.
    pub ret: u64,
    /// What.
    pub action: Action,
}

/// The verdict about a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Some order explains it.
    Linearizable,
    /// None does. The longest order that was found explains this many operations, and none of those in
    /// the list may come next.
    Violation {
        /// Length of that order.
        explained: usize,
        /// Indices of the operations that could not follow.
        stuck: Vec<usize>,
    },
    /// The search took too long.
    Undecided,
}

/// The state after an action, or `None` if what its client was told contradicts `state`.
fn step(state: State, action: Action) -> Option<State> {
    match action {
        Action::Read(seen) => (seen == state).then_some(state),
        Action::Become(after) => Some(after),
        Action::Set(value, expected, outcome) => {
            let (verdict, after) = match state {
                None => (Outcome::NoNode, state),
                Some((_, version)) if expected != -1 && expected != version => {
                    (Outcome::BadVersion, state)
                }
                Some((_, version)) => (Outcome::Done(version + 1), Some((value, version + 1))),
            };
            agree(outcome, verdict, after)
        }
        Action::Create(value, outcome) => {
            let (verdict, after) = match state {
                None => (Outcome::Done(0), Some((value, 0))),
                Some(_) => (Outcome::NodeExists, state),
            };
            agree(outcome, verdict, after)
        }
        Action::Delete(expected, outcome) => {
            let (verdict, after) = match state {
                None => (Outcome::NoNode, None),
                Some((_, version)) if expected != -1 && expected != version => {
                    (Outcome::BadVersion, state)
                }
                Some(_) => (Outcome::Done(0), None),
            };
            agree(outcome, verdict, after)
        }
    }
}

fn agree(told: Outcome, verdict: Outcome, after: State) -> Option<State> {
    (told == Outcome::Unknown || told == verdict).then_some(after)
}

/// A set of operations.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Set(Vec<u64>);

impl Set {
    fn flip(&mut self, index: usize) {
        self.0[index / 64] ^= 1 << (index % 64);
    }
}

/// Calls and returns in a doubly linked list, so that operations can be lifted out and put back.
struct List {
    /// (operation, is a call)
    marks: Vec<(usize, bool)>,
    next: Vec<usize>,
    prev: Vec<usize>,
    call_at: Vec<usize>,
    return_at: Vec<usize>,
}

impl List {
    fn new(operations: &[Operation]) -> List {
        let mut marks: Vec<(u64, bool, usize)> = Vec::new();
        for (index, operation) in operations.iter().enumerate() {
            // At equal times calls come first: that allows more orders.
            marks.push((operation.call, false, index));
            marks.push((operation.ret, true, index));
        }
        marks.sort_unstable();
        let count = marks.len();
        let mut call_at = vec![0; operations.len()];
        let mut return_at = vec![0; operations.len()];
        // Place 0 is the head; the end is `count + 1`.
        for (place, (_, is_return, index)) in marks.iter().enumerate() {
            let at = if *is_return {
                &mut return_at
            } else {
                &mut call_at
            };
            at[*index] = place + 1;
        }
        List {
            marks: std::iter::once((usize::MAX, false))
                .chain(
                    marks
                        .iter()
                        .map(|(_, is_return, index)| (*index, !is_return)),
                )
                .collect(),
            next: (1..=count + 2).collect(),
            prev: (0..count + 2)
                .map(|place| place.saturating_sub(1))
                .collect(),
            call_at,
            return_at,
        }
    }

    fn end(&self) -> usize {
        self.marks.len()
    }

    fn unlink(&mut self, place: usize) {
        let (prev, next) = (self.prev[place], self.next[place]);
        self.next[prev] = next;
        self.prev[next] = prev;
    }

    fn relink(&mut self, place: usize) {
        let (prev, next) = (self.prev[place], self.next[place]);
        self.next[prev] = place;
        self.prev[next] = place;
    }

    fn lift(&mut self, operation: usize) {
        self.unlink(self.call_at[operation]);
        self.unlink(self.return_at[operation]);
    }

    fn unlift(&mut self, operation: usize) {
        self.relink(self.return_at[operation]);
        self.relink(self.call_at[operation]);
    }
}

/// Looks for an order that explains the history of one znode, which starts as `initial`.
///
/// Operations whose client was told something are tried first: those that may or may not have happened are
/// put in only where nothing else can follow, or their orders alone would be too many.
pub fn check(initial: State, operations: &[Operation]) -> Verdict {
    let mut list = List::new(operations);
    let mut cache: HashSet<(Set, State)> = HashSet::new();
    let mut done = Set(vec![0; operations.len().div_ceil(64)]);
    let mut order: Vec<(usize, State, bool)> = Vec::new();
    let mut state = initial;
    let mut place = list.next[0];
    let is_known = |operation: usize| operations[operation].ret != u64::MAX;
    let mut known = (0..operations.len()).filter(|at| is_known(*at)).count();
    let mut unknown_turn = false;
    let mut best = (0, Vec::new());
    let mut steps = 0;
    while known > 0 {
        steps += 1;
        if steps > STEPS_MAX {
            return Verdict::Undecided;
        }
        let (operation, is_call) = if place == list.end() {
            (usize::MAX, false)
        } else {
            list.marks[place]
        };
        if is_call {
            // One of unknown fate that changes nothing need not have happened.
            let may_come = |after: &State| is_known(operation) || *after != state;
            if is_known(operation) != unknown_turn
                && let Some(after) = step(state, operations[operation].action).filter(may_come)
            {
                done.flip(operation);
                if cache.insert((done.clone(), after)) {
                    // One that changes nothing loses nothing by coming as early as it can; but a restore may
                    // change something later.
                    let is_restore = matches!(operations[operation].action, Action::Become(_));
                    order.push((operation, state, after == state && !is_restore));
                    state = after;
                    list.lift(operation);
                    known -= usize::from(is_known(operation));
                    (place, unknown_turn) = (list.next[0], false);
                    continue;
                }
                done.flip(operation);
            }
            place = list.next[place];
            continue;
        }
        if !unknown_turn {
            (place, unknown_turn) = (list.next[0], true);
            continue;
        }
        if order.len() >= best.0 {
            best = (order.len(), candidates(&list, place));
        }
        loop {
            let Some((operation, before, settled)) = order.pop() else {
                return Verdict::Violation {
                    explained: best.0,
                    stuck: best.1,
                };
            };
            state = before;
            done.flip(operation);
            list.unlift(operation);
            known += usize::from(is_known(operation));
            place = list.next[list.call_at[operation]];
            unknown_turn = !is_known(operation);
            if !settled {
                break;
            }
        }
    }
    Verdict::Linearizable
}

/// Operations that are called before `place` and not in the order yet.
fn candidates(list: &List, place: usize) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at = list.next[0];
    while at != place && at != list.end() {
        if list.marks[at].1 {
            found.push(list.marks[at].0);
        }
        at = list.next[at];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: u64 = u64::MAX;

    fn op(call: u64, ret: u64, action: Action) -> Operation {
        Operation { call, ret, action }
    }

    fn created() -> Operation {
        op(0, 1, Action::Create(1, Outcome::Done(0)))
    }

    fn is_good(operations: &[Operation]) -> bool {
        match check(None, operations) {
            Verdict::Linearizable => true,
            Verdict::Violation { .. } => false,
            Verdict::Undecided => panic!("undecided"),
        }
    }

    #[test]
    fn a_sequence_is_good() {
        assert!(is_good(&[
            created(),
            op(2, 3, Action::Read(Some((1, 0)))),
            op(4, 5, Action::Set(2, 0, Outcome::Done(1))),
            op(6, 7, Action::Set(3, 0, Outcome::BadVersion)),
            op(8, 9, Action::Read(Some((2, 1)))),
            op(10, 11, Action::Delete(-1, Outcome::Done(0))),
            op(12, 13, Action::Read(None)),
            op(14, 15, Action::Set(4, -1, Outcome::NoNode)),
            op(16, 17, Action::Create(5, Outcome::Done(0))),
            op(18, 19, Action::Create(6, Outcome::NodeExists)),
        ]));
    }

    #[test]
    fn a_restore_may_come_where_it_changes_something() {
        let restored = op(0, 9, Action::Become(None));
        let made = op(1, 4, Action::Create(1, Outcome::Done(0)));
        assert!(is_good(&[restored, made, op(10, 11, Action::Read(None))]));
        let seen = op(10, 11, Action::Read(Some((1, 0))));
        assert!(is_good(&[restored, made, seen]));
        let late = op(5, 9, Action::Become(None));
        assert!(!is_good(&[late, made, seen]));
    }

    #[test]
    fn a_stale_read_is_bad() {
        assert!(!is_good(&[
            created(),
            op(2, 3, Action::Set(2, -1, Outcome::Done(1))),
            op(4, 5, Action::Read(Some((1, 0)))),
        ]));
    }

    #[test]
    fn overlapping_operations_may_come_in_either_order() {
        for seen in [Some((1, 0)), Some((2, 1))] {
            assert!(is_good(&[
                created(),
                op(2, 9, Action::Set(2, -1, Outcome::Done(1))),
                op(3, 8, Action::Read(seen)),
            ]));
        }
    }

    #[test]
    fn two_reads_do_not_go_back() {
        assert!(!is_good(&[
            created(),
            op(2, 9, Action::Set(2, -1, Outcome::Done(1))),
            op(3, 4, Action::Read(Some((2, 1)))),
            op(5, 6, Action::Read(Some((1, 0)))),
        ]));
    }

    #[test]
    fn a_lost_write_is_bad() {
        assert!(!is_good(&[
            created(),
            op(2, 3, Action::Set(2, -1, Outcome::Done(1))),
            op(4, 5, Action::Set(3, -1, Outcome::Done(1))),
        ]));
    }

    #[test]
    fn a_write_of_unknown_fate_may_happen_late_or_never() {
        let unknown = op(2, NEVER, Action::Set(2, -1, Outcome::Unknown));
        assert!(is_good(&[
            created(),
            unknown,
            op(3, 4, Action::Read(Some((1, 0)))),
        ]));
        assert!(is_good(&[
            created(),
            unknown,
            op(3, 4, Action::Read(Some((1, 0)))),
            op(5, 6, Action::Read(Some((2, 1)))),
        ]));
        assert!(is_good(&[
            created(),
            unknown,
            op(3, 4, Action::Set(3, -1, Outcome::Done(2))),
        ]));
    }

    #[test]
    fn a_write_of_unknown_fate_happens_at_most_once() {
        let unknown = op(2, NEVER, Action::Set(2, -1, Outcome::Unknown));
        assert!(!is_good(&[
            created(),
            unknown,
            op(3, 4, Action::Set(3, -1, Outcome::Done(3))),
        ]));
        assert!(!is_good(&[
            created(),
            unknown,
            op(3, 4, Action::Read(Some((2, 1)))),
            op(5, 6, Action::Set(3, -1, Outcome::Done(2))),
            op(7, 8, Action::Read(Some((2, 3)))),
        ]));
    }

    #[test]
    fn an_unknown_write_cannot_happen_before_its_call() {
        assert!(!is_good(&[
            created(),
            op(2, 3, Action::Read(Some((2, 1)))),
            op(4, NEVER, Action::Set(2, -1, Outcome::Unknown)),
        ]));
    }

    #[test]
    fn many_unknown_writes_are_decided() {
        let mut operations = vec![created()];
        for value in 2..60 {
            operations.push(op(2, NEVER, Action::Set(value, -1, Outcome::Unknown)));
        }
        let mut time = 3;
        for version in 0..50 {
            let seen = Action::Read(Some((version as u32 + 1, version)));
            operations.push(op(time, time + 1, seen));
            time += 2;
        }
        assert!(is_good(&operations));
        operations.push(op(time, time + 1, Action::Read(Some((1, 0)))));
        assert_ne!(check(None, &operations), Verdict::Linearizable);
    }

    #[test]
    fn a_random_serial_history_with_stretched_intervals_is_good_and_a_changed_one_is_not() {
        let mut rng = crate::rng::Rng::new(11);
        for round in 0..50 {
            let mut state = None;
            let mut operations = Vec::new();
            for at in 0..200u64 {
                let value = at as u32;
                let expected = if rng.percent(30) { 1 } else { -1 };
                let mut action = match rng.below(5) {
                    0 => Action::Create(value, Outcome::Unknown),
                    1 => Action::Delete(expected, Outcome::Unknown),
                    2 | 3 => Action::Set(value, expected, Outcome::Unknown),
                    _ => Action::Read(state),
                };
                let told = verdict(state, action);
                match &mut action {
                    Action::Create(_, outcome)
                    | Action::Delete(_, outcome)
                    | Action::Set(_, _, outcome) => *outcome = told,
                    Action::Read(_) | Action::Become(_) => {}
                }
                state = step(state, action).expect("its own verdict");
                let time = 1_000 + at * 10;
                operations.push(op(time - rng.below(25), time + rng.below(25), action));
            }
            assert!(is_good(&operations), "round {round}");
            let last = operations.last().expect("some").ret;
            operations.push(op(last + 50, last + 51, Action::Read(Some((9_999, 9_999)))));
            assert!(!is_good(&operations), "round {round}");
        }
    }

    fn verdict(state: State, action: Action) -> Outcome {
        for outcome in [Outcome::NoNode, Outcome::NodeExists, Outcome::BadVersion] {
            let told = match action {
                Action::Create(value, _) => Action::Create(value, outcome),
                Action::Delete(expected, _) => Action::Delete(expected, outcome),
                Action::Set(value, expected, _) => Action::Set(value, expected, outcome),
                Action::Read(_) | Action::Become(_) => return Outcome::Unknown,
            };
            if step(state, told).is_some() {
                return outcome;
            }
        }
        match (action, state) {
            (Action::Set(..), Some((_, version))) => Outcome::Done(version + 1),
            _ => Outcome::Done(0),
        }
    }
}
