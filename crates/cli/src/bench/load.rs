//! Closed loops: every connection keeps a number of requests in flight.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use quenda_client::{Error, Wire, code_name};
use quenda_proto::Op;
use tokio::task::JoinSet;

use super::args::BenchArgs;
use super::layout::Layout;
use super::observe::{Shared, Times, observe};
use super::recorder::{Recorder, lock};
use super::report::Report;
use super::requests::{Kind, Material, Requests};
use super::{connect_options, runtime};

/// How long a run waits at its end for the replies that are still due.
const LAST_REPLIES: Duration = Duration::from_secs(30);

/// One thread's part of the connections.
struct Part {
    wires: Vec<(usize, Wire)>,
    recorder: Arc<Mutex<Recorder>>,
}

/// Runs the workload. An interrupt (Ctrl-C) ends it early, and the znodes are removed all the same.
pub fn run(args: &BenchArgs) -> Result<Report> {
    runtime()?.block_on(async {
        let layout = Layout::make(args).await?;
        let result = interruptible(args, layout.root()).await;
        if let Err(error) = layout.finish(args.keep).await {
            eprintln!("{error:#}");
        }
        result
    })
}

/// The load has threads of its own; this one keeps the session of the layout alive.
async fn interruptible(args: &BenchArgs, root: &str) -> Result<Report> {
    let shared = Arc::new(Shared::default());
    let (args, root, theirs) = (args.clone(), root.to_owned(), Arc::clone(&shared));
    let mut work = tokio::task::spawn_blocking(move || measure(&args, &root, &theirs));
    tokio::select! {
        result = &mut work => result?,
        interrupt = tokio::signal::ctrl_c() => {
            interrupt?;
            shared.stopped.store(true, Ordering::Relaxed);
            work.await??;
            bail!("interrupted")
        }
    }
}

fn measure(args: &BenchArgs, root: &str, shared: &Arc<Shared>) -> Result<Report> {
    let (ready_sender, ready) = channel();
    let (done_sender, done) = channel();
    std::thread::scope(|scope| {
        let mut starts = Vec::new();
        for thread in 0..args.threads {
            let (start, started) = channel::<Times>();
            starts.push(start);
            let (ready, done) = (ready_sender.clone(), done_sender.clone());
            scope.spawn(move || {
                let outcome = run_thread(args, root, thread, &ready, &started, shared);
                // The receiver lives until every thread has ended.
                drop(done.send(outcome));
            });
        }
        drop((ready_sender, done_sender));
        observe(args, shared, &ready, starts, &done)
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
    let material = Arc::new(Material::new(args, root));
    for (number, wire) in part.wires {
        let share = |total: u64| {
            let connections = args.connections() as u64;
            total / connections + u64::from((number as u64) < total % connections)
        };
        let mut connection = Connection {
            wire,
            requests: Requests::new(args, root, Arc::clone(&material), number),
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
        if now >= self.times.until || self.shared.stopped.load(Ordering::Relaxed) {
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
