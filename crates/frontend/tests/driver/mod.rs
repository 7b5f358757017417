//! One member on one thread: a tree, a watch table and connections. Writes are applied when the test says
//! so, in the order in which they were proposed.
#![allow(dead_code, missing_docs)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use quenda_frontend::{
    CloseReason, Connection, ConnectionId, Fired, Gates, Growth, LocalSessionTable, LocalSessions,
    NONCE_BYTES, NoMeter, Observed, Password, Proposals, Received, Sampling, SaslUsers,
    ServiceMode, SessionIds, Settings, SyncMode, WatchTable, World,
};
use quenda_proto::connect::Handshake;
use quenda_proto::event::EventType;
use quenda_proto::records::{Acl, ConnectRequest, ConnectResponse, Id, WatcherEvent};
use quenda_proto::{Decode, Encode, ErrorCode, Op, Reader};
use quenda_tree::command::{Batch, Command, ReconfigFacts, Request, Stamp, start_batch};
use quenda_tree::ensemble::Server;
use quenda_tree::{Changes, SessionEffect, Tree};

pub mod requests;

/// Seed of the watch table's hash; no test depends on it.
const WATCH_SEED: u64 = 7;

pub struct Member {
    pub tree: Tree,
    pub watches: RefCell<WatchTable>,
    pub session_ids: SessionIds,
    pub settings: Arc<Settings>,
    pub service: ServiceMode,
    /// Encoded writes that were refused.
    pub refused: BytesMut,
    pub growth: Growth,
    pub gates: Gates<'static>,
    pub sync: SyncMode,
    /// Sessions that only this member knows, if there are to be such.
    pub local_sessions: Option<RefCell<LocalSessionTable>>,
    /// Who may authenticate by SASL, with one nonce for all.
    pub sasl: Option<Users>,
    pub now_ms: u64,
    /// Time that the next entries are stamped with.
    pub time_ms: i64,
    pub term: u64,
    pub barriers: Vec<u64>,
    /// Members whose log is up to date, as the leader sees it.
    pub synced: Vec<u64>,
    /// A reconfiguration is not finished.
    pub reconfiguring: bool,
    /// Connections are closed in the apply that ends their session or gives it to another connection.
    pub closes: bool,
    log: BytesMut,
    clients: BTreeMap<u64, Client>,
    next_connection: u64,
}

/// SASL users with their passwords, and the bytes of every nonce.
pub struct Users {
    pub passwords: BTreeMap<String, String>,
    pub nonce: [u8; NONCE_BYTES],
}

impl SaslUsers for Users {
    fn nonce(&self) -> [u8; NONCE_BYTES] {
        self.nonce
    }

    fn password(&self, user: &str) -> Option<Password> {
        self.passwords.get(user).map(|text| Password::new(text))
    }
}

struct Client {
    connection: Connection,
    input: BytesMut,
    output: BytesMut,
    received: Received,
}

/// A frame that a client got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    pub xid: i32,
    pub zxid: i64,
    pub err: i32,
    pub body: Vec<u8>,
}

/// An event that a client got.
pub type Event = (EventType, String, i64);

impl Reply {
    pub fn parse(payload: &[u8]) -> Reply {
        let mut reader = Reader::new(payload);
        let mut next = || i32::decode(&mut reader).expect("a reply header");
        let xid = next();
        let zxid = i64::from(next()) << 32 | i64::from(next() as u32);
        let err = next();
        Reply {
            xid,
            zxid,
            err,
            body: reader.rest().to_vec(),
        }
    }

    pub fn is_event(&self) -> bool {
        self.xid == -1 && self.err == 0 && !self.body.is_empty()
    }

    pub fn event(&self) -> Event {
        assert!(self.is_event(), "{self:?}");
        let event: WatcherEvent<'_> = self.decode();
        assert_eq!(event.state, 3);
        let kind = match event.kind {
            1 => EventType::NodeCreated,
            2 => EventType::NodeDeleted,
            3 => EventType::NodeDataChanged,
            4 => EventType::NodeChildrenChanged,
            other => panic!("event of type {other}"),
        };
        (kind, event.path.expect("a path").into_owned(), self.zxid)
    }

    pub fn decode<'a, T: Decode<'a>>(&'a self) -> T {
        let mut reader = Reader::new(&self.body);
        let record = T::decode(&mut reader).expect("a record");
        assert!(reader.rest().is_empty(), "bytes behind the record");
        record
    }
}

impl Default for Member {
    fn default() -> Self {
        Member::new(Settings::default())
    }
}

impl Member {
    pub fn new(settings: Settings) -> Member {
        Member::founded(settings, 0, "")
    }

    /// Member 1 of an ensemble with these server lines, in the first term.
    pub fn in_ensemble(settings: Settings, config: &str) -> Member {
        Member::founded(settings, 1, config)
    }

    fn founded(settings: Settings, term: u64, config: &str) -> Member {
        let watches = WatchTable::new(WATCH_SEED, settings.limits.watched_paths_max);
        let mut member = Member {
            tree: Tree::new(),
            watches: RefCell::new(watches),
            session_ids: SessionIds::new(1, 1_795_984_000_000).expect("a member"),
            settings: Arc::new(settings),
            service: ServiceMode::Serving,
            growth: Growth::Allowed,
            gates: Gates::default(),
            sync: SyncMode::Marker,
            local_sessions: None,
            sasl: None,
            now_ms: 1_000,
            time_ms: 1_795_984_000_000,
            term,
            synced: vec![1, 2, 3],
            reconfiguring: false,
            barriers: Vec::new(),
            closes: true,
            log: BytesMut::new(),
            refused: BytesMut::new(),
            clients: BTreeMap::new(),
            next_connection: 1,
        };
        member.propose(&Command::Found {
            cluster: 1,
            secret: [9; 32],
            config,
        });
        member.apply();
        member
    }

    pub fn propose(&mut self, command: &Command<'_>) {
        command.encode(&mut self.log);
    }

    /// A socket from 127.0.0.1.
    pub fn accept(&mut self) -> u64 {
        self.accept_from(IpAddr::V4(Ipv4Addr::LOCALHOST))
    }

    pub fn accept_from(&mut self, peer: IpAddr) -> u64 {
        let id = self.next_connection;
        self.next_connection += 1;
        let settings = Arc::clone(&self.settings);
        let client = Client {
            connection: Connection::new(ConnectionId(id), 1, peer, self.now_ms, settings),
            input: BytesMut::new(),
            output: BytesMut::new(),
            received: Received::NeedMore,
        };
        self.clients.insert(id, client);
        id
    }

    /// As [`accept`](Self::accept), of a client that has proved a certificate.
    pub fn accept_certified(&mut self, subject: &str) -> u64 {
        let client = self.accept();
        self.client_mut(client).connection.certify(subject);
        client
    }

    /// A client with a new session.
    pub fn client(&mut self) -> u64 {
        let client = self.accept();
        self.send(client, &connect(0, 10_000, 0, Some(&[0; 16]), Some(false)));
        self.apply();
        let (session, timeout, ..) = self.handshake(client);
        assert!(session != 0 && timeout > 0);
        client
    }

    /// Gives bytes to a connection, which takes what it can.
    pub fn send(&mut self, client: u64, bytes: &[u8]) -> Received {
        self.client_mut(client).input.put_slice(bytes);
        self.receive(client)
    }

    pub fn receive(&mut self, id: u64) -> Received {
        let mut proposals = Proposals::default();
        let mut client = self.clients.remove(&id).expect("a client");
        let received = {
            let world = self.world();
            client
                .connection
                .receive(&mut client.input, &world, &mut proposals)
        };
        client.received = received;
        let displaced = proposals.displaced;
        self.clients.insert(id, client);
        if let Some(before) = displaced.and_then(|before| self.clients.get_mut(&before.0)) {
            before.connection.close(CloseReason::SessionMoved);
        }
        self.log.put_slice(&proposals.commands);
        self.refused.put_slice(&proposals.refused);
        self.barriers.extend((0..proposals.barriers).map(|_| id));
        received
    }

    fn world(&self) -> World<'_> {
        World {
            tree: &self.tree,
            watches: &self.watches,
            session_ids: &self.session_ids,
            local_sessions: self
                .local_sessions
                .as_ref()
                .map(|sessions| sessions as &dyn LocalSessions),
            sasl: self.sasl.as_ref().map(|users| users as &dyn SaslUsers),
            service: self.service,
            growth: self.growth,
            gates: self.gates,
            sync: self.sync,
            meter: &NoMeter,
            now_ms: self.now_ms,
            time_ms: self.time_ms,
        }
    }

    /// Number of commands that were proposed and not applied.
    pub fn proposed(&self) -> usize {
        let mut batch = BytesMut::new();
        start_batch(self.time_ms, &mut batch);
        batch.put_slice(&self.log);
        Batch::open(&batch).expect("a batch").count()
    }

    /// Applies everything that was proposed, and what that lets connections propose.
    pub fn apply(&mut self) {
        while !self.log.is_empty() {
            self.apply_log();
            self.receive_after_pauses();
        }
    }

    fn apply_log(&mut self) {
        let mut entry = BytesMut::new();
        start_batch(self.time_ms, &mut entry);
        entry.put_slice(&self.log.split());
        let batch = Batch::open(&entry).expect("a batch");
        for command in batch {
            let mut command = command.expect("a command");
            if let Command::Reconfig { request, facts } = &mut command {
                *facts = self.facts(request);
            }
            self.apply_command(&command);
        }
    }

    /// What the leader knows: where the request is wrong, its facts do not matter.
    fn facts(&self, request: &Request<'_>) -> ReconfigFacts {
        let quorum_synced = self.tree.plan_reconfig(request).map_or(true, |next| {
            let is_synced = |server: &&Server| self.synced.contains(&server.id);
            next.voters().filter(is_synced).count() > next.voters().count() / 2
        });
        ReconfigFacts {
            in_progress: self.reconfiguring,
            quorum_synced,
        }
    }

    fn apply_command(&mut self, command: &Command<'_>) {
        let stamp = Stamp {
            term: self.term,
            time_ms: self.time_ms,
        };
        let (mut body, mut changes) = (BytesMut::new(), Changes::new());
        let applied = self.tree.apply(stamp, command, &mut body, &mut changes);
        let mut fired = Fired::default();
        for change in changes.iter() {
            self.watches.borrow_mut().fire(&change, &mut fired);
        }
        for event in fired.events() {
            for connection in event.connections {
                if let Some(client) = self.clients.get_mut(&connection.0) {
                    client
                        .connection
                        .deliver(event.frame, event.acl, &self.tree);
                }
            }
        }
        let origin = command.origin().connection;
        match applied.session {
            SessionEffect::Resumed { session, .. } => {
                self.close_others(session, origin, CloseReason::SessionMoved);
            }
            SessionEffect::Closed { session } => {
                self.close_others(session, origin, CloseReason::SessionExpired);
            }
            _ => {}
        }
        if let Some(mut client) = self.clients.remove(&origin) {
            client.connection.complete(&applied, &body, &self.world());
            self.clients.insert(origin, client);
        }
    }

    fn close_others(&mut self, session: i64, origin: u64, reason: CloseReason) {
        for (id, client) in &mut self.clients {
            if self.closes && *id != origin && client.connection.session() == Some(session) {
                client.connection.close(reason);
            }
        }
    }

    /// As the server does after a completion and after it has sent output.
    fn receive_after_pauses(&mut self) {
        let waiting: Vec<u64> = self
            .clients
            .iter()
            .filter(|(_, client)| client.connection.must_receive())
            .map(|(id, _)| *id)
            .collect();
        for id in waiting {
            self.receive(id);
        }
    }

    pub fn pass_barrier(&mut self) {
        let id = self.barriers.remove(0);
        let mut client = self.clients.remove(&id).expect("a client");
        client.connection.complete_sync(&self.world());
        self.clients.insert(id, client);
        self.receive_after_pauses();
    }

    pub fn connection(&self, client: u64) -> &Connection {
        &self.clients[&client].connection
    }

    fn client_mut(&mut self, client: u64) -> &mut Client {
        self.clients.get_mut(&client).expect("a client")
    }

    /// What the connection has noted, with usual sampling from now on.
    pub fn take_observed(&mut self, client: u64) -> Observed {
        self.take_observed_with(client, Sampling::default())
    }

    pub fn take_observed_with(&mut self, client: u64, sampling: Sampling) -> Observed {
        let now_ms = self.now_ms;
        let connection = &mut self.client_mut(client).connection;
        let observed = connection.take_observed(sampling, now_ms);
        observed.map(|observed| *observed).unwrap_or_default()
    }

    pub fn session(&self, client: u64) -> i64 {
        self.connection(client).session().expect("a session")
    }

    pub fn wants_close(&self, client: u64) -> Option<CloseReason> {
        self.connection(client).wants_close()
    }

    /// Drops the socket.
    pub fn disconnect(&mut self, id: u64) {
        let mut client = self.clients.remove(&id).expect("a client");
        if let Some(sessions) = &self.local_sessions {
            client.connection.leave_local(sessions);
        }
        client.connection.disconnected(&self.watches);
    }

    /// Nobody knows the fate of what was proposed: it is lost, and those who wait for it are closed.
    pub fn abandon(&mut self) {
        self.log.clear();
        let waiting = |client: &&mut Client| client.connection.in_flight();
        for client in self.clients.values_mut().filter(waiting) {
            client.connection.close(CloseReason::Member);
        }
    }

    pub fn expire(&mut self, session: i64) {
        let generation = self
            .tree
            .session(session)
            .map_or(0, |session| session.generation);
        self.propose(&Command::ExpireSession {
            session,
            generation,
        });
        self.apply();
    }

    /// Payloads that the client has got since the last call.
    pub fn payloads(&mut self, client: u64) -> Vec<Vec<u8>> {
        let client = self.client_mut(client);
        let output = client.connection.take_output();
        client.output.put_slice(&output);
        let mut bytes = &client.output.split()[..];
        let mut payloads = Vec::new();
        while !bytes.is_empty() {
            let (payload, rest) = quenda_proto::frame::split(bytes, usize::MAX)
                .expect("a frame")
                .expect("a whole frame");
            payloads.push(payload.to_vec());
            bytes = rest;
        }
        payloads
    }

    /// Replies and events that the client has got since the last call, in order.
    pub fn replies(&mut self, client: u64) -> Vec<Reply> {
        self.payloads(client)
            .iter()
            .map(|payload| Reply::parse(payload))
            .collect()
    }

    pub fn events(&mut self, client: u64) -> Vec<Event> {
        self.replies(client).iter().map(Reply::event).collect()
    }

    /// Session, timeout, password and length of the handshake's answer.
    pub fn handshake(&mut self, client: u64) -> (i64, i32, [u8; 16], usize) {
        let payloads = self.payloads(client);
        let [payload] = &payloads[..] else {
            panic!("{} frames instead of the handshake's", payloads.len());
        };
        let response = ConnectResponse::decode(&mut Reader::new(payload)).expect("a response");
        assert_eq!(response.protocol_version, 0);
        let password = response.passwd.expect("a password");
        (
            response.session_id,
            response.time_out,
            password.try_into().expect("16 bytes"),
            payload.len(),
        )
    }

    /// Sends one request, applies it and returns its reply; nothing else may have come.
    pub fn call(&mut self, client: u64, frame: &[u8]) -> Reply {
        let mut replies = self.call_all(client, frame);
        assert_eq!(replies.len(), 1, "{replies:?}");
        replies.remove(0)
    }

    /// Sends frames, applies them and returns everything that came.
    pub fn call_all(&mut self, client: u64, frames: &[u8]) -> Vec<Reply> {
        self.send(client, frames);
        self.apply();
        self.replies(client)
    }

    /// Sends one request and asserts its error.
    pub fn expect(&mut self, client: u64, frame: &[u8], error: ErrorCode) {
        let reply = self.call(client, frame);
        assert_eq!(reply.err, error.code(), "{reply:?}");
    }

    pub fn ok(&mut self, client: u64, frame: &[u8]) -> Reply {
        let reply = self.call(client, frame);
        assert_eq!(reply.err, 0, "{reply:?}");
        reply
    }

    pub fn watch_count(&self) -> usize {
        self.watches.borrow().counts().watches()
    }
}

/// A frame around a payload.
pub fn framed(payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as i32).to_be_bytes().to_vec();
    frame.extend_from_slice(payload);
    frame
}

pub fn connect(
    seen: i64,
    timeout_ms: i32,
    session: i64,
    password: Option<&[u8]>,
    read_only: Option<bool>,
) -> Vec<u8> {
    let handshake = Handshake {
        request: ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: seen,
            time_out: timeout_ms,
            session_id: session,
            passwd: password,
        },
        read_only,
    };
    let mut payload = BytesMut::new();
    handshake.encode(&mut payload);
    framed(&payload)
}

/// A request frame.
pub fn request<T: Encode>(xid: i32, op: Op, record: &T) -> Vec<u8> {
    let mut body = BytesMut::new();
    record.encode(&mut body);
    raw(xid, op.code(), &body)
}

/// A request frame of any type and content.
pub fn raw(xid: i32, code: i32, body: &[u8]) -> Vec<u8> {
    let mut payload = xid.to_be_bytes().to_vec();
    payload.extend_from_slice(&code.to_be_bytes());
    payload.extend_from_slice(body);
    framed(&payload)
}

pub fn acl(perms: i32, scheme: &'static str, id: &'static str) -> Acl<'static> {
    Acl {
        perms,
        id: Id {
            scheme: Some(scheme.into()),
            id: Some(id.into()),
        },
    }
}

/// A small deterministic generator; prints its seed, and takes one from QUENDA_SEED.
pub struct Random(u64);

impl Random {
    pub fn from_environment() -> Random {
        let seed = match std::env::var("QUENDA_SEED") {
            Ok(text) => text.parse().expect("QUENDA_SEED is a number"),
            Err(_) => std::time::UNIX_EPOCH
                .elapsed()
                .expect("a clock after 1970")
                .as_nanos() as u64,
        };
        println!("QUENDA_SEED={seed}");
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}
