//! Memory, speed and load time of a tree of many znodes.
//!
//! `cargo run --release -p quenda-tree --example memory [znodes] [bytes of data] [children a parent]`

use std::time::{Duration, Instant};

use bytes::BytesMut;
use quenda_proto::Op;
use quenda_proto::jute::Encode;
use quenda_proto::records::{Acl, CreateRequest, Id};
use quenda_tree::command::{Command, Origin, Request, Stamp, Switches};
use quenda_tree::{Changes, CheckpointSink, Loader, Table, Tree};

const SESSION: i64 = 0x0100_0000_0000_0001;

fn main() {
    let mut numbers = std::env::args().skip(1).map(|text| {
        text.parse::<usize>()
            .expect("znodes, bytes of data, children a parent: numbers")
    });
    let znodes = numbers.next().unwrap_or(1_000_000);
    let data = vec![b'x'; numbers.next().unwrap_or(100)];
    let fan_out = numbers.next().unwrap_or(1_000).max(1);

    let mut writer = Writer::new();
    let before = resident_bytes();
    let start = Instant::now();
    let names = fill(&mut writer, znodes, &data, fan_out);
    let seconds = start.elapsed().as_secs_f64();
    let counts = writer.tree.counts();
    let used = resident_bytes() - before;
    let payload = names + counts.znodes * data.len();
    println!("znodes                     {}", counts.znodes);
    println!(
        "creates a second           {:.0}",
        counts.znodes as f64 / seconds
    );
    println!("resident bytes a znode     {}", used / counts.znodes);
    println!(
        "beyond its data and name   {}",
        used.saturating_sub(payload) / counts.znodes
    );

    let mut rows = Rows::default();
    let start = Instant::now();
    writer.tree.write_checkpoint(&mut rows);
    println!(
        "write a full checkpoint    {:.3} s",
        start.elapsed().as_secs_f64()
    );
    rows.0.sort_unstable();
    let start = Instant::now();
    let mut loader = Loader::new();
    for (table, key, value) in &rows.0 {
        loader.row(*table, key, value).expect("a row of ours");
    }
    let loaded = loader.finish().expect("a whole checkpoint");
    println!(
        "load it                    {:.3} s",
        start.elapsed().as_secs_f64()
    );
    assert_eq!(loaded.digest(), writer.tree.digest());
    let start = Instant::now();
    assert_eq!(loaded.recompute_digest(), writer.tree.digest());
    println!(
        "digest from scratch        {:.3} s",
        start.elapsed().as_secs_f64()
    );
}

/// Creates parents and children, and gives back how many bytes their names have.
fn fill(writer: &mut Writer, znodes: usize, data: &[u8], fan_out: usize) -> usize {
    let mut names = 0;
    let mut slowest = Duration::ZERO;
    let mut parent = String::new();
    for number in 0..znodes {
        let path = match number % (fan_out + 1) {
            0 => {
                parent = format!("/parent-{:06}", number / (fan_out + 1));
                parent.clone()
            }
            child => format!("{parent}/child-{child:010}"),
        };
        names += path.len() - path.rfind('/').map_or(0, |slash| slash + 1);
        let start = Instant::now();
        writer.create(&path, data);
        slowest = slowest.max(start.elapsed());
    }
    println!("slowest create             {slowest:?}");
    names
}

struct Writer {
    tree: Tree,
    body: BytesMut,
    reply: BytesMut,
    changes: Changes,
}

impl Writer {
    fn new() -> Writer {
        let mut writer = Writer {
            tree: Tree::new(),
            body: BytesMut::new(),
            reply: BytesMut::new(),
            changes: Changes::new(),
        };
        writer.apply(&Command::OpenSession {
            origin: Origin::default(),
            session: SESSION,
            timeout_ms: 10_000,
        });
        writer
    }

    fn create(&mut self, path: &str, data: &[u8]) {
        let request = CreateRequest {
            path: Some(path.into()),
            data: Some(data),
            acl: Some(vec![Acl {
                perms: 31,
                id: Id {
                    scheme: Some("world".into()),
                    id: Some("anyone".into()),
                },
            }]),
            flags: 0,
        };
        let mut body = std::mem::take(&mut self.body);
        body.clear();
        request.encode(&mut body);
        self.apply(&Command::Request(Request {
            origin: Origin::default(),
            session: SESSION,
            generation: 1,
            local: false,
            switches: Switches::default(),
            identities: Vec::new(),
            op: Op::Create.code(),
            body: &body,
        }));
        self.body = body;
    }

    fn apply(&mut self, command: &Command<'_>) {
        let stamp = Stamp {
            term: 1,
            time_ms: 1_700_000_000_000,
        };
        self.reply.clear();
        self.changes.clear();
        let applied = self
            .tree
            .apply(stamp, command, &mut self.reply, &mut self.changes);
        assert_eq!(applied.code.code(), 0);
    }
}

#[derive(Default)]
struct Rows(Vec<(Table, Vec<u8>, Vec<u8>)>);

impl CheckpointSink for Rows {
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) {
        self.0.push((table, key.to_vec(), value.to_vec()));
    }

    fn delete(&mut self, _: Table, _: &[u8]) {}
}

/// Resident memory of this process.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1));
    kilobytes
        .expect("VmRSS")
        .parse::<usize>()
        .expect("a number")
        * 1024
}
