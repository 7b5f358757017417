//! `quenda snapshot` and `quenda restore`: the whole state out of a member and into an ensemble, by the port for
//! administration over HTTP.

mod http;
mod progress;
mod restore;
mod snapshot;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;

use crate::connection::ConnectionArgs;
use http::Endpoint;

pub use restore::RestoreArgs;
pub use snapshot::SnapshotArgs;

/// Where administration over HTTP is.
#[derive(Debug, clap::Args)]
pub struct AdminArgs {
    /// Host and port of a member's administration over HTTP (admin.serverPort)
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8080")]
    server: String,
    /// Path of its commands (admin.commandURL)
    #[arg(long, value_name = "PATH", default_value = "/commands")]
    command_url: String,
    /// Seconds without a byte after which it is given up
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    #[command(flatten)]
    connection: ConnectionArgs,
}

impl AdminArgs {
    fn endpoint(&self) -> Result<Endpoint> {
        let identities = self.connection.identities()?;
        let authorization = match identities.first() {
            // The caller's address, which is enough where the root is open.
            None => "ip".to_owned(),
            Some((scheme, text)) => format!("{scheme} {}", String::from_utf8_lossy(text)),
        };
        Ok(Endpoint {
            address: self.server.clone(),
            path: self.command_url.trim_end_matches('/').to_owned(),
            tls: self.connection.tls.tls()?,
            authorization,
            patience: Duration::from_secs(self.timeout),
        })
    }
}

/// Fetches a snapshot. Exit code 0: it is there; 1: it is not.
pub fn run_snapshot(args: &SnapshotArgs) -> ExitCode {
    report("snapshot", snapshot::run(args))
}

/// Restores a snapshot. Exit code 0: it is restored; 1: declined or failed.
pub fn run_restore(args: &RestoreArgs) -> ExitCode {
    report("restore", restore::run(args))
}

fn report(command: &str, result: Result<ExitCode>) -> ExitCode {
    result.unwrap_or_else(|error| {
        eprintln!("quenda {command}: {error:#}");
        ExitCode::FAILURE
    })
}
