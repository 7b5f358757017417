//! Runs seeds and tells which of them break a promise.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quenda_sim::Counters;
use quenda_sim::plan::Mutation;
use quenda_sim::sim::{self, Outcome};
use quenda_sim::trace::TraceMode;

const USAGE: &str = "usage: quenda-sim [--seed N [--trace]] [--seeds A..B] [--minutes M] [--jobs J] \
    [--mutation NAME] [--keep-going]";

/// Lines of the trace that are shown for a seed that fails.
const TAIL: usize = 60;

/// Seeds between two lines that tell how far the run is.
const PROGRESS: u64 = 500;

struct Options {
    seeds: std::ops::Range<u64>,
    trace: bool,
    minutes: Option<u64>,
    jobs: usize,
    mutation: Option<Mutation>,
    keep_going: bool,
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        seeds: 0..200,
        trace: false,
        minutes: None,
        jobs: 1,
        mutation: None,
        keep_going: false,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let mut value = || {
            arguments
                .next()
                .ok_or(format!("{name} needs a value\n{USAGE}"))
        };
        let number = |text: &str| {
            text.parse::<u64>()
                .map_err(|_| format!("{text} is not a number\n{USAGE}"))
        };
        match name.as_str() {
            "--seed" => {
                let seed = number(&value()?)?;
                options.seeds = seed..seed + 1;
            }
            "--seeds" => {
                let text = value()?;
                let (from, to) = text.split_once("..").ok_or(USAGE)?;
                options.seeds = number(from)?..number(to)?;
            }
            "--minutes" => options.minutes = Some(number(&value()?)?),
            "--jobs" => options.jobs = number(&value()?)?.max(1) as usize,
            "--mutation" => {
                let wanted = value()?;
                let found = Mutation::ALL.iter().find(|(name, _)| *name == wanted);
                let (_, mutation) = found.ok_or(format!("no mutation is called {wanted}"))?;
                options.mutation = Some(*mutation);
            }
            "--trace" => options.trace = true,
            "--keep-going" => options.keep_going = true,
            _ => return Err(format!("{name} is unknown\n{USAGE}")),
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(text) => {
            eprintln!("{text}");
            return ExitCode::from(2);
        }
    };
    let began = Instant::now();
    let next = AtomicU64::new(options.seeds.start);
    let stop = AtomicBool::new(false);
    let sum = Mutex::new((0u64, 0u64, Counters::default(), Vec::new()));
    let deadline = options
        .minutes
        .map(|minutes| began + Duration::from_secs(60 * minutes));
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let late = deadline.is_some_and(|deadline| Instant::now() > deadline);
                    if late || (seed >= options.seeds.end && deadline.is_none()) {
                        return;
                    }
                    let outcome = run(seed, &options);
                    let mut sum = sum.lock().expect("no panic under the lock");
                    sum.0 += 1;
                    sum.1 += outcome.events;
                    sum.2.add(&outcome.counters);
                    if sum.0.is_multiple_of(PROGRESS) {
                        eprintln!("{} seeds, the last one is {seed}", sum.0);
                    }
                    if outcome.violation.is_some() {
                        report(&outcome);
                        sum.3.push(seed);
                        stop.fetch_or(!options.keep_going, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let (seeds, events, counters, failed) = sum.into_inner().expect("no panic under the lock");
    println!(
        "{seeds} seeds, {events} events, {:.1} s: {counters:?}",
        began.elapsed().as_secs_f64()
    );
    if failed.is_empty() {
        println!("no promise was broken");
        return ExitCode::SUCCESS;
    }
    println!("{} seeds broke a promise: {failed:?}", failed.len());
    ExitCode::FAILURE
}

fn run(seed: u64, options: &Options) -> Outcome {
    let mode = if options.trace {
        TraceMode::Print
    } else {
        TraceMode::Off
    };
    let attempt = |mode| {
        catch_unwind(AssertUnwindSafe(|| sim::run(seed, options.mutation, mode))).unwrap_or_else(
            |_| Outcome {
                seed,
                violation: Some("a panic, see above".into()),
                hash: 0,
                events: 0,
                counters: Counters::default(),
                tail: Vec::new(),
            },
        )
    };
    let outcome = attempt(mode);
    if outcome.violation.is_some() && !options.trace && outcome.events > 0 {
        return attempt(TraceMode::Tail);
    }
    outcome
}

fn report(outcome: &Outcome) {
    let start = outcome.tail.len().saturating_sub(TAIL);
    for line in &outcome.tail[start..] {
        println!("    {line}");
    }
    println!(
        "seed {}: {}",
        outcome.seed,
        outcome.violation.as_deref().unwrap_or_default()
    );
    println!(
        "  replay: cargo run -p quenda-sim --release -- --seed {} --trace",
        outcome.seed
    );
}
