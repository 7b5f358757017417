//! Structured logs on standard error.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;

use crate::log_sink::LogSink;

/// How to log.
#[derive(Debug, clap::Args)]
pub struct LogArgs {
    /// What to log: error, warn, info, debug, trace, or a list such as info,quenda_server=debug
    #[arg(
        long,
        env = "QUENDA_LOG",
        default_value = "info",
        value_name = "FILTER"
    )]
    log: String,
    /// Form of the log lines
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum LogFormat {
    /// Lines for people
    Text,
    /// One JSON object a line
    Json,
}

impl LogArgs {
    /// Starts logging; a filter that cannot be read is named and replaced by the default. Flush the sink
    /// before the process ends.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(&self) -> io::Result<LogSink> {
        let sink = LogSink::start(io::stderr())?;
        let (filter, fault) = match EnvFilter::try_new(&self.log) {
            Ok(filter) => (filter, None),
            Err(error) => (EnvFilter::new("info"), Some(error)),
        };
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_ansi(std::io::stderr().is_terminal())
            .with_writer(sink.clone());
        match self.log_format {
            LogFormat::Text => subscriber.init(),
            LogFormat::Json => subscriber.json().init(),
        }
        if let Some(error) = fault {
            tracing::warn!(%error, filter = self.log, "the log filter cannot be read, info is used");
        }
        Ok(sink)
    }
}
