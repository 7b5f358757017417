//! `quenda check-config`: what a configuration means, without starting anything.

mod report;
mod summary;

use std::path::PathBuf;
use std::process::ExitCode;

use quenda_server::config::{Environment, Overrides, ServerConfig};

use report::Report;

/// Nothing is to be seen to.
const CLEAN: u8 = 0;
/// The server would start, and something is not as the configuration asks for.
const WARNINGS: u8 = 1;
/// The server would not start.
const REFUSED: u8 = 2;

/// What `quenda check-config` takes.
#[derive(Debug, clap::Args)]
pub struct CheckConfigArgs {
    /// The configuration to look at (zoo.cfg)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// An option that `quenda serve` will be given, too
    #[arg(short = 'D', value_name = "KEY=VALUE", value_parser = crate::serve::property)]
    properties: Vec<(String, String)>,
    /// This member's id, if not from the file myid
    #[arg(long, value_name = "N")]
    my_id: Option<u64>,
    /// The whole answer as one JSON object
    #[arg(long)]
    json: bool,
    /// Only what is to be seen to
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,
}

/// Prints the report; the exit code is the verdict.
pub fn run(args: CheckConfigArgs) -> ExitCode {
    let overrides = Overrides {
        my_id: args.my_id,
        properties: args.properties,
        ..Overrides::default()
    };
    let environment = Environment::of_this_process();
    let check = ServerConfig::check(Some(&args.file), &environment, &overrides);
    let report = Report::of(&args.file, check);
    let text = match args.json {
        true => report.json(),
        false => report.text(args.quiet),
    };
    if let Err(error) = crate::output::print(&text) {
        eprintln!("quenda check-config: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::from(match (report.is_refused(), report.has_warnings()) {
        (true, _) => REFUSED,
        (false, true) => WARNINGS,
        (false, false) => CLEAN,
    })
}
