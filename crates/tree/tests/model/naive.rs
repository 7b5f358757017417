//! The rules once more, written for the reader: a map from path to znode, whole copies for a multi, scans
//! wherever something is counted. Shares nothing with the tree but the records.

use std::collections::BTreeMap;

use bytes::{BufMut, BytesMut};
use quenda_proto::jute::{Decode, Encode, Reader, put_buffer, put_string};
use quenda_proto::multi::{WriteOp, decode_writes, put_error, put_result_header, put_terminator};
use quenda_proto::path::validate;
use quenda_proto::records::{
    Acl, CreateRequest, CreateTtlRequest, DeleteRequest, ReconfigRequest, SetAclRequest,
    SetDataRequest, Stat,
};
use quenda_proto::{ErrorCode, Op};
use quenda_tree::command::{Command, ReconfigFacts, Request, Stamp, Switches};
use quenda_tree::{AclEntry, ChangeKind, Counts, Identity, SessionEffect};

use crate::common::{Dump, Outcome, Seen};
use crate::members::{Servers, amended, whole};

const CONFIG: &str = "/zookeeper/config";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Ephemeral(i64),
    Container,
    Ttl(i64),
}

#[derive(Debug, Clone)]
struct Znode {
    data: Option<Vec<u8>>,
    acl: Vec<AclEntry>,
    kind: Kind,
    czxid: i64,
    mzxid: i64,
    pzxid: i64,
    ctime: i64,
    mtime: i64,
    version: i32,
    aversion: i32,
    creates: i32,
}

impl Znode {
    fn len(&self) -> i64 {
        self.data.as_ref().map_or(0, Vec::len) as i64
    }
}

type Znodes = BTreeMap<String, Znode>;
type Verdict<T> = Result<T, ErrorCode>;

pub struct Naive {
    znodes: Znodes,
    /// Timeout, generation.
    sessions: BTreeMap<i64, (i32, u64)>,
    /// Of every session that ever was.
    pub passwords: BTreeMap<i64, [u8; 16]>,
    last_zxid: i64,
    /// How far the epoch of a zxid is ahead of the term.
    ahead: u64,
    /// zxid of the last restore, 0 for none.
    restored: u64,
    members: Option<Members>,
    /// The greatest session by its high byte.
    newest: BTreeMap<u8, i64>,
}

/// A state that was saved to be restored.
pub struct Saved {
    znodes: Znodes,
    timeouts: BTreeMap<i64, i32>,
    last_zxid: i64,
}

/// With the version.
type Members = (i64, Servers);

struct Context<'a> {
    zxid: i64,
    time_ms: i64,
    session: Verdict<i64>,
    local: bool,
    identities: &'a [Identity],
    switches: Switches,
    changes: Vec<Seen>,
    over_quota: Option<String>,
}

struct New<'a> {
    path: Option<&'a str>,
    data: Option<&'a [u8]>,
    acl: Option<&'a [Acl<'a>]>,
    kind: fn(i64, i64) -> Kind,
    ttl: i64,
    sequential: bool,
}

const PLAIN: fn(i64, i64) -> Kind = |_, _| Kind::Plain;
const EPHEMERAL: fn(i64, i64) -> Kind = |session, _| Kind::Ephemeral(session);
const CONTAINER: fn(i64, i64) -> Kind = |_, _| Kind::Container;
const TTL: fn(i64, i64) -> Kind = |_, ttl| Kind::Ttl(ttl);

fn parent_of(path: &str) -> &str {
    match path.rfind('/') {
        Some(0) | None => "/",
        Some(slash) => &path[..slash],
    }
}

fn is_child(child: &str, parent: &str) -> bool {
    child != "/" && parent_of(child) == parent
}

fn is_below(path: &str, top: &str) -> bool {
    path == top || top == "/" || path.starts_with(&format!("{top}/"))
}

impl Naive {
    pub fn new() -> Naive {
        let mut znodes = Znodes::new();
        for (path, perms, aversion) in [
            ("/", 31, 0),
            ("/zookeeper", 31, 0),
            ("/zookeeper/quota", 31, 0),
            ("/zookeeper/config", 1, -1),
        ] {
            let znode = Znode {
                data: Some(Vec::new()),
                acl: vec![AclEntry::new(perms, "world", "anyone")],
                kind: Kind::Plain,
                czxid: 0,
                mzxid: 0,
                pzxid: 0,
                ctime: 0,
                mtime: 0,
                version: 0,
                aversion,
                creates: 0,
            };
            znodes.insert(path.to_string(), znode);
        }
        Naive {
            znodes,
            sessions: BTreeMap::new(),
            passwords: BTreeMap::new(),
            last_zxid: 0,
            ahead: 0,
            restored: 0,
            members: None,
            newest: BTreeMap::new(),
        }
    }

    pub fn config_version(&self) -> i64 {
        self.members.as_ref().map_or(0, |(version, _)| *version)
    }

    fn config(&self) -> Option<String> {
        let (version, servers) = self.members.as_ref()?;
        let lines = servers
            .iter()
            .map(|(id, server)| format!("server.{id}={server}\n"));
        Some(format!("{}version={version:x}", lines.collect::<String>()))
    }

    pub fn apply(&mut self, stamp: Stamp, command: &Command<'_>) -> Outcome {
        match command {
            Command::Request(request) => self.request(stamp, request),
            Command::OpenSession {
                session,
                timeout_ms,
                ..
            } => {
                let zxid = self.mint(stamp);
                if self.sessions.contains_key(session) {
                    return refused(zxid);
                }
                self.sessions.insert(*session, (*timeout_ms, 1));
                let newest = self
                    .newest
                    .entry((*session as u64 >> 56) as u8)
                    .or_default();
                *newest = (*newest).max(*session);
                outcome(
                    zxid,
                    ErrorCode::Ok,
                    SessionEffect::Opened { session: *session },
                )
            }
            Command::ResumeSession {
                session,
                timeout_ms,
                password,
                ..
            } => {
                let is_right = self.passwords.get(session) == Some(password);
                match self.sessions.get_mut(session).filter(|_| is_right) {
                    None => refused(0),
                    Some((timeout, generation)) => {
                        *timeout = *timeout_ms;
                        *generation += 1;
                        let effect = SessionEffect::Resumed {
                            session: *session,
                            generation: *generation,
                            timeout_ms: *timeout_ms,
                        };
                        outcome(0, ErrorCode::Ok, effect)
                    }
                }
            }
            Command::ExpireSession {
                session,
                generation,
            } => {
                match self.sessions.get(session) {
                    None => return outcome(0, ErrorCode::SessionExpired, SessionEffect::None),
                    Some((_, newest)) if newest != generation => {
                        return outcome(0, ErrorCode::SessionMoved, SessionEffect::None);
                    }
                    Some(_) => {}
                }
                let mut context = self.own(stamp);
                self.close(&mut context, *session);
                let effect = SessionEffect::Closed { session: *session };
                finish(context, ErrorCode::Ok, effect)
            }
            Command::Reap {
                path,
                never_used_ms,
            } => {
                let mut context = self.own(stamp);
                let verdict = self.reap(&mut context, path, *never_used_ms);
                let code = verdict.err().unwrap_or(ErrorCode::Ok);
                finish(context, code, SessionEffect::None)
            }
            Command::Found { config, .. } => {
                let servers = whole(config).expect("a configuration");
                let mut context = self.context(stamp, 0, Ok(0), &[], Switches::default());
                if !servers.is_empty() {
                    self.last_zxid = (stamp.term << 32) as i64;
                    context.zxid = self.last_zxid;
                    self.install(&mut context, Some(servers));
                    context.zxid = 0;
                }
                finish(context, ErrorCode::Ok, SessionEffect::None)
            }
            Command::Reconfig { request, facts } => {
                let zxid = self.mint(stamp);
                let session = self.gate(request);
                let mut context =
                    self.context(stamp, zxid, session, &request.identities, request.switches);
                let verdict = self.reconfig(&mut context, *facts, request.body);
                let code = verdict.err().unwrap_or(ErrorCode::Ok);
                let mut outcome = finish(context, code, SessionEffect::None);
                if code == ErrorCode::Ok {
                    let config = &self.znodes[CONFIG];
                    let mut body = BytesMut::new();
                    put_buffer(&mut body, config.data.as_deref().expect("a text"));
                    self.stat(CONFIG).encode(&mut body);
                    outcome.body = body.to_vec();
                }
                outcome
            }
            Command::AddPiece { .. } | Command::DropPieces { .. } | Command::Restore { .. } => {
                unreachable!("a run restores what it has saved")
            }
            Command::Recover { config, .. } => {
                let last_epoch = self.last_zxid as u64 >> 32;
                let epoch = (stamp.term + self.ahead).max(last_epoch + 1) + 65_536;
                self.ahead = epoch - stamp.term;
                self.last_zxid = (epoch << 32) as i64;
                let mut context =
                    self.context(stamp, self.last_zxid, Ok(0), &[], Switches::default());
                let servers = whole(config).expect("a configuration");
                self.install(
                    &mut context,
                    Some(servers).filter(|servers| !servers.is_empty()),
                );
                finish(context, ErrorCode::Ok, SessionEffect::None)
            }
        }
    }

    /// What a snapshot holds.
    pub fn save(&self) -> Saved {
        Saved {
            znodes: self.znodes.clone(),
            timeouts: self
                .sessions
                .iter()
                .map(|(id, (timeout, _))| (*id, *timeout))
                .collect(),
            last_zxid: self.last_zxid,
        }
    }

    /// Puts a saved state in the place of this one; the zxid.
    pub fn restore(&mut self, stamp: Stamp, saved: &Saved) -> i64 {
        let last = self.last_zxid.max(saved.last_zxid);
        let epoch = (stamp.term + self.ahead).max((last as u64 >> 32) + 1);
        self.ahead = epoch - stamp.term;
        self.last_zxid = (epoch << 32 | 1) as i64;
        let config = self.znodes[CONFIG].clone();
        self.znodes = saved.znodes.clone();
        self.znodes.insert(CONFIG.to_string(), config);
        let generation = self.last_zxid as u64;
        self.restored = generation;
        let sessions = saved.timeouts.iter();
        self.sessions = sessions
            .map(|(id, timeout)| (*id, (*timeout, generation)))
            .collect();
        let quotas: Vec<String> = self.znodes.keys().cloned().collect();
        for path in quotas {
            let limits = path
                .strip_suffix("/zookeeper_stats")
                .map(|top| format!("{top}/zookeeper_limits"));
            if limits.is_some_and(|limits| self.znodes.contains_key(&limits)) {
                self.fill_stats(&path);
            }
        }
        self.last_zxid
    }

    fn mint(&mut self, stamp: Stamp) -> i64 {
        let first = (stamp.term + self.ahead) << 32 | 1;
        self.last_zxid = (first as i64).max(self.last_zxid + 1);
        self.last_zxid
    }

    fn context<'a>(
        &self,
        stamp: Stamp,
        zxid: i64,
        session: Verdict<i64>,
        identities: &'a [Identity],
        switches: Switches,
    ) -> Context<'a> {
        Context {
            zxid,
            time_ms: stamp.time_ms,
            session,
            local: false,
            identities,
            switches,
            changes: Vec::new(),
            over_quota: None,
        }
    }

    fn install(&mut self, context: &mut Context<'_>, servers: Option<Servers>) {
        self.members = servers.map(|servers| (context.zxid, servers));
        let text = self.config().unwrap_or_default();
        let node = self.znodes.get_mut(CONFIG).expect("built in");
        node.data = Some(text.into_bytes());
        node.version = -1;
        node.mzxid = context.zxid;
        node.mtime = context.time_ms;
        let (acl, parent_acl) = (node.acl.clone(), self.znodes["/zookeeper"].acl.clone());
        context.changes.push(Seen {
            kind: ChangeKind::DataChanged,
            path: CONFIG.to_string(),
            zxid: context.zxid,
            acl,
            parent_acl,
        });
    }

    fn reconfig(
        &mut self,
        context: &mut Context<'_>,
        facts: ReconfigFacts,
        record: &[u8],
    ) -> Verdict<()> {
        let request: ReconfigRequest = read(&mut Reader::new(record))?;
        let require = |is_met: bool, code| if is_met { Ok(()) } else { Err(code) };
        require(
            context.switches.reconfig_enabled,
            ErrorCode::ReconfigDisabled,
        )?;
        context.session?;
        let (version, servers) = self.members.clone().ok_or(ErrorCode::Unimplemented)?;
        require(!facts.in_progress, ErrorCode::ReconfigInProgress)?;
        let expected = request.cur_config_id;
        require(expected == -1 || expected == version, ErrorCode::BadVersion)?;
        let full = request.new_members.is_some();
        let next = match &request.new_members {
            Some(text) => whole(text)?,
            None => amended(servers, &request)?,
        };
        let voters = next
            .values()
            .filter(|server| !server.contains(":observer"))
            .count();
        let fewest = 1 + usize::from(context.switches.standalone_enabled);
        if voters < fewest && full && voters < next.len() {
            return Err(ErrorCode::MarshallingError);
        }
        require(voters >= fewest, ErrorCode::BadArguments)?;
        require(facts.quorum_synced, ErrorCode::NewConfigNoQuorum)?;
        permit(context, &self.znodes[CONFIG].acl, 2)?;
        require(!next.contains_key(&128), ErrorCode::BadArguments)?;
        self.install(context, Some(next));
        Ok(())
    }

    pub fn local_generation(&self) -> u64 {
        self.restored
    }

    fn gate(&self, request: &Request<'_>) -> Verdict<i64> {
        match self.sessions.get(&request.session) {
            _ if request.local && request.generation == self.local_generation() => {
                Ok(request.session)
            }
            _ if request.local => Err(ErrorCode::SessionMoved),
            None => Err(ErrorCode::SessionExpired),
            Some((_, generation)) if *generation > request.generation => {
                Err(ErrorCode::SessionMoved)
            }
            Some(_) => Ok(request.session),
        }
    }

    fn own(&mut self, stamp: Stamp) -> Context<'static> {
        Context {
            zxid: self.mint(stamp),
            time_ms: stamp.time_ms,
            session: Ok(0),
            local: false,
            identities: &[],
            switches: Switches::default(),
            changes: Vec::new(),
            over_quota: None,
        }
    }

    fn request(&mut self, stamp: Stamp, request: &Request<'_>) -> Outcome {
        let session = self.gate(request);
        let mut context = Context {
            zxid: self.mint(stamp),
            time_ms: stamp.time_ms,
            session,
            local: request.local,
            identities: &request.identities,
            switches: request.switches,
            changes: Vec::new(),
            over_quota: None,
        };
        let op = Op::from_code(request.op).expect("the generator sends known operations");
        if op == Op::CloseSession {
            return match session {
                Err(code) => finish(context, code, SessionEffect::None),
                Ok(_) if request.local => {
                    finish(context, ErrorCode::SessionExpired, SessionEffect::None)
                }
                Ok(session) => {
                    self.close(&mut context, session);
                    finish(context, ErrorCode::Ok, SessionEffect::Closed { session })
                }
            };
        }
        let mut body = BytesMut::new();
        let verdict = self.serve(&mut context, op, request.body, &mut body);
        let mut outcome = finish(
            context,
            verdict.err().unwrap_or(ErrorCode::Ok),
            SessionEffect::None,
        );
        if outcome.code == ErrorCode::Ok {
            outcome.body = body.to_vec();
        } else {
            assert!(outcome.changes.is_empty());
        }
        outcome
    }

    fn serve(
        &mut self,
        context: &mut Context<'_>,
        op: Op,
        record: &[u8],
        body: &mut BytesMut,
    ) -> Verdict<()> {
        let mut reader = Reader::new(record);
        match op {
            Op::Create | Op::Create2 | Op::CreateContainer => {
                let request: CreateRequest = read(&mut reader)?;
                if !(0..=4).contains(&request.flags) {
                    return Err(ErrorCode::BadArguments);
                }
                let kind = match (op, request.flags) {
                    (Op::CreateContainer, _) => CONTAINER,
                    (_, 1 | 3) => EPHEMERAL,
                    _ => PLAIN,
                };
                let (path, stat) = self.create(context, &new(&request, kind))?;
                put_string(body, &path);
                if op != Op::Create {
                    stat.encode(body);
                }
            }
            Op::CreateTtl => {
                let request: CreateTtlRequest = read(&mut reader)?;
                if !matches!(request.flags, 5 | 6) || !is_ttl(request.ttl) {
                    return Err(ErrorCode::BadArguments);
                }
                let (path, stat) = self.create(context, &new_ttl(&request, TTL))?;
                put_string(body, &path);
                stat.encode(body);
            }
            Op::Delete => self.delete(context, &read(&mut reader)?)?,
            Op::SetData => self.set_data(context, &read(&mut reader)?)?.encode(body),
            Op::SetAcl => self.set_acl(context, &read(&mut reader)?)?.encode(body),
            Op::Multi => self.multi(context, &mut reader, body)?,
            _ => return Err(ErrorCode::Unimplemented),
        }
        Ok(())
    }

    fn multi(
        &mut self,
        context: &mut Context<'_>,
        reader: &mut Reader<'_>,
        body: &mut BytesMut,
    ) -> Verdict<()> {
        let ops = decode_writes(reader).map_err(|_| ErrorCode::MarshallingError)?;
        context.session?;
        let before = self.znodes.clone();
        let mut results = BytesMut::new();
        for (index, op) in ops.iter().enumerate() {
            let Err(code) = self.multi_op(context, op, &mut results) else {
                continue;
            };
            self.znodes = before;
            context.changes.clear();
            if code == ErrorCode::MarshallingError {
                return Err(code);
            }
            for _ in 0..index {
                put_error(body, ErrorCode::Ok);
            }
            put_error(body, code);
            for _ in index + 1..ops.len() {
                put_error(body, ErrorCode::RuntimeInconsistency);
            }
            put_terminator(body);
            return Ok(());
        }
        body.put_slice(&results);
        put_terminator(body);
        Ok(())
    }

    fn multi_op(
        &mut self,
        context: &mut Context<'_>,
        op: &WriteOp<'_>,
        results: &mut BytesMut,
    ) -> Verdict<()> {
        let by_flags = |flags| match flags {
            1 | 3 => EPHEMERAL,
            4 => CONTAINER,
            5 | 6 => TTL,
            _ => PLAIN,
        };
        match op {
            WriteOp::Create(op, request) => {
                let kind = match op {
                    Op::CreateContainer => CONTAINER,
                    _ => by_flags(request.flags),
                };
                let (path, stat) = self.create(context, &new(request, kind))?;
                let path_only = *op == Op::Create && request.flags != 4;
                put_created(results, path_only, &path, &stat);
            }
            WriteOp::CreateTtl(request) => {
                let is_bad_ttl = request.flags >= 5 && !is_ttl(request.ttl);
                if !(0..=6).contains(&request.flags) || is_bad_ttl {
                    return Err(ErrorCode::BadArguments);
                }
                let (path, stat) =
                    self.create(context, &new_ttl(request, by_flags(request.flags)))?;
                put_created(results, request.flags < 4, &path, &stat);
            }
            WriteOp::Delete(request) => {
                self.delete(context, request)?;
                put_result_header(results, Op::Delete);
            }
            WriteOp::SetData(request) => {
                let stat = self.set_data(context, request)?;
                put_result_header(results, Op::SetData);
                stat.encode(results);
            }
            WriteOp::Check(request) => {
                let path: &str = request.path.as_ref().ok_or(ErrorCode::MarshallingError)?;
                validate(path).map_err(|_| ErrorCode::BadArguments)?;
                let znode = self.znodes.get(path).ok_or(ErrorCode::NoNode)?;
                permit(context, &znode.acl, 1)?;
                expect(request.version, znode.version)?;
                put_result_header(results, Op::Check);
            }
        }
        Ok(())
    }

    fn create(&mut self, context: &mut Context<'_>, new: &New<'_>) -> Verdict<(String, Stat)> {
        let session = context.session?;
        if context.local && matches!((new.kind)(1, 0), Kind::Ephemeral(_)) {
            return Err(ErrorCode::EphemeralOnLocalSession);
        }
        let mut path = new.path.ok_or(ErrorCode::MarshallingError)?.to_string();
        if !path.contains('/') || path.contains('\0') {
            return Err(ErrorCode::BadArguments);
        }
        let acl = stored_acl(context, new.acl)?;
        let parent = match &path[..path.rfind('/').expect("a slash")] {
            "" => "/".to_string(),
            parent => parent.to_string(),
        };
        let above = self.znodes.get(&parent).ok_or(ErrorCode::NoNode)?;
        permit(context, &above.acl, 4)?;
        if new.sequential {
            path += &match above.creates {
                number if number < 0 => format!("-{:09}", i64::from(number).abs()),
                number => format!("{number:010}"),
            };
        }
        validate(&path).map_err(|_| ErrorCode::BadArguments)?;
        if self.znodes.contains_key(&path) {
            return Err(ErrorCode::NodeExists);
        }
        if matches!(above.kind, Kind::Ephemeral(_)) {
            return Err(ErrorCode::NoChildrenForEphemerals);
        }
        let bytes = new.data.map_or(0, <[u8]>::len) as i64;
        self.check_quota(context, &path, 1, bytes)?;

        let parent_acl = above.acl.clone();
        let above = self.znodes.get_mut(&parent).expect("it was just there");
        above.creates = above.creates.wrapping_add(1);
        above.pzxid = context.zxid;
        let znode = Znode {
            data: new.data.map(<[u8]>::to_vec),
            acl: acl.clone(),
            kind: (new.kind)(session, new.ttl),
            czxid: context.zxid,
            mzxid: context.zxid,
            pzxid: context.zxid,
            ctime: context.time_ms,
            mtime: context.time_ms,
            version: 0,
            aversion: 0,
            creates: 0,
        };
        self.znodes.insert(path.clone(), znode);
        context.changes.push(Seen {
            kind: ChangeKind::Created,
            path: path.clone(),
            zxid: context.zxid,
            acl,
            parent_acl,
        });
        let stat = self.stat(&path);
        self.fill_stats(&path);
        self.charge(&path, 1, bytes);
        Ok((path, stat))
    }

    fn delete(&mut self, context: &mut Context<'_>, request: &DeleteRequest<'_>) -> Verdict<()> {
        context.session?;
        let path: &str = request.path.as_ref().ok_or(ErrorCode::MarshallingError)?;
        let built_in = ["/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"];
        if !path.contains('/') || path.contains('\0') || built_in.contains(&path) {
            return Err(ErrorCode::BadArguments);
        }
        let above = self.znodes.get(parent_of(path)).ok_or(ErrorCode::NoNode)?;
        permit(context, &above.acl, 8)?;
        let znode = self.znodes.get(path).ok_or(ErrorCode::NoNode)?;
        expect(request.version, znode.version)?;
        if self.children(path) > 0 {
            return Err(ErrorCode::NotEmpty);
        }
        self.remove(context, path);
        Ok(())
    }

    fn remove(&mut self, context: &mut Context<'_>, path: &str) {
        let znode = self.znodes.remove(path).expect("the caller looked");
        let above = self.znodes.get_mut(parent_of(path)).expect("a parent");
        above.pzxid = context.zxid;
        context.changes.push(Seen {
            kind: ChangeKind::Deleted,
            path: path.to_string(),
            zxid: context.zxid,
            acl: znode.acl.clone(),
            parent_acl: above.acl.clone(),
        });
        self.charge(path, -1, -znode.len());
    }

    fn set_data(
        &mut self,
        context: &mut Context<'_>,
        request: &SetDataRequest<'_>,
    ) -> Verdict<Stat> {
        context.session?;
        let path: &str = request.path.as_ref().ok_or(ErrorCode::BadArguments)?;
        validate(path).map_err(|_| ErrorCode::BadArguments)?;
        let znode = self.znodes.get(path).ok_or(ErrorCode::NoNode)?;
        permit(context, &znode.acl, 2)?;
        let growth = request.data.map_or(0, <[u8]>::len) as i64 - znode.len();
        self.check_quota(context, path, 0, growth)?;
        expect(request.version, znode.version)?;
        let parent_acl = self.znodes[parent_of(path)].acl.clone();
        let znode = self.znodes.get_mut(path).expect("it was just there");
        znode.data = request.data.map(<[u8]>::to_vec);
        znode.version = after(znode.version);
        znode.mzxid = context.zxid;
        znode.mtime = context.time_ms;
        context.changes.push(Seen {
            kind: ChangeKind::DataChanged,
            path: path.to_string(),
            zxid: context.zxid,
            acl: znode.acl.clone(),
            parent_acl,
        });
        let stat = self.stat(path);
        self.charge(path, 0, growth);
        Ok(stat)
    }

    fn set_acl(&mut self, context: &mut Context<'_>, request: &SetAclRequest<'_>) -> Verdict<Stat> {
        context.session?;
        let path: &str = request.path.as_ref().ok_or(ErrorCode::BadArguments)?;
        validate(path).map_err(|_| ErrorCode::BadArguments)?;
        let acl = stored_acl(context, request.acl.as_deref())?;
        let znode = self.znodes.get(path).ok_or(ErrorCode::NoNode)?;
        permit(context, &znode.acl, 16)?;
        expect(request.version, znode.aversion)?;
        let znode = self.znodes.get_mut(path).expect("it was just there");
        znode.acl = acl;
        znode.aversion = after(znode.aversion);
        Ok(self.stat(path))
    }

    fn close(&mut self, context: &mut Context<'_>, session: i64) {
        for path in self.ephemerals(session) {
            self.remove(context, &path);
        }
        self.sessions.remove(&session);
    }

    fn reap(&mut self, context: &mut Context<'_>, path: &str, never_used_ms: i64) -> Verdict<()> {
        let path = if path.is_empty() { "/" } else { path };
        let znode = self.znodes.get(path).ok_or(ErrorCode::NoNode)?;
        let age = context.time_ms - znode.mtime;
        let is_due = match znode.kind {
            Kind::Container if znode.creates != 0 => true,
            Kind::Container => never_used_ms != 0 && age > never_used_ms,
            Kind::Ttl(ttl) => age > ttl,
            Kind::Plain | Kind::Ephemeral(_) => false,
        };
        if self.children(path) > 0 {
            return Err(ErrorCode::NotEmpty);
        }
        if !is_due {
            return Err(ErrorCode::BadVersion);
        }
        self.remove(context, path);
        Ok(())
    }

    fn children(&self, path: &str) -> i32 {
        self.znodes
            .keys()
            .filter(|child| is_child(child, path))
            .count() as i32
    }

    fn ephemerals(&self, session: i64) -> Vec<String> {
        let owned = |znode: &Znode| znode.kind == Kind::Ephemeral(session);
        let znodes = self.znodes.iter().filter(|(_, znode)| owned(znode));
        znodes.map(|(path, _)| path.clone()).collect()
    }

    fn stat(&self, path: &str) -> Stat {
        let znode = &self.znodes[path];
        let num_children = self.children(path);
        Stat {
            czxid: znode.czxid,
            mzxid: znode.mzxid,
            ctime: znode.ctime,
            mtime: znode.mtime,
            version: znode.version,
            cversion: znode.creates.wrapping_mul(2).wrapping_sub(num_children),
            aversion: znode.aversion,
            ephemeral_owner: match znode.kind {
                Kind::Ephemeral(session) => session,
                _ => 0,
            },
            data_length: znode.len() as i32,
            num_children,
            pzxid: znode.pzxid,
        }
    }

    fn quota_of(&self, path: &str) -> Option<String> {
        let mut top = path;
        while top != "/" {
            if self
                .znodes
                .contains_key(&format!("/zookeeper/quota{top}/zookeeper_limits"))
            {
                return Some(top.to_string());
            }
            top = parent_of(top);
        }
        None
    }

    fn quota_text(&self, top: &str, name: &str) -> Option<BTreeMap<String, i64>> {
        let znode = self.znodes.get(&format!("/zookeeper/quota{top}/{name}"))?;
        let text = String::from_utf8(znode.data.clone().unwrap_or_default()).ok()?;
        let mut numbers = BTreeMap::new();
        for piece in text.split([',', ';']).filter(|piece| !piece.is_empty()) {
            let (key, value) = piece.split_once('=')?;
            let value = value.split('=').next().unwrap_or_default();
            let value = if value.is_empty() { "-1" } else { value };
            numbers.insert(key.to_string(), value.parse().ok()?);
        }
        Some(numbers)
    }

    fn check_quota(
        &self,
        context: &mut Context<'_>,
        path: &str,
        count: i64,
        bytes: i64,
    ) -> Verdict<()> {
        let quota = self
            .quota_of(path)
            .filter(|_| context.switches.enforce_quota);
        let Some(top) = quota else { return Ok(()) };
        let texts = (
            self.quota_text(&top, "zookeeper_limits"),
            self.quota_text(&top, "zookeeper_stats"),
        );
        let (Some(limits), Some(stats)) = texts else {
            return Ok(());
        };
        for (by, key, hard) in [
            (count, "count", "countHardLimit"),
            (bytes, "bytes", "byteHardLimit"),
        ] {
            let limit = *limits.get(hard).unwrap_or(&-1);
            let now = *stats.get(key).unwrap_or(&-1);
            if by != 0 && limit > -1 && now + by > limit {
                context.over_quota = Some(path.to_string());
                return Err(ErrorCode::QuotaExceeded);
            }
        }
        Ok(())
    }

    fn charge(&mut self, path: &str, count: i64, bytes: i64) {
        if (count, bytes) == (0, 0) {
            return;
        }
        let Some(top) = self.quota_of(path) else {
            return;
        };
        let Some(mut stats) = self.quota_text(&top, "zookeeper_stats") else {
            return;
        };
        *stats.entry("count".to_string()).or_insert(-1) += count;
        *stats.entry("bytes".to_string()).or_insert(-1) += bytes;
        self.write_stats(&top, &stats);
    }

    fn fill_stats(&mut self, path: &str) {
        let top = path
            .strip_prefix("/zookeeper/quota/")
            .and_then(|rest| rest.strip_suffix("/zookeeper_stats"));
        let Some(top) = top.map(|top| format!("/{top}")) else {
            return;
        };
        let below: Vec<_> = self
            .znodes
            .iter()
            .filter(|(path, _)| is_below(path, &top))
            .collect();
        let bytes = below.iter().map(|(_, znode)| znode.len()).sum();
        let count = below.len() as i64;
        let stats = BTreeMap::from([("count".to_string(), count), ("bytes".to_string(), bytes)]);
        self.write_stats(&top, &stats);
    }

    fn write_stats(&mut self, top: &str, stats: &BTreeMap<String, i64>) {
        let mut text = format!("count={},bytes={}", stats["count"], stats["bytes"]);
        let others: Vec<_> = stats
            .iter()
            .filter(|(key, _)| *key != "count" && *key != "bytes")
            .map(|(key, value)| format!(";{key}={value}"))
            .collect();
        if !others.is_empty() {
            text += "=";
        }
        text += &others.concat();
        let path = format!("/zookeeper/quota{top}/zookeeper_stats");
        let znode = self.znodes.get_mut(&path).expect("the caller looked");
        znode.data = Some(text.into_bytes());
    }

    /// What the tree should show.
    pub fn dump(&self) -> Dump {
        let znodes = self.znodes.iter().map(|(path, znode)| {
            let shown = (self.stat(path), znode.data.clone(), znode.acl.clone());
            (path.clone(), shown)
        });
        let sessions = self.sessions.iter().map(|(id, (timeout, generation))| {
            (*id, (*timeout, *generation, self.ephemerals(*id)))
        });
        let count = |wanted: fn(&Kind) -> bool| {
            self.znodes
                .values()
                .filter(|znode| wanted(&znode.kind))
                .count()
        };
        let sizes = self
            .znodes
            .iter()
            .map(|(path, znode)| path.len() as u64 + znode.len() as u64);
        Dump {
            znodes: znodes.collect(),
            sessions: sessions.collect(),
            counts: Counts {
                znodes: self.znodes.len(),
                ephemerals: count(|kind| matches!(kind, Kind::Ephemeral(_))),
                containers: count(|kind| *kind == Kind::Container),
                ttls: count(|kind| matches!(kind, Kind::Ttl(_))),
                sessions: self.sessions.len(),
                data_bytes: sizes.sum(),
            },
            last_zxid: self.last_zxid,
            config: self.config(),
            newest: self.newest.values().copied().collect(),
        }
    }

    /// Containers and TTL znodes that may go now.
    pub fn reap_candidates(&self, now_ms: i64, never_used_ms: i64) -> Vec<String> {
        let is_due = |(path, znode): &(&String, &Znode)| {
            let age = now_ms - znode.mtime;
            self.children(path) == 0
                && match znode.kind {
                    Kind::Container => {
                        znode.creates != 0 || (never_used_ms != 0 && age > never_used_ms)
                    }
                    Kind::Ttl(ttl) => age > ttl,
                    Kind::Plain | Kind::Ephemeral(_) => false,
                }
        };
        let znodes = self.znodes.iter().filter(is_due);
        znodes.map(|(path, _)| path.clone()).collect()
    }

    pub fn generation(&self, session: i64) -> u64 {
        self.sessions.get(&session).map_or(0, |session| session.1)
    }

    pub fn descendants(&self, path: &str) -> usize {
        self.znodes
            .keys()
            .filter(|other| is_below(other, path))
            .count()
            - 1
    }
}

fn read<'a, T: Decode<'a>>(reader: &mut Reader<'a>) -> Verdict<T> {
    T::decode(reader).map_err(|_| ErrorCode::MarshallingError)
}

fn new<'a>(request: &'a CreateRequest<'a>, kind: fn(i64, i64) -> Kind) -> New<'a> {
    New {
        path: request.path.as_deref(),
        data: request.data,
        acl: request.acl.as_deref(),
        kind,
        ttl: 0,
        sequential: matches!(request.flags, 2 | 3 | 6),
    }
}

fn new_ttl<'a>(request: &'a CreateTtlRequest<'a>, kind: fn(i64, i64) -> Kind) -> New<'a> {
    New {
        path: request.path.as_deref(),
        data: request.data,
        acl: request.acl.as_deref(),
        kind,
        ttl: request.ttl,
        sequential: matches!(request.flags, 2 | 3 | 6),
    }
}

fn is_ttl(ttl: i64) -> bool {
    ttl > 0 && ttl < 1 << 40
}

fn put_created(results: &mut BytesMut, path_only: bool, path: &str, stat: &Stat) {
    put_result_header(results, if path_only { Op::Create } else { Op::Create2 });
    put_string(results, path);
    if !path_only {
        stat.encode(results);
    }
}

fn expect(expected: i32, current: i32) -> Verdict<()> {
    if expected == -1 || expected == current {
        Ok(())
    } else {
        Err(ErrorCode::BadVersion)
    }
}

fn after(version: i32) -> i32 {
    let next = version.wrapping_add(1);
    if next == -1 { 0 } else { next }
}

fn permit(context: &Context<'_>, acl: &[AclEntry], wanted: i32) -> Verdict<()> {
    let matches = |entry: &AclEntry, who: &Identity| match &*entry.scheme {
        "ip" => who.scheme == entry.scheme && address_matches(&who.id, &entry.id),
        _ => who.scheme == entry.scheme && who.id == entry.id,
    };
    let allowed = context.switches.skip_acl
        || context.identities.iter().any(|who| &*who.scheme == "super")
        || acl.iter().any(|entry| {
            entry.perms & wanted != 0
                && (&*entry.scheme == "world"
                    || context.identities.iter().any(|who| matches(entry, who)))
        });
    if allowed {
        Ok(())
    } else {
        Err(ErrorCode::NoAuth)
    }
}

/// The generator uses IPv4 alone.
fn address_matches(peer: &str, entry: &str) -> bool {
    let number = |text: &str| {
        text.split('.').fold(0u64, |sum, part| {
            sum * 256 + part.parse::<u64>().expect("a number")
        })
    };
    let (address, bits) = entry.split_once('/').unwrap_or((entry, "32"));
    let size = 1u64 << (32 - bits.parse::<u32>().expect("a number"));
    number(peer) / size == number(address) / size
}

/// Schemes and ids are from the generator's own small set.
fn stored_acl(context: &Context<'_>, list: Option<&[Acl<'_>]>) -> Verdict<Vec<AclEntry>> {
    let mut unique: Vec<&Acl<'_>> = Vec::new();
    for entry in list.unwrap_or_default() {
        if !unique.contains(&entry) {
            unique.push(entry);
        }
    }
    if unique.is_empty() {
        return Err(ErrorCode::InvalidAcl);
    }
    let mut stored = Vec::new();
    for entry in unique {
        let scheme = entry.id.scheme.as_deref().ok_or(ErrorCode::InvalidAcl)?;
        match (scheme, entry.id.id.as_deref()) {
            ("auth", _) => {
                let before = stored.len();
                for who in context.identities {
                    if &*who.scheme == "digest" {
                        stored.push(AclEntry::new(entry.perms, "digest", &who.id));
                    }
                }
                if stored.len() == before {
                    return Err(ErrorCode::InvalidAcl);
                }
            }
            ("world" | "digest" | "ip", None) => return Err(ErrorCode::MarshallingError),
            ("world", Some("anyone")) => stored.push(AclEntry::new(entry.perms, scheme, "anyone")),
            ("digest", Some(id)) if id.matches(':').count() == 1 && !id.ends_with(':') => {
                stored.push(AclEntry::new(entry.perms, scheme, id));
            }
            ("ip", Some(id)) if id.starts_with(|c: char| c.is_ascii_digit()) => {
                stored.push(AclEntry::new(entry.perms, scheme, id));
            }
            _ => return Err(ErrorCode::InvalidAcl),
        }
    }
    Ok(stored)
}

fn outcome(zxid: i64, code: ErrorCode, session: SessionEffect) -> Outcome {
    Outcome {
        zxid,
        code,
        session,
        body: Vec::new(),
        changes: Vec::new(),
        over_quota: None,
    }
}

fn finish(context: Context<'_>, code: ErrorCode, session: SessionEffect) -> Outcome {
    Outcome {
        changes: context.changes,
        over_quota: context.over_quota,
        ..outcome(context.zxid, code, session)
    }
}

fn refused(zxid: i64) -> Outcome {
    outcome(zxid, ErrorCode::SessionExpired, SessionEffect::Refused)
}
