//! Sessions that outlive their servers: each goes on elsewhere when its connection breaks. What a server that
//! keeps its promises shows here is that none of them expires, whatever happens to single members.

mod survivor;
mod tally;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use quenda_client::{Client, Error, open_acl};
use quenda_proto::mode::CreateMode;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::args::BenchArgs;
use super::recorder::{Recorder, Usage, report};
use super::report::{Latency, Report};
use super::watch::OPENING;
use super::{connect_options, runtime};
use survivor::{Plan, Survivor};
pub use tally::Survival;
use tally::Tally;

/// How often a change is told.
const PROGRESS: Duration = Duration::from_millis(250);

/// Runs the workload until `--duration` is over or Ctrl-C ends it; both are followed by the report.
pub fn run(args: &BenchArgs) -> Result<Report> {
    runtime()?.block_on(survive(args))
}

async fn survive(args: &BenchArgs) -> Result<Report> {
    let before = Usage::now(args)?;
    let root = make_root(args).await?;
    let tally = Arc::new(Tally::new(args.hosts.len()));
    let (end_sender, end) = watch::channel(());
    let (mut lives, opened) = spawn_all(args, root.as_deref(), &tally, &end);
    let start = Instant::now();
    let opening = tokio::spawn(async move {
        // Refused only when it is closed, which nobody does.
        let all = opened.acquire_many(OPENING as u32).await;
        all.map(|_| start.elapsed().as_secs_f64()).ok()
    });
    let ended = async {
        tokio::select! {
            () = tokio::time::sleep(args.duration()) => Ok(()),
            interrupt = tokio::signal::ctrl_c() => interrupt,
        }
    };
    tokio::select! {
        result = ended => result?,
        () = show(&tally, start) => {}
    }
    let seconds = match opening.is_finished() {
        true => opening.await?,
        false => None,
    };
    let after = Usage::now(args)?;
    drop((end, end_sender));
    while let Some(life) = lives.join_next().await {
        life?;
    }
    if let Some(root) = root {
        remove_root(args, &root).await;
    }
    Ok(summary(
        args,
        &tally,
        seconds.unwrap_or_else(|| start.elapsed().as_secs_f64()),
        (&before, &after),
    ))
}

/// One task a session. All hold a part of the semaphore while they open, so that it is whole when all are open.
fn spawn_all(
    args: &BenchArgs,
    root: Option<&str>,
    tally: &Arc<Tally>,
    end: &watch::Receiver<()>,
) -> (JoinSet<()>, Arc<Semaphore>) {
    let opening = Arc::new(Semaphore::new(OPENING));
    let plan = Arc::new(Plan {
        hosts: args.hosts.clone(),
        options: connect_options(args),
        reconnect_spread: Duration::from_secs_f64(args.reconnect_spread_s),
    });
    let mut lives = JoinSet::new();
    for number in 0..args.connections() {
        let owns = owns_ephemeral(number, args.ephemerals);
        let ephemeral = root
            .filter(|_| owns)
            .map(|root| format!("{root}/{number:06}"));
        let survivor = Survivor::new(number, ephemeral, Arc::clone(&plan), Arc::clone(tally));
        lives.spawn(survivor.live(Arc::clone(&opening), end.clone()));
    }
    (lives, opening)
}

/// Spreads the owners evenly over the sessions.
fn owns_ephemeral(number: usize, part: f64) -> bool {
    let owners_below = |n: usize| (n as f64 * part).round() as u64;
    owners_below(number + 1) > owners_below(number)
}

async fn show(tally: &Tally, start: Instant) {
    let mut ticks = tokio::time::interval(PROGRESS);
    let mut last = String::new();
    loop {
        ticks.tick().await;
        let line = tally.progress();
        if line != last {
            eprintln!("{:7.2} s: {line}", start.elapsed().as_secs_f64());
            last = line;
        }
    }
}

/// The parent of the ephemerals, if there are to be any.
async fn make_root(args: &BenchArgs) -> Result<Option<String>> {
    if args.ephemerals == 0.0 {
        return Ok(None);
    }
    let (client, _) = Client::connect(args.host(0), &connect_options(args)).await?;
    let root = match &args.root {
        Some(root) => root.clone(),
        None => format!("/quenda-bench-{:x}", client.session().id),
    };
    client
        .create(&root, None, &open_acl(), CreateMode::Persistent)
        .await
        .with_context(|| format!("cannot create {root}"))?;
    client.close().await?;
    Ok(Some(root))
}

/// Any server will do: some may be down at the end of such a run.
async fn remove_root(args: &BenchArgs, root: &str) {
    if args.keep {
        return;
    }
    let mut last = None;
    for host in &args.hosts {
        match remove_at(args, host, root).await {
            Ok(()) => return,
            Err(error) => last = Some(error),
        }
    }
    if let Some(error) = last {
        eprintln!("quenda bench: cannot remove {root}; it is left over: {error}");
    }
}

async fn remove_at(args: &BenchArgs, host: &str, root: &str) -> Result<(), Error> {
    let (client, _) = Client::connect(host, &connect_options(args)).await?;
    client.delete(root, -1).await?;
    client.close().await
}

fn summary(
    args: &BenchArgs,
    tally: &Tally,
    seconds: f64,
    (before, after): (&Usage, &Usage),
) -> Report {
    let found = tally.take();
    let mut recorder = Recorder::new();
    recorder.errors = found.errors;
    recorder.write = found.open;
    let mut report = report(args, &recorder, seconds, found.each_second, before, after);
    report.latency = [
        ("open", &recorder.write),
        ("resume", &found.resume),
        ("without", &found.without),
    ]
    .into_iter()
    .filter_map(|(name, histogram)| Some((name, Latency::of(histogram)?)))
    .collect();
    report.survival = Some(found.survival);
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ephemerals_are_spread_over_the_sessions() {
        let owners = |part| (0..1000).filter(|&n| owns_ephemeral(n, part)).count();
        assert_eq!([0.0, 0.25, 0.5, 1.0].map(owners), [0, 250, 500, 1000]);
    }
}
