//! Random commands over few names, so that they meet each other.

use std::borrow::Cow;

use bytes::BytesMut;
use quenda_proto::Op;
use quenda_proto::jute::Encode;
use quenda_proto::multi::{put_request, put_terminator};
use quenda_proto::records::{
    Acl, CheckVersionRequest, CreateRequest, CreateTtlRequest, DeleteRequest, ReconfigRequest,
    SetAclRequest, SetDataRequest,
};
use quenda_tree::Identity;
use quenda_tree::command::{Command, Origin, ReconfigFacts, Request, Switches};

use crate::common::{Random, acl};
use crate::members::LINES;
use crate::naive::Naive;

const SESSIONS: [i64; 4] = [
    0x0100_0000_0000_0001,
    0x0100_0000_0000_0002,
    0x0200_0000_0000_0001,
    0x7F00_0000_0000_0000,
];
const NAMES: [&str; 4] = ["a", "b", "c", "d-"];
const ODD_PATHS: [&str; 16] = [
    "",
    "/",
    "//",
    "a",
    "/a/",
    "/a//b",
    "/a/.",
    "/b/..",
    "/zookeeper",
    "/zookeeper/config",
    "a/b",
    "/zookeeper/quota",
    "/\u{FFFD}",
    "/x\0",
    "//zookeeper",
    "/zookeeper/quota/zookeeper_limits",
];
const QUOTA_TEXTS: [&str; 8] = [
    "count=5,bytes=20=;byteHardLimit=40;countHardLimit=6",
    "count=-1,bytes=-1=;byteHardLimit=12",
    "count=2,bytes=2",
    "count=-1,bytes=-1=;countHardLimit=3",
    "countHardLimit=2",
    "rubbish",
    "",
    "count=x",
];

/// A command that owns its parts.
#[derive(Debug, Clone)]
pub enum Step {
    Request {
        session: i64,
        generation: u64,
        local: bool,
        switches: Switches,
        identities: Vec<Identity>,
        op: Op,
        body: BytesMut,
    },
    Open(i64, i32),
    Resume(i64, i32, [u8; 16]),
    Expire(i64, u64),
    Reap(String, i64),
    Reconfig {
        session: i64,
        generation: u64,
        local: bool,
        switches: Switches,
        identities: Vec<Identity>,
        body: BytesMut,
        facts: ReconfigFacts,
    },
    Recover(u64, &'static str),
}

impl Step {
    pub fn command(&self) -> Command<'_> {
        let origin = Origin::default();
        match self {
            Step::Request {
                session,
                generation,
                local,
                switches,
                identities,
                op,
                body,
            } => Command::Request(Request {
                origin,
                session: *session,
                generation: *generation,
                local: *local,
                switches: *switches,
                identities: identities.clone(),
                op: op.code(),
                body,
            }),
            Step::Open(session, timeout_ms) => Command::OpenSession {
                origin,
                session: *session,
                timeout_ms: *timeout_ms,
            },
            Step::Resume(session, timeout_ms, password) => Command::ResumeSession {
                origin,
                session: *session,
                timeout_ms: *timeout_ms,
                password: *password,
            },
            Step::Expire(session, generation) => Command::ExpireSession {
                session: *session,
                generation: *generation,
            },
            Step::Reap(path, never_used_ms) => Command::Reap {
                path,
                never_used_ms: *never_used_ms,
            },
            Step::Reconfig {
                session,
                generation,
                local,
                switches,
                identities,
                body,
                facts,
            } => Command::Reconfig {
                request: Request {
                    origin,
                    session: *session,
                    generation: *generation,
                    local: *local,
                    switches: *switches,
                    identities: identities.clone(),
                    op: Op::Reconfig.code(),
                    body,
                },
                facts: *facts,
            },
            Step::Recover(cluster, config) => Command::Recover {
                cluster: *cluster,
                config,
            },
        }
    }
}

pub struct Generator {
    pub random: Random,
}

impl Generator {
    pub fn step(&mut self, model: &Naive) -> Step {
        let session = self.random.pick(&SESSIONS);
        match self.random.below(100) {
            0..5 => Step::Open(session, self.random.below(9_000) as i32),
            5 => Step::Resume(
                session,
                self.random.below(9_000) as i32,
                self.password(model, session),
            ),
            6 if self.random.one_in(3) => {
                let late = u64::from(self.random.one_in(4));
                Step::Expire(session, model.generation(session).saturating_sub(late))
            }
            6..10 => Step::Reap(self.path(), [0, 50][self.random.below(2)]),
            10..14 => self.reconfig(model, session),
            14 if self.random.one_in(20) => {
                let config =
                    self.random
                        .pick(&["", "server.1=a:1:2;3", "server.2=b:1:2:participant;3"]);
                Step::Recover(self.random.next(), config)
            }
            _ => self.request(model, session),
        }
    }

    fn password(&mut self, model: &Naive, session: i64) -> [u8; 16] {
        let mut password = model.passwords.get(&session).copied().unwrap_or_default();
        if self.random.one_in(4) {
            password[3] ^= 1;
        }
        password
    }

    fn request(&mut self, model: &Naive, session: i64) -> Step {
        let newest = model.generation(session);
        let behind = u64::from(self.random.one_in(50));
        let mut body = BytesMut::new();
        let op = self.record(&mut body);
        if self.random.one_in(60) {
            let cut = self.random.below(body.len() + 1);
            body.truncate(cut);
        }
        let local = self.random.one_in(8);
        let newest = if local {
            model.local_generation()
        } else {
            newest
        };
        Step::Request {
            session,
            generation: newest.saturating_sub(behind),
            local,
            switches: Switches {
                skip_acl: self.random.one_in(8),
                enforce_quota: self.random.one_in(2),
                ..Switches::default()
            },
            identities: self.identities(),
            op,
            body,
        }
    }

    fn reconfig(&mut self, model: &Naive, session: i64) -> Step {
        let incremental = !self.random.one_in(4);
        let list = |generator: &mut Generator, separator| {
            let some = generator.lines(4).join(separator);
            (!generator.random.one_in(3)).then(|| Cow::from(some))
        };
        let request = ReconfigRequest {
            joining_servers: list(self, ","),
            leaving_servers: self.leaving(),
            new_members: match incremental {
                true => None,
                false => list(self, "\n"),
            },
            cur_config_id: match self.random.below(6) {
                0 => model.config_version(),
                1 => model.config_version() - 1,
                _ => -1,
            },
        };
        let mut body = BytesMut::new();
        request.encode(&mut body);
        let local = self.random.one_in(8);
        Step::Reconfig {
            session,
            generation: match local {
                true => model.local_generation(),
                false => model.generation(session),
            },
            local,
            switches: Switches {
                skip_acl: self.random.one_in(2),
                enforce_quota: false,
                reconfig_enabled: !self.random.one_in(20),
                standalone_enabled: self.random.one_in(2),
                ..Switches::default()
            },
            identities: self.identities(),
            body,
            facts: ReconfigFacts {
                in_progress: self.random.one_in(20),
                quorum_synced: !self.random.one_in(20),
            },
        }
    }

    /// Mostly lines that make sense.
    fn lines(&mut self, most: usize) -> Vec<&'static str> {
        let count = self.random.below(most + 1);
        let mut lines = Vec::new();
        for _ in 0..count {
            let end = if self.random.one_in(8) { 13 } else { 8 };
            lines.push(LINES[self.random.below(end)].text);
        }
        lines
    }

    fn leaving(&mut self) -> Option<Cow<'static, str>> {
        match self.random.below(20) {
            0 => Some("1,x".into()),
            1 => Some(" , 9,".into()),
            2..5 => Some(self.random.pick(&["1", "2,3", "4", "5,128,3"]).into()),
            _ => None,
        }
    }

    fn record(&mut self, body: &mut BytesMut) -> Op {
        match self.random.below(40) {
            0..8 => {
                self.multi(body);
                Op::Multi
            }
            8 if self.random.one_in(4) => Op::CloseSession,
            8..11 => {
                let request = SetAclRequest {
                    path: self.sent_path(),
                    acl: self.acl(),
                    version: self.version(),
                };
                request.encode(body);
                Op::SetAcl
            }
            _ => self.write(body),
        }
    }

    fn write(&mut self, body: &mut BytesMut) -> Op {
        let mut record = BytesMut::new();
        let op = self.op_record(&mut record);
        body.extend_from_slice(&record);
        op
    }

    fn multi(&mut self, body: &mut BytesMut) {
        for _ in 0..self.random.below(7) {
            if self.random.one_in(8) {
                let request = CheckVersionRequest {
                    path: self.sent_path(),
                    version: self.version(),
                };
                put_request(body, Op::Check, &request);
                continue;
            }
            let mut record = BytesMut::new();
            let op = self.op_record(&mut record);
            put_request(body, op, &Raw(&record));
        }
        if !self.random.one_in(40) {
            put_terminator(body);
        }
    }

    /// A create, delete or setData.
    fn op_record(&mut self, record: &mut BytesMut) -> Op {
        let data = self.data();
        match self.random.below(20) {
            0..10 => {
                let op =
                    self.random
                        .pick(&[Op::Create, Op::Create, Op::Create2, Op::CreateContainer]);
                let request = CreateRequest {
                    path: self.sent_path(),
                    data: data.as_deref(),
                    acl: self.acl(),
                    flags: self.flags(),
                };
                request.encode(record);
                op
            }
            10 => {
                let request = CreateTtlRequest {
                    path: self.sent_path(),
                    data: data.as_deref(),
                    acl: self.acl(),
                    flags: self.random.pick(&[5, 5, 5, 6, 0, 4, 1, 9]),
                    ttl: self.random.pick(&[1, 20, 100, 0, -1, 1 << 40]),
                };
                request.encode(record);
                Op::CreateTtl
            }
            11..16 => {
                let request = DeleteRequest {
                    path: self.sent_path(),
                    version: self.version(),
                };
                request.encode(record);
                Op::Delete
            }
            _ => {
                let request = SetDataRequest {
                    path: self.sent_path(),
                    data: data.as_deref(),
                    version: self.version(),
                };
                request.encode(record);
                Op::SetData
            }
        }
    }

    fn sent_path(&mut self) -> Option<Cow<'static, str>> {
        match self.random.one_in(150) {
            true => None,
            false => Some(self.path().into()),
        }
    }

    fn path(&mut self) -> String {
        if self.random.one_in(25) {
            return self.random.pick(&ODD_PATHS).to_string();
        }
        let mut path = String::new();
        let mut depth = 3;
        if self.random.one_in(5) {
            path.push_str("/zookeeper/quota");
            depth = 2;
        }
        for _ in 0..=self.random.below(depth) {
            path.push('/');
            path.push_str(self.random.pick(&NAMES));
        }
        if path.starts_with("/zookeeper") && self.random.one_in(2) {
            path.push_str(self.random.pick(&["/zookeeper_limits", "/zookeeper_stats"]));
        }
        path
    }

    fn data(&mut self) -> Option<Vec<u8>> {
        match self.random.below(8) {
            0 => None,
            1..5 => Some(self.random.pick(&QUOTA_TEXTS).as_bytes().to_vec()),
            _ => Some(vec![b'x'; self.random.below(12)]),
        }
    }

    fn flags(&mut self) -> i32 {
        self.random
            .pick(&[0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 4, 5, 6, 7, -1])
    }

    fn version(&mut self) -> i32 {
        self.random.pick(&[-1, -1, -1, -1, 0, 0, 1, 2, -2])
    }

    fn acl(&mut self) -> Option<Vec<Acl<'static>>> {
        let open = acl(31, "world", "anyone");
        Some(match self.random.below(40) {
            0 => return None,
            1 => vec![],
            2 => vec![acl(1, "world", "anyone"), acl(31, "digest", "u:1")],
            3 => vec![acl(31, "auth", "")],
            4 => vec![acl(31, "ip", "127.0.0.0/8"), acl(31, "ip", "127.0.0.0/8")],
            5 => vec![acl(5, "ip", "10.0.0.1"), acl(26, "world", "anyone")],
            6 => vec![acl(0, "world", "anyone")],
            7 => vec![acl(31, "digest", "a:b:c")],
            8 => vec![open, acl(31, "nope", "x")],
            9 => {
                let mut entry = acl(31, "digest", "");
                entry.id.id = None;
                vec![open, entry]
            }
            10 => vec![acl(7, "auth", "x"), open, acl(7, "auth", "x")],
            _ => vec![open],
        })
    }

    fn identities(&mut self) -> Vec<Identity> {
        let address = self.random.pick(&["127.0.0.1", "127.9.9.9", "10.0.0.1"]);
        let mut identities = vec![Identity::new("ip", address)];
        for (chances, scheme, id) in [(3, "digest", "u:1"), (5, "digest", "v:2"), (5, "super", "")]
        {
            if self.random.one_in(chances) {
                identities.push(Identity::new(scheme, id));
            }
        }
        identities
    }
}

struct Raw<'a>(&'a [u8]);

impl Encode for Raw<'_> {
    fn encode(&self, out: &mut BytesMut) {
        out.extend_from_slice(self.0);
    }
}
