//! Members with their clients, wire and clock, as the server's threads would run them. What is to be made durable counts as
//! durable at once.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use quenda_consensus::{Config, Consensus, Recovered};
use quenda_frontend::{
    Connection, ConnectionId, Fired, Gates, Growth, NoMeter, Proposals, ServiceMode, SessionIds,
    Settings, SyncMode, WatchTable, World,
};
use quenda_node::limits::TICK_MS;
use quenda_node::{Applier, Connections, Effects, Founding, Member, Service, Setup, Work};
use quenda_proto::ErrorCode;
use quenda_tree::{Applied, Changes, Tree};

use crate::frames;

const WALL_MS: i64 = 1_795_984_000_000;

/// Members that talk to each other.
pub struct Cluster {
    pub machines: Vec<Machine>,
    wire: VecDeque<(u64, u64, Bytes)>,
    now_ms: u64,
}

/// One member.
pub struct Machine {
    id: u64,
    member: Member,
    pub tree: Tree,
    applier: Applier,
    effects: Effects,
    settings: Arc<Settings>,
    proposals: Proposals,
    clients: Clients,
}

struct Clients {
    /// The client of connection n + 1 is at n.
    all: Vec<Client>,
    watches: RefCell<WatchTable>,
    fired: Fired,
    session_ids: SessionIds,
    now_ms: u64,
}

struct Client {
    connection: Connection,
    input: BytesMut,
    output: BytesMut,
}

/// A client by its number.
pub type ClientId = usize;

impl Cluster {
    /// Members that serve, one of which leads.
    pub fn of(count: u64) -> Cluster {
        let config = (1..=count).map(|id| format!("server.{id}=h{id}:1:2:participant;h{id}:3\n"));
        let config = if count > 1 {
            config.collect()
        } else {
            String::new()
        };
        let mut cluster = Cluster {
            machines: (1..=count)
                .map(|id| Machine::new(id, count, &config))
                .collect(),
            wire: VecDeque::new(),
            now_ms: 1000,
        };
        for machine in 0..cluster.machines.len() {
            for other in 1..=count {
                let member = &mut cluster.machines[machine].member;
                if member.status().id != other {
                    member.peer_up(other, quenda_node::PeerState::Founding);
                }
            }
        }
        cluster.settle();
        while !cluster.machines.iter().all(Machine::is_serving) {
            cluster.tick();
        }
        cluster
    }

    fn tick(&mut self) {
        self.now_ms += TICK_MS;
        for machine in &mut self.machines {
            machine.clients.now_ms = self.now_ms;
            machine.member.tick(self.now_ms, |_| false);
        }
        self.settle();
    }

    /// The number of a member that does not lead, or of the only one.
    pub fn follower(&self) -> usize {
        let follows = |machine: &Machine| !machine.member.is_serving_leader();
        self.machines.iter().position(follows).unwrap_or(0)
    }

    /// A client with a session.
    pub fn client(&mut self, at: usize) -> ClientId {
        let client = self.machines[at].accept();
        self.ask(at, client, &frames::connect());
        client
    }

    /// A request and all that comes of it, up to the bytes of its answer: their number.
    pub fn ask(&mut self, at: usize, client: ClientId, bytes: &[u8]) -> usize {
        self.machines[at].receive(client, bytes);
        self.settle();
        self.machines[at].take_output(client)
    }

    /// Does all work and delivers all frames until nothing moves any more.
    pub fn settle(&mut self) {
        loop {
            for machine in &mut self.machines {
                machine.drive(&mut self.wire);
            }
            if self.wire.is_empty() {
                return;
            }
            while let Some((from, to, frame)) = self.wire.pop_front() {
                let machine = &mut self.machines[to as usize - 1];
                let received = machine.member.receive(from, &frame, self.now_ms);
                received.expect("a frame of a member");
            }
        }
    }
}

impl Machine {
    fn new(id: u64, count: u64, config: &str) -> Machine {
        let recovered = Recovered::bootstrap(1..=count, []);
        let consensus = Consensus::new(Config::new(id), recovered).expect("a configuration");
        let founding = Founding {
            cluster: 1000 + id,
            secret: [id as u8; 32],
            config: config.to_owned(),
        };
        let setup = Setup {
            consensus,
            founding,
            incarnation: id,
            now_ms: 1000,
        };
        let settings = Settings::default();
        let tree = Tree::new();
        let mut member = Member::new(setup, &tree);
        member.campaign();
        Machine {
            id,
            member,
            tree,
            applier: Applier::new(id),
            effects: Effects::default(),
            clients: Clients {
                all: Vec::new(),
                watches: RefCell::new(WatchTable::new(7, settings.limits.watched_paths_max)),
                fired: Fired::default(),
                session_ids: SessionIds::new(id, WALL_MS).expect("a member"),
                now_ms: 1000,
            },
            settings: Arc::new(settings),
            proposals: Proposals::default(),
        }
    }

    fn is_serving(&self) -> bool {
        self.member.service() == Service::Serving
    }

    /// A socket.
    pub fn accept(&mut self) -> ClientId {
        let number = self.clients.all.len();
        self.clients.all.push(Client {
            connection: Connection::new(
                ConnectionId(number as u64 + 1),
                self.id,
                IpAddr::V4(Ipv4Addr::LOCALHOST),
                self.clients.now_ms,
                Arc::clone(&self.settings),
            ),
            input: BytesMut::new(),
            output: BytesMut::new(),
        });
        number
    }

    /// Bytes from a client.
    pub fn receive(&mut self, client: ClientId, bytes: &[u8]) {
        let clients = &mut self.clients;
        let world = world(
            &self.tree,
            &clients.watches,
            &clients.session_ids,
            clients.now_ms,
        );
        let Client {
            connection, input, ..
        } = &mut clients.all[client];
        input.put_slice(bytes);
        connection.receive(input, &world, &mut self.proposals);
        if self.proposals.count > 0 {
            self.proposals.count = 0;
            let commands = self.proposals.commands.split();
            self.member.submit(self.member.era(), commands);
        }
    }

    /// What there is for a client: the number of bytes.
    pub fn take_output(&mut self, client: ClientId) -> usize {
        let client = &mut self.clients.all[client];
        client.connection.swap_output(&mut client.output);
        client.output.len()
    }

    fn drive(&mut self, wire: &mut VecDeque<(u64, u64, Bytes)>) {
        let now_ms = self.clients.now_ms;
        while let Some(work) = self.member.drive(WALL_MS, now_ms) {
            self.work(work, wire);
        }
    }

    fn work(&mut self, work: Work, wire: &mut VecDeque<(u64, u64, Bytes)>) {
        for outgoing in work.outgoing {
            wire.push_back((self.id, outgoing.to, outgoing.frame));
        }
        for entry in &work.committed {
            let applied =
                self.applier
                    .apply(&mut self.tree, entry, &mut self.clients, &mut self.effects);
            applied.expect("a readable entry");
        }
        if let Some(last) = work.committed.last() {
            let now_ms = self.clients.now_ms;
            self.member
                .applied(last.index, &self.effects, &self.tree, now_ms);
            self.effects.clear();
        }
        if let Some((number, _)) = work.persist {
            self.member.persisted(number);
        }
    }
}

fn world<'a>(
    tree: &'a Tree,
    watches: &'a RefCell<WatchTable>,
    session_ids: &'a SessionIds,
    now_ms: u64,
) -> World<'a> {
    World {
        tree,
        watches,
        session_ids,
        local_sessions: None,
        sasl: None,
        service: ServiceMode::Serving,
        gates: Gates::default(),
        growth: Growth::Allowed,
        sync: SyncMode::Marker,
        meter: &NoMeter,
        now_ms,
        time_ms: WALL_MS,
    }
}

impl Connections for Clients {
    fn deliver(&mut self, tree: &Tree, changes: &Changes) {
        for change in changes.iter() {
            self.fired.clear();
            self.watches.borrow_mut().fire(&change, &mut self.fired);
            for event in self.fired.events() {
                for connection in event.connections {
                    let client = &mut self.all[connection.0 as usize - 1];
                    client.connection.deliver(event.frame, event.acl, tree);
                }
            }
        }
    }

    fn complete(&mut self, tree: &Tree, connection: ConnectionId, applied: &Applied, body: &[u8]) {
        assert_eq!(applied.code, ErrorCode::Ok);
        let world = world(tree, &self.watches, &self.session_ids, self.now_ms);
        let client = &mut self.all[connection.0 as usize - 1];
        client.connection.complete(applied, body, &world);
    }

    fn over_quota(&mut self, _: &str) {}

    fn session_closed(&mut self, _: i64, _: bool) {}

    fn session_moved(&mut self, _: i64) {}

    fn restored(&mut self, _: &Tree) {}
}
