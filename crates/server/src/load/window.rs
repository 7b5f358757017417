//! The last minute, in slots of five seconds.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use quenda_frontend::{Observed, Part, Sample, Tally};
use quenda_proto::Op;
use quenda_proto::op::OpKind;

use super::Sketch;
use crate::limits::{LOAD_SLOT_MS, LOAD_SLOTS, LOAD_TABLE_MAX};

/// Bytes that weigh as much as a request, when the heaviest are looked for.
const BYTES_OF_A_REQUEST: u64 = 4096;

/// A session's sums, and where its client is.
#[derive(Debug, Clone, Copy, Default)]
pub struct SessionLoad {
    /// The client, as it was seen last.
    pub client: Option<SocketAddr>,
    /// The sums.
    pub tally: Tally,
}

/// What was done to a znode.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hits {
    /// How often, about.
    pub count: u64,
    /// Bytes that came or went with it, about.
    pub bytes: u64,
    /// Whether it was done with sequence numbers: creates below this path.
    pub sequential: u64,
    /// Who did it last: session and client.
    pub last: Option<(i64, SocketAddr)>,
}

/// Some seconds.
#[derive(Debug)]
pub struct Slot {
    /// Which one since the start; `u64::MAX` for one that was never used.
    number: u64,
    total: Tally,
    events: u64,
    event_bytes: u64,
    ops: Vec<(Op, Tally)>,
    clients: Sketch<IpAddr, Tally>,
    sessions: Sketch<i64, SessionLoad>,
    prefixes: Sketch<Arc<str>, Tally>,
    read: Sketch<Arc<str>, Hits>,
    written: Sketch<Arc<str>, Hits>,
    /// Znodes below which others are created.
    parents: Sketch<Arc<str>, Hits>,
    /// Requests with a path, and samples that were taken of them.
    sampled: (u64, u64),
}

impl Slot {
    fn new() -> Slot {
        Slot {
            number: u64::MAX,
            total: Tally::default(),
            events: 0,
            event_bytes: 0,
            ops: Vec::new(),
            clients: Sketch::new(LOAD_TABLE_MAX),
            sessions: Sketch::new(LOAD_TABLE_MAX),
            prefixes: Sketch::new(LOAD_TABLE_MAX),
            read: Sketch::new(LOAD_TABLE_MAX),
            written: Sketch::new(LOAD_TABLE_MAX),
            parents: Sketch::new(LOAD_TABLE_MAX),
            sampled: (0, 0),
        }
    }

    fn begin(&mut self, number: u64) {
        self.number = number;
        self.total = Tally::default();
        self.events = 0;
        self.event_bytes = 0;
        self.ops.clear();
        self.clients.clear();
        self.sessions.clear();
        self.prefixes.clear();
        self.read.clear();
        self.written.clear();
        self.parents.clear();
        self.sampled = (0, 0);
    }
}

/// Whose requests they are.
#[derive(Debug, Clone, Copy)]
pub struct Requester {
    /// The client.
    pub client: SocketAddr,
    /// Its session, if it has one.
    pub session: Option<i64>,
}

/// A minute of slots, used in turn.
#[derive(Debug)]
pub struct Window {
    slots: Vec<Slot>,
    /// How many components of a path are its prefix.
    depth: usize,
}

/// The sums of a whole minute.
#[derive(Debug, Default)]
pub struct Minute {
    /// Over all requests.
    pub total: Tally,
    /// Events of watches that were sent.
    pub events: u64,
    /// Bytes of them.
    pub event_bytes: u64,
    /// By operation.
    pub ops: Vec<(Op, Tally)>,
    /// By address.
    pub clients: Vec<Summed<IpAddr, Tally>>,
    /// By session.
    pub sessions: Vec<Summed<i64, SessionLoad>>,
    /// By the first components of the path.
    pub prefixes: Vec<Summed<Arc<str>, Tally>>,
    /// Znodes that are read.
    pub read: Vec<Summed<Arc<str>, Hits>>,
    /// Znodes that are written.
    pub written: Vec<Summed<Arc<str>, Hits>>,
    /// Znodes below which others are created.
    pub parents: Vec<Summed<Arc<str>, Hits>>,
    /// Requests with a path, and samples that were taken of them.
    pub sampled: (u64, u64),
}

/// One key over several slots.
#[derive(Debug, Clone)]
pub struct Summed<K, V> {
    /// The key.
    pub key: K,
    /// The most weight that was missed.
    pub missed: u64,
    /// What was counted.
    pub value: V,
}

impl Window {
    /// An empty one, that takes so many components of a path for its prefix.
    pub fn new(depth: usize) -> Window {
        Window {
            slots: (0..LOAD_SLOTS).map(|_| Slot::new()).collect(),
            depth,
        }
    }

    /// The slot of a moment, emptied if it was that of an earlier minute; `None` if the moment is over.
    fn slot(&mut self, now_ms: u64) -> Option<&mut Slot> {
        let number = now_ms / LOAD_SLOT_MS;
        let slot = &mut self.slots[(number % LOAD_SLOTS) as usize];
        if slot.number == u64::MAX || slot.number < number {
            slot.begin(number);
        }
        (slot.number == number).then_some(slot)
    }

    /// Adds what a connection has noted.
    pub fn add(&mut self, who: Requester, observed: &Observed) {
        let depth = self.depth;
        let Some(slot) = self.slot(observed.last_ms) else {
            return;
        };
        let mut sum = Tally::default();
        let mut with_path = 0;
        for (op, tally) in &observed.ops {
            sum.merge(tally);
            if has_path(*op) {
                with_path += tally.requests;
            }
            match slot.ops.iter_mut().find(|(known, _)| known == op) {
                Some((_, known)) => known.merge(tally),
                None => slot.ops.push((*op, *tally)),
            }
        }
        slot.total.merge(&sum);
        slot.events += observed.events;
        slot.event_bytes += observed.event_bytes;
        sum.bytes_out += observed.event_bytes;
        let weight = weight(sum.requests, sum.bytes_in + sum.bytes_out);
        let client = slot.clients.add(&who.client.ip(), |ip| *ip, weight);
        client.merge(&sum);
        if let Some(session) = who.session {
            let load = slot.sessions.add(&session, |id| *id, weight);
            load.client = Some(who.client);
            load.tally.merge(&sum);
        }
        slot.sampled.0 += with_path;
        for sample in &observed.samples {
            slot.add_sample(who, sample, &observed.path(sample), depth);
        }
    }

    /// The sums over the minute that ends now.
    pub fn minute(&self, now_ms: u64) -> Minute {
        let newest = now_ms / LOAD_SLOT_MS;
        let is_live = |slot: &&Slot| {
            slot.number != u64::MAX && slot.number <= newest && newest - slot.number < LOAD_SLOTS
        };
        let slots: Vec<&Slot> = self.slots.iter().filter(is_live).collect();
        Minute::of(&slots)
    }

    /// The sums of the slot before the one that runs now.
    pub fn last_slot(&self, now_ms: u64) -> Minute {
        let wanted = (now_ms / LOAD_SLOT_MS).checked_sub(1);
        let slot = self.slots.iter().filter(|slot| Some(slot.number) == wanted);
        Minute::of(&slot.collect::<Vec<_>>())
    }
}

impl Slot {
    fn add_sample(&mut self, who: Requester, sample: &Sample, path: &str, depth: usize) {
        if path.is_empty() {
            return;
        }
        let times = u64::from(sample.weight);
        let bytes = u64::from(sample.bytes_in) + u64::from(sample.bytes_out);
        let heavy = weight(times, bytes * times);
        let last = who.session.map(|session| (session, who.client));
        if sample.part == Part::Whole {
            self.sampled.1 += 1;
            let prefix = self
                .prefixes
                .add(prefix(path, depth), |path| path.into(), heavy);
            prefix.add(
                sample.bytes_in.into(),
                sample.bytes_out.into(),
                sample.latency_ms,
                times,
            );
        }
        let hit = |sketch: &mut Sketch<Arc<str>, Hits>, path: &str, weight: u64| {
            let hits = sketch.add(path, |path| path.into(), weight);
            hits.count += times;
            hits.bytes += bytes * times;
            hits.sequential += if sample.sequential { times } else { 0 };
            hits.last = last;
        };
        match sample.op {
            Op::Multi | Op::MultiRead | Op::Sync => {}
            Op::Create | Op::Create2 | Op::CreateContainer | Op::CreateTtl => {
                hit(&mut self.parents, quenda_proto::path::parent(path), times);
                if !sample.sequential {
                    hit(&mut self.written, path, times);
                }
            }
            op if op.kind() == OpKind::Write => hit(&mut self.written, path, times),
            _ => hit(&mut self.read, path, heavy),
        }
    }
}

fn weight(requests: u64, bytes: u64) -> u64 {
    requests + bytes / BYTES_OF_A_REQUEST
}

fn has_path(op: Op) -> bool {
    !matches!(
        op,
        Op::Ping
            | Op::CreateSession
            | Op::CloseSession
            | Op::Reconfig
            | Op::GetEphemerals
            | Op::SetWatches
            | Op::SetWatches2
            | Op::WhoAmI
            | Op::Auth
            | Op::Sasl
    )
}

/// The first components of a path.
fn prefix(path: &str, depth: usize) -> &str {
    let ends = path.char_indices().filter(|(_, char)| *char == '/');
    match ends.skip(1).nth(depth.max(1) - 1) {
        Some((end, _)) => &path[..end],
        None => path,
    }
}

impl Minute {
    fn of(slots: &[&Slot]) -> Minute {
        let mut minute = Minute {
            clients: sum(slots, |slot| &slot.clients, Tally::merge),
            sessions: sum(slots, |slot| &slot.sessions, merge_session),
            prefixes: sum(slots, |slot| &slot.prefixes, Tally::merge),
            read: sum(slots, |slot| &slot.read, merge_hits),
            written: sum(slots, |slot| &slot.written, merge_hits),
            parents: sum(slots, |slot| &slot.parents, merge_hits),
            ..Minute::default()
        };
        for slot in slots {
            minute.total.merge(&slot.total);
            minute.events += slot.events;
            minute.event_bytes += slot.event_bytes;
            minute.sampled.0 += slot.sampled.0;
            minute.sampled.1 += slot.sampled.1;
            for (op, tally) in &slot.ops {
                match minute.ops.iter_mut().find(|(known, _)| known == op) {
                    Some((_, known)) => known.merge(tally),
                    None => minute.ops.push((*op, *tally)),
                }
            }
        }
        minute
    }
}

fn merge_session(sum: &mut SessionLoad, more: &SessionLoad) {
    sum.client = more.client.or(sum.client);
    sum.tally.merge(&more.tally);
}

fn merge_hits(sum: &mut Hits, more: &Hits) {
    sum.count += more.count;
    sum.bytes += more.bytes;
    sum.sequential += more.sequential;
    sum.last = more.last.or(sum.last);
}

/// Adds up one table of all slots. What a key may have had in a slot in which it is not is missed, too.
fn sum<K: Hash + Eq + Clone, V: Default>(
    slots: &[&Slot],
    table: impl Fn(&Slot) -> &Sketch<K, V>,
    merge: impl Fn(&mut V, &V),
) -> Vec<Summed<K, V>> {
    let absent: u64 = slots
        .iter()
        .map(|slot| table(slot).missed_of_absent())
        .sum();
    let mut sums: HashMap<K, Summed<K, V>> = HashMap::new();
    for slot in slots {
        let table = table(slot);
        let missed_here = table.missed_of_absent();
        for entry in table.entries() {
            let sum = sums.entry(entry.key.clone()).or_insert_with(|| Summed {
                key: entry.key.clone(),
                missed: absent,
                value: V::default(),
            });
            sum.missed = sum.missed + entry.missed - missed_here;
            merge(&mut sum.value, &entry.value);
        }
    }
    sums.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_whole_components() {
        let cases = [
            ("/a/b/c", 1, "/a"),
            ("/a/b/c", 2, "/a/b"),
            ("/a/b/c", 3, "/a/b/c"),
            ("/a/b/c", 9, "/a/b/c"),
            ("/", 2, "/"),
            ("/a", 2, "/a"),
            ("/a/", 1, "/a"),
        ];
        for (path, depth, expected) in cases {
            assert_eq!(prefix(path, depth), expected, "{path} {depth}");
        }
    }

    fn who(number: u8) -> Requester {
        Requester {
            client: ([10, 0, 0, number], 4000).into(),
            session: Some(number.into()),
        }
    }

    fn observed(op: Op, requests: u64, now_ms: u64) -> Observed {
        let mut tally = Tally::default();
        for _ in 0..requests {
            tally.add(100, 1000, 3, 1);
        }
        let mut observed = Observed::default();
        observed.ops.push((op, tally));
        observed.last_ms = now_ms;
        observed
    }

    #[test]
    fn the_window_slides() {
        let mut window = Window::new(2);
        let mut now_ms = 1_000_000;
        for _ in 0..100 {
            window.add(who(1), &observed(Op::GetData, 10, now_ms));
            window.add(who(2), &observed(Op::SetData, 5, now_ms));
            now_ms += LOAD_SLOT_MS;
        }
        now_ms -= LOAD_SLOT_MS;
        let minute = window.minute(now_ms);
        assert_eq!(minute.total.requests, 15 * LOAD_SLOTS);
        assert_eq!(minute.total.latency[1], 15 * LOAD_SLOTS);
        assert_eq!((minute.clients.len(), minute.sessions.len()), (2, 2));
        let first = minute.sessions.iter().find(|one| one.key == 1);
        let first = first.expect("it did most");
        assert_eq!(
            (first.missed, first.value.tally.requests),
            (0, 10 * LOAD_SLOTS)
        );
        assert_eq!(first.value.client, Some(who(1).client));
        assert_eq!(window.last_slot(now_ms + LOAD_SLOT_MS).total.requests, 15);
        let half = window.minute(now_ms + LOAD_SLOT_MS * LOAD_SLOTS / 2);
        assert_eq!(half.total.requests, 15 * LOAD_SLOTS / 2);
        let over = window.minute(now_ms + 2 * LOAD_SLOT_MS * LOAD_SLOTS);
        assert_eq!((over.total.requests, over.clients.len()), (0, 0));
        // What comes late still counts where it belongs, unless that is over.
        window.add(who(3), &observed(Op::Ping, 1, now_ms - LOAD_SLOT_MS));
        window.add(who(3), &observed(Op::Ping, 1, 5000));
        assert_eq!(window.minute(now_ms).total.requests, 15 * LOAD_SLOTS + 1);
    }
}
