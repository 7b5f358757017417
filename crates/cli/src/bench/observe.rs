//! The main thread of a run: start, progress, processor time, sums.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};

use super::args::BenchArgs;
use super::recorder::{Recorder, Usage, report};
use super::report::Report;

/// When a run measures.
#[derive(Clone, Copy)]
pub struct Times {
    pub from: Instant,
    pub until: Instant,
}

/// What the threads share.
#[derive(Default)]
pub struct Shared {
    /// Requests answered as they should be.
    pub answered: AtomicU64,
    /// Requests that failed.
    pub failed: AtomicU64,
    /// The user wants no more.
    pub stopped: AtomicBool,
}

/// The main thread: starts the others, shows progress, measures processor time, adds up.
pub fn observe(
    args: &BenchArgs,
    shared: &Shared,
    ready: &Receiver<()>,
    starts: Vec<Sender<Times>>,
    done: &Receiver<Result<Recorder>>,
) -> Result<Report> {
    let mut outcomes = Outcomes::new(args.threads, done);
    for _ in 0..args.threads {
        // A thread that cannot connect ends without being ready; its reason is in its outcome.
        if ready.recv_timeout(Duration::from_secs(120)).is_err() || outcomes.failed() {
            drop(starts);
            return Err(outcomes.first_error());
        }
    }
    let from = Instant::now() + args.warmup();
    let times = Times {
        from,
        until: from + args.duration(),
    };
    for start in &starts {
        start.send(times).context("a thread has ended early")?;
    }
    let mut progress = Progress::new(shared);
    outcomes.wait_until(times.from, &mut progress);
    let before = Usage::now(args)?;
    outcomes.wait_until(times.until, &mut progress);
    let after = Usage::now(args)?;
    let recorder = outcomes.collect(&mut progress)?;
    let end = recorder.last_reply.unwrap_or(times.until).min(times.until);
    // A run that ends by its number of requests is as long as it took; one that ends by time is not
    // shortened because the last replies came a little before.
    let seconds = match args.requests {
        Some(_) => end.duration_since(times.from).as_secs_f64(),
        None => args.duration,
    };
    Ok(report(
        args,
        &recorder,
        seconds,
        progress.each_second,
        &before,
        &after,
    ))
}

/// One line a second on standard error.
struct Progress<'a> {
    shared: &'a Shared,
    next: Instant,
    last: u64,
    each_second: Vec<u64>,
}

impl<'a> Progress<'a> {
    fn new(shared: &'a Shared) -> Self {
        Progress {
            shared,
            next: Instant::now() + Duration::from_secs(1),
            last: 0,
            each_second: Vec::new(),
        }
    }

    fn tick(&mut self) {
        let answered = self.shared.answered.load(Ordering::Relaxed);
        let count = answered - self.last;
        self.last = answered;
        self.next += Duration::from_secs(1);
        self.each_second.push(count);
        let second = self.each_second.len();
        let failed = self.shared.failed.load(Ordering::Relaxed);
        eprintln!("{second:4} s: {count:8} a second, {failed} failed");
    }
}

/// The threads' results as they come in.
struct Outcomes<'a> {
    done: &'a Receiver<Result<Recorder>>,
    expected: usize,
    arrived: Vec<Result<Recorder>>,
}

impl<'a> Outcomes<'a> {
    fn new(expected: usize, done: &'a Receiver<Result<Recorder>>) -> Self {
        Outcomes {
            done,
            expected,
            arrived: Vec::new(),
        }
    }

    fn complete(&self) -> bool {
        self.arrived.len() == self.expected
    }

    fn failed(&mut self) -> bool {
        self.arrived.extend(self.done.try_iter());
        self.arrived.iter().any(Result::is_err)
    }

    fn first_error(mut self) -> anyhow::Error {
        self.arrived.extend(self.done.iter());
        let mut errors = self.arrived.into_iter().filter_map(Result::err);
        errors
            .next()
            .unwrap_or_else(|| anyhow!("not every connection was made within two minutes"))
    }

    /// Shows progress until that moment, or until every thread has ended.
    fn wait_until(&mut self, moment: Instant, progress: &mut Progress<'_>) {
        while !self.complete()
            && Instant::now() < moment
            && !progress.shared.stopped.load(Ordering::Relaxed)
        {
            self.wait(moment.min(progress.next), progress);
        }
    }

    fn wait(&mut self, moment: Instant, progress: &mut Progress<'_>) {
        let left = moment.saturating_duration_since(Instant::now());
        match self.done.recv_timeout(left) {
            Ok(outcome) => self.arrived.push(outcome),
            Err(RecvTimeoutError::Timeout) if Instant::now() >= progress.next => {
                progress.tick();
            }
            Err(_) => {}
        }
    }

    fn collect(mut self, progress: &mut Progress<'_>) -> Result<Recorder> {
        while !self.complete() {
            self.wait(progress.next, progress);
        }
        let mut total = Recorder::new();
        for outcome in self.arrived {
            total.merge(&outcome?)?;
        }
        Ok(total)
    }
}
