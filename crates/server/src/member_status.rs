//! This member's place in its ensemble, and its whole state in one piece.

use std::borrow::Cow;

use quenda_node::PeerReport;
use quenda_tree::Tree;
use quenda_tree::ensemble::{ANY_HOST, Ensemble, Server};

use crate::ensemble_view::{EnsembleView, Trouble};
use crate::served::Served;
use crate::shared::Shared;
use crate::status::{
    ConfiguredServer, Disk, Log, MemberStatus, Membership, Peer, Role, Service, hex,
};

/// The members of the ensemble: as replicated, or as configured while there is none yet. `None` for a member that runs
/// alone.
pub fn ensemble<'a>(shared: &Shared, tree: &'a Tree) -> Option<Cow<'a, Ensemble>> {
    let replicated = tree.ensemble().filter(|ensemble| !ensemble.is_empty());
    if let Some(ensemble) = replicated {
        return Some(Cow::Borrowed(ensemble));
    }
    let configured = &shared.config.ensemble;
    let founded = tree.cluster().is_some();
    (!founded && !configured.is_empty())
        .then(|| Cow::Owned(Ensemble::new(0, configured.iter().cloned())))
}

/// The member's part; `ensemble` is what [`ensemble`] gives.
pub fn role(member: u64, ensemble: Option<&Ensemble>, view: &EnsembleView) -> Role {
    let Some(ensemble) = ensemble else {
        return Role::Standalone;
    };
    let observes = ensemble
        .server(member)
        .is_some_and(|server| server.observer);
    let votes = [&view.membership.voters, &view.membership.outgoing_voters];
    let votes = votes.into_iter().any(|voters| voters.contains(&member));
    if view.trouble == Some(Trouble::Removed) {
        Role::Removed
    } else if view.membership.voters.is_empty() {
        Role::Waiting
    } else if view.leads_since_ms.is_some() {
        Role::Leader
    } else if view.campaigning || view.leader.is_none() {
        Role::Candidate
    } else if observes {
        // Also while its vote is still to be taken away: the configuration holds.
        Role::Observer
    } else if votes {
        Role::Follower
    } else {
        Role::Joining
    }
}

/// Everything about this member.
pub fn status(shared: &Shared) -> MemberStatus {
    let view = shared.ensemble.read().clone();
    let connections = shared.registry.all();
    let outstanding = connections
        .iter()
        .map(|handle| handle.connection.lock().queued() as u64);
    let outstanding = outstanding.sum();
    let tree = shared.tree.read();
    let ensemble = ensemble(shared, &tree);
    let counts = tree.counts();
    MemberStatus {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        member: shared.member,
        cluster: tree.cluster().map(hex),
        role: role(shared.member, ensemble.as_deref(), &view),
        service: service(shared.served(), view.trouble),
        term: view.term,
        leader: view.leader,
        zxid: hex(tree.last_zxid().cast_unsigned()),
        digest: hex(tree.digest()),
        log: Log {
            last: view.last_index,
            persisted: view.persisted,
            committed: view.committed.max(tree.applied_index()),
            applied: tree.applied_index(),
        },
        sessions: counts.sessions as u64,
        connections: shared.registry.len() as u64,
        outstanding,
        znodes: counts.znodes as u64,
        uptime_ms: shared.clock.now_ms(),
        disk: Disk {
            full: shared.is_disk_full(),
            failing: shared.is_log_failing(),
            hanging: view.disk_hangs,
            rolled_back: view.rolled_back,
        },
        config_version: ensemble
            .as_ref()
            .map(|ensemble| format!("{:x}", ensemble.version)),
        servers: ensemble
            .iter()
            .flat_map(|ensemble| ensemble.servers().map(configured))
            .collect(),
        membership: Membership {
            voters: view.membership.voters.to_vec(),
            outgoing_voters: view.membership.outgoing_voters.to_vec(),
            learners: view.membership.learners.to_vec(),
        },
        peers: view.peers.iter().map(peer).collect(),
    }
}

fn service(served: Served, trouble: Option<Trouble>) -> Service {
    match (trouble, served) {
        (Some(Trouble::Alarmed), _) => Service::Alarmed,
        (Some(Trouble::Removed), _) => Service::Removed,
        (None, Served::All) => Service::Serving,
        (None, Served::Readers) => Service::ReadOnly,
        (None, Served::Nobody) => Service::NoQuorum,
        (None, Served::NobodyAsLeader) => Service::LeadsOnly,
    }
}

fn peer(report: &PeerReport) -> Peer {
    Peer {
        id: report.id,
        voter: report.voter,
        matched: report.matched,
        applied: report.applied,
        zxid: hex(report.zxid.cast_unsigned()),
        heard_ms_ago: report.heard_ms_ago,
        fetching: report.fetching,
    }
}

fn configured(server: &Server) -> ConfiguredServer {
    let reachable = |(host, port): &(String, u16)| {
        let mut hosts = vec![host];
        hosts.extend(server.addresses.iter().map(|address| &address.host));
        let host = hosts.into_iter().find(|host| !is_wildcard(host))?;
        Some(match host.contains(':') {
            true => format!("[{host}]:{port}"),
            false => format!("{host}:{port}"),
        })
    };
    ConfiguredServer {
        id: server.id,
        line: server.line(),
        observer: server.observer,
        client: server.client.as_ref().and_then(reachable),
    }
}

fn is_wildcard(host: &str) -> bool {
    host == ANY_HOST || host == "::"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(id: &str, line: &str) -> Server {
        Server::parse(id, line).expect("a line")
    }

    fn client(line: &str) -> Option<String> {
        configured(&server("1", line)).client
    }

    #[test]
    fn clients_reach_a_member_at_its_client_address() {
        assert_eq!(client("zoo1:1:2"), None);
        assert_eq!(client("zoo1:1:2;2181").as_deref(), Some("zoo1:2181"));
        assert_eq!(client("zoo1:1:2;10.0.0.1:7").as_deref(), Some("10.0.0.1:7"));
        assert_eq!(
            client("0.0.0.0:1:2;2181"),
            None,
            "others cannot tell where it is"
        );
        assert_eq!(client("[::1]:1:2;[::]:7").as_deref(), Some("[::1]:7"));
    }

    #[test]
    fn the_part_follows_membership_and_view() {
        let ensemble = Ensemble::new(
            1,
            [
                server("1", "a:1:2"),
                server("2", "b:1:2"),
                server("3", "c:1:2:observer"),
            ],
        );
        let mut view = EnsembleView::default();
        let part = |member, view: &EnsembleView| role(member, Some(&ensemble), view);
        assert_eq!(role(1, None, &view), Role::Standalone);
        assert_eq!(part(1, &view), Role::Waiting);
        view.membership = quenda_consensus::Membership::of_voters([1]);
        assert_eq!(part(1, &view), Role::Candidate);
        view.leader = Some(1);
        assert_eq!(part(1, &view), Role::Follower);
        assert_eq!(part(2, &view), Role::Joining);
        assert_eq!(part(3, &view), Role::Observer);
        view.membership = quenda_consensus::Membership::of_voters([1, 3]);
        assert_eq!(part(3, &view), Role::Observer);
        view.campaigning = true;
        assert_eq!(part(1, &view), Role::Candidate);
        view.campaigning = false;
        view.leads_since_ms = Some(5);
        assert_eq!(part(1, &view), Role::Leader);
        view.leads_since_ms = None;
        view.leader = None;
        view.trouble = Some(Trouble::Removed);
        assert_eq!(part(4, &view), Role::Removed);
    }
}
