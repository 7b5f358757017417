//! The members of an ensemble: founding, reconfig, recover, and what is remembered of sessions.

mod common;

use common::*;
use quenda_proto::ErrorCode;
use quenda_proto::jute::Encode;
use quenda_proto::records::{GetDataResponse, ReconfigRequest, Stat};
use quenda_tree::ChangeKind;
use quenda_tree::command::{Command, Origin, ReconfigFacts, Request, Switches};
use quenda_tree::ensemble::Ensemble;

const LINES: &str = "server.1=a:1:2;3\nserver.2=b:1:2;3\nserver.3=c:1:2;3\n";
const CONFIG: &str = "/zookeeper/config";
const SYNCED: ReconfigFacts = ReconfigFacts {
    in_progress: false,
    quorum_synced: true,
};

fn text(version: i64) -> String {
    let servers =
        ["1=a", "2=b", "3=c"].map(|name| format!("server.{name}:1:2:participant;0.0.0.0:3\n"));
    format!("{}version={version:x}", servers.concat())
}

/// Who may do everything.
fn operator() -> Client {
    let mut client = Client::new(SESSION).with("super", "");
    client.switches.reconfig_enabled = true;
    client.switches.standalone_enabled = true;
    client
}

fn nothing() -> ReconfigRequest<'static> {
    ReconfigRequest {
        cur_config_id: -1,
        ..ReconfigRequest::default()
    }
}

fn joining(text: &str) -> ReconfigRequest<'_> {
    ReconfigRequest {
        joining_servers: Some(text.into()),
        ..nothing()
    }
}

fn leaving(text: &str) -> ReconfigRequest<'_> {
    ReconfigRequest {
        leaving_servers: Some(text.into()),
        ..nothing()
    }
}

fn members(text: &str) -> ReconfigRequest<'_> {
    ReconfigRequest {
        new_members: Some(text.into()),
        ..nothing()
    }
}

fn verdict(request: &ReconfigRequest<'_>) -> ErrorCode {
    Member::founded(LINES)
        .reconfig(&operator(), request, SYNCED)
        .code
}

fn ids(ensemble: &Ensemble) -> Vec<u64> {
    ensemble.servers().map(|server| server.id).collect()
}

#[test]
fn founding_gives_the_config_znode_its_text_and_the_version_of_the_epoch() {
    let member = Member::founded(LINES);
    let version = 0x1_0000_0000;
    assert_eq!(member.text(CONFIG), text(version));
    let expected = Stat {
        mzxid: version,
        mtime: 1_000_000,
        version: -1,
        aversion: -1,
        data_length: text(version).len() as i32,
        ..Stat::default()
    };
    assert_eq!(member.stat(CONFIG), expected);
    let ensemble = member.tree.ensemble().expect("an ensemble");
    assert_eq!((ensemble.version, ids(ensemble)), (version, vec![1, 2, 3]));
    // The session that was opened behind it.
    assert_eq!(member.tree.last_zxid(), version + 1);
    assert_eq!(member.tree.digest(), member.tree.recompute_digest());
    assert_eq!(Store::full(&member.tree).load().ensemble(), Some(ensemble));
}

#[test]
fn who_stays_alone_has_no_ensemble() {
    let mut member = Member::new();
    assert_eq!(member.tree.ensemble(), None);
    assert_eq!(member.text(CONFIG), "");
    assert_eq!(member.stat(CONFIG).version, 0);
    let outcome = member.reconfig(&operator(), &nothing(), SYNCED);
    assert_eq!(outcome.code, ErrorCode::Unimplemented);
}

#[test]
fn only_the_first_founding_counts() {
    let mut member = Member::founded(LINES);
    let before = dump(&member.tree);
    let outcome = member.apply(&Command::Found {
        cluster: 1,
        secret: [0; 32],
        config: "server.9=x:1:2",
    });
    assert_eq!((outcome.code, outcome.zxid), (ErrorCode::Ok, 0));
    assert_eq!(dump(&member.tree), before);
    assert_eq!(member.tree.cluster(), Some(77));
}

#[test]
fn a_cluster_of_one_that_gets_members_keeps_its_identity_and_its_zxids() {
    let mut member = Member::new();
    member.must_create("/a");
    let before = member.tree.last_zxid();
    member.apply(&Command::Found {
        cluster: 1,
        secret: [0; 32],
        config: LINES,
    });
    let version = 0x2_0000_0000;
    assert!(version > before);
    assert_eq!(member.text(CONFIG), text(version));
    assert_eq!(member.tree.cluster(), Some(77));
    assert_eq!(member.stat("/a").czxid, before);
    assert_eq!(member.tree.digest(), member.tree.recompute_digest());
}

#[test]
fn a_reconfiguration_is_one_transaction_that_watches_see() {
    let mut member = Member::founded(LINES);
    member.time_ms = 2_000_000;
    let request = joining("server.4=d:1:2:observer;d:3");
    let outcome = member.reconfig(&operator(), &request, SYNCED);
    let zxid = 0x1_0000_0002;
    assert_eq!((outcome.code, outcome.zxid), (ErrorCode::Ok, zxid));
    assert_eq!(outcome.events(), [(ChangeKind::DataChanged, CONFIG)]);
    assert_eq!(outcome.changes[0].zxid, zxid);
    let expected = text(zxid).replace("version", "server.4=d:1:2:observer;d:3\nversion");
    let reply: GetDataResponse<'_> = outcome.record();
    assert_eq!(reply.data, Some(expected.as_bytes()));
    assert_eq!(reply.stat, member.stat(CONFIG));
    assert_eq!((reply.stat.version, reply.stat.mzxid), (-1, zxid));
    assert_eq!((reply.stat.mtime, reply.stat.czxid), (2_000_000, 0));
    assert_eq!(member.text(CONFIG), expected);
    let ensemble = member.tree.ensemble().expect("an ensemble");
    assert_eq!(ensemble.text(), expected);
    assert_eq!(
        ensemble
            .observers()
            .map(|server| server.id)
            .collect::<Vec<_>>(),
        [4]
    );
    assert_eq!(member.tree.digest(), member.tree.recompute_digest());
}

#[test]
fn members_come_go_and_come_back() {
    let mut member = Member::founded("server.1=a:1:2;3");
    let mut client = operator();
    client.switches.standalone_enabled = false;
    let mut now = |request: &ReconfigRequest<'_>| {
        let outcome = member.reconfig(&client, request, SYNCED);
        assert_eq!(outcome.code, ErrorCode::Ok, "{request:?}");
        ids(member.tree.ensemble().expect("an ensemble"))
    };
    assert_eq!(
        now(&joining("server.2=b:1:2;3,server.3=c:1:2;3")),
        [1, 2, 3]
    );
    assert_eq!(
        now(&joining("server.4=d:1:2;3,server.5=e:1:2;3")),
        [1, 2, 3, 4, 5]
    );
    assert_eq!(now(&leaving("1,2")), [3, 4, 5]);
    assert_eq!(
        now(&joining("server.1=f:1:2;3")),
        [1, 3, 4, 5],
        "an id again"
    );
    assert_eq!(
        now(&leaving("4,5,77")),
        [1, 3],
        "an unknown id does not matter"
    );
    assert_eq!(now(&leaving("3")), [1]);
    let both = ReconfigRequest {
        joining_servers: Some("server.6=f:7:8;9".into()),
        leaving_servers: Some("1".into()),
        ..nothing()
    };
    assert_eq!(now(&both), [6]);
    assert_eq!(
        now(&members("server.7=g:1:2\nserver.8=h:1:2,server.7=i:1:2")),
        [7, 8]
    );
    assert_eq!(now(&nothing()), [7, 8]);
}

#[test]
fn the_checks_come_in_zookeepers_order() {
    let wrong_version = |request: ReconfigRequest<'static>| ReconfigRequest {
        cur_config_id: 5,
        ..request
    };
    let stranger = Client {
        identities: vec![],
        ..operator()
    };
    let disabled = Client {
        switches: Switches::default(),
        session: OTHER,
        ..stranger.clone()
    };
    let unknown = Client {
        session: OTHER,
        ..stranger.clone()
    };
    let in_progress = ReconfigFacts {
        in_progress: true,
        quorum_synced: false,
    };
    let no_quorum = ReconfigFacts::default();
    let bad = || wrong_version(leaving("1,2,junk"));
    // Each line has everything wrong that comes after it.
    for (client, request, facts, code) in [
        (&disabled, bad(), in_progress, ErrorCode::ReconfigDisabled),
        (&unknown, bad(), in_progress, ErrorCode::SessionExpired),
        (&stranger, bad(), in_progress, ErrorCode::ReconfigInProgress),
        (&stranger, bad(), no_quorum, ErrorCode::BadVersion),
        (
            &stranger,
            leaving("1,2,junk"),
            no_quorum,
            ErrorCode::MarshallingError,
        ),
        (
            &stranger,
            leaving("1,2"),
            no_quorum,
            ErrorCode::BadArguments,
        ),
        (
            &stranger,
            joining("server.999=z:1:2;3"),
            no_quorum,
            ErrorCode::NewConfigNoQuorum,
        ),
        (
            &stranger,
            joining("server.999=z:1:2;3"),
            SYNCED,
            ErrorCode::NoAuth,
        ),
        (
            &operator(),
            joining("server.999=z:1:2;3"),
            SYNCED,
            ErrorCode::BadArguments,
        ),
        (
            &operator(),
            joining("server.9=z:1:2;3"),
            SYNCED,
            ErrorCode::Ok,
        ),
    ] {
        let mut member = Member::founded(LINES);
        let before = dump(&member.tree);
        let outcome = member.reconfig(client, &request, facts);
        assert_eq!(outcome.code, code, "{request:?}");
        assert_eq!(outcome.zxid, 0x1_0000_0002, "a failed one takes a zxid too");
        if code != ErrorCode::Ok {
            let after = Dump {
                last_zxid: before.last_zxid,
                ..dump(&member.tree)
            };
            assert_eq!(after, before, "{request:?}");
            assert!(outcome.body.is_empty() && outcome.changes.is_empty());
        }
    }
    let mut member = Member::founded(LINES);
    let body = [0, 0, 0, 9];
    let truncated = Request {
        origin: Origin::default(),
        session: OTHER,
        generation: 1,
        local: false,
        switches: Switches::default(),
        identities: vec![],
        op: 16,
        body: &body,
    };
    let outcome = member.apply(&Command::Reconfig {
        request: truncated,
        facts: in_progress,
    });
    assert_eq!(
        outcome.code,
        ErrorCode::MarshallingError,
        "decoding comes first"
    );
}

#[test]
fn an_old_generation_is_told_that_the_session_moved() {
    let mut member = Member::founded(LINES);
    let password = member.tree.session_password(SESSION);
    member.apply(&Command::ResumeSession {
        origin: Origin::default(),
        session: SESSION,
        timeout_ms: 4_000,
        password,
    });
    let outcome = member.reconfig(&operator(), &nothing(), SYNCED);
    assert_eq!(outcome.code, ErrorCode::SessionMoved);
}

#[test]
fn the_expected_version_is_that_of_the_last_reconfiguration() {
    let mut member = Member::founded(LINES);
    let at = |version| ReconfigRequest {
        cur_config_id: version,
        ..nothing()
    };
    for (version, code) in [
        (0x1_0000_0000, ErrorCode::Ok),
        (0x1_0000_0000, ErrorCode::BadVersion),
        (0x1_0000_0002, ErrorCode::Ok),
        (0, ErrorCode::BadVersion),
        (-2, ErrorCode::BadVersion),
        (-1, ErrorCode::Ok),
    ] {
        let outcome = member.reconfig(&operator(), &at(version), SYNCED);
        assert_eq!(outcome.code, code, "{version:#x}");
    }
}

#[test]
fn a_voter_alone_is_an_ensemble_only_where_that_is_wanted() {
    let mut choosy = operator();
    choosy.switches.standalone_enabled = false;
    for (request, code) in [
        (leaving("1,2"), ErrorCode::BadArguments),
        (leaving("1,2,3"), ErrorCode::BadArguments),
        (members("server.1=a:1:2;3"), ErrorCode::BadArguments),
        (
            members("server.1=a:1:2;3\nserver.2=b:1:2:observer;3"),
            ErrorCode::MarshallingError,
        ),
        (members(""), ErrorCode::BadArguments),
    ] {
        assert_eq!(verdict(&request), code, "{request:?}");
    }
    for (request, code) in [
        (leaving("1,2"), ErrorCode::Ok),
        (leaving("1,2,3"), ErrorCode::BadArguments),
        (
            members("server.1=a:1:2;3\nserver.2=b:1:2:observer;3"),
            ErrorCode::Ok,
        ),
        (
            members("server.2=b:1:2:observer;3"),
            ErrorCode::MarshallingError,
        ),
        (members(""), ErrorCode::BadArguments),
    ] {
        let outcome = Member::founded(LINES).reconfig(&choosy, &request, SYNCED);
        assert_eq!(outcome.code, code, "{request:?}");
    }
}

#[test]
fn addresses_of_others_cannot_be_taken() {
    for (text, code) in [
        ("server.4=a:1:9;9", ErrorCode::BadArguments),
        ("server.4=a:9:2;9", ErrorCode::BadArguments),
        ("server.4=A:7:1;9", ErrorCode::BadArguments),
        ("server.4=a:7:8;a:2", ErrorCode::BadArguments),
        ("server.4=z:7:8|b:1:9;9", ErrorCode::BadArguments),
        ("server.4=a:7:8;a:9", ErrorCode::Ok),
        // Loopback and wildcard addresses are other ones on each machine.
        (
            "server.4=localhost:1:2;3,server.5=127.0.0.1:1:2;0.0.0.0:3",
            ErrorCode::Ok,
        ),
        // The member itself may keep its own.
        ("server.1=a:1:2;3", ErrorCode::Ok),
        ("server.1=a:2:1;3", ErrorCode::Ok),
    ] {
        assert_eq!(verdict(&joining(text)), code, "{text}");
    }
}

#[test]
fn a_host_that_nobody_can_look_up_is_refused() {
    let long = "a".repeat(256);
    for host in [
        "${HOME}",
        "a b",
        "zoo9%eth0",
        "zöö9",
        "..",
        ".",
        "-",
        "-zoo9",
        "_",
        "zoo9..example",
        &long,
    ] {
        for line in [
            format!("server.9={host}:19:29;2181"),
            format!("server.9=zoo9:19:29;{host}:2181"),
        ] {
            assert_eq!(verdict(&joining(&line)), ErrorCode::BadArguments, "{line}");
            let all = format!("{LINES}{line}");
            assert_eq!(verdict(&members(&all)), ErrorCode::BadArguments, "{all}");
        }
    }
    let longest = "a".repeat(255);
    for host in [
        "zoo_9-b.example.com",
        "10.0.0.9",
        "[fe80::9%eth0]",
        "[::]",
        "zoo9.example.",
        "9",
        &longest,
    ] {
        let line = format!("server.9={host}:19:29;2181");
        assert_eq!(verdict(&joining(&line)), ErrorCode::Ok, "{line}");
    }
}

#[test]
fn a_host_of_the_founders_does_not_stand_in_the_way() {
    let founded = format!("{LINES}server.7=${{ZOO7}}:1:2\n");
    let outcome = Member::founded(&founded).reconfig(
        &operator(),
        &joining("server.9=zoo9:19:29;2181"),
        SYNCED,
    );
    assert_eq!(outcome.code, ErrorCode::Ok);
}

#[test]
fn the_config_znodes_list_decides() {
    let mut member = Member::founded(LINES);
    let list = vec![acl(31, "digest", "ops:h"), acl(1, "world", "anyone")];
    member
        .set_acl(&operator(), CONFIG, list, -1)
        .expect("a stat");
    let mut ops = Client::new(SESSION).with("digest", "ops:h");
    ops.switches = operator().switches;
    assert_eq!(
        member.reconfig(&ops, &nothing(), SYNCED).code,
        ErrorCode::Ok
    );
    ops.identities.pop();
    assert_eq!(
        member.reconfig(&ops, &nothing(), SYNCED).code,
        ErrorCode::NoAuth
    );
    ops.switches.skip_acl = true;
    assert_eq!(
        member.reconfig(&ops, &nothing(), SYNCED).code,
        ErrorCode::Ok
    );
}

#[test]
fn what_a_super_user_writes_over_the_text_changes_no_member() {
    let mut member = Member::founded(LINES);
    member
        .set(&operator(), CONFIG, b"mine", -1)
        .expect("a stat");
    assert_eq!(member.stat(CONFIG).version, 0);
    let ensemble = member.tree.ensemble().cloned();
    assert_eq!(ensemble.as_ref().map(ids), Some(vec![1, 2, 3]));
    assert_eq!(
        Store::full(&member.tree).load().ensemble().cloned(),
        ensemble
    );
    assert_eq!(
        member.reconfig(&operator(), &nothing(), SYNCED).code,
        ErrorCode::Ok
    );
    assert_eq!(member.text(CONFIG), text(0x1_0000_0003));
    assert_eq!(member.stat(CONFIG).version, -1);
}

#[test]
fn the_leader_plans_what_apply_does() {
    let plan = |member: &Member, client: &Client, record: &ReconfigRequest<'_>| {
        let mut body = bytes::BytesMut::new();
        record.encode(&mut body);
        member.tree.plan_reconfig(&Request {
            origin: Origin::default(),
            session: client.session,
            generation: client.generation,
            local: false,
            switches: client.switches,
            identities: client.identities.clone(),
            op: 16,
            body: &body,
        })
    };
    for record in [
        nothing(),
        joining("server.4=d:1:2;3"),
        joining("server.4=a:1:2;3"),
        joining("server.300=d:1:2;3"),
        leaving("3"),
        leaving("2,3"),
        leaving("x"),
        members("server.1=a:1:2\nserver.2=b:1:2"),
    ] {
        let mut member = Member::founded(LINES);
        let planned = plan(&member, &operator(), &record);
        let outcome = member.reconfig(&operator(), &record, SYNCED);
        assert_eq!(
            planned.as_ref().err(),
            outcome.ok().err().as_ref(),
            "{record:?}"
        );
        if let Ok(next) = planned {
            assert_eq!(next.version, 0x1_0000_0000);
            let done = member.tree.ensemble().expect("an ensemble");
            assert_eq!(next.lines(), done.lines(), "{record:?}");
        }
    }
    let disabled = Client::new(SESSION);
    let member = Member::founded(LINES);
    let planned = plan(&member, &disabled, &nothing());
    assert_eq!(planned, Err(ErrorCode::ReconfigDisabled));
}

#[test]
fn who_recovers_alone_goes_on_beyond_what_the_others_can_have_done() {
    let mut member = Member::founded(LINES);
    member.must_create("/kept");
    let password = member.tree.session_password(SESSION);
    let mut versions = vec![member.tree.last_zxid()];
    for cluster in [78, 79] {
        let outcome = member.apply(&Command::Recover {
            cluster,
            config: "server.2=b:1:2;3",
        });
        assert_eq!(outcome.code, ErrorCode::Ok);
        assert_eq!(outcome.events(), [(ChangeKind::DataChanged, CONFIG)]);
        assert_eq!(member.tree.cluster(), Some(cluster));
        let version = member.tree.last_zxid();
        let expected = format!("server.2=b:1:2:participant;0.0.0.0:3\nversion={version:x}");
        assert_eq!(member.text(CONFIG), expected);
        assert_eq!(member.stat(CONFIG).mzxid, version);
        versions.push(version);
        member.term += 1;
        member.must_create(&format!("/after{cluster}"));
        assert_eq!(member.tree.last_zxid() & 0xFFFF_FFFF, 1);
        assert_eq!(member.tree.digest(), member.tree.recompute_digest());
    }
    // Room for tens of thousands of elections.
    assert!(
        versions
            .windows(2)
            .all(|pair| pair[1] - pair[0] > 50_000 << 32),
        "{versions:x?}"
    );
    assert!(member.has("/kept"));
    assert_eq!(member.tree.session_password(SESSION), password);
    assert_eq!(dump(&Store::full(&member.tree).load()), dump(&member.tree));
    member.apply(&Command::Recover {
        cluster: 80,
        config: "",
    });
    assert_eq!((member.tree.ensemble(), member.text(CONFIG)), (None, ""));
}

#[test]
fn there_must_be_something_to_recover() {
    let mut member = Member {
        tree: quenda_tree::Tree::new(),
        term: 1,
        time_ms: 0,
    };
    let before = dump(&member.tree);
    let outcome = member.apply(&Command::Recover {
        cluster: 80,
        config: "server.2=b:1:2;3",
    });
    assert_eq!(outcome.code, ErrorCode::BadArguments);
    assert_eq!(dump(&member.tree), before);
}

#[test]
fn the_newest_session_of_a_member_outlives_it() {
    let mut member = Member::new();
    assert_eq!(member.tree.newest_session(1), Some(SESSION));
    assert_eq!(member.tree.newest_session(2), None);
    member.open(0x0100_0000_0000_0009);
    member.open(0x0100_0000_0000_0005);
    member.open(0x0200_0000_0000_0001);
    member.open(0xFE00_0000_0000_0003_u64 as i64);
    let expire = |session| Command::ExpireSession {
        session,
        generation: 1,
    };
    member.apply(&expire(0x0100_0000_0000_0009));
    for tree in [&member.tree, &Store::full(&member.tree).load()] {
        assert_eq!(tree.newest_session(1), Some(0x0100_0000_0000_0009));
        assert_eq!(tree.newest_session(2), Some(0x0200_0000_0000_0001));
        let high = 0xFE00_0000_0000_0003_u64 as i64;
        assert_eq!(tree.newest_session(0xFE), Some(high));
        assert_eq!(tree.digest(), tree.recompute_digest());
    }
}
