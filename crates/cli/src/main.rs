//! The `quenda` program.

mod backup;
mod bench;
mod check_config;
mod connection;
mod log_sink;
mod logging;
mod manual;
mod output;
mod recover;
mod serve;
mod shell;
mod status;
mod system_allocator;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

/// Takes less memory and time than the system's allocator under the server's load: many short buffers of
/// a few kilobytes on several threads. Figures: docs/adr/0009-mimalloc.md.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A coordination service that existing ZooKeeper clients use unchanged.
#[derive(Debug, Parser)]
#[command(name = "quenda", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve clients.
    #[command(
        after_help = "Exit codes: 0 stopped by SIGTERM or SIGINT, 2 wrong configuration, 3 unusable data directory, 4 \
                      no port for administration over HTTP, 14 no quorum port, 1 anything else, such as a client port in \
                      use"
    )]
    Serve(serve::ServeArgs),
    /// Tell what each line of a configuration does, and what is wrong with it; touches neither data nor ports.
    #[command(
        after_help = "Exit codes: 0 everything counts as it is written, 1 the server would start with warnings, 2 it would \
                      not start"
    )]
    CheckConfig(check_config::CheckConfigArgs),
    /// Tell how every member of an ensemble is; the exit code says whether all is well.
    #[command(
        after_help = "Exit codes: 0 healthy, 1 something is to be seen to, 3 writes are not served or nobody answers"
    )]
    Status(status::StatusArgs),
    /// Let one member go on alone after a majority of the voters was lost for good.
    #[command(
        after_help = "Exit codes: 0 the member is alone now, or was already; 1 declined or failed; 2 wrong \
                      configuration; 3 the data cannot be used, for instance because a server runs on them"
    )]
    Recover(recover::RecoverArgs),
    /// Fetch all that an ensemble holds as one file in ZooKeeper's snapshot format.
    #[command(after_help = "Exit codes: 0 the file is there, 1 it is not")]
    Snapshot(backup::SnapshotArgs),
    /// Put a snapshot in the place of all that an ensemble holds, on every member.
    #[command(
        after_help = "Exit codes: 0 restored, 1 declined or failed: nothing has changed unless it says so"
    )]
    Restore(backup::RestoreArgs),
    /// Ask and change what servers hold: zkCli's commands and more, one by one or from a script.
    #[command(
        after_help = "Exit codes: 0 well, 1 the last command failed, 127 there is no such command"
    )]
    Shell(shell::ShellArgs),
    /// Measure a server: throughput, latency, processor time.
    Bench(bench::BenchArgs),
    /// Write the man pages.
    #[command(hide = true)]
    Man(manual::ManArgs),
    /// Print the completions of a shell.
    #[command(hide = true)]
    Completions(manual::CompletionsArgs),
}

fn main() -> ExitCode {
    system_allocator::give_back_large_blocks();
    match Cli::parse_from(shell::translated(std::env::args_os())).command {
        Command::Serve(args) => serve::run(args),
        Command::CheckConfig(args) => check_config::run(args),
        Command::Man(args) => manual::man(Cli::command(), &args),
        Command::Completions(args) => manual::completions(Cli::command(), &args),
        Command::Status(args) => status::run(&args),
        Command::Recover(args) => recover::run(args),
        Command::Snapshot(args) => backup::run_snapshot(&args),
        Command::Restore(args) => backup::run_restore(&args),
        Command::Shell(args) => shell::run(&args),
        Command::Bench(args) => match bench::run(args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("quenda bench: {error:#}");
                ExitCode::FAILURE
            }
        },
    }
}
