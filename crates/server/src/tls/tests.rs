//! Stores of all formats, and handshakes with real sockets. The files are made by `golden/make`.

use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream as BlockingStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme, StreamOwned};
use tokio::io::Interest;
use tokio::net::TcpListener;

use super::store::{read_key, read_trusted};
use super::*;
use crate::config::{
    ClientAuth, Password, Protocol, Secret, StoreFormat, StoreSettings, TlsSettings,
};
use crate::metrics::Counts as _;
use crate::transport::Transport;

const PATIENCE: Duration = Duration::from_secs(60);
const HOME: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/tls/golden")
        .join(name)
}

fn store_with(name: &str, password: &str) -> StoreSettings {
    let path = golden(name);
    let format = match path.extension().and_then(|extension| extension.to_str()) {
        Some("p12") => StoreFormat::Pkcs12,
        Some("jks" | "jceks") => StoreFormat::Jks,
        _ => StoreFormat::Pem,
    };
    StoreSettings {
        keys: "ssl.keyStore".to_owned(),
        path,
        format,
        password: Password::Given(Secret(password.to_owned())),
    }
}

fn store(name: &str) -> StoreSettings {
    store_with(name, "secret")
}

fn settings() -> TlsSettings {
    TlsSettings {
        port: Some(0),
        address: None,
        unified: false,
        key_store: store("keystore.pem"),
        trust_store: Some(store("truststore.pem")),
        client_auth: ClientAuth::Need,
        protocols: vec![Protocol::Tls12, Protocol::Tls13],
        cipher_suites: Vec::new(),
        verify_client_host: false,
        detection_ms: 60_000,
        reload: true,
        handshakes_max: 0,
        drop_while_not_serving: false,
        dialing: None,
    }
}

#[test]
fn key_stores_of_all_formats_hold_the_same() {
    let expected = read_key(&store("keystore.pem")).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(expected.chain.len(), 2);
    for name in [
        "keystore-aes.pem",
        "keystore-3des.pem",
        "keystore-scrypt.pem",
        "keystore-pbes1.pem",
        "keystore.p12",
        "keystore-legacy.p12",
        "keystore-java.p12",
        "keystore.jks",
    ] {
        let entry = read_key(&store(name)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(entry.chain, expected.chain, "{name}");
        assert_eq!(entry.key.secret_der(), expected.key.secret_der(), "{name}");
    }
    let old = read_key(&store("keystore-pkcs1.pem")).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(old.chain, expected.chain);
}

#[test]
fn a_store_under_the_name_of_the_other_format_is_read() {
    let with_format = |name, format| StoreSettings {
        format,
        ..store(name)
    };
    assert!(read_key(&with_format("keystore.jks", StoreFormat::Pkcs12)).is_ok());
    assert!(read_key(&with_format("keystore.p12", StoreFormat::Jks)).is_ok());
}

#[test]
fn trust_stores_of_all_formats_hold_the_same() {
    let sorted = |name| {
        let mut trusted = read_trusted(&store(name)).unwrap_or_else(|error| panic!("{error}"));
        trusted.sort_by(|one, other| one.as_ref().cmp(other.as_ref()));
        trusted
    };
    let expected = sorted("truststore.pem");
    assert_eq!(expected.len(), 2);
    for name in ["truststore.p12", "truststore-openssl.p12", "truststore.jks"] {
        assert_eq!(sorted(name), expected, "{name}");
    }
    let without_password = read_trusted(&store_with("truststore.jks", ""));
    assert_eq!(without_password.map(|trusted| trusted.len()).ok(), Some(2));
}

/// What the start says when this is the key store.
fn complaint(key_store: StoreSettings) -> String {
    let settings = TlsSettings {
        key_store,
        ..settings()
    };
    Tls::load(&settings).expect_err("accepted").to_string()
}

#[test]
fn a_key_store_that_is_of_no_use_is_named_with_what_to_do() {
    let cases = [
        (store("missing.pem"), "missing.pem: cannot be read"),
        (
            store_with("keystore-aes.pem", "wrong"),
            "ssl.keyStore.passwordPath",
        ),
        (
            store_with("keystore.p12", "wrong"),
            "the password does not open it",
        ),
        (
            store_with("keystore-legacy.p12", "wrong"),
            "the password does not open it",
        ),
        (
            store_with("keystore.jks", "wrong"),
            "the password does not open it",
        ),
        (
            store_with("keystore.jks", ""),
            "the password does not open it",
        ),
        (
            store_with("keystore-pbes1.pem", "wrong"),
            "ssl.keyStore.passwordPath",
        ),
        (store("keystore-md5.pem"), "openssl pkcs8 -topk8"),
        (store("keystore-old.pem"), "openssl pkcs8 -topk8"),
        (store("keystore.jceks"), "keytool -importkeystore"),
        (
            store("keystore-mismatch.pem"),
            "does not belong to its first certificate (CN=localhost)",
        ),
        (
            store("keystore-expired.pem"),
            "CN=expired expired on 2020-02-01",
        ),
        (store("ca.pem"), "has no private key"),
        (store("client.key"), "has no certificate"),
        (store("truststore.p12"), "has no private key"),
        (store("truststore.jks"), "has no private key"),
        (store("make"), "is no PEM file"),
    ];
    for (store, part) in cases {
        let complaint = complaint(store);
        assert!(complaint.contains(part), "{complaint} does not say {part}");
    }
}

#[test]
fn a_trust_store_without_trusted_certificates_is_named() {
    for name in ["keystore.p12", "keystore.jks", "client.key"] {
        let complaint = read_trusted(&store(name))
            .map(|_| ())
            .expect_err("accepted");
        let complaint = complaint.to_string();
        assert!(
            complaint.contains("has no trusted certificate"),
            "{complaint}"
        );
    }
}

#[test]
fn stores_that_are_cut_short_or_changed_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in [
        "keystore.p12",
        "keystore-java.p12",
        "keystore.jks",
        "keystore.pem",
    ] {
        let whole = fs::read(golden(name)).expect("the file");
        let path = folder.path().join(name);
        let read = |bytes: &[u8]| {
            fs::write(&path, bytes).expect("the folder takes it");
            let store = StoreSettings {
                path: path.clone(),
                ..store(name)
            };
            read_key(&store)
        };
        for length in (0..whole.len() - 1).step_by(97) {
            assert!(read(&whole[..length]).is_err(), "{name} of {length} bytes");
        }
        for at in (0..whole.len()).step_by(61) {
            let mut changed = whole.clone();
            changed[at] ^= 0x55;
            // It may still be a store; what counts is that nothing breaks.
            let _ = read(&changed);
        }
    }
}

/// Opening it would never end.
#[test]
fn a_store_that_asks_for_too_much_calculation_is_refused() {
    let mut bytes = fs::read(golden("keystore.p12")).expect("the file");
    // The last number says how often over the key of the sum is derived. It becomes two bytes longer.
    assert_eq!(bytes.split_off(bytes.len() - 4), [2, 2, 8, 0]);
    bytes.extend([2, 4, 0x7f, 0xff, 0xff, 0xff]);
    let sum = bytes.len() - 69;
    assert_eq!(bytes[sum..][..2], [0x30, 65]);
    bytes[sum + 1] += 2;
    bytes[3] += 2;
    let folder = tempfile::tempdir().expect("a folder");
    let complaint = complaint(store_of(folder.path(), "keystore.p12", &bytes));
    assert!(complaint.contains("5000000 iterations"), "{complaint}");
}

#[test]
fn a_password_may_lie_in_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("password");
    fs::write(&file, "secret\n").expect("the folder takes it");
    let store = StoreSettings {
        password: Password::File(file),
        ..store("keystore.p12")
    };
    assert!(read_key(&store).is_ok());
}

#[test]
fn a_secret_is_not_shown() {
    assert!(!format!("{:?}", settings()).contains("secret"));
}

#[test]
fn cipher_suites_have_their_java_names() {
    let load = |names: &[&str]| {
        Tls::load(&TlsSettings {
            cipher_suites: names.iter().map(|name| (*name).to_owned()).collect(),
            ..settings()
        })
    };
    let known = ["TLS_AES_128_GCM_SHA256", "TLS_RSA_WITH_AES_128_CBC_SHA"];
    assert!(load(&known).is_ok());
    let unknown = load(&["TLS_RSA_WITH_AES_128_CBC_SHA"])
        .expect_err("accepted")
        .to_string();
    assert!(
        unknown.contains("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"),
        "{unknown}"
    );
}

/// Trusts every server.
#[derive(Debug)]
struct Trusting;

impl ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let provider = rustls::crypto::ring::default_provider();
        provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

type Client = StreamOwned<ClientConnection, BlockingStream>;

/// A client that shows the certificate of this name, if there is one, and has not written anything yet.
fn client(
    address: SocketAddr,
    certificate: Option<&str>,
    version: &'static rustls::SupportedProtocolVersion,
) -> Client {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .expect("a version")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Trusting));
    let config = match certificate {
        None => builder.with_no_client_auth(),
        Some(name) => {
            let source = super::store::Source {
                path: Path::new(name),
                bytes: [".pem", ".key"]
                    .map(|end| fs::read(golden(&format!("{name}{end}"))).expect("the file"))
                    .concat(),
                password: String::new(),
                keys: "",
            };
            let entry = super::pem::key(&source).unwrap_or_else(|problem| panic!("{problem}"));
            let key = rustls::crypto::ring::sign::any_supported_type(&entry.key).expect("a key");
            let certified = rustls::sign::CertifiedKey::new(entry.chain, key);
            let resolver = rustls::sign::SingleCertAndKey::from(certified);
            builder.with_client_cert_resolver(Arc::new(resolver))
        }
    };
    let name = ServerName::try_from("localhost").expect("a name");
    let connection = ClientConnection::new(Arc::new(config), name).expect("a connection");
    let socket = BlockingStream::connect(address).expect("the port");
    StreamOwned::new(connection, socket)
}

/// What the server makes of a client that is run on a thread of its own.
async fn outcome(
    tls: &Tls,
    run: impl FnOnce(SocketAddr) + Send + 'static,
    patience: Duration,
) -> Result<Accepted, Refusal> {
    let listener = TcpListener::bind((HOME, 0)).await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let client = std::thread::spawn(move || run(address));
    let (socket, _) = listener.accept().await.expect("a client");
    let outcome = accept(socket, HOME, tls, tls.settings.unified, patience).await;
    if outcome.is_err() {
        client.join().expect("the client");
    }
    outcome
}

async fn greeting(tls: &Tls, certificate: Option<&'static str>) -> Result<Option<String>, String> {
    let mut subjects = Vec::new();
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let run = move |address| {
            // Whether it is taken is asked of the server.
            let _ = client(address, certificate, version).write_all(b"ruok");
        };
        match outcome(tls, run, PATIENCE).await {
            Ok(Accepted::Secure { subject, .. }) => subjects.push(subject),
            Ok(Accepted::Plain(_)) => panic!("plain"),
            Err(refusal) => return Err(refusal.to_string()),
        }
    }
    assert_eq!(subjects[0], subjects[1]);
    Ok(subjects.swap_remove(0))
}

#[tokio::test]
async fn certificates_that_java_takes_are_taken() {
    let tls = Tls::load(&settings()).expect("TLS");
    for (name, subject) in [
        ("client", "CN=client,O=Org\\, Inc,C=US"),
        ("client-old", "CN=old"),
        ("client-self", "CN=self"),
    ] {
        let seen = greeting(&tls, Some(name)).await;
        assert_eq!(seen, Ok(Some(subject.to_owned())), "{name}");
    }
    assert_eq!(tls.counters.failed().total(), 0);
}

#[tokio::test]
async fn other_certificates_are_refused() {
    let tls = Tls::load(&settings()).expect("TLS");
    for name in ["client-foreign", "client-server"] {
        let refusal = greeting(&tls, Some(name)).await.expect_err(name);
        assert!(refusal.contains("certificate"), "{name}: {refusal}");
    }
    let none = greeting(&tls, None).await.expect_err("none");
    assert!(none.contains("peer sent no certificates"), "{none}");
    assert_eq!(
        (tls.counters.failed().total(), tls.counters.under_way()),
        (3, 0)
    );
    // Signed by one that has the name of the trusted one.
    let only_foreign = TlsSettings {
        trust_store: Some(store("client-self.pem")),
        ..settings()
    };
    let tls = Tls::load(&only_foreign).expect("TLS");
    let old = greeting(&tls, Some("client-old")).await;
    assert!(old.is_err());
}

#[tokio::test]
async fn a_certificate_may_be_wanted_or_not_asked_for() {
    for (client_auth, with, without) in [
        (ClientAuth::Want, Some("CN=self"), None),
        (ClientAuth::None, None, None),
    ] {
        let tls = Tls::load(&TlsSettings {
            client_auth,
            trust_store: settings()
                .trust_store
                .filter(|_| client_auth != ClientAuth::None),
            ..settings()
        })
        .expect("TLS");
        let with_one = greeting(&tls, Some("client-self")).await;
        assert_eq!(with_one, Ok(with.map(str::to_owned)));
        assert_eq!(greeting(&tls, None).await, Ok(without));
    }
}

/// A changed store in a folder of its own.
fn store_of(folder: &Path, name: &str, bytes: &[u8]) -> StoreSettings {
    let path = folder.join(name);
    fs::write(&path, bytes).expect("the folder takes it");
    StoreSettings {
        path,
        ..store(name)
    }
}

/// Who is trusted as a client is not trusted to say who others are.
#[tokio::test]
async fn a_trusted_client_that_may_not_sign_signs_nobody() {
    let folder = tempfile::tempdir().expect("a folder");
    let leaf = fs::read(golden("client-leaf.pem")).expect("the file");
    let authority = fs::read(golden("ca.pem")).expect("the file");
    let both = [&authority[..], &leaf].concat();
    for (trusted, of_the_authority) in [(&both, true), (&leaf, false)] {
        let tls = Tls::load(&TlsSettings {
            trust_store: Some(store_of(folder.path(), "trust.pem", trusted)),
            ..settings()
        })
        .expect("TLS");
        let itself = greeting(&tls, Some("client-leaf")).await;
        assert_eq!(itself, Ok(Some("CN=leaf".to_owned())));
        for name in ["client-by-leaf", "client-old-by-leaf"] {
            let refusal = greeting(&tls, Some(name)).await.expect_err(name);
            assert!(refusal.contains("UnknownIssuer"), "{refusal}");
        }
        for name in ["client", "client-old"] {
            let is_taken = greeting(&tls, Some(name)).await.is_ok();
            assert_eq!(is_taken, of_the_authority, "{name}");
        }
    }
}

#[tokio::test]
async fn a_certificate_may_have_to_name_the_address() {
    let tls = Tls::load(&TlsSettings {
        verify_client_host: true,
        ..settings()
    })
    .expect("TLS");
    assert!(greeting(&tls, Some("client")).await.is_ok());
    for name in ["client-old", "client-self"] {
        let refusal = greeting(&tls, Some(name)).await.expect_err(name);
        assert!(refusal.contains("does not name its address"), "{refusal}");
    }
}

#[tokio::test]
async fn only_enabled_versions_are_spoken() {
    for (protocol, spoken) in [
        (Protocol::Tls12, &rustls::version::TLS12),
        (Protocol::Tls13, &rustls::version::TLS13),
    ] {
        let tls = Tls::load(&TlsSettings {
            protocols: vec![protocol],
            ..settings()
        })
        .expect("TLS");
        for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
            let run = move |address| {
                let _ = client(address, Some("client"), version).write_all(b"ruok");
            };
            let is_taken = outcome(&tls, run, PATIENCE).await.is_ok();
            assert_eq!(is_taken, spoken.version == version.version);
        }
    }
}

#[tokio::test]
async fn who_speaks_no_tls_or_does_not_finish_is_let_go() {
    let tls = Tls::load(&settings()).expect("TLS");
    let plain = |address| {
        let mut socket = BlockingStream::connect(address).expect("the port");
        socket
            .write_all(b"\0\0\0\x2d\0\0\0\0\0\0\0\0\0\0")
            .expect("sent");
        let mut rest = Vec::new();
        // An alert, or the end.
        let _ = socket.read_to_end(&mut rest);
    };
    let refusal = outcome(&tls, plain, PATIENCE).await.expect_err("plain");
    assert!(matches!(refusal, Refusal::NoTls), "{refusal}");
    let half = |address| {
        let mut socket = BlockingStream::connect(address).expect("the port");
        socket.write_all(&[0x16, 3, 1, 0, 200, 1]).expect("sent");
        let mut rest = Vec::new();
        let _ = socket.read_to_end(&mut rest);
    };
    let patience = Duration::from_millis(20);
    let refusal = outcome(&tls, half, patience).await.expect_err("half");
    assert!(matches!(refusal, Refusal::TimedOut), "{refusal}");
    assert_eq!(
        (tls.counters.failed().total(), tls.counters.under_way()),
        (2, 0)
    );
}

/// Where many wait for their turns, nothing is calculated for who has gone meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn who_gives_up_before_its_turn_gets_no_turn() {
    let tls = Tls::load(&settings()).expect("TLS");
    let turns = u32::try_from(tls.turns.available_permits()).expect("a few");
    let all = tls.turns.acquire_many(turns).await.expect("turns");
    let (sender, sent) = tokio::sync::oneshot::channel();
    let (reporter, answered) = std::sync::mpsc::channel();
    let gives_up = move |address| {
        let mut client = client(address, Some("client"), &rustls::version::TLS13);
        let mut greeting = Vec::new();
        client.conn.write_tls(&mut greeting).expect("a greeting");
        client.sock.write_all(&greeting).expect("sent");
        let end = client.sock.shutdown(std::net::Shutdown::Write);
        end.expect("no more is sent");
        sender.send(()).expect("the test waits");
        let mut answer = Vec::new();
        client.sock.read_to_end(&mut answer).expect("the end");
        reporter.send(answer).expect("the test waits");
    };
    let release = async {
        sent.await.expect("sent");
        drop(all);
    };
    let (outcome, ()) = tokio::join!(outcome(&tls, gives_up, PATIENCE), release);
    let refusal = outcome.expect_err("gone");
    assert!(matches!(refusal, Refusal::Lost(_)), "{refusal}");
    assert_eq!(answered.recv(), Ok(Vec::new()), "not even a greeting");
    assert!(greeting(&tls, Some("client")).await.is_ok());
}

#[tokio::test]
async fn a_port_for_both_tells_them_apart() {
    let mut settings = settings();
    settings.unified = true;
    settings.detection_ms = 20;
    let tls = Tls::load(&settings).expect("TLS");
    let silent = |address| {
        let mut socket = BlockingStream::connect(address).expect("the port");
        let _ = socket.read(&mut [0]);
    };
    let taken = outcome(&tls, silent, PATIENCE).await;
    assert!(matches!(taken, Ok(Accepted::Plain(_))), "{taken:?}");
    settings.detection_ms = 60_000;
    let tls = Tls::load(&settings).expect("TLS");
    let word = |address| {
        let mut socket = BlockingStream::connect(address).expect("the port");
        socket.write_all(b"ruok").expect("sent");
        let _ = socket.read(&mut [0]);
    };
    let taken = outcome(&tls, word, PATIENCE).await;
    assert!(matches!(taken, Ok(Accepted::Plain(_))), "{taken:?}");
    assert!(greeting(&tls, Some("client")).await.is_ok());
}

#[tokio::test]
async fn a_bound_on_handshakes_refuses_those_beyond() {
    let tls = Tls::load(&TlsSettings {
        handshakes_max: 1,
        ..settings()
    })
    .expect("TLS");
    let place = tls.counters.begin(1);
    let refusal = greeting(&tls, Some("client")).await.expect_err("beyond");
    assert!(
        refusal.contains("outstandingHandshake.limit is 1"),
        "{refusal}"
    );
    drop(place);
    assert!(greeting(&tls, Some("client")).await.is_ok());
    assert_eq!(tls.counters.exceeded().total(), 1);
}

/// Far more than the buffers of a connection hold, in both directions, with a client that reads late.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_carries_everything_in_order() {
    const LENGTH: usize = 3 << 20;
    let pattern: Vec<u8> = (0..LENGTH).map(|at| (at * 7 + at / 251) as u8).collect();
    let tls = Tls::load(&settings()).expect("TLS");
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let expected = pattern.clone();
        let (sender, echoed) = std::sync::mpsc::channel();
        let run = move |address| {
            let mut client = client(address, Some("client"), version);
            client.write_all(&expected).expect("sent");
            let mut back = vec![0; LENGTH];
            client.read_exact(&mut back).expect("received");
            let end = client.read(&mut [0]).expect("a clean end");
            sender
                .send((back == expected, end))
                .expect("the test waits");
        };
        let Ok(Accepted::Secure { mut stream, .. }) = outcome(&tls, run, PATIENCE).await else {
            panic!("no handshake");
        };
        let mut input = BytesMut::new();
        while input.len() < LENGTH {
            stream.ready(Interest::READABLE).await.expect("readable");
            match stream.try_read_buf(&mut input) {
                Ok(count) => assert_ne!(count, 0, "the client has not ended"),
                Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
            }
        }
        assert!(input == pattern);
        let mut rest = &input[..];
        while !rest.is_empty() || stream.has_unsent() {
            match stream.try_write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
            }
            stream.ready(Interest::WRITABLE).await.expect("writable");
            stream.try_flush().expect("flushed");
        }
        stream.shutdown().await.expect("ended");
        let seen = tokio::task::spawn_blocking(move || echoed.recv()).await;
        assert_eq!(seen.expect("the wait").expect("the client"), (true, 0));
    }
}

#[tokio::test]
async fn changed_files_count_for_new_handshakes_and_broken_ones_do_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = |from: &str, to: &str| {
        let staged = folder.path().join("staged");
        fs::copy(golden(from), &staged).expect("the folder takes it");
        fs::rename(staged, folder.path().join(to)).expect("the folder takes it");
    };
    place("keystore.pem", "key.pem");
    place("truststore.pem", "trust.pem");
    let store_at = |name: &str| StoreSettings {
        path: folder.path().join(name),
        ..store("keystore.pem")
    };
    let tls = Tls::load(&TlsSettings {
        key_store: store_at("key.pem"),
        trust_store: Some(store_at("trust.pem")),
        ..settings()
    })
    .expect("TLS");
    assert!(greeting(&tls, Some("client-self")).await.is_ok());
    assert_eq!(tls.refresh().ok(), Some(false));
    place("ca.pem", "trust.pem");
    assert_eq!(tls.refresh().ok(), Some(true));
    assert!(greeting(&tls, Some("client-self")).await.is_err());
    assert!(greeting(&tls, Some("client")).await.is_ok());
    place("keystore-mismatch.pem", "key.pem");
    assert!(tls.refresh().is_err());
    assert_eq!(tls.refresh().ok(), Some(false), "said once");
    assert!(greeting(&tls, Some("client")).await.is_ok());
    fs::remove_file(folder.path().join("key.pem")).expect("removed");
    assert!(tls.refresh().is_err());
    assert!(tls.refresh().is_err(), "what may pass is tried again");
    place("keystore.pem", "key.pem");
    assert_eq!(tls.refresh().ok(), Some(true));
}
