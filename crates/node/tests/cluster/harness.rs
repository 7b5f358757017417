//! Several members, the wire between them, and the clock.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::{Bytes, BytesMut};
use quenda_consensus::{Recovered, Role, SnapshotImage};
use quenda_node::frame::Frame;
use quenda_node::limits::TICK_MS;
use quenda_node::{Fetch, Service, Work};
use quenda_proto::jute::Encode;
use quenda_proto::records::{Acl, CreateRequest, Id, ReconfigRequest, SetDataRequest};
use quenda_proto::{ErrorCode, Op};
use quenda_tree::Identity;
use quenda_tree::command::{Command, Origin, ReconfigFacts, Request, Switches};

use crate::host::{Disk, Host, Image, manifest};

/// What becomes of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Deliver,
    Drop,
    Duplicate,
    /// It is delivered behind everything that is on the wire now.
    Late,
}

type Judge = Box<dyn FnMut(u64, u64, &Frame<'_>) -> Fate>;

pub struct Cluster {
    pub hosts: BTreeMap<u64, Host>,
    pub now_ms: u64,
    wire: VecDeque<(u64, u64, Bytes)>,
    judge: Option<Judge>,
    cut: BTreeSet<(u64, u64)>,
    images: BTreeMap<(u64, u64), Image>,
    fetches: BTreeMap<u64, Fetch>,
    pub fetching: bool,
    /// How many fetches were tried.
    pub attempts: u64,
    config: String,
    /// Number of the newest run of any member.
    pub run: u64,
    next_connection: u64,
    /// Whether clients may do everything.
    pub skip_acl: bool,
}

/// One client connection, with its session.
#[derive(Debug, Clone, Copy)]
pub struct Client {
    pub member: u64,
    pub connection: u64,
    pub session: i64,
    pub generation: u64,
}

pub fn server_line(id: u64, role: &str) -> String {
    format!("server.{id}=h{id}:1:2:{role};h{id}:3")
}

pub fn config(voters: &[u64], observers: &[u64]) -> String {
    let voters = voters.iter().map(|id| server_line(*id, "participant"));
    let observers = observers.iter().map(|id| server_line(*id, "observer"));
    voters.chain(observers).map(|line| line + "\n").collect()
}

impl Cluster {
    pub fn new(voters: &[u64], observers: &[u64]) -> Cluster {
        let mut cluster = Cluster {
            hosts: BTreeMap::new(),
            now_ms: 1000,
            wire: VecDeque::new(),
            judge: None,
            cut: BTreeSet::new(),
            images: BTreeMap::new(),
            fetches: BTreeMap::new(),
            fetching: true,
            attempts: 0,
            config: config(voters, observers),
            run: 0,
            next_connection: 1,
            skip_acl: true,
        };
        let start = Recovered::bootstrap(voters.iter().copied(), observers.iter().copied());
        for id in voters.iter().chain(observers) {
            cluster.boot(*id, Disk::new(&start));
        }
        cluster
    }

    /// A cluster with a leader, in which everybody serves.
    pub fn started(voters: &[u64], observers: &[u64]) -> Cluster {
        let mut cluster = Cluster::new(voters, observers);
        cluster.until("everybody serves", Cluster::all_serve);
        cluster
    }

    fn boot(&mut self, id: u64, disk: Disk) {
        self.run += 1;
        let host = Host::start(id, disk, &self.config, self.run, self.now_ms);
        let state = host.member.peer_state();
        self.hosts.insert(id, host);
        let ids: Vec<u64> = self.hosts.keys().copied().collect();
        for other in ids {
            if other != id && self.connected(id, other) {
                let known = self.host(other).member.peer_state();
                self.host(other).member.peer_up(id, state);
                self.host(id).member.peer_up(other, known);
            }
        }
        self.settle();
    }

    /// A member without any data starts.
    pub fn start_empty(&mut self, id: u64) {
        self.boot(id, Disk::new(&Recovered::joining()));
    }

    /// kill -9: what is not durable is lost, and the others see their connections break.
    pub fn kill(&mut self, id: u64) -> Disk {
        let host = self.hosts.remove(&id).expect("a live member");
        self.fetches.remove(&id);
        self.wire.retain(|(from, to, _)| *from != id && *to != id);
        let others: Vec<u64> = self.hosts.keys().copied().collect();
        for other in others {
            if self.connected(id, other) {
                self.host(other).member.peer_lost(id);
            }
        }
        host.disk
    }

    pub fn restart(&mut self, id: u64, disk: Disk) {
        self.boot(id, disk);
    }

    pub fn host(&mut self, id: u64) -> &mut Host {
        self.hosts.get_mut(&id).expect("a live member")
    }

    /// Frames of every pair go through this from now on.
    pub fn judge(&mut self, judge: impl FnMut(u64, u64, &Frame<'_>) -> Fate + 'static) {
        self.judge = Some(Box::new(judge));
    }

    pub fn judge_nothing(&mut self) {
        self.judge = None;
    }

    /// Nothing gets from `from` to `to`; nobody is told.
    pub fn cut(&mut self, from: u64, to: u64) {
        self.cut.insert((from, to));
    }

    pub fn isolate(&mut self, id: u64) {
        let others: Vec<u64> = self.hosts.keys().copied().collect();
        for other in others {
            self.cut(id, other);
            self.cut(other, id);
        }
    }

    pub fn heal(&mut self) {
        self.cut.clear();
    }

    fn connected(&self, a: u64, b: u64) -> bool {
        !self.cut.contains(&(a, b)) && !self.cut.contains(&(b, a))
    }

    // ----- running ------------------------------------------------------------------------------

    /// Does all work and delivers all frames until nothing moves any more.
    pub fn settle(&mut self) {
        self.settle_until(&|_| false);
    }

    /// The same, but stops amid it when something holds: true then. Frames may be on the wire still.
    fn settle_until(&mut self, holds: &impl Fn(&Cluster) -> bool) -> bool {
        loop {
            let mut moved = false;
            let ids: Vec<u64> = self.hosts.keys().copied().collect();
            for id in ids {
                moved |= self.drive(id);
                if holds(self) {
                    return true;
                }
                moved |= self.host(id).sync();
                moved |= self.fetch(id);
            }
            moved |= self.deliver();
            if !moved {
                return false;
            }
        }
    }

    fn drive(&mut self, id: u64) -> bool {
        let now_ms = self.now_ms;
        let mut worked = false;
        while let Some(work) = self.host(id).member.drive(now_ms as i64, now_ms) {
            worked = true;
            self.work(id, work);
        }
        worked
    }

    fn work(&mut self, id: u64, work: Work) {
        let now_ms = self.now_ms;
        let host = self.hosts.get_mut(&id).expect("a live member");
        host.eras.extend(work.abandoned);
        if let Some(install) = work.install {
            host.sync();
            let image = self.images[&of_manifest(&install.image.manifest)].clone();
            assert_eq!(image.index, install.image.index);
            host.install(&image, install.number, install.hard_state, now_ms);
        }
        if let Some((number, batch)) = work.persist {
            host.persist(number, batch);
        }
        for outgoing in work.outgoing {
            assert_ne!(outgoing.to, id, "a member talks to itself");
            self.wire.push_back((id, outgoing.to, outgoing.frame));
        }
        let host = self.hosts.get_mut(&id).expect("a live member");
        host.apply(&work.committed, now_ms);
        host.barriers.extend(work.barriers);
        if let Some(wanted) = work.snapshot_wanted {
            let image = host.checkpoint(0);
            assert!(image.index >= wanted.min_index);
            host.member.offer_snapshot(SnapshotImage {
                index: image.index,
                term: image.term,
                membership: image.membership.clone(),
                manifest: manifest(id, image.index),
            });
            self.images.insert((id, image.index), image);
        }
        if let Some(fetch) = work.fetch {
            self.fetches.insert(id, fetch);
        }
    }

    /// A host removes its images, which nobody fetches.
    pub fn drop_images(&mut self, id: u64) {
        self.images.retain(|(of, _), _| *of != id);
        self.host(id).member.withdraw_snapshot();
    }

    /// The disk of a host loses its images.
    pub fn lose_images(&mut self, id: u64) {
        self.images.retain(|(of, _), _| *of != id);
    }

    fn fetch(&mut self, id: u64) -> bool {
        if !self.fetching {
            return false;
        }
        let Some(fetch) = self.fetches.remove(&id) else {
            return false;
        };
        let there = self.hosts.contains_key(&fetch.from)
            && self.connected(id, fetch.from)
            && self.images.contains_key(&(fetch.from, fetch.index));
        self.attempts += 1;
        self.host(id).member.fetched(fetch.index, there);
        true
    }

    fn deliver(&mut self) -> bool {
        let frames = std::mem::take(&mut self.wire);
        let moved = !frames.is_empty();
        let mut late = Vec::new();
        for (from, to, frame) in frames {
            let decoded = Frame::decode(&frame).expect("a frame");
            let fate = self
                .judge
                .as_mut()
                .map_or(Fate::Deliver, |judge| judge(from, to, &decoded));
            match fate {
                Fate::Deliver => self.hand_over(from, to, &frame),
                Fate::Drop => {}
                Fate::Duplicate => {
                    self.hand_over(from, to, &frame);
                    self.hand_over(from, to, &frame);
                }
                Fate::Late => late.push((from, to, frame)),
            }
        }
        for (from, to, frame) in late {
            self.hand_over(from, to, &frame);
        }
        moved
    }

    fn hand_over(&mut self, from: u64, to: u64, frame: &[u8]) {
        if self.cut.contains(&(from, to)) {
            return;
        }
        let now_ms = self.now_ms;
        match self.hosts.get_mut(&to) {
            Some(host) => {
                // Frames that are of no use are refused; nothing may come of that.
                let _refused = host.member.receive(from, frame, now_ms);
            }
            None => self.host(from).member.unreachable(to),
        }
    }

    /// Lets one tick pass on all members.
    pub fn tick(&mut self) {
        let ids: Vec<u64> = self.hosts.keys().copied().collect();
        self.tick_of(&ids);
    }

    /// Lets one tick pass on these members; the others stand still.
    pub fn tick_of(&mut self, ids: &[u64]) {
        self.begin_tick(ids);
        self.settle();
    }

    fn begin_tick(&mut self, ids: &[u64]) {
        self.now_ms += TICK_MS;
        for id in ids.iter().copied() {
            let now_ms = self.now_ms;
            self.host(id).member.tick(now_ms, |_| false);
        }
    }

    /// Ticks until something holds, and stops at that very moment: see [`Cluster::settle_until`].
    pub fn until_amid(&mut self, what: &str, holds: impl Fn(&Cluster) -> bool) {
        let start = self.now_ms;
        while !self.settle_until(&holds) {
            assert!(self.now_ms < start + 60_000, "not after a minute: {what}");
            let ids: Vec<u64> = self.hosts.keys().copied().collect();
            self.begin_tick(&ids);
        }
    }

    pub fn run_for(&mut self, millis: u64) {
        for _ in 0..millis.div_ceil(TICK_MS) {
            self.tick();
        }
    }

    /// Ticks until something holds.
    pub fn until(&mut self, what: &str, holds: impl Fn(&Cluster) -> bool) {
        let start = self.now_ms;
        while !holds(self) {
            assert!(
                self.now_ms < start + 60_000,
                "not after a minute: {what}\n{}",
                self.describe()
            );
            self.tick();
        }
    }

    fn describe(&self) -> String {
        let lines = self.hosts.values().map(|host| {
            format!(
                "{}: {:?} {:?} {:?} {:?}\n",
                host.id,
                host.member.service(),
                host.member.status(),
                host.member.membership(),
                host.member.difference(),
            )
        });
        lines.collect()
    }

    // ----- looking ------------------------------------------------------------------------------

    pub fn all_serve(&self) -> bool {
        self.hosts
            .values()
            .all(|host| host.member.service() == Service::Serving)
    }

    pub fn leader_of(&self) -> Option<u64> {
        let mut leaders = self.hosts.values();
        let newest = leaders.clone().map(|host| host.member.status().term).max();
        let leads = leaders.find(|host| {
            let status = host.member.status();
            host.member.is_serving_leader() && Some(status.term) == newest
        });
        leads.map(|host| host.id)
    }

    pub fn leader(&self) -> u64 {
        self.leader_of().expect("a leader")
    }

    /// A member that does not lead.
    pub fn follower(&self) -> u64 {
        let leader = self.leader();
        let mut ids = self.hosts.keys().copied();
        ids.find(|id| *id != leader).expect("a follower")
    }

    pub fn role(&self, id: u64) -> Role {
        self.hosts[&id].member.status().role
    }

    /// Everybody has applied the same, and holds the same.
    pub fn assert_agreement(&mut self) {
        self.until("all have applied the same", |cluster| {
            let mut applied = cluster.hosts.values().map(|host| host.tree.applied_index());
            let first = applied.next();
            applied.all(|index| Some(index) == first)
        });
        let mut digests = self.hosts.values().map(|host| host.tree.digest());
        let first = digests.next();
        assert!(digests.all(|digest| Some(digest) == first));
    }

    pub fn is_membership(&self, voters: &[u64], learners: &[u64]) -> bool {
        let Some(leader) = self.leader_of() else {
            return false;
        };
        let membership = self.hosts[&leader].member.membership();
        membership.voters == voters && membership.learners == learners && !membership.is_joint()
    }

    // ----- clients ------------------------------------------------------------------------------

    /// Opens a session through a member.
    pub fn open(&mut self, member: u64, timeout_ms: i32) -> Client {
        let client = self.connect(member, timeout_ms);
        self.until("the session is open", |cluster| {
            cluster.hosts[&member].codes(client.connection) == [ErrorCode::Ok]
        });
        client
    }

    /// Asks for a session and does not wait.
    pub fn connect(&mut self, member: u64, timeout_ms: i32) -> Client {
        let connection = self.next_connection;
        self.next_connection += 1;
        let client = Client {
            member,
            connection,
            session: ((member as i64) << 56) | connection as i64,
            generation: 1,
        };
        self.send(
            member,
            &Command::OpenSession {
                origin: client.origin(),
                session: client.session,
                timeout_ms,
            },
        );
        client
    }

    /// Moves a session to another member.
    pub fn resume(&mut self, client: &Client, member: u64, timeout_ms: i32) -> Client {
        let connection = self.next_connection;
        self.next_connection += 1;
        let moved = Client {
            member,
            connection,
            generation: client.generation + 1,
            ..*client
        };
        let password = self.host(member).tree.session_password(client.session);
        self.send(
            member,
            &Command::ResumeSession {
                origin: moved.origin(),
                session: client.session,
                timeout_ms,
                password,
            },
        );
        self.until("the session is resumed", |cluster| {
            cluster.hosts[&member].codes(connection) == [ErrorCode::Ok]
        });
        moved
    }

    fn send(&mut self, member: u64, command: &Command<'_>) {
        let mut commands = BytesMut::new();
        command.encode(&mut commands);
        self.host(member).submit(commands);
    }

    fn request(&mut self, client: &Client, op: Op, record: &impl Encode) {
        let mut body = BytesMut::new();
        record.encode(&mut body);
        let request = Request {
            origin: client.origin(),
            session: client.session,
            generation: client.generation,
            local: false,
            switches: Switches {
                skip_acl: self.skip_acl,
                reconfig_enabled: true,
                standalone_enabled: false,
                ..Switches::default()
            },
            identities: vec![Identity::new("ip", "127.0.0.1")],
            op: op.code(),
            body: &body,
        };
        let command = match op {
            Op::Reconfig => Command::Reconfig {
                request,
                facts: ReconfigFacts::default(),
            },
            _ => Command::Request(request),
        };
        self.send(client.member, &command);
    }

    pub fn create(&mut self, client: &Client, path: &str) {
        self.create_with(client, path, 0);
    }

    pub fn create_with(&mut self, client: &Client, path: &str, flags: i32) {
        let id = Id {
            scheme: Some(Cow::Borrowed("world")),
            id: Some(Cow::Borrowed("anyone")),
        };
        let acl = vec![Acl { perms: 31, id }];
        let record = CreateRequest {
            path: Some(Cow::Borrowed(path)),
            data: Some(b"x"),
            acl: Some(acl),
            flags,
        };
        self.request(client, Op::Create, &record);
    }

    pub fn set(&mut self, client: &Client, path: &str, data: &[u8]) {
        let record = SetDataRequest {
            path: Some(Cow::Borrowed(path)),
            data: Some(data),
            version: -1,
        };
        self.request(client, Op::SetData, &record);
    }

    pub fn reconfig(&mut self, client: &Client, joining: Option<&str>, leaving: Option<&str>) {
        let record = ReconfigRequest {
            joining_servers: joining.map(Cow::Borrowed),
            leaving_servers: leaving.map(Cow::Borrowed),
            new_members: None,
            cur_config_id: -1,
        };
        self.request(client, Op::Reconfig, &record);
    }

    /// Adds and removes voters with one request.
    pub fn exchange(&mut self, client: &Client, coming: &[u64], leaving: &[u64]) {
        let coming = coming.iter().map(|id| server_line(*id, "participant"));
        let coming: Vec<String> = coming.collect();
        let leaving: Vec<String> = leaving.iter().map(u64::to_string).collect();
        self.reconfig(client, Some(&coming.join(",")), Some(&leaving.join(",")));
    }

    /// Asks for new members, if the configuration is of this version.
    pub fn reconfig_from(&mut self, client: &Client, version: i64, joining: &str) {
        let record = ReconfigRequest {
            joining_servers: Some(Cow::Borrowed(joining)),
            cur_config_id: version,
            ..ReconfigRequest::default()
        };
        self.request(client, Op::Reconfig, &record);
    }

    pub fn reconfig_to(&mut self, client: &Client, members: &str) {
        let record = ReconfigRequest {
            new_members: Some(Cow::Borrowed(members)),
            cur_config_id: -1,
            ..ReconfigRequest::default()
        };
        self.request(client, Op::Reconfig, &record);
    }

    /// Sends what is queued and waits for the connection's next answer.
    pub fn answer(&mut self, client: &Client) -> ErrorCode {
        let before = self.host(client.member).codes(client.connection).len();
        let (member, connection) = (client.member, client.connection);
        self.until("the request is answered", |cluster| {
            cluster.hosts[&member].codes(connection).len() > before
        });
        self.host(member).codes(connection)[before]
    }

    pub fn sync(&mut self, member: u64, connection: u64) {
        let host = self.host(member);
        let era = host.member.era();
        host.member.ask_barrier(era, connection);
    }

    pub fn has(&self, member: u64, path: &str) -> bool {
        self.hosts[&member].tree.get(path).is_some()
    }
}

impl Client {
    pub fn origin(&self) -> Origin {
        Origin {
            member: self.member,
            connection: self.connection,
        }
    }
}

fn of_manifest(manifest: &[u8]) -> (u64, u64) {
    let (owner, index) = manifest.split_at(8);
    let number = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().expect("eight bytes"));
    (number(owner), number(index))
}
