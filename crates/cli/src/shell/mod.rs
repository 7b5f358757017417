//! `quenda shell`: zkCli's commands, and more of the same kind.
//!
//! A command is a function `run(session, args, out)` in a file of its own; [`dispatch`] knows them by name and
//! [`usage::COMMANDS`] describes them.

#![allow(dead_code, reason = "the rest of the commands follows")]

mod arguments;
mod dispatch;
mod error;
mod get;
mod ls;
mod number;
mod options;
mod output;
mod path;
mod session;
mod set;
mod stat;
mod subtree;
mod tokens;
mod usage;

use std::io::BufRead;
use std::process::ExitCode;

use tokio::sync::watch;

pub use arguments::ShellArgs;
pub use error::{AtPath, CommandError};
pub use output::{Output, Paint};
pub use session::Session;

use output::{SharedStreams, Style};

/// Reads a command's arguments with clap: for the commands that zkCli does not have.
pub fn parse<T: clap::Args>(name: &'static str, args: &[String]) -> Result<T, CommandError> {
    let command = T::augment_args(
        clap::Command::new(name)
            .no_binary_name(true)
            .disable_version_flag(true),
    );
    let matches = command
        .try_get_matches_from(args)
        .and_then(|matches| T::from_arg_matches(&matches));
    matches.map_err(|error| CommandError::failed(error.to_string().trim_end()))
}

/// Runs the shell.
pub fn run(args: &ShellArgs) -> ExitCode {
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("quenda shell: cannot start threads: {error}");
            return ExitCode::FAILURE;
        }
    };
    ExitCode::from(runtime.block_on(talk(args)))
}

async fn talk(args: &ShellArgs) -> u8 {
    let streams = SharedStreams::standard();
    let (_pressed, interrupts) = watch::channel(0);
    let style = Style {
        json: args.json,
        colour: false,
        terminal: false,
    };
    let mut out = Output::new(streams, style, interrupts);
    let options = quenda_client::ConnectOptions {
        session_timeout: args.session_timeout(),
        ..Default::default()
    };
    let client = match quenda_client::Client::connect(&args.server, &options).await {
        Ok((client, _)) => client,
        Err(error) => {
            eprintln!("quenda shell: {error}");
            return 1;
        }
    };
    let session = Session::new(client, &args.server);
    let mut code = 0;
    if args.command.is_empty() {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            code = execute(&session, &tokens::split(&line), &mut out).await;
        }
    } else {
        code = execute(&session, &args.command, &mut out).await;
    }
    code
}

async fn execute(session: &Session, words: &[String], out: &mut Output) -> u8 {
    let Some((name, args)) = words.split_first() else {
        return 0;
    };
    let result = dispatch::run(session, name, args, out).await;
    let result = result.and_then(|()| out.flush());
    match result {
        Ok(()) => 0,
        Err(error) => {
            drop(out.note(&error.to_string()));
            error.exit_code()
        }
    }
}
