//! A process that makes, receives and installs images without a pause is killed again and again, at any
//! moment. What it had reported is there afterwards, and it goes on.

use std::env;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use quenda_consensus::{EntryKind, HardState, LogBatch, LogEntry, Membership, Recovered};
use quenda_storage::{Checkpoint, OpenOptions, RocksStore, RowBatch, Store};
use quenda_tree::{CheckpointSink, Table};

const DIRECTORY: &str = "QUENDA_TEST_KILL";
const KILLS: u64 = 25;
const OWN: HardState = HardState {
    term: 2,
    vote: 1,
    commit: 0,
};

#[test]
fn a_killed_member_has_the_old_state_or_the_new_one_and_goes_on() {
    if let Some(directory) = env::var_os(DIRECTORY) {
        return work(directory.as_ref());
    }
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let directory = tempfile::tempdir().unwrap();
    let (mut installed, mut reported) = (0, Reported::default());
    for kill in 0..KILLS {
        let before = reported;
        kill_one(
            directory.path(),
            1 + next() % 3,
            next() % 30_000,
            &mut reported,
        );
        check(
            directory.path(),
            &mut reported,
            &format!("seed {seed}, kill {kill}"),
        );
        installed += u64::from(reported.applied > before.applied);
    }
    assert!(
        installed > KILLS / 2,
        "seed {seed}: only {installed} rounds installed anything"
    );
}

/// What the member has said about itself: an entry whose state is installed, and the end of its log.
#[derive(Clone, Copy, Default)]
struct Reported {
    applied: u64,
    last: u64,
}

/// Runs the member until it has reported `lines` times, lets it run a little longer, and kills it.
fn kill_one(directory: &Path, lines: u64, microseconds: u64, reported: &mut Reported) {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--nocapture"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..lines {
        next_report(&mut output, reported);
    }
    thread::sleep(Duration::from_micros(microseconds));
    end(&mut child);
    for line in output {
        take(&line.unwrap(), reported);
    }
}

fn end(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

fn next_report(
    output: &mut impl Iterator<Item = std::io::Result<String>>,
    reported: &mut Reported,
) {
    for line in output {
        if take(&line.unwrap(), reported) {
            return;
        }
    }
    panic!("the member ended by itself");
}

/// A report has its own line; a torn one, without its end, was not made.
fn take(line: &str, reported: &mut Reported) -> bool {
    let Some(rest) = line.strip_prefix("now ") else {
        return false;
    };
    let mut numbers = rest.split(' ');
    let mut number = || numbers.next()?.parse().ok();
    match (number(), number(), numbers.next()) {
        (Some(applied), Some(last), Some(".")) => {
            *reported = Reported { applied, last };
            true
        }
        _ => false,
    }
}

fn check(directory: &Path, reported: &mut Reported, context: &str) {
    let (store, recovered) = open(directory, "follower", 1);
    assert!(
        recovered.applied >= reported.applied,
        "{context}: {}",
        recovered.applied
    );
    assert!(
        recovered.last_index() >= reported.last,
        "{context}: {}",
        recovered.last_index()
    );
    assert_eq!(
        (recovered.hard_state.term, recovered.hard_state.vote),
        (2, 1),
        "{context}"
    );
    let mut rows = 0;
    store
        .scan(&mut |_, _, value| {
            assert_eq!(value, recovered.applied.to_be_bytes(), "{context}");
            rows += 1;
            Ok(())
        })
        .unwrap();
    assert!(
        rows == 1000 || recovered.applied == 1,
        "{context}: {rows} rows"
    );
    reported.applied = recovered.applied;
    reported.last = recovered.last_index();
}

fn open(directory: &Path, who: &str, member: u64) -> (RocksStore, Recovered) {
    let start = Recovered {
        hard_state: HardState { commit: 1, ..OWN },
        ..Recovered::bootstrap([1, 2], [])
    };
    RocksStore::open(OpenOptions {
        directory: directory.join(who),
        log_directory: (member == 1).then(|| directory.join("log")),
        member,
        start,
    })
    .unwrap()
}

fn batch(index: u64) -> LogBatch {
    let entry = |index| LogEntry {
        index,
        term: 2,
        kind: EntryKind::Normal,
        data: vec![7; 500].into(),
    };
    LogBatch {
        hard_state: OWN,
        entries: (index..index + 10).map(entry).collect(),
    }
}

fn checkpoint(applied: u64) -> Checkpoint {
    let mut rows = RowBatch::default();
    for key in 0..1000_u64 {
        rows.put(Table::Nodes, &key.to_be_bytes(), &applied.to_be_bytes());
    }
    Checkpoint {
        applied: (applied, 2),
        membership: Membership::of_voters([1, 2]),
        rows,
        complete: false,
    }
}

/// A leader and a follower that never catches up by the log alone.
fn work(directory: &Path) {
    let (leader, recovered) = open(directory, "leader", 2);
    let (follower, own) = open(directory, "follower", 1);
    let mut last = recovered.last_index().max(1);
    while last < own.last_index() {
        leader.append(&[batch(last + 1)]).unwrap();
        last += 10;
    }
    loop {
        leader.append(&[batch(last + 1)]).unwrap();
        last += 10;
        leader.checkpoint(&checkpoint(last)).unwrap();
        leader.compact_log(last - 3).unwrap();
        let image = leader.make_image().unwrap();
        let mut receiver = follower.receive_image(&image.manifest).unwrap();
        while let Some((file, offset, len)) = receiver.next() {
            let bytes = leader
                .read_image(image.index, file, offset, len.min(5_000))
                .unwrap();
            receiver.write(file, offset, &bytes).unwrap();
        }
        receiver.finish().unwrap();
        follower
            .install_image(image.index, image.term, OWN)
            .unwrap();
        report(last, last);
        follower.append(&[batch(last + 1)]).unwrap();
        report(last, last + 10);
        last += 10;
        leader.append(&[batch(last - 9)]).unwrap();
        leader.drop_images(None);
    }
}

fn report(applied: u64, last: u64) {
    let mut output = std::io::stdout().lock();
    writeln!(output, "now {applied} {last} .").unwrap();
}
