//! The `quenda` program.

mod bench;

use clap::{Parser, Subcommand};

/// A coordination service that existing ZooKeeper clients use unchanged.
#[derive(Debug, Parser)]
#[command(name = "quenda", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure a server: throughput, latency, processor time.
    Bench(bench::BenchArgs),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Bench(args) => bench::run(args),
    }
}
