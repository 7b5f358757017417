//! `quenda recover`: one member goes on alone after a majority was lost for good.

mod text;

use std::io::{self, BufRead as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use quenda_server::config::{ConfigError, Environment, Overrides, ServerConfig};
use quenda_server::recover::{RecoverError, Recovery};

/// What `quenda recover` takes.
#[derive(Debug, clap::Args)]
pub struct RecoverArgs {
    /// The member's configuration (zoo.cfg); tells the directories
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Directory of the data [dataDir]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Directory of the write-ahead log, if it is apart [dataLogDir]
    #[arg(long, value_name = "DIR")]
    data_log_dir: Option<PathBuf>,
    /// Do it without asking
    #[arg(long)]
    yes: bool,
}

/// How it ends. The value is the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The member is alone now, or was already.
    Done = 0,
    /// The operator did not agree; nothing has changed.
    Declined = 1,
}

/// Shows what the member has, says what would be lost, asks, and does it. Exit code 0: the member is alone now, or was
/// already; 1: declined or failed; 2: wrong configuration; 3: the store cannot be used.
pub fn run(args: RecoverArgs) -> ExitCode {
    match recover(args) {
        Ok(end) => ExitCode::from(end as u8),
        Err(error) => {
            eprintln!("quenda recover: {error}");
            ExitCode::from(error.code())
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Recover(#[from] RecoverError),
    #[error("{0}")]
    Terminal(#[from] io::Error),
}

impl Failure {
    fn code(&self) -> u8 {
        match self {
            Failure::Config(_) => ConfigError::EXIT_CODE,
            Failure::Recover(
                RecoverError::Open(_) | RecoverError::Store(_) | RecoverError::Entry(_),
            ) => 3,
            Failure::Recover(_) | Failure::Terminal(_) => 1,
        }
    }
}

fn recover(args: RecoverArgs) -> Result<End, Failure> {
    let overrides = Overrides {
        data_dir: args.data_dir,
        data_log_dir: args.data_log_dir,
        ..Overrides::default()
    };
    let environment = Environment::of_this_process();
    let (config, _) = ServerConfig::load(args.config.as_deref(), &environment, &overrides)?;
    let recovery = Recovery::open(config.data_dir, config.data_log_dir)?;
    let facts = recovery.facts().clone();
    say(&text::facts(&facts))?;
    if facts.is_alone() {
        say(&text::nothing_to_do(&facts))?;
        return Ok(End::Done);
    }
    say(&text::consequences(&facts))?;
    if !args.yes && !agrees(&text::confirmation(&facts))? {
        say("Nothing has changed.\n")?;
        return Ok(End::Declined);
    }
    let line = config
        .ensemble
        .iter()
        .find(|server| server.id == facts.member);
    let outcome = recovery.commit(line)?;
    // It is done, whether anybody reads that or not.
    if let Err(error) = say(&text::done(&facts, &outcome)) {
        eprintln!("quenda recover: done, but standard output takes nothing: {error}");
    }
    Ok(End::Done)
}

/// Whether the operator types the words that are asked for.
fn agrees(words: &str) -> io::Result<bool> {
    say(&format!("Type \"{words}\" to go on: "))?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(answer.trim() == words)
}

/// Writes to standard output, where somebody may have stopped reading.
fn say(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
