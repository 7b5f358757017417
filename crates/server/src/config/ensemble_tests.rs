//! Whole configurations of ensembles.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use super::members::NO_ID;
use super::*;

/// What every file of an ensemble has.
const LIMITS: &str = "dataDir=DIR\nclientPort=2181\ninitLimit=10\nsyncLimit=5\n";
const THREE: &str =
    "server.1=zoo1:2888:3888;2181\nserver.2=zoo2:2888:3888;2181\nserver.3=zoo3:2888:3888;2181\n";

fn folder(my_id: Option<u64>) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    if let Some(id) = my_id {
        fs::write(folder.path().join("myid"), format!("{id}\n"))
            .expect("the folder can be written");
    }
    folder
}

fn load_in(
    folder: &Path,
    text: &str,
    overrides: &Overrides,
) -> Result<(ServerConfig, Vec<Remark>), ConfigError> {
    let file = folder.join("zoo.cfg");
    let text = text.replace("DIR", &folder.display().to_string());
    fs::write(&file, text).expect("the folder can be written");
    ServerConfig::load(Some(&file), &Environment::default(), overrides)
}

/// Loads a file in a folder with this `myid`.
fn load(my_id: Option<u64>, text: &str) -> Result<(ServerConfig, Vec<Remark>), ConfigError> {
    load_in(folder(my_id).path(), text, &Overrides::default())
}

fn accepted(my_id: u64, text: &str) -> ServerConfig {
    load(Some(my_id), text)
        .unwrap_or_else(|error| panic!("{text}: {error}"))
        .0
}

fn refusal(my_id: Option<u64>, text: &str) -> String {
    load(my_id, text).expect_err(text).to_string()
}

fn warnings(my_id: u64, text: &str) -> Vec<String> {
    let (_, remarks) = load(Some(my_id), text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let warnings = remarks
        .into_iter()
        .filter(|remark| remark.level == Level::Warn);
    warnings.map(|remark| remark.text).collect()
}

fn ids(config: &ServerConfig) -> Vec<(u64, bool)> {
    config
        .ensemble
        .iter()
        .map(|server| (server.id, server.observer))
        .collect()
}

#[test]
fn of_two_lines_for_one_member_the_later_counts_and_both_are_named() {
    let text = format!("{LIMITS}{THREE}server.2=zoo4:2888:3888;2181\n");
    let config = accepted(2, &text);
    assert_eq!(config.quorum_listen, [(Some("zoo4".to_owned()), 2888)]);
    assert_eq!(
        warnings(2, &text),
        [
            "two lines for one member: server.2=zoo2:2888:3888;2181 has no effect, the later \
             server.2=zoo4:2888:3888;2181 counts"
        ]
    );
    let same = format!("{LIMITS}{THREE}server.2=zoo2:2888:3888;2181\n");
    assert_eq!(warnings(2, &same), [""; 0], "it says the same twice");
}

#[test]
fn several_lines_make_an_ensemble() {
    let text = format!("{LIMITS}server.10=zoo10:2888:3888:observer;2181\n{THREE}");
    let config = accepted(2, &text);
    assert_eq!(
        ids(&config),
        [(1, false), (2, false), (3, false), (10, true)],
        "by number"
    );
    assert_eq!((config.my_id, config.observer), (2, false));
    assert_eq!(config.quorum_listen, [(Some("zoo2".to_owned()), 2888)]);
    assert_eq!((config.init_limit, config.sync_limit), (10, 5));
    assert_eq!(
        (config.client_address.as_deref(), config.client_port),
        (Some("0.0.0.0"), Some(2181))
    );
    assert!(accepted(10, &text).observer);
}

#[test]
fn a_leader_is_spared_only_where_others_may_serve() {
    let told = |text: &str| {
        let (config, remarks) = load(Some(1), text).expect(text);
        let remarks = remarks
            .into_iter()
            .filter(|remark| remark.text.contains("leaderServes"));
        let remarks: Vec<Level> = remarks.map(|remark| remark.level).collect();
        (config.spares_leader(), remarks)
    };
    let lines = format!("{LIMITS}{THREE}");
    assert_eq!(told(&lines), (false, Vec::new()));
    assert_eq!(
        told(&format!("{lines}leaderServes=yes\n")),
        (false, Vec::new())
    );
    assert_eq!(
        told(&format!("{lines}leaderServes=no\n")),
        (true, Vec::new())
    );
    let alone = format!("{LIMITS}leaderServes=no\n");
    assert_eq!(told(&alone), (false, vec![Level::Info]));
    let one = format!("{alone}standaloneEnabled=false\nserver.1=zoo1:2888:3888;2181\n");
    assert_eq!(told(&one), (true, vec![Level::Warn]));
    let option = [("zookeeper.leaderServes".to_owned(), "no".to_owned())];
    let overrides = Overrides {
        properties: option.into(),
        ..Overrides::default()
    };
    let (config, _) = load_in(folder(Some(1)).path(), &lines, &overrides).expect(&lines);
    assert!(config.spares_leader(), "as an option of Java too");
}

#[test]
fn a_client_port_beside_the_lines_stays_out_of_them() {
    let config = accepted(
        1,
        &format!("{LIMITS}server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\n"),
    );
    assert_eq!(
        (config.client_address, config.client_port),
        (None, Some(2181))
    );
    assert!(config.ensemble.iter().all(|server| server.client.is_none()));
}

#[test]
fn an_ensemble_that_cannot_be_is_refused_in_zookeepers_words() {
    let lines = |lines: &str| format!("{LIMITS}{lines}");
    let dynamic = "standaloneEnabled=false\n";
    let cases = [
        (
            Some(1),
            lines("server.1=a:1:2\nserver.2=b:1:2:observer\n"),
            "Observers w/o quorum is an invalid configuration",
        ),
        (
            Some(1),
            lines("server.1=a:1:2:observer\nserver.2=b:1:2:observer\n"),
            "Observers w/o participants is an invalid configuration",
        ),
        (
            Some(1),
            lines(dynamic),
            "standaloneEnabled = false then number of participants should be >0",
        ),
        (
            Some(1),
            lines(&format!("{dynamic}server.1=a:1:2:observer")),
            "standaloneEnabled = false then number of participants should be >0",
        ),
        (None, lines(THREE), NO_ID),
        (
            Some(4),
            lines(THREE),
            "My id 4 not in the peer list: no line is for server.4",
        ),
        (
            Some(1),
            format!("dataDir=DIR\nsyncLimit=5\n{THREE}"),
            "initLimit is not set",
        ),
        (
            Some(1),
            format!("dataDir=DIR\ninitLimit=0\nsyncLimit=5\n{THREE}"),
            "initLimit is not set",
        ),
        (
            Some(1),
            format!("dataDir=DIR\ninitLimit=5\n{THREE}"),
            "syncLimit is not set",
        ),
        (
            Some(1),
            format!("dataDir=DIR\ninitLimit=x\nsyncLimit=5\n{THREE}"),
            "initLimit: x is not a number",
        ),
        (
            Some(1),
            lines(&format!("{THREE}peerType=voter\n")),
            "Unrecognised peertype: voter",
        ),
        (
            Some(1),
            lines(&format!("{THREE}server.01=d:1:2\n")),
            "server.1 stands twice",
        ),
        (
            Some(1),
            lines(&format!("{THREE}server.255=d:1:2\n")),
            "serverid 255 cannot number sessions: use 1 to 127 or 129 to 254",
        ),
        (
            Some(1),
            lines(&format!("{THREE}group.1=1:2\n")),
            "Server 3is not in a group",
        ),
        (
            Some(1),
            lines(&format!("{THREE}group.1=1:2:3\ngroup.2=3\n")),
            "Server 3is in multiple groups",
        ),
        (
            Some(1),
            lines(&format!("{THREE}weight.1=2\n")),
            "Server 1is not in a group",
        ),
        (
            Some(1),
            lines(&format!("{THREE}group.1=1:2:x\n")),
            "group.1: \"x\" is not a number; the lines are group.N=1:2:3, of the ids of servers, and weight.N=1",
        ),
        (
            Some(1),
            lines(&format!("{THREE}group.1=1:2:3\nweight.2=3\n")),
            "group.N and weight.N: hierarchical quorums are not there, more than half of the servers that vote is a quorum; \
             by these lines [2] would be one too. Take the lines away if a plain majority will do",
        ),
        (
            Some(1),
            lines(&format!(
                "{THREE}server.4=d:1:2:observer\ngroup.1=1:2:3:4\n"
            )),
            "a group line names server 4, which is no server that votes",
        ),
        (
            Some(1),
            lines(&format!(
                "multiAddress.enabled=false\n{THREE}server.4=d:1:2|e:1:2\n"
            )),
            "Multiple address feature is disabled, but multiple addresses were specified for sid 4",
        ),
        (
            Some(1),
            lines(&format!("multiAddress.enabled=no\n{THREE}")),
            "Invalid option no for multiAddress.enabled. Choose 'true' or 'false.'",
        ),
        (
            Some(1),
            lines(&format!("clientPort=2182\n{THREE}")),
            "client address for this server (id = 1) in static config file is 0.0.0.0:2182, but in its server line it is 0.0.0.0:2181",
        ),
        (
            Some(1),
            lines(&format!("{THREE}quorumListenOnAllIPs=1\n")),
            "Invalid option 1 for quorumListenOnAllIPs. Choose 'true' or 'false.'",
        ),
    ];
    for (my_id, text, expected) in cases {
        assert_eq!(refusal(my_id, &text), expected, "{text}");
    }
}

#[test]
fn a_single_voter_is_an_ensemble_only_if_asked_for() {
    let line = "server.7=a:2888:3888;2181\n";
    let alone = accepted(7, &format!("{LIMITS}{line}"));
    assert_eq!(
        (alone.ensemble.len(), alone.my_id, alone.init_limit),
        (0, 7, 0)
    );
    assert!(alone.quorum_listen.is_empty());
    let text = format!("{LIMITS}standaloneEnabled=false\n{line}");
    assert_eq!(ids(&accepted(7, &text)), [(7, false)]);
    assert_eq!(refusal(None, &text), NO_ID);
    let with_observer = format!("{text}server.8=b:2888:3888:observer\n");
    assert_eq!(ids(&accepted(8, &with_observer)), [(7, false), (8, true)]);
}

#[test]
fn a_size_that_tolerates_little_is_warned_of() {
    let line = |id: u64| format!("server.{id}=h{id}:1:2\n");
    let lines = |count: u64| (1..=count).map(line).collect::<String>();
    let warned = |count: u64| warnings(1, &format!("{LIMITS}{}", lines(count)));
    assert_eq!(
        warned(2),
        ["No server failure will be tolerated. You need at least 3 servers."]
    );
    assert_eq!(warned(3), [""; 0]);
    assert_eq!(
        warned(4),
        ["Non-optimal configuration, consider an odd number of servers."]
    );
    assert_eq!(warned(5), [""; 0]);
}

#[test]
fn the_line_decides_who_observes() {
    let text = format!("{LIMITS}{THREE}server.4=d:1:2:observer\n");
    let warned = "Peer type from servers list (PARTICIPANT) doesn't match peerType (OBSERVER). Defaulting to servers list.";
    let with = format!("{text}peerType=observer\n");
    assert!(warnings(1, &with).iter().any(|line| line == warned));
    assert!(!accepted(1, &with).observer);
    assert!(
        !warnings(4, &with)
            .iter()
            .any(|line| line.starts_with("Peer type"))
    );
    assert!(accepted(4, &text).observer);
    assert!(
        !warnings(4, &text)
            .iter()
            .any(|line| line.starts_with("Peer type")),
        "a key that is not set says nothing"
    );
}

#[test]
fn members_are_listened_to_where_the_line_says() {
    let listen = |line: &str, more: &str| {
        accepted(
            1,
            &format!("{LIMITS}server.1={line}\nserver.2=b:1:2\n{more}"),
        )
        .quorum_listen
    };
    let at = |host: &str, port| (Some(host.to_owned()), port);
    assert_eq!(listen("10.0.0.1:2888:3888", ""), [at("10.0.0.1", 2888)]);
    assert_eq!(listen("0.0.0.0:2888:3888", ""), [(None, 2888)]);
    assert_eq!(
        listen("10.0.0.1:2888:3888|10.0.1.1:2889:3889", ""),
        [at("10.0.0.1", 2888), at("10.0.1.1", 2889)]
    );
    let all = "quorumListenOnAllIPs=true\n";
    assert_eq!(
        listen("10.0.0.1:2888:3888|10.0.1.1:2888:3888", all),
        [(None, 2888)]
    );
}

#[test]
fn a_dynamic_file_gives_the_members() {
    let folder = folder(Some(3));
    fs::write(folder.path().join("zoo.cfg.dynamic.100000000"), THREE)
        .expect("the folder can be written");
    let text = format!("{LIMITS}dynamicConfigFile=DIR/zoo.cfg.dynamic.100000000\n");
    let text = text.replace("clientPort=2181\n", "");
    let (config, _) = load_in(folder.path(), &text, &Overrides::default()).expect("accepted");
    assert_eq!(ids(&config), [(1, false), (2, false), (3, false)]);
    assert_eq!(config.client_port, Some(2181));
}

#[test]
fn three_members_start_from_flags_alone() {
    let data = folder(None);
    let server = |id: u64| {
        (
            id.to_string(),
            format!("127.0.0.1:288{id}:388{id};127.0.0.1:218{id}"),
        )
    };
    let overrides = Overrides {
        data_dir: Some(data.path().to_owned()),
        my_id: Some(2),
        servers: (1..=3).map(server).collect(),
        ..Overrides::default()
    };
    let (config, remarks) =
        ServerConfig::load(None, &Environment::default(), &overrides).expect("accepted");
    assert_eq!(remarks, []);
    assert_eq!(ids(&config), [(1, false), (2, false), (3, false)]);
    assert_eq!(
        (config.client_address.as_deref(), config.client_port),
        (Some("127.0.0.1"), Some(2182))
    );
    assert_eq!(config.quorum_listen, [(Some("127.0.0.1".to_owned()), 2882)]);
    assert_eq!(
        (config.init_limit, config.sync_limit, config.tick_time_ms),
        (10, 5, 2000)
    );
    let missing = Overrides {
        my_id: None,
        ..overrides
    };
    let error = ServerConfig::load(None, &Environment::default(), &missing).expect_err("no id");
    assert_eq!(error.to_string(), NO_ID);
}

#[test]
fn without_a_client_address_flags_give_the_usual_port() {
    let data = folder(None);
    let mut overrides = Overrides {
        data_dir: Some(data.path().to_owned()),
        my_id: Some(1),
        servers: (1..=3)
            .map(|id: u64| (id.to_string(), format!("h{id}:2888:3888")))
            .collect(),
        ..Overrides::default()
    };
    let port = |overrides: &Overrides| {
        let (config, _) =
            ServerConfig::load(None, &Environment::default(), overrides).expect("accepted");
        (config.client_address, config.client_port)
    };
    assert_eq!(port(&overrides), (None, Some(2181)));
    overrides.client_address = Some("127.0.0.1".to_owned());
    assert_eq!(port(&overrides), (Some("127.0.0.1".to_owned()), Some(2181)));
    overrides.client_port = Some(0);
    assert_eq!(port(&overrides), (Some("127.0.0.1".to_owned()), Some(0)));
}

#[test]
fn lines_of_the_command_line_replace_those_of_files() {
    let overrides = Overrides {
        servers: vec![
            ("4".to_owned(), "h4:1:2".to_owned()),
            ("5".to_owned(), "h5:1:2".to_owned()),
        ],
        ..Overrides::default()
    };
    let (config, _) = load_in(
        folder(Some(5)).path(),
        &format!("{LIMITS}{THREE}"),
        &overrides,
    )
    .expect("accepted");
    assert_eq!(ids(&config), [(4, false), (5, false)]);
}

#[test]
fn groups_that_come_to_a_majority_are_passed_over_with_a_word() {
    let groups = "group.1=1:2:3\nweight.1=1\nweight.2=1\nweight.3=1\n";
    let (config, remarks) = load(Some(1), &format!("{LIMITS}{THREE}{groups}")).expect("accepted");
    assert_eq!(ids(&config), [(1, false), (2, false), (3, false)]);
    let told = remarks.iter().any(|remark| {
        remark.level == Level::Info && remark.text.contains("come to what counts without them")
    });
    assert!(told, "{remarks:?}");
}

#[test]
fn times_of_links_are_taken_within_bounds() {
    let ms = Duration::from_millis;
    let with = |more: &str| accepted(1, &format!("tickTime=2000\n{LIMITS}{THREE}{more}")).links;
    let default = LinkSettings {
        idle_max: ms(10_000),
        ..LinkSettings::default()
    };
    assert_eq!(with(""), default, "syncLimit is 5 ticks");
    let given = "cnxTimeout=700\nmultiAddress.reachabilityCheckTimeoutMs=300\nquorumCnxnTimeoutMs=4000\n\
                 leaderConnectDelayDuringRetryMs=20\nleader.maxConcurrentSnapSyncs=3\nobserver.reconnectDelayMs=900\n";
    let taken = LinkSettings {
        dial_patience: ms(700),
        dial_patience_of_many: ms(300),
        dial_pause: ms(20),
        reconnect_delay: ms(0),
        idle_max: ms(4000),
        image_patience: ms(30_000),
        image_feeds: 3,
    };
    assert_eq!(with(given), taken, "a member that votes waits for nothing");
    assert_eq!(
        [0, 1, 2].map(|count| taken.dial_patience(count)),
        [ms(700), ms(700), ms(300)]
    );
    let unchecked = with("cnxTimeout=700\nmultiAddress.reachabilityCheckEnabled=false\n");
    assert_eq!(unchecked.dial_patience(2), ms(700));
    let text = format!("{LIMITS}{THREE}server.4=d:1:2:observer\nobserver.reconnectDelayMs=900\n");
    assert_eq!(accepted(4, &text).links.reconnect_delay, ms(900));
    let text = format!("tickTime=2000\ndataDir=DIR\ninitLimit=60\nsyncLimit=1\n{THREE}");
    let links = accepted(1, &text).links;
    assert_eq!(
        (links.image_patience, links.idle_max),
        (ms(120_000), ms(5000))
    );
    let text = format!("{LIMITS}{THREE}quorumCnxnTimeoutMs=100\ncnxTimeout=100000\n");
    assert_eq!(
        warnings(1, &text),
        [
            "cnxTimeout=100000 is beyond the bounds here: 60000 ms counts",
            "quorumCnxnTimeoutMs=100 is beyond the bounds here: 3000 ms counts"
        ]
    );
}
