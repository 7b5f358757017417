//! Seeds that run with every build.

use quenda_sim::plan::Mutation;
use quenda_sim::sim;
use quenda_sim::trace::TraceMode;

#[test]
fn the_same_seed_gives_the_same_trace() {
    for seed in 0..12 {
        let first = sim::run(seed, None, TraceMode::Off);
        let second = sim::run(seed, None, TraceMode::Tail);
        assert_eq!(
            (first.hash, first.events),
            (second.hash, second.events),
            "seed {seed}"
        );
        assert_ne!(
            first.hash,
            sim::run(seed + 1_000, None, TraceMode::Off).hash
        );
    }
}

#[test]
fn no_promise_is_broken() {
    for seed in 0..40 {
        let outcome = sim::run(seed, None, TraceMode::Off);
        assert_eq!(outcome.violation, None, "seed {seed}");
    }
}

/// A checker that finds nothing in a broken product is worth nothing.
#[test]
fn faults_of_the_host_are_found() {
    for (name, mutation) in Mutation::ALL {
        let found = (0..400)
            .map(|seed| sim::run(seed, Some(mutation), TraceMode::Off))
            .find_map(|outcome| outcome.violation.map(|text| (outcome.seed, text)));
        let (seed, text) = found.unwrap_or_else(|| panic!("{name} is not found"));
        println!("{name}: seed {seed}: {text}");
    }
}
