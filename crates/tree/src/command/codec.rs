//! Commands as bytes: what members exchange and what the log holds. `docs/storage-format.md` describes the
//! layout.

use bytes::{Buf, BufMut, BytesMut};

use super::{
    BATCH_HEADER_LEN, BATCH_VERSION, BATCH_VERSION_MIN, Command, CommandError, Origin,
    ReconfigFacts, Request, Switches,
};
use crate::identity::Identity;

const TAG_REQUEST: u8 = 1;
const TAG_OPEN: u8 = 2;
const TAG_RESUME: u8 = 3;
const TAG_EXPIRE: u8 = 4;
const TAG_REAP: u8 = 5;
const TAG_FOUND: u8 = 6;
const TAG_RECONFIG: u8 = 7;
const TAG_RECOVER: u8 = 8;
const TAG_ADD_PIECE: u8 = 9;
const TAG_DROP_PIECES: u8 = 10;
const TAG_RESTORE: u8 = 11;
/// As [`TAG_REQUEST`] and [`TAG_RECONFIG`], of a local session. Tags of their own: a program that does not know
/// such sessions must stop at them, as its verdict would be another.
const TAG_LOCAL_REQUEST: u8 = 12;
const TAG_LOCAL_RECONFIG: u8 = 13;

/// Length, tag: where the facts of an encoded [`Command::Reconfig`] are.
const FACTS_AT: usize = 4 + 1;

impl Command<'_> {
    /// Appends the command with its length.
    pub fn encode(&self, out: &mut BytesMut) {
        let start = out.len();
        out.put_u32(0);
        match self {
            Command::Request(request) => {
                out.reserve(64 + request.body.len());
                out.put_u8(match request.local {
                    false => TAG_REQUEST,
                    true => TAG_LOCAL_REQUEST,
                });
                request.encode(out);
            }
            Command::OpenSession {
                origin,
                session,
                timeout_ms,
            } => {
                put_session(out, TAG_OPEN, *origin, *session, *timeout_ms);
            }
            Command::ResumeSession {
                origin,
                session,
                timeout_ms,
                password,
            } => {
                put_session(out, TAG_RESUME, *origin, *session, *timeout_ms);
                out.put_slice(password);
            }
            Command::ExpireSession {
                session,
                generation,
            } => {
                out.put_u8(TAG_EXPIRE);
                out.put_i64(*session);
                out.put_u64(*generation);
            }
            Command::Reap {
                path,
                never_used_ms,
            } => {
                out.put_u8(TAG_REAP);
                out.put_i64(*never_used_ms);
                out.put_slice(path.as_bytes());
            }
            Command::Found {
                cluster,
                secret,
                config,
            } => {
                out.put_u8(TAG_FOUND);
                out.put_u64(*cluster);
                out.put_slice(secret);
                out.put_slice(config.as_bytes());
            }
            Command::Reconfig { request, facts } => {
                out.put_u8(match request.local {
                    false => TAG_RECONFIG,
                    true => TAG_LOCAL_RECONFIG,
                });
                out.put_u8(facts.bits());
                request.encode(out);
            }
            Command::Recover { cluster, config } => {
                out.put_u8(TAG_RECOVER);
                out.put_u64(*cluster);
                out.put_slice(config.as_bytes());
            }
            Command::AddPiece {
                origin,
                restore,
                number,
                bytes,
            } => {
                out.reserve(64 + bytes.len());
                out.put_u8(TAG_ADD_PIECE);
                put_origin(out, *origin);
                out.put_u64(*restore);
                out.put_u32(*number);
                out.put_slice(bytes);
            }
            Command::DropPieces { origin, restore } => {
                out.put_u8(TAG_DROP_PIECES);
                put_origin(out, *origin);
                out.put_u64(*restore);
            }
            Command::Restore {
                origin,
                restore,
                sum,
            } => {
                out.put_u8(TAG_RESTORE);
                put_origin(out, *origin);
                out.put_u64(*restore);
                out.put_u32(sum.0);
                out.put_u64(sum.1);
                out.put_u64(sum.2);
            }
        }
        let length = (out.len() - start - 4) as u32;
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }

    /// Who waits for the outcome.
    pub fn origin(&self) -> Origin {
        match self {
            Command::Request(request) | Command::Reconfig { request, .. } => request.origin,
            Command::OpenSession { origin, .. }
            | Command::ResumeSession { origin, .. }
            | Command::AddPiece { origin, .. }
            | Command::DropPieces { origin, .. }
            | Command::Restore { origin, .. } => *origin,
            Command::ExpireSession { .. }
            | Command::Reap { .. }
            | Command::Found { .. }
            | Command::Recover { .. } => Origin::default(),
        }
    }
}

fn put_session(out: &mut BytesMut, tag: u8, origin: Origin, session: i64, timeout_ms: i32) {
    out.put_u8(tag);
    put_origin(out, origin);
    out.put_i64(session);
    out.put_i32(timeout_ms);
}

fn put_origin(out: &mut BytesMut, origin: Origin) {
    out.put_u64(origin.member);
    out.put_u64(origin.connection);
}

impl ReconfigFacts {
    fn bits(self) -> u8 {
        u8::from(self.in_progress) | u8::from(self.quorum_synced) << 1
    }

    fn from_bits(bits: u8) -> ReconfigFacts {
        ReconfigFacts {
            in_progress: bits & 1 != 0,
            quorum_synced: bits & 2 != 0,
        }
    }
}

/// Whether encoded commands begin with a [`Command::Reconfig`].
pub fn is_reconfig(commands: &[u8]) -> bool {
    matches!(commands.get(4), Some(&(TAG_RECONFIG | TAG_LOCAL_RECONFIG)))
}

/// Overwrites the facts of the [`Command::Reconfig`] that encoded commands begin with; nothing happens to
/// another command.
pub fn set_reconfig_facts(commands: &mut [u8], facts: ReconfigFacts) {
    if is_reconfig(commands)
        && let Some(byte) = commands.get_mut(FACTS_AT)
    {
        *byte = facts.bits();
    }
}

/// Who waits for the first of several encoded commands; nobody, if it is no command of a client.
pub fn first_origin(commands: &[u8]) -> Origin {
    let at = match commands.get(4) {
        Some(
            &(TAG_REQUEST | TAG_LOCAL_REQUEST | TAG_OPEN | TAG_RESUME | TAG_ADD_PIECE
            | TAG_DROP_PIECES | TAG_RESTORE),
        ) => 5,
        Some(&(TAG_RECONFIG | TAG_LOCAL_RECONFIG)) => FACTS_AT + 1,
        _ => return Origin::default(),
    };
    let mut cursor = Cursor(commands.get(at..).unwrap_or_default());
    cursor.origin().unwrap_or_default()
}

impl Switches {
    fn bits(self) -> u8 {
        u8::from(self.skip_acl)
            | u8::from(self.enforce_quota) << 1
            | u8::from(self.reconfig_enabled) << 2
            | u8::from(self.standalone_enabled) << 3
            | u8::from(self.x509) << 4
            | u8::from(self.sasl) << 5
            | u8::from(self.without_digest) << 6
            | u8::from(self.without_ttl) << 7
    }

    fn from_bits(bits: u8) -> Switches {
        Switches {
            skip_acl: bits & 1 != 0,
            enforce_quota: bits & 2 != 0,
            reconfig_enabled: bits & 4 != 0,
            standalone_enabled: bits & 8 != 0,
            x509: bits & 16 != 0,
            sasl: bits & 32 != 0,
            without_digest: bits & 64 != 0,
            without_ttl: bits & 128 != 0,
        }
    }
}

impl Request<'_> {
    fn encode(&self, out: &mut BytesMut) {
        put_origin(out, self.origin);
        out.put_i64(self.session);
        out.put_u64(self.generation);
        out.put_u8(self.switches.bits());
        out.put_u16(self.identities.len() as u16);
        for identity in &self.identities {
            put_text(out, &identity.scheme);
            put_text(out, &identity.id);
        }
        out.put_i32(self.op);
        out.put_slice(self.body);
    }
}

fn put_text(out: &mut BytesMut, text: &str) {
    out.put_u32(text.len() as u32);
    out.put_slice(text.as_bytes());
}

/// Starts a batch; commands made by [`Command::encode`] are appended behind it.
pub fn start_batch(time_ms: i64, out: &mut BytesMut) {
    out.put_u8(BATCH_VERSION);
    out.put_i64(time_ms);
}

/// The commands of one log entry, decoded one by one.
#[derive(Debug, Clone)]
pub struct Batch<'a> {
    /// Wall time of the leader, milliseconds since 1970.
    pub time_ms: i64,
    rest: &'a [u8],
    known: Known<'a>,
}

/// The identities of the last request, as they are encoded and, if they were given back, decoded: a pipeline of one
/// client has the same in every request.
#[derive(Debug, Clone, Default)]
struct Known<'a> {
    bytes: &'a [u8],
    identities: Vec<Identity>,
}

impl<'a> Known<'a> {
    /// Reads so many identities.
    fn read(
        &mut self,
        cursor: &mut Cursor<'a>,
        count: usize,
    ) -> Result<Vec<Identity>, CommandError> {
        let start = cursor.0;
        for _ in 0..2 * count {
            cursor.counted()?;
        }
        let bytes = &start[..start.len() - cursor.0.len()];
        let identities = std::mem::take(&mut self.identities);
        if bytes == self.bytes && identities.len() == count {
            return Ok(identities);
        }
        self.bytes = bytes;
        let mut cursor = Cursor(bytes);
        let mut identities = Vec::with_capacity(count.min(64));
        for _ in 0..count {
            let scheme = cursor.text()?;
            identities.push(Identity::new(scheme, cursor.text()?));
        }
        Ok(identities)
    }
}

impl<'a> Batch<'a> {
    /// Reads the header of an entry.
    pub fn open(mut bytes: &'a [u8]) -> Result<Batch<'a>, CommandError> {
        if bytes.len() < BATCH_HEADER_LEN {
            return Err(CommandError::Truncated);
        }
        let version = bytes.get_u8();
        if !(BATCH_VERSION_MIN..=BATCH_VERSION).contains(&version) {
            return Err(CommandError::Version(version));
        }
        let time_ms = bytes.get_i64();
        Ok(Batch {
            time_ms,
            rest: bytes,
            known: Known::default(),
        })
    }

    /// Lets the next command be used, as [`Iterator::next`] gives it, and keeps what the one behind it may need.
    pub fn next_with<T>(
        &mut self,
        take: impl FnOnce(&Command<'a>) -> T,
    ) -> Option<Result<T, CommandError>> {
        let command = match self.next()? {
            Ok(command) => command,
            Err(error) => return Some(Err(error)),
        };
        let outcome = take(&command);
        if let Command::Request(request) = command {
            self.known.identities = request.identities;
        }
        Some(Ok(outcome))
    }

    /// How many commands are left, told by their lengths alone; those behind damage are not counted.
    pub fn count_whole(&self) -> usize {
        let mut rest = self.rest;
        let mut count = 0;
        while let Some((length, behind)) = rest.split_first_chunk::<4>()
            && let Some(behind) = behind.get(u32::from_be_bytes(*length) as usize..)
        {
            rest = behind;
            count += 1;
        }
        count
    }
}

/// Cuts the first of several encoded commands off and decodes it: what [`Command::encode`] made, without
/// the header of a batch. `None` when nothing is left.
pub fn decode_first<'a>(commands: &mut &'a [u8]) -> Option<Result<Command<'a>, CommandError>> {
    let mut batch = Batch {
        time_ms: 0,
        rest: commands,
        known: Known::default(),
    };
    let command = batch.next();
    *commands = batch.rest;
    command
}

impl<'a> Iterator for Batch<'a> {
    type Item = Result<Command<'a>, CommandError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let Some((length, rest)) = self.rest.split_first_chunk::<4>() else {
            self.rest = &[];
            return Some(Err(CommandError::Truncated));
        };
        let length = u32::from_be_bytes(*length) as usize;
        let Some((command, rest)) = rest.split_at_checked(length) else {
            self.rest = &[];
            return Some(Err(CommandError::Truncated));
        };
        self.rest = rest;
        Some(decode(command, &mut self.known))
    }
}

fn decode<'a>(bytes: &'a [u8], known: &mut Known<'a>) -> Result<Command<'a>, CommandError> {
    let mut cursor = Cursor(bytes);
    match cursor.u8()? {
        tag @ (TAG_REQUEST | TAG_LOCAL_REQUEST) => {
            let local = tag == TAG_LOCAL_REQUEST;
            decode_request(cursor, local, known).map(Command::Request)
        }
        TAG_OPEN => Ok(Command::OpenSession {
            origin: cursor.origin()?,
            session: cursor.u64()? as i64,
            timeout_ms: cursor.u32()? as i32,
        }),
        TAG_RESUME => Ok(Command::ResumeSession {
            origin: cursor.origin()?,
            session: cursor.u64()? as i64,
            timeout_ms: cursor.u32()? as i32,
            password: cursor.array()?,
        }),
        TAG_EXPIRE => Ok(Command::ExpireSession {
            session: cursor.u64()? as i64,
            generation: cursor.u64()?,
        }),
        TAG_REAP => Ok(Command::Reap {
            never_used_ms: cursor.u64()? as i64,
            path: cursor.last_text()?,
        }),
        TAG_FOUND => Ok(Command::Found {
            cluster: cursor.u64()?,
            secret: cursor.array()?,
            config: cursor.last_text()?,
        }),
        tag @ (TAG_RECONFIG | TAG_LOCAL_RECONFIG) => {
            let facts = ReconfigFacts::from_bits(cursor.u8()?);
            let request = decode_request(cursor, tag == TAG_LOCAL_RECONFIG, known)?;
            Ok(Command::Reconfig { request, facts })
        }
        TAG_RECOVER => Ok(Command::Recover {
            cluster: cursor.u64()?,
            config: cursor.last_text()?,
        }),
        TAG_ADD_PIECE => Ok(Command::AddPiece {
            origin: cursor.origin()?,
            restore: cursor.u64()?,
            number: cursor.u32()?,
            bytes: cursor.0,
        }),
        TAG_DROP_PIECES => Ok(Command::DropPieces {
            origin: cursor.origin()?,
            restore: cursor.u64()?,
        }),
        TAG_RESTORE => Ok(Command::Restore {
            origin: cursor.origin()?,
            restore: cursor.u64()?,
            sum: (cursor.u32()?, cursor.u64()?, cursor.u64()?),
        }),
        _ => Err(CommandError::Unknown),
    }
}

fn decode_request<'a>(
    mut cursor: Cursor<'a>,
    local: bool,
    known: &mut Known<'a>,
) -> Result<Request<'a>, CommandError> {
    let origin = cursor.origin()?;
    let session = cursor.u64()? as i64;
    let generation = cursor.u64()?;
    let switches = cursor.u8()?;
    let count = usize::from(u16::from_be_bytes(cursor.array()?));
    let identities = known.read(&mut cursor, count)?;
    Ok(Request {
        origin,
        session,
        generation,
        local,
        switches: Switches::from_bits(switches),
        identities,
        op: cursor.u32()? as i32,
        body: cursor.0,
    })
}

struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], CommandError> {
        let (head, tail) = self
            .0
            .split_at_checked(count)
            .ok_or(CommandError::Truncated)?;
        self.0 = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], CommandError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn u8(&mut self) -> Result<u8, CommandError> {
        Ok(self.take(1)?[0])
    }

    fn u32(&mut self) -> Result<u32, CommandError> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, CommandError> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    fn text(&mut self) -> Result<&'a str, CommandError> {
        std::str::from_utf8(self.counted()?).map_err(|_| CommandError::Unknown)
    }

    /// Bytes behind their number.
    fn counted(&mut self) -> Result<&'a [u8], CommandError> {
        let length = self.u32()? as usize;
        self.take(length)
    }

    /// What is left, as text.
    fn last_text(&self) -> Result<&'a str, CommandError> {
        std::str::from_utf8(self.0).map_err(|_| CommandError::Unknown)
    }

    fn origin(&mut self) -> Result<Origin, CommandError> {
        Ok(Origin {
            member: self.u64()?,
            connection: self.u64()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use quenda_proto::connect::PASSWORD_LEN;

    use super::*;

    const ORIGIN: Origin = Origin {
        member: 1,
        connection: 7,
    };

    fn request() -> Request<'static> {
        Request {
            origin: ORIGIN,
            session: 0x0100_0000_0000_0001,
            generation: 3,
            local: false,
            switches: Switches {
                skip_acl: false,
                enforce_quota: true,
                reconfig_enabled: false,
                standalone_enabled: true,
                x509: true,
                sasl: false,
                without_digest: true,
                without_ttl: true,
            },
            identities: vec![Identity::new("ip", "127.0.0.1")],
            op: 1,
            body: b"body",
        }
    }

    fn local_request() -> Request<'static> {
        Request {
            local: true,
            ..request()
        }
    }

    #[test]
    fn whose_identities_are_decoded_does_not_depend_on_the_request_in_front() {
        let of = |ids: &[&str]| {
            let identities = ids.iter().map(|id| Identity::new("ip", id));
            Command::Request(Request {
                identities: identities.collect(),
                ..request()
            })
        };
        let commands = [
            of(&["a"]),
            of(&["a"]),
            of(&["b"]),
            of(&[]),
            of(&["b", "a"]),
            of(&["b"]),
            Command::DropPieces {
                origin: ORIGIN,
                restore: 4,
            },
            of(&["b"]),
            of(&["b"]),
        ];
        let mut bytes = BytesMut::new();
        start_batch(1, &mut bytes);
        for command in &commands {
            command.encode(&mut bytes);
        }
        for plain in 0..commands.len() {
            let mut batch = Batch::open(&bytes).expect("a batch");
            for (number, command) in commands.iter().enumerate() {
                // Taken away, it is not there for the next.
                let same = match number == plain {
                    true => batch.next().map(|next| next.as_ref() == Ok(command)),
                    false => batch
                        .next_with(|next| next == command)
                        .map(|same| same == Ok(true)),
                };
                assert_eq!(same, Some(true), "{number} with {plain}");
            }
            assert_eq!(batch.next_with(|_| ()), None);
        }
    }

    fn commands() -> Vec<Command<'static>> {
        let origin = ORIGIN;
        vec![
            Command::Request(request()),
            Command::Request(local_request()),
            Command::Reconfig {
                request: local_request(),
                facts: ReconfigFacts::default(),
            },
            Command::OpenSession {
                origin,
                session: -5,
                timeout_ms: 4000,
            },
            Command::ResumeSession {
                origin,
                session: 5,
                timeout_ms: 4000,
                password: [7; PASSWORD_LEN],
            },
            Command::ExpireSession {
                session: 9,
                generation: 2,
            },
            Command::Reap {
                path: "/c",
                never_used_ms: 300_000,
            },
            Command::Found {
                cluster: 1,
                secret: [2; 32],
                config: "server.1=a:1:2;3\n",
            },
            Command::Reconfig {
                request: request(),
                facts: ReconfigFacts {
                    in_progress: true,
                    quorum_synced: false,
                },
            },
            Command::Recover {
                cluster: 9,
                config: "",
            },
            Command::AddPiece {
                origin,
                restore: 4,
                number: 2,
                bytes: b"piece",
            },
            Command::DropPieces { origin, restore: 4 },
            Command::Restore {
                origin,
                restore: 4,
                sum: (3, 1 << 20, u64::MAX),
            },
        ]
    }

    #[test]
    fn a_batch_gives_its_commands_back() {
        let mut out = BytesMut::new();
        start_batch(1234, &mut out);
        for command in commands() {
            command.encode(&mut out);
        }
        let batch = Batch::open(&out).expect("a header");
        assert_eq!(batch.time_ms, 1234);
        let read: Vec<_> = batch.map(|command| command.expect("a command")).collect();
        assert_eq!(read, commands());
    }

    #[test]
    fn the_leaders_facts_replace_those_of_the_first_command_alone() {
        let mut out = BytesMut::new();
        for command in commands() {
            command.encode(&mut out);
        }
        let mut rest = &out[..];
        let mut read = Vec::new();
        while !rest.is_empty() {
            let mut one = rest.to_vec();
            let is_ours = is_reconfig(&one);
            let facts = ReconfigFacts {
                in_progress: false,
                quorum_synced: true,
            };
            set_reconfig_facts(&mut one, facts);
            let before = decode_first(&mut rest).expect("a command");
            let after = decode_first(&mut &one[..]).expect("a command");
            match after {
                Ok(Command::Reconfig {
                    facts: stamped,
                    request: ref stamped_request,
                }) => {
                    assert!(is_ours);
                    let local = stamped_request.local;
                    let sent = Request { local, ..request() };
                    assert_eq!((stamped, stamped_request), (facts, &sent));
                    assert_eq!(first_origin(&one), ORIGIN);
                }
                after => {
                    assert!(!is_ours);
                    assert_eq!(after, before);
                }
            }
            read.push(before.expect("a command"));
        }
        assert_eq!(read, commands());
        assert_eq!(decode_first(&mut rest), None);
        assert!(!is_reconfig(&[]) && !is_reconfig(&[0, 0, 0, 1]));
    }

    #[test]
    fn commands_are_counted_by_their_lengths() {
        let mut out = BytesMut::new();
        start_batch(0, &mut out);
        let count = |bytes: &[u8]| Batch::open(bytes).expect("a header").count_whole();
        assert_eq!(count(&out), 0);
        for command in commands() {
            command.encode(&mut out);
        }
        assert_eq!(count(&out), commands().len());
        assert_eq!(count(&out[..out.len() - 1]), commands().len() - 1);
    }

    #[test]
    fn every_truncation_is_an_error() {
        for command in commands() {
            let mut out = BytesMut::new();
            start_batch(0, &mut out);
            command.encode(&mut out);
            for end in BATCH_HEADER_LEN + 1..out.len() {
                let mut batch = Batch::open(&out[..end]).expect("a header");
                assert_eq!(batch.next(), Some(Err(CommandError::Truncated)));
            }
        }
    }
}
