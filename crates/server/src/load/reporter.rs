//! Makes a report of what the monitor has, and looks for misuse every few seconds.

use std::sync::Arc;
use std::time::Duration;

use quenda_frontend::{LATENCY_BOUNDS_MS, Tally};
use tokio_util::sync::CancellationToken;

use super::named::{RecentMisuse, RecentSlow};
use super::report::{
    Herd, Hot, HotRow, Load, LoadReport, LoadRow, LoadTotals, Misuse, MisuseKind, NamedRequest,
    SessionRow, Thresholds, WatchHot,
};
use super::window::{Hits, Minute, Requester, Summed};
use crate::clock::wall_ms;
use crate::limits::{LOAD_REPORT_MS, LOAD_SLOT_MS, LOAD_TABLE_MAX, LOAD_WINDOW_MS};
use crate::shared::Shared;

/// The last minute; the same report again if that was made a moment ago.
pub fn report(shared: &Shared) -> Arc<LoadReport> {
    let now_ms = shared.clock.now_ms();
    let mut last = shared.load.report.lock();
    if let Some((made_ms, report)) = &*last
        && now_ms.saturating_sub(*made_ms) < LOAD_REPORT_MS
    {
        return Arc::clone(report);
    }
    let report = Arc::new(make(shared, now_ms));
    *last = Some((now_ms, Arc::clone(&report)));
    report
}

fn make(shared: &Shared, now_ms: u64) -> LoadReport {
    collect(shared, now_ms);
    let load = &shared.load;
    let settings = load.settings();
    let rows = settings.rows;
    let minute = load.minute(now_ms);
    let mut totals = LoadTotals {
        load: load_of(&minute.total),
        events: minute.events,
        event_bytes: minute.event_bytes,
        outstanding: 0,
        connections: 0,
    };
    for handle in shared.registry.all() {
        totals.connections += 1;
        totals.outstanding += handle.connection.lock().queued() as u64;
    }
    let (mut misuse, herds, slow) = load.recent(|recent| {
        let misuse: Vec<Misuse> = recent.misuse(now_ms).map(|one| tell(one, now_ms)).collect();
        let herds = recent.herds(now_ms).take(rows).map(|herd| Herd {
            path: herd.path.to_string(),
            watchers: herd.watchers,
            ms_ago: now_ms.saturating_sub(herd.at_ms),
        });
        let slow = recent.slow(now_ms).take(rows);
        let slow = slow.map(|slow| tell_slow(slow, now_ms));
        (misuse, herds.collect(), slow.collect())
    });
    misuse.sort_by_key(|misuse| misuse.ms_ago);
    LoadReport {
        member: shared.member,
        time_ms: wall_ms(),
        window_ms: now_ms.min(LOAD_WINDOW_MS),
        totals,
        sampled: sampled(&minute),
        latency_bounds_ms: LATENCY_BOUNDS_MS.to_vec(),
        table_max: LOAD_TABLE_MAX as u64,
        clients: top(
            minute.clients,
            rows,
            |one| one.value.requests,
            |one| row(one.key.to_string(), &one.value, one.missed),
        ),
        sessions: top(
            minute.sessions,
            rows,
            |one| one.value.tally.requests,
            |one| SessionRow {
                session: session_name(one.key),
                client: one
                    .value
                    .client
                    .map(|at| at.to_string())
                    .unwrap_or_default(),
                load: load_of(&one.value.tally),
                missed_at_most: one.missed,
            },
        ),
        prefixes: top(
            minute.prefixes,
            rows,
            |one| one.value.requests,
            |one| row(one.key.to_string(), &one.value, one.missed),
        ),
        operations: operations(&minute.ops),
        hot: Hot {
            read: top(minute.read, rows, |one| one.value.count, hot_row),
            written: top(minute.written, rows, |one| one.value.count, hot_row),
            watched: watched(shared, rows),
        },
        misuse,
        herds,
        slow,
        counts: load.counts(),
        thresholds: Thresholds {
            slow_request_ms: settings.slow_request_ms,
            herd_watchers: settings.herd_watchers,
            large_write_bytes: settings.large_write_bytes as u64,
            hot_writes_per_second: settings.hot_writes_per_second,
            many_children: settings.many_children,
            sequential_creates_per_second: settings.sequential_creates_per_second,
        },
    }
}

/// Takes the notes of connections that have not handed them over yet.
fn collect(shared: &Shared, now_ms: u64) {
    for handle in shared.registry.all() {
        let mut connection = handle.connection.lock();
        let session = connection.session();
        let observed = connection.take_observed(shared.load.sampling(), now_ms);
        drop(connection);
        let client = handle.peer;
        if let Some(observed) = observed {
            shared.throttle.count(&observed);
            shared.load.take(Requester { client, session }, &observed);
        }
    }
}

/// The first rows of a table by what it is sorted by.
fn top<K: Ord, V, R>(
    mut table: Vec<Summed<K, V>>,
    rows: usize,
    by: impl Fn(&Summed<K, V>) -> u64,
    row: impl Fn(&Summed<K, V>) -> R,
) -> Vec<R> {
    table.sort_by(|one, other| by(other).cmp(&by(one)).then(one.key.cmp(&other.key)));
    table.iter().take(rows).map(row).collect()
}

fn operations(ops: &[(quenda_proto::Op, Tally)]) -> Vec<LoadRow> {
    let mut rows: Vec<LoadRow> = ops
        .iter()
        .map(|(op, tally)| row(op.name().to_owned(), tally, 0))
        .collect();
    rows.sort_by(|one, other| {
        let by_count = other.load.requests.cmp(&one.load.requests);
        by_count.then_with(|| one.name.cmp(&other.name))
    });
    rows
}

fn row(name: String, tally: &Tally, missed_at_most: u64) -> LoadRow {
    LoadRow {
        name,
        load: load_of(tally),
        missed_at_most,
    }
}

fn load_of(tally: &Tally) -> Load {
    Load {
        requests: tally.requests,
        bytes_in: tally.bytes_in,
        bytes_out: tally.bytes_out,
        latency_mean_ms: match tally.requests {
            0 => 0.0,
            requests => tally.latency_total_ms as f64 / requests as f64,
        },
        latency_max_ms: tally.latency_max_ms.into(),
        latency: tally.latency.to_vec(),
    }
}

fn hot_row(one: &Summed<Arc<str>, Hits>) -> HotRow {
    let (session, client) = one.value.last.unzip();
    HotRow {
        path: one.key.to_string(),
        requests: one.value.count,
        bytes: one.value.bytes,
        session: session.map(session_name),
        client: client.map(|client| client.to_string()),
        missed_at_most: one.missed,
    }
}

fn watched(shared: &Shared, rows: usize) -> Vec<WatchHot> {
    let watched = shared.watches.most_watched(rows).into_iter();
    watched
        .map(|(watchers, path)| WatchHot {
            path,
            watchers: watchers as u64,
        })
        .collect()
}

fn tell(misuse: &RecentMisuse, now_ms: u64) -> Misuse {
    let (session, client) = misuse.last.unzip();
    Misuse {
        kind: misuse.kind,
        path: misuse.path.to_string(),
        value: misuse.value,
        limit: misuse.limit,
        session: session.map(session_name),
        client: client.map(|client| client.to_string()),
        ms_ago: now_ms.saturating_sub(misuse.at_ms),
    }
}

fn tell_slow(slow: &RecentSlow, now_ms: u64) -> NamedRequest {
    NamedRequest {
        operation: slow.op.name().to_owned(),
        path: slow.path.to_string(),
        session: slow.who.session.map(session_name),
        client: slow.who.client.to_string(),
        queue_ms: slow.queue_ms,
        commit_ms: slow.commit_ms,
        total_ms: slow.queue_ms + slow.commit_ms,
        ms_ago: now_ms.saturating_sub(slow.at_ms),
    }
}

fn session_name(session: i64) -> String {
    format!("{session:#x}")
}

/// One of how many requests with a path was looked at.
fn sampled(minute: &Minute) -> String {
    let (requests, samples) = minute.sampled;
    let every = requests as f64 / samples.max(1) as f64;
    format!("1/{}", (every.round() as u64).max(1))
}

/// Looks for misuse every few seconds until the server stops.
pub async fn watch(shared: Arc<Shared>, stop: CancellationToken) {
    let mut turns = tokio::time::interval(Duration::from_millis(LOAD_SLOT_MS));
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = turns.tick() => look(&shared),
        }
    }
}

fn look(shared: &Shared) {
    shared.load.set_connections(shared.registry.len());
    let now_ms = shared.clock.now_ms();
    let minute = shared.load.last_slot(now_ms);
    let settings = shared.load.settings();
    let seconds = LOAD_SLOT_MS / 1000;
    let mut found = Vec::new();
    let rates = [
        (MisuseKind::HotWrites, settings.hot_writes_per_second),
        (
            MisuseKind::SequentialCreates,
            settings.sequential_creates_per_second,
        ),
    ];
    for (kind, limit) in rates {
        let table = match kind {
            MisuseKind::SequentialCreates => &minute.parents,
            _ => &minute.written,
        };
        for one in table {
            let count = match kind {
                MisuseKind::SequentialCreates => one.value.sequential,
                _ => one.value.count,
            };
            let value = count / seconds;
            if limit != 0 && value > limit {
                found.push(misuse(kind, one, value, limit, now_ms));
            }
        }
    }
    let limit = settings.many_children;
    if limit != 0 && !minute.parents.is_empty() {
        let tree = shared.tree.read();
        for one in &minute.parents {
            let children = tree
                .get(&one.key)
                .map_or(0, |node| node.child_count() as u64);
            if children > limit {
                found.push(misuse(
                    MisuseKind::ManyChildren,
                    one,
                    children,
                    limit,
                    now_ms,
                ));
            }
        }
    }
    for misuse in found {
        shared.load.count_misuse(misuse.kind);
        shared.load.tell_misuse(misuse);
    }
}

fn misuse(
    kind: MisuseKind,
    one: &Summed<Arc<str>, Hits>,
    value: u64,
    limit: u64,
    at_ms: u64,
) -> RecentMisuse {
    RecentMisuse {
        kind,
        path: (*one.key).into(),
        value,
        limit,
        last: one.value.last,
        at_ms,
    }
}
