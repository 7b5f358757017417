//! A tree with clients, for tests.
#![allow(dead_code, reason = "every test binary uses a part")]

use std::collections::BTreeMap;

use bytes::BytesMut;
use quenda_proto::jute::{Decode, Encode, Reader};
use quenda_proto::multi::{put_request, put_terminator};
use quenda_proto::records::{
    Acl, CheckVersionRequest, Create2Response, CreateRequest, CreateResponse, CreateTtlRequest,
    DeleteRequest, Id, MultiHeader, ReconfigRequest, SetAclRequest, SetDataRequest,
    SetDataResponse, Stat,
};
use quenda_proto::{ErrorCode, Op};
use quenda_tree::command::{Command, Origin, ReconfigFacts, Request, Stamp, Switches};
use quenda_tree::ensemble::Ensemble;
use quenda_tree::{
    AclEntry, Applied, ChangeKind, Changes, CheckpointSink, Counts, Identity, Loader, MapView,
    PieceSum, Session, SessionEffect, Table, Tree, export,
};

/// The session that [`Member::new`] opens.
pub const SESSION: i64 = 0x0100_0000_0000_0001;
/// Another one, to be opened by who needs it.
pub const OTHER: i64 = 0x0100_0000_0000_0002;
pub const SECRET: [u8; 32] = [9; 32];

/// What one command did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub zxid: i64,
    pub code: ErrorCode,
    pub session: SessionEffect,
    pub body: Vec<u8>,
    pub changes: Vec<Seen>,
    pub over_quota: Option<String>,
}

/// A change with its lists spelled out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub kind: ChangeKind,
    pub path: String,
    pub zxid: i64,
    pub acl: Vec<AclEntry>,
    pub parent_acl: Vec<AclEntry>,
}

/// Who asks.
#[derive(Debug, Clone)]
pub struct Client {
    pub session: i64,
    pub generation: u64,
    pub identities: Vec<Identity>,
    pub switches: Switches,
}

impl Client {
    pub fn new(session: i64) -> Client {
        Client {
            session,
            generation: 1,
            identities: vec![Identity::new("ip", "127.0.0.1")],
            switches: Switches::default(),
        }
    }

    pub fn with(mut self, scheme: &str, id: &str) -> Client {
        self.identities.push(Identity::new(scheme, id));
        self
    }

    pub fn enforcing_quotas(mut self) -> Client {
        self.switches.enforce_quota = true;
        self
    }
}

pub struct Member {
    pub tree: Tree,
    pub term: u64,
    pub time_ms: i64,
}

impl Member {
    /// A founded tree with [`SESSION`] open.
    pub fn new() -> Member {
        Member::founded("")
    }

    /// The same with these server lines.
    pub fn founded(config: &str) -> Member {
        let mut member = Member {
            tree: Tree::new(),
            term: 1,
            time_ms: 1_000_000,
        };
        member.apply(&Command::Found {
            cluster: 77,
            secret: SECRET,
            config,
        });
        member.open(SESSION);
        member
    }

    pub fn apply(&mut self, command: &Command<'_>) -> Outcome {
        let stamp = Stamp {
            term: self.term,
            time_ms: self.time_ms,
        };
        apply(&mut self.tree, stamp, command)
    }

    pub fn open(&mut self, session: i64) -> Outcome {
        self.apply(&Command::OpenSession {
            origin: Origin::default(),
            session,
            timeout_ms: 10_000,
        })
    }

    pub fn raw(&mut self, client: &Client, op: i32, body: &[u8]) -> Outcome {
        self.apply(&Command::Request(Request {
            origin: Origin::default(),
            session: client.session,
            generation: client.generation,
            local: false,
            switches: client.switches,
            identities: client.identities.clone(),
            op,
            body,
        }))
    }

    pub fn reconfig(
        &mut self,
        client: &Client,
        request: &ReconfigRequest<'_>,
        facts: ReconfigFacts,
    ) -> Outcome {
        let mut body = BytesMut::new();
        request.encode(&mut body);
        let request = Request {
            origin: Origin::default(),
            session: client.session,
            generation: client.generation,
            local: false,
            switches: client.switches,
            identities: client.identities.clone(),
            op: Op::Reconfig.code(),
            body: &body,
        };
        self.apply(&Command::Reconfig { request, facts })
    }

    pub fn send(&mut self, client: &Client, op: Op, record: &impl Encode) -> Outcome {
        let mut body = BytesMut::new();
        record.encode(&mut body);
        self.raw(client, op.code(), &body)
    }

    /// create with an open list; the path that came out.
    pub fn create(&mut self, client: &Client, path: &str, flags: i32) -> Result<String, ErrorCode> {
        let outcome = self.send(client, Op::Create, &create(path, Some(b""), flags));
        outcome.ok()?;
        let reply: CreateResponse = outcome.record();
        Ok(reply.path.unwrap_or_default().into_owned())
    }

    pub fn must_create(&mut self, path: &str) {
        let client = Client::new(SESSION);
        assert_eq!(self.create(&client, path, 0).as_deref(), Ok(path));
    }

    pub fn must_create_with(&mut self, path: &str, data: &[u8]) {
        let client = Client::new(SESSION);
        let outcome = self.send(&client, Op::Create, &create(path, Some(data), 0));
        assert_eq!(outcome.code, ErrorCode::Ok, "{path}");
    }

    pub fn create2(
        &mut self,
        client: &Client,
        op: Op,
        record: &impl Encode,
    ) -> Result<(String, Stat), ErrorCode> {
        let outcome = self.send(client, op, record);
        outcome.ok()?;
        let reply: Create2Response = outcome.record();
        Ok((reply.path.unwrap_or_default().into_owned(), reply.stat))
    }

    pub fn delete(&mut self, client: &Client, path: &str, version: i32) -> ErrorCode {
        self.send(client, Op::Delete, &delete(path, version)).code
    }

    pub fn set(
        &mut self,
        client: &Client,
        path: &str,
        data: &[u8],
        version: i32,
    ) -> Result<Stat, ErrorCode> {
        let outcome = self.send(client, Op::SetData, &set(path, data, version));
        outcome.ok()?;
        Ok(outcome.record::<SetDataResponse>().stat)
    }

    pub fn set_acl(
        &mut self,
        client: &Client,
        path: &str,
        acl: Vec<Acl<'_>>,
        version: i32,
    ) -> Result<Stat, ErrorCode> {
        let request = SetAclRequest {
            path: Some(path.into()),
            acl: Some(acl),
            version,
        };
        let outcome = self.send(client, Op::SetAcl, &request);
        outcome.ok()?;
        Ok(outcome.record::<SetDataResponse>().stat)
    }

    pub fn multi(&mut self, client: &Client, multi: &Multi) -> Outcome {
        let mut body = multi.0.clone();
        put_terminator(&mut body);
        self.raw(client, Op::Multi.code(), &body)
    }

    pub fn stat(&self, path: &str) -> Stat {
        self.tree.get(path).expect(path).stat()
    }

    pub fn data(&self, path: &str) -> Option<&[u8]> {
        self.tree.get(path).expect(path).data()
    }

    pub fn text(&self, path: &str) -> &str {
        std::str::from_utf8(self.data(path).expect(path)).expect("text")
    }

    pub fn has(&self, path: &str) -> bool {
        self.tree.get(path).is_some()
    }

    pub fn children(&self, path: &str) -> Vec<&str> {
        let mut names: Vec<_> = self.tree.get(path).expect(path).children().collect();
        names.sort_unstable();
        names
    }
}

pub fn apply(tree: &mut Tree, stamp: Stamp, command: &Command<'_>) -> Outcome {
    let mut reply = BytesMut::new();
    let mut changes = Changes::new();
    let Applied {
        zxid,
        code,
        session,
    } = tree.apply(stamp, command, &mut reply, &mut changes);
    let seen = changes.iter().map(|change| Seen {
        kind: change.kind,
        path: change.path.to_string(),
        zxid: change.zxid,
        acl: tree.acl(change.acl).to_vec(),
        parent_acl: tree.acl(change.parent_acl).to_vec(),
    });
    Outcome {
        zxid,
        code,
        session,
        body: reply.to_vec(),
        changes: seen.collect(),
        over_quota: changes.over_quota().map(str::to_owned),
    }
}

impl Outcome {
    pub fn ok(&self) -> Result<(), ErrorCode> {
        match self.code {
            ErrorCode::Ok => Ok(()),
            code => Err(code),
        }
    }

    /// The one record of the body.
    pub fn record<'a, T: Decode<'a>>(&'a self) -> T {
        let mut reader = Reader::new(&self.body);
        let record = T::decode(&mut reader).expect("a record");
        assert!(reader.rest().is_empty(), "more than one record");
        record
    }

    /// The results of a multi.
    pub fn results(&self) -> Vec<OpResult> {
        let mut reader = Reader::new(&self.body);
        let mut results = Vec::new();
        loop {
            let header = MultiHeader::decode(&mut reader).expect("a header");
            if header.done {
                assert_eq!((header.kind, header.err), (-1, -1));
                assert!(reader.rest().is_empty(), "bytes behind the terminator");
                return results;
            }
            results.push(OpResult::decode(header, &mut reader));
        }
    }

    /// Kind and path of each change.
    pub fn events(&self) -> Vec<(ChangeKind, &str)> {
        self.changes
            .iter()
            .map(|seen| (seen.kind, seen.path.as_str()))
            .collect()
    }
}

/// One result of a multi.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpResult {
    Created(String),
    Created2(String, Stat),
    Deleted,
    Set(Stat),
    Checked,
    Error(i32),
}

impl OpResult {
    fn decode(header: MultiHeader, reader: &mut Reader<'_>) -> OpResult {
        let text = |text: Option<std::borrow::Cow<'_, str>>| text.expect("a path").into_owned();
        if header.kind == -1 {
            let code = i32::decode(reader).expect("a code");
            assert_eq!(header.err, code);
            return OpResult::Error(code);
        }
        assert_eq!(header.err, 0);
        match Op::from_code(header.kind) {
            Some(Op::Create) => {
                let reply = CreateResponse::decode(reader).expect("a reply");
                OpResult::Created(text(reply.path))
            }
            Some(Op::Create2) => {
                let reply = Create2Response::decode(reader).expect("a reply");
                OpResult::Created2(text(reply.path), reply.stat)
            }
            Some(Op::Delete) => OpResult::Deleted,
            Some(Op::SetData) => OpResult::Set(Stat::decode(reader).expect("a reply")),
            Some(Op::Check) => OpResult::Checked,
            other => panic!("a result of {other:?}"),
        }
    }
}

/// The operations of a multi.
#[derive(Default, Clone)]
pub struct Multi(pub BytesMut);

impl Multi {
    pub fn new() -> Multi {
        Multi::default()
    }

    pub fn op(mut self, op: Op, record: &impl Encode) -> Multi {
        put_request(&mut self.0, op, record);
        self
    }

    pub fn create(self, path: &str, flags: i32) -> Multi {
        self.op(Op::Create, &create(path, Some(b""), flags))
    }

    pub fn delete(self, path: &str, version: i32) -> Multi {
        self.op(Op::Delete, &delete(path, version))
    }

    pub fn set(self, path: &str, data: &[u8], version: i32) -> Multi {
        self.op(Op::SetData, &set(path, data, version))
    }

    pub fn check(self, path: &str, version: i32) -> Multi {
        let request = CheckVersionRequest {
            path: Some(path.into()),
            version,
        };
        self.op(Op::Check, &request)
    }
}

pub fn acl<'a>(perms: i32, scheme: &'a str, id: &'a str) -> Acl<'a> {
    Acl {
        perms,
        id: Id {
            scheme: Some(scheme.into()),
            id: Some(id.into()),
        },
    }
}

pub fn open_acl() -> Vec<Acl<'static>> {
    vec![acl(31, "world", "anyone")]
}

pub fn create<'a>(path: &'a str, data: Option<&'a [u8]>, flags: i32) -> CreateRequest<'a> {
    CreateRequest {
        path: Some(path.into()),
        data,
        acl: Some(open_acl()),
        flags,
    }
}

pub fn create_acl<'a>(path: &'a str, list: Vec<Acl<'a>>) -> CreateRequest<'a> {
    CreateRequest {
        path: Some(path.into()),
        data: None,
        acl: Some(list),
        flags: 0,
    }
}

pub fn create_ttl(path: &str, flags: i32, ttl: i64) -> CreateTtlRequest<'_> {
    CreateTtlRequest {
        path: Some(path.into()),
        data: Some(b""),
        acl: Some(open_acl()),
        flags,
        ttl,
    }
}

pub fn delete(path: &str, version: i32) -> DeleteRequest<'_> {
    DeleteRequest {
        path: Some(path.into()),
        version,
    }
}

pub fn set<'a>(path: &'a str, data: &'a [u8], version: i32) -> SetDataRequest<'a> {
    SetDataRequest {
        path: Some(path.into()),
        data: Some(data),
        version,
    }
}

/// A checkpoint store.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Store(pub BTreeMap<(Table, Vec<u8>), Vec<u8>>);

impl CheckpointSink for Store {
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) {
        self.0.insert((table, key.to_vec()), value.to_vec());
    }

    fn delete(&mut self, table: Table, key: &[u8]) {
        self.0.remove(&(table, key.to_vec()));
    }
}

impl Store {
    pub fn full(tree: &Tree) -> Store {
        let mut store = Store::default();
        tree.write_full(&mut store);
        store
    }

    pub fn load(&self) -> Tree {
        let mut loader = Loader::new();
        for ((table, key), value) in &self.0 {
            loader.row(*table, key, value).expect("a row");
        }
        loader.finish().expect("a whole checkpoint")
    }
}

/// Metadata, data, list.
pub type ShownZnode = (Stat, Option<Vec<u8>>, Vec<AclEntry>);

/// Everything that a tree shows.
#[derive(Debug, PartialEq, Eq)]
pub struct Dump {
    pub znodes: BTreeMap<String, ShownZnode>,
    /// Id, timeout, generation, paths of ephemeral znodes.
    pub sessions: BTreeMap<i64, (i32, u64, Vec<String>)>,
    pub counts: Counts,
    pub last_zxid: i64,
    /// Text of the configuration.
    pub config: Option<String>,
    /// The newest session of each member that has opened one.
    pub newest: Vec<i64>,
}

pub fn dump(tree: &Tree) -> Dump {
    let mut znodes = BTreeMap::new();
    let mut open = vec!["/".to_string()];
    while let Some(path) = open.pop() {
        let node = tree.get(&path).expect("a child that was listed");
        for name in node.children() {
            open.push(match path.as_str() {
                "/" => format!("/{name}"),
                parent => format!("{parent}/{name}"),
            });
        }
        let list = tree.acl(node.acl()).to_vec();
        let data = node.data().map(<[u8]>::to_vec);
        znodes.insert(path, (node.stat(), data, list));
    }
    let session = |(id, session): (i64, &Session)| {
        let ephemerals = tree.ephemerals(id).collect();
        (id, (session.timeout_ms, session.generation, ephemerals))
    };
    Dump {
        znodes,
        sessions: tree.sessions().map(session).collect(),
        counts: tree.counts(),
        last_zxid: tree.last_zxid(),
        config: tree.ensemble().map(Ensemble::text),
        newest: (0..=0xFF)
            .filter_map(|member| tree.newest_session(member))
            .collect(),
    }
}

/// A small generator of random numbers; the same seed gives the same numbers.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub fn below(&mut self, end: usize) -> usize {
        ((self.next() >> 32) as usize) % end
    }

    pub fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }

    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// The snapshot of a tree.
pub fn snapshot(tree: &Tree) -> Vec<u8> {
    let mut bytes = Vec::new();
    let exported = export(&MapView(&Store::full(tree).0), &mut bytes).expect("a snapshot");
    assert_eq!(exported.size, bytes.len() as u64);
    assert_eq!(exported.last_zxid, tree.last_zxid());
    assert_eq!(exported.znodes, tree.counts().znodes as u64);
    bytes
}

/// The commands that restore a snapshot in pieces of this size.
pub fn restore_commands(restore: u64, bytes: &[u8], size: usize) -> Vec<Command<'_>> {
    let origin = Origin::default();
    let mut sum = PieceSum::default();
    let mut commands = Vec::new();
    for (number, bytes) in (0..).zip(bytes.chunks(size)) {
        sum.add(bytes);
        commands.push(Command::AddPiece {
            origin,
            restore,
            number,
            bytes,
        });
    }
    commands.push(Command::Restore {
        origin,
        restore,
        sum: sum.value(),
    });
    commands
}
