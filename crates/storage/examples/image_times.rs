//! How long an image takes: made beside appends that go on, handed over without a network, installed. The
//! number of rows may be given; a million otherwise.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use quenda_consensus::{EntryKind, HardState, LogBatch, LogEntry, Membership, Recovered};
use quenda_storage::{Checkpoint, OpenOptions, RocksStore, RowBatch, Store, StoreError};
use quenda_tree::{CheckpointSink, Table};

/// A znode of 100 bytes, a name of 10 and its 79 bytes of metadata.
const ROW: usize = 179;
const OWN: HardState = HardState {
    term: 2,
    vote: 1,
    commit: 0,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count = match std::env::args().nth(1) {
        Some(text) => text.parse()?,
        None => 1_000_000,
    };
    let root = tempfile::tempdir()?;
    let leader = open(&root.path().join("leader"), Recovered::bootstrap([1], []))?;
    let follower = open(&root.path().join("follower"), Recovered::joining())?;
    leader.append(&[batch(2)])?;
    fill(&leader, count)?;
    leader.sync()?;

    let done = AtomicBool::new(false);
    let appender = leader.clone();
    thread::scope(|scope| -> Result<(), Box<dyn std::error::Error>> {
        let alone = latencies(&appender, 3, || false)?;
        let appends = scope.spawn(|| latencies(&appender, 1003, || done.load(Ordering::Acquire)));
        let result = take_over(&leader, &follower);
        done.store(true, Ordering::Release);
        let during = appends.join().expect("no panic")?;
        result?;
        println!("1 KB append alone:  {}", summary(alone));
        println!("1 KB append during: {}", summary(during));
        Ok(())
    })?;
    let start = Instant::now();
    let mut rows = 0_u64;
    follower.scan(&mut |_, _, _| {
        rows += 1;
        Ok(())
    })?;
    println!("read back  {rows} rows in {:?}", start.elapsed());
    Ok(())
}

fn take_over(leader: &RocksStore, follower: &RocksStore) -> Result<(), StoreError> {
    let start = Instant::now();
    let image = leader.make_image()?;
    let made = start.elapsed();
    let start = Instant::now();
    let mut receiver = follower.receive_image(&image.manifest)?;
    let (_, bytes) = receiver.progress();
    while let Some((file, offset, len)) = receiver.next() {
        let piece = leader.read_image(image.index, file, offset, len)?;
        receiver.write(file, offset, &piece)?;
    }
    receiver.finish()?;
    let received = start.elapsed();
    let start = Instant::now();
    follower.install_image(image.index, image.term, OWN)?;
    let installed = start.elapsed();
    println!(
        "image      {} MB, manifest {} bytes",
        bytes >> 20,
        image.manifest.len()
    );
    println!("made in    {made:?}");
    println!("received in {received:?} (read, written, synced)");
    println!("installed in {installed:?}");
    Ok(())
}

fn open(directory: &std::path::Path, start: Recovered) -> Result<RocksStore, StoreError> {
    let options = OpenOptions {
        directory: directory.to_owned(),
        log_directory: None,
        member: 1,
        start,
    };
    Ok(RocksStore::open(options)?.0)
}

fn batch(index: u64) -> LogBatch {
    LogBatch {
        hard_state: OWN,
        entries: vec![LogEntry {
            index,
            term: 2,
            kind: EntryKind::Normal,
            data: vec![0x5a; 1 << 10].into(),
        }],
    }
}

fn fill(store: &RocksStore, count: u32) -> Result<(), StoreError> {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut value = [0; ROW];
    for first in (0..count).step_by(20_000) {
        let mut rows = RowBatch::default();
        for key in first..count.min(first + 20_000) {
            for part in value.chunks_mut(8) {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                part.copy_from_slice(&random.to_be_bytes()[..part.len()]);
            }
            rows.put(Table::Nodes, format!("000/{key:010}").as_bytes(), &value);
        }
        store.checkpoint(&Checkpoint {
            applied: (2, 2),
            membership: Membership::of_voters([1]),
            rows,
            complete: false,
        })?;
    }
    Ok(())
}

/// One append after the other, a thousand or until `done`.
fn latencies(
    store: &RocksStore,
    first: u64,
    done: impl Fn() -> bool,
) -> Result<Vec<Duration>, StoreError> {
    let mut times = Vec::new();
    for index in first.. {
        if done() || (first == 3 && index == 1003) {
            break;
        }
        let start = Instant::now();
        store.append(&[batch(index)])?;
        times.push(start.elapsed());
    }
    Ok(times)
}

fn summary(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize];
    format!(
        "{} times, p50 {:?}, p99 {:?}, p99.9 {:?}, longest {:?}",
        times.len(),
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    )
}
