//! Answers about sessions, connections and watches.

use std::collections::BTreeMap;

use super::Admin;
use super::json::{Fields, Json, field};
use crate::clock::wall_ms;
use crate::four_letter::{ConnectionView, Mode, Source, java_address};
use crate::node_source::NodeSource;

/// `connections`.
pub(super) fn connections(source: &NodeSource<'_>) -> Fields {
    by_port(source, |connection| {
        let mut fields = brief(connection);
        fields.extend(session_of(connection));
        fields
    })
}

/// The end of `stats`.
pub(super) fn brief_connections(source: &NodeSource<'_>) -> Fields {
    by_port(source, brief)
}

fn by_port(source: &NodeSource<'_>, form: impl Fn(&ConnectionView) -> Fields) -> Fields {
    let (secure, plain): (Vec<_>, Vec<_>) = source
        .connections()
        .into_iter()
        .partition(|connection| connection.secure);
    vec![
        field("connections", Json::list(plain.iter().map(&form))),
        field("secure_connections", Json::list(secure.iter().map(&form))),
    ]
}

fn brief(connection: &ConnectionView) -> Fields {
    let address = java_address(connection.peer);
    vec![
        field("remote_socket_address", address.trim_start_matches('/')),
        // A Java selector's interest; servers without one say 1.
        field("interest_ops", 1),
        field("outstanding_requests", connection.queued),
        field("packets_received", connection.received),
        field("packets_sent", connection.sent),
    ]
}

/// A connection without a session has what a new one has.
fn session_of(connection: &ConnectionView) -> Fields {
    let session = connection.session.as_ref();
    let figure = |value: Option<u64>| value.unwrap_or(0);
    vec![
        field("session_id", session.map_or(0, |session| session.id)),
        field(
            "last_operation",
            session.map_or("NA", |session| session.last_operation),
        ),
        field(
            "established",
            session.map_or(0, |session| session.established_ms),
        ),
        field(
            "session_timeout",
            session.map_or(0, |session| session.timeout_ms),
        ),
        field("last_cxid", session.map_or(-1, |session| session.last_cxid)),
        field("last_zxid", session.map_or(-1, |session| session.last_zxid)),
        field(
            "last_response_time",
            figure(session.map(|session| session.last_response_ms)),
        ),
        field(
            "last_latency",
            figure(session.map(|session| session.last_latency_ms)),
        ),
        field(
            "min_latency",
            figure(session.map(|session| session.min_latency_ms)),
        ),
        field(
            "avg_latency",
            figure(session.map(|session| session.avg_latency_ms)),
        ),
        field(
            "max_latency",
            figure(session.map(|session| session.max_latency_ms)),
        ),
    ]
}

/// `dump`: sessions by the time of their expiry, by the server's own clock and in steps of a tick; then ephemeral znodes.
pub(super) fn dump(admin: &Admin, source: &NodeSource<'_>) -> Fields {
    let mut expiries: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    // Known to the member that ends sessions: each knows its local ones.
    let mut known = source.local_session_expiries().unwrap_or_default();
    if matches!(source.mode(), Mode::Standalone | Mode::Leader) {
        known.extend(source.session_expiries());
    }
    let offset = wall_ms() - admin.shared.clock.now_ms() as i64;
    let tick = i64::from(admin.shared.config.tick_time_ms);
    for expiry in known {
        let at = ((expiry.at_ms - offset).div_euclid(tick) + 1) * tick;
        expiries.entry(at).or_default().push(expiry.id);
    }
    let expiries = expiries.into_iter().map(|(at, mut ids)| {
        ids.sort_unstable();
        (at.to_string(), Json::list(ids))
    });
    let ephemerals = source.ephemerals().into_iter();
    let ephemerals = ephemerals.map(|(id, paths)| (id.to_string(), Json::list(paths)));
    vec![
        field("expiry_time_to_session_ids", expiries.collect::<Fields>()),
        field(
            "session_id_to_ephemeral_paths",
            ephemerals.collect::<Fields>(),
        ),
    ]
}

/// `watch_summary`.
pub(super) fn watch_summary(source: &NodeSource<'_>) -> Fields {
    let summary = source.watch_summary();
    vec![
        field("num_connections", summary.connections),
        field("num_paths", summary.paths),
        field("num_total_watches", summary.total),
    ]
}

/// `watches`.
pub(super) fn watches(source: &NodeSource<'_>) -> Fields {
    let sessions = source.watches_by_session().into_iter();
    let sessions = sessions.map(|(id, paths)| (id.to_string(), Json::list(paths)));
    vec![field(
        "session_id_to_watched_paths",
        sessions.collect::<Fields>(),
    )]
}

/// `watches_by_path`.
pub(super) fn watches_by_path(source: &NodeSource<'_>) -> Fields {
    let paths = source.watches_by_path().into_iter();
    let paths = paths.map(|(path, ids)| (path, Json::list(ids)));
    vec![field("path_to_session_ids", paths.collect::<Fields>())]
}
