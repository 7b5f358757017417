//! Answers about the members.

use quenda_tree::ensemble::{ANY_HOST, PeerAddress, Server};

use super::Admin;
use super::json::{Fields, Json, field};
use crate::ensemble_view::{EnsembleView, is_connected, is_synced};
use crate::four_letter::Source;
use crate::member_status;
use crate::node_source::NodeSource;
use crate::peers::LinkFigures;
use crate::served::Served;

/// `leader`.
pub(super) fn leader(admin: &Admin) -> Fields {
    let view = admin.shared.ensemble.read().clone();
    let Some(servers) = servers(admin) else {
        return vec![field("error", "server is not initialized")];
    };
    let leader = view.leader.unwrap_or(0);
    let server = servers.iter().find(|server| server.id == leader);
    let host = server.and_then(|server| server.addresses.first());
    vec![
        field("is_leader", leader == admin.shared.member),
        field("leader_id", leader),
        field("leader_ip", host.map_or("", |address| &address.host)),
    ]
}

/// `observers`.
pub(super) fn observers(admin: &Admin) -> Fields {
    let view = admin.shared.ensemble.read().clone();
    let servers = servers(admin).unwrap_or_default();
    let observer = |id: u64| {
        let mut observers = servers.iter().filter(|server| server.observer);
        observers.find(|server| server.id == id)
    };
    let leads = view.leads_since_ms.is_some();
    let connected = view.peers.iter().filter(|peer| leads && is_connected(peer));
    let observers: Vec<_> = connected
        .filter_map(|peer| Some((peer, observer(peer.id)?)))
        .collect();
    let synced = observers.iter().filter(|(peer, _)| is_synced(peer)).count();
    let links = admin.shared.peers();
    let links = links.map(|peers| peers.figures()).unwrap_or_default();
    let described = observers.iter().map(|(peer, server)| {
        let link = links.iter().find(|link| link.peer == peer.id);
        let figure = |of: fn(&LinkFigures) -> u64| link.map_or(0, of);
        let address = server.addresses.first();
        let address = address.map(|address| place(&address.host, address.quorum_port));
        vec![
            field(
                "remote_socket_address",
                format!("/{}", address.unwrap_or_default()),
            ),
            field("sid", peer.id),
            field("established", link.map_or(0, |link| link.since_ms)),
            field("queued_packets", figure(|link| link.queued as u64)),
            field(
                "queued_packets_size",
                figure(|link| link.queued_bytes as u64),
            ),
            field("packets_received", figure(|link| link.received)),
            field("packets_sent", figure(|link| link.sent)),
            field("requests", figure(|link| link.requests)),
            field("last_zxid", peer.zxid),
        ]
    });
    vec![
        field("synced_observers", synced as u64),
        field("observers", Json::list(described)),
    ]
}

/// `voting_view`.
pub(super) fn voting_view(admin: &Admin) -> Fields {
    let servers = servers(admin).unwrap_or_default();
    let voters = servers.iter().filter(|server| !server.observer);
    let voters = voters.map(|server| {
        let addresses = |port: fn(&PeerAddress) -> u16| {
            let addresses = server.addresses.iter();
            Json::list(addresses.map(move |address| place(&address.host, port(address))))
        };
        let view = vec![
            field("server_addresses", addresses(|address| address.quorum_port)),
            field(
                "election_addresses",
                addresses(|address| address.election_port),
            ),
            field("client_address", client_address(server)),
            field("learner_type", "participant"),
        ];
        (server.id.to_string(), Json::Map(view))
    });
    vec![field("current_config", voters.collect::<Fields>())]
}

/// `zabstate`.
pub(super) fn zab_state(admin: &Admin, source: &NodeSource<'_>) -> Fields {
    let view = admin.shared.ensemble.read().clone();
    let servers = servers(admin).unwrap_or_default();
    let own = servers
        .iter()
        .find(|server| server.id == admin.shared.member);
    let Some(own) = own.filter(|_| admin.shared.served() != Served::Nobody) else {
        return vec![field("voting", false), field("zabstate", "")];
    };
    let zxid = source.state().zxid.cast_unsigned();
    vec![
        field("myid", own.id),
        field("is_leader", view.leads_since_ms.is_some()),
        field("quorum_address", bean(own, |address| address.quorum_port)),
        field(
            "election_address",
            bean(own, |address| address.election_port),
        ),
        field("client_address", client_address(own)),
        field("voting", votes(admin.shared.member, &view)),
        field("last_zxid", format!("{zxid:#x}")),
        field("zab_epoch", zxid >> 32),
        field("zab_counter", zxid & 0xffff_ffff),
        field("zabstate", phase(&view)),
    ]
}

fn votes(member: u64, view: &EnsembleView) -> bool {
    let voters = [&view.membership.voters, &view.membership.outgoing_voters];
    voters.iter().any(|voters| voters.contains(&member))
}

/// Where a member stands, in the words of ZooKeeper's protocol.
fn phase(view: &EnsembleView) -> &'static str {
    match view.leader {
        None => "election",
        Some(_) if view.campaigning => "election",
        Some(_) => "broadcast",
    }
}

/// Addresses as ZooKeeper's own object for them shows itself. All count as reachable: none is tried for this answer.
fn bean(server: &Server, port: fn(&PeerAddress) -> u16) -> Fields {
    let addresses = &server.addresses;
    let all: Vec<String> = addresses
        .iter()
        .map(|address| place(&address.host, port(address)))
        .collect();
    let mut ports: Vec<u16> = addresses.iter().map(port).collect();
    ports.sort_unstable();
    ports.dedup();
    let mut hosts: Vec<&str> = addresses
        .iter()
        .map(|address| address.host.as_str())
        .collect();
    hosts.sort_unstable();
    hosts.dedup();
    let one = all.first().cloned();
    let list = || Json::list(all.iter().cloned());
    vec![
        field("empty", all.is_empty()),
        field("all_addresses", list()),
        field(
            "wildcard_addresses",
            Json::list(ports.iter().map(|port| place(ANY_HOST, *port))),
        ),
        field("all_ports", Json::list(ports.iter().copied())),
        field("all_host_strings", Json::list(hosts)),
        field("reachable_address", one.clone()),
        field("all_reachable_addresses", list()),
        field("all_reachable_addresses_or_all", list()),
        field("reachable_or_one", one.clone()),
        field("one", one),
    ]
}

/// The members; `None` for one that runs alone.
fn servers(admin: &Admin) -> Option<Vec<Server>> {
    let tree = admin.shared.tree.read();
    let ensemble = member_status::ensemble(&admin.shared, &tree)?;
    Some(ensemble.servers().cloned().collect())
}

fn client_address(server: &Server) -> String {
    let client = server.client.as_ref();
    client.map_or(String::new(), |(host, port)| place(host, *port))
}

fn place(host: &str, port: u16) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}
