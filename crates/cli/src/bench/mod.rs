//! `quenda bench`: load against any server that speaks the ZooKeeper protocol.
//!
//! The load loop works on the raw connection and costs well under a microsecond a request, so that a
//! server on the same machine gets the processor. All workloads but `watch`, `sessions` and `survive` are
//! closed loops: each connection keeps `--depth` requests in flight.

mod args;
mod layout;
mod load;
mod observe;
mod process;
mod recorder;
mod report;
mod requests;
mod sessions;
mod survive;
mod watch;

pub use args::BenchArgs;

use anyhow::{Context, Result, bail};
use quenda_client::ConnectOptions;

use args::Workload;
use report::Report;

/// Runs one workload and prints its report on standard output.
///
/// # Errors
/// When the server cannot be reached, the znodes cannot be made, or not one request succeeded.
pub fn run(mut args: BenchArgs) -> Result<()> {
    args.check()?;
    args.ready_tls = args.tls.tls()?;
    let report = match args.workload {
        Workload::Watch => watch::run(&args)?,
        Workload::Sessions => sessions::run(&args)?,
        Workload::Survive => survive::run(&args)?,
        Workload::Get
        | Workload::Exists
        | Workload::Children
        | Workload::Set
        | Workload::Create
        | Workload::Sequential
        | Workload::CreateDelete
        | Workload::Mixed
        | Workload::Multi
        | Workload::CheckSet => load::run(&args)?,
    };
    print(&args, &report)?;
    if report.operations == 0 {
        bail!("not one request succeeded: {}", report.errors_in_words());
    }
    Ok(())
}

fn print(args: &BenchArgs, report: &Report) -> Result<()> {
    if args.json {
        println!("{}", serde_json::to_string_pretty(report)?);
    } else {
        print!("{}", report.in_words());
    }
    Ok(())
}

fn connect_options(args: &BenchArgs) -> ConnectOptions {
    ConnectOptions {
        session_timeout: args.session_timeout(),
        tls: args.ready_tls.clone(),
        ..ConnectOptions::default()
    }
}

/// One thread: the generator shall leave the other processors to the server.
fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")
}
