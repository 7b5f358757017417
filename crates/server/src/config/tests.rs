//! Whole configurations, from the file to the value.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::limits::CHECKPOINT_LOG_BYTES;

/// A folder with a `zoo.cfg` in it; `DIR` in texts stands for the folder.
pub(super) struct Case {
    folder: TempDir,
    pub(super) environment: Environment,
    pub(super) overrides: Overrides,
}

impl Case {
    fn new(text: &str) -> Self {
        let case = Self {
            folder: tempfile::tempdir().expect("a temporary folder"),
            environment: Environment::default(),
            overrides: Overrides::default(),
        };
        case.write("zoo.cfg", text);
        case
    }

    /// A file with what every file needs, and `text`.
    pub(super) fn with(text: &str) -> Self {
        Self::new(&format!("dataDir=DIR\nclientPort=2181\n{text}"))
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        let text = text.replace("DIR", &self.folder.path().display().to_string());
        fs::write(self.folder.path().join(name), text).expect("the folder can be written");
    }

    /// A file in the folder.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Takes the right to read a file from all others.
    pub(super) fn close_to_others(&self, name: &str) {
        let mode = fs::Permissions::from_mode(0o600);
        fs::set_permissions(self.path(name), mode).expect("the mode can be set");
    }

    fn load(&self) -> Result<(ServerConfig, Vec<Remark>), ConfigError> {
        ServerConfig::load(
            Some(&self.folder.path().join("zoo.cfg")),
            &self.environment,
            &self.overrides,
        )
    }

    pub(super) fn config(&self) -> ServerConfig {
        self.load()
            .unwrap_or_else(|error| panic!("refused: {error}"))
            .0
    }

    pub(super) fn remarks(&self) -> Vec<Remark> {
        self.load()
            .unwrap_or_else(|error| panic!("refused: {error}"))
            .1
    }

    pub(super) fn refusal(&self) -> String {
        self.load().expect_err("accepted").to_string()
    }
}

#[test]
fn a_file_with_the_least_gets_zookeepers_defaults() {
    let case = Case::with("");
    let expected = ServerConfig {
        metrics: super::metrics::tests::plain(),
        file: Some(case.path("zoo.cfg")),
        written_file: None,
        audit: None,
        storage: StorageSettings {
            force_sync: true,
            snap_count: None,
            snap_log_bytes: CHECKPOINT_LOG_BYTES,
            slow_sync: Duration::from_millis(1000),
            gathering: Gathering::default(),
            may_found: true,
            markers: Vec::new(),
        },
        client_keep_alive: false,
        quorum_bind_attempts: 3,
        client_port: Some(2181),
        client_address: None,
        data_dir: case.folder.path().to_owned(),
        data_log_dir: None,
        tick_time_ms: 3000,
        min_session_timeout_ms: 6000,
        max_session_timeout_ms: 60_000,
        max_client_cnxns: 60,
        max_cnxns: 0,
        max_frame: 1_048_575,
        client_port_listen_backlog: None,
        digest_algorithm: DigestAlgorithm::Sha1,
        digest_enabled: true,
        sasl: SaslSettings::default(),
        four_letter_whitelist: None,
        read_only_mode: false,
        local_sessions: false,
        local_sessions_upgrading: false,
        super_digest: None,
        skip_acl: false,
        eager_acl_check: false,
        enforce_quota: false,
        ttl_enabled: true,
        reconfig_enabled: false,
        standalone_enabled: true,
        leader_serves: true,
        container_check_interval_ms: 60_000,
        container_max_per_minute: 10_000,
        container_max_never_used_ms: 300_000,
        throttle: ServerConfig::default().throttle,
        load: ServerConfig::default().load,
        sessionless_timeout_ms: 10_000,
        enforce_auth_schemes: Vec::new(),
        ensemble_names: None,
        tls: None,
        quorum_tls: None,
        x509_enabled: false,
        x509_super_user: None,
        admin: case.config().admin,
        backup: BackupSettings {
            with_zxid: true,
            ..BackupSettings::default()
        },
        linearizable_reads: false,
        my_id: 1,
        ensemble: Vec::new(),
        observer: false,
        quorum_listen: Vec::new(),
        links: LinkSettings::default(),
        init_limit: 0,
        sync_limit: 0,
    };
    let (config, remarks) = case.load().expect("accepted");
    assert_eq!(config, expected);
    assert_eq!(remarks, []);
}

#[test]
fn a_start_without_a_file_has_good_defaults() {
    let config = ServerConfig::default();
    assert_eq!(config.client_port, Some(2181));
    assert_eq!(config.data_dir, Path::new("./quenda-data"));
    assert_eq!(
        (
            config.tick_time_ms,
            config.min_session_timeout_ms,
            config.max_session_timeout_ms
        ),
        (2000, 4000, 40_000)
    );
    assert_eq!(config.my_id, 1);
}

#[test]
fn every_honoured_key_arrives() {
    let config = Case::new(
        "tickTime : 500\ndataDir DIR\ndataLogDir=DIR/log\nclientPort=0\nclientPortAddress=127.0.0.1\n\
         maxClientCnxns=7\nmaxCnxns=8\nminSessionTimeout=9\nmaxSessionTimeout=10\nclientPortListenBacklog=11\n\
         jute.maxbuffer=0xfff\n4lw.commands.whitelist=ruok, stat\nreadonlymode.enabled=true\nlocalSessionsEnabled=true\nlocalSessionsUpgradingEnabled=TRUE\n\
         DigestAuthenticationProvider.superDigest=super:D/InIHSb7yEEbrWz8b9l71RjZJU=\nskipACL=yes\nDigestAuthenticationProvider.enabled=false\n\
         enforceQuota=TRUE\nreconfigEnabled=true\nleaderServes=no\nznode.container.checkIntervalMs=12\n\
         znode.container.maxPerMinute=13\nznode.container.maxNeverUsedIntervalMs=0\n\
         nio.sessionlessCnxnTimeout=14\n\
         enforce.auth.enabled=true\nenforce.auth.schemes=ip\nquenda.linearizableReads=true\n\
         audit.enable=true\nquenda.audit.file=DIR/audit.log\nquenda.audit.format=json\n\
         quenda.audit.maxFileSizeMb=3\nquenda.audit.maxFiles=4\n\
         extendedTypesEnabled=false\nfsync.warningthresholdms=250\nforceSync=no\nsnapCount=1000\ndb.autocreate=false\nclientTcpKeepAlive=true\nelectionPortBindRetry=0\n\
         flushDelay=20\nmaxBatchSize=500\nsnapSizeLimitInKb=64\nenableEagerACLCheck=true\n",
    );
    let data_dir = config.folder.path().to_owned();
    let expected = ServerConfig {
        metrics: super::metrics::tests::plain(),
        file: Some(config.path("zoo.cfg")),
        written_file: None,
        storage: StorageSettings {
            force_sync: false,
            snap_count: Some(1000),
            snap_log_bytes: 64 << 10,
            slow_sync: Duration::from_millis(250),
            gathering: Gathering {
                delay: Duration::from_millis(20),
                idle: Duration::from_millis(6),
                txns_max: Some(500),
            },
            may_found: false,
            markers: Vec::new(),
        },
        client_keep_alive: true,
        quorum_bind_attempts: 0,
        audit: Some(AuditSettings {
            path: data_dir.join("audit.log"),
            format: AuditFormat::Json,
            bytes_max: 3 << 20,
            kept: 4,
        }),
        client_port: Some(0),
        client_address: Some("127.0.0.1".to_owned()),
        data_log_dir: Some(data_dir.join("log")),
        data_dir,
        tick_time_ms: 500,
        min_session_timeout_ms: 9,
        max_session_timeout_ms: 10,
        max_client_cnxns: 7,
        max_cnxns: 8,
        max_frame: 0xfff,
        client_port_listen_backlog: Some(11),
        digest_algorithm: DigestAlgorithm::Sha1,
        digest_enabled: false,
        sasl: SaslSettings::default(),
        four_letter_whitelist: Some("ruok, stat".to_owned()),
        read_only_mode: true,
        local_sessions: true,
        local_sessions_upgrading: true,
        super_digest: Some("super:D/InIHSb7yEEbrWz8b9l71RjZJU=".to_owned()),
        skip_acl: true,
        eager_acl_check: true,
        enforce_quota: true,
        ttl_enabled: false,
        reconfig_enabled: true,
        standalone_enabled: true,
        leader_serves: false,
        container_check_interval_ms: 12,
        container_max_per_minute: 13,
        container_max_never_used_ms: 0,
        throttle: ServerConfig::default().throttle,
        load: ServerConfig::default().load,
        sessionless_timeout_ms: 14,
        enforce_auth_schemes: vec!["ip".to_owned()],
        ensemble_names: None,
        tls: None,
        quorum_tls: None,
        x509_enabled: false,
        x509_super_user: None,
        admin: config.config().admin,
        backup: BackupSettings {
            with_zxid: true,
            ..BackupSettings::default()
        },
        linearizable_reads: true,
        my_id: 1,
        ensemble: Vec::new(),
        observer: false,
        quorum_listen: Vec::new(),
        links: LinkSettings::default(),
        init_limit: 0,
        sync_limit: 0,
    };
    assert_eq!(config.config(), expected);
}

#[test]
fn a_wrong_file_is_refused_in_zookeepers_words() {
    let cases = [
        ("clientPort=2181", "dataDir is not set"),
        ("dataDir=\nclientPort=2181", "dataDir is not set"),
        ("dataDir=DIR\ntickTime=0", "tickTime is not set"),
        ("dataDir=DIR\ntickTime=2s", "tickTime: 2s is not a number"),
        (
            "dataDir=DIR\nclientPortAddress=::1",
            "clientPortAddress is set but clientPort is not set",
        ),
        (
            "dataDir=DIR\nsecureClientPortAddress=::1",
            "secureClientPortAddress is set but secureClientPort is not set",
        ),
        (
            "dataDir=DIR\nclientPort=70000",
            "clientPort: 70000 is not a port",
        ),
        (
            "dataDir=DIR\nminSessionTimeout=9000\nmaxSessionTimeout=8999",
            "minSessionTimeout must not be larger than maxSessionTimeout",
        ),
        (
            "dataDir=DIR\nelectionAlg=1",
            "Invalid electionAlg value. Only 3 is supported.",
        ),
        (
            "dataDir=DIR\nreconfigEnabled=yes",
            "Invalid option yes for reconfigEnabled. Choose 'true' or 'false.'",
        ),
        (
            "dataDir=DIR\nenforce.auth.enabled=true",
            "enforce.auth.enabled is true, but enforce.auth.schemes names none",
        ),
        (
            "dataDir=DIR\nenforce.auth.enabled=true\nenforce.auth.schemes=digest,sasl",
            "enforce.auth.schemes: there is no authentication provider for the scheme sasl; give users: \
             java.security.auth.login.config or quenda.saslUsers",
        ),
        ("dataDir=DIR\nserver.x=h:1:2", "serverid x is not a number"),
        (
            "dataDir=DIR\nserver.1=h:1:2:observer",
            "Observers w/o participants is an invalid configuration",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(Case::new(text).refusal(), expected, "{text}");
    }
}

#[test]
fn what_would_change_data_in_silence_is_refused() {
    assert!(
        Case::with("DigestAuthenticationProvider.digestAlg=MD5")
            .refusal()
            .contains("SHA1, SHA-2 (as in SHA-256) and SHA-3 (as in SHA3-256) are")
    );
    let refusal = Case::with("quorum.auth.enableSasl=true").refusal();
    assert!(refusal.contains("a network of their own"), "{refusal}");
    Case::with("DigestAuthenticationProvider.digestAlg=SHA1\nelectionAlg=3").config();
    Case::with("sslQuorum=false\nquorum.auth.enableSasl=false").config();
}

#[test]
fn a_file_that_cannot_be_read_or_parsed_is_named() {
    let missing =
        ServerConfig::from_file(Path::new("/nonexistent/zoo.cfg"), &Environment::default());
    let text = missing.expect_err("there is no such file").to_string();
    assert!(
        text.starts_with("Error processing /nonexistent/zoo.cfg: "),
        "{text}"
    );
    let text = Case::with("a=\\u12").refusal();
    assert!(
        text.ends_with("zoo.cfg: malformed \\uxxxx encoding in line 3"),
        "{text}"
    );
}

#[test]
fn keys_without_effect_are_named_by_weight() {
    let case = Case::with(
        "initLimit=5\nquorum.cnxn.threads.size=1\nobserverMasterPort=1\nadmin.enableServer=false\nmaxClientCnxns=1\n\
         snapCount=100000\nfrobnicate=1\nssl.quorum.keyStore.location=/k\nmaxTimeToWaitForEpoch=3\n",
    );
    let mut seen: Vec<(Level, String)> = case
        .remarks()
        .into_iter()
        .map(|remark| {
            (
                remark.level,
                remark.text.split(' ').next().unwrap_or_default().to_owned(),
            )
        })
        .collect();
    seen.sort_by(|left, right| left.1.cmp(&right.1));
    let expected = [
        (Level::Info, "frobnicate"),
        (Level::Info, "leader.maxTimeToWaitForEpoch"),
        (Level::Warn, "observerMasterPort"),
        (Level::Info, "quorum.cnxn.threads.size"),
    ];
    assert_eq!(seen, expected.map(|(level, name)| (level, name.to_owned())));
}

#[test]
fn names_of_the_ensemble_need_their_provider() {
    let names = |text: &str| Case::with(text).config().ensemble_names;
    let provider =
        "authProvider.1=org.apache.zookeeper.server.auth.EnsembleAuthenticationProvider\n";
    let two = EnsembleNames::OneOf(vec!["a".to_owned(), "b".to_owned()]);
    assert_eq!(names("ensembleAuthName=a"), None);
    assert_eq!(names(provider), Some(EnsembleNames::Any));
    assert_eq!(
        names(&format!("{provider}ensembleAuthName=a, b")),
        Some(two)
    );
    assert_eq!(Case::with(provider).remarks(), []);
}

#[test]
fn missing_providers_and_wrong_values_are_warned_of() {
    let warned = |text: &str, part: &str| {
        let remarks = Case::with(text).remarks();
        let found = remarks
            .iter()
            .any(|remark| remark.level == Level::Warn && remark.text.contains(part));
        assert!(found, "{text}: {remarks:?}");
    };
    warned(
        "authProvider.1=org.apache.zookeeper.server.auth.KeyAuthenticationProvider",
        "KeyAuthenticationProvider",
    );
    let digest = "DigestAuthenticationProvider.superDigest";
    warned(&format!("{digest}=admin"), "is not of the form");
    warned("jute.maxbuffer=4MB", "4MB is not a number");
    // Tests of clients set it.
    warned("emulate353TTLNodes=true", "what 3.5.3 has stored");
    warned("dataLogDir=logs", "logs is relative");
    let plain = Case::with(
        "dataLogDir=./logs\nauthProvider.1=org.apache.zookeeper.server.auth.IPAuthenticationProvider",
    );
    assert_eq!(plain.remarks(), []);
}

#[test]
fn a_number_java_would_ignore_leaves_the_default() {
    assert_eq!(
        Case::with("jute.maxbuffer=4MB").config().max_frame,
        1_048_575
    );
    assert_eq!(
        Case::with("znode.container.checkIntervalMs=0")
            .config()
            .container_check_interval_ms,
        60_000
    );
    assert_eq!(Case::with("maxClientCnxns=-1").config().max_client_cnxns, 0);
}

#[test]
fn syncs_gather_as_they_are_told_to() {
    let gathering = |text: &str| Case::with(text).config().storage.gathering;
    let (ms, delay) = (Duration::from_millis, "flushDelay=30\n");
    let expected = Gathering {
        delay: ms(30),
        idle: ms(10),
        txns_max: Some(1000),
    };
    assert_eq!(gathering(delay), expected);
    let idle = gathering(&format!("{delay}maxWriteQueuePollTime=30")).idle;
    assert_eq!(idle, ms(30));
    let wrong = Case::with("flushDelay=30\nmaxWriteQueuePollTime=soon");
    assert_eq!(wrong.config().storage.gathering, expected);
    assert_eq!(wrong.remarks().len(), 1);
    let unbounded = gathering(&format!("{delay}maxBatchSize=0"));
    assert_eq!(unbounded.txns_max, None);
    assert_eq!(gathering("maxBatchSize=7").txns_max, Some(7));
    // Beyond what the log stands for.
    assert_eq!(gathering("flushDelay=251"), Gathering::default());
}

#[test]
fn a_missing_directory_stops_the_start_if_none_is_to_be_made() {
    let case = Case::with("dataLogDir=DIR/log\ndatadir.autocreate=false\n");
    let refusal = case.refusal();
    assert!(
        refusal.starts_with("Missing data directory ") && refusal.contains("/log, "),
        "{refusal}"
    );
    fs::create_dir(case.folder.path().join("log")).expect("the folder can be written");
    case.config();
}

#[test]
fn the_id_comes_from_myid() {
    let case = Case::with("");
    case.write("myid", "42\nmore");
    assert_eq!(case.config().my_id, 42);
    for wrong in [" 42", "42 ", "", "x", "-1", "0x10"] {
        case.write("myid", &format!("{wrong}\n"));
        assert_eq!(case.refusal(), format!("serverid {wrong} is not a number"));
    }
    for wrong in ["0", "128", "255"] {
        case.write("myid", wrong);
        let expected =
            format!("serverid {wrong} cannot number sessions: use 1 to 127 or 129 to 254");
        assert_eq!(case.refusal(), expected);
    }
}

#[test]
fn the_only_server_line_gives_the_client_address() {
    let mut case = Case::new("dataDir=DIR\nserver.3=localhost:2888:3888;127.0.0.1:2182\n");
    let address = |case: &Case| {
        let config = case.config();
        (config.my_id, config.client_address, config.client_port)
    };
    let line = Some("127.0.0.1".to_owned());
    assert_eq!(
        address(&case),
        (3, line.clone(), Some(2182)),
        "without myid the line's id is taken"
    );
    case.write("myid", "3");
    assert_eq!(address(&case), (3, line.clone(), Some(2182)));
    case.write("myid", "4");
    assert_eq!(
        address(&case),
        (4, None, None),
        "the line is another member's"
    );
    case.write("myid", "3");
    case.overrides.client_port = Some(7);
    assert_eq!(
        address(&case),
        (3, None, Some(7)),
        "a flag wins over the line"
    );
}

#[test]
fn key_and_line_must_agree_on_the_client_address() {
    let line = "server.1=h:1:2;127.0.0.1:2181\n";
    let config = Case::with(line).config();
    assert_eq!(
        (config.client_address.as_deref(), config.client_port),
        (Some("127.0.0.1"), Some(2181))
    );
    let refusal = Case::with(&format!("clientPortAddress=10.0.0.1\n{line}")).refusal();
    assert!(
        refusal.contains("in static config file is 10.0.0.1:2181"),
        "{refusal}"
    );
    let refusal = Case::new(&format!("dataDir=DIR\nclientPort=2182\n{line}")).refusal();
    assert!(
        refusal.contains("in its server line it is 127.0.0.1:2181"),
        "{refusal}"
    );
}

#[test]
fn a_dynamic_file_gives_the_server_line() {
    let case = Case::new("dataDir=DIR\ndynamicConfigFile=DIR/zoo.cfg.dynamic.100000000\n");
    let dynamic = "zoo.cfg.dynamic.100000000";
    case.write(dynamic, "server.5=h:1:2:participant;0.0.0.0:2183");
    assert_eq!(
        (case.config().my_id, case.config().client_port),
        (5, Some(2183))
    );
    case.write(dynamic, "tickTime=1");
    assert_eq!(case.refusal(), "Unrecognised parameter: tickTime");
    case.write(dynamic, "version=1");
    assert_eq!(case.refusal(), "dynamic file shouldn't have version inside");
    case.write(
        "zoo.cfg",
        "dataDir=DIR\nserver.1=h:1:2\ndynamicConfigFile=DIR/zoo.cfg.dynamic.100000000\n",
    );
    assert_eq!(
        case.refusal(),
        "parameter: server.1 must be in a separate dynamic config file"
    );
}

#[test]
fn options_of_java_count_as_java_would_count_them() {
    let mut case = Case::with("skipACL=no\n");
    case.environment = Environment {
        server_jvmflags: Some(
            "-Xmx1g -Djute.maxbuffer=100 -Dzookeeper.enforceQuota=true".to_owned(),
        ),
        jvmflags: Some(
            "-Djute.maxbuffer=200 -Dzookeeper.skipACL=yes -Dzookeeper.clientPort=1 -DtickTime=1"
                .to_owned(),
        ),
        java_opts: Some("-Djute.maxbuffer=50 -Dzookeeper.maxCnxns=9".to_owned()),
        log_directory: None,
    };
    let config = case.config();
    assert_eq!(config.max_frame, 200, "JVMFLAGS come last");
    assert_eq!(config.max_cnxns, 9, "JAVA_OPTS count too");
    assert!(config.enforce_quota);
    assert!(!config.skip_acl, "the file wins where both are read");
    assert_eq!(
        (config.client_port, config.tick_time_ms),
        (Some(2181), 3000),
        "these are read in the file alone"
    );
    let option = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    case.overrides.properties = vec![option("jute.maxbuffer", "300")];
    assert_eq!(
        case.config().max_frame,
        300,
        "the command line comes last of all"
    );
    case.write("zoo.cfg", "dataDir=DIR\njute.maxbuffer=400\n");
    assert_eq!(
        case.config().max_frame,
        300,
        "what ZooKeeper reads as an option alone wins over the file"
    );
}

#[test]
fn options_of_the_command_line_are_keys_or_names_that_java_reads() {
    let option = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut case = Case::with("skipACL=no\nenforceQuota=false\n");
    case.overrides.properties = vec![
        option("skipACL", "yes"),
        option("zookeeper.enforceQuota", "true"),
        option("tickTime", "100"),
        option("frobnicate", "1"),
    ];
    case.overrides.tick_time_ms = Some(200);
    let config = case.config();
    assert!(config.skip_acl && config.enforce_quota);
    assert_eq!(config.tick_time_ms, 200, "a flag wins over an option");
    assert!(
        case.remarks()
            .iter()
            .any(|remark| remark.text.starts_with("frobnicate "))
    );
}

#[test]
fn flags_win_over_the_file() {
    let mut case = Case::with(
        "tickTime=1000\nmaxClientCnxns=1\njute.maxbuffer=100\n4lw.commands.whitelist=*\n",
    );
    case.write("myid", "not read");
    let data_dir = case.folder.path().join("other");
    case.overrides = Overrides {
        client_port: Some(0),
        client_address: Some("::1".to_owned()),
        data_dir: Some(data_dir.clone()),
        tick_time_ms: Some(100),
        max_session_timeout_ms: Some(5000),
        max_client_cnxns: Some(2),
        max_cnxns: Some(3),
        max_frame: Some(5000),
        four_letter_whitelist: Some("ruok".to_owned()),
        my_id: Some(9),
        ..Overrides::default()
    };
    let config = case.config();
    assert_eq!(
        (config.client_port, config.client_address.as_deref()),
        (Some(0), Some("::1"))
    );
    assert_eq!((config.data_dir, config.my_id), (data_dir, 9));
    assert_eq!(
        (
            config.tick_time_ms,
            config.min_session_timeout_ms,
            config.max_session_timeout_ms
        ),
        (100, 200, 5000)
    );
    assert_eq!(
        (config.max_client_cnxns, config.max_cnxns, config.max_frame),
        (2, 3, 5000)
    );
    assert_eq!(config.four_letter_whitelist.as_deref(), Some("ruok"));
}

#[test]
fn a_working_spelling_wins_over_the_manuals() {
    let case = Case::with("throttled_op_wait_time=1\nthrottledOpWaitTime=0\n");
    assert_eq!(case.config().throttle.op_wait_ms, Some(1));
}

#[test]
fn throttles_are_read_in_both_spellings() {
    let off = ServerConfig::default().throttle;
    assert_eq!(
        (off.outstanding_max, off.requests_max, off.op_wait_ms),
        (1000, None, None)
    );
    assert_eq!(
        (
            off.large_threshold,
            off.sessions.tokens,
            off.sessions.freeze_time_ms
        ),
        (None, 0, None)
    );
    let case = Case::with(
        "connectionMaxTokens=7\nconnection_throttle_freeze_time=5\nconnectionDropIncrease=0.5\n\
         connection_throttle_decrease_ratio=2\nconnection_throttle_weight_enabled=true\nrequestThrottleLimit=9\n\
         largeRequestThreshold=100\nrequestStaleLatencyCheck=true\n",
    );
    let throttle = case.config().throttle;
    assert_eq!(
        (throttle.requests_max, throttle.large_threshold),
        (Some(9), Some(100))
    );
    assert!(throttle.stale_by_latency && throttle.stale_by_connection && throttle.drop_stale);
    let sessions = throttle.sessions;
    assert_eq!((sessions.tokens, sessions.freeze_time_ms), (7, Some(5)));
    assert_eq!(
        (sessions.drop_increase, sessions.drop_decrease),
        (500_000, 2_000)
    );
    assert_eq!((sessions.decrease_ratio, sessions.weights), (0, [3, 1, 2]));
    let remarks = case.remarks();
    let text = "connection_throttle_decrease_ratio: 2 is not a number from 0 to 1; using 0";
    assert!(
        remarks.iter().any(|remark| remark.text == text),
        "{remarks:?}"
    );
}

#[test]
fn files_that_people_run_are_accepted() {
    let docker = "dataDir=DIR\ndataLogDir=DIR/log\ntickTime=2000\ninitLimit=5\nsyncLimit=2\n\
                  autopurge.snapRetainCount=3\nautopurge.purgeInterval=0\nmaxClientCnxns=60\nstandaloneEnabled=true\n\
                  admin.enableServer=true\nserver.1=localhost:2888:3888;2181\n";
    let case = Case::new(docker);
    case.write("myid", "1\n");
    assert_eq!(case.config().client_port, Some(2181));
    let kafka = "# comment\ndataDir=DIR\n# the port\nclientPort=2181\nmaxClientCnxns=0\nadmin.enableServer=false\n";
    assert_eq!(Case::new(kafka).config().tick_time_ms, 3000);
    let kazoo = "\ntickTime=2000\ndataDir=DIR\nclientPort=20000\nsecureClientPort=20001\nmaxClientCnxns=0\n\
                 admin.serverPort=20002\nserverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n\
                 authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n\
                 ssl.keyStore.location=DIR/k.jks\nssl.keyStore.password=apassword\n\
                 ssl.trustStore.location=DIR/t.jks\nssl.trustStore.password=apassword\n\n";
    assert_eq!(Case::new(kazoo).config().max_client_cnxns, 0);
}

#[test]
fn the_audit_log_lies_where_the_log_files_are_told_to_be() {
    let mut case = Case::with("audit.enable=true\n");
    let path = |case: &Case| case.config().audit.expect("an audit log").path;
    assert_eq!(path(&case), case.path("zookeeper_audit.log"));
    case.environment.log_directory = Some("/var/log/q".to_owned());
    assert_eq!(path(&case), Path::new("/var/log/q/zookeeper_audit.log"));
    case.environment.jvmflags = Some("-Dzookeeper.log.dir=/other".to_owned());
    assert_eq!(path(&case), Path::new("/other/zookeeper_audit.log"));
    case.write(
        "zoo.cfg",
        "dataDir=DIR\naudit.enable=true\naudit.impl.class=my.Sink\n",
    );
    assert!(
        case.refusal()
            .starts_with("audit.impl.class=my.Sink is not supported")
    );
}

#[test]
fn a_check_tells_what_becomes_of_each_line_and_shows_no_secret() {
    let mut case = Case::with(
        "tickTime=100\ntickTime=200\nquorum.auth.enableSasl=true\noraclePath=/x\nssl.keyStore.password=hush\n\
         maxClientCnxn=5\nskipACL=yes\n",
    );
    case.environment.jvmflags = Some("-Dzookeeper.skipACL=no -Xmx1g -Dmine=1".to_owned());
    let check = ServerConfig::check(
        Some(&case.path("zoo.cfg")),
        &case.environment,
        &case.overrides,
    );
    let shown: Vec<_> = check
        .settings
        .iter()
        .map(|setting| {
            let given = &setting.given;
            let line = match &given.place {
                Source::File(_, line) => *line,
                _ => 0,
            };
            let counts = given.overruled_by.is_none();
            (line, &*given.name, given.shown_value(), counts)
        })
        .skip(2)
        .collect();
    assert_eq!(
        shown,
        [
            (3, "tickTime", "100", false),
            (4, "tickTime", "200", true),
            (5, "quorum.auth.enableSasl", "true", true),
            (6, "oraclePath", "/x", true),
            (7, "ssl.keyStore.password", "***", true),
            (8, "maxClientCnxn", "5", true),
            (9, "skipACL", "yes", true),
            (0, "zookeeper.skipACL", "no", false),
        ]
    );
    let errors = check.outcome.expect_err("refused keys");
    assert_eq!(errors.len(), 2, "both are named: {errors:?}");
    assert!(
        check
            .remarks
            .iter()
            .any(|remark| remark.text.ends_with("Did you mean maxClientCnxns?"))
    );
}

#[test]
fn the_marker_of_a_first_start_counts_beside_the_data_and_beside_the_log() {
    for place in ["initialize", "log/initialize"] {
        let case = Case::with("dataLogDir=DIR/log\ndb.autocreate=false\n");
        fs::create_dir(case.path("log")).expect("is made");
        assert!(!case.config().storage.may_found);
        case.write(place, "");
        let storage = case.config().storage;
        assert!(storage.may_found, "{place}");
        assert_eq!(storage.markers, [case.path(place)]);
    }
}

#[test]
fn keys_without_effect_are_demanded_in_their_form() {
    for (text, refusal) in [
        (
            "localSessionsEnabled=yes",
            "Invalid option yes for localSessionsEnabled. Choose 'true' or 'false.'",
        ),
        (
            "autopurge.purgeInterval=1d",
            "autopurge.purgeInterval: 1d is not a number",
        ),
    ] {
        assert_eq!(Case::with(text).refusal(), refusal);
    }
}

#[test]
fn a_switch_with_another_word_is_told_with_what_counts() {
    let warnings = |line: &str| {
        let remarks = Case::with(line).remarks().into_iter();
        let warned = remarks.filter(|remark| remark.level == Level::Warn);
        warned.map(|remark| remark.text).collect::<Vec<_>>()
    };
    for (line, told) in [
        ("audit.enable=yes", "false counts"),
        ("admin.enableServer=no", "true counts"),
        ("skipACL=true", "no counts"),
        ("forceSync=false", "yes counts"),
        ("leaderServes=false", "yes counts"),
        ("leaderServes=NO", "yes counts"),
        ("quenda.noSuchKey=1", "no key of Quenda"),
    ] {
        let all = warnings(line);
        let found = all.iter().any(|text| text.contains(told));
        assert!(found, "{line}: {all:?}");
    }
    assert_eq!(warnings("readonlymode.enabled=TRUE\nskipACL=yes"), [""; 0]);
}

/// All that a check tells.
fn all_refusals(text: &str) -> Vec<String> {
    let case = Case::new(text);
    let check = ServerConfig::check(
        Some(&case.path("zoo.cfg")),
        &case.environment,
        &case.overrides,
    );
    let errors = check.outcome.expect_err("refused");
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn a_check_tells_of_all_that_is_wrong() {
    let text = "dataDir=DIR\nclientPort=x\nmaxClientCnxns=abc\nenforce.auth.enabled=true\n\
                enforce.auth.schemes=sasl\nserver.1=a:1:2\nserver.2=b:1:2\nreconfigEnabled=maybe\n\
                snapshot.compression.method=zip\nautopurge.purgeInterval=often\nsslQuorum=true\n";
    let told = all_refusals(text);
    for part in [
        "clientPort: x is not a port",
        "maxClientCnxns: abc is not a number",
        "no authentication provider for the scheme sasl",
        "initLimit is not set",
        "syncLimit is not set",
        "myid file is missing",
        "Invalid option maybe for reconfigEnabled",
        "autopurge.purgeInterval: often is not a number",
        "sslQuorum is set but ssl.quorum.keyStore.location is not set",
    ] {
        let count = told.iter().filter(|line| line.contains(part)).count();
        assert_eq!(count, 1, "{part}: {told:#?}");
    }
}

#[test]
fn one_mistake_is_told_once() {
    for (text, expected) in [
        ("clientPort=2181", "dataDir is not set"),
        ("dataDir=DIR\nclientPort=x", "clientPort: x is not a port"),
        ("dataDir=DIR\ntickTime=x", "tickTime: x is not a number"),
        ("dataDir=DIR\nserver.1=a:1", "does not have the form"),
        (
            "dataDir=DIR\nclientPortAddress=a",
            "but clientPort is not set",
        ),
        (
            "dataDir=DIR\nsecureClientPort=1",
            "ssl.keyStore.location is not set",
        ),
    ] {
        let told = all_refusals(text);
        assert!(told.len() == 1 && told[0].contains(expected), "{told:#?}");
    }
}

#[test]
fn what_has_too_many_settings_is_no_configuration() {
    let many: String = (0..6000).map(|number| format!("key{number}=1\n")).collect();
    let refusal = Case::with(&many).refusal();
    assert!(refusal.contains("more than 5000 settings"), "{refusal}");
}

#[test]
fn a_member_whose_host_cannot_be_one_is_told() {
    let lines = "initLimit=5\nsyncLimit=2\nserver.1=zoo_1:1:2\nserver.2=[fe80::1%eth0]:1:2\n";
    let remarks = |host: &str| {
        let mut case = Case::with(&format!("{lines}server.3={host}:1:2\n"));
        case.overrides.my_id = Some(1);
        let told = case.remarks();
        told.iter()
            .any(|remark| remark.text.contains("cannot be the name of a host"))
    };
    assert!(!remarks("zoo3.example.com"));
    assert!(remarks("${HOME}") && remarks(&"a".repeat(300)));
}

#[test]
fn what_is_there_only_in_part_is_taken_where_it_is() {
    let none = Case::with("snapSizeLimitInKb=-1\nletAnySaslUserDoX=\n").config();
    assert_eq!(none.storage.snap_log_bytes, CHECKPOINT_LOG_BYTES);
    assert_eq!(none.sasl.any_user, None);
    let large = Case::with("snapSizeLimitInKb=4194304\nletAnySaslUserDoX=all\n").config();
    assert_eq!(large.storage.snap_log_bytes, CHECKPOINT_LOG_BYTES);
    assert_eq!(large.sasl.any_user.as_deref(), Some("all"));
    let brief = Case::with("request_throttler.shutdownTimeout=1500\n").config();
    assert_eq!(brief.throttle.stop_patience, Duration::from_millis(1500));
    assert_eq!(
        ServerConfig::default().throttle.stop_patience,
        Duration::from_secs(10)
    );
    assert!(
        !Case::with("serializeLastProcessedZxid.enabled=false")
            .config()
            .backup
            .with_zxid
    );
    Case::with("ssl.ocsp=false").config();
    Case::with("ssl.ocsp=no\nssl.crl=\n").config();
    let refusal = Case::with("ssl.ocsp=true").refusal();
    assert!(refusal.contains("sign certificates"), "{refusal}");
}

#[test]
fn a_byte_order_mark_is_named() {
    let case = Case::new("\u{feff}tickTime=1234\ndataDir=DIR\nclientPort=2181\n");
    let config = case.config();
    assert_eq!(config.tick_time_ms, 3000, "as ZooKeeper reads it");
    let remarks = case.remarks();
    let (first, rest) = remarks.split_first().expect("a remark");
    assert!(
        first
            .text
            .contains("zoo.cfg begins with a byte order mark, so its first line (tickTime)")
    );
    assert_eq!(rest.len(), 1, "{rest:?}");
    let case = Case::with("initLimit=5\nsyncLimit=2\ndynamicConfigFile=DIR/members\n");
    case.write("members", "\u{feff}server.1=h:1:2\n");
    assert!(
        case.refusal()
            .contains("members begins with a byte order mark")
    );
}
