//! Configuration: `zoo.cfg`, command-line flags and `-D` options become one checked value.
//!
//! [`ServerConfig::load`] is the whole interface. What the server does with each key stands in [`keys`]; nothing else
//! of the server reads files of settings or the environment.

mod admin;
mod audit;
mod backup;
mod check;
#[cfg(test)]
mod ensemble_tests;
mod file;
mod given;
mod hierarchy;
pub mod keys;
mod leader_serves;
mod links;
mod load;
mod members;
mod metrics;
pub mod properties;
mod quorum_tls;
mod remark;
mod resolve;
mod sasl;
#[cfg(test)]
mod sasl_tests;
mod settings;
mod storage;
mod table;
#[cfg(test)]
mod tests;
mod throttle;
mod tls;
#[cfg(test)]
mod tls_tests;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use quenda_frontend::EnsembleNames;
use quenda_tree::ensemble::Server;
use quenda_tree::identity::DigestAlgorithm;

pub use admin::AdminSettings;
pub use audit::{AuditFormat, AuditSettings};
pub use backup::BackupSettings;
pub(crate) use backup::WITH_ZXID;
pub use check::{Check, CheckedSetting};
pub use given::{Given, Source};
pub use links::LinkSettings;
pub use load::LoadSettings;
pub(crate) use members::{is_wildcard, quorum_listen};
pub use metrics::{MetricsEndpoint, MetricsSettings};
pub use remark::{ConfigError, Level, Remark};
pub use sasl::SaslSettings;
pub use settings::Environment;
pub use storage::{Gathering, StorageSettings};
pub use throttle::ThrottleSettings;
pub use tls::{
    ClientAuth, Dialing, Password, Protocol, Secret, StoreFormat, StoreSettings, TlsSettings,
};

/// Settings of one member, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// The file that it came from.
    pub file: Option<PathBuf>,
    /// The file that is rewritten when the members change, with new files beside it; `None` to write none.
    /// `reconfigEnabled`, with several members that flags do not name.
    pub written_file: Option<PathBuf>,
    /// TCP port for clients; 0 lets the system choose, `None` serves no clients. `clientPort`, or the `server.N` line.
    pub client_port: Option<u16>,
    /// Address or host name to listen on; all addresses if `None`. `clientPortAddress`, or the `server.N` line.
    pub client_address: Option<String>,
    /// Where the data lies. `dataDir`.
    pub data_dir: PathBuf,
    /// Where the log lies if apart from the data. `dataLogDir`.
    pub data_log_dir: Option<PathBuf>,
    /// Unit of the session bounds, ms, at least 1. `tickTime`.
    pub tick_time_ms: u32,
    /// Shortest session timeout granted, ms; not above the longest. `minSessionTimeout`.
    pub min_session_timeout_ms: u32,
    /// Longest session timeout granted, ms; fits an `i32`. `maxSessionTimeout`.
    pub max_session_timeout_ms: u32,
    /// Connections from one IP address; 0 for no bound. Those above are closed without a reply. `maxClientCnxns`.
    pub max_client_cnxns: u32,
    /// Connections of all clients; 0 for no bound. `maxCnxns`.
    pub max_cnxns: u32,
    /// Greatest request, bytes. `jute.maxbuffer`.
    pub max_frame: usize,
    /// Whether the digest scheme is there. `DigestAuthenticationProvider.enabled`.
    pub digest_enabled: bool,
    /// Hash of the digest scheme. `DigestAuthenticationProvider.digestAlg`.
    pub digest_algorithm: DigestAlgorithm,
    /// Authentication by SASL.
    pub sasl: SaslSettings,
    /// Length of the accept queue; `None` for the server's choice. `clientPortListenBacklog`.
    pub client_port_listen_backlog: Option<u32>,
    /// Four-letter words to answer, as text; `None` if not set. `4lw.commands.whitelist`.
    pub four_letter_whitelist: Option<String>,
    /// Whether a member without a quorum serves reads to clients that ask for it; allows the word `isro`.
    /// `readonlymode.enabled`.
    pub read_only_mode: bool,
    /// Whether new sessions are known to this member alone, in an ensemble. `localSessionsEnabled`.
    pub local_sessions: bool,
    /// Whether such a session becomes one of the cluster when it creates an ephemeral znode.
    /// `localSessionsUpgradingEnabled`.
    pub local_sessions_upgrading: bool,
    /// `super:` and the digest of the super user's name and password. `DigestAuthenticationProvider.superDigest`.
    pub super_digest: Option<String>,
    /// Whether access checks are off. `skipACL`.
    pub skip_acl: bool,
    /// Whether a write that this member sees to be forbidden is refused at once. `enableEagerACLCheck`.
    pub eager_acl_check: bool,
    /// Whether what goes over a hard quota is refused. `enforceQuota`.
    pub enforce_quota: bool,
    /// Whether znodes with a time to live can be created. `extendedTypesEnabled`.
    pub ttl_enabled: bool,
    /// Whether the reconfig request is allowed. `reconfigEnabled`.
    pub reconfig_enabled: bool,
    /// Whether a reconfig may not leave a single voter. `standaloneEnabled`.
    pub standalone_enabled: bool,
    /// Whether a member serves clients while it leads an ensemble. `leaderServes`.
    pub leader_serves: bool,
    /// Time between looks for containers and TTL znodes to delete, ms, at least 1. `znode.container.checkIntervalMs`.
    pub container_check_interval_ms: u64,
    /// Containers and TTL znodes deleted in a minute, at most; at least 1. `znode.container.maxPerMinute`.
    pub container_max_per_minute: u32,
    /// Age at which a container that never had a child is deleted, ms; 0 keeps it.
    /// `znode.container.maxNeverUsedIntervalMs`.
    pub container_max_never_used_ms: i64,
    /// Bounds of what waits.
    pub throttle: ThrottleSettings,
    /// What is told about the load.
    pub load: LoadSettings,
    /// Time after which a connection without a session is closed, ms, at least 1. `nio.sessionlessCnxnTimeout`.
    pub sessionless_timeout_ms: u64,
    /// Schemes of which a client must prove an identity of one before it may do anything, each with a provider; empty
    /// to demand none. `enforce.auth.enabled`, `enforce.auth.schemes`.
    pub enforce_auth_schemes: Vec<String>,
    /// By which names clients may call this ensemble; `None` if the scheme is not there. `ensembleAuthName` with
    /// `authProvider.*`.
    pub ensemble_names: Option<EnsembleNames>,
    /// Administration over HTTP.
    pub admin: AdminSettings,
    /// Where the metrics are, and under which names.
    pub metrics: MetricsSettings,
    /// Snapshots for operators.
    pub backup: BackupSettings,
    /// TLS for clients; `None` if no client port speaks it.
    pub tls: Option<TlsSettings>,
    /// TLS between members, if there is any; `unified` tells whether the quorum port takes both. `sslQuorum`,
    /// `portUnification`.
    pub quorum_tls: Option<TlsSettings>,
    /// Whether the scheme x509 is there. By `tls`, or `authProvider.*`.
    pub x509_enabled: bool,
    /// Subject of the certificate that passes every check. `X509AuthenticationProvider.superUser`.
    pub x509_super_user: Option<String>,
    /// The audit log; `None` for none. `audit.enable`.
    pub audit: Option<AuditSettings>,
    /// The store.
    pub storage: StorageSettings,
    /// Whether the system looks for clients that are gone without a word. `clientTcpKeepAlive`.
    pub client_keep_alive: bool,
    /// How often the quorum port is tried while another process has it; 0 for ever. `electionPortBindRetry`.
    pub quorum_bind_attempts: u32,
    /// Whether every read waits until it is sure to see all writes acknowledged before it was asked.
    /// `quenda.linearizableReads`.
    pub linearizable_reads: bool,
    /// The member's id, 1 to 127 or 129 to 254: the file `myid` in the data directory; for a member that runs alone
    /// else the `server.N` line, else 1.
    pub my_id: u64,
    /// The servers to found the ensemble with, by rising id; this member is among them. Empty if this member runs
    /// alone. Once there is an ensemble, the replicated configuration counts, not this one. `server.N`.
    pub ensemble: Vec<Server>,
    /// Whether this member has no vote, by its line in `ensemble`; false if it runs alone.
    pub observer: bool,
    /// Where to listen for the other members: host (`None` for all addresses) and port. Empty if this member runs
    /// alone. The addresses of its line in `ensemble`, `quorumListenOnAllIPs`.
    pub quorum_listen: Vec<(Option<String>, u16)>,
    /// Times and bounds of the connections between members.
    pub links: LinkSettings,
    /// Ticks that a member has to connect and catch up; 0 if it runs alone. `initLimit`.
    pub init_limit: u32,
    /// Ticks that a follower may lag; 0 if it runs alone. `syncLimit`.
    pub sync_limit: u32,
}

/// Settings from the command line; each one that is given wins over the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// See [`ServerConfig::client_port`].
    pub client_port: Option<u16>,
    /// See [`ServerConfig::client_address`].
    pub client_address: Option<String>,
    /// See [`TlsSettings::port`].
    pub secure_client_port: Option<u16>,
    /// See [`TlsSettings::address`].
    pub secure_client_address: Option<String>,
    /// See [`ServerConfig::data_dir`].
    pub data_dir: Option<PathBuf>,
    /// See [`ServerConfig::data_log_dir`].
    pub data_log_dir: Option<PathBuf>,
    /// See [`ServerConfig::tick_time_ms`].
    pub tick_time_ms: Option<u32>,
    /// See [`ServerConfig::min_session_timeout_ms`].
    pub min_session_timeout_ms: Option<u32>,
    /// See [`ServerConfig::max_session_timeout_ms`].
    pub max_session_timeout_ms: Option<u32>,
    /// See [`ServerConfig::max_client_cnxns`].
    pub max_client_cnxns: Option<u32>,
    /// See [`ServerConfig::max_cnxns`].
    pub max_cnxns: Option<u32>,
    /// See [`ServerConfig::max_frame`].
    pub max_frame: Option<u32>,
    /// See [`ServerConfig::four_letter_whitelist`].
    pub four_letter_whitelist: Option<String>,
    /// A file with SASL users, see [`SaslSettings::users`].
    pub sasl_users: Option<PathBuf>,
    /// A JAAS file, see [`SaslSettings::users`].
    pub jaas: Option<PathBuf>,
    /// See [`ServerConfig::my_id`].
    pub my_id: Option<u64>,
    /// Ids and values of `server.N` lines; if there are any, those of files count for nothing.
    pub servers: Vec<(String, String)>,
    /// `-Dname=value` options: keys of the file, or names of Java options. The fields above win over them, they win
    /// over the file.
    pub properties: Vec<(String, String)>,
}

/// What a start without a file takes for what no flag says.
const WITHOUT_FILE: [(&str, &str); 5] = [
    (DEFAULT_CLIENT_PORT, "2181"),
    ("dataDir", "./quenda-data"),
    ("tickTime", "2000"),
    ("initLimit", "10"),
    ("syncLimit", "5"),
];

/// Not a key of the file: the client port if neither a key nor a `server.N` line names one.
const DEFAULT_CLIENT_PORT: &str = "default clientPort";

/// Not a key of the file: where log files go, an option of Java and what `ZOO_LOG_DIR` says.
const LOG_DIRECTORY: &str = "zookeeper.log.dir";

impl ServerConfig {
    /// Whether new sessions are known to this member alone: a server that runs alone has only its own.
    pub fn has_local_sessions(&self) -> bool {
        self.local_sessions && !self.ensemble.is_empty()
    }

    /// Reads a `zoo.cfg`; [`load`](Self::load) without flags.
    ///
    /// # Errors
    /// See [`load`](Self::load).
    pub fn from_file(
        path: &Path,
        environment: &Environment,
    ) -> Result<(Self, Vec<Remark>), ConfigError> {
        Self::load(Some(path), environment, &Overrides::default())
    }

    /// Puts the configuration together: the command line over the file, the file over defaults, and Java's options from
    /// the environment where [`keys::Place`] says. Without a file, flags and good defaults suffice. Reads the file, a
    /// dynamic configuration file it names, and `myid` in the data directory.
    ///
    /// # Errors
    /// A file that cannot be read or is malformed, a missing or contradictory setting, or one that must not be passed
    /// over. The process is to end with [`ConfigError::EXIT_CODE`].
    pub fn load(
        file: Option<&Path>,
        environment: &Environment,
        overrides: &Overrides,
    ) -> Result<(Self, Vec<Remark>), ConfigError> {
        let mut remarks = Vec::new();
        if let Some(path) = file {
            resolve::warn_if_relative(path, &mut remarks);
        }
        let mut settings = settings::Settings::default();
        let config = load_into(&mut settings, file, environment, overrides, &mut remarks);
        match config {
            Ok(config) => Ok((config, remarks)),
            Err(mut errors) => Err(errors.swap_remove(0)),
        }
    }
}

/// The audit log that a configuration asks for which the server does not start with: that is told there too. `None` if it
/// asks for none, or cannot be read so far.
pub fn audit_of_refused(
    file: Option<&Path>,
    environment: &Environment,
    overrides: &Overrides,
) -> Option<AuditSettings> {
    let mut settings = settings::Settings::default();
    let mut remarks = Vec::new();
    read_all(&mut settings, file, environment, overrides, &mut remarks).ok()?;
    resolve::audit_alone(&settings, overrides, &mut remarks)
}

/// As [`ServerConfig::load`], with every line that was read in `settings` also if it fails, and with all that is wrong
/// among the errors, of which there is at least one: the first is why a start ends.
fn load_into(
    settings: &mut settings::Settings,
    file: Option<&Path>,
    environment: &Environment,
    overrides: &Overrides,
    remarks: &mut Vec<Remark>,
) -> Result<ServerConfig, Vec<ConfigError>> {
    read_all(settings, file, environment, overrides, remarks).map_err(|error| vec![error])?;
    let mut errors = settings.judge(remarks);
    match resolve::resolve(settings, overrides, remarks) {
        Ok(mut config) if errors.is_empty() => {
            let follows = config.reconfig_enabled && !config.ensemble.is_empty();
            let written = file.filter(|_| follows && overrides.servers.is_empty());
            config.written_file = written.map(Path::to_owned);
            if let Some(path) = file {
                let text = admin::initial_configuration(path).map_err(|error| vec![error])?;
                config.admin.initial_configuration = text;
                config.file = Some(path.to_owned());
            }
            Ok(config)
        }
        Ok(_) => Err(errors),
        Err(error) => {
            errors.push(error);
            add_others(&mut errors, resolve::of_all_parts(settings, overrides));
            Err(errors)
        }
    }
}

/// What is wrong with one part may show in another, too, in the same words.
fn add_others(errors: &mut Vec<ConfigError>, others: Vec<ConfigError>) {
    let mut told: BTreeSet<String> = errors.iter().map(ToString::to_string).collect();
    let news = others
        .into_iter()
        .filter(|error| told.insert(error.to_string()));
    errors.extend(news.collect::<Vec<_>>());
}

/// ZooKeeper notes there what was proposed; here that is in the replicated log.
fn remark_proposal(file: Option<&Path>, remarks: &mut Vec<Remark>) {
    let Some(file) = file else {
        return;
    };
    let mut next = file.as_os_str().to_owned();
    next.push(".dynamic.next");
    if Path::new(&next).exists() {
        remarks.push(Remark::info(format!(
            "{} has no effect: changes that are not finished are in the replicated log",
            next.display()
        )));
    }
}

fn read_all(
    settings: &mut settings::Settings,
    file: Option<&Path>,
    environment: &Environment,
    overrides: &Overrides,
    remarks: &mut Vec<Remark>,
) -> Result<(), ConfigError> {
    match file {
        Some(path) => {
            settings.add_file(path, remarks)?;
        }
        None => WITHOUT_FILE
            .iter()
            .for_each(|&(name, value)| settings.set(name, value)),
    }
    let dynamic = settings.get("dynamicConfigFile").map(PathBuf::from);
    let dynamic = dynamic.filter(|path| !path.as_os_str().is_empty());
    if let Some(path) = dynamic {
        settings.add_dynamic_file(&path, remarks)?;
    }
    remark_proposal(file, remarks);
    if let Some(directory) = &environment.log_directory {
        settings.set(LOG_DIRECTORY, directory);
    }
    settings.add_properties(environment.properties());
    settings.add_options(&overrides.properties, remarks);
    overrides.add_to(settings);
    Ok(())
}

impl Default for ServerConfig {
    /// What a start without a file, flags and environment gives. Reads no file: the id is 1.
    fn default() -> Self {
        let mut settings = settings::Settings::default();
        WITHOUT_FILE
            .iter()
            .for_each(|&(name, value)| settings.set(name, value));
        let overrides = Overrides {
            my_id: Some(1),
            ..Overrides::default()
        };
        resolve::resolve(&settings, &overrides, &mut Vec::new())
            .expect("the defaults of the table are valid")
    }
}

impl Overrides {
    /// Writes the flags over what the file says, in the file's own terms.
    fn add_to(&self, settings: &mut settings::Settings) {
        if !self.servers.is_empty() {
            settings.remove_family("server.");
        }
        for (id, line) in &self.servers {
            let name = format!("server.{id}");
            settings.give(Source::Flag, &name, &name, line);
        }
        let mut set = |name, value: Option<String>| {
            if let Some(value) = value {
                settings.give(Source::Flag, name, name, &value);
            }
        };
        set("clientPort", self.client_port.map(|port| port.to_string()));
        set("clientPortAddress", self.client_address.clone());
        set(
            "secureClientPort",
            self.secure_client_port.map(|port| port.to_string()),
        );
        set(
            "secureClientPortAddress",
            self.secure_client_address.clone(),
        );
        set("tickTime", self.tick_time_ms.map(|value| value.to_string()));
        set(
            "minSessionTimeout",
            self.min_session_timeout_ms.map(|value| value.to_string()),
        );
        set(
            "maxSessionTimeout",
            self.max_session_timeout_ms.map(|value| value.to_string()),
        );
        set(
            "maxClientCnxns",
            self.max_client_cnxns.map(|value| value.to_string()),
        );
        set("maxCnxns", self.max_cnxns.map(|value| value.to_string()));
        set(
            "jute.maxbuffer",
            self.max_frame.map(|value| value.to_string()),
        );
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        set("quenda.saslUsers", path(&self.sasl_users));
        set("java.security.auth.login.config", path(&self.jaas));
        set("4lw.commands.whitelist", self.four_letter_whitelist.clone());
    }
}
