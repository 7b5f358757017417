//! Connections and sessions: how they begin and end.

use super::counter::Counter;
use super::page::{Figures, Page, own};

/// Figures of connections and sessions.
#[derive(Debug, Default)]
pub struct Clients {
    /// Connections refused at the door, for a bound.
    pub rejected: Counter,
    /// Connections that their clients gave up without closing the session.
    pub dropped: Counter,
    /// Connections without a session that were closed for their age.
    pub sessionless: Counter,
    /// Connections closed as no client is served.
    pub not_served: Counter,
    /// Sessions whose end by silence this member, as the leader, brought about.
    pub expired_here: Counter,
    /// Sessions resumed on other members while this one led.
    pub moved_elsewhere: Counter,
    /// Sessions of the cluster that were opened.
    pub opened: Counter,
    /// That were resumed.
    pub resumed: Counter,
    /// That their clients closed.
    pub closed: Counter,
    /// That ended by silence.
    pub expired: Counter,
}

impl Figures for Clients {
    fn tell(&self, page: &mut dyn Page) {
        page.counter("connection_rejected", &self.rejected);
        page.counter("connection_drop_count", &self.dropped);
        page.counter("cnxn_closed_without_zk_server_running", &self.not_served);
        page.counter("revalidate_count", &self.moved_elsewhere);
        page.counter("sessionless_connections_expired", &self.sessionless);
        page.counter("stale_sessions_expired", &self.expired_here);
        let sessions = |what| {
            (
                own(
                    "quenda_sessions_total",
                    "What happened to sessions of the cluster since this member started, as it applied it.",
                ),
                what,
            )
        };
        for (what, counter) in [
            ("opened", &self.opened),
            ("resumed", &self.resumed),
            ("closed", &self.closed),
            ("expired", &self.expired),
        ] {
            let (figure, what) = sessions(what);
            page.own_counter(figure, &[("event", what)], counter);
        }
    }
}
