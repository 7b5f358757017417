//! Images as files: damage between the pieces, foreign names, mistakes with directories, work meanwhile.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use quenda_consensus::Recovered;
use quenda_storage::{OpenError, RocksStore, RowBatch, Store, StoreError};
use quenda_tree::{CheckpointSink, Table};

use crate::common::{OnDisk, Random, Subject, assert_rows_fit, batch, checkpoint, rows, start};
use crate::images::{OWN, lead, pump, transfer};

fn joining(apart: bool) -> OnDisk {
    OnDisk::starting(apart, Recovered::joining())
}

/// Rows that do not shrink much when they are compressed.
fn add_rows(rows: &mut RowBatch, count: u32) {
    for key in 0..count {
        let mut random = Random(u64::from(key) * 0x9e37_79b9 + 1);
        let value: Vec<u8> = (0..25).flat_map(|_| random.next().to_be_bytes()).collect();
        rows.put(
            Table::Nodes,
            &[&b"row "[..], &key.to_be_bytes()].concat(),
            &value,
        );
    }
}

/// A leader with an image of several megabytes.
fn large_leader() -> OnDisk {
    let leader = OnDisk::new(false);
    leader.store().append(&[batch(2, 20, 2)]).unwrap();
    let mut large = checkpoint(12, 2);
    add_rows(&mut large.rows, 15_000);
    leader.store().checkpoint(&large).unwrap();
    leader
}

fn incoming(store: &OnDisk) -> Vec<PathBuf> {
    let folder = store.options().directory.join("incoming/files");
    let entries = fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort_by_key(|path| fs::metadata(path).unwrap().len());
    files
}

#[test]
fn receiving_goes_on_after_a_restart() {
    for apart in [false, true] {
        let (leader, mut follower) = (large_leader(), joining(apart));
        let image = leader.store().make_image().unwrap();
        let mut receiver = follower.store().receive_image(&image.manifest).unwrap();
        let (_, total) = receiver.progress();
        assert!(total > 3 << 20, "{total}");
        let mut sent = 0;
        while sent < total / 2 {
            let (file, offset, len) = receiver.next().unwrap();
            let bytes = leader
                .store()
                .read_image(12, file, offset, len.min(100_000))
                .unwrap();
            receiver.write(file, offset, &bytes).unwrap();
            sent += bytes.len() as u64;
        }
        drop(receiver);
        follower.restart();
        let mut receiver = follower.store().receive_image(&image.manifest).unwrap();
        assert_eq!(receiver.progress(), (sent, total));
        pump(leader.store(), 12, receiver.as_mut(), usize::MAX);
        receiver.finish().unwrap();
        follower.store().install_image(12, 2, OWN).unwrap();
        assert_eq!(rows(follower.store()), rows(leader.store()));
    }
}

#[test]
fn files_that_were_damaged_meanwhile_are_sent_again() {
    let (leader, follower) = (large_leader(), joining(false));
    let image = leader.store().make_image().unwrap();
    let mut receiver = follower.store().receive_image(&image.manifest).unwrap();
    pump(leader.store(), 12, receiver.as_mut(), usize::MAX);
    drop(receiver);
    let files = incoming(&follower);
    let largest = files.last().unwrap();
    let mut bytes = fs::read(largest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(largest, &bytes).unwrap();
    let mut longer = fs::read(&files[0]).unwrap();
    longer.push(b'x');
    fs::write(&files[0], &longer).unwrap();
    fs::remove_file(&files[1]).unwrap();

    let mut receiver = follower.store().receive_image(&image.manifest).unwrap();
    let (received, total) = receiver.progress();
    assert!(received < total - middle as u64, "{received} of {total}");
    pump(leader.store(), 12, receiver.as_mut(), usize::MAX);
    receiver.finish().unwrap();
    follower.store().install_image(12, 2, OWN).unwrap();
    assert_eq!(rows(follower.store()), rows(leader.store()));
}

#[test]
fn an_image_that_is_no_database_is_refused_and_the_store_goes_on() {
    let (leader, follower) = (OnDisk::new(false), OnDisk::new(true));
    lead(leader.store(), 20, 12, 7);
    follower.store().append(&[batch(2, 6, 2)]).unwrap();
    transfer(leader.store(), follower.store());
    // The manifest of the database, behind the back of the checksums.
    let files = incoming(&follower);
    let manifest = files.iter().find(|path| {
        path.file_name()
            .unwrap()
            .to_string_lossy()
            .starts_with("MANIFEST")
    });
    fs::write(manifest.unwrap(), b"nonsense").unwrap();
    let error = follower
        .store()
        .install_image(12, 2, OWN)
        .expect_err("refused");
    assert!(matches!(error, StoreError::ImageRefused(_)), "{error}");
    follower.store().append(&[batch(7, 8, 2)]).unwrap();
    // It does not come back by itself, and can be sent anew.
    assert!(!follower.options().directory.join("incoming").exists());
    assert!(!follower.options().directory.join("db.1").exists());
    transfer(leader.store(), follower.store());
    follower.store().install_image(12, 2, OWN).unwrap();
    assert_rows_fit(follower.store(), 12, "installed");
}

#[test]
fn a_manifest_cannot_name_files_elsewhere() {
    let leader = OnDisk::new(false);
    lead(leader.store(), 20, 12, 7);
    let manifest = leader.store().make_image().unwrap().manifest;
    let follower = joining(false);
    let old = b"CURRENT";
    let at = manifest
        .windows(7)
        .position(|window| window == old)
        .unwrap();
    for name in [b"../CURR", b"/CURREN", b"1.sst/x", b"LOCKED.", b"0000.ss"] {
        let mut other = manifest.to_vec();
        other[at..at + 7].copy_from_slice(name);
        let end = other.len() - 4;
        let crc = crc32c::crc32c(&other[..end]);
        other[end..].copy_from_slice(&crc.to_be_bytes());
        let error = follower
            .store()
            .receive_image(&other)
            .err()
            .expect("refused");
        assert!(error.to_string().contains("it has a file"), "{error}");
    }
    assert!(!follower.options().directory.join("incoming").exists());
}

#[test]
fn images_made_under_load_belong_to_one_entry() {
    let leader = OnDisk::new(true);
    leader.store().append(&[batch(2, 2, 2)]).unwrap();
    leader.store().checkpoint(&checkpoint(2, 2)).unwrap();
    let (done, newest) = (AtomicBool::new(false), AtomicU64::new(2));
    let (appender, writer, maker) = (leader.handle(), leader.handle(), leader.handle());
    let follower = joining(true);
    let mut installed = 0;
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                let next = newest.load(Ordering::Relaxed) + 1;
                appender.append(&[batch(next, next, 2)]).unwrap();
                newest.store(next, Ordering::Release);
            }
        });
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                let newest = newest.load(Ordering::Acquire);
                writer.checkpoint(&checkpoint(newest, 2)).unwrap();
                writer.compact_log(newest.saturating_sub(5)).unwrap();
            }
        });
        let end = StopOnDrop(&done);
        while installed < 8 {
            let image = maker.make_image().unwrap();
            if image.index <= follower.store().recover().unwrap().applied {
                continue;
            }
            let mut receiver = follower.store().receive_image(&image.manifest).unwrap();
            pump(&maker, image.index, receiver.as_mut(), usize::MAX);
            receiver.finish().unwrap();
            follower
                .store()
                .install_image(image.index, image.term, OWN)
                .unwrap();
            assert_rows_fit(follower.store(), image.index, "under load");
            maker.drop_images(None);
            installed += 1;
        }
        drop(end);
    });
    let last = newest.into_inner();
    assert_eq!(leader.store().recover().unwrap().last_index(), last);
}

#[test]
fn an_installation_beside_checkpoints_and_cuts() {
    let (leader, follower) = (OnDisk::new(false), OnDisk::new(true));
    let newest = 4_000;
    lead(leader.store(), newest, newest - 1, 7);
    follower.store().append(&[batch(2, newest, 2)]).unwrap();
    let image = transfer(leader.store(), follower.store());
    let (done, written) = (AtomicBool::new(false), AtomicU64::new(1));
    let writer = follower.handle();
    thread::scope(|scope| {
        let checkpoints = scope.spawn(|| {
            let mut stale = 0;
            while !done.load(Ordering::Acquire) || stale == 0 {
                let next = written.load(Ordering::Relaxed) + 1;
                // One is left for what comes after the installation, however late that is.
                if next == newest - 2 && !done.load(Ordering::Acquire) {
                    thread::yield_now();
                    continue;
                }
                assert!(next < newest - 1, "the installation never came");
                match writer.checkpoint(&checkpoint(next, 2)) {
                    Ok(()) => writer.compact_log(next - 1).unwrap(),
                    Err(StoreError::CheckpointOutsideLog { .. }) => stale += 1,
                    Err(other) => panic!("{other}"),
                }
                written.store(next, Ordering::Release);
            }
        });
        let end = StopOnDrop(&done);
        while written.load(Ordering::Acquire) < 20 {
            thread::yield_now();
        }
        follower.store().install_image(image.index, 2, OWN).unwrap();
        drop(end);
        checkpoints.join().unwrap();
    });
    let recovered = follower.store().recover().unwrap();
    assert_eq!(recovered.compacted, (image.index, 2));
    assert_eq!(rows(follower.store()), rows(leader.store()));
}

/// Ends the other threads also when an assertion fails.
struct StopOnDrop<'d>(&'d AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn a_store_that_failed_is_whole_again_with_an_image() {
    let (leader, follower) = (OnDisk::new(false), OnDisk::new(false));
    lead(leader.store(), 20, 12, 7);
    follower.store().append(&[batch(2, 6, 2)]).unwrap();
    transfer(leader.store(), follower.store());
    // The database cannot be opened again.
    let current = follower.options().directory.join("db/CURRENT");
    fs::remove_file(current).unwrap();
    let error = follower.store().reopen().expect_err("damaged");
    assert!(
        matches!(error, StoreError::Open(OpenError::Damaged { .. })),
        "{error}"
    );
    let refused = follower.store().append(&[batch(7, 7, 2)]);
    assert!(matches!(refused, Err(StoreError::NeedsReopen)));
    follower.store().install_image(12, 2, OWN).unwrap();
    follower.store().append(&[batch(13, 14, 9)]).unwrap();
    assert_eq!(follower.store().reopen().unwrap().last_index, 14);
}

#[test]
fn what_an_earlier_process_has_left_is_deleted_unless_it_is_of_use() {
    let mut leader = OnDisk::new(false);
    lead(leader.store(), 20, 12, 7);
    leader.store().make_image().unwrap();
    let images = leader.options().directory.join("images");
    assert!(images.exists());
    leader.restart();
    assert!(!images.exists());

    let mut follower = OnDisk::new(false);
    transfer(leader.store(), follower.store());
    let incoming = follower.options().directory.join("incoming");
    follower.restart();
    assert!(incoming.exists(), "it may go on");
    follower.store().append(&[batch(2, 20, 2)]).unwrap();
    follower.store().checkpoint(&checkpoint(12, 2)).unwrap();
    follower.store().sync().unwrap();
    follower.restart();
    assert!(!incoming.exists(), "nobody needs it");
}

#[test]
fn the_name_of_the_database_cannot_be_damaged_or_point_nowhere() {
    let leader = OnDisk::new(false);
    lead(leader.store(), 20, 12, 7);
    for apart in [false, true] {
        let mut follower = joining(apart);
        transfer(leader.store(), follower.store());
        follower.store().install_image(12, 2, OWN).unwrap();
        follower.close();
        let directory = follower.options().directory;
        let active = directory.join("ACTIVE");
        let text = fs::read(&active).unwrap();
        for wrong in [&b""[..], b"database db.9\n", b"\xff"] {
            fs::write(&active, wrong).unwrap();
            let error = RocksStore::open(follower.options()).err().expect("refused");
            assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
        }
        fs::write(&active, text).unwrap();
        if let Some(log) = follower.options().log_directory {
            let moved = log.join("moved");
            fs::rename(log.join("wal.1"), &moved).unwrap();
            let error = RocksStore::open(follower.options()).err().expect("refused");
            assert!(matches!(error, OpenError::LogDirectory { .. }), "{error}");
            fs::rename(moved, log.join("wal.1")).unwrap();
        }
        assert_eq!(follower.open().applied, 12, "none of this has done harm");
    }
}

#[test]
fn directories_with_the_names_of_databases_are_left_alone() {
    let root = tempfile::tempdir().unwrap();
    let leader = OnDisk::new(false);
    lead(leader.store(), 20, 12, 7);
    let options = quenda_storage::OpenOptions {
        directory: root.path().join("wal.7"),
        log_directory: Some(root.path().to_owned()),
        member: 1,
        start: start(),
    };
    let (store, _) = RocksStore::open(options.clone()).unwrap();
    transfer(leader.store(), &store);
    store.install_image(12, 2, OWN).unwrap();
    drop(store);
    let (store, recovered) = RocksStore::open(options).unwrap();
    assert_eq!(recovered.applied, 12);
    assert_rows_fit(&store, 12, "one inside the other");
}
