//! Options of the program.

use std::time::Duration;

use clap::Args;

/// `quenda shell`.
#[derive(Debug, Args)]
pub struct ShellArgs {
    /// Servers, separated by commas, and optionally a path that all paths are below: host:port,host:port/path.
    #[arg(
        long,
        short = 's',
        value_name = "SERVERS",
        default_value = "localhost:2181"
    )]
    pub server: String,
    /// Session timeout in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 30_000)]
    pub timeout: u32,
    /// Be content with a server that has no quorum and serves reads only.
    #[arg(short = 'r')]
    pub read_only_server: bool,
    /// Wait until connected, at most for the session timeout, before the first command.
    #[arg(long = "waitforconnection")]
    pub wait_for_connection: bool,
    /// Refuse commands that change something.
    #[arg(long)]
    pub read_only: bool,
    /// Show results as JSON, one value a command.
    #[arg(long)]
    pub json: bool,
    /// Leave out "Connecting to" and the session's own events.
    #[arg(long, short = 'q')]
    pub quiet: bool,
    /// Behave as zkCli in everything; so does the program under the names zkCli.sh, zkCli and zkcli.
    #[arg(long, hide = true)]
    pub zkcli: bool,
    /// A command and its arguments. Without one, commands are read from standard input.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    pub command: Vec<String>,
}

impl ShellArgs {
    /// The session timeout.
    pub fn session_timeout(&self) -> Duration {
        Duration::from_millis(self.timeout.into())
    }
}
