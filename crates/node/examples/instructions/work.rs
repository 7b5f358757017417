//! A piece of work that is counted.

/// Work under a name.
pub struct Work {
    /// As it is recorded.
    pub name: &'static str,
    /// How many operations a round has.
    pub operations: usize,
    /// Makes everything that is there before.
    pub prepare: Box<dyn Fn() -> Box<dyn Round>>,
}

/// What is done again and again.
pub trait Round {
    /// Makes ready for the next round. Does not count.
    fn ready(&mut self);
    /// The round.
    fn run(&mut self);
}

/// A round on a state.
struct On<S> {
    state: S,
    operations: usize,
    ready: fn(&mut S, usize),
    run: fn(&mut S, usize),
}

impl<S> Round for On<S> {
    fn ready(&mut self) {
        (self.ready)(&mut self.state, self.operations);
    }

    fn run(&mut self) {
        (self.run)(&mut self.state, self.operations);
    }
}

/// Work of `operations` a round on what `prepare` makes.
pub fn work<S: 'static>(
    name: &'static str,
    operations: usize,
    prepare: fn() -> S,
    ready: fn(&mut S, usize),
    run: fn(&mut S, usize),
) -> Work {
    let prepare = move || -> Box<dyn Round> {
        Box::new(On {
            state: prepare(),
            operations,
            ready,
            run,
        })
    };
    Work {
        name,
        operations,
        prepare: Box::new(prepare),
    }
}

/// For rounds that need nothing in front of them.
pub fn nothing<S>(_: &mut S, _: usize) {}
