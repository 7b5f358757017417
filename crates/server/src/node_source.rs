//! Where the four-letter words get their figures.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::path::Path;

use quenda_frontend::{ConnectionId, ServiceMode};
use quenda_node::PeerReport;
use quenda_tree::ensemble::PeerAddress;

use crate::clock::wall_ms;
use crate::ensemble_view::{is_connected, is_synced};
use crate::four_letter::{
    ConnectionView, DirectorySizes, Ensemble, Leading, Mode, Process, SessionExpiry, SessionView,
    Settings, Source, State, Traffic, WatchSummary,
};
use crate::limits::{ASK_PATIENCE, DIRECTORY_PATIENCE};
use crate::load;
use crate::member_status;
use crate::metrics::{self, Page};
use crate::registry::{Door, Handle};
use crate::shared::Shared;
use crate::status::Role;
use crate::system::{max_files, open_files};

/// The running server as the words see it.
pub struct NodeSource<'a> {
    shared: &'a Shared,
    /// Who asks, if that is a client.
    asked_by: Option<IpAddr>,
}

impl<'a> NodeSource<'a> {
    /// Looks at this server.
    pub fn new(shared: &'a Shared) -> NodeSource<'a> {
        NodeSource {
            shared,
            asked_by: None,
        }
    }

    /// For this client.
    pub fn asked_by(self, client: IpAddr) -> NodeSource<'a> {
        NodeSource {
            asked_by: Some(client),
            ..self
        }
    }

    fn view(&self, handle: &Handle) -> ConnectionView {
        let connection = handle.connection.lock();
        let stats = connection.stats();
        let session = connection.session().map(|id| SessionView {
            id,
            last_operation: stats.last_op_name(),
            established_ms: stats.established_ms,
            timeout_ms: connection.timeout_ms(),
            last_cxid: stats.last_xid.map_or(-1, i64::from),
            last_zxid: stats.last_zxid.unwrap_or(-1),
            last_response_ms: stats.last_response_ms,
            last_latency_ms: stats.last_latency_ms.into(),
            min_latency_ms: stats.min_latency_ms.into(),
            avg_latency_ms: stats.avg_latency_ms(),
            max_latency_ms: stats.max_latency_ms.into(),
        });
        ConnectionView {
            peer: handle.peer,
            secure: handle.door == Door::Secure,
            queued: connection.queued() as u64,
            received: stats.received,
            sent: stats.sent,
            expires_ms: self.expires_ms(session.as_ref()),
            session,
        }
    }

    /// When a connection is closed unless its client is heard, in ms since 1970. Of one without a session the age is not
    /// kept; one whose figures were reset counts as just heard.
    fn expires_ms(&self, session: Option<&SessionView>) -> i64 {
        let now = wall_ms();
        let Some(session) = session else {
            return now + self.shared.config.sessionless_timeout_ms as i64;
        };
        let silent = match session.last_response_ms {
            0 => 0,
            heard => self.shared.clock.now_ms().saturating_sub(heard),
        };
        now - silent as i64 + i64::from(session.timeout_ms)
    }

    /// While the core thread is held up nobody's time runs out: each session has all of its timeout.
    fn expiries_at_rest(&self) -> Vec<SessionExpiry> {
        let now = wall_ms();
        let timeouts = self.session_timeouts().into_iter();
        timeouts
            .map(|(id, timeout_ms)| SessionExpiry {
                id,
                at_ms: now + i64::from(timeout_ms),
            })
            .collect()
    }

    fn outstanding(&self) -> u64 {
        let queued = |handle: &std::sync::Arc<Handle>| handle.connection.lock().queued() as u64;
        self.shared.registry.all().iter().map(queued).sum()
    }
}

impl Source for NodeSource<'_> {
    fn asked_locally(&self) -> bool {
        self.asked_by.is_some_and(|client| client.is_loopback())
    }

    fn load(&self) -> String {
        load::report(self.shared).to_json()
    }

    fn serving(&self) -> bool {
        self.shared.service() != ServiceMode::NotServing
    }

    fn mode(&self) -> Mode {
        let view = self.shared.ensemble.read();
        let tree = self.shared.tree.read();
        let ensemble = member_status::ensemble(self.shared, &tree);
        let own = ensemble.as_deref();
        let own = own.and_then(|ensemble| ensemble.server(self.shared.member));
        match member_status::role(self.shared.member, ensemble.as_deref(), &view) {
            Role::Standalone => Mode::Standalone,
            _ if self.shared.service() == ServiceMode::ReadOnly => Mode::ReadOnly,
            Role::Leader => Mode::Leader,
            // Also while it has lost its leader.
            _ if own.is_some_and(|server| server.observer) => Mode::Observer,
            Role::Observer => Mode::Observer,
            Role::Follower | Role::Joining | Role::Candidate | Role::Waiting | Role::Removed => {
                Mode::Follower
            }
        }
    }

    fn traffic(&self) -> Traffic {
        let figures = self.shared.traffic.figures();
        Traffic {
            received: figures.received,
            sent: figures.sent,
            latency_min_ms: figures.latency_min_ms,
            latency_avg_ms: figures.latency_avg_ms,
            latency_max_ms: figures.latency_max_ms,
            outstanding: self.outstanding(),
            connections: self.shared.registry.len() as u64,
        }
    }

    fn state(&self) -> State {
        let watches = self.shared.watches.counts().watches() as u64;
        let sessions = self.shared.local_sessions.as_ref();
        let tree = self.shared.tree.read();
        let counts = tree.counts();
        State {
            zxid: tree.last_zxid(),
            znodes: counts.znodes as u64,
            ephemerals: counts.ephemerals as u64,
            data_bytes: counts.data_bytes,
            sessions: counts.sessions as u64,
            local_sessions: sessions.map_or(0, |sessions| sessions.count() as u64),
            watches,
        }
    }

    fn process(&self) -> Process {
        Process {
            open_files: open_files(),
            max_files: max_files(),
            uptime_ms: {
                let since_ms = self.shared.metrics.quorum.part_since_ms();
                self.shared.clock.now_ms().saturating_sub(since_ms)
            },
        }
    }

    fn connections(&self) -> Vec<ConnectionView> {
        let all = self.shared.registry.all();
        all.iter().map(|handle| self.view(handle)).collect()
    }

    fn settings(&self) -> Settings {
        let config = &self.shared.config;
        let version_2 = |path: &Path| path.join("version-2").display().to_string();
        let log_dir = config.data_log_dir.as_ref().unwrap_or(&config.data_dir);
        Settings {
            client_port: self.shared.bound_port().map_or(-1, i32::from),
            secure_client_port: self.shared.bound_secure_port().map_or(-1, i32::from),
            data_dir: version_2(&config.data_dir),
            data_log_dir: version_2(log_dir),
            tick_time_ms: config.tick_time_ms,
            max_client_cnxns: config.max_client_cnxns,
            min_session_timeout_ms: self.shared.settings.session_timeout_min_ms.unsigned_abs(),
            max_session_timeout_ms: self.shared.settings.session_timeout_max_ms.unsigned_abs(),
            client_port_listen_backlog: config.client_port_listen_backlog.map_or(-1, |n| n as i32),
            server_id: match self.mode() {
                Mode::Standalone => 0,
                Mode::Leader | Mode::Follower | Mode::Observer | Mode::ReadOnly => config.my_id,
            },
        }
    }

    fn directory_sizes(&self) -> DirectorySizes {
        self.shared.directories.read(DIRECTORY_PATIENCE)
    }

    fn session_expiries(&self) -> Vec<SessionExpiry> {
        let clock = self.shared.clock;
        let answer = self.shared.inbox.ask(ASK_PATIENCE, move |member| {
            let offset = wall_ms() - clock.now_ms() as i64;
            let expiry = |(deadline_ms, id): (u64, i64)| SessionExpiry {
                id,
                at_ms: deadline_ms as i64 + offset,
            };
            member.tracker().deadlines().map(expiry).collect()
        });
        answer.unwrap_or_else(|| self.expiries_at_rest())
    }

    fn local_session_expiries(&self) -> Option<Vec<SessionExpiry>> {
        let sessions = self.shared.local_sessions.as_ref()?.all();
        let offset = wall_ms() - self.shared.clock.now_ms() as i64;
        let expiries = sessions.into_iter().map(|local| {
            let handle = local.connection.and_then(|id| self.shared.registry.get(id));
            let deadline_ms = handle.map_or(local.deadline_ms, |handle| {
                handle.connection.lock().last_touch_ms() + local.timeout_ms
            });
            SessionExpiry {
                id: local.session,
                at_ms: deadline_ms as i64 + offset,
            }
        });
        Some(expiries.collect())
    }

    fn session_timeouts(&self) -> Vec<(i64, i32)> {
        let tree = self.shared.tree.read();
        let sessions = tree.sessions();
        sessions
            .map(|(id, session)| (id, session.timeout_ms))
            .collect()
    }

    fn leading(&self) -> Option<Leading> {
        let view = self.shared.ensemble.read();
        let since_ms = view.leads_since_ms?;
        let tree = self.shared.tree.read();
        let members = tree.ensemble().filter(|ensemble| !ensemble.is_empty())?;
        let observes = |id| members.server(id).is_some_and(|server| server.observer);
        let count = |condition: &dyn Fn(&PeerReport) -> bool| {
            view.peers.iter().filter(|peer| condition(peer)).count() as u64
        };
        Some(Leading {
            learners: count(&is_connected),
            synced_followers: count(&|peer| peer.voter && is_synced(peer)),
            synced_non_voting_followers: count(&|peer| {
                !peer.voter && !observes(peer.id) && is_synced(peer)
            }),
            synced_observers: count(&|peer| observes(peer.id) && is_synced(peer)),
            pending_syncs: view.pending_syncs,
            uptime_ms: self.shared.clock.now_ms().saturating_sub(since_ms),
            proposals: self.shared.proposals.sizes(),
        })
    }

    fn ensemble(&self) -> Option<Ensemble> {
        let view = self.shared.ensemble.read();
        let tree = self.shared.tree.read();
        let members = member_status::ensemble(self.shared, &tree)?;
        let own = members.server(self.shared.member);
        let ports = |port: fn(&PeerAddress) -> u16| {
            let addresses = own
                .map(|server| server.addresses.as_slice())
                .unwrap_or_default();
            addresses.iter().map(port).collect()
        };
        Some(Ensemble {
            leader: view.leader,
            quorum_size: members.voters().count() as u64,
            init_limit: self.shared.config.init_limit,
            sync_limit: self.shared.config.sync_limit,
            election_ports: ports(|address| address.election_port),
            quorum_ports: ports(|address| address.quorum_port),
            observer: own.is_some_and(|server| server.observer),
            membership: members.text(),
        })
    }

    fn status(&self) -> String {
        member_status::status(self.shared).to_json()
    }

    fn ephemerals(&self) -> Vec<(i64, Vec<String>)> {
        let tree = self.shared.tree.read();
        let mut owners: Vec<i64> = tree.ephemeral_owners().map(|(owner, _)| owner).collect();
        owners.sort_unstable();
        let paths = |owner| (owner, tree.ephemerals(owner).collect());
        owners.into_iter().map(paths).collect()
    }

    fn watch_summary(&self) -> WatchSummary {
        let counts = self.shared.watches.counts();
        WatchSummary {
            connections: counts.data_connections as u64,
            paths: counts.data_paths as u64,
            total: counts.data_watches as u64,
        }
    }

    fn watches_by_session(&self) -> Vec<(i64, Vec<String>)> {
        let mut by_session: BTreeMap<i64, Vec<String>> = BTreeMap::new();
        for (path, sessions) in self.watches_by_path() {
            for session in sessions {
                by_session.entry(session).or_default().push(path.clone());
            }
        }
        by_session.into_iter().collect()
    }

    fn watches_by_path(&self) -> Vec<(String, Vec<i64>)> {
        // Each connection is looked for once, however much it watches.
        let mut sessions: HashMap<ConnectionId, Option<i64>> = HashMap::new();
        let mut session = |id| {
            let find = || {
                let handle = self.shared.registry.get(id)?;
                handle.connection.lock().session()
            };
            *sessions.entry(id).or_insert_with(find)
        };
        let watches = self.shared.watches.data_watches().into_iter();
        watches
            .map(|(path, connections)| {
                let sessions = connections.into_iter().filter_map(&mut session);
                (path, sessions.collect())
            })
            .collect()
    }

    fn metrics(&self, page: &mut dyn Page) {
        metrics::tell(self.shared, page);
    }

    fn float_lines(&self) -> Option<String> {
        let wanted = self.shared.config.metrics.prometheus_mntr;
        wanted.then(|| metrics::float_lines(self.shared))
    }

    fn reset_server_figures(&self) {
        self.shared.traffic.reset();
        self.shared.proposals.reset();
        metrics::reset(self.shared);
    }

    fn reset_connection_figures(&self) {
        for handle in self.shared.registry.all() {
            handle.connection.lock().reset_stats();
        }
    }
}
