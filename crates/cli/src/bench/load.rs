//! Closed loops: every connection keeps a number of requests in flight.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use hdrhistogram::Histogram;
use quenda_client::{Error, Wire, code_name};
use quenda_proto::Op;
use tokio::task::JoinSet;

use super::args::BenchArgs;
use super::layout::Layout;
use super::process;
use super::report::{Latency, Report, ServerUse};
use super::requests::{Kind, Requests};
use super::{connect_options, runtime};

/// How long a run waits at its end for the replies that are still due.
const LAST_REPLIES: Duration = Duration::from_secs(30);

/// Longest latency the histograms hold, in nanoseconds.
const LONGEST_NS: u64 = 120_000_000_000;

/// What all connections of a thread have found.
pub struct Recorder {
    pub read: Histogram<u64>,
    pub write: Histogram<u64>,
    pub errors: BTreeMap<String, u64>,
    pub last_reply: Option<Instant>,
}

impl Recorder {
    pub fn new() -> Recorder {
        Recorder {
            read: new_histogram(),
            write: new_histogram(),
            errors: BTreeMap::new(),
            last_reply: None,
        }
    }

    pub fn error(&mut self, why: String) {
        *self.errors.entry(why).or_default() += 1;
    }

    fn merge(&mut self, other: &Recorder) -> Result<()> {
        self.read.add(&other.read)?;
        self.write.add(&other.write)?;
        for (why, count) in &other.errors {
            *self.errors.entry(why.clone()).or_default() += count;
        }
        self.last_reply = self.last_reply.max(other.last_reply);
        Ok(())
    }
}

/// A histogram of nanoseconds with three significant digits.
pub fn new_histogram() -> Histogram<u64> {
    let mut histogram =
        Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("the bounds are constants that fit");
    histogram.auto(true);
    histogram
}

/// When a run measures.
#[derive(Clone, Copy)]
struct Times {
    from: Instant,
    until: Instant,
}

/// What the threads share.
struct Shared {
    answered: AtomicU64,
    failed: AtomicU64,
}

/// One thread's part of the connections.
struct Part {
    wires: Vec<(usize, Wire)>,
    recorder: Arc<Mutex<Recorder>>,
}

/// Runs the workload.
pub fn run(args: &BenchArgs) -> Result<Report> {
    let setup = runtime()?;
    let layout = setup.block_on(Layout::make(args))?;
    let result = measure(args, layout.root());
    let cleanup = setup.block_on(async {
        if args.keep {
            layout.keep().await
        } else {
            layout.remove().await
        }
    });
    if let Err(error) = cleanup {
        eprintln!("{error:#}");
    }
    result
}

fn measure(args: &BenchArgs, root: &str) -> Result<Report> {
    let shared = Arc::new(Shared {
        answered: AtomicU64::new(0),
        failed: AtomicU64::new(0),
    });
    let (ready_sender, ready) = channel();
    let (done_sender, done) = channel();
    std::thread::scope(|scope| {
        let mut starts = Vec::new();
        for thread in 0..args.threads {
            let (start, started) = channel::<Times>();
            starts.push(start);
            let (ready, done, shared) = (ready_sender.clone(), done_sender.clone(), &shared);
            scope.spawn(move || {
                let outcome = run_thread(args, root, thread, &ready, &started, shared);
                // The receiver lives until every thread has ended.
                drop(done.send(outcome));
            });
        }
        drop((ready_sender, done_sender));
        observe(args, &shared, &ready, starts, &done)
    })
}

/// Connects, waits for the start, runs the thread's connections.
fn run_thread(
    args: &BenchArgs,
    root: &str,
    thread: usize,
    ready: &Sender<()>,
    started: &Receiver<Times>,
    shared: &Arc<Shared>,
) -> Result<Recorder> {
    let runtime = runtime()?;
    let part = runtime.block_on(connect(args, thread))?;
    ready.send(()).context("the main thread has given up")?;
    // Only another thread's failure drops the sender without a word.
    let Ok(times) = started.recv() else {
        return Ok(Recorder::new());
    };
    let recorder = Arc::clone(&part.recorder);
    runtime.block_on(run_connections(args, root, part, times, shared));
    drop(runtime);
    let recorder = Arc::into_inner(recorder).context("a connection has outlived its runtime")?;
    recorder
        .into_inner()
        .map_err(|_| anyhow!("a thread failed"))
}

async fn connect(args: &BenchArgs, thread: usize) -> Result<Part> {
    let options = connect_options(args);
    let mut wires = Vec::new();
    for number in (thread..args.connections()).step_by(args.threads) {
        let wire = Wire::connect(args.host(number), &options)
            .await
            .with_context(|| format!("connection {} of {}", number + 1, args.connections()))?;
        wires.push((number, wire));
    }
    Ok(Part {
        wires,
        recorder: Arc::new(Mutex::new(Recorder::new())),
    })
}

async fn run_connections(
    args: &BenchArgs,
    root: &str,
    part: Part,
    times: Times,
    shared: &Arc<Shared>,
) {
    let mut tasks = JoinSet::new();
    for (number, wire) in part.wires {
        let share = |total: u64| {
            let connections = args.connections() as u64;
            total / connections + u64::from((number as u64) < total % connections)
        };
        let mut connection = Connection {
            wire,
            requests: Requests::new(args, root, number),
            depth: args.depth,
            left: args.requests.map_or(u64::MAX, share),
            in_flight: VecDeque::with_capacity(args.depth),
            next_xid: 1,
            times,
            recorder: Arc::clone(&part.recorder),
            shared: Arc::clone(shared),
        };
        tasks.spawn(async move {
            let limit = times.until + LAST_REPLIES;
            let outcome = tokio::time::timeout_at(limit.into(), connection.run()).await;
            let why = match outcome {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("no reply within {LAST_REPLIES:?} after the end"),
            };
            connection.fail(why);
        });
    }
    while tasks.join_next().await.is_some() {}
}

struct Sent {
    at: Instant,
    xid: i32,
    kind: Kind,
}

struct Connection {
    wire: Wire,
    requests: Requests,
    depth: usize,
    left: u64,
    in_flight: VecDeque<Sent>,
    next_xid: i32,
    times: Times,
    recorder: Arc<Mutex<Recorder>>,
    shared: Arc<Shared>,
}

impl Connection {
    async fn run(&mut self) -> Result<(), Error> {
        loop {
            self.fill();
            if self.in_flight.is_empty() {
                break;
            }
            self.wire.exchange().await?;
            self.receive()?;
        }
        self.close().await
    }

    fn fill(&mut self) {
        let now = Instant::now();
        if now >= self.times.until {
            return;
        }
        while self.in_flight.len() < self.depth && self.left > 0 {
            let xid = self.next_xid;
            self.next_xid = xid.checked_add(1).unwrap_or(1);
            self.left -= 1;
            let kind = self.requests.push(&mut self.wire, xid);
            self.in_flight.push_back(Sent { at: now, xid, kind });
        }
    }

    /// Takes every reply that has arrived, under one lock and one look at the clock.
    fn receive(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        let measured = now >= self.times.from && now < self.times.until;
        let mut recorder = lock(&self.recorder);
        let (in_flight, requests) = (&mut self.in_flight, &self.requests);
        let (mut answered, mut failed) = (0, 0);
        let result = self.wire.drain(|header, body| {
            let sent = in_flight.pop_front().filter(|sent| sent.xid == header.xid);
            let Some(sent) = sent else {
                return Err(Error::UnexpectedReply {
                    expected: None,
                    found: header.xid,
                });
            };
            if header.err != 0 {
                failed += 1;
                recorder.error(code_name(header.err));
            } else if !requests.is_right(sent.kind, header, body) {
                failed += 1;
                recorder.error("reply of the wrong form".to_owned());
            } else {
                answered += 1;
                if measured {
                    let ns = now.duration_since(sent.at).as_nanos() as u64;
                    match sent.kind {
                        Kind::Read => recorder.read.saturating_record(ns),
                        Kind::Write => recorder.write.saturating_record(ns),
                    }
                }
            }
            Ok(())
        });
        if measured && answered > 0 {
            recorder.last_reply = Some(now);
        }
        self.shared.answered.fetch_add(answered, Ordering::Relaxed);
        self.shared.failed.fetch_add(failed, Ordering::Relaxed);
        result
    }

    /// Ends the session, so that it does not burden the server until it expires.
    async fn close(&mut self) -> Result<(), Error> {
        self.wire.push_bare(self.next_xid, Op::CloseSession);
        let mut closed = false;
        while !closed {
            self.wire.exchange().await?;
            self.wire.drain(|_, _| {
                closed = true;
                Ok::<(), Error>(())
            })?;
        }
        Ok(())
    }

    fn fail(&mut self, why: String) {
        let mut recorder = lock(&self.recorder);
        let unanswered = self.in_flight.len().max(1) as u64;
        self.shared.failed.fetch_add(unanswered, Ordering::Relaxed);
        *recorder.errors.entry(why).or_default() += unanswered;
    }
}

pub fn lock(recorder: &Mutex<Recorder>) -> std::sync::MutexGuard<'_, Recorder> {
    recorder
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The main thread: starts the others, shows progress, measures processor time, adds up.
fn observe(
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

/// Processor time and memory at one moment.
pub struct Usage {
    client_cpu: f64,
    server: Option<(f64, u64)>,
}

impl Usage {
    pub fn now(args: &BenchArgs) -> Result<Usage> {
        let server = match args.server_pid {
            Some(pid) => Some((
                process::cpu_seconds(Some(pid))?,
                process::resident_bytes(Some(pid))?,
            )),
            None => None,
        };
        Ok(Usage {
            client_cpu: process::cpu_seconds(None)?,
            server,
        })
    }
}

pub fn report(
    args: &BenchArgs,
    recorder: &Recorder,
    seconds: f64,
    each_second: Vec<u64>,
    before: &Usage,
    after: &Usage,
) -> Report {
    let operations = recorder.read.len() + recorder.write.len();
    let latency = [("read", &recorder.read), ("write", &recorder.write)]
        .into_iter()
        .filter_map(|(name, histogram)| Some((name, Latency::of(histogram)?)));
    let server = before.server.zip(after.server).map(|(before, after)| {
        let cpu_seconds = after.0 - before.0;
        ServerUse {
            cpu_seconds,
            cpu_us_per_operation: cpu_seconds * 1e6 / operations.max(1) as f64,
            resident_bytes_at_start: before.1,
            resident_bytes_at_end: after.1,
        }
    });
    Report {
        version: env!("CARGO_PKG_VERSION"),
        settings: args.clone(),
        connections: args.connections(),
        seconds,
        operations,
        operations_per_second: operations as f64 / seconds.max(f64::MIN_POSITIVE),
        errors: recorder.errors.clone(),
        latency: latency.collect(),
        each_second,
        client_cpu_seconds: after.client_cpu - before.client_cpu,
        server,
    }
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
        while !self.complete() && Instant::now() < moment {
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
