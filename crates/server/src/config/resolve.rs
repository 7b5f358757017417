//! From text to typed, checked settings.

mod refusals;

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use quenda_frontend::EnsembleNames;
use quenda_tree::ensemble::Server;
use quenda_tree::identity::DigestAlgorithm;

use super::members::Members;
use super::remark::{ConfigError, Remark};
use super::settings::Settings;
use super::{AuditSettings, DEFAULT_CLIENT_PORT, Overrides, SaslSettings, ServerConfig};
pub(super) use refusals::of_all_parts;

use super::{admin, audit, backup, keys, leader_serves, links, load, members, metrics, quorum_tls};
use super::{sasl, storage, throttle, tls};

/// Schemes that a client can prove an identity with.
const SCHEMES: [&str; 4] = ["digest", "ip", SASL, X509];
/// What ZooKeeper calls the providers of those schemes, and of the one by which a client says which ensemble it means.
const PROVIDERS: [&str; 5] = [
    sasl::PROVIDER,
    ENSEMBLE_PROVIDER,
    "org.apache.zookeeper.server.auth.DigestAuthenticationProvider",
    "org.apache.zookeeper.server.auth.IPAuthenticationProvider",
    tls::X509_PROVIDER,
];
const ENSEMBLE_PROVIDER: &str = "org.apache.zookeeper.server.auth.EnsembleAuthenticationProvider";
const SASL: &str = "sasl";
const X509: &str = "x509";
/// Keys without effect that take `true` and `false` alone.
const STRICT_BOOLEANS: [&str; 1] = ["syncEnabled"];
/// Keys without effect that take a number alone.
const STRICT_NUMBERS: [&str; 4] = [
    "connectToLearnerMasterLimit",
    "autopurge.snapRetainCount",
    "autopurge.purgeInterval",
    "observerMasterPort",
];
/// The greatest number a Java `int` holds.
pub(super) const GREATEST_NUMBER: i64 = i32::MAX as i64;
/// The least request bound with which a client can still open a session.
const LEAST_FRAME: i64 = 64;

/// The host that an address without one stands for.
const ANY: &str = "0.0.0.0";

/// Reads settings one by one and keeps what there is to remark.
pub(super) struct Reader<'a> {
    pub(super) settings: &'a Settings,
    pub(super) remarks: &'a mut Vec<Remark>,
}

/// Builds the configuration.
pub(super) fn resolve(
    settings: &Settings,
    overrides: &Overrides,
    remarks: &mut Vec<Remark>,
) -> Result<ServerConfig, ConfigError> {
    let mut reader = Reader { settings, remarks };
    let data_dir = data_directory(&mut reader, overrides)?;
    let data_log_dir = reader.directory("dataLogDir", overrides.data_log_dir.as_deref());
    reader.demand_directories([Some(&data_dir), data_log_dir.as_ref()])?;
    let tick_time_ms = reader.tick_time()?;
    let (min_session_timeout_ms, max_session_timeout_ms) = reader.session_bounds(tick_time_ms)?;
    let Members {
        my_id,
        own,
        ensemble,
        observer,
        quorum_listen,
        init_limit,
        sync_limit,
    } = members::resolve(&mut reader, overrides.my_id, &data_dir)?;
    let leader_serves = leader_serves::resolve(&mut reader, &ensemble);
    let limits = links::Limits {
        tick_time_ms,
        init_limit,
        sync_limit,
        observer,
    };
    let links = links::resolve(&mut reader, &limits)?;
    let sasl = sasl::resolve(&mut reader)?;
    let by_flags = overrides.client_port.is_some() || overrides.client_address.is_some();
    // Whom the ensemble's configuration tells of a client address must be able to use it.
    let own = own.filter(|_| !by_flags || !ensemble.is_empty());
    let (client_address, client_port) = reader.client(own)?;
    let tls = tls::resolve(&mut reader)?;
    let quorum_tls = quorum_tls::resolve(&mut reader, !ensemble.is_empty())?;
    let x509_enabled = tls::provides_x509(&reader, tls.as_ref());
    let audit = audit::resolve(&mut reader, &data_dir)?;
    let metrics = metrics::resolve(&mut reader)?;
    let storage = storage::resolve(&mut reader, [Some(&data_dir), data_log_dir.as_deref()])?;
    reader.demand_forms()?;
    Ok(ServerConfig {
        file: None,
        written_file: None,
        audit,
        metrics,
        storage,
        client_keep_alive: reader.is_true("clientTcpKeepAlive"),
        quorum_bind_attempts: reader.loose("electionPortBindRetry", 0, GREATEST_NUMBER)?,
        client_port,
        client_address,
        data_dir,
        data_log_dir,
        tick_time_ms,
        min_session_timeout_ms,
        max_session_timeout_ms,
        max_client_cnxns: reader.strict_count("maxClientCnxns")?,
        max_cnxns: reader.loose("maxCnxns", 0, GREATEST_NUMBER)?,
        max_frame: reader.loose("jute.maxbuffer", LEAST_FRAME, GREATEST_NUMBER)?,
        client_port_listen_backlog: backlog(reader.strict("clientPortListenBacklog")?),
        digest_algorithm: reader.digest_algorithm()?,
        digest_enabled: reader.is_true("DigestAuthenticationProvider.enabled"),
        four_letter_whitelist: settings.get("4lw.commands.whitelist").map(str::to_owned),
        read_only_mode: reader.is_true("readonlymode.enabled"),
        local_sessions: reader.strict_bool("localSessionsEnabled")?,
        local_sessions_upgrading: reader.strict_bool("localSessionsUpgradingEnabled")?,
        super_digest: reader.super_digest(),
        skip_acl: settings.get_or_default("skipACL") == "yes",
        eager_acl_check: reader.is_true("enableEagerACLCheck"),
        enforce_quota: reader.is_true("enforceQuota"),
        ttl_enabled: reader.is_true("extendedTypesEnabled"),
        reconfig_enabled: reader.strict_bool("reconfigEnabled")?,
        standalone_enabled: reader.strict_bool("standaloneEnabled")?,
        leader_serves,
        container_check_interval_ms: reader.loose(
            "znode.container.checkIntervalMs",
            1,
            GREATEST_NUMBER,
        )?,
        container_max_per_minute: reader.loose(
            "znode.container.maxPerMinute",
            1,
            GREATEST_NUMBER,
        )?,
        container_max_never_used_ms: reader.loose(
            "znode.container.maxNeverUsedIntervalMs",
            0,
            GREATEST_NUMBER,
        )?,
        sessionless_timeout_ms: reader.loose("nio.sessionlessCnxnTimeout", 1, GREATEST_NUMBER)?,
        throttle: throttle::resolve(&mut reader)?,
        load: load::resolve(&mut reader)?,
        enforce_auth_schemes: reader.enforced_schemes(&sasl, x509_enabled)?,
        ensemble_names: reader.ensemble_names(),
        sasl,
        admin: admin::resolve(&mut reader)?,
        backup: backup::resolve(&mut reader),
        tls,
        quorum_tls,
        x509_enabled,
        x509_super_user: settings
            .get("X509AuthenticationProvider.superUser")
            .filter(|subject| !subject.is_empty())
            .map(str::to_owned),
        linearizable_reads: reader.is_true("quenda.linearizableReads"),
        my_id,
        ensemble,
        observer,
        quorum_listen,
        links,
        init_limit,
        sync_limit,
    })
}

fn data_directory(reader: &mut Reader<'_>, overrides: &Overrides) -> Result<PathBuf, ConfigError> {
    let directory = reader.directory("dataDir", overrides.data_dir.as_deref());
    directory.ok_or(ConfigError::invalid("dataDir is not set"))
}

/// The audit log of a configuration that may be wrong otherwise.
pub(super) fn audit_alone(
    settings: &Settings,
    overrides: &Overrides,
    remarks: &mut Vec<Remark>,
) -> Option<AuditSettings> {
    let mut reader = Reader { settings, remarks };
    let data_dir = reader.directory("dataDir", overrides.data_dir.as_deref())?;
    audit::resolve(&mut reader, &data_dir).ok()?
}

impl Reader<'_> {
    fn directory(&mut self, name: &str, given: Option<&Path>) -> Option<PathBuf> {
        if let Some(path) = given {
            return Some(path.to_owned());
        }
        let path = PathBuf::from(self.settings.get(name).filter(|path| !path.is_empty())?);
        warn_if_relative(&path, self.remarks);
        Some(path)
    }

    /// Without `datadir.autocreate` a directory that is missing stops the start: a volume may not be mounted.
    fn demand_directories(&self, directories: [Option<&PathBuf>; 2]) -> Result<(), ConfigError> {
        let missing = directories
            .into_iter()
            .flatten()
            .find(|directory| !directory.is_dir());
        match missing {
            Some(directory) if !self.is_true("datadir.autocreate") => {
                Err(ConfigError::invalid(format!(
                    "Missing data directory {}, and datadir.autocreate is not true",
                    directory.display()
                )))
            }
            _ => Ok(()),
        }
    }

    /// Keys without effect here that ZooKeeper's own parser would stop at.
    fn demand_forms(&self) -> Result<(), ConfigError> {
        for name in STRICT_BOOLEANS {
            self.strict_bool(name)?;
        }
        for name in STRICT_NUMBERS {
            if self.settings.get(name).is_some() {
                self.strict(name)?;
            }
        }
        Ok(())
    }

    fn tick_time(&self) -> Result<u32, ConfigError> {
        match self.strict("tickTime")? {
            0 => Err(ConfigError::invalid("tickTime is not set")),
            ticks => u32::try_from(ticks)
                .map_err(|_| ConfigError::invalid(format!("tickTime: {ticks} is negative"))),
        }
    }

    fn session_bounds(&self, tick_time_ms: u32) -> Result<(u32, u32), ConfigError> {
        let bound = |name, ticks: u32| {
            let given: i32 = self.strict(name)?;
            // Negative is ZooKeeper's way to say "the default".
            Ok(u32::try_from(given)
                .unwrap_or(tick_time_ms.saturating_mul(ticks).min(i32::MAX as u32)))
        };
        let (least, greatest) = (
            bound("minSessionTimeout", 2)?,
            bound("maxSessionTimeout", 20)?,
        );
        if least > greatest {
            return Err(ConfigError::invalid(
                "minSessionTimeout must not be larger than maxSessionTimeout",
            ));
        }
        Ok((least, greatest))
    }

    /// Address and port for clients, from the keys or, if it is this member's, from the `server.N` line.
    fn client(&self, own: Option<Server>) -> Result<(Option<String>, Option<u16>), ConfigError> {
        let address = self
            .settings
            .get("clientPortAddress")
            .filter(|address| !address.is_empty())
            .map(str::to_owned);
        let port = self.client_port("clientPort")?;
        if address.is_some() && port.is_none() && self.settings.get(DEFAULT_CLIENT_PORT).is_none() {
            return Err(ConfigError::invalid(
                "clientPortAddress is set but clientPort is not set",
            ));
        }
        let Some(Server {
            id,
            client: Some((host, line_port)),
            ..
        }) = own
        else {
            let default = self.client_port(DEFAULT_CLIENT_PORT)?;
            return Ok((address, port.or(default)));
        };
        let address = address.unwrap_or_else(|| ANY.to_owned());
        match port {
            Some(port)
                if port != line_port || (address != host && !members::is_wildcard(&address)) =>
            {
                Err(ConfigError::invalid(format!(
                    "client address for this server (id = {id}) in static config file is {address}:{port}, but in its \
                     server line it is {host}:{line_port}"
                )))
            }
            _ => Ok((Some(host), Some(line_port))),
        }
    }

    pub(super) fn client_port(&self, name: &str) -> Result<Option<u16>, ConfigError> {
        let text = self.settings.get(name);
        text.map(|text| port(name, text)).transpose()
    }

    fn enforced_schemes(
        &mut self,
        sasl: &SaslSettings,
        x509: bool,
    ) -> Result<Vec<String>, ConfigError> {
        self.remark_providers();
        if self.is_true("sessionRequireClientSASLAuth") {
            return match sasl.enabled {
                true => Ok(vec![SASL.to_owned()]),
                false => Err(no_provider("sessionRequireClientSASLAuth", SASL)),
            };
        }
        let schemes = self
            .settings
            .get_or_default("enforce.auth.schemes")
            .split(',')
            .map(str::trim);
        let schemes: Vec<String> = schemes
            .filter(|scheme| !scheme.is_empty())
            .map(str::to_owned)
            .collect();
        let enabled = self.is_true("enforce.auth.enabled");
        if enabled && schemes.is_empty() {
            return Err(ConfigError::invalid(
                "enforce.auth.enabled is true, but enforce.auth.schemes names none",
            ));
        }
        let digest = self.is_true("DigestAuthenticationProvider.enabled");
        let is_provided = |scheme: &str| match scheme {
            "digest" => digest,
            SASL => sasl.enabled,
            X509 => x509,
            _ => SCHEMES.contains(&scheme),
        };
        if let Some(scheme) = schemes
            .iter()
            .find(|scheme| enabled && !is_provided(scheme))
        {
            return Err(no_provider("enforce.auth.schemes", scheme));
        }
        Ok(if enabled { schemes } else { Vec::new() })
    }

    fn ensemble_names(&self) -> Option<EnsembleNames> {
        let mut providers = self.settings.family("authProvider.");
        let is_provided = providers.any(|(_, class)| class == ENSEMBLE_PROVIDER);
        is_provided.then(|| EnsembleNames::from_setting(self.settings.get("ensembleAuthName")))
    }

    fn digest_algorithm(&self) -> Result<DigestAlgorithm, ConfigError> {
        const KEY: &str = "DigestAuthenticationProvider.digestAlg";
        let name = self.settings.get_or_default(KEY);
        DigestAlgorithm::from_name(name).ok_or_else(|| {
            ConfigError::invalid(format!(
                "{KEY}={name} is not supported: SHA1, SHA-2 (as in SHA-256) and SHA-3 (as in SHA3-256) are"
            ))
        })
    }

    /// Whose digest is not of the form is never proved by anybody.
    fn super_digest(&mut self) -> Option<String> {
        const KEY: &str = "DigestAuthenticationProvider.superDigest";
        let digest = self.settings.get(KEY)?;
        if !digest.contains(':') {
            let text = format!("{KEY} is not of the form NAME:DIGEST: nobody can prove it");
            self.remarks.push(Remark::warn(text));
        }
        Some(digest.to_owned())
    }

    fn remark_providers(&mut self) {
        for (name, class) in self.settings.family("authProvider.") {
            if !PROVIDERS.contains(&class) {
                let text = format!(
                    "authProvider.{name} has no effect: {class} is not there; schemes are {SCHEMES:?}"
                );
                self.remarks.push(Remark::warn(text));
            }
        }
    }

    /// A number that ZooKeeper's own parser reads: decimal, or the start fails.
    pub(super) fn strict(&self, name: &str) -> Result<i32, ConfigError> {
        let text = self.settings.get_or_default(name);
        text.parse()
            .map_err(|_| ConfigError::invalid(format!("{name}: {text} is not a number")))
    }

    /// A strict number in which everything below zero means zero.
    pub(super) fn strict_count(&self, name: &str) -> Result<u32, ConfigError> {
        Ok(u32::try_from(self.strict(name)?).unwrap_or(0))
    }

    /// A number that ZooKeeper reads as a system property: decimal, hexadecimal or octal as Java writes it, and the
    /// default if it is no number. A number out of bounds is treated as none.
    pub(super) fn loose<T>(
        &mut self,
        name: &str,
        least: i64,
        greatest: i64,
    ) -> Result<T, ConfigError>
    where
        T: TryFrom<i64>,
    {
        let number = |text| {
            let value = decode(text).filter(|value| (least..=greatest).contains(value))?;
            T::try_from(value).ok()
        };
        let text = self.settings.get_or_default(name);
        if let Some(value) = number(text) {
            return Ok(value);
        }
        let default = keys::find(name).map_or("", |key| key.default);
        self.remarks.push(Remark::warn(format!(
            "{name}: {text} is not a number from {least} to {greatest}; using {default}"
        )));
        number(default)
            .ok_or_else(|| ConfigError::invalid(format!("{name}: {text} is not a number")))
    }

    /// The same for a key whose default depends on others.
    pub(super) fn loose_or(
        &mut self,
        name: &str,
        bounds: RangeInclusive<i64>,
        default: u64,
    ) -> u64 {
        let Some(text) = self.settings.get(name) else {
            return default;
        };
        let value = decode(text).filter(|value| bounds.contains(value));
        value
            .and_then(|value| u64::try_from(value).ok())
            .unwrap_or_else(|| {
                let (least, greatest) = bounds.into_inner();
                self.remarks.push(Remark::warn(format!(
                    "{name}: {text} is not a number from {least} to {greatest}; using {default}"
                )));
                default
            })
    }

    pub(super) fn is_true(&self, name: &str) -> bool {
        self.settings
            .get_or_default(name)
            .eq_ignore_ascii_case("true")
    }

    /// A boolean for which anything but `true` and `false` stops the start.
    pub(super) fn strict_bool(&self, name: &str) -> Result<bool, ConfigError> {
        let text = self.settings.get_or_default(name);
        match text.to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(ConfigError::invalid(format!(
                "Invalid option {text} for {name}. Choose 'true' or 'false.'"
            ))),
        }
    }
}

/// ZooKeeper says -1 for the system's choice, and a queue of length 0 is none.
fn backlog(length: i32) -> Option<u32> {
    u32::try_from(length).ok().filter(|length| *length > 0)
}

/// Remarks on a path that depends on the working directory, unless it begins with `./` to say that this is meant.
pub(super) fn warn_if_relative(path: &Path, remarks: &mut Vec<Remark>) {
    if path.is_relative() && !path.to_string_lossy().starts_with("./") {
        let text = format!(
            "{0} is relative to the working directory; write ./{0} if that is meant",
            path.display()
        );
        remarks.push(Remark::warn(text));
    }
}

fn no_provider(key: &str, scheme: &str) -> ConfigError {
    let remedy = match scheme {
        SASL => "; give users: java.security.auth.login.config or quenda.saslUsers",
        X509 => "; it comes with secureClientPort",
        _ => "",
    };
    ConfigError::invalid(format!(
        "{key}: there is no authentication provider for the scheme {scheme}{remedy}"
    ))
}

fn port(name: &str, text: &str) -> Result<u16, ConfigError> {
    text.parse()
        .map_err(|_| ConfigError::invalid(format!("{name}: {text} is not a port")))
}

/// Java's `Long.decode`: `0x`, `0X` or `#` before hexadecimal digits, a leading zero before octal ones, else decimal.
fn decode(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let hex = ["0x", "0X", "#"]
        .iter()
        .find_map(|prefix| digits.strip_prefix(prefix));
    let octal = digits.strip_prefix('0').filter(|rest| !rest.is_empty());
    let (digits, radix) = match (hex, octal) {
        (Some(rest), _) => (rest, 16),
        (None, Some(rest)) => (rest, 8),
        (None, None) => (digits, 10),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    i64::from_str_radix(digits, radix)
        .ok()
        .map(|value| sign * value)
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn numbers_of_system_properties_are_read_as_java_reads_them() {
        let cases = [
            ("1048575", Some(1_048_575)),
            ("0x9fffff", Some(0x9f_ffff)),
            ("0XfF", Some(255)),
            ("#ff", Some(255)),
            ("010", Some(8)),
            ("0", Some(0)),
            ("-1", Some(-1)),
            ("-0x10", Some(-16)),
            ("+5", Some(5)),
            ("", None),
            ("4MB", None),
            ("0x", None),
            ("--1", None),
            ("08", None),
        ];
        for (text, expected) in cases {
            assert_eq!(decode(text), expected, "{text}");
        }
    }
}
