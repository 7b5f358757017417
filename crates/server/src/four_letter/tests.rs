//! Answers against those of a genuine ZooKeeper 3.9.5 in the same state (`integration/four_letter/capture.py` wrote the
//! files under `golden/`), and against what public collectors expect.

use std::cell::Cell;
use std::net::SocketAddr;

use super::*;
use crate::metrics::{Counter, Page, Percentiles, Summary};

/// The state in which the goldens were taken: two sessions, three ephemeral znodes, watches of both sessions.
#[derive(Default)]
pub(super) struct Captured {
    pub(super) stopped: bool,
    idle: bool,
    pub(super) mode: Option<Mode>,
    server_reset: Cell<bool>,
    connections_reset: Cell<bool>,
}

pub(super) const SESSION_1: i64 = 0x100_0000_0000_0001;
pub(super) const SESSION_2: i64 = 0x100_0000_0000_0002;

pub(super) fn strings(paths: &[&str]) -> Vec<String> {
    paths.iter().map(|&path| path.to_owned()).collect()
}

impl Captured {
    fn session(
        &self,
        id: i64,
        last_operation: &'static str,
        last_cxid: i64,
    ) -> Option<SessionView> {
        let reset = self.connections_reset.get();
        let unless_reset = |value| if reset { 0 } else { value };
        Some(SessionView {
            id,
            last_operation: if reset { "NA" } else { last_operation },
            established_ms: 1_795_984_076_326,
            timeout_ms: 30_000,
            last_cxid: if reset { -1 } else { last_cxid },
            last_zxid: if reset { -1 } else { 7 },
            last_response_ms: unless_reset(822_492),
            last_latency_ms: unless_reset(39),
            min_latency_ms: unless_reset(1),
            avg_latency_ms: unless_reset(20),
            max_latency_ms: unless_reset(116),
        })
    }

    fn connection(&self, port: u16, received: u64, session: Option<SessionView>) -> ConnectionView {
        let received = if self.connections_reset.get() {
            0
        } else {
            received
        };
        ConnectionView {
            peer: SocketAddr::from(([127, 0, 0, 1], port)),
            secure: false,
            queued: 0,
            received,
            sent: received,
            // A connection without a session has 10 s, the others their timeout.
            expires_ms: 1_795_984_098_000 + if session.is_some() { 10_000 } else { 0 },
            session,
        }
    }
}

impl Source for Captured {
    fn serving(&self) -> bool {
        !self.stopped
    }

    fn mode(&self) -> Mode {
        self.mode.unwrap_or(Mode::Standalone)
    }

    fn traffic(&self) -> Traffic {
        let latency = if self.server_reset.get() {
            (0, 0.0, 0)
        } else {
            (1, 35.0 / 12.0, 18)
        };
        Traffic {
            received: 28,
            sent: 26,
            latency_min_ms: latency.0,
            latency_avg_ms: latency.1,
            latency_max_ms: latency.2,
            outstanding: 0,
            connections: 3,
        }
    }

    fn state(&self) -> State {
        // The root, /zookeeper, /zookeeper/quota, /zookeeper/config and the five that the capture created.
        State {
            zxid: 7,
            znodes: 9,
            ephemerals: 3,
            data_bytes: 60,
            sessions: 2,
            local_sessions: 0,
            watches: 4,
        }
    }

    fn process(&self) -> Process {
        Process {
            open_files: 40,
            max_files: 20_000,
            uptime_ms: 307,
        }
    }

    fn connections(&self) -> Vec<ConnectionView> {
        let mut asking = self.connection(40_003, 0, None);
        asking.received = 1;
        vec![
            self.connection(40_001, 8, self.session(SESSION_1, "GETC", 7)),
            self.connection(40_002, 3, self.session(SESSION_2, "GETD", 2)),
            asking,
        ]
    }

    fn settings(&self) -> Settings {
        Settings {
            client_port: 2181,
            secure_client_port: -1,
            data_dir: "/data/version-2".to_owned(),
            data_log_dir: "/data/version-2".to_owned(),
            tick_time_ms: 2000,
            max_client_cnxns: 0,
            min_session_timeout_ms: 4000,
            max_session_timeout_ms: 40_000,
            client_port_listen_backlog: -1,
            server_id: 0,
        }
    }

    fn directory_sizes(&self) -> DirectorySizes {
        DirectorySizes {
            data_bytes: 67_109_358,
            log_bytes: 67_109_358,
        }
    }

    fn local_session_expiries(&self) -> Option<Vec<SessionExpiry>> {
        None
    }

    fn session_expiries(&self) -> Vec<SessionExpiry> {
        // Sun Nov 29 20:28:28 UTC 2026, in any order and not on the same millisecond.
        vec![
            SessionExpiry {
                id: SESSION_2,
                at_ms: 1_795_984_108_999,
            },
            SessionExpiry {
                id: SESSION_1,
                at_ms: 1_795_984_108_000,
            },
        ]
    }

    fn session_timeouts(&self) -> Vec<(i64, i32)> {
        vec![(SESSION_2, 30_000), (SESSION_1, 30_000)]
    }

    fn load(&self) -> String {
        "{}".to_owned()
    }
    fn status(&self) -> String {
        "{}".to_owned()
    }

    fn ephemerals(&self) -> Vec<(i64, Vec<String>)> {
        vec![
            (SESSION_1, strings(&["/e1", "/e2"])),
            (SESSION_2, strings(&["/e3"])),
        ]
    }

    fn watch_summary(&self) -> WatchSummary {
        if self.idle {
            WatchSummary::default()
        } else {
            WatchSummary {
                connections: 2,
                paths: 2,
                total: 3,
            }
        }
    }

    fn watches_by_session(&self) -> Vec<(i64, Vec<String>)> {
        if self.idle {
            return Vec::new();
        }
        vec![
            (SESSION_1, strings(&["/a", "/b"])),
            (SESSION_2, strings(&["/a"])),
        ]
    }

    fn watches_by_path(&self) -> Vec<(String, Vec<i64>)> {
        if self.idle {
            return Vec::new();
        }
        vec![
            ("/a".to_owned(), vec![SESSION_1, SESSION_2]),
            ("/b".to_owned(), vec![SESSION_1]),
        ]
    }

    fn metrics(&self, page: &mut dyn Page) {
        let (requests, fsync, updates) = (
            Counter::default(),
            Summary::default(),
            Percentiles::default(),
        );
        requests.add(2);
        for value in [0, 0, 0, 0, 1, 1, 1, 1, 2, 5, 6, 18] {
            fsync.observe(value);
            updates.observe(value);
        }
        page.counter("connection_request_count", &requests);
        page.gauge("min_client_response_size", -1);
        page.real("connection_drop_probability", 0.0);
        page.summary("fsynctime", &fsync);
        page.percentiles("updatelatency", &updates);
    }

    fn reset_server_figures(&self) {
        self.server_reset.set(true);
    }

    fn reset_connection_figures(&self) {
        self.connections_reset.set(true);
    }
}

pub(super) fn words(whitelist: &str) -> FourLetterWords {
    let value = || "VALUE".to_owned();
    let environment = Environment {
        host_name: value(),
        tmp_dir: value(),
        os_arch: value(),
        os_version: value(),
        user_name: value(),
        user_home: value(),
        user_dir: value(),
    };
    FourLetterWords::new(
        Whitelist::from_setting(Some(whitelist), false),
        "VERSION".to_owned(),
        environment,
    )
}

fn ask(source: &Captured, word: Word) -> String {
    words("*").answer(word, &[], source)
}

#[test]
fn answers_equal_those_of_a_genuine_server() {
    let source = Captured::default();
    let goldens = [
        (Word::Ruok, include_str!("golden/ruok.txt")),
        (Word::Isro, include_str!("golden/isro.txt")),
        (Word::Gtmk, include_str!("golden/gtmk.txt")),
        (Word::Srvr, include_str!("golden/srvr.txt")),
        (Word::Stat, include_str!("golden/stat.txt")),
        (Word::Cons, include_str!("golden/cons.txt")),
        (Word::Conf, include_str!("golden/conf.txt")),
        (Word::Dirs, include_str!("golden/dirs.txt")),
        (Word::Dump, include_str!("golden/dump.txt")),
        (Word::Hash, include_str!("golden/hash.txt")),
        (Word::Wchs, include_str!("golden/wchs.txt")),
        (Word::Wchc, include_str!("golden/wchc.txt")),
        (Word::Wchp, include_str!("golden/wchp.txt")),
        (Word::Crst, include_str!("golden/crst.txt")),
        (Word::Cons, include_str!("golden/cons_after_crst.txt")),
        (Word::Srst, include_str!("golden/srst.txt")),
        (Word::Srvr, include_str!("golden/srvr_after_srst.txt")),
    ];
    for (word, golden) in goldens {
        assert_eq!(ask(&source, word), golden, "{word:?}");
    }
}

#[test]
fn answers_without_watches_equal_those_of_a_genuine_server() {
    let source = Captured {
        idle: true,
        ..Captured::default()
    };
    assert_eq!(
        ask(&source, Word::Wchs),
        include_str!("golden/wchs_idle.txt")
    );
    assert_eq!(
        ask(&source, Word::Wchc),
        include_str!("golden/wchc_idle.txt")
    );
    assert_eq!(
        ask(&source, Word::Wchp),
        include_str!("golden/wchp_idle.txt")
    );
}

#[test]
fn envi_has_the_keys_of_a_genuine_server_in_their_order() {
    let keys = |text: &str| -> Vec<String> {
        text.lines()
            .map(|line| line.split('=').next().unwrap_or_default().to_owned())
            .collect()
    };
    let answer = ask(&Captured::default(), Word::Envi);
    assert_eq!(keys(&answer), keys(include_str!("golden/envi.txt")));
    for line in answer.lines().filter(|line| line.starts_with("os.memory")) {
        let value = line
            .split('=')
            .nth(1)
            .and_then(|value| value.strip_suffix("MB"));
        assert!(
            value.is_some_and(|value| value.parse::<u64>().is_ok()),
            "{line}"
        );
    }
}

#[test]
fn the_surroundings_of_this_process_are_found() {
    let environment = Environment::of_this_process();
    for value in [
        &environment.host_name,
        &environment.os_version,
        &environment.user_dir,
    ] {
        assert!(!value.is_empty() && value != "<NA>", "{environment:?}");
    }
}

#[test]
fn the_trace_mask_is_kept() {
    let words = words("*");
    let source = Captured::default();
    assert_eq!(
        words.answer(Word::Stmk, b"\0\0\0\0\0\0\0B", &source),
        include_str!("golden/stmk.txt")
    );
    assert_eq!(
        words.answer(Word::Gtmk, &[], &source),
        include_str!("golden/gtmk_after_stmk.txt")
    );
    assert_eq!(words.answer(Word::Stmk, b"short", &source), "66");
}

#[test]
fn a_word_outside_the_whitelist_is_refused_by_name() {
    let answer = words("ruok").answer(Word::Wchc, &[], &Captured::default());
    assert_eq!(answer, include_str!("golden/refused.txt"));
}

#[test]
fn a_reset_outside_the_whitelist_resets_nothing() {
    let source = Captured::default();
    for word in [Word::Srst, Word::Crst] {
        words("ruok").answer(word, &[], &source);
    }
    assert!(!source.server_reset.get() && !source.connections_reset.get());
}

#[test]
fn a_member_that_does_not_serve_says_so() {
    let source = Captured {
        stopped: true,
        ..Captured::default()
    };
    assert_eq!(ask(&source, Word::Ruok), "imok");
    assert_eq!(ask(&source, Word::Isro), "null");
    assert_eq!(ask(&source, Word::Gtmk), "306");
    assert_eq!(ask(&source, Word::Hash), NOT_SERVING);
    assert!(ask(&source, Word::Envi).starts_with("Environment:\n"));
    for word in [
        Word::Srvr,
        Word::Stat,
        Word::Mntr,
        Word::Conf,
        Word::Cons,
        Word::Dump,
        Word::Wchs,
        Word::Srst,
    ] {
        assert_eq!(
            ask(&source, word),
            "This ZooKeeper instance is not currently serving requests\n",
            "{word:?}"
        );
    }
    assert!(
        !source.server_reset.get(),
        "srst reset a member that does not serve"
    );
}

#[test]
fn a_read_only_member_says_so_in_the_second_line() {
    let source = Captured {
        mode: Some(Mode::ReadOnly),
        ..Captured::default()
    };
    assert_eq!(ask(&source, Word::Isro), "ro");
    for word in [Word::Srvr, Word::Stat] {
        let answer = ask(&source, word);
        assert_eq!(
            answer.lines().nth(1),
            Some("READ-ONLY mode; serving only read-only clients")
        );
        assert!(answer.contains("\nMode: read-only\n"), "{answer}");
    }
}

#[test]
fn addresses_are_printed_as_java_prints_them() {
    let cases = [
        ("[::1]:49456", "/[0:0:0:0:0:0:0:1]:49456"),
        (
            "[2001:db8::ff00:42:8329]:1",
            "/[2001:db8:0:0:0:ff00:42:8329]:1",
        ),
        ("[::ffff:10.0.0.7]:65535", "/10.0.0.7:65535"),
        ("10.0.0.7:1", "/10.0.0.7:1"),
    ];
    for (address, expected) in cases {
        assert_eq!(
            text::address(address.parse().expect("an address")),
            expected
        );
    }
}

/// Telegraf gives the whole answer up if one line is not `zk_`, a name, blanks, and a value of word characters, points
/// and dashes; older releases want names of word characters alone.
#[test]
fn every_line_of_mntr_is_one_that_telegraf_takes() {
    let word = |text: &str| {
        !text.is_empty()
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let answer = FourLetterWords::new(
        Whitelist::from_setting(Some("*"), false),
        version("0.1.0", Some("5a880c4"), 1_795_993_801),
        Environment::of_this_process(),
    )
    .answer(Word::Mntr, &[], &Captured::default());
    for line in answer.lines() {
        let (name, value) = line
            .split_once('\t')
            .unwrap_or_else(|| panic!("no tab in {line:?}"));
        assert!(name.strip_prefix("zk_").is_some_and(word), "{line:?}");
        let first = value.chars().next();
        assert!(
            first.is_some_and(|first| first.is_ascii_alphanumeric() || first == '-'),
            "{line:?}"
        );
    }
    assert!(
        answer
            .starts_with("zk_version\t3.9.5-quenda.0.1.0-5a880c4, built on 11/29/2026 23:10 UTC\n"),
        "{answer}"
    );
    assert_eq!(answer.lines().nth(1), Some("zk_server_state\tstandalone"));
}

#[test]
fn every_key_of_mntr_is_one_of_a_genuine_server_and_none_comes_twice() {
    let genuine: Vec<&str> = include_str!("golden/mntr.txt").lines().collect();
    let answer = ask(&Captured::default(), Word::Mntr);
    let mut keys: Vec<&str> = answer
        .lines()
        .filter_map(|line| line.split('\t').next())
        .collect();
    for key in &keys {
        assert!(genuine.contains(key), "{key} is not a key of ZooKeeper");
    }
    keys.sort_unstable();
    assert!(keys.windows(2).all(|pair| pair[0] != pair[1]), "{keys:?}");
}

#[test]
fn the_classic_gauges_of_mntr_lie_in_the_first_4_kib() {
    let answer = ask(&Captured::default(), Word::Mntr);
    let head = &answer[..answer.len().min(4096)];
    let expected = [
        "avg_latency\t2.9167",
        "max_latency\t18",
        "min_latency\t1",
        "packets_received\t28",
        "packets_sent\t26",
        "num_alive_connections\t3",
        "outstanding_requests\t0",
        "znode_count\t10",
        "watch_count\t4",
        "ephemerals_count\t3",
        "approximate_data_size\t60",
        "open_file_descriptor_count\t40",
        "max_file_descriptor_count\t20000",
        "global_sessions\t2",
        "uptime\t307",
    ];
    for line in expected {
        assert!(
            head.contains(&format!("\nzk_{line}\n")),
            "{line} is not in\n{head}"
        );
    }
}

#[test]
fn summaries_of_mntr_have_zookeepers_five_and_nine_lines() {
    let answer = ask(&Captured::default(), Word::Mntr);
    let lines = |name: &str| -> Vec<&str> {
        answer
            .lines()
            .filter(|line| {
                line.split('\t')
                    .next()
                    .is_some_and(|key| key.ends_with(name))
            })
            .collect()
    };
    assert_eq!(
        lines("_fsynctime"),
        [
            "zk_avg_fsynctime\t2.9167",
            "zk_min_fsynctime\t0",
            "zk_max_fsynctime\t18",
            "zk_cnt_fsynctime\t12",
            "zk_sum_fsynctime\t35"
        ]
    );
    assert_eq!(lines("_updatelatency").len(), 9);
    assert!(answer.contains("\nzk_p999_updatelatency\t18\n"), "{answer}");
    assert!(
        answer.contains("\nzk_connection_drop_probability\t0.0\n"),
        "{answer}"
    );
}

/// go-zookeeper reads `srvr` by fixed line starts, and of the version only letters, digits, points and dashes before a
/// comma, then a date with its zone.
#[test]
fn srvr_is_what_go_zookeeper_reads() {
    let words = FourLetterWords::new(
        Whitelist::default(),
        version("0.1.0", None, 0),
        Environment::of_this_process(),
    );
    let answer = words.answer(Word::Srvr, &[], &Captured::default());
    let mut lines = answer.lines();
    let (release, built) = lines
        .next()
        .and_then(|line| {
            line.strip_prefix("Zookeeper version: ")?
                .split_once(", built on ")
        })
        .expect("a version");
    assert!(
        release
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-'),
        "{release}"
    );
    let shape: String = built
        .chars()
        .map(|sign| if sign.is_ascii_digit() { '9' } else { sign })
        .collect();
    assert_eq!(shape, "99/99/9999 99:99 UTC");
    let starts: Vec<&str> = lines.filter_map(|line| line.split(": ").next()).collect();
    let expected = [
        "Latency min/avg/max",
        "Received",
        "Sent",
        "Connections",
        "Outstanding",
        "Zxid",
        "Mode",
        "Node count",
    ];
    assert_eq!(starts, expected);
}

/// kazoo takes the version from `envi` with a regular expression for digits and points, out of its first 8 KiB.
#[test]
fn envi_is_what_kazoo_reads() {
    let words = FourLetterWords::new(
        Whitelist::default(),
        version("0.1.0", None, 0),
        Environment::of_this_process(),
    );
    let answer = words.answer(Word::Envi, &[], &Captured::default());
    assert!(answer.len() < 8192, "{} bytes", answer.len());
    let found = answer
        .lines()
        .find_map(|line| line.strip_prefix("zookeeper.version="))
        .expect("a version");
    let digits: String = found
        .chars()
        .take_while(|sign| sign.is_ascii_digit() || *sign == '.')
        .collect();
    assert_eq!(digits, COMPATIBLE_VERSION);
}
