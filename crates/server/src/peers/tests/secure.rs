//! TLS between members. The certificates are those of `tls/golden`: all but `client-foreign` lead to `ca`.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::super::resolve::Resolve;
use super::super::secure::{explain_accepted, explain_broken, explain_dialed};
use super::harness::{Event, Member, PATIENCE, Plan, connect, hello, shake, until};
use super::proxy::Proxy;
use crate::config::{
    ClientAuth, Dialing, Password, Protocol, Secret, StoreFormat, StoreSettings, TlsSettings,
};
use crate::limits::PEER_HANDSHAKES_MAX;
use crate::metrics::Counts as _;
use crate::tls::{self, Accepted, Tls};

const HOME: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const RECORD: u8 = 22;
const ALERT: u8 = 21;

fn golden(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tls/golden");
    folder.join(name)
}

fn store(kind: &str, path: PathBuf) -> StoreSettings {
    StoreSettings {
        keys: format!("ssl.quorum.{kind}"),
        path,
        format: StoreFormat::Pem,
        password: Password::Given(Secret::default()),
    }
}

/// Those of a member that speaks TLS alone, and has a certificate for 127.0.0.1 and localhost.
pub fn settings() -> TlsSettings {
    TlsSettings {
        port: None,
        address: None,
        unified: false,
        key_store: store("keyStore", golden("keystore.pem")),
        trust_store: Some(store("trustStore", golden("truststore.pem"))),
        client_auth: ClientAuth::Need,
        protocols: vec![Protocol::Tls12, Protocol::Tls13],
        cipher_suites: Vec::new(),
        verify_client_host: false,
        detection_ms: 5000,
        reload: true,
        handshakes_max: 0,
        drop_while_not_serving: false,
        dialing: Some(Dialing { verify_host: true }),
    }
}

/// The same that takes both and dials with TLS or without.
fn unified(dials: bool) -> TlsSettings {
    TlsSettings {
        unified: true,
        dialing: settings().dialing.filter(|_| dials),
        ..settings()
    }
}

pub fn secured(settings: &TlsSettings) -> Arc<Tls> {
    Arc::new(Tls::load(settings).unwrap_or_else(|error| panic!("{error}")))
}

/// A folder with a store in it, made of files of `tls/golden`.
struct Made(tempfile::TempDir);

impl Made {
    fn of(parts: &[&str]) -> Made {
        let made = Made(tempfile::tempdir().expect("a folder"));
        made.put(parts);
        made
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("store.pem")
    }

    /// Changes it as a rename does.
    fn put(&self, parts: &[&str]) {
        let read = |name: &&str| fs::read_to_string(golden(name)).expect("a file");
        let fresh = self.0.path().join("fresh");
        fs::write(&fresh, parts.iter().map(read).collect::<String>()).expect("written");
        fs::rename(fresh, self.path()).expect("renamed");
    }
}

/// The settings of one with the certificate of that name. The folder is to be kept.
fn with_key(name: &str) -> (TlsSettings, Made) {
    let made = Made::of(&[&format!("{name}.pem"), &format!("{name}.key")]);
    let key_store = store("keyStore", made.path());
    let settings = TlsSettings {
        key_store,
        ..settings()
    };
    (settings, made)
}

fn member(id: u64, settings: &TlsSettings) -> Member {
    let tls = Some(secured(settings));
    Plan {
        tls,
        ..Plan::member(id)
    }
    .start()
}

/// What a dial with these settings, to somebody with those, comes to: in words, on both sides.
async fn outcome(dialer: &TlsSettings, acceptor: &TlsSettings, host: &str) -> [String; 2] {
    let listener = TcpListener::bind((HOME, 0)).await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (there, here) = (secured(acceptor), secured(dialer));
    let patience = Duration::from_secs(20);
    let accepting = async {
        let (stream, peer) = listener.accept().await.expect("a connection");
        match tls::accept(stream, peer.ip(), &there, acceptor.unified, patience).await {
            Ok(Accepted::Secure { mut stream, .. }) => {
                let _ = stream.write_all(b"!").await;
                let _ = stream.flush().await;
                "TLS".to_owned()
            }
            Ok(Accepted::Plain(_)) => "plain".to_owned(),
            Err(refusal) => explain_accepted(&refusal).unwrap_or_default(),
        }
    };
    let dialing = async {
        let stream = TcpStream::connect(address).await.expect("connected");
        let hosts = [host.to_owned()];
        match tls::connect(stream, &hosts, HOME, &here, patience).await {
            // In TLS 1.3 only what comes behind it tells whether it was accepted.
            Ok(mut stream) => match stream.read_u8().await {
                Ok(_) => "TLS".to_owned(),
                Err(error) => explain_broken(&error).unwrap_or_else(|| error.to_string()),
            },
            Err(refusal) => explain_dialed(&refusal, &hosts),
        }
    };
    let (dialed, accepted) = tokio::join!(dialing, accepting);
    [dialed, accepted]
}

#[tokio::test]
async fn what_is_wrong_is_said_on_both_sides() {
    let good = settings();
    assert_eq!(outcome(&good, &good, "localhost").await, ["TLS", "TLS"]);
    let (foreign, _keep) = with_key("client-foreign");
    let (serves_only, _keep) = with_key("client-server");
    let nameless = with_key("client-old");
    let here = with_key("client");
    for (what, dialer, acceptor, parts) in [
        (
            "who dials is signed by nobody",
            &foreign,
            &good,
            [
                "does not accept the certificate of this member: who signed it",
                "signed by nobody",
            ],
        ),
        (
            "who is dialed is signed by nobody",
            &good,
            &foreign,
            [
                "signed by nobody in ssl.quorum.trustStore",
                "who signed it does not stand",
            ],
        ),
        (
            "a certificate for servers alone",
            &serves_only,
            &good,
            [
                "lacks serverAuth or clientAuth",
                "serverAuth and clientAuth",
            ],
        ),
        (
            "another name",
            &good,
            &nameless.0,
            [
                "names neither zoo7.example nor its address",
                "it names neither its host nor its address",
            ],
        ),
    ] {
        for protocol in [Protocol::Tls12, Protocol::Tls13] {
            let of_version = |settings: &TlsSettings| TlsSettings {
                protocols: vec![protocol],
                ..settings.clone()
            };
            let (dialer, acceptor) = (of_version(dialer), of_version(acceptor));
            let said = outcome(&dialer, &acceptor, "zoo7.example").await;
            for (said, part) in said.iter().zip(parts) {
                assert!(said.contains(part), "{what}, {protocol:?}: {said}");
            }
        }
    }
    // The address counts as well as the host.
    assert_eq!(
        outcome(&good, &here.0, "zoo7.example").await,
        ["TLS", "TLS"]
    );
    let unchecked = TlsSettings {
        dialing: Some(Dialing { verify_host: false }),
        ..settings()
    };
    assert_eq!(
        outcome(&unchecked, &nameless.0, "zoo7").await,
        ["TLS", "TLS"]
    );
    let only = |protocol| TlsSettings {
        protocols: vec![protocol],
        ..settings()
    };
    let (old, new) = (only(Protocol::Tls12), only(Protocol::Tls13));
    for said in outcome(&old, &new, "localhost").await {
        assert!(
            said.contains("compare ssl.quorum.enabledProtocols"),
            "{said}"
        );
    }
}

#[tokio::test]
async fn who_connects_is_asked_as_the_settings_say() {
    let (foreign, _keep) = with_key("client-foreign");
    let asks = |client_auth| TlsSettings {
        client_auth,
        ..settings()
    };
    assert_eq!(
        outcome(&foreign, &asks(ClientAuth::None), "localhost").await,
        ["TLS", "TLS"]
    );
    let refused = outcome(&foreign, &asks(ClientAuth::Want), "localhost").await;
    assert!(refused[1].contains("signed by nobody"), "{refused:?}");
    let (nameless, _keep) = with_key("client-old");
    let names = TlsSettings {
        verify_client_host: true,
        ..settings()
    };
    let refused = outcome(&nameless, &names, "localhost").await;
    assert!(
        refused[1].contains("does not name its address"),
        "{refused:?}"
    );
    assert_eq!(
        outcome(&settings(), &names, "localhost").await,
        ["TLS", "TLS"]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_talk_over_tls_alone() {
    let members = [1, 2, 3].map(|id| member(id, &settings()));
    let [one, two, three] = &members;
    connect(&[one, two, three]).await;
    let frames: Vec<Bytes> = [0, 1, 70_000, 20 << 20, 3]
        .iter()
        .map(|length| Bytes::from(vec![7; *length]))
        .collect();
    for frame in &frames {
        one.send(3, frame.clone()).await;
        three.send(1, frame.clone()).await;
    }
    for (member, other) in [(one, 3), (three, 1)] {
        until("all frames are there", || {
            member.events.frames_of(other) == frames
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_wire_carries_tls_from_its_first_byte() {
    let listener = TcpListener::bind((HOME, 0)).await.expect("a port");
    let one = member(1, &settings());
    one.dial(&[(2, listener.local_addr().expect("an address"))]);
    let (mut stream, _) = listener.accept().await.expect("a connection");
    let mut first = [0; 3];
    stream.read_exact(&mut first).await.expect("a record");
    assert_eq!(first[..2], [RECORD, 3]);
    drop(stream);
    let two = member(2, &settings());
    let proxy = Proxy::start(two.address).await;
    let words = b"QUENDAOK";
    one.dial(&[(2, proxy.address)]);
    one.until_up(2).await;
    assert!(proxy.carried() > 0 && !proxy.has_carried(words));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_and_none_do_not_come_together() {
    let (secure, plain) = (member(1, &settings()), Member::start(2));
    assert!(
        shake(secure.address, hello(9, 1, 1)).await.is_err(),
        "without TLS nobody is let in"
    );
    secure.dial(&[(2, plain.address)]);
    plain.dial(&[(1, secure.address)]);
    let failed = || {
        secure
            .peers
            .context
            .tls
            .as_ref()
            .expect("TLS")
            .dialed
            .failed()
            .total()
            > 1
    };
    until("it was tried", failed).await;
    assert_eq!((secure.events.all(), plain.events.all()), (vec![], vec![]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_step_to_tls_can_be_taken_one_member_at_a_time() {
    for (before, after) in [
        (None, Some(unified(false))),
        (Some(unified(false)), Some(unified(true))),
        (Some(unified(true)), Some(settings())),
    ] {
        let start = |id, settings: &Option<TlsSettings>| match settings {
            Some(settings) => member(id, settings),
            None => Member::start(id),
        };
        let (one, two) = (start(1, &before), start(2, &after));
        connect(&[&one, &two]).await;
        one.send(2, "there".into()).await;
        two.until_told(Event::Frame(1, "there".into())).await;
        two.send(1, "and back".into()).await;
        one.until_told(Event::Frame(2, "and back".into())).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silence_on_a_port_for_both_is_taken_for_none() {
    let short = TlsSettings {
        detection_ms: 20,
        ..unified(true)
    };
    let one = member(1, &short);
    let mut stream = TcpStream::connect(one.address).await.expect("connected");
    tokio::time::sleep(Duration::from_millis(200)).await;
    stream
        .write_all(&hello(9, 1, 1).encode())
        .await
        .expect("written");
    one.until_up(9).await;
    // An alert answers a record that means nothing, unless silence came before: then it is not looked at as one.
    let patient = member(2, &unified(true));
    let at_once = answer_after(Duration::ZERO, patient.address).await;
    assert_eq!(at_once, Some(ALERT));
    let mut silent = Duration::from_millis(20);
    while answer_after(silent, one.address).await == Some(ALERT) {
        assert!(silent < PATIENCE / 8, "silence is still waited for");
        silent *= 2;
    }
}

/// The first byte that is answered to a record without a meaning that comes after some silence.
async fn answer_after(silent: Duration, address: SocketAddr) -> Option<u8> {
    let mut stream = TcpStream::connect(address).await.expect("connected");
    tokio::time::sleep(silent).await;
    // It may be closed already.
    let _ = stream.write_all(&[RECORD, 3, 1, 0, 4, 9, 0, 0, 0]).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    answer.first().copied()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_a_handshake_keeps_no_member_out_and_ends() {
    let (one, two) = (member(1, &settings()), member(2, &settings()));
    let mut halves = Vec::new();
    for number in 0..2 * PEER_HANDSHAKES_MAX {
        let mut stream = TcpStream::connect(one.address).await.expect("connected");
        // A record that does not end, or a whole one that means nothing.
        let bytes: &[u8] = match number % 2 {
            0 => &[RECORD, 3, 1, 2, 0, 1, 0, 1, 252],
            _ => &[RECORD, 3, 1, 0, 4, 9, 9, 9, 9],
        };
        // It may be closed already.
        let _ = stream.write_all(bytes).await;
        halves.push(stream);
    }
    two.dial(&[(1, one.address)]);
    one.until_up(2).await;
    for mut stream in halves {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
    }
    assert!(one.is_up(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_certificate_gets_nowhere_and_disturbs_nobody() {
    let (one, two) = (member(1, &settings()), member(2, &settings()));
    connect(&[&one, &two]).await;
    let (foreign, _keep) = with_key("client-foreign");
    let stranger = member(3, &foreign);
    let all = [(1, one.address), (2, two.address), (3, stranger.address)];
    for member in [&one, &two, &stranger] {
        member.dial(&all);
    }
    let accepted = &one.peers.context.tls.as_ref().expect("TLS").counters;
    until("it was refused", || accepted.failed().total() > 2).await;
    one.send(2, "still here".into()).await;
    two.until_told(Event::Frame(1, "still here".into())).await;
    assert!(!one.is_up(3) && !two.is_up(3));
    assert_eq!(stranger.events.all(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_files_count_at_the_next_handshake() {
    let made = Made::of(&["client-foreign.pem", "client-foreign.key"]);
    let key_store = store("keyStore", made.path());
    let stranger = member(
        2,
        &TlsSettings {
            key_store,
            ..settings()
        },
    );
    let tls = Arc::clone(stranger.peers.context.tls.as_ref().expect("TLS"));
    let one = member(1, &settings());
    stranger.dial(&[(1, one.address)]);
    one.dial(&[(2, stranger.address)]);
    // The dialer learns that it is refused behind the handshake.
    let accepted = &one.peers.context.tls.as_ref().expect("TLS").counters;
    until("it was refused", || accepted.failed().total() > 0).await;
    made.put(&["client.pem", "client-self.key"]);
    let complaint = tls.refresh().expect_err("not a pair").to_string();
    assert!(
        complaint.starts_with("ssl.quorum.keyStore.location"),
        "{complaint}"
    );
    made.put(&["client.pem", "client.key"]);
    assert!(tls.refresh().expect("read"));
    one.until_up(2).await;
    stranger.until_up(1).await;
    // Broken ones leave the connection, and what new ones are made with, as they are.
    made.put(&["make"]);
    tls.refresh().expect_err("read");
    let before = one
        .events
        .count(&Event::Up(2, quenda_node::PeerState::Member));
    stranger.dial(&[]);
    stranger.dial(&[(1, one.address)]);
    until("it has dialed again", || {
        one.events
            .count(&Event::Up(2, quenda_node::PeerState::Member))
            > before
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_of_one_host_does_not_make_the_member_of_another() {
    let plan = |settings: &TlsSettings, id| Plan {
        tls: Some(secured(settings)),
        ..Plan::member(id)
    };
    // Signed, but without any name: good for 127.0.0.1 nowhere.
    let (nameless, _keep) = with_key("client-old");
    let one = plan(&settings(), 1).start();
    let two = plan(&nameless, 2).start();
    one.dial(&[(2, two.address)]);
    two.dial(&[(1, one.address)]);
    let dialed = &one.peers.context.tls.as_ref().expect("TLS").dialed;
    let accepted = &one.peers.context.tls.as_ref().expect("TLS").counters;
    until("both have tried", || {
        dialed.failed().total() > 1 && accepted.completed().total() > 1
    })
    .await;
    assert!(!one.is_up(2) && !two.is_up(1));
    // Nobody knows where member 3 is.
    let three = plan(&nameless, 3).start();
    three.dial(&[(1, one.address)]);
    one.until_up(3).await;
}

/// Leads every name to this machine.
struct Everywhere(SocketAddr);

impl Resolve for Everywhere {
    fn resolve(&self, _: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(vec![self.0])
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_name_of_the_server_line_is_what_counts() {
    // It stands in the trust store itself, and goes by the common name `self`.
    let (own, _keep) = with_key("client-self");
    let acceptor = member(1, &own);
    for (host, expected) in [("other", false), ("self", true)] {
        let plan = Plan {
            tls: Some(secured(&settings())),
            resolver: Arc::new(Everywhere(acceptor.address)),
            ..Plan::member(2)
        };
        let dialer = plan.start();
        let line = (host.to_owned(), acceptor.address.port());
        dialer.peers.set_members(vec![(1, vec![line])]);
        let dialed = &dialer.peers.context.tls.as_ref().expect("TLS").dialed;
        match expected {
            true => dialer.until_up(1).await,
            false => {
                until("it was refused", || dialed.failed().total() > 1).await;
                assert_eq!(dialer.events.all(), []);
            }
        }
    }
}
