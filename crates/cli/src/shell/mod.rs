//! `quenda shell`: zkCli's commands, and more of the same kind.
//!
//! A command is a function `run(session, args, out)` in a file of its own; [`dispatch`] knows them by name and
//! [`usage::COMMANDS`] describes them. [`shell::Shell`] is the state between commands; commands come from the command
//! line, from standard input ([`script`]) or from a terminal ([`editor`]).

mod acl;
mod arguments;
mod auth;
mod config;
mod create;
mod delete;
mod dispatch;
mod du;
mod editor;
mod error;
mod events;
mod find;
mod get;
mod guard;
mod help;
mod interrupt;
mod json_list;
mod lock_layout;
mod locks;
mod ls;
mod number;
mod options;
mod output;
mod path;
mod prompt;
mod quota;
mod read;
mod script;
mod sequence;
mod session;
mod set;
#[allow(clippy::module_inception, reason = "the state of the shell")]
mod shell;
mod stat;
mod subtree;
mod tokens;
mod top;
mod top_table;
mod tree;
mod usage;
mod walk;
mod watch;
mod watches;
mod words;

use std::io::IsTerminal;
use std::process::ExitCode;

pub use arguments::{ShellArgs, translated};
pub use error::{AtPath, CommandError};
pub use output::{Output, Paint};
pub use session::Session;

use crate::connection::JavaProperties;

use arguments::ColourWhen;
use interrupt::Interrupts;
use output::{SharedStreams, Style};
use shell::{Manner, Options, Shell};

/// Runs the shell.
pub fn run(args: &ShellArgs) -> ExitCode {
    // One thread: what a session tells is printed before the command goes on that caused it.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => {
            let code = runtime.block_on(talk(args));
            // A thread that still waits for input does not hold up the end.
            runtime.shutdown_background();
            ExitCode::from(code)
        }
        Err(error) => {
            eprintln!("quenda shell: cannot wait for input and servers: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn talk(args: &ShellArgs) -> u8 {
    let streams = SharedStreams::standard();
    let style = style(args);
    let interactive = args.command.is_empty() && std::io::stdin().is_terminal() && style.terminal;
    let interrupts = Interrupts::new(interactive);
    let out = Output::new(streams.clone(), style, interrupts.subscribe());
    tokio::spawn(interrupts.clone().listen());
    let start = Shell::start(manner(args), options(args), &args.server, out.clone());
    let interrupted = out.interrupted();
    let started = interrupts.during(async {
        tokio::select! {
            started = start => started,
            () = interrupted => Err(CommandError::Interrupted),
        }
    });
    let mut shell = match started.await {
        Ok(shell) => shell,
        Err(error) => {
            out.complain(&error.to_string());
            return error.exit_code();
        }
    };
    if !args.command.is_empty() {
        interrupts.during(shell.execute(&args.command)).await;
        return shell.finish().await;
    }
    if interactive {
        return editor::talk(shell, &streams, style.colour).await;
    }
    script::run(shell, &interrupts).await
}

fn manner(args: &ShellArgs) -> Manner {
    Manner {
        zkcli: args.zkcli,
        read_only: args.read_only,
        quiet: args.quiet || args.json,
        wait: args.wait_for_connection.then(|| args.session_timeout()),
    }
}

fn options(args: &ShellArgs) -> Options {
    let mut connection = args.connection.clone();
    if args.zkcli {
        connection.tls.java = JavaProperties::of_the_environment();
    }
    Options {
        connection,
        timeout: args.session_timeout(),
        read_only: args.read_only_server,
    }
}

fn style(args: &ShellArgs) -> Style {
    let terminal = std::io::stdout().is_terminal();
    let colours = |terminal: bool| match args.color {
        ColourWhen::Always => true,
        ColourWhen::Never => false,
        ColourWhen::Auto => terminal && colours_welcome(),
    };
    Style {
        json: args.json,
        quiet: args.quiet || args.json,
        colour: colours(terminal) && !args.json,
        complaint_colour: colours(std::io::stderr().is_terminal()),
        guarded: terminal && !args.zkcli,
        complaints_guarded: std::io::stderr().is_terminal() && !args.zkcli,
        terminal,
    }
}

/// Neither NO_COLOR nor a terminal without colours speaks against them.
fn colours_welcome() -> bool {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !unwanted && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}
