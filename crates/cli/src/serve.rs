//! `quenda serve`: the server.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use quenda_server::config::{
    ConfigError, Environment, Level, Overrides, ServerConfig, audit_of_refused,
};
use quenda_server::{ServeError, record_refused_start, serve};
use tracing::{error, info, warn};

use crate::log_sink::LogSink;
use crate::logging::LogArgs;

/// What `quenda serve` takes. A flag overrules the configuration file.
#[derive(Debug, clap::Args)]
pub struct ServeArgs {
    /// A ZooKeeper configuration (zoo.cfg). Without one the defaults hold: port 2181, data in ./quenda-data.
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    /// TCP port for clients; 0 takes any free one [clientPort]
    #[arg(long, value_name = "PORT")]
    client_port: Option<u16>,
    /// Address to listen on; all of them if not given [clientPortAddress]
    #[arg(long, value_name = "HOST")]
    client_address: Option<String>,
    /// TCP port on which clients speak TLS; give the certificates with -Dssl.keyStore.location=… and
    /// -Dssl.trustStore.location=… [secureClientPort]
    #[arg(long, value_name = "PORT")]
    secure_client_port: Option<u16>,
    /// Address for TLS to listen on; all of them if not given [secureClientPortAddress]
    #[arg(long, value_name = "HOST")]
    secure_client_address: Option<String>,
    /// Directory of the data [dataDir]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Directory of the write-ahead log, on a disk of its own if possible [dataLogDir]
    #[arg(long, value_name = "DIR")]
    data_log_dir: Option<PathBuf>,
    /// Base time unit; session timeouts lie between 2 and 20 of it [tickTime]
    #[arg(long, value_name = "MS")]
    tick_time: Option<u32>,
    /// Shortest session timeout [minSessionTimeout]
    #[arg(long, value_name = "MS")]
    min_session_timeout: Option<u32>,
    /// Longest session timeout [maxSessionTimeout]
    #[arg(long, value_name = "MS")]
    max_session_timeout: Option<u32>,
    /// Connections from one address; 0 for no bound [maxClientCnxns]
    #[arg(long, value_name = "N")]
    max_client_cnxns: Option<u32>,
    /// Largest request in bytes [jute.maxbuffer]
    #[arg(long, value_name = "BYTES")]
    max_frame: Option<u32>,
    /// Four-letter words that are answered, with commas between; * for all [4lw.commands.whitelist]
    #[arg(long, value_name = "WORDS")]
    four_letter_words: Option<String>,
    /// JAAS file with the users of SASL DIGEST-MD5, in its section Server [java.security.auth.login.config]
    #[arg(long, value_name = "FILE")]
    jaas: Option<PathBuf>,
    /// The same users in a plain file, `user: password` one a line [quenda.saslUsers]
    #[arg(long, value_name = "FILE", conflicts_with = "jaas")]
    sasl_users: Option<PathBuf>,
    /// This member's id, 1 to 127 or 129 to 254 [the file myid]
    #[arg(long, value_name = "N")]
    my_id: Option<u64>,
    /// A member of the ensemble, this one included, once for each: 1=host:2888:3888;2181 [server.N]
    #[arg(long = "server", value_name = "N=HOST:PORT:PORT[:ROLE];CLIENTPORT", value_parser = server)]
    servers: Vec<(String, String)>,
    /// Any other key of zoo.cfg, as a Java property
    #[arg(short = 'D', value_name = "KEY=VALUE", value_parser = property)]
    properties: Vec<(String, String)>,
    #[command(flatten)]
    log: LogArgs,
}

pub(crate) fn property(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) => Ok((key.to_string(), value.to_string())),
        None => Err("a property is KEY=VALUE".to_string()),
    }
}

fn server(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((id, line)) => Ok((
            id.trim_start_matches("server.").to_string(),
            line.to_string(),
        )),
        None => {
            Err("a member is N=host:quorumPort:electionPort[:role][;[host:]clientPort]".to_string())
        }
    }
}

/// Runs the server until it is told to stop.
pub fn run(args: ServeArgs) -> ExitCode {
    let log = match args.log.start() {
        Ok(log) => log,
        Err(error) => {
            eprintln!("quenda serve: no thread for the logs: {error}");
            return ExitCode::FAILURE;
        }
    };
    let end = load_and_serve(args, &log);
    log.flush();
    // Scripts look for it as the last line, so it waits for the thread that writes the log.
    if let Some(line) = end.last_line {
        // Where nothing can be said any more (a log on the disk that is full), the exit code still counts.
        let _unsaid = writeln!(std::io::stderr(), "{line}");
    }
    ExitCode::from(end.code)
}

/// How the process ends. Exit codes follow ZooKeeper's: 0 a clean end, 1 an unexpected error, 2 a wrong
/// configuration, 3 an unusable data directory, 4 no port for administration.
struct End {
    code: u8,
    last_line: Option<&'static str>,
}

fn load_and_serve(args: ServeArgs, log: &LogSink) -> End {
    let overrides = Overrides {
        client_port: args.client_port,
        client_address: args.client_address,
        secure_client_port: args.secure_client_port,
        secure_client_address: args.secure_client_address,
        data_dir: args.data_dir,
        data_log_dir: args.data_log_dir,
        tick_time_ms: args.tick_time,
        min_session_timeout_ms: args.min_session_timeout,
        max_session_timeout_ms: args.max_session_timeout,
        max_client_cnxns: args.max_client_cnxns,
        max_frame: args.max_frame,
        four_letter_whitelist: args.four_letter_words,
        jaas: args.jaas,
        sasl_users: args.sasl_users,
        my_id: args.my_id,
        servers: args.servers,
        properties: args.properties,
        ..Overrides::default()
    };
    let environment = Environment::of_this_process();
    match ServerConfig::load(args.config.as_deref(), &environment, &overrides) {
        Ok((config, remarks)) => {
            for remark in remarks {
                match remark.level {
                    Level::Info => info!("{remark}"),
                    Level::Warn => warn!("{remark}"),
                }
            }
            end(serve(config), log)
        }
        Err(error) => {
            error!("{error}");
            let audit = audit_of_refused(args.config.as_deref(), &environment, &overrides);
            if let Some(audit) = audit {
                record_refused_start(&audit);
            }
            End {
                code: ConfigError::EXIT_CODE,
                last_line: Some(ConfigError::LAST_LINE),
            }
        }
    }
}

fn end(result: Result<(), ServeError>, log: &LogSink) -> End {
    let Err(error) = result else {
        return End {
            code: 0,
            last_line: None,
        };
    };
    error!("{error}");
    match error {
        ServeError::Store(_) | ServeError::Load(_) | ServeError::Lost(_) => End {
            code: 3,
            last_line: Some("Unable to access datadir, exiting abnormally"),
        },
        ServeError::Members { .. }
        | ServeError::Tls(_)
        | ServeError::Users(_)
        | ServeError::Audit { .. }
        | ServeError::LocalSessions { .. } => End {
            code: ConfigError::EXIT_CODE,
            last_line: Some(ConfigError::LAST_LINE),
        },
        ServeError::Admin { .. } => End {
            code: 4,
            last_line: Some("Unable to start AdminServer, exiting abnormally"),
        },
        ServeError::ListenQuorum { .. } => End {
            code: 14,
            last_line: None,
        },
        ServeError::Stuck => {
            log.flush();
            std::process::abort();
        }
        ServeError::Listen { .. }
        | ServeError::Member(_)
        | ServeError::Raft(_)
        | ServeError::Entry(_)
        | ServeError::System(_) => End {
            code: 1,
            last_line: None,
        },
    }
}
