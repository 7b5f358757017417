//! The answers that are text of a fixed form, line by line as ZooKeeper prints them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

use super::java;
use super::source::{
    ConnectionView, Ensemble, Mode, ProposalSizes, SessionExpiry, SessionView, Source,
};

/// `srvr`, and the end of `stat`.
pub(super) fn srvr(version: &str, source: &dyn Source) -> String {
    head(version, source) + &figures(source)
}

/// `stat`: `srvr` with the clients between its first line and the rest. Scripts read it by line order.
pub(super) fn stat(version: &str, source: &dyn Source) -> String {
    let mut text = head(version, source);
    text.push_str("Clients:\n");
    for connection in source.connections() {
        connection_line(&mut text, &connection, false);
    }
    text.push('\n');
    text + &figures(source)
}

fn head(version: &str, source: &dyn Source) -> String {
    let read_only = match source.mode() {
        Mode::ReadOnly => "READ-ONLY mode; serving only read-only clients\n",
        Mode::Standalone | Mode::Leader | Mode::Follower | Mode::Observer => "",
    };
    format!("Zookeeper version: {version}\n{read_only}")
}

fn figures(source: &dyn Source) -> String {
    let traffic = source.traffic();
    let state = source.state();
    let proposals = source
        .leading()
        .map_or(String::new(), |leading| proposal_line(leading.proposals));
    format!(
        "Latency min/avg/max: {}/{}/{}\nReceived: {}\nSent: {}\nConnections: {}\nOutstanding: {}\nZxid: {}\nMode: {}\n\
         Node count: {}\n{proposals}",
        traffic.latency_min_ms,
        java::average(traffic.latency_avg_ms),
        traffic.latency_max_ms,
        traffic.received,
        traffic.sent,
        traffic.connections,
        traffic.outstanding,
        java::hex(state.zxid),
        source.mode().name(),
        state.znodes + 1,
    )
}

fn proposal_line(sizes: Option<ProposalSizes>) -> String {
    sizes.map_or(
        "Proposal sizes last/min/max: -1/-1/-1\n".to_owned(),
        |sizes| {
            format!(
                "Proposal sizes last/min/max: {}/{}/{}\n",
                sizes.last, sizes.min, sizes.max
            )
        },
    )
}

/// `cons`: a line for each connection and an empty one.
pub(super) fn cons(source: &dyn Source) -> String {
    let mut text = String::new();
    for connection in source.connections() {
        connection_line(&mut text, &connection, true);
    }
    text.push('\n');
    text
}

fn connection_line(text: &mut String, connection: &ConnectionView, full: bool) {
    // The figure in brackets is a Java selector's interest; servers without one print 1.
    append(
        text,
        format_args!(
            " {}[1](queued={},recved={},sent={}",
            address(connection.peer),
            connection.queued,
            connection.received,
            connection.sent
        ),
    );
    if let (true, Some(session)) = (full, &connection.session) {
        session_fields(text, session);
    }
    text.push_str(")\n");
}

fn session_fields(text: &mut String, session: &SessionView) {
    append(
        text,
        format_args!(
            ",sid={},lop={},est={},to={}",
            java::hex(session.id),
            session.last_operation,
            session.established_ms,
            session.timeout_ms
        ),
    );
    if session.last_cxid >= 0 {
        append(
            text,
            format_args!(",lcxid={}", java::hex(session.last_cxid)),
        );
    }
    append(
        text,
        format_args!(
            ",lzxid={},lresp={},llat={},minlat={},avglat={},maxlat={}",
            java::hex(session.last_zxid),
            session.last_response_ms,
            session.last_latency_ms,
            session.min_latency_ms,
            session.avg_latency_ms,
            session.max_latency_ms
        ),
    );
}

/// An address as Java prints one that has no host name: IPv6 in brackets with all eight groups.
pub fn address(peer: SocketAddr) -> String {
    match peer.ip().to_canonical() {
        IpAddr::V4(ip) => format!("/{ip}:{}", peer.port()),
        IpAddr::V6(ip) => {
            let groups: Vec<String> = ip
                .segments()
                .iter()
                .map(|group| format!("{group:x}"))
                .collect();
            format!("/[{}]:{}", groups.join(":"), peer.port())
        }
    }
}

/// `conf`: the settings in force.
pub(super) fn conf(source: &dyn Source) -> String {
    let settings = source.settings();
    let sizes = source.directory_sizes();
    let text = format!(
        "clientPort={}\nsecureClientPort={}\ndataDir={}\ndataDirSize={}\ndataLogDir={}\ndataLogSize={}\ntickTime={}\n\
         maxClientCnxns={}\nminSessionTimeout={}\nmaxSessionTimeout={}\nclientPortListenBacklog={}\nserverId={}\n",
        settings.client_port,
        settings.secure_client_port,
        settings.data_dir,
        sizes.data_bytes,
        settings.data_log_dir,
        sizes.log_bytes,
        settings.tick_time_ms,
        settings.max_client_cnxns,
        settings.min_session_timeout_ms,
        settings.max_session_timeout_ms,
        settings.client_port_listen_backlog,
        settings.server_id,
    );
    match source.ensemble() {
        Some(ensemble) => text + &quorum_conf(&ensemble, source.mode()),
        None => text,
    }
}

/// What `conf` says more in an ensemble. The membership ends without a line end; read-only, there is none.
fn quorum_conf(ensemble: &Ensemble, mode: Mode) -> String {
    let ports = |ports: &[u16]| {
        let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
        ports.join("|")
    };
    let text = format!(
        "initLimit={}\nsyncLimit={}\nelectionAlg=3\nelectionPort={}\nquorumPort={}\npeerType={}\n",
        ensemble.init_limit,
        ensemble.sync_limit,
        ports(&ensemble.election_ports),
        ports(&ensemble.quorum_ports),
        u8::from(ensemble.observer),
    );
    match mode {
        Mode::ReadOnly => text,
        Mode::Standalone | Mode::Leader | Mode::Follower | Mode::Observer => {
            format!("{text}membership: \n{}", ensemble.membership)
        }
    }
}

/// `dirs`: bytes under the data directories.
pub(super) fn dirs(source: &dyn Source) -> String {
    let sizes = source.directory_sizes();
    format!(
        "datadir_size: {}\nlogdir_size: {}\n",
        sizes.data_bytes, sizes.log_bytes
    )
}

/// `dump`: sessions, then ephemeral znodes by session, then connections.
pub(super) fn dump(source: &dyn Source) -> String {
    let mut text = "SessionTracker dump:\n".to_owned();
    if let Some(sessions) = source.local_session_expiries() {
        text.push_str("Local ");
        sessions_by_expiry(&mut text, sessions);
        if source.mode() == Mode::Leader {
            text.push_str("Global ");
        }
    }
    match source.mode() {
        Mode::Standalone | Mode::Leader => sessions_by_expiry(&mut text, source.session_expiries()),
        Mode::Follower | Mode::Observer | Mode::ReadOnly => sessions_by_id(&mut text, source),
    }
    let ephemerals = source.ephemerals();
    append(
        &mut text,
        format_args!(
            "ephemeral nodes dump:\nSessions with Ephemerals ({}):\n",
            ephemerals.len()
        ),
    );
    for (session, paths) in ephemerals {
        append(&mut text, format_args!("{}:\n", java::hex(session)));
        for path in paths {
            append(&mut text, format_args!("\t{path}\n"));
        }
    }
    text.push_str("Connections dump:\n");
    connections_by_expiry(&mut text, &source.connections());
    text
}

fn sessions_by_expiry(text: &mut String, mut expiries: Vec<SessionExpiry>) {
    expiries.sort_unstable_by_key(|expiry| expiry.id);
    let lines = expiries
        .iter()
        .map(|expiry| (expiry.at_ms, java::hex(expiry.id)));
    sets_by_expiry(text, "Session", lines);
}

fn sessions_by_id(text: &mut String, source: &dyn Source) {
    let mut sessions = source.session_timeouts();
    sessions.sort_unstable();
    append(text, format_args!("Global Sessions({}):\n", sessions.len()));
    for (session, timeout_ms) in sessions {
        append(
            text,
            format_args!("{}\t{timeout_ms}ms\n", java::hex(session)),
        );
    }
}

/// A connection without a session has 0 for it.
fn connections_by_expiry(text: &mut String, connections: &[ConnectionView]) {
    let lines = connections.iter().map(|connection| {
        let session = connection.session.as_ref().map_or(0, |session| session.id);
        let (address, session) = (address(connection.peer), java::hex(session));
        let line = format!("ip: {address} sessionId: {session}");
        (connection.expires_ms, line)
    });
    sets_by_expiry(text, "Connections", lines);
}

/// What ends in the same second, unless its client is heard, shares a set.
fn sets_by_expiry(
    text: &mut String,
    of: &str,
    lines: impl ExactSizeIterator<Item = (i64, String)>,
) {
    let count = lines.len();
    let mut sets: BTreeMap<i64, Vec<String>> = BTreeMap::new();
    for (at_ms, line) in lines {
        sets.entry(at_ms.div_euclid(1000)).or_default().push(line);
    }
    append(
        text,
        format_args!("{of} Sets ({})/({count}):\n", sets.len()),
    );
    for (second, lines) in sets {
        let date = java::date(second * 1000);
        append(text, format_args!("{} expire at {date}:\n", lines.len()));
        for line in lines {
            append(text, format_args!("\t{line}\n"));
        }
    }
}

/// `hash`: the remembered digests, nothing if there are none.
pub(super) fn hash(source: &dyn Source) -> String {
    let mut text = String::new();
    for (zxid, digest) in source.digests() {
        append(&mut text, format_args!("{zxid:x}: {digest}\n"));
    }
    text
}

/// `isro`: whether the member takes writes.
pub(super) fn isro(source: &dyn Source) -> &'static str {
    match source.mode() {
        Mode::ReadOnly => "ro",
        Mode::Standalone | Mode::Leader | Mode::Follower | Mode::Observer => "rw",
    }
}

/// `wchs`: how many watches there are.
pub(super) fn wchs(source: &dyn Source) -> String {
    let watches = source.watch_summary();
    format!(
        "{} connections watching {} paths\nTotal watches:{}\n",
        watches.connections, watches.paths, watches.total
    )
}

/// `wchc`: watched paths by session.
pub(super) fn wchc(source: &dyn Source) -> String {
    let mut text = String::new();
    for (session, paths) in source.watches_by_session() {
        append(&mut text, format_args!("{}\n", java::hex(session)));
        for path in paths {
            append(&mut text, format_args!("\t{path}\n"));
        }
    }
    text.push('\n');
    text
}

/// `wchp`: watching sessions by path.
pub(super) fn wchp(source: &dyn Source) -> String {
    let mut text = String::new();
    for (path, sessions) in source.watches_by_path() {
        append(&mut text, format_args!("{path}\n"));
        for session in sessions {
            append(&mut text, format_args!("\t{}\n", java::hex(session)));
        }
    }
    text.push('\n');
    text
}

fn append(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments)
        .expect("writing to a String does not fail");
}
