//! Answers of members of an ensemble against those of a genuine one in the same state
//! (`integration/four_letter/capture_ensemble.py` wrote the files under `golden/ensemble/`).

use super::tests::{Captured, SESSION_1, SESSION_2, strings, words};
use super::*;

/// One member of three voters and an observer; member 3 leads.
struct Placed {
    mode: Mode,
    stopped: bool,
    local: Option<Vec<SessionExpiry>>,
    proposals: Option<ProposalSizes>,
    common: Captured,
}

const PROPOSALS: ProposalSizes = ProposalSizes {
    last: 87,
    min: 48,
    max: 87,
};

impl Placed {
    fn new(mode: Mode) -> Placed {
        Placed {
            mode,
            stopped: false,
            local: None,
            proposals: Some(PROPOSALS),
            common: Captured::default(),
        }
    }

    fn ask(&self, word: Word) -> String {
        words("*").answer(word, &[], self)
    }
}

impl Source for Placed {
    fn serving(&self) -> bool {
        !self.stopped
    }

    fn mode(&self) -> Mode {
        self.mode
    }

    fn traffic(&self) -> Traffic {
        let latency = match self.mode {
            Mode::Leader | Mode::Follower => (1, 35.0 / 12.0, 18),
            Mode::Standalone | Mode::Observer | Mode::ReadOnly => (0, 0.0, 0),
        };
        Traffic {
            received: 1,
            sent: 1,
            latency_min_ms: latency.0,
            latency_avg_ms: latency.1,
            latency_max_ms: latency.2,
            outstanding: 1,
            connections: 1,
        }
    }

    fn state(&self) -> State {
        State {
            zxid: 0x1_0000_0004,
            znodes: 6,
            ..State::default()
        }
    }

    fn process(&self) -> Process {
        self.common.process()
    }

    fn connections(&self) -> Vec<ConnectionView> {
        self.common.connections()
    }

    fn settings(&self) -> Settings {
        Settings {
            tick_time_ms: 500,
            min_session_timeout_ms: 1000,
            max_session_timeout_ms: 60_000,
            server_id: 3,
            ..self.common.settings()
        }
    }

    fn directory_sizes(&self) -> DirectorySizes {
        self.common.directory_sizes()
    }

    fn local_session_expiries(&self) -> Option<Vec<SessionExpiry>> {
        self.local.clone()
    }

    fn session_expiries(&self) -> Vec<SessionExpiry> {
        self.common.session_expiries()
    }

    fn session_timeouts(&self) -> Vec<(i64, i32)> {
        self.common.session_timeouts()
    }

    fn ephemerals(&self) -> Vec<(i64, Vec<String>)> {
        vec![
            (SESSION_1, strings(&["/e1"])),
            (SESSION_2, strings(&["/e2"])),
        ]
    }

    fn watch_summary(&self) -> WatchSummary {
        WatchSummary::default()
    }

    fn watches_by_session(&self) -> Vec<(i64, Vec<String>)> {
        Vec::new()
    }

    fn watches_by_path(&self) -> Vec<(String, Vec<i64>)> {
        Vec::new()
    }

    fn leading(&self) -> Option<Leading> {
        (self.mode == Mode::Leader).then_some(Leading {
            learners: 3,
            synced_followers: 2,
            synced_non_voting_followers: 0,
            synced_observers: 1,
            pending_syncs: 0,
            uptime_ms: 5,
            proposals: self.proposals,
        })
    }

    fn ensemble(&self) -> Option<Ensemble> {
        let line = |id: u64, role: &str| {
            format!("server.{id}=127.0.0.1:2888:3888:{role};127.0.0.1:2181\n")
        };
        let voters: String = (1..=3).map(|id| line(id, "participant")).collect();
        Some(Ensemble {
            leader: Some(3),
            quorum_size: 3,
            init_limit: 7,
            sync_limit: 7,
            election_ports: vec![1000],
            quorum_ports: vec![1000],
            observer: self.mode == Mode::Observer,
            membership: voters + &line(4, "observer") + "version=0",
        })
    }

    fn load(&self) -> String {
        "{}".to_owned()
    }
    fn status(&self) -> String {
        "{\"member\":3}".to_owned()
    }

    fn reset_server_figures(&self) {}

    fn reset_connection_figures(&self) {}
}

/// The keys of `mntr` that tell a member's place, with their values, as the capture selects them.
fn place(answer: &str) -> String {
    const KEYS: [&str; 10] = [
        "version",
        "server_state",
        "peer_state",
        "observer_master_id",
        "quorum_size",
        "learners",
        "synced_followers",
        "synced_non_voting_followers",
        "synced_observers",
        "pending_syncs",
    ];
    let line = |key: &str| {
        answer
            .lines()
            .find(|line| line.starts_with(&format!("zk_{key}\t")))
    };
    KEYS.into_iter()
        .filter_map(line)
        .map(|line| format!("{line}\n"))
        .collect()
}

macro_rules! golden {
    ($name:literal) => {
        include_str!(concat!("golden/ensemble/", $name, ".txt"))
    };
}

/// `dump` up to its connections, which are as a single server shows them.
fn without_connections(answer: &str) -> &str {
    let end = answer.find("Connections Sets");
    &answer[..end.unwrap_or(answer.len())]
}

#[test]
fn answers_of_members_equal_those_of_genuine_ones() {
    let goldens = [
        (Mode::Leader, Word::Isro, golden!("leader_isro")),
        (Mode::Leader, Word::Srvr, golden!("leader_srvr")),
        (Mode::Leader, Word::Conf, golden!("leader_conf")),
        (Mode::Leader, Word::Dump, golden!("leader_dump")),
        (Mode::Follower, Word::Isro, golden!("follower_isro")),
        (Mode::Follower, Word::Srvr, golden!("follower_srvr")),
        (Mode::Follower, Word::Conf, golden!("follower_conf")),
        (Mode::Follower, Word::Dump, golden!("follower_dump")),
        (Mode::Observer, Word::Isro, golden!("observer_isro")),
        (Mode::Observer, Word::Srvr, golden!("observer_srvr")),
        (Mode::Observer, Word::Conf, golden!("observer_conf")),
        (Mode::Observer, Word::Dump, golden!("observer_dump")),
        (Mode::ReadOnly, Word::Isro, golden!("readonly_isro")),
        (Mode::ReadOnly, Word::Conf, golden!("readonly_conf")),
    ];
    for (mode, word, golden) in goldens {
        let answer = Placed::new(mode).ask(word);
        assert_eq!(without_connections(&answer), golden, "{mode:?} {word:?}");
    }
}

#[test]
fn mntr_tells_the_place_of_a_member_as_a_genuine_one_does() {
    let goldens = [
        (Mode::Leader, golden!("leader_mntr")),
        (Mode::Follower, golden!("follower_mntr")),
        (Mode::Observer, golden!("observer_mntr")),
        (Mode::ReadOnly, golden!("readonly_mntr")),
    ];
    for (mode, golden) in goldens {
        assert_eq!(
            place(&Placed::new(mode).ask(Word::Mntr)),
            golden,
            "{mode:?}"
        );
    }
}

#[test]
fn a_leader_shows_the_sizes_of_its_proposals_once_there_are_some() {
    let mut leader = Placed::new(Mode::Leader);
    assert!(
        leader
            .ask(Word::Stat)
            .ends_with("Proposal sizes last/min/max: 87/48/87\n")
    );
    let mntr = leader.ask(Word::Mntr);
    for line in [
        "zk_last_proposal_size\t87\n",
        "zk_min_proposal_size\t48\n",
        "zk_leader_uptime\t5\n",
        "zk_followers\t3\n",
    ] {
        assert!(mntr.contains(line), "{line} in {mntr}");
    }
    leader.proposals = None;
    let fresh = golden!("leader_srvr_fresh").lines().last();
    assert_eq!(leader.ask(Word::Srvr).lines().last(), fresh);
    assert!(
        leader
            .ask(Word::Mntr)
            .contains("zk_max_proposal_size\t-1\n")
    );
}

#[test]
fn read_only_is_said_in_the_second_line() {
    let second = |text: &str| text.lines().nth(1).map(str::to_owned);
    let member = Placed::new(Mode::ReadOnly);
    assert_eq!(
        second(&member.ask(Word::Srvr)),
        second(golden!("readonly_srvr"))
    );
    assert_eq!(
        second(&member.ask(Word::Stat)),
        second(golden!("readonly_stat"))
    );
    assert!(member.ask(Word::Srvr).contains("\nMode: read-only\n"));
    assert!(
        member
            .ask(Word::Dump)
            .starts_with("SessionTracker dump:\nGlobal Sessions(")
    );
}

#[test]
fn a_member_that_does_not_serve_says_so_as_a_genuine_one_does() {
    let member = Placed {
        stopped: true,
        ..Placed::new(Mode::Follower)
    };
    let goldens = [
        (Word::Ruok, golden!("alone_ruok")),
        (Word::Isro, golden!("alone_isro")),
        (Word::Srvr, golden!("alone_srvr")),
        (Word::Stat, golden!("alone_stat")),
        (Word::Mntr, golden!("alone_mntr")),
        (Word::Conf, golden!("alone_conf")),
        (Word::Dump, golden!("alone_dump")),
        (Word::Hash, golden!("alone_hash")),
        (Word::Cons, golden!("alone_cons")),
        (Word::Dirs, golden!("alone_dirs")),
        (Word::Wchs, golden!("alone_wchs")),
        (Word::Wchc, golden!("alone_wchc")),
        (Word::Wchp, golden!("alone_wchp")),
        (Word::Crst, golden!("alone_crst")),
        (Word::Srst, golden!("alone_srst")),
        (Word::Gtmk, golden!("alone_gtmk")),
    ];
    for (word, golden) in goldens {
        assert_eq!(member.ask(word), golden, "{word:?}");
    }
}

#[test]
fn the_state_in_json_is_always_answered() {
    let member = Placed {
        stopped: true,
        ..Placed::new(Mode::Follower)
    };
    let strict = words("ruok");
    assert_eq!(strict.answer(Word::Qsta, &[], &member), "{\"member\":3}\n");
}

/// As a genuine leader and a genuine follower put them (`integration/operators/test_local_sessions.py` asks both).
#[test]
fn local_sessions_have_a_block_of_their_own() {
    let expiry = SessionExpiry {
        id: 0x0300_0469_c5e8_0000,
        at_ms: 1_796_066_614_000,
    };
    for (mode, global) in [
        (Mode::Leader, "Global Session Sets ("),
        (Mode::Follower, "Global Sessions("),
        (Mode::Observer, "Global Sessions("),
    ] {
        let mut member = Placed::new(mode);
        member.local = Some(vec![expiry]);
        let dump = member.ask(Word::Dump);
        let local = "SessionTracker dump:\nLocal Session Sets (1)/(1):\n\
            1 expire at Mon Nov 30 19:23:34 UTC 2026:\n\t0x3000469c5e80000\n";
        let rest = dump.strip_prefix(local).expect(&dump);
        assert!(rest.starts_with(global), "{dump}");
    }
}
