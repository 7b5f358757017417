//! `quenda status`: how every member of an ensemble is.

mod ask;
mod judge;
mod table;

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use quenda_server::status::{ConfiguredServer, MemberStatus};
use serde::Serialize;

use crate::connection::TlsArgs;

use ask::Asker;

/// What `quenda status` takes.
#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    /// Client addresses to ask, with commas between, port 2181 if none is given; the others are found through those that
    /// answer, if their server lines hold client addresses, and are asked without TLS where they do not speak it
    #[arg(
        long,
        value_name = "HOST:PORT,…",
        value_delimiter = ',',
        default_value = "127.0.0.1:2181"
    )]
    servers: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// How long a member may take to answer
    #[arg(long, value_name = "MS", default_value_t = 2000)]
    timeout: u64,
    /// TLS
    #[command(flatten)]
    tls: TlsArgs,
}

/// How the ensemble is. The value is the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Health {
    /// All is well.
    Healthy = 0,
    /// Clients are served, but something is to be seen to.
    Degraded = 1,
    /// Writes are not served.
    Down = 3,
}

/// What was found out.
#[derive(Debug, Serialize)]
struct Report {
    health: Health,
    /// Sentences; empty when all is well.
    problems: Vec<String>,
    /// The cluster that the leader, or else most members, belong to.
    cluster: Option<String>,
    /// The member that leads.
    leader: Option<u64>,
    /// By id; those whose id is not known, or is another one's too, come last.
    members: Vec<Row>,
}

/// One member.
#[derive(Clone, Debug, Default, Serialize)]
struct Row {
    /// Its id, if known.
    id: Option<u64>,
    /// Where it was asked.
    address: Option<String>,
    /// Why there is no answer.
    error: Option<String>,
    /// Log entries that the leader has committed and it has not applied.
    lag: Option<u64>,
    /// Its answer.
    status: Option<MemberStatus>,
}

/// Asks, judges and prints. Exit code 0: healthy, 1: degraded, 3: writes are not served or nobody answers.
pub fn run(args: &StatusArgs) -> ExitCode {
    let tls = match args.tls.tls() {
        Ok(tls) => tls,
        Err(error) => {
            eprintln!("quenda status: {error:#}");
            return ExitCode::from(Health::Down as u8);
        }
    };
    let given = args.servers.iter().map(|address| with_port(address));
    let asker = Asker {
        patience: Duration::from_millis(args.timeout.max(1)),
        tls,
        given: given.collect(),
    };
    let report = judge::judge(collect(&args.servers, &|addresses| {
        asker.ask_all(addresses)
    }));
    let text = if args.json {
        let json = serde_json::to_string_pretty(&report);
        json.expect("names and numbers always have a form in JSON") + "\n"
    } else {
        table::text(&report)
    };
    // Whoever reads no further has seen enough; the exit code is the answer.
    if let Err(error) = io::stdout().write_all(text.as_bytes())
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        eprintln!("quenda status: {error}");
    }
    ExitCode::from(report.health as u8)
}

/// An answer, or why there is none.
type Answer = Result<MemberStatus, String>;

/// Asks the given addresses, then the members that those who answer know of.
fn collect(given: &[String], ask: &dyn Fn(&[String]) -> Vec<Answer>) -> Vec<Row> {
    let mut answers: BTreeMap<String, Answer> = BTreeMap::new();
    let mut next: Vec<String> = Vec::new();
    for address in given.iter().map(|address| with_port(address)) {
        if !next.contains(&address) {
            next.push(address);
        }
    }
    // Twice: what a member that lags knows of may be old, and lead to one that knows more.
    for _ in 0..3 {
        let found = ask(&next);
        answers.extend(next.drain(..).zip(found));
        let cluster = newest(&answers).map(|status| status.cluster.clone());
        let own = answers.values().flatten();
        let own = own.filter(|status| Some(&status.cluster) == cluster.as_ref());
        let seen: Vec<u64> = own.map(|status| status.member).collect();
        let missing = known(&answers)
            .into_values()
            .filter(|server| !seen.contains(&server.id));
        next = missing
            .filter_map(|server| server.client)
            .filter(|address| !answers.contains_key(address))
            .collect();
        if next.is_empty() {
            break;
        }
    }
    rows(answers)
}

/// The answer with the newest configuration.
fn newest(answers: &BTreeMap<String, Answer>) -> Option<&MemberStatus> {
    let version = |status: &&MemberStatus| {
        let text = status.config_version.as_deref().unwrap_or_default();
        u64::from_str_radix(text, 16).unwrap_or(0)
    };
    answers.values().flatten().max_by_key(version)
}

/// The newest configuration among the answers, by id.
fn known(answers: &BTreeMap<String, Answer>) -> BTreeMap<u64, ConfiguredServer> {
    let servers = newest(answers).map(|status| status.servers.clone());
    let servers = servers.unwrap_or_default().into_iter();
    servers.map(|server| (server.id, server)).collect()
}

/// One row for each member that is known or answered, and for each address that nobody is known at.
fn rows(answers: BTreeMap<String, Answer>) -> Vec<Row> {
    let known = known(&answers);
    let mut members: BTreeMap<u64, Row> = BTreeMap::new();
    let mut strangers = Vec::new();
    for (address, answer) in answers {
        let at = known
            .values()
            .find(|server| server.client.as_ref() == Some(&address));
        let (id, row) = match answer {
            Ok(status) => (
                Some(status.member),
                Row {
                    status: Some(status),
                    ..Row::default()
                },
            ),
            Err(error) => (
                at.map(|server| server.id),
                Row {
                    error: Some(error),
                    ..Row::default()
                },
            ),
        };
        let row = Row {
            id,
            address: Some(address),
            ..row
        };
        let before = id.and_then(|id| members.get(&id));
        let cluster = |row: &Row| row.status.as_ref().map(|status| status.cluster.clone());
        match (id, before) {
            (Some(id), before) if before.is_none_or(|before| before.status.is_none()) => {
                members.insert(id, row);
            }
            // A member may have been asked at two addresses, and in two ways.
            (Some(_), Some(before)) if row.status.is_none() || cluster(before) == cluster(&row) => {
            }
            (Some(_), _) | (None, _) => strangers.push(row),
        }
    }
    for server in known.into_values() {
        members.entry(server.id).or_insert_with(|| Row {
            id: Some(server.id),
            error: Some(
                "its client address is not in the configuration: name it with --servers".to_owned(),
            ),
            ..Row::default()
        });
    }
    members.into_values().chain(strangers).collect()
}

/// An address without a port means the usual one.
fn with_port(address: &str) -> String {
    let address = address.trim();
    let behind_brackets = address.rsplit(']').next().unwrap_or(address);
    let bare_ipv6 = !address.contains(']') && address.matches(':').count() > 1;
    match (bare_ipv6, behind_brackets.contains(':')) {
        (true, _) => format!("[{address}]:2181"),
        (false, true) => address.to_owned(),
        (false, false) => format!("{address}:2181"),
    }
}

#[cfg(test)]
mod tests;
