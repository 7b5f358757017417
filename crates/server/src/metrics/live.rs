//! Figures that other parts of the server keep for their own work, read when they are asked for.

use quenda_frontend::ServiceMode;

use super::counter::Told;
use super::page::{Figures, Own, Page, own};
use crate::ensemble_view::{EnsembleView, Trouble, is_connected, is_synced};
use crate::limits::{INBOX_BYTES, OUTPUT_TOTAL_MAX, QUOTA_ZNODES_MAX, TREE_PATIENCE};
use crate::served::Served;
use crate::shared::Shared;

/// The server at this moment.
pub(super) struct Live<'a>(pub(super) &'a Shared);

impl Figures for Live<'_> {
    fn tell(&self, page: &mut dyn Page) {
        let shared = self.0;
        let view = shared.ensemble.read().clone();
        page.counter("digest_mismatches_count", &Told(view.digest_mismatches));
        self.tell_tls(page);
        self.tell_quorum_tls(page);
        self.tell_quotas(page);
        self.tell_budgets(page);
        self.tell_disk(page, &view);
        self.tell_place(page, &view);
        tell_peers(page, &view);
        let counts = shared.watches.counts();
        let watches = own(
            "quenda_watches",
            "Watches of this member's clients; a persistent one counts twice.",
        );
        page.own_gauge(watches, &[("kind", "data")], counts.data_watches as f64);
        page.own_gauge(
            watches,
            &[("kind", "children")],
            counts.child_watches as f64,
        );
        gauge(
            page,
            own(
                "quenda_watched_paths",
                "Paths with a watch of this member's clients.",
            ),
            counts.paths as f64,
        );
    }
}

fn gauge(page: &mut dyn Page, figure: Own, value: f64) {
    page.own_gauge(figure, &[], value);
}

fn flag(is: bool) -> f64 {
    f64::from(u8::from(is))
}

impl Live<'_> {
    fn tell_quorum_tls(&self, page: &mut dyn Page) {
        let Some(tls) = &self.0.quorum_tls else {
            return;
        };
        let handshakes = own(
            "quenda_peer_tls_handshakes_total",
            "TLS handshakes with other members.",
        );
        for (direction, counters) in [("accepted", &tls.counters), ("dialed", &tls.dialed)] {
            for (outcome, counter) in [
                ("completed", counters.completed()),
                ("failed", counters.failed()),
            ] {
                let labels = [("direction", direction), ("outcome", outcome)];
                page.own_counter(handshakes, &labels, counter);
            }
        }
        gauge(
            page,
            own(
                "quenda_peer_tls_certificate_expiry_timestamp_seconds",
                "When the certificate that other members are shown expires, in seconds since 1970.",
            ),
            tls.expires_s() as f64,
        );
    }

    fn tell_tls(&self, page: &mut dyn Page) {
        let Some(tls) = &self.0.tls else {
            page.gauge("outstanding_tls_handshake", 0);
            page.gauge("auth_failed_count", 0);
            page.counter("tls_handshake_exceeded", &Told(0));
            page.counter("unsuccessful_handshake", &Told(0));
            return;
        };
        let counters = &tls.counters;
        let under_way = i64::try_from(counters.under_way()).unwrap_or(i64::MAX);
        page.gauge("outstanding_tls_handshake", under_way);
        page.gauge("auth_failed_count", recent(counters.failed()));
        page.counter("tls_handshake_exceeded", counters.exceeded());
        page.counter("unsuccessful_handshake", counters.failed());
        let handshakes = own(
            "quenda_tls_handshakes_total",
            "TLS handshakes with clients.",
        );
        page.own_counter(
            handshakes,
            &[("outcome", "completed")],
            counters.completed(),
        );
        page.own_counter(handshakes, &[("outcome", "failed")], counters.failed());
        page.own_counter(handshakes, &[("outcome", "refused")], counters.exceeded());
        gauge(
            page,
            own(
                "quenda_tls_certificate_expiry_timestamp_seconds",
                "When the certificate that clients are shown expires, in seconds since 1970.",
            ),
            tls.expires_s() as f64,
        );
    }

    fn tell_quotas(&self, page: &mut dyn Page) {
        self.0.quota_refusals.tell(page);
        // Without the tree there is nothing to tell, this once.
        let Some(tree) = self.0.tree.try_read_for(TREE_PATIENCE) else {
            return;
        };
        for (namespace, quota) in tree.quotas(QUOTA_ZNODES_MAX) {
            page.gauge_of(
                "quota_count_limit_per_namespace",
                namespace,
                quota.count_limit,
            );
            page.gauge_of(
                "quota_bytes_limit_per_namespace",
                namespace,
                quota.bytes_limit,
            );
            page.gauge_of("quota_count_usage_per_namespace", namespace, quota.count);
            page.gauge_of("quota_bytes_usage_per_namespace", namespace, quota.bytes);
        }
    }

    fn tell_budgets(&self, page: &mut dyn Page) {
        let used = own(
            "quenda_buffer_bytes",
            "Bytes in a bounded buffer: output that clients have not taken, commands in front of the log.",
        );
        page.own_gauge(used, &[("buffer", "output")], self.0.output.bytes() as f64);
        page.own_gauge(
            used,
            &[("buffer", "commands")],
            self.0.inbox.backlog() as f64,
        );
        let bound = own("quenda_buffer_limit_bytes", "The bound of a buffer.");
        page.own_gauge(bound, &[("buffer", "output")], OUTPUT_TOTAL_MAX as f64);
        page.own_gauge(bound, &[("buffer", "commands")], INBOX_BYTES as f64);
        gauge(
            page,
            own(
                "quenda_connections_max",
                "Connections that the bounds of open files and of the configuration allow; the next is refused.",
            ),
            f64::from(self.0.registry.max(self.0.config.max_cnxns)),
        );
    }

    fn tell_disk(&self, page: &mut dyn Page, view: &EnsembleView) {
        let trouble = own(
            "quenda_disk_trouble",
            "1 while the disk has this trouble: full refuses growth, failing and hanging stop writes, rolled_back means that it lost what was confirmed.",
        );
        for (kind, is) in [
            ("full", self.0.is_disk_full()),
            ("failing", self.0.is_log_failing()),
            ("hanging", view.disk_hangs),
            ("rolled_back", view.rolled_back),
        ] {
            page.own_gauge(trouble, &[("kind", kind)], flag(is));
        }
    }

    fn tell_place(&self, page: &mut dyn Page, view: &EnsembleView) {
        let member = self.0.member.to_string();
        gauge(
            page,
            own("quenda_member_id", "This member's id."),
            self.0.member as f64,
        );
        gauge(
            page,
            own(
                "quenda_leader_id",
                "The leader's id; 0 while none is known.",
            ),
            view.leader.unwrap_or(0) as f64,
        );
        gauge(
            page,
            own(
                "quenda_is_leader",
                "1 on the member that leads, 0 elsewhere; the sum over all members is 1.",
            ),
            flag(view.leads_since_ms.is_some()),
        );
        gauge(
            page,
            own(
                "quenda_term",
                "Term of the log: every election that was tried raises it.",
            ),
            view.term as f64,
        );
        let serving = own(
            "quenda_serving",
            "1 for whom this member serves: all clients, those that only read, or nobody.",
        );
        let mode = self.0.service();
        for (clients, is) in [
            ("all", mode == ServiceMode::Serving),
            ("read_only", mode == ServiceMode::ReadOnly),
            ("none", mode == ServiceMode::NotServing),
        ] {
            page.own_gauge(serving, &[("clients", clients)], flag(is));
        }
        gauge(
            page,
            own(
                "quenda_leads_only",
                "1 while this member leads and, by leaderServes=no, serves no clients.",
            ),
            flag(self.0.served() == Served::NobodyAsLeader),
        );
        let alarmed = view.trouble == Some(Trouble::Alarmed);
        gauge(
            page,
            own(
                "quenda_state_differs",
                "1 if this member's state differs from the others', so that it serves nobody.",
            ),
            flag(alarmed),
        );
        let index = own(
            "quenda_log_index",
            "Newest log entry that is here, on this member's disk, committed, applied.",
        );
        for (what, value) in [
            ("last", view.last_index),
            ("persisted", view.persisted),
            ("committed", view.committed),
            ("applied", view.applied),
        ] {
            page.own_gauge(index, &[("state", what), ("member", &member)], value as f64);
        }
        let waiting = view.last_index.saturating_sub(view.persisted);
        gauge(
            page,
            own(
                "quenda_log_queue_entries",
                "Log entries that are not on this member's disk yet.",
            ),
            waiting as f64,
        );
        let renewed = own(
            "quenda_sessions_renewed_late_total",
            "Sessions heard with less than a third of their timeout left; the leader counts.",
        );
        page.own_counter(renewed, &[], &Told(view.sessions_renewed_late));
        let members = own("quenda_members", "Members that the log counts.");
        page.own_gauge(
            members,
            &[("part", "voter")],
            view.membership.voters.len() as f64,
        );
        page.own_gauge(
            members,
            &[("part", "learner")],
            view.membership.learners.len() as f64,
        );
    }
}

fn tell_peers(page: &mut dyn Page, view: &EnsembleView) {
    for peer in &view.peers {
        let id = peer.id.to_string();
        let labels = [("peer", id.as_str())];
        page.own_gauge(
            own(
                "quenda_peer_connected",
                "1 if that member was heard lately.",
            ),
            &labels,
            flag(is_connected(peer)),
        );
        page.own_gauge(
            own(
                "quenda_peer_synced",
                "1 if that member was heard lately and has, but for what is on its way, what this one has.",
            ),
            &labels,
            flag(is_synced(peer)),
        );
        page.own_gauge(
            own(
                "quenda_peer_lag_entries",
                "Log entries that that member has applied less than this one.",
            ),
            &labels,
            peer.lag as f64,
        );
        if let Some(heard_ms) = peer.heard_ms_ago {
            page.own_gauge(
                own(
                    "quenda_peer_heard_seconds",
                    "Time since that member was heard.",
                ),
                &labels,
                heard_ms as f64 / 1000.0,
            );
        }
    }
}

fn recent(counter: &dyn super::Counts) -> i64 {
    i64::try_from(counter.recent()).unwrap_or(i64::MAX)
}
