//! Answers about the server itself.

use std::collections::BTreeMap;

use super::Admin;
use super::json::{Fields, Json, field};
use crate::four_letter::{Mode, Source};
use crate::load;
use crate::node_source::NodeSource;

/// `configuration`.
pub(super) fn configuration(source: &NodeSource<'_>) -> Fields {
    let settings = source.settings();
    vec![
        field("client_port", settings.client_port),
        field("data_dir", settings.data_dir),
        field("data_log_dir", settings.data_log_dir),
        field("tick_time", settings.tick_time_ms),
        field("max_client_cnxns", settings.max_client_cnxns),
        field("min_session_timeout", settings.min_session_timeout_ms),
        field("max_session_timeout", settings.max_session_timeout_ms),
        field("server_id", settings.server_id),
        field(
            "client_port_listen_backlog",
            settings.client_port_listen_backlog,
        ),
    ]
}

/// `dirs`.
pub(super) fn dirs(source: &NodeSource<'_>) -> Fields {
    let sizes = source.directory_sizes();
    vec![
        field("datadir_size", sizes.data_bytes),
        field("logdir_size", sizes.log_bytes),
    ]
}

/// `hash`.
pub(super) fn hash(source: &NodeSource<'_>) -> Fields {
    let digest =
        |(zxid, digest): (i64, i64)| Json::Map(vec![field("zxid", zxid), field("digest", digest)]);
    vec![field(
        "digests",
        Json::list(source.digests().into_iter().map(digest)),
    )]
}

/// `environment`.
pub(super) fn environment(admin: &Admin) -> Fields {
    let pairs = admin.shared.words.environment();
    let pairs = pairs.into_iter();
    pairs.map(|(name, value)| field(name, value)).collect()
}

/// `initial_configuration`.
pub(super) fn initial_configuration(admin: &Admin) -> Fields {
    let text = admin.settings().initial_configuration.as_str();
    vec![field("initial_configuration", text)]
}

/// `system_properties`: the settings as ZooKeeper's properties, and what of Java's own has a meaning here.
pub(super) fn system_properties(admin: &Admin) -> Fields {
    const OF_THE_PROCESS: [&str; 7] = [
        "java.io.tmpdir",
        "os.arch",
        "os.name",
        "os.version",
        "user.dir",
        "user.home",
        "user.name",
    ];
    let environment = admin.shared.words.environment();
    let own = environment
        .into_iter()
        .filter(|(name, _)| OF_THE_PROCESS.contains(name))
        .map(|(name, value)| (name.to_owned(), value));
    let given = admin.settings().properties.iter().cloned();
    let sorted: BTreeMap<String, String> = own.chain(given).collect();
    let sorted = sorted.into_iter();
    sorted.map(|(name, value)| (name, value.into())).collect()
}

/// `last_snapshot`: the newest checkpoint.
pub(super) fn last_snapshot(admin: &Admin) -> Fields {
    let (zxid, at_s) = admin.shared.last_checkpoint().unwrap_or((-1, -1));
    vec![field("zxid", format!("{zxid:x}")), field("timestamp", at_s)]
}

/// `is_read_only`.
pub(super) fn is_read_only(source: &NodeSource<'_>) -> Fields {
    vec![field("read_only", source.mode() == Mode::ReadOnly)]
}

/// `monitor`: what `mntr` prints.
pub(super) fn monitor(admin: &Admin, source: &NodeSource<'_>) -> Fields {
    let text = admin.shared.words.mntr(source);
    let lines = text.lines().filter_map(|line| {
        let (name, value) = line.split_once('\t')?;
        Some((name.strip_prefix("zk_")?, value))
    });
    lines
        .map(|(name, value)| match name {
            // A version may look like a number.
            "version" => field(name, value),
            _ => field(name, Json::figure(value)),
        })
        .collect()
}

/// `top`: who and what keeps the server busy.
pub(super) fn top(admin: &Admin) -> Fields {
    let report = load::report(&admin.shared);
    match Json::of(&*report) {
        Ok(Json::Map(fields)) => fields,
        Ok(_) => Fields::new(),
        Err(error) => vec![field("error", format!("the report has no form: {error}"))],
    }
}

/// `server_stats`, and the begin of `stats`.
pub(super) fn server_stats(admin: &Admin, source: &NodeSource<'_>) -> Fields {
    let figures: BTreeMap<String, Json> = monitor(admin, source).into_iter().collect();
    let figure = |name: &str, without: i64| figures.get(name).cloned().unwrap_or(without.into());
    let sizes_of = |of: &str| {
        let size = |which: &str| {
            field(
                &format!("{which}_buffer_size"),
                figure(&format!("{which}_{of}_size"), -1),
            )
        };
        Json::Map(vec![size("last"), size("min"), size("max")])
    };
    let mode = source.mode();
    let mut fields = vec![
        field("version", admin.shared.words.version()),
        field("read_only", mode == Mode::ReadOnly),
        field("server_stats", stats(mode, source, &figure, &sizes_of)),
        field("client_response", sizes_of("client_response")),
    ];
    if mode == Mode::Leader {
        fields.push(field("proposal_stats", sizes_of("proposal")));
    }
    fields.push(field("node_count", figure("znode_count", 0)));
    fields
}

/// The inner part, whose order depends on whether the member has others.
fn stats(
    mode: Mode,
    source: &NodeSource<'_>,
    figure: &impl Fn(&str, i64) -> Json,
    sizes_of: &impl Fn(&str) -> Json,
) -> Fields {
    let sizes = source.directory_sizes();
    let directories = vec![
        field("data_dir_size", sizes.data_bytes),
        field("log_dir_size", sizes.log_bytes),
    ];
    let provider = field("provider_null", false);
    let state = field("server_state", mode.name());
    let load = vec![
        field("last_processed_zxid", source.state().zxid),
        field("outstanding_requests", figure("outstanding_requests", 0)),
    ];
    let mut fields = vec![
        field("packets_sent", figure("packets_sent", 0)),
        field("packets_received", figure("packets_received", 0)),
        field(
            "fsync_threshold_exceed_count",
            figure("fsync_threshold_exceed_count", 0),
        ),
        field("client_response_stats", sizes_of("client_response")),
    ];
    match mode {
        Mode::Standalone => {
            fields.extend(directories);
            fields.push(provider);
            fields.extend(load);
            fields.push(state);
        }
        Mode::Leader | Mode::Follower | Mode::Observer | Mode::ReadOnly => {
            fields.extend([provider, state]);
            fields.extend(directories);
            fields.extend(load);
        }
    }
    fields.extend([
        field("avg_latency", figure("avg_latency", 0)),
        field("max_latency", figure("max_latency", 0)),
        field("min_latency", figure("min_latency", 0)),
        field(
            "num_alive_client_connections",
            figure("num_alive_connections", 0),
        ),
        field("uptime", figure("uptime", 0)),
        field("auth_failed_count", figure("auth_failed_count", 0)),
        field(
            "non_mtlsremote_conn_count",
            figure("non_mtls_remote_conn_count", 0),
        ),
        field(
            "non_mtlslocal_conn_count",
            figure("non_mtls_local_conn_count", 0),
        ),
    ]);
    fields
}
