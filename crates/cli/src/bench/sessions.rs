//! Many sessions: how fast they open, and that they stay alive while idle.

use std::time::{Duration, Instant};

use anyhow::Result;
use quenda_client::{Error, Wire};
use quenda_proto::{Op, XID_PING};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::args::BenchArgs;
use super::recorder::{Recorder, Usage, report};
use super::report::{Latency, Report};
use super::watch::OPENING;
use super::{connect_options, runtime};

/// Runs the workload.
pub fn run(args: &BenchArgs) -> Result<Report> {
    runtime()?.block_on(sessions(args))
}

async fn sessions(args: &BenchArgs) -> Result<Report> {
    let mut recorder = Recorder::new();
    let before = Usage::now(args)?;
    let start = Instant::now();
    let wires = open(args, &mut recorder).await?;
    let seconds = start.elapsed().as_secs_f64();
    let opened = Usage::now(args)?;
    let count = wires.len();
    eprintln!("holding {count} sessions");
    let (end_sender, end) = watch::channel(());
    let mut idle = JoinSet::new();
    for wire in wires {
        idle.spawn(keep(wire, end.clone()));
    }
    drop(end);
    hold(args).await;
    let held = Usage::now(args)?;
    let closing = Instant::now();
    drop(end_sender);
    while let Some(result) = idle.join_next().await {
        if let Err(error) = result? {
            recorder.error(error.to_string());
        }
    }
    let closed_per_second = count as f64 / closing.elapsed().as_secs_f64();
    // What a session costs is told of opening and closing it; being idle depends on for how long.
    let after = Usage::now(args)?.without(&opened, &held);
    let mut report = report(args, &recorder, seconds, Vec::new(), &before, &after);
    report.closed_per_second = Some(closed_per_second);
    // The histogram of writes holds the handshakes.
    report.latency = Latency::of(&recorder.write)
        .map(|latency| ("open", latency))
        .into_iter()
        .collect();
    Ok(report)
}

/// Opens the sessions, some at a time; a failure costs one session.
async fn open(args: &BenchArgs, recorder: &mut Recorder) -> Result<Vec<Wire>> {
    let mut wires = Vec::with_capacity(args.connections());
    let mut opening = JoinSet::new();
    let mut shown = Instant::now();
    let mut number = 0;
    while number < args.connections() || !opening.is_empty() {
        while number < args.connections() && opening.len() < OPENING {
            let (host, options) = (args.host(number).to_owned(), connect_options(args));
            opening.spawn(async move {
                let start = Instant::now();
                let wire = Wire::connect(&host, &options).await?;
                Ok::<_, Error>((wire, start.elapsed()))
            });
            number += 1;
        }
        let Some(result) = opening.join_next().await else {
            break;
        };
        match result? {
            Ok((wire, time)) => {
                recorder.write.saturating_record(time.as_nanos() as u64);
                wires.push(wire);
            }
            Err(error) => recorder.error(error.to_string()),
        }
        if shown.elapsed() >= Duration::from_secs(1) {
            shown = Instant::now();
            eprintln!("{} sessions open", wires.len());
        }
    }
    Ok(wires)
}

async fn hold(args: &BenchArgs) {
    let end = tokio::time::Instant::now() + args.duration();
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    let start = Instant::now();
    while tokio::time::Instant::now() < end {
        tokio::select! {
            _ = seconds.tick() => eprintln!("{:4} s idle", start.elapsed().as_secs()),
            () = tokio::time::sleep_until(end) => {}
        }
    }
}

/// Pings three times a timeout until the end, then closes the session.
async fn keep(mut wire: Wire, mut end: watch::Receiver<()>) -> Result<(), Error> {
    let period = wire.session().timeout / 3;
    let mut pings = tokio::time::interval_at(tokio::time::Instant::now() + period, period);
    loop {
        tokio::select! {
            _ = end.changed() => break,
            _ = pings.tick() => {
                wire.push_bare(XID_PING, Op::Ping);
                wire.flush_now()?;
            }
            result = wire.exchange() => {
                result?;
                wire.drain(|_, _| Ok::<(), Error>(()))?;
            }
        }
    }
    wire.push_bare(1, Op::CloseSession);
    let mut closed = false;
    while !closed {
        wire.exchange().await?;
        wire.drain(|header, _| {
            closed |= header.xid == 1;
            Ok::<(), Error>(())
        })?;
    }
    Ok(())
}
