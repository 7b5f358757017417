//! Options of the program, in clap's style and in zkCli's.

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::connection::ConnectionArgs;

/// Names under which the program is zkCli.
const ZKCLI_NAMES: [&str; 4] = ["zkCli.sh", "zkCli", "zkcli.sh", "zkcli"];
/// zkCli's options, ours, and whether a value follows.
const ZKCLI_OPTIONS: [(&str, &str, bool); 5] = [
    ("-server", "--server", true),
    ("-timeout", "--timeout", true),
    ("-r", "-r", false),
    ("-client-configuration", "--client-configuration", true),
    ("-waitforconnection", "--waitforconnection", false),
];

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ColourWhen {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

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
    #[arg(long, value_name = "MS", default_value_t = 30_000, value_parser = clap::value_parser!(u32).range(1..=0x7fff_ffff))]
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
    /// Show results as JSON, one value a command; implies --quiet.
    #[arg(long)]
    pub json: bool,
    /// Leave out "Connecting to", the welcome and the events of the connection.
    #[arg(long, short = 'q')]
    pub quiet: bool,
    /// Colours.
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto")]
    pub color: ColourWhen,
    /// Behave as zkCli in everything; so does the program under the names zkCli.sh and zkcli.
    #[arg(long, hide = true)]
    pub zkcli: bool,
    /// A command and its arguments. Without one, commands are read from the terminal or from standard input.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    pub command: Vec<String>,
    /// TLS and identities.
    #[command(flatten)]
    pub connection: ConnectionArgs,
}

impl ShellArgs {
    /// The session timeout.
    pub fn session_timeout(&self) -> Duration {
        Duration::from_millis(self.timeout.into())
    }
}

/// The command line with zkCli's options in clap's form. It is that of the shell under zkCli's names and behind the
/// word `shell`; any other stays as it is.
pub fn translated(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments = arguments.into_iter();
    let Some(program) = arguments.next() else {
        return Vec::new();
    };
    let name = std::path::Path::new(&program).file_name();
    let mut rest: Vec<OsString> = arguments.collect();
    let zkcli = name.is_some_and(|name| ZKCLI_NAMES.iter().any(|known| name == *known));
    if zkcli {
        let mut line = vec![program, "shell".into(), "--zkcli".into()];
        line.extend(shell_options(rest, true));
        return line;
    }
    if rest.first().is_none_or(|word| word != "shell") {
        rest.insert(0, program);
        return rest;
    }
    let zkcli = rest.get(1).is_some_and(|word| word == "--zkcli");
    let mut line = vec![program, rest.remove(0)];
    line.extend(shell_options(rest, zkcli));
    line
}

/// Options up to the first word that is none and no value of one; a mark keeps what follows from being read as options.
fn shell_options(words: Vec<OsString>, zkcli: bool) -> Vec<OsString> {
    let command = ShellArgs::augment_args(clap::Command::new("shell"));
    let mut line = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy().into_owned();
        if !text.starts_with('-') {
            line.extend(["--".into(), word]);
            line.extend(words);
            break;
        }
        if let Some((_, ours, valued)) = ZKCLI_OPTIONS.iter().find(|(theirs, ..)| *theirs == text) {
            match (valued, words.next_if_valued(*valued)) {
                (true, None) if zkcli => eprintln!("Error: no argument found for option {text}"),
                (_, value) => {
                    line.push(ours.into());
                    line.extend(value);
                }
            }
            continue;
        }
        // zkCli passes over what it does not know.
        if zkcli && !text.starts_with("--") {
            continue;
        }
        let valued = takes_value(&command, &text);
        line.push(word);
        if text == "--" {
            line.extend(words);
            break;
        }
        if valued {
            line.extend(words.next());
        }
    }
    line
}

/// The next word, if one is wanted.
trait NextIfValued: Iterator {
    fn next_if_valued(&mut self, valued: bool) -> Option<Self::Item>;
}

impl<I: Iterator> NextIfValued for I {
    fn next_if_valued(&mut self, valued: bool) -> Option<Self::Item> {
        if valued { self.next() } else { None }
    }
}

/// Whether the value of this option is the next word.
fn takes_value(command: &clap::Command, option: &str) -> bool {
    command.get_arguments().any(|argument| {
        let long = argument
            .get_long()
            .is_some_and(|long| option.strip_prefix("--") == Some(long));
        let short = argument
            .get_short()
            .is_some_and(|short| option.strip_prefix('-') == Some(short.encode_utf8(&mut [0; 4])));
        (long || short) && argument.get_action().takes_values()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &str) -> String {
        let words = words.split(' ').map(OsString::from);
        let line: Vec<String> = translated(words)
            .into_iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        line.join(" ")
    }

    #[test]
    fn zkclis_options_are_taken_in_front_of_the_command() {
        for (given, expected) in [
            ("quenda serve -server x", "quenda serve -server x"),
            (
                "quenda shell -server a:1 -r get -s /a -r",
                "quenda shell --server a:1 -r -- get -s /a -r",
            ),
            (
                "quenda shell --json set /a -- -1",
                "quenda shell --json -- set /a -- -1",
            ),
            (
                "quenda shell -s a --color never ls /",
                "quenda shell -s a --color never -- ls /",
            ),
            (
                "/opt/bin/zkCli.sh -server a:1 -nonsense -timeout 5 ls /",
                "/opt/bin/zkCli.sh shell --zkcli --server a:1 --timeout 5 -- ls /",
            ),
            ("zkcli --json -server", "zkcli shell --zkcli --json"),
            (
                "quenda shell --zkcli -nonsense ls /",
                "quenda shell --zkcli -- ls /",
            ),
            // That there is no value is told as for any other option.
            ("quenda shell -server", "quenda shell --server"),
            (
                "zkcli -waitforconnection",
                "zkcli shell --zkcli --waitforconnection",
            ),
        ] {
            assert_eq!(line(given), expected);
        }
    }
}
