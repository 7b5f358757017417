//! Man pages and completions out of the command line's own description, for packages.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;

/// What `quenda man` takes.
#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// Where the pages go, one for each command
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,
}

/// What `quenda completions` takes.
#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Writes the man pages of a command and of those below it.
pub fn man(command: Command, args: &ManArgs) -> ExitCode {
    match pages(command, &args.directory) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quenda man: {}: {error}", args.directory.display());
            ExitCode::FAILURE
        }
    }
}

fn pages(command: Command, directory: &Path) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    // `help` would have a page for every other command.
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let version = command.get_version().unwrap_or_default();
    let source = format!("{} {version}", command.get_name());
    page(command, &source, directory)
}

/// The page of a command and those of the ones below it that are not hidden. All are of the program's version.
fn page(command: Command, source: &str, directory: &Path) -> io::Result<()> {
    for command in command.get_subcommands().filter(|one| !one.is_hide_set()) {
        page(command.clone(), source, directory)?;
    }
    Man::new(command).source(source).generate_to(directory)?;
    Ok(())
}

/// Prints the completions for a shell.
pub fn completions(mut command: Command, args: &CompletionsArgs) -> ExitCode {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, "quenda", &mut text);
    match crate::output::print(&String::from_utf8_lossy(&text)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quenda completions: {error}");
            ExitCode::FAILURE
        }
    }
}
