//! Damage, crashes and mistakes that only a directory can have.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use quenda_storage::{OpenError, OpenOptions, RocksStore, RowBatch, Store, load_tree};
use quenda_tree::{CheckpointSink, RowView, Table, Tree};
use tempfile::TempDir;

use crate::common::{
    OnDisk, Subject, assert_rows_fit, batch, checkpoint, files, open_image, options, rows,
};

fn length(path: &Path) -> u64 {
    fs::metadata(path).unwrap().len()
}

fn truncate(path: &Path, length: u64) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(length).unwrap();
}

fn flip(path: &Path, position: u64) {
    let mut bytes = fs::read(path).unwrap();
    bytes[position as usize] ^= 0x40;
    fs::write(path, bytes).unwrap();
}

fn newest_log(image: &TempDir) -> std::path::PathBuf {
    files(image, "log").pop().expect("a write-ahead log")
}

fn damage(image: &TempDir) -> String {
    match open_image(image) {
        Err(error @ OpenError::Damaged { .. }) => error.to_string(),
        Err(other) => panic!("not damage: {other}"),
        Ok(_) => panic!("opened in spite of the damage"),
    }
}

#[test]
fn a_directory_is_used_by_one_process_at_a_time() {
    let subject = OnDisk::new(false);
    let error = RocksStore::open(subject.options()).err().expect("refused");
    assert!(matches!(error, OpenError::InUse { .. }), "{error}");
    let text = error.to_string();
    let directory = subject.options().directory;
    assert!(text.contains(&directory.display().to_string()), "{text}");
}

/// RocksDB makes one column family after the other, and a first start may be killed between two.
#[test]
fn a_store_whose_creation_was_cut_short_is_none_and_is_created_again() {
    for apart in [false, true] {
        for families in [&["default"][..], &["default", "nodes"]] {
            let root = TempDir::new().unwrap();
            let options = options(root.path(), apart);
            let database = options.directory.join("db");
            drop(RocksStore::open(options.clone()).unwrap());
            fs::remove_dir_all(&database).unwrap();
            fs::create_dir(&database).unwrap();
            if let Some(log) = &options.log_directory {
                let logs = fs::read_dir(log)
                    .unwrap()
                    .map(|entry| entry.unwrap().path());
                for log in logs.filter(|path| path.extension().is_some_and(|end| end == "log")) {
                    fs::remove_file(log).unwrap();
                }
            }
            let mut half = rocksdb::Options::default();
            half.create_if_missing(true);
            half.create_missing_column_families(true);
            if let Some(log) = &options.log_directory {
                half.set_wal_dir(log);
            }
            drop(rocksdb::DB::open_cf(&half, &database, families).unwrap());
            assert!(!RocksStore::exists(&options).unwrap());
            let (store, _) = RocksStore::open(options.clone()).unwrap();
            drop(store);
            assert!(RocksStore::exists(&options).unwrap());
        }
    }
}

#[test]
fn the_data_of_a_zookeeper_is_left_alone() {
    for apart in [false, true] {
        for file in ["snapshot.0", "log.1"] {
            let root = TempDir::new().unwrap();
            let options = options(root.path(), apart);
            let place = options.log_directory.as_ref().unwrap_or(&options.directory);
            fs::create_dir_all(place.join("version-2")).unwrap();
            fs::write(place.join("version-2").join(file), b"ZKSN").unwrap();
            let error = RocksStore::exists(&options).expect_err("refused before it is opened");
            assert!(matches!(error, OpenError::ZooKeeper { .. }), "{error}");
            let error = RocksStore::open(options.clone()).err().expect("refused");
            assert!(matches!(error, OpenError::ZooKeeper { .. }), "{error}");
            assert!(error.to_string().contains("move version-2 away"), "{error}");
            assert!(!options.directory.join("db").exists());
            fs::remove_file(place.join("version-2").join(file)).unwrap();
            RocksStore::open(options).expect("an empty version-2 says nothing");
        }
    }
}

#[test]
fn a_store_belongs_to_one_member() {
    let mut subject = OnDisk::new(false);
    subject.close();
    let other = OpenOptions {
        member: 2,
        ..subject.options()
    };
    let error = RocksStore::open(other).err().expect("refused");
    assert!(
        matches!(
            error,
            OpenError::WrongMember {
                found: 1,
                expected: 2,
                ..
            }
        ),
        "{error}"
    );
}

fn refused(options: OpenOptions) -> String {
    match RocksStore::open(options) {
        Err(error @ OpenError::LogDirectory { .. }) => error.to_string(),
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("opened"),
    }
}

#[test]
fn the_log_directory_cannot_be_forgotten_added_emptied_or_swapped() {
    let mut apart = OnDisk::new(true);
    apart.store().append(&[batch(2, 9, 2)]).unwrap();
    apart.close();
    let log_directory = apart.options().log_directory.expect("its own");

    let forgotten = options(apart.directory.path(), false);
    let owner = log_directory.join("MEMBER");
    refused(forgotten);
    fs::write(&owner, "member 2\n").unwrap();
    assert!(refused(apart.options()).contains("member 2"));
    fs::remove_file(&owner).unwrap();
    assert!(refused(apart.options()).contains("MEMBER"));
    fs::write(&owner, "member 1\n").unwrap();
    assert_eq!(apart.open().last_index(), 9, "none of this has done harm");
    apart.close();
    fs::remove_dir_all(apart.options().directory.join("db")).unwrap();
    assert!(refused(apart.options()).contains("empty it as well"));

    let mut together = OnDisk::new(false);
    together.close();
    refused(options(together.directory.path(), true));
}

#[test]
fn every_synced_append_survives_a_crash_right_after_it() {
    let subject = OnDisk::new(false);
    for index in 2..=12 {
        subject.store().append(&[batch(index, index, 2)]).unwrap();
        if index % 3 == 0 {
            subject.store().checkpoint(&checkpoint(index, 2)).unwrap();
        }
        if index % 5 == 0 {
            subject.store().compact_log(index - 3).unwrap();
        }
        let (crashed, recovered) = open_image(&subject.image()).expect("opens after a crash");
        assert_eq!(recovered.last_index(), index);
        assert_rows_fit(&crashed, recovered.applied, "after a crash");
    }
}

#[test]
fn a_torn_tail_is_cut_wherever_it_is_torn() {
    let subject = OnDisk::new(false);
    subject.store().append(&[batch(2, 9, 2)]).unwrap();
    let before = length(&newest_log(&subject.image()));
    subject.store().append(&[batch(10, 19, 2)]).unwrap();
    let after = length(&newest_log(&subject.image()));
    assert!(after > before);
    for end in (before..after).step_by(23) {
        let image = subject.image();
        truncate(&newest_log(&image), end);
        let (_, recovered) = open_image(&image).unwrap_or_else(|error| panic!("{end}: {error}"));
        assert_eq!(recovered.last_index(), 9, "torn at {end} of {after}");
    }
    // Torn the other way: the length is right, and some bytes never arrived.
    for position in (before..after).step_by(37) {
        let image = subject.image();
        flip(&newest_log(&image), position);
        let (store, recovered) =
            open_image(&image).unwrap_or_else(|error| panic!("{position}: {error}"));
        assert_eq!(recovered.last_index(), 9, "damaged at {position}");
        store.append(&[batch(10, 10, 3)]).unwrap();
    }
}

#[test]
fn a_checkpoint_that_was_not_synced_is_cut_as_a_whole() {
    let subject = OnDisk::new(false);
    subject.store().append(&[batch(2, 9, 2)]).unwrap();
    subject.store().checkpoint(&checkpoint(4, 2)).unwrap();
    subject.store().sync().unwrap();
    let before = length(&newest_log(&subject.image()));
    subject.store().checkpoint(&checkpoint(8, 2)).unwrap();
    subject.store().sync().unwrap();
    let after = length(&newest_log(&subject.image()));
    for end in [before, before + 1, (before + after) / 2, after - 1] {
        let image = subject.image();
        truncate(&newest_log(&image), end);
        let (store, recovered) = open_image(&image).unwrap();
        assert_eq!((recovered.applied, recovered.last_index()), (4, 9));
        assert_rows_fit(&store, 4, "cut");
    }
}

#[test]
fn damage_in_what_was_acknowledged_is_reported_and_not_cut() {
    let subject = OnDisk::new(false);
    subject.store().append(&[batch(2, 9, 2)]).unwrap();
    let first = length(&newest_log(&subject.image()));
    // Few bytes behind it: RocksDB alone would skip them together with the damaged place.
    for index in 10..=11 {
        subject.store().append(&[batch(index, index, 2)]).unwrap();
    }
    let image = subject.image();
    flip(&newest_log(&image), first - 20);
    let text = damage(&image);
    assert!(text.contains("write-ahead log"), "{text}");
    assert!(text.contains("fetch the state from the leader"), "{text}");
    // Reporting it has changed nothing: it is reported again.
    assert_eq!(damage(&image), text);
}

#[test]
fn a_damaged_database_says_what_is_wrong_and_what_to_do() {
    let mut subject = OnDisk::new(false);
    subject.store().append(&[batch(2, 9, 2)]).unwrap();
    subject.store().checkpoint(&checkpoint(8, 2)).unwrap();
    subject.restart();

    let image = subject.image();
    fs::remove_file(image.path().join("data/db/CURRENT")).unwrap();
    assert!(damage(&image).contains("CURRENT"));

    let image = subject.image();
    let manifest = fs::read_dir(image.path().join("data/db"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| {
            path.file_name()
                .unwrap()
                .to_string_lossy()
                .starts_with("MANIFEST")
        })
        .expect("a manifest");
    truncate(&manifest, 20);
    damage(&image);

    let image = subject.image();
    let table = files(&image, "sst").pop().expect("a table file");
    truncate(&table, length(&table) / 2);
    let text = damage(&image);
    assert!(text.contains("sst"), "{text}");
    assert!(text.contains("fetch the state from the leader"), "{text}");

    let image = subject.image();
    for table in files(&image, "sst") {
        fs::remove_file(table).unwrap();
    }
    damage(&image);
}

#[test]
fn a_damaged_row_is_found_when_the_tree_is_loaded() {
    let mut subject = OnDisk::new(false);
    subject.store().append(&[batch(2, 9, 2)]).unwrap();
    let mut large = checkpoint(9, 2);
    let mut rows_written = RowBatch::default();
    for key in 0..5_000_u32 {
        rows_written.put(Table::Nodes, &key.to_be_bytes(), &[key as u8; 200]);
    }
    large.rows = rows_written;
    subject.store().checkpoint(&large).unwrap();
    subject.store().sync().unwrap();
    subject.restart();
    let image = subject.image();
    let largest = files(&image, "sst")
        .into_iter()
        .max_by_key(|path| length(path));
    let largest = largest.expect("a table file");
    flip(&largest, length(&largest) / 3);
    let (store, _) = open_image(&image).expect("only a block of rows is damaged");
    let error = store.scan(&mut |_, _, _| Ok(())).expect_err("found");
    assert!(error.to_string().contains("is damaged"), "{error}");
}

#[test]
fn a_checkpoint_does_not_disturb_appends_and_all_of_both_survive() {
    let mut subject = OnDisk::new(false);
    subject.store().append(&[batch(2, 2, 2)]).unwrap();
    let done = AtomicBool::new(false);
    let newest = AtomicU64::new(2);
    let (appender, writer) = (subject.handle(), subject.handle());
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) && newest.load(Ordering::Relaxed) < 20_000 {
                let next = newest.load(Ordering::Relaxed) + 1;
                appender.append(&[batch(next, next, 2)]).unwrap();
                newest.store(next, Ordering::Release);
            }
        });
        for _ in 0..50 {
            let newest = newest.load(Ordering::Acquire);
            writer.checkpoint(&checkpoint(newest, 2)).unwrap();
            writer.compact_log(newest).unwrap();
        }
        done.store(true, Ordering::Release);
    });
    let last = newest.into_inner();
    let (applied, expected) = {
        let recovered = subject.store().recover().unwrap();
        assert_eq!(recovered.last_index(), last);
        (recovered.applied, rows(subject.store()))
    };
    drop((appender, writer));
    subject.close();
    let recovered = subject.open();
    assert_eq!((recovered.last_index(), recovered.applied), (last, applied));
    assert_eq!(rows(subject.store()), expected);
    assert_rows_fit(subject.store(), applied, "after a restart");
}

#[test]
fn cutting_the_log_gives_its_space_back() {
    let subject = OnDisk::new(false);
    let size = |subject: &OnDisk| -> u64 {
        let entries = fs::read_dir(subject.options().directory.join("db")).unwrap();
        // RocksDB deletes files in the background: one may be gone between the listing and the look.
        let length = |entry: fs::DirEntry| match entry.metadata() {
            Ok(metadata) => metadata.len(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
            Err(error) => panic!("{error}"),
        };
        entries.map(|entry| length(entry.unwrap())).sum()
    };
    let mut last = 1;
    let mut largest = 0;
    for _ in 0..60 {
        let mut big = batch(last + 1, last + 64, 2);
        for entry in &mut big.entries {
            entry.data = vec![0x5a; 64 << 10].into();
        }
        last += 64;
        subject.store().append(&[big]).unwrap();
        subject.store().checkpoint(&checkpoint(last, 2)).unwrap();
        subject.store().compact_log(last).unwrap();
        largest = largest.max(size(&subject));
    }
    // 240 MiB went through the log.
    assert!(largest < 200 << 20, "{largest} bytes at most");
}

#[test]
fn an_empty_tree_loads_after_a_restart_without_a_checkpoint() {
    let mut subject = OnDisk::new(false);
    subject.store().append(&[batch(2, 9, 2)]).unwrap();
    subject.restart();
    let tree = load_tree(subject.store()).unwrap();
    assert_eq!(tree.digest(), Tree::new().digest());
}

/// The value that every table of a checkpoint has at one key, if all have the same.
fn applied_in(view: &dyn RowView) -> Option<u64> {
    let mut found = Vec::new();
    for table in Table::ALL {
        let mut cursor = view.cursor(table).ok()?;
        cursor.seek(b"applied").ok()?;
        let (key, value) = cursor.row()?;
        assert_eq!(key, b"applied");
        found.push(u64::from_be_bytes(value.try_into().ok()?));
    }
    found
        .iter()
        .all(|value| *value == found[0])
        .then(|| found[0])
}

#[test]
fn a_view_stays_what_it_is_while_checkpoints_and_appends_go_on() {
    let disk = OnDisk::new(false);
    let store = disk.handle();
    store.append(&[batch(2, 400, 1)]).unwrap();
    store.checkpoint(&checkpoint(2, 1)).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for applied in 3..400 {
                store.checkpoint(&checkpoint(applied, 1)).unwrap();
                let next = 398 + applied;
                store.append(&[batch(next, next, 1)]).unwrap();
            }
            stop.store(true, Ordering::Relaxed);
        });
        let mut newest = 0;
        while !stop.load(Ordering::Relaxed) {
            let looked = store.view(&mut |view| {
                let first = applied_in(view).expect("one checkpoint");
                for _ in 0..20 {
                    assert_eq!(applied_in(view), Some(first));
                }
                assert!(first >= newest);
                newest = first;
            });
            looked.unwrap();
        }
    });
}

#[test]
fn who_looks_for_long_lets_go_when_the_store_is_opened_again() {
    let disk = OnDisk::new(false);
    let store = disk.handle();
    store.append(&[batch(2, 9, 1)]).unwrap();
    store.checkpoint(&checkpoint(9, 1)).unwrap();
    thread::scope(|scope| {
        let looked = store.view(&mut |view| {
            scope.spawn(|| store.reopen().unwrap());
            let mut cursor = view.cursor(Table::Nodes).unwrap();
            while cursor.seek(b"applied").is_ok() {
                thread::yield_now();
            }
        });
        looked.unwrap();
    });
    assert_rows_fit(&store, 9, "after all");
}
