//! Fixed work whose instructions are counted: `integration/instructions/run` has callgrind do it, and compares with what is
//! recorded there.
//!
//! Alone it does every round once and prints the names: a name as the argument leaves out the others. Nothing depends on
//! time, chance or threads.

mod consensus_work;
mod frames;
mod machine;
mod reads;
mod records;
mod state;
mod work;
mod writes;

use work::Work;

/// The server's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let wanted = std::env::args().nth(1);
    let is_wanted = |work: &Work| wanted.as_ref().is_none_or(|name| *name == work.name);
    for work in all().into_iter().filter(is_wanted) {
        let mut round = (work.prepare)();
        // The first one finds buffers that have to grow.
        round.ready();
        round.run();
        round.ready();
        counted_by_callgrind(&mut *round);
        println!("{}\t{}", work.operations, work.name);
    }
}

fn all() -> Vec<Work> {
    let groups = [
        reads::all(),
        writes::all(),
        records::all(),
        consensus_work::all(),
        state::all(),
    ];
    groups.into_iter().flatten().collect()
}

/// The script knows it by its name: what runs in it counts.
#[inline(never)]
fn counted_by_callgrind(round: &mut dyn work::Round) {
    round.run();
    // Without this there would be a jump to the round instead of a call, and nothing in here.
    std::hint::black_box(());
}
