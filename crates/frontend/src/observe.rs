//! What a connection notes of its requests, so that an operator can be told who loads the server.
//!
//! Sums by operation are exact. Paths are noted of every request while there are few, and of one among
//! [`Sampling::every`] beyond that; each such [`Sample`] says for how many it stands.

use quenda_proto::mode::CreateMode;
use quenda_proto::multi::{WriteOp, decode_writes};
use quenda_proto::{Op, Reader};

/// Bounds of the classes of latency, inclusive; what is longer is in a class of its own.
pub const LATENCY_BOUNDS_MS: [u32; 5] = [1, 5, 20, 100, 1000];

/// Longest piece of a path that is noted, in bytes.
const PATH_MAX: usize = 512;

/// Samples that are kept until they are taken. At the bound further ones are left out.
const SAMPLES_MAX: usize = 256;

/// Slow requests, and large values, that are named between two calls of `take`. Of more, the number is kept.
const NAMED_MAX: usize = 4;

/// Different times that are noted of requests which were held back. Beyond them all are as the last.
const WAITS_MAX: usize = 64;

/// Bytes of a request's length and header.
pub(crate) const HEADER_BYTES: usize = 12;

/// Samples in a second, beyond the exact ones, behind which they are so many times rarer.
const BUSY_SAMPLES: u32 = 128;
const BUSY_FACTOR: u32 = 8;

/// Samples at which it is time to take them.
const DUE_SAMPLES: usize = 64;

/// How long notes may wait to be taken, ms.
const DUE_MS: u64 = 1000;

/// Sums over requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests answered.
    pub requests: u64,
    /// Bytes of their frames.
    pub bytes_in: u64,
    /// Bytes of the replies.
    pub bytes_out: u64,
    /// Sum of the latencies.
    pub latency_total_ms: u64,
    /// The longest one.
    pub latency_max_ms: u32,
    /// Requests by class of latency, see [`LATENCY_BOUNDS_MS`].
    pub latency: [u64; LATENCY_BOUNDS_MS.len() + 1],
}

impl Tally {
    /// Adds `weight` requests like this one.
    pub fn add(&mut self, bytes_in: u64, bytes_out: u64, latency_ms: u32, weight: u64) {
        self.add_all(weight, bytes_in * weight, bytes_out * weight, latency_ms);
    }

    /// Adds requests of one latency, by the sums of their bytes.
    fn add_all(&mut self, requests: u64, bytes_in: u64, bytes_out: u64, latency_ms: u32) {
        self.requests += requests;
        self.bytes_in += bytes_in;
        self.bytes_out += bytes_out;
        self.latency_total_ms += u64::from(latency_ms) * requests;
        self.latency_max_ms = self.latency_max_ms.max(latency_ms);
        let class = LATENCY_BOUNDS_MS
            .iter()
            .position(|bound| latency_ms <= *bound);
        self.latency[class.unwrap_or(LATENCY_BOUNDS_MS.len())] += requests;
    }

    /// Adds the sums of others.
    pub fn merge(&mut self, other: &Tally) {
        self.requests += other.requests;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.latency_total_ms += other.latency_total_ms;
        self.latency_max_ms = self.latency_max_ms.max(other.latency_max_ms);
        for (sum, more) in self.latency.iter_mut().zip(other.latency) {
            *sum += more;
        }
    }
}

/// What a sample is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A whole request.
    Whole,
    /// One operation of a multi, which is a sample of its own. Only its path counts.
    OfMulti,
}

/// A request that stands for several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// The operation.
    pub op: Op,
    /// A whole request or a part of one.
    pub part: Part,
    /// Whether it creates a znode with a number behind its name.
    pub sequential: bool,
    /// For how many requests it stands.
    pub weight: u32,
    /// Bytes of its frame.
    pub bytes_in: u32,
    /// Bytes of its reply.
    pub bytes_out: u32,
    /// Its latency.
    pub latency_ms: u32,
    path: (u32, u32),
}

/// A request that took long, or carries a large value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The operation.
    pub op: Op,
    /// The path, if it has one.
    pub path: Box<str>,
    /// Bytes of its frame.
    pub bytes_in: u64,
    /// Monotonic time at which it was read.
    pub received_ms: u64,
    /// Monotonic time at which it was answered; for a large value the time at which it was read.
    pub answered_ms: u64,
}

/// What was noted since the last call of [`Connection::take_observed`](crate::Connection::take_observed).
#[derive(Debug, Default)]
pub struct Observed {
    /// Exact sums by operation.
    pub ops: Vec<(Op, Tally)>,
    /// What is to be added to them.
    run: Run,
    /// Samples.
    pub samples: Vec<Sample>,
    paths: Vec<u8>,
    /// Events of watches that were sent.
    pub events: u64,
    /// Bytes of them.
    pub event_bytes: u64,
    /// Requests that took longer than [`Observation::slow_ms`]; the first ones.
    pub slow: Vec<Named>,
    /// How many there were.
    pub slow_count: u64,
    /// Writes with more data than [`Observation::value_bytes`]; the first ones.
    pub large: Vec<Named>,
    /// How many there were.
    pub large_count: u64,
    /// Requests that had waited too long and were answered with ThrottledOp.
    pub throttled_count: u64,
    /// Requests that were taken although they had waited for longer than their session lasts.
    pub stale_count: u64,
    /// How long requests waited that [`Pause::Throttled`](crate::Pause::Throttled) had held back, ms, and how many so.
    pub throttle_waits: Vec<(u64, u32)>,
    /// Monotonic time of the first note.
    pub first_ms: u64,
    /// Monotonic time of the last note.
    pub last_ms: u64,
}

impl Observed {
    /// The path of a sample: its beginning, if it is very long; empty if the request has none.
    pub fn path(&self, sample: &Sample) -> std::borrow::Cow<'_, str> {
        let (start, end) = sample.path;
        String::from_utf8_lossy(&self.paths[start as usize..end as usize])
    }

    /// Adds what was answered last to the sums.
    fn end_run(&mut self) {
        let run = std::mem::take(&mut self.run);
        if let Some(op) = run.op {
            let (bytes_in, bytes_out) = (run.bytes_in, run.bytes_out);
            self.tally(op)
                .add_all(run.requests, bytes_in, bytes_out, run.latency_ms);
        }
    }

    fn tally(&mut self, op: Op) -> &mut Tally {
        let place = self.ops.iter().position(|(noted, _)| *noted == op);
        let place = place.unwrap_or_else(|| {
            self.ops.push((op, Tally::default()));
            self.ops.len() - 1
        });
        &mut self.ops[place].1
    }

    fn sample(&mut self, sample: Sample) {
        if self.samples.len() < SAMPLES_MAX {
            self.samples.push(sample);
        }
    }

    fn push_path(&mut self, path: &[u8]) -> (u32, u32) {
        let start = self.paths.len();
        if self.samples.len() < SAMPLES_MAX {
            self.paths.extend_from_slice(noted_part(path));
        }
        (start as u32, self.paths.len() as u32)
    }
}

/// What is worth a note of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observation {
    /// Latency above which a request is named, ms. Default: never.
    pub slow_ms: u64,
    /// Bytes of a write's frame above which it is named. Default: never.
    pub value_bytes: usize,
}

impl Default for Observation {
    fn default() -> Self {
        Observation {
            slow_ms: u64::MAX,
            value_bytes: usize::MAX,
        }
    }
}

/// How many requests are noted with their path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampling {
    /// So many in a second all of them.
    pub exact: u32,
    /// Then one among so many; at least 1.
    pub every: u32,
}

impl Default for Sampling {
    fn default() -> Self {
        Sampling {
            exact: 64,
            every: 16,
        }
    }
}

/// One request as it was answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answered {
    pub op: Op,
    pub sequential: bool,
    pub bytes_in: usize,
    pub bytes_out: usize,
    pub received_ms: u64,
    pub now_ms: u64,
}

impl Answered {
    fn latency_ms(&self) -> u64 {
        self.now_ms.saturating_sub(self.received_ms)
    }

    /// The same, where very long is long enough.
    fn latency(&self) -> u32 {
        u32::try_from(self.latency_ms()).unwrap_or(u32::MAX)
    }
}

/// Requests of one kind that were answered one behind the other. Most come so, and cost four sums then.
#[derive(Debug, Default)]
struct Run {
    op: Option<Op>,
    latency_ms: u32,
    /// Whether others of the kind are only counted until the time or the samples ask for more.
    is_plain: bool,
    requests: u64,
    bytes_in: u64,
    bytes_out: u64,
}

impl Run {
    fn is_of(&self, answered: &Answered) -> bool {
        self.op == Some(answered.op) && self.latency_ms == answered.latency()
    }

    fn add(&mut self, answered: &Answered) {
        self.requests += 1;
        self.bytes_in += answered.bytes_in as u64;
        self.bytes_out += answered.bytes_out as u64;
    }
}

/// The notes of one connection, and when to make one.
#[derive(Debug)]
pub(crate) struct Observer {
    /// Apart, and none while there is nothing in it: most connections are idle.
    noted: Option<Box<Observed>>,
    sampling: Sampling,
    exact_left: u32,
    /// When the second began that `exact_left` is for.
    second_ms: u64,
    /// Samples in this second before they become rarer.
    samples_left: u32,
    skip: u32,
    /// Xorshift; never 0.
    dice: u32,
}

impl Observer {
    /// `seed` decides which requests become samples.
    pub fn new(seed: u64) -> Observer {
        let sampling = Sampling::default();
        Observer {
            noted: None,
            sampling,
            exact_left: sampling.exact,
            second_ms: 0,
            samples_left: BUSY_SAMPLES,
            skip: 0,
            dice: (seed as u32 ^ (seed >> 32) as u32).wrapping_mul(0x9e37_79b9) | 1,
        }
    }

    /// Whether the next request is none of the samples, if it comes within the second; it is counted then.
    fn is_skipped(&mut self) -> bool {
        let is_skipped = self.exact_left == 0 && self.skip > 0;
        self.skip -= u32::from(is_skipped);
        is_skipped
    }

    /// For how many requests the next one stands; 0 if it is none of the samples.
    fn next_weight(&mut self, now_ms: u64) -> u32 {
        if now_ms.saturating_sub(self.second_ms) >= DUE_MS {
            self.second_ms = now_ms;
            self.exact_left = self.sampling.exact;
            self.samples_left = BUSY_SAMPLES;
        }
        if self.exact_left > 0 {
            self.exact_left -= 1;
            return 1;
        }
        if self.is_skipped() {
            return 0;
        }
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 17;
        self.dice ^= self.dice << 5;
        let every = match self.samples_left {
            0 => self.sampling.every.max(1) * BUSY_FACTOR,
            _ => self.sampling.every.max(1),
        };
        self.samples_left = self.samples_left.saturating_sub(1);
        // As often below as above the mean, so that no period in the client's requests is met again and again.
        self.skip = self.dice % (2 * every - 1);
        every
    }

    /// The notes, to add one at this time.
    fn noted(&mut self, now_ms: u64) -> &mut Observed {
        let noted = self.noted.get_or_insert_default();
        if noted.last_ms == 0 {
            noted.first_ms = now_ms;
        }
        noted.last_ms = now_ms;
        noted
    }

    /// A request was answered; `path` gives the path it names.
    #[inline]
    pub fn answered<'a>(
        &mut self,
        answered: &Answered,
        path: impl FnOnce() -> &'a [u8],
        settings: &Observation,
    ) {
        if self.goes_on(answered)
            && self.is_skipped()
            && let Some(noted) = &mut self.noted
        {
            noted.run.add(answered);
        } else {
            self.note(answered, path(), settings);
        }
    }

    /// Whether it is like the one before in all that decides what is noted of it.
    fn goes_on(&self, answered: &Answered) -> bool {
        self.noted.as_ref().is_some_and(|noted| {
            noted.run.is_plain && noted.last_ms == answered.now_ms && noted.run.is_of(answered)
        })
    }

    #[inline(never)]
    fn note(&mut self, answered: &Answered, path: &[u8], settings: &Observation) {
        let weight = match path {
            [] => 0,
            _ => self.next_weight(answered.now_ms),
        };
        let is_slow = answered.latency_ms() > settings.slow_ms;
        let noted = self.noted(answered.now_ms);
        if !noted.run.is_of(answered) {
            noted.end_run();
            noted.run.op = Some(answered.op);
            noted.run.latency_ms = answered.latency();
        }
        noted.run.is_plain = !path.is_empty() && !is_slow;
        noted.run.add(answered);
        if is_slow {
            noted.slow_count += 1;
            name(&mut noted.slow, answered, path);
        }
        if weight > 0 {
            let path = noted.push_path(path);
            noted.sample(Sample {
                op: answered.op,
                part: Part::Whole,
                sequential: answered.sequential,
                weight,
                bytes_in: answered.bytes_in as u32,
                bytes_out: u32::try_from(answered.bytes_out).unwrap_or(u32::MAX),
                latency_ms: answered.latency(),
                path,
            });
        }
    }

    /// A write was read.
    pub fn write_came(&mut self, op: Op, body: &[u8], now_ms: u64, settings: &Observation) {
        if body.len() > settings.value_bytes {
            let answered = Answered {
                op,
                sequential: false,
                bytes_in: body.len(),
                bytes_out: 0,
                received_ms: now_ms,
                now_ms,
            };
            let noted = self.noted(now_ms);
            noted.large_count += 1;
            name(&mut noted.large, &answered, path_of(op, body));
        }
        if op == Op::Multi {
            let weight = self.next_weight(now_ms);
            if weight > 0 {
                self.note_parts(body, weight, now_ms);
            }
        }
    }

    fn note_parts(&mut self, body: &[u8], weight: u32, now_ms: u64) {
        let operations = decode_writes(&mut Reader::new(body)).unwrap_or_default();
        let counts = |flags| CreateMode::from_flags(flags).is_some_and(CreateMode::is_sequential);
        let noted = self.noted(now_ms);
        for operation in &operations {
            let (op, path, sequential) = match operation {
                WriteOp::Create(op, request) => (*op, &request.path, counts(request.flags)),
                WriteOp::CreateTtl(request) => {
                    (Op::CreateTtl, &request.path, counts(request.flags))
                }
                WriteOp::Delete(request) => (Op::Delete, &request.path, false),
                WriteOp::SetData(request) => (Op::SetData, &request.path, false),
                WriteOp::Check(_) => continue,
            };
            let path = noted.push_path(path.as_deref().unwrap_or_default().as_bytes());
            noted.sample(Sample {
                op,
                part: Part::OfMulti,
                sequential,
                weight,
                bytes_in: 0,
                bytes_out: 0,
                latency_ms: 0,
                path,
            });
        }
    }

    pub fn throttled(&mut self, now_ms: u64) {
        self.noted(now_ms).throttled_count += 1;
    }

    /// A request was held back for so long.
    pub fn held_back(&mut self, waited_ms: u64, now_ms: u64) {
        let waits = &mut self.noted(now_ms).throttle_waits;
        let is_full = waits.len() >= WAITS_MAX;
        match waits.last_mut() {
            Some((known, count)) if *known == waited_ms || is_full => *count += 1,
            _ => waits.push((waited_ms, 1)),
        }
    }

    pub fn stale(&mut self, now_ms: u64) {
        self.noted(now_ms).stale_count += 1;
    }

    pub fn event(&mut self, bytes: usize) {
        let noted = self.noted.get_or_insert_default();
        noted.events += 1;
        noted.event_bytes += bytes as u64;
    }

    /// Whether the notes are to be taken. Events alone get their time here.
    pub fn is_due(&mut self, now_ms: u64) -> bool {
        if self.noted.is_none() {
            return false;
        }
        let noted = self.noted(now_ms);
        noted.samples.len() >= DUE_SAMPLES
            || noted.slow_count + noted.large_count > 0
            || now_ms.saturating_sub(noted.first_ms) >= DUE_MS
    }

    pub fn take(&mut self, sampling: Sampling, now_ms: u64) -> Option<Box<Observed>> {
        self.sampling = sampling;
        self.exact_left = self.exact_left.min(sampling.exact);
        let mut noted = self.noted.take()?;
        noted.end_run();
        if noted.last_ms == 0 {
            noted.last_ms = now_ms;
        }
        Some(noted)
    }
}

fn name(named: &mut Vec<Named>, answered: &Answered, path: &[u8]) {
    if named.len() < NAMED_MAX {
        named.push(Named {
            op: answered.op,
            path: String::from_utf8_lossy(noted_part(path)).into(),
            bytes_in: answered.bytes_in as u64,
            received_ms: answered.received_ms,
            answered_ms: answered.now_ms,
        });
    }
}

/// The piece of a path that is noted. It does not end within a character.
pub(crate) fn noted_part(path: &[u8]) -> &[u8] {
    if path.len() <= PATH_MAX {
        return path;
    }
    let is_boundary = |end: &usize| path[*end] & 0xc0 != 0x80;
    let end = (PATH_MAX - 3..=PATH_MAX).rev().find(is_boundary);
    &path[..end.unwrap_or(PATH_MAX)]
}

/// The path that a request names first, as its bytes; empty if it names none.
pub(crate) fn path_of(op: Op, body: &[u8]) -> &[u8] {
    /// Bytes of the header of an operation within a multi.
    const HEADER: usize = 9;
    let at = match op {
        Op::Create
        | Op::Create2
        | Op::CreateContainer
        | Op::CreateTtl
        | Op::Delete
        | Op::Exists
        | Op::GetData
        | Op::SetData
        | Op::GetAcl
        | Op::SetAcl
        | Op::GetChildren
        | Op::GetChildren2
        | Op::GetAllChildrenNumber
        | Op::Sync
        | Op::AddWatch
        | Op::CheckWatches
        | Op::RemoveWatches => 0,
        Op::Multi | Op::MultiRead => HEADER,
        Op::GetEphemerals
        | Op::CreateSession
        | Op::CloseSession
        | Op::Ping
        | Op::Check
        | Op::Reconfig
        | Op::DeleteContainer
        | Op::Auth
        | Op::Sasl
        | Op::SetWatches
        | Op::SetWatches2
        | Op::WhoAmI => return &[],
    };
    let text = || {
        let (length, rest) = body.get(at..)?.split_first_chunk::<4>()?;
        rest.get(..usize::try_from(i32::from_be_bytes(*length)).ok()?)
    };
    text()
        .filter(|path| path.first() == Some(&b'/'))
        .unwrap_or_default()
}

/// Whether a create puts a number behind the name; its flags are the last field, but for a TTL.
pub(crate) fn is_sequential(op: Op, body: &[u8]) -> bool {
    let flags_end = match op {
        Op::Create | Op::Create2 => body.len(),
        Op::CreateTtl => body.len().saturating_sub(8),
        _ => return false,
    };
    let flags = body[..flags_end].last_chunk::<4>();
    let mode = flags.and_then(|flags| CreateMode::from_flags(i32::from_be_bytes(*flags)));
    mode.is_some_and(CreateMode::is_sequential)
}
