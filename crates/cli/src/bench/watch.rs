//! Fan-out: one change of one znode, and the time until each of many watchers knows.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use quenda_client::{Error, Wire};
use quenda_proto::records::GetDataRequest;
use quenda_proto::{Op, XID_EVENT};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::args::BenchArgs;
use super::layout::{Layout, znode};
use super::recorder::{Recorder, Usage, new_histogram, report};
use super::report::{Latency, Report};
use super::{connect_options, runtime};

/// How long a round waits for its last event or registration.
const PATIENCE: Duration = Duration::from_secs(30);

/// Sessions that are opened at the same time: fewer than the accept queue of common servers holds (50),
/// since a connection that it refuses is tried again by the kernel after a whole second.
pub const OPENING: usize = 32;

/// What a watcher tells the coordinator.
enum Note {
    /// Its watch is registered.
    Armed,
    /// Its event has arrived.
    Fired(Instant),
    /// It is gone.
    Lost(Error),
}

/// Runs the workload.
pub fn run(args: &BenchArgs) -> Result<Report> {
    runtime()?.block_on(async {
        let layout = Layout::make(args).await?;
        let result = tokio::select! {
            result = rounds(args, &layout) => result,
            interrupt = tokio::signal::ctrl_c() => {
                interrupt.map_err(Into::into).and(Err(anyhow!("interrupted")))
            }
        };
        if let Err(error) = layout.finish(args.keep).await {
            eprintln!("{error:#}");
        }
        result
    })
}

async fn rounds(args: &BenchArgs, layout: &Layout) -> Result<Report> {
    let path = znode(layout.root(), 0);
    let (round_sender, round) = watch::channel(0u64);
    let (notes_sender, mut notes) = mpsc::unbounded_channel();
    let mut watchers = JoinSet::new();
    for wire in open(args).await? {
        watchers.spawn(watcher(
            wire,
            path.clone(),
            round.clone(),
            notes_sender.clone(),
        ));
    }
    drop(notes_sender);
    let mut found = Found::new();
    let start = Instant::now();
    let warm = start + args.warmup();
    let end = warm + args.duration();
    let mut shown = start;
    let mut before = None;
    while Instant::now() < end {
        if before.is_none() && Instant::now() >= warm {
            before = Some((Usage::now(args)?, Instant::now()));
        }
        round_sender.send_modify(|round| *round += 1);
        arm(&mut notes, args.connections()).await?;
        let times = fire(args, layout, &path, &mut notes).await?;
        if before.is_some() {
            found.add(&times);
        }
        if shown.elapsed() >= Duration::from_secs(1) {
            shown = Instant::now();
            eprintln!(
                "{:4} s: last event of {} after {:?}",
                start.elapsed().as_secs(),
                args.connections(),
                times.last
            );
        }
    }
    let after = Usage::now(args)?;
    let (before, measured) = before.context("the warm-up took all the time")?;
    let seconds = measured.elapsed().as_secs_f64();
    // Ends the watchers, which close their sessions.
    drop(round_sender);
    while watchers.join_next().await.is_some() {}
    Ok(found.report(args, seconds, &before, &after))
}

/// Opens the sessions, some at a time.
pub async fn open(args: &BenchArgs) -> Result<Vec<Wire>> {
    let mut wires = Vec::with_capacity(args.connections());
    let mut opening = JoinSet::new();
    for number in 0..args.connections() {
        let (host, options) = (args.host(number).to_owned(), connect_options(args));
        opening.spawn(async move { Wire::connect(&host, &options).await });
        if opening.len() >= OPENING {
            wires.extend(next_opened(&mut opening, number).await?);
        }
    }
    while !opening.is_empty() {
        wires.extend(next_opened(&mut opening, args.connections()).await?);
    }
    Ok(wires)
}

async fn next_opened(
    opening: &mut JoinSet<Result<Wire, Error>>,
    number: usize,
) -> Result<Option<Wire>> {
    match opening.join_next().await {
        Some(result) => {
            Ok(Some(result?.with_context(|| {
                format!("about {number} sessions were opened before")
            })?))
        }
        None => Ok(None),
    }
}

async fn arm(notes: &mut mpsc::UnboundedReceiver<Note>, count: usize) -> Result<()> {
    for armed in 0..count {
        match tokio::time::timeout(PATIENCE, notes.recv()).await {
            Ok(Some(Note::Armed)) => {}
            Ok(Some(Note::Lost(error))) => return Err(error).context("a watcher is lost"),
            Ok(Some(Note::Fired(_))) => bail!("an event without a change"),
            Ok(None) => bail!("every watcher is lost"),
            Err(_) => bail!("{armed} of {count} watches registered within {PATIENCE:?}"),
        }
    }
    Ok(())
}

/// The times of one round, from the moment the change was sent.
struct Times {
    reply: Duration,
    first: Duration,
    middle: Duration,
    last: Duration,
}

async fn fire(
    args: &BenchArgs,
    layout: &Layout,
    path: &str,
    notes: &mut mpsc::UnboundedReceiver<Note>,
) -> Result<Times> {
    let data = vec![b'z'; args.size];
    let sent = Instant::now();
    let change = async {
        layout.client().set_data(path, Some(&data), -1).await?;
        Ok::<Duration, anyhow::Error>(sent.elapsed())
    };
    let (reply, events) = tokio::try_join!(change, events(notes, args.connections(), sent))?;
    Ok(Times {
        reply,
        first: events[0],
        middle: events[events.len() / 2],
        last: events[events.len() - 1],
    })
}

async fn events(
    notes: &mut mpsc::UnboundedReceiver<Note>,
    count: usize,
    sent: Instant,
) -> Result<Vec<Duration>> {
    let mut times = Vec::with_capacity(count);
    while times.len() < count {
        match tokio::time::timeout(PATIENCE, notes.recv()).await {
            Ok(Some(Note::Fired(at))) => times.push(at.duration_since(sent)),
            Ok(Some(Note::Lost(error))) => return Err(error).context("a watcher is lost"),
            Ok(Some(Note::Armed)) => bail!("a watch was registered before its round"),
            Ok(None) => bail!("every watcher is lost"),
            Err(_) => bail!("{} of {count} events within {PATIENCE:?}", times.len()),
        }
    }
    times.sort_unstable();
    Ok(times)
}

/// Registers once in each round and tells when the event comes. Registering again waits for the next
/// round, so that it does not compete with events still on their way to others.
async fn watcher(
    mut wire: Wire,
    path: String,
    mut round: watch::Receiver<u64>,
    notes: mpsc::UnboundedSender<Note>,
) {
    let request = GetDataRequest {
        path: Some(path.into()),
        watch: true,
    };
    let outcome = async {
        for xid in 1.. {
            if round.changed().await.is_err() {
                break;
            }
            wire.push(xid, Op::GetData, &request);
            await_frame(&mut wire, xid).await?;
            drop(notes.send(Note::Armed));
            await_frame(&mut wire, XID_EVENT).await?;
            drop(notes.send(Note::Fired(Instant::now())));
        }
        wire.push_bare(i32::MAX, Op::CloseSession);
        await_frame(&mut wire, i32::MAX).await
    };
    if let Err(error) = outcome.await {
        drop(notes.send(Note::Lost(error)));
    }
}

async fn await_frame(wire: &mut Wire, wanted: i32) -> Result<(), Error> {
    let mut arrived = false;
    while !arrived {
        wire.exchange().await?;
        wire.drain(|header, _| {
            arrived |= header.xid == wanted;
            match header.err {
                0 => Ok(()),
                code => Err(Error::Server {
                    op: Op::GetData,
                    code,
                }),
            }
        })?;
    }
    Ok(())
}

struct Found {
    latency: BTreeMap<&'static str, hdrhistogram::Histogram<u64>>,
    rounds: u64,
}

impl Found {
    fn new() -> Found {
        let names = ["reply", "first event", "middle event", "last event"];
        Found {
            latency: names.map(|name| (name, new_histogram())).into(),
            rounds: 0,
        }
    }

    fn add(&mut self, times: &Times) {
        self.rounds += 1;
        for (name, time) in [
            ("reply", times.reply),
            ("first event", times.first),
            ("middle event", times.middle),
            ("last event", times.last),
        ] {
            if let Some(histogram) = self.latency.get_mut(name) {
                histogram.saturating_record(time.as_nanos() as u64);
            }
        }
    }

    fn report(&self, args: &BenchArgs, seconds: f64, before: &Usage, after: &Usage) -> Report {
        let mut report = report(args, &Recorder::new(), seconds, Vec::new(), before, after);
        report.operations = self.rounds;
        report.operations_per_second = self.rounds as f64 / seconds;
        report.latency = self
            .latency
            .iter()
            .filter_map(|(name, histogram)| Some((*name, Latency::of(histogram)?)))
            .collect();
        report
    }
}
