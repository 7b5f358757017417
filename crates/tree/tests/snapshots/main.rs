//! Snapshots in ZooKeeper's format: those of a genuine server are restored, those written here come back whole,
//! and nothing that is damaged is taken.

#[path = "../common/mod.rs"]
mod common;

use common::*;
use quenda_proto::connect::PASSWORD_LEN;
use quenda_proto::{ErrorCode, Op};
use quenda_tree::command::{Command, Origin};
use quenda_tree::{AclEntry, Identity, SessionEffect, SnapshotError, Tree, check_snapshot};

const FRESH: &[u8] = include_bytes!("golden/fresh.snapshot");
const FULL: &[u8] = include_bytes!("golden/full.snapshot");
const FULL_SEEN: &str = include_str!("golden/full.txt");
const FULL_SESSION: &str = include_str!("golden/full.session");
/// The same with other trailers: of the digest alone, of the last zxid alone, none.
const OTHERS: [(&[u8], Option<i64>, Option<bool>); 3] = [
    (include_bytes!("golden/digest.snapshot"), None, Some(true)),
    (
        include_bytes!("golden/last-zxid.snapshot"),
        Some(0x1B),
        None,
    ),
    (include_bytes!("golden/bare.snapshot"), None, None),
];
const CONFIG: &str = "server.1=a:1:2;3\nserver.2=b:1:2:participant;3\nserver.3=c:1:2;c:3";

/// A znode as a client of the genuine server saw it.
fn shown(tree: &Tree, path: &str) -> String {
    let node = tree.get(path).expect(path);
    let data = match node.data() {
        None => "null".to_string(),
        Some(b"") => "-".to_string(),
        Some(data) => data.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    let stat = node.stat();
    let numbers = [
        stat.czxid,
        stat.mzxid,
        stat.ctime,
        stat.mtime,
        stat.version.into(),
        stat.cversion.into(),
        stat.aversion.into(),
        stat.ephemeral_owner,
        stat.data_length.into(),
        stat.num_children.into(),
        stat.pzxid,
    ];
    let numbers: Vec<String> = numbers.iter().map(i64::to_string).collect();
    let entry = |entry: &AclEntry| format!("{}:{}:{}", entry.perms, entry.scheme, entry.id);
    let list: Vec<String> = tree.acl(node.acl()).iter().map(entry).collect();
    format!("{path}\t{data}\t{}\t{}", numbers.join(" "), list.join(" "))
}

fn restore(member: &mut Member, restore: u64, bytes: &[u8]) -> Outcome {
    let commands = restore_commands(restore, bytes, 1000);
    let (last, pieces) = commands.split_last().expect("commands");
    for piece in pieces {
        assert_eq!(member.apply(piece).code, ErrorCode::Ok);
    }
    member.apply(last)
}

fn full_session() -> (i64, [u8; PASSWORD_LEN]) {
    let (id, password) = FULL_SESSION.trim().split_once(' ').expect("two words");
    let password = u128::from_str_radix(password, 16).expect("a password");
    (
        i64::from_str_radix(id, 16).expect("an id"),
        password.to_be_bytes(),
    )
}

fn check(bytes: &[u8]) -> Result<quenda_tree::Checked, SnapshotError> {
    check_snapshot(bytes, bytes.len() as u64)
}

#[test]
fn a_genuine_snapshot_shows_what_the_genuine_server_showed() {
    let mut member = Member::founded(CONFIG);
    let before = shown(&member.tree, "/zookeeper/config");
    let outcome = restore(&mut member, 7, FULL);
    assert_eq!(
        (outcome.code, outcome.session),
        (ErrorCode::Ok, SessionEffect::Restored)
    );
    assert_eq!(outcome.changes, []);
    for line in FULL_SEEN.lines() {
        let path = line.split('\t').next().expect("a path");
        match path {
            "/zookeeper/config" => assert_eq!(shown(&member.tree, path), before),
            _ => assert_eq!(shown(&member.tree, path), line),
        }
    }
    let counts = member.tree.counts();
    assert_eq!(counts.znodes, FULL_SEEN.lines().count());
    assert_eq!(
        (counts.ephemerals, counts.containers, counts.ttls),
        (2, 1, 1)
    );
    assert_eq!(member.tree.digest(), member.tree.recompute_digest());
    // The number of the next sequential znode is the count of creates, which clients do not see.
    let client = Client::new(SESSION);
    member.open(SESSION);
    let name = member.create(&client, "/queue/n-", 2);
    assert_eq!(name.as_deref(), Ok("/queue/n-0000000004"));
}

#[test]
fn trailers_are_told_apart_by_what_is_left() {
    let mut all = vec![(FULL, Some(0x1B), Some(true))];
    all.extend(OTHERS);
    for (bytes, last_zxid, digest_fits) in all {
        let checked = check(bytes).expect("a snapshot");
        assert_eq!(
            (checked.last_zxid, checked.digest_fits),
            (last_zxid, digest_fits)
        );
        assert_eq!(
            (checked.znodes, checked.sessions, checked.orphans),
            (24, 1, 0)
        );
    }
    let fresh = check(FRESH).expect("a snapshot");
    assert_eq!(
        (fresh.znodes, fresh.sessions, fresh.last_zxid),
        (4, 0, Some(0))
    );
}

#[test]
fn every_truncation_and_every_flipped_bit_is_refused() {
    for (bytes, ..) in OTHERS {
        for end in 0..bytes.len() {
            // Where a trailer ends a snapshot may end, too.
            let is_shorter_form = check(&bytes[..end]).is_ok();
            let rest = bytes.len() - end;
            assert!(!is_shorter_form || matches!(rest, 21 | 33), "{end}");
        }
    }
    for position in 0..FULL.len() {
        for bit in [0, 3, 7] {
            let mut bytes = FULL.to_vec();
            bytes[position] ^= 1 << bit;
            let checked = check(&bytes);
            assert!(checked.is_err(), "byte {position} bit {bit}: {checked:?}");
        }
    }
    let longer = [FULL, &[0]].concat();
    assert!(check(&longer).is_err());
}

#[test]
fn a_length_that_lies_takes_no_memory() {
    // Behind header, sessions and lists the path of the root has four bytes of length.
    let mut bytes = FRESH.to_vec();
    bytes[16..20].copy_from_slice(&i32::MAX.to_be_bytes());
    let error = check(&bytes).expect_err("too many sessions");
    assert!(matches!(error, SnapshotError::Truncated { .. }), "{error}");
    bytes[16..20].copy_from_slice(&(-2_i32).to_be_bytes());
    let error = check(&bytes).expect_err("a negative number");
    assert!(
        matches!(error, SnapshotError::Length { length: -2, .. }),
        "{error}"
    );
}

#[test]
fn what_was_written_here_comes_back() {
    let mut member = Member::founded(CONFIG);
    let client = Client::new(SESSION).with("digest", "u:h");
    member.must_create_with("/a", b"1");
    for path in ["/a/ephemeral", "/b", "/a/e\u{301}", "/a/\u{4e2d}"] {
        member
            .create(&client, path, i32::from(path.ends_with("ral")))
            .expect(path);
    }
    let list = vec![acl(31, "digest", "u:h"), acl(1, "ip", "::1/64")];
    let request = create_acl("/secret", list);
    assert_eq!(
        member.send(&client, Op::Create, &request).code,
        ErrorCode::Ok
    );
    member.send(&client, Op::CreateTtl, &create_ttl("/ttl", 5, 1234));
    member.send(&client, Op::CreateContainer, &create("/container", None, 4));
    let bytes = snapshot(&member.tree);
    let before = dump(&member.tree);

    // Back in the same cluster, after other things.
    member.must_create("/later");
    member.delete(&client, "/b", -1);
    let last = member.tree.last_zxid();
    let outcome = restore(&mut member, 1, &bytes);
    assert!(outcome.zxid > last);
    assert_eq!(member.tree.last_zxid(), outcome.zxid);
    let after = dump(&member.tree);
    assert_eq!(after.znodes, before.znodes);
    assert_eq!(after.counts, before.counts);
    assert_eq!(after.config, before.config);
    assert_eq!(member.tree.digest(), member.tree.recompute_digest());
    // Now the snapshot differs by its zxids alone.
    let again = snapshot(&member.tree);
    assert_eq!(again.len(), bytes.len());
}

#[test]
fn sessions_come_back_and_no_old_connection_with_them() {
    let mut member = Member::founded(CONFIG);
    member.open(OTHER);
    let kept = Client::new(SESSION);
    let bytes = snapshot(&member.tree);
    let third = OTHER + 1;
    member.open(third);
    let outcome = restore(&mut member, 1, &bytes);
    assert!(member.tree.session(third).is_none());
    assert_eq!(member.tree.newest_session(1), Some(third));
    // What was on its way when the state changed has no effect.
    assert_eq!(
        member.create(&kept, "/late", 0),
        Err(ErrorCode::SessionMoved)
    );
    let generation = member.tree.session(SESSION).expect("kept").generation;
    assert_eq!(generation, outcome.zxid as u64);
    let resume = Command::ResumeSession {
        origin: Origin::default(),
        session: SESSION,
        timeout_ms: 4000,
        password: member.tree.session_password(SESSION),
    };
    let resumed = member.apply(&resume);
    assert_eq!(resumed.code, ErrorCode::Ok);
    let stale = Command::ExpireSession {
        session: OTHER,
        generation: 1,
    };
    assert_eq!(member.apply(&stale).code, ErrorCode::SessionMoved);
}

#[test]
fn the_password_of_a_zookeeper_is_taken_for_its_sessions_alone() {
    let mut member = Member::founded(CONFIG);
    let own = member.tree.session(SESSION).is_some().then_some(SESSION);
    assert_eq!(own, Some(SESSION));
    restore(&mut member, 1, FULL);
    let (session, password) = full_session();
    let resume = |session, password| Command::ResumeSession {
        origin: Origin::default(),
        session,
        timeout_ms: 4000,
        password,
    };
    let mut wrong = password;
    wrong[0] ^= 1;
    assert_eq!(
        member.apply(&resume(session, wrong)).session,
        SessionEffect::Refused
    );
    for password in [password, member.tree.session_password(session), password] {
        let outcome = member.apply(&resume(session, password));
        assert_eq!(outcome.code, ErrorCode::Ok);
    }
    // It stays so over a checkpoint, and over a snapshot of this cluster it does not.
    let mut loaded = Member {
        tree: Store::full(&member.tree).load(),
        ..Member::new()
    };
    assert_eq!(loaded.tree.digest(), member.tree.digest());
    assert_eq!(loaded.apply(&resume(session, password)).code, ErrorCode::Ok);
    let bytes = snapshot(&loaded.tree);
    restore(&mut loaded, 2, &bytes);
    assert_eq!(
        loaded.apply(&resume(session, password)).session,
        SessionEffect::Refused
    );
    let ours = loaded.tree.session_password(session);
    assert_eq!(loaded.apply(&resume(session, ours)).code, ErrorCode::Ok);
}

#[test]
fn zxids_leave_both_histories_behind() {
    let mut member = Member::founded(CONFIG);
    let low = restore(&mut member, 1, FULL).zxid;
    assert!(low > 0x1_0000_0000);
    // A snapshot of a cluster that has gone further.
    let mut ahead = Member::founded(CONFIG);
    ahead.term = 900;
    ahead.must_create("/ahead");
    let bytes = snapshot(&ahead.tree);
    let high = restore(&mut member, 2, &bytes).zxid;
    assert!(high > ahead.tree.last_zxid(), "{high:#x}");
    let client = Client {
        generation: high as u64,
        ..Client::new(SESSION)
    };
    assert_eq!(member.create(&client, "/x", 0).as_deref(), Ok("/x"));
    assert!(member.stat("/x").czxid > high);
    assert_eq!(
        member.tree.restored().map(|done| (done.id, done.zxid)),
        Some((2, high))
    );
}

#[test]
fn a_restore_is_done_once() {
    let mut member = Member::founded(CONFIG);
    let first = restore(&mut member, 5, FULL);
    let again = restore_commands(5, FULL, 1000).pop().expect("a command");
    let second = member.apply(&again);
    assert_eq!((second.zxid, second.code), (first.zxid, ErrorCode::Ok));
    assert_eq!(second.session, SessionEffect::None);
}

#[test]
fn pieces_are_out_of_sight_and_in_the_checkpoint() {
    let mut member = Member::founded(CONFIG);
    let (before, zxid) = (dump(&member.tree), member.tree.last_zxid());
    let mut store = Store::default();
    member.tree.write_checkpoint(&mut store);
    let commands = restore_commands(3, FULL, 700);
    let digest = member.tree.digest();
    for piece in &commands[..2] {
        assert_eq!(member.apply(piece).code, ErrorCode::Ok);
    }
    assert!(member.tree.dirty_bytes() >= 1400);
    assert_eq!(dump(&member.tree), before);
    assert_eq!(member.tree.last_zxid(), zxid);
    assert_ne!(member.tree.digest(), digest);
    assert_eq!(member.tree.restore_pieces(), Some((3, 2)));
    member.tree.write_checkpoint(&mut store);
    // Another member goes on from there.
    let mut heir = Member {
        tree: store.load(),
        ..Member::new()
    };
    assert_eq!(heir.tree.restore_pieces(), Some((3, 2)));
    for command in &commands[1..] {
        assert_eq!(heir.apply(command).code, ErrorCode::Ok, "{command:?}");
    }
    assert!(heir.has("/plain/child"));
    heir.tree.write_checkpoint(&mut store);
    let loaded = store.load();
    assert_eq!(dump(&loaded), dump(&heir.tree));
    assert_eq!(loaded.digest(), heir.tree.digest());
    assert_eq!(loaded.restored(), heir.tree.restored());
    assert_eq!(store, Store::full(&heir.tree), "nothing of before is left");
    // The first one gives it up.
    let origin = Origin::default();
    member.apply(&Command::DropPieces { origin, restore: 4 });
    assert!(member.tree.restore_pieces().is_some());
    member.apply(&Command::DropPieces { origin, restore: 3 });
    assert_eq!(
        (member.tree.restore_pieces(), member.tree.digest()),
        (None, digest)
    );
}

#[test]
fn pieces_that_do_not_fit_change_nothing() {
    let mut member = Member::founded(CONFIG);
    let before = dump(&member.tree);
    let piece = |restore, number, bytes| Command::AddPiece {
        origin: Origin::default(),
        restore,
        number,
        bytes,
    };
    let too_long = vec![0; 600 << 10];
    for (command, code) in [
        (piece(1, 1, &b"x"[..]), ErrorCode::NoNode),
        (piece(1, 0, b""), ErrorCode::BadArguments),
        (piece(1, 0, &too_long), ErrorCode::BadArguments),
        (piece(1, 0, b"abc"), ErrorCode::Ok),
        (piece(1, 0, b"abc"), ErrorCode::Ok),
        (piece(1, 0, b"abd"), ErrorCode::BadArguments),
        (piece(1, 2, b"abc"), ErrorCode::NoNode),
        // Another one takes its place.
        (piece(2, 0, b"abc"), ErrorCode::Ok),
        (piece(1, 1, b"abc"), ErrorCode::NoNode),
    ] {
        assert_eq!(member.apply(&command).code, code, "{command:?}");
    }
    let damaged = &FULL[..FULL.len() - 50];
    let outcome = restore(&mut member, 3, damaged);
    assert_eq!((outcome.zxid, outcome.code), (0, ErrorCode::BadArguments));
    let mut commands = restore_commands(4, FULL, 1000);
    let last = commands.pop().expect("a command");
    for command in &commands[..commands.len() - 1] {
        member.apply(command);
    }
    assert_eq!(member.apply(&last).code, ErrorCode::NoNode);
    assert_eq!(member.tree.restore_pieces(), None);
    assert_eq!(dump(&member.tree), before);
}

/// Path, data, list, owner, zxid.
type PlainNode = (&'static str, Option<&'static [u8]>, i64, i64, i64);
/// Permissions, scheme, id.
type PlainEntry = (i32, &'static str, &'static str);

/// A snapshot made of these parts.
struct Parts {
    sessions: Vec<(i64, i32)>,
    acls: Vec<(i64, Vec<PlainEntry>)>,
    nodes: Vec<PlainNode>,
}

impl Parts {
    fn of(nodes: &[PlainNode]) -> Parts {
        let mut all = vec![("", Some(&b""[..]), -1, 0, 0)];
        all.extend_from_slice(nodes);
        Parts {
            sessions: vec![(5, 4000)],
            acls: vec![(3, vec![(1, "world", "anyone")])],
            nodes: all,
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let text = |out: &mut Vec<u8>, text: &[u8]| {
            out.extend((text.len() as i32).to_be_bytes());
            out.extend(text);
        };
        out.extend(*b"ZKSN\0\0\0\x02");
        out.extend((-1_i64).to_be_bytes());
        out.extend((self.sessions.len() as i32).to_be_bytes());
        for (id, timeout_ms) in &self.sessions {
            out.extend(id.to_be_bytes());
            out.extend(timeout_ms.to_be_bytes());
        }
        out.extend((self.acls.len() as i32).to_be_bytes());
        for (key, entries) in &self.acls {
            out.extend(key.to_be_bytes());
            out.extend((entries.len() as i32).to_be_bytes());
            for (perms, scheme, id) in entries {
                out.extend(perms.to_be_bytes());
                text(&mut out, scheme.as_bytes());
                text(&mut out, id.as_bytes());
            }
        }
        for (path, data, acl, owner, zxid) in &self.nodes {
            text(&mut out, path.as_bytes());
            match data {
                None => out.extend((-1_i32).to_be_bytes()),
                Some(data) => text(&mut out, data),
            }
            for value in [*acl, *zxid, *zxid, 0, 0] {
                out.extend(value.to_be_bytes());
            }
            out.extend([0; 12]);
            out.extend(owner.to_be_bytes());
            out.extend(zxid.to_be_bytes());
        }
        text(&mut out, b"/");
        let (mut a, mut b) = (1_u32, 0_u32);
        for byte in &out {
            a = (a + u32::from(*byte)) % 65_521;
            b = (b + a) % 65_521;
        }
        out.extend(i64::from(b << 16 | a).to_be_bytes());
        text(&mut out, b"/");
        out
    }
}

#[test]
fn what_makes_no_tree_is_refused_with_its_reason() {
    let ttl = 0xFF << 56;
    let cases: [(&[_], &str); 15] = [
        (&[("/a", None, 9, 0, 1)], "access control list 9"),
        (&[("/a/b", None, -1, 0, 1)], "no parent"),
        (&[("/a", None, -1, 0, 1), ("/a", None, -1, 0, 1)], "twice"),
        (&[("/a/", None, -1, 0, 1)], "path"),
        (&[("a", None, -1, 0, 1)], "path"),
        (&[("//a", None, -1, 0, 1)], "path"),
        (&[("/..", None, -1, 0, 1)], "path"),
        (&[("/a\u{1b}[31m", None, -1, 0, 1)], "path"),
        (&[("/a\0", None, -1, 0, 1)], "path"),
        (&[("/a", None, -1, 0, -1)], "zxid"),
        (&[("/a", None, -1, 0, i64::MAX)], "zxid"),
        (&[("/a", None, -1, ttl | 1 << 40, 1)], "owner"),
        (&[("/zookeeper", None, -1, 5, 1)], "owner"),
        // An ephemeral znode has no children, neither has one that is left out.
        (
            &[("/a", None, -1, 5, 1), ("/a/b", None, -1, 0, 1)],
            "no parent",
        ),
        (
            &[("/a", None, -1, 6, 1), ("/a/b", None, -1, 0, 1)],
            "no parent",
        ),
    ];
    for (nodes, reason) in cases {
        let error = check(&Parts::of(nodes).bytes()).expect_err(reason);
        assert!(error.to_string().contains(reason), "{error}");
    }
    for session in [
        (0, 4000),
        (i64::MIN, 4000),
        (ttl | 5, 4000),
        (5, 0),
        (5, -1),
    ] {
        let mut parts = Parts::of(&[]);
        parts.sessions = vec![session];
        let error = check(&parts.bytes()).expect_err("no session");
        assert!(matches!(error, SnapshotError::Session { .. }), "{error}");
    }
    let mut parts = Parts::of(&[]);
    parts.sessions = vec![(5, 1), (5, 1)];
    assert!(check(&parts.bytes()).is_err());
    let mut parts = Parts::of(&[]);
    parts.acls.push(parts.acls[0].clone());
    assert!(check(&parts.bytes()).is_err());
}

#[test]
fn an_old_snapshot_without_built_in_znodes_gets_them() {
    let ttl = (0xFF << 56) | 1234;
    let parts = Parts::of(&[
        ("/a", None, 3, 0, 1),
        ("/gone", Some(b""), -1, 77, 2),
        ("/ttl", Some(b""), -1, ttl, 3),
    ]);
    let mut member = Member::new();
    assert_eq!(restore(&mut member, 1, &parts.bytes()).code, ErrorCode::Ok);
    for path in ["/zookeeper", "/zookeeper/quota", "/zookeeper/config"] {
        assert!(member.has(path), "{path}");
    }
    assert_eq!(member.data("/a"), None);
    // Its session is not in the snapshot.
    assert!(!member.has("/gone"));
    assert_eq!(member.tree.counts().ttls, 1);
    let node = member.tree.get("/a").expect("/a");
    assert_eq!(
        member.tree.acl(node.acl()),
        [AclEntry::new(1, "world", "anyone")]
    );
    assert!(
        !member
            .tree
            .allows(node.acl(), 2, &[Identity::new("ip", "1.1.1.1")])
    );
    assert_eq!(check(&parts.bytes()).expect("good").orphans, 1);
}

#[test]
fn totals_of_quotas_are_counted_anew() {
    let mut member = Member::founded(CONFIG);
    for path in ["/q", "/zookeeper/quota/q"] {
        member.must_create(path);
    }
    member.must_create_with("/zookeeper/quota/q/zookeeper_limits", b"count=5,bytes=-1");
    member.must_create_with("/zookeeper/quota/q/zookeeper_stats", b"");
    member.must_create_with("/q/below", b"123");
    let bytes = snapshot(&member.tree);
    let wrong = bytes
        .windows(15)
        .position(|bytes| bytes == b"count=2,bytes=3");
    let wrong = wrong.expect("the totals");
    restore(&mut member, 1, &bytes);
    assert_eq!(
        member.text("/zookeeper/quota/q/zookeeper_stats"),
        "count=2,bytes=3"
    );
    // As a snapshot that was taken while the server wrote has them; the checksums are left out here.
    let mut other = bytes.clone();
    other[wrong + 6] = b'9';
    assert!(check(&other).is_err());
}

/// Random trees come back from their snapshots; `QUENDA_SEED` runs one.
#[test]
fn random_trees_round_trip() {
    let seeds = match std::env::var("QUENDA_SEED") {
        Ok(seed) => vec![seed.parse().expect("a number")],
        Err(_) => (1..40).collect(),
    };
    for seed in seeds {
        let mut random = Random::new(seed);
        let mut member = Member::founded(if seed % 2 == 0 { CONFIG } else { "" });
        member.open(OTHER);
        let mut paths = vec![String::new()];
        for step in 0..random.below(400) {
            let parent = paths[random.below(paths.len())].clone();
            let path = format!(
                "{parent}/{}{step}",
                random.pick(&["a", "\u{e9}", "x y", "%2F"])
            );
            let session = random.pick(&[SESSION, OTHER]);
            let client = Client::new(session);
            let flags = random.pick(&[0, 0, 0, 1]);
            let data = vec![7; random.below(300)];
            let mut request = create(&path, Some(&data), flags);
            if random.one_in(3) {
                request.data = None;
            }
            if random.one_in(2) {
                request.acl = Some(vec![acl(random.below(31) as i32 + 1, "ip", "10.0.0.1")]);
                request
                    .acl
                    .as_mut()
                    .expect("a list")
                    .push(acl(31, "world", "anyone"));
            }
            if member.send(&client, Op::Create, &request).code == ErrorCode::Ok && flags == 0 {
                paths.push(path);
            } else if random.one_in(2) {
                member.delete(&client, &path, -1);
            }
        }
        let bytes = snapshot(&member.tree);
        let checked = check(&bytes).expect("good");
        assert_eq!(checked.digest_fits, Some(true), "seed {seed}");
        let before = dump(&member.tree);
        let size = random.below(5000) + 50;
        for command in restore_commands(1, &bytes, size) {
            assert_eq!(member.apply(&command).code, ErrorCode::Ok, "seed {seed}");
        }
        let after = dump(&member.tree);
        assert_eq!(after.znodes, before.znodes, "seed {seed}");
        assert_eq!(after.counts, before.counts, "seed {seed}");
        let digest = member.tree.recompute_digest();
        assert_eq!(member.tree.digest(), digest, "seed {seed}");
    }
}
