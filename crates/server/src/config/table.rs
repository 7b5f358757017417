//! The table of keys itself; [`super::keys`] says what its columns mean.

use super::keys::Place::{Bare, File, Property};
use super::keys::Policy::{Accepted, Honoured, Mapped, Refused, Warned};
use super::keys::{Key, Section};

/// The whole table.
pub const SECTIONS: &[Section] = &[
    Section {
        title: "Core",
        keys: CORE,
    },
    Section {
        title: "Storage and durability",
        keys: STORAGE,
    },
    Section {
        title: "Ensemble and election",
        keys: ENSEMBLE,
    },
    Section {
        title: "Quenda's own",
        keys: OWN,
    },
    Section {
        title: "Connections and requests",
        keys: CONNECTIONS,
    },
    Section {
        title: "Features",
        keys: FEATURES,
    },
    Section {
        title: "Authentication and access",
        keys: ACCESS,
    },
    Section {
        title: "TLS",
        keys: TLS,
    },
    Section {
        title: "Monitoring and administration",
        keys: MONITORING,
    },
    Section {
        title: "Java runtime",
        keys: RUNTIME,
    },
];

const OWN_QUORUM: &str = "tunes elections and links of the Java server; here they need no tuning";
const OWN_CATCH_UP: &str = "tunes how the Java server feeds a member that lags; here it gets the log if that still reaches, else a snapshot";
const FED_BY_LEADER: &str = "observers are fed by the leader";
const NO_TLS: &str = "TLS between members is not there yet";
const NO_QUORUM_AUTH: &str = "members do not authenticate each other yet; set it to `false` and keep the members' ports in a network of their own";
const NO_KERBEROS: &str = "Kerberos is not there; names of SASL users are taken as they are";
const ADMIN_TLS: &str = "as the key of `ssl.*`, for administration over HTTP alone: TLS between members is not there yet";
const OWN_THREADS: &str = "tunes threads or buffers of the Java server";

#[rustfmt::skip]
const CORE: &[Key] = &[
    Key::new(Honoured, File, "tickTime", "3000", "unit of the session bounds, ms; without a file 2000"),
    Key::new(Honoured, File, "dataDir", "", "where the data lies; required in a file"),
    Key::new(Honoured, File, "dataLogDir", "", "where the log lies, if apart from the data"),
    Key::new(Honoured, File, "clientPort", "", "TCP port for clients; 0 lets the system choose; absent in a file: none"),
    Key::new(Honoured, File, "clientPortAddress", "", "address to listen on; all if absent; needs `clientPort`"),
    Key::new(Honoured, File, "secureClientPort", "", "TCP port on which clients speak TLS; 0 lets the system choose; needs `ssl.keyStore.location`"),
    Key::new(Honoured, File, "secureClientPortAddress", "", "address for TLS to listen on; all if absent; needs `secureClientPort`"),
    Key::new(Honoured, File, "maxClientCnxns", "60", "connections from one IP address; 0 for no bound"),
    Key::new(Honoured, Property, "maxCnxns", "0", "connections of all clients; 0 for no bound"),
    Key::new(Honoured, File, "minSessionTimeout", "-1", "shortest session timeout granted, ms; -1 for 2 ticks"),
    Key::new(Honoured, File, "maxSessionTimeout", "-1", "longest session timeout granted, ms; -1 for 20 ticks"),
    Key::new(Honoured, File, "clientPortListenBacklog", "-1", "length of the accept queue; -1 for the system's choice"),
    Key::new(Accepted, Property, "serverCnxnFactory", "", "names a Java class; there is one kind of listener"),
    Key::new(Honoured, Property, "clientTcpKeepAlive", "false", "`true`: the system looks for clients that are gone without a word"),
    Key::new(Honoured, Bare, "jute.maxbuffer", "1048575", "greatest request, bytes; read in the file too"),
    Key::new(Accepted, Property, "jute.maxbuffer.extrasize", "", "room for reading back what was stored; here what was accepted can be read whatever the bound of requests is"),
];

#[rustfmt::skip]
const STORAGE: &[Key] = &[
    Key::new(Mapped, Property, "snapCount", "100000", "if it is set: transactions after which a checkpoint is made, beside those that follow the time and the bytes changed"),
    Key::new(Mapped, Property, "snapSizeLimitInKb", "4194304", "KiB of log, beyond what is kept for members that lag, after which a checkpoint is made, where that is less than 12 MiB, after which one is made anyway; 0 and less for that alone"),
    Key::new(Accepted, Property, "txnLogSizeLimitInKb", "-1", "the store sizes its own log files, and they go once a checkpoint holds what they do"),
    Key::new(Accepted, Property, "preAllocSize", "65536", "the store sizes its own log files"),
    Key::new(Honoured, Property, "forceSync", "yes", "`no`: writes are acknowledged before they are on the disk; a machine that fails loses the last ones"),
    Key::new(Honoured, Property, "fsync.warningthresholdms", "1000", "a write of the log with its sync that takes longer, ms, is counted (`fsync_threshold_exceed_count`) and named in the log"),
    Key::new(Honoured, Property, "flushDelay", "0", "a sync of the log is put off until this long after the one before, ms, so that more writes share it; 0 puts off none, writes that wait together share a sync anyway; at most 250"),
    Key::new(Honoured, Property, "maxWriteQueuePollTime", "", "with `flushDelay`: a sync is not put off any more when no write has come for so long, ms; a third of `flushDelay` if absent"),
    Key::new(Honoured, Property, "maxBatchSize", "1000", "transactions after which a sync is not put off any more and which it carries at most, but for those that arrived as one; counts with `flushDelay` or if it is set, else bytes are the bound; 0 for none"),
    Key::new(Accepted, Property, "commitLogCount", "500", OWN_CATCH_UP),
    Key::new(Accepted, Property, "snapshotSizeFactor", "0.33", OWN_CATCH_UP),
    Key::new(Accepted, Property, "forceSnapshotSync", "false", OWN_CATCH_UP),
    Key::new(Mapped, Property, "snapshot.compression.method", "", "`gz` or `snappy`: the snapshots that operators fetch are compressed; any of the three is restored, whatever stands here"),
    Key::new(Accepted, Property, "snapshot.trust.empty", "false", "the log and the state that it begins with lie in one store, which has both or is refused"),
    Key::new(Honoured, Property, "serializeLastProcessedZxid.enabled", "true", "`false`: the commands `snapshot` and `restore` of administration over HTTP are refused"),
    Key::new(Accepted, Property, "digest.enabled", "true", "the digest of the tree is always kept: it costs little, and members that differ are found by it"),
    Key::new(Accepted, Property, "closeSessionTxn.enabled", "true", "every member removes the znodes of a session itself when it applies its end, always the same ones"),
    Key::new(Honoured, Property, "datadir.autocreate", "true", "`false`: a missing directory stops the start"),
    Key::new(Honoured, Property, "db.autocreate", "true", "`false`: a member with an empty store waits for an ensemble to join and founds none, unless the file `initialize` is in `dataDir` or `dataLogDir`; it goes with the start"),
    Key::new(Accepted, File, "autopurge.snapRetainCount", "3", "nothing is left to be purged: what a checkpoint replaces goes by itself"),
    Key::new(Accepted, File, "autopurge.purgeInterval", "0", "nothing is left to be purged: what a checkpoint replaces goes by itself"),
    Key::new(Accepted, File, "syncEnabled", "true", "observers always write to the disk: no client waits for that, an observer that starts again need not fetch everything, and one that is given a vote keeps what it has acknowledged"),
    Key::new(Accepted, Property, "observer.syncEnabled", "true", "observers always write to the disk: no client waits for that, an observer that starts again need not fetch everything, and one that is given a vote keeps what it has acknowledged"),
    Key::new(Accepted, Property, "intBufferStartingSizeBytes", "1024", OWN_THREADS),
    Key::new(Accepted, Property, "testingonly.initialZxid", "", "a hook for ZooKeeper's own tests"),
];

#[rustfmt::skip]
const ENSEMBLE: &[Key] = &[
    Key::new(Honoured, File, "server.*", "", "a member: its addresses, whether it votes, its client address"),
    Key::new(Mapped, File, "group*", "", "accepted where the quorums of these groups and weights are the majorities of the servers that vote, as with one group of all and equal weights; else the start is refused: hierarchical quorums are not there"),
    Key::new(Mapped, File, "weight*", "", "see `group*`"),
    Key::new(Honoured, File, "dynamicConfigFile", "", "file with the `server.N` lines; with `reconfigEnabled` a new one is written after each change of the members, and this key follows"),
    Key::new(Mapped, File, "initLimit", "", "required with several servers and shown by `conf`; ticks that the transfer of a snapshot to a member may make no progress, at least 30 s. A transfer that goes on may take any time"),
    Key::new(Mapped, File, "syncLimit", "", "required with several servers and shown by `conf`; ticks of silence after which a connection between members is closed and dialed anew, 5 s to 60 s, if `quorumCnxnTimeoutMs` does not say. The times of elections are fixed"),
    Key::new(Accepted, File, "connectToLearnerMasterLimit", "", "members dial each other until they are connected"),
    Key::new(Honoured, File, "electionAlg", "3", "3, as in ZooKeeper; any other value stops the start"),
    Key::new(Honoured, File, "peerType", "participant", "the `server.N` line decides; a warning if the two differ"),
    Key::new(Honoured, File, "standaloneEnabled", "true", "`false` makes an ensemble of a single `server.N` line, which can grow by reconfig"),
    Key::new(Honoured, File, "reconfigEnabled", "false", "allows the reconfig request; a member that runs alone refuses it"),
    Key::new(Honoured, File, "quorumListenOnAllIPs", "false", "`true`: listen for members on all addresses, not on those of the own `server.N` line"),
    Key::new(Honoured, Property, "leaderServes", "yes", "`no`: a member of an ensemble serves no clients while it leads; they are turned away, and the others serve them"),
    Key::new(Warned, Property, "observerMasterPort", "0", FED_BY_LEADER),
    Key::new(Accepted, Property, "observerMaster.sizeLimit", "33554432", FED_BY_LEADER),
    Key::new(Honoured, Property, "observer.reconnectDelayMs", "0", "ms that an observer waits before it dials a member anew whose connection it lost, at most 60000"),
    Key::new(Accepted, Property, "observer.election.DelayMs", "200", "observers take no part in elections"),
    Key::new(Mapped, Property, "cnxTimeout", "1000", "ms in which the address of a member must answer a dial, 100 to 60000; without the key less than in ZooKeeper (5000)"),
    Key::new(Mapped, Property, "quorumCnxnTimeoutMs", "-1", "ms of silence after which a connection between members is closed and dialed anew, 3000 to 60000; -1 for `syncLimit` ticks. Members that are connected give signs of life each second"),
    Key::new(Accepted, Property, "quorum.cnxn.threads.size", "20", OWN_THREADS),
    Key::new(Accepted, Property, "fastleader.*", "", "paces the notifications of ZooKeeper's elections; here candidates ask at once, and members that are out of reach are no burden"),
    Key::new(Accepted, Property, "leader.maxTimeToWaitForEpoch", "-1", "a candidate that gets no majority is given up after 2 s at most, and another one stands").or(&["maxTimeToWaitForEpoch"]),
    Key::new(Honoured, Property, "leader.maxConcurrentSnapSyncs", "1", "members that are sent a snapshot at one time, others wait; without the key less than in ZooKeeper (10)").or(&["maxConcurrentSnapSyncs"]),
    Key::new(Accepted, Property, "leader.maxConcurrentDiffSyncs", "100", "members that lag are sent the log from memory, each within bounds of its own").or(&["maxConcurrentDiffSyncs"]),
    Key::new(Accepted, Property, "leader.ackLoggingFrequency", "1000", OWN_QUORUM),
    Key::new(Accepted, Property, "leader.closeSocketAsync", "false", OWN_QUORUM),
    Key::new(Accepted, Property, "learner.closeSocketAsync", "false", OWN_QUORUM),
    Key::new(Accepted, Property, "learner.asyncSending", "false", OWN_QUORUM),
    Key::new(Accepted, Bare, "leader.nodelay", "true", "links between members never wait to fill a packet"),
    Key::new(Accepted, Bare, "follower.nodelay", "true", "links between members never wait to fill a packet"),
    Key::new(Mapped, Property, "leaderConnectDelayDuringRetryMs", "50", "ms between two dials of a member, at first, 10 to 10000; the pause doubles up to 1 s. Without the key less than in ZooKeeper (100)"),
    Key::new(Honoured, Property, "electionPortBindRetry", "3", "how often the quorum port is tried, a second apart, while another process has it; 0 for ever; then exit code 14"),
    Key::new(Accepted, Property, "tcpKeepAlive", "false", "links between members always have keep-alive"),
    Key::new(Honoured, Property, "multiAddress.enabled", "true", "`false`: several addresses in a `server.N` line stop the start; without the key they are allowed, other than in ZooKeeper"),
    Key::new(Mapped, Property, "multiAddress.reachabilityCheckEnabled", "true", "the addresses of a member are dialed in turn; `false`: each for `cnxTimeout`"),
    Key::new(Mapped, Property, "multiAddress.reachabilityCheckTimeoutMs", "1000", "ms in which each of several addresses of a member must answer a dial before the next one is tried, 100 to 60000"),
    Key::new(Refused, File, "oraclePath", "", "an oracle that decides who has the quorum is not there"),
    Key::new(Accepted, Property, "skipLearnerRequestToNextProcessor", "false", OWN_THREADS),
    Key::new(Accepted, Property, "follower.skipLearnerRequestToNextProcessor", "false", OWN_THREADS),
    Key::new(Accepted, Property, "forward_learner_requests_to_commit_processor_disabled", "false", OWN_THREADS),
    Key::new(Refused, File, "quorum.auth.enableSasl", "false", NO_QUORUM_AUTH),
    Key::new(Refused, File, "quorum.auth.learnerRequireSasl", "false", NO_QUORUM_AUTH),
    Key::new(Refused, File, "quorum.auth.serverRequireSasl", "false", NO_QUORUM_AUTH),
    Key::new(Accepted, File, "quorum.auth.*", "", "members do not authenticate each other yet"),
];

#[rustfmt::skip]
const OWN: &[Key] = &[
    Key::new(Honoured, Bare, "quenda.linearizableReads", "false", "`true`: every read waits for a round through the leader and sees all writes acknowledged before it; without, a client calls `sync` before a read that must"),
    Key::new(Honoured, Bare, "quenda.audit.file", "", "the audit log's file; if absent `zookeeper_audit.log` in the directory that `ZOO_LOG_DIR` or `-Dzookeeper.log.dir` names, else in `dataDir`"),
    Key::new(Honoured, Bare, "quenda.audit.format", "text", "`text`: lines as ZooKeeper's logback.xml makes them; `json`: an object each"),
    Key::new(Honoured, Bare, "quenda.audit.maxFileSizeMb", "10", "size at which the file is renamed to `.1` and a new one begun; 0 leaves that to others"),
    Key::new(Honoured, Bare, "quenda.audit.maxFiles", "10", "how many old ones are kept"),
    Key::new(Honoured, Bare, "quenda.metrics.jvmNames", "false", "`true`: memory and threads of the process also under the names of a Java process, for old dashboards"),
    Key::new(Honoured, Bare, "quenda.metrics.totalNames", "false", "`true`: counters also under their names of ZooKeeper 3.10, with `_total`"),
    Key::new(Honoured, Bare, "quenda.metrics.prometheusMntr", "false", "`true`: `mntr` in the form that ZooKeeper gives it with the class for Prometheus"),
    Key::new(Honoured, Bare, "quenda.load.prefixDepth", "2", "components of a path that requests are added up by"),
    Key::new(Honoured, Bare, "quenda.load.slowRequestMs", "1000", "ms from being read to being answered above which a request is logged; 0 for never"),
    Key::new(Honoured, Bare, "quenda.load.herdWatchers", "100", "watchers woken by one change above which that is logged as a herd; 0 for never"),
    Key::new(Honoured, Bare, "quenda.load.largeWriteBytes", "262144", "bytes of one write above which it is logged as misuse; 0 for never"),
    Key::new(Honoured, Bare, "quenda.load.hotWritesPerSecond", "100", "writes of one znode in a second, over five seconds, above which that is logged as misuse; 0 for never"),
    Key::new(Honoured, Bare, "quenda.load.manyChildren", "10000", "children of one znode above which further creates there are logged as misuse; 0 for never"),
    Key::new(Honoured, Bare, "quenda.load.sequentialCreatesPerSecond", "100", "sequential creates below one znode in a second, over five seconds, above which that is logged as misuse; 0 for never"),
    Key::new(Honoured, Bare, "quenda.saslUsers", "", "plain file with the SASL users, instead of a JAAS file: `user: password` lines; read again when it changes"),
];

#[rustfmt::skip]
const CONNECTIONS: &[Key] = &[
    Key::new(Honoured, Property, "globalOutstandingLimit", "1000", "requests that wait over all connections; beyond that those with several take turns, and single requests and reads go on; divided by the number of other voters where there are more than two"),
    Key::new(Honoured, Property, "request_throttle_max_requests", "0", "requests that wait over all connections at which no connection is read; 0 for no bound").or(&["requestThrottleLimit"]),
    Key::new(Honoured, Property, "request_throttle_stall_time", "100", "ms until a connection that is not read then is looked at again").or(&["requestThrottleStallTime"]),
    Key::new(Honoured, Property, "request_throttle_drop_stale", "true", "whether requests that are held back then, and that nobody waits for any more, are dropped with their connection").or(&["requestThrottleDropStale"]),
    Key::new(Honoured, Property, "request_stale_latency_check", "false", "whether those are requests that waited for longer than a session lasts").or(&["requestStaleLatencyCheck"]),
    Key::new(Honoured, Property, "request_stale_connection_check", "true", "whether those are requests of closed connections").or(&["requestStaleConnectionCheck"]),
    Key::new(Honoured, Property, "request_throttler.shutdownTimeout", "10000", "ms that a stop waits at most until what was accepted is durable"),
    Key::new(Honoured, Property, "throttled_op_wait_time", "0", "ms that a request may be held back by the two bounds above; one that waited longer is answered with -127; 0 for any time").or(&["throttledOpWaitTime"]),
    Key::new(Honoured, Property, "largeRequestThreshold", "-1", "bytes above which a request is large; -1: none is"),
    Key::new(Honoured, Property, "largeRequestMaxBytes", "104857600", "bytes of large requests in flight; who sends more is disconnected"),
    Key::new(Honoured, Property, "connection_throttle_tokens", "0", "sessions that may be opened or resumed at once: tokens of a bucket; those beyond are disconnected; 0 for no bound").or(&["connectionMaxTokens"]),
    Key::new(Honoured, Property, "connection_throttle_fill_time", "1", "ms in which `connection_throttle_fill_count` tokens come back").or(&["connectionTokenFillTime"]),
    Key::new(Honoured, Property, "connection_throttle_fill_count", "1", "tokens that come back").or(&["connectionTokenFillCount"]),
    Key::new(Honoured, Property, "connection_throttle_freeze_time", "-1", "ms between changes of the chance by which sessions are refused; -1: none is refused by chance").or(&["connectionFreezeTime"]),
    Key::new(Honoured, Property, "connection_throttle_drop_increase", "0.02", "added to that chance while the bucket is empty").or(&["connectionDropIncrease"]),
    Key::new(Honoured, Property, "connection_throttle_drop_decrease", "0.002", "taken from it while the bucket is full enough").or(&["connectionDropDecrease"]),
    Key::new(Honoured, Property, "connection_throttle_decrease_ratio", "0", "part of the tokens that may be missing then").or(&["connectionDecreaseRatio"]),
    Key::new(Honoured, Property, "connection_throttle_weight_enabled", "false", "whether sessions take different numbers of tokens"),
    Key::new(Honoured, Property, "connection_throttle_global_session_weight", "3", "tokens of a new session then"),
    Key::new(Honoured, Property, "connection_throttle_local_session_weight", "1", "tokens of a new session on a member that only reads"),
    Key::new(Honoured, Property, "connection_throttle_renew_session_weight", "2", "tokens of a session that is resumed"),
    Key::new(Accepted, Property, "maxResponseCacheSize", "400", "a cache of encoded replies; they are made from the tree, which is in memory"),
    Key::new(Accepted, Property, "maxGetChildrenResponseCacheSize", "400", "a cache of encoded replies; they are made from the tree, which is in memory"),
    Key::new(Honoured, Property, "netty.server.outstandingHandshake.limit", "-1", "TLS handshakes under way at one time; those beyond are closed; -1 for no bound").or(&["outstandingHandshake.limit"]),
    Key::new(Honoured, Property, "netty.server.earlyDropSecureConnectionHandshakes", "false", "`true` closes TLS connections before their handshake while the member does not serve"),
    Key::new(Accepted, Property, "netty.advancedFlowControl.enabled", "false", "a client that does not read is always bounded").or(&["advancedFlowControlEnabled"]),
    Key::new(Honoured, Property, "nio.sessionlessCnxnTimeout", "10000", "ms after which a connection without a session is closed"),
    Key::new(Accepted, Property, "nio.*", "", OWN_THREADS),
    Key::new(Accepted, Property, "commitProcessor.*", "", OWN_THREADS),
];

#[rustfmt::skip]
const FEATURES: &[Key] = &[
    Key::new(Accepted, File, "localSessionsEnabled", "false", "every session is known to the whole cluster"),
    Key::new(Accepted, File, "localSessionsUpgradingEnabled", "false", "every session is known to the whole cluster"),
    Key::new(Honoured, Property, "extendedTypesEnabled", "true", "`false`: znodes with a time to live cannot be created; without the key they can, other than in ZooKeeper"),
    Key::new(Refused, Property, "emulate353TTLNodes", "false", "it is for reading znodes with a time to live that ZooKeeper 3.5.3 has stored, and they cannot be read here; make them anew with a later ZooKeeper, then set it to `false`"),
    Key::new(Honoured, Bare, "znode.container.checkIntervalMs", "60000", "ms between looks for containers and TTL znodes to delete"),
    Key::new(Honoured, Bare, "znode.container.maxPerMinute", "10000", "containers and TTL znodes deleted in a minute, at most"),
    Key::new(Honoured, Bare, "znode.container.maxNeverUsedIntervalMs", "300000", "ms after which a container that never had a child goes; 0 keeps it"),
    Key::new(Honoured, Bare, "readonlymode.enabled", "false", "`true`: a member without a quorum serves reads to clients that ask for it; allows the word `isro`"),
    Key::new(Honoured, Property, "enforceQuota", "false", "`true` refuses what goes over a hard quota"),
    Key::new(Honoured, Property, "skipACL", "no", "`yes` turns access checks off"),
    Key::new(Honoured, Property, "enableEagerACLCheck", "false", "`true`: a write that this member sees to be forbidden is refused at once, and neither sent to the leader nor logged"),
    Key::new(Accepted, Property, "watchManagerName", "", OWN_THREADS),
    Key::new(Accepted, Property, "watcherClean*", "", OWN_THREADS),
    Key::new(Accepted, Property, "maxInProcessingDeadWatchers", "-1", OWN_THREADS),
    Key::new(Accepted, Property, "bitHashCacheSize", "10", OWN_THREADS),
    Key::new(Accepted, Property, "messageTracker.*", "", OWN_THREADS),
    Key::new(Mapped, Property, "pathStats.maxDepth", "", "components of a path that requests are added up by, if `quenda.load.prefixDepth` is not set"),
    Key::new(Mapped, Property, "pathStats.topPathMax", "20", "rows of each table of the word `qtop`, at most 200"),
    Key::new(Accepted, Property, "pathStats.*", "", "requests by path are always counted, over the last minute"),
];

#[rustfmt::skip]
const ACCESS: &[Key] = &[
    Key::new(Mapped, Property, "authProvider.*", "", "digest, ip, sasl where there are users and x509 where there is TLS are built in; `org.apache.zookeeper.server.auth.EnsembleAuthenticationProvider` gives the scheme ensemble; any other class gives a warning"),
    Key::new(Honoured, Property, "DigestAuthenticationProvider.enabled", "true", "`false` takes the digest scheme away"),
    Key::new(Honoured, Property, "DigestAuthenticationProvider.superDigest", "", "`super:` and the base64 of the SHA-1 of `super:password`: who proves it may do everything"),
    Key::new(Honoured, Property, "DigestAuthenticationProvider.digestAlg", "SHA1", "hash of the digest scheme: `SHA1`, SHA-2 (as in `SHA-256`) or SHA-3 (as in `SHA3-256`), the same on every member; existing access lists have the old one"),
    Key::new(Honoured, Property, "IPAuthenticationProvider.usexforwardedfor", "false", "`true`: to administration over HTTP a caller has the first address of the header `X-Forwarded-For`; for a proxy that sets it alone"),
    Key::new(Honoured, Property, "X509AuthenticationProvider.superUser", "", "subject, as `whoami` shows it, of the certificate whose owner may do everything"),
    Key::new(Honoured, Property, "superUser", "", "a SASL user who may do everything"),
    Key::new(Honoured, Property, "superUser.*", "", "further ones"),
    Key::new(Honoured, Property, "SASLAuthenticationProvider.superPassword", "", "password of the SASL user `super`, who must be in the file of users too"),
    Key::new(Honoured, Property, "ensembleAuthName", "", "names of this ensemble, with commas between, for the scheme ensemble: a client that names another one is let go; unset, every name passes"),
    Key::new(Honoured, Property, "sessionRequireClientSASLAuth", "false", "`true` demands that a client authenticates by SASL; stands for the next two, which then do not count"),
    Key::new(Honoured, Property, "enforce.auth.enabled", "false", "`true` demands that a client proves an identity"),
    Key::new(Honoured, Property, "enforce.auth.schemes", "", "schemes of which one is demanded, with commas between"),
    Key::new(Honoured, Property, "allowSaslFailedClients", "false", "`true`: a client whose SASL authentication failed goes on as nobody, unless SASL is demanded"),
    Key::new(Honoured, Property, "letAnySaslUserDoX", "", "an id of the scheme sasl: what an access list allows to it is allowed to every SASL user"),
    Key::new(Accepted, Property, "kerberos.*", "", NO_KERBEROS),
    Key::new(Accepted, Property, "security.auth_to_local", "DEFAULT", NO_KERBEROS),
    Key::new(Accepted, Property, "requireKerberosConfig", "false", NO_KERBEROS),
    Key::new(Accepted, Property, "server.realm", "", NO_KERBEROS),
    Key::new(Accepted, Property, "kinit", "", NO_KERBEROS),
    Key::new(Honoured, Property, "sasl.serverconfig", "Server", "the section of the JAAS file"),
    Key::new(Honoured, Bare, "java.security.auth.login.config", "", "JAAS file with the SASL users: `user_NAME=\"PASSWORD\"` options of `org.apache.zookeeper.server.auth.DigestLoginModule`; any other module stops the start; read again when it changes"),
    Key::new(Accepted, File, "requireClientAuthScheme", "", "ZooKeeper does not read it either"),
    Key::new(Accepted, File, "jaasLoginRenew", "", "ZooKeeper does not read it either"),
    Key::new(Accepted, Property, "fips-mode", "true", "chooses among Java's implementations of TLS; clients have a setting of this name of their own, by which Java's give up DIGEST-MD5"),
];

#[rustfmt::skip]
const TLS: &[Key] = &[
    Key::new(Honoured, Property, "client.portUnification", "false", "`true`: the client port takes TLS as well"),
    Key::new(Honoured, Property, "client.certReload", "true", "the files of `ssl.keyStore` and `ssl.trustStore` are read again when they change; `false`: at the start alone"),
    Key::new(Honoured, Property, "ssl.keyStore.location", "", "file with the server's certificate, those that signed it, and its key"),
    Key::new(Honoured, Property, "ssl.keyStore.password", "", "password of that file; in a PEM file that of an encrypted key"),
    Key::new(Honoured, Property, "ssl.keyStore.passwordPath", "", "file with that password; wins over the password itself"),
    Key::new(Honoured, Property, "ssl.keyStore.type", "", "PEM, PKCS12 or JKS; if absent by the end of the name: `.pem`, `.p12`, `.jks`"),
    Key::new(Honoured, Property, "ssl.trustStore.location", "", "file with the certificates that may sign those of clients; required unless `ssl.clientAuth` is none"),
    Key::new(Honoured, Property, "ssl.trustStore.password", "", "password of that file; a JKS file is read without one too"),
    Key::new(Honoured, Property, "ssl.trustStore.passwordPath", "", "file with that password; wins over the password itself"),
    Key::new(Honoured, Property, "ssl.trustStore.type", "", "as `ssl.keyStore.type`"),
    Key::new(Honoured, Property, "ssl.clientAuth", "need", "whether clients show a certificate: `need`, `want` or `none`"),
    Key::new(Mapped, Property, "ssl.protocol", "TLS", "`TLSv1.2` or `TLSv1.3` for that alone, `TLS` for both"),
    Key::new(Honoured, Property, "ssl.enabledProtocols", "", "versions of TLS, with commas between; wins over `ssl.protocol`"),
    Key::new(Honoured, Property, "ssl.ciphersuites", "", "cipher suites by their Java names, with commas between, the preferred first; those that are not there (CBC, DHE, RSA key exchange) are named in the log"),
    Key::new(Honoured, Property, "ssl.hostnameVerification", "true", "`false` turns `ssl.clientHostnameVerification` off; a server dials no client"),
    Key::new(Honoured, Property, "ssl.clientHostnameVerification", "false", "`true`: a client's certificate must name the address that it comes from"),
    Key::new(Warned, Property, "ssl.allowReverseDnsLookup", "false", "no name is looked up for an address: certificates of clients are compared with the address"),
    Key::new(Honoured, Property, "ssl.handshakeDetectionTimeoutMillis", "5000", "how long a client of a port for both may keep silent before it is taken for one without TLS, ms"),
    Key::new(Refused, Property, "ssl.crl", "false", "lists of revoked certificates are not read; sign certificates for a short time, or take the signer out of the trust store"),
    Key::new(Refused, Property, "ssl.ocsp", "false", "the signer is not asked for revoked certificates; sign certificates for a short time, or take the signer out of the trust store"),
    Key::new(Refused, Property, "ssl.context.supplier.class", "", "names a Java class; give the files with `ssl.keyStore.*` and `ssl.trustStore.*`"),
    Key::new(Accepted, Property, "ssl.sslProvider", "JDK", "chooses among Java's implementations of TLS"),
    Key::new(Honoured, Property, "ssl.authProvider", "x509", "scheme of certificates; only one that `authProvider.*` gives ZooKeeper's own class for certificates"),
    Key::new(Refused, Property, "ssl.x509.clientCertIdType", "SUBJECT", "only the subject of a certificate says who its owner is"),
    Key::new(Accepted, Property, "ssl.x509.*", "", "tells how to read other parts of a certificate than the subject"),
    Key::new(Mapped, Property, "ssl.quorum.keyStore.*", "", ADMIN_TLS),
    Key::new(Mapped, Property, "ssl.quorum.trustStore.*", "", ADMIN_TLS),
    Key::new(Mapped, Property, "ssl.quorum.protocol", "TLS", ADMIN_TLS),
    Key::new(Mapped, Property, "ssl.quorum.enabledProtocols", "", ADMIN_TLS),
    Key::new(Mapped, Property, "ssl.quorum.ciphersuites", "", ADMIN_TLS),
    Key::new(Mapped, Property, "ssl.quorum.handshakeDetectionTimeoutMillis", "5000", ADMIN_TLS),
    Key::new(Accepted, Property, "ssl.quorum.*", "", NO_TLS),
    Key::new(Refused, File, "sslQuorum", "false", "TLS between members is not there yet; set it to `false` and keep the members' ports in a network of their own"),
    Key::new(Warned, File, "portUnification", "false", NO_TLS),
    Key::new(Mapped, File, "sslQuorumReloadCertFiles", "false", "`true`: the files of administration over HTTP are read again when they change"),
];

#[rustfmt::skip]
const MONITORING: &[Key] = &[
    Key::new(Honoured, Property, "4lw.commands.whitelist", "", "words answered, with commas between, `*` for all; absent: those that only read and stay small"),
    Key::new(Honoured, Property, "admin.enableServer", "true", "`false`: no administration over HTTP"),
    Key::new(Honoured, Property, "admin.serverAddress", "0.0.0.0", "address that it listens on"),
    Key::new(Honoured, Property, "admin.serverPort", "8080", "its port; 0 lets the system choose. If neither this key nor `admin.enableServer` is given, a port that is taken is no reason not to start; else a member that runs alone ends with exit code 4, and one of an ensemble warns"),
    Key::new(Honoured, Property, "admin.commandURL", "/commands", "where the commands are"),
    Key::new(Honoured, Property, "admin.idleTimeout", "30000", "ms after which a connection without a request is closed"),
    Key::new(Honoured, Property, "admin.portUnification", "false", "`true`: the port takes TLS too, with the stores of `ssl.quorum.*`"),
    Key::new(Honoured, Property, "admin.forceHttps", "false", "`true`: the port takes TLS alone, with the stores of `ssl.quorum.*`"),
    Key::new(Honoured, Property, "admin.needClientAuth", "false", "`true`: callers by TLS show a certificate that `ssl.quorum.trustStore` trusts, and may authenticate by it (scheme x509)"),
    Key::new(Honoured, Property, "admin.rateLimiterIntervalInMS", "300000", "least time between two snapshots, and between two restores, ms; 0 for none"),
    Key::new(Honoured, Property, "admin.snapshot.enabled", "true", "`false`: the command `snapshot` is refused"),
    Key::new(Honoured, Property, "admin.restore.enabled", "true", "`false`: the command `restore` is refused"),
    Key::new(Accepted, Property, "admin.httpVersion", "11", "HTTP/1.1 is spoken"),
    Key::new(Accepted, Property, "admin.*", "", "no key that ZooKeeper reads"),
    Key::new(Honoured, File, "metricsProvider.className", "org.apache.zookeeper.metrics.impl.DefaultMetricsProvider", "ZooKeeper's class for Prometheus opens an HTTP port with `/metrics`; its other two open none; any other class stops the start"),
    Key::new(Honoured, File, "metricsProvider.httpHost", "0.0.0.0", "address of that port"),
    Key::new(Honoured, File, "metricsProvider.httpPort", "7000", "that port; 0 lets the system choose; with `metricsProvider.httpsPort` there is none unless this key is given, too"),
    Key::new(Honoured, File, "metricsProvider.httpsPort", "", "a port with the same by TLS; 0 lets the system choose"),
    Key::new(Honoured, File, "metricsProvider.ssl.keyStore.*", "", "`location`, `password`, `passwordPath`, `type`: certificate and key of that port; read again when the files change"),
    Key::new(Honoured, File, "metricsProvider.ssl.trustStore.*", "", "the same keys: who may sign the certificates of scrapers"),
    Key::new(Honoured, File, "metricsProvider.ssl.need.client.auth", "true", "`false`: scrapers may come without a certificate"),
    Key::new(Honoured, File, "metricsProvider.ssl.want.client.auth", "true", "`false`: they are not asked for one either, if none is needed"),
    Key::new(Honoured, File, "metricsProvider.ssl.enabledProtocols", "TLSv1.2,TLSv1.3", "versions that are spoken there"),
    Key::new(Honoured, File, "metricsProvider.ssl.ciphersuites", "", "cipher suites in the order in which they are preferred; absent: all there are"),
    Key::new(Warned, File, "metricsProvider.ssl.*", "", "no key of that port"),
    Key::new(Honoured, File, "metricsProvider.exportJvmInfo", "true", "`false`: no figures of the process (`process_*`)"),
    Key::new(Accepted, File, "metricsProvider.*", "", "tunes threads of the Java server"),
    Key::new(Honoured, Property, "audit.enable", "false", "`true`: who tried to change what, and with which result, is written to a file of its own"),
    Key::new(Mapped, Property, "audit.impl.class", "org.apache.zookeeper.audit.Slf4jAuditLogger", "the default is the file; any other Java class stops the start"),
];

#[rustfmt::skip]
const RUNTIME: &[Key] = &[
    Key::new(Accepted, Property, "jvm.pause.*", "", OWN_THREADS),
    Key::new(Accepted, Property, "jmx.log4j.disable", "", "there is no JMX"),
];
