//! TLS in configurations, from the file to the value.

use std::fs;

use super::*;

fn load(text: &str) -> Result<(ServerConfig, Vec<Remark>), ConfigError> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("zoo.cfg");
    let base = format!("dataDir={}\nclientPort=2181\n", folder.path().display());
    fs::write(&path, base + text).expect("the folder takes it");
    let (environment, overrides) = (Environment::default(), Overrides::default());
    ServerConfig::load(Some(&path), &environment, &overrides)
}

fn refusal(text: &str) -> String {
    load(text).expect_err("accepted").to_string()
}

const STORES: &str = "ssl.keyStore.location=/k.pem\nssl.trustStore.location=/t.p12\n";

fn tls(text: &str) -> TlsSettings {
    let loaded = load(&format!("secureClientPort=2281\n{STORES}{text}"));
    let (config, _) = loaded.unwrap_or_else(|error| panic!("refused: {error}"));
    config.tls.expect("TLS")
}

#[test]
fn a_secure_port_with_stores_has_zookeepers_defaults() {
    let store = |keys: &str, path: &str, format| StoreSettings {
        keys: keys.to_owned(),
        path: path.into(),
        format,
        password: Password::Given(Secret::default()),
    };
    let expected = TlsSettings {
        port: Some(2281),
        address: None,
        unified: false,
        key_store: store("ssl.keyStore", "/k.pem", StoreFormat::Pem),
        trust_store: Some(store("ssl.trustStore", "/t.p12", StoreFormat::Pkcs12)),
        client_auth: ClientAuth::Need,
        protocols: vec![Protocol::Tls12, Protocol::Tls13],
        cipher_suites: Vec::new(),
        verify_client_host: false,
        detection_ms: 5000,
        reload: true,
        handshakes_max: 0,
        drop_while_not_serving: false,
        dialing: None,
    };
    assert_eq!(tls(""), expected);
    let (config, remarks) = load("").expect("accepted");
    assert_eq!((config.tls, config.x509_enabled), (None, false));
    assert_eq!(remarks, []);
}

#[test]
fn every_key_arrives() {
    let settings = tls(
        "secureClientPortAddress=::1\nclient.portUnification=true\nssl.keyStore.type=jks\nssl.keyStore.password=p\n\
         ssl.trustStore.password=p\nssl.trustStore.passwordPath=/p\nssl.clientAuth=WANT\nssl.protocol=TLS\n\
         ssl.enabledProtocols=TLSv1.1,TLSv1.3\nssl.ciphersuites=TLS_AES_128_GCM_SHA256, X\n\
         ssl.clientHostnameVerification=true\nssl.handshakeDetectionTimeoutMillis=7\nclient.certReload=false\n\
         outstandingHandshake.limit=8\nnetty.server.earlyDropSecureConnectionHandshakes=true",
    );
    let expected = TlsSettings {
        port: Some(2281),
        address: Some("::1".to_owned()),
        unified: true,
        key_store: StoreSettings {
            keys: "ssl.keyStore".to_owned(),
            path: "/k.pem".into(),
            format: StoreFormat::Jks,
            password: Password::Given(Secret("p".to_owned())),
        },
        trust_store: Some(StoreSettings {
            keys: "ssl.trustStore".to_owned(),
            path: "/t.p12".into(),
            format: StoreFormat::Pkcs12,
            password: Password::File("/p".into()),
        }),
        client_auth: ClientAuth::Want,
        protocols: vec![Protocol::Tls13],
        cipher_suites: vec!["TLS_AES_128_GCM_SHA256".to_owned(), "X".to_owned()],
        verify_client_host: true,
        detection_ms: 7,
        reload: false,
        handshakes_max: 8,
        drop_while_not_serving: true,
        dialing: None,
    };
    assert_eq!(settings, expected);
}

#[test]
fn java_options_and_flags_count_too() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let overrides = Overrides {
        data_dir: Some(folder.path().to_owned()),
        secure_client_port: Some(0),
        secure_client_address: Some("127.0.0.1".to_owned()),
        properties: vec![(
            "zookeeper.ssl.keyStore.location".to_owned(),
            "/k.jks".to_owned(),
        )],
        ..Overrides::default()
    };
    let environment = Environment {
        jvmflags: Some(
            "-Dzookeeper.ssl.clientAuth=none -Dzookeeper.X509AuthenticationProvider.superUser=CN=a"
                .to_owned(),
        ),
        ..Environment::default()
    };
    let (config, _) = ServerConfig::load(None, &environment, &overrides).expect("accepted");
    assert_eq!(config.x509_super_user.as_deref(), Some("CN=a"));
    assert!(config.x509_enabled);
    let tls = config.tls.expect("TLS");
    assert_eq!(
        (tls.port, tls.address.as_deref()),
        (Some(0), Some("127.0.0.1"))
    );
    assert_eq!((tls.client_auth, tls.trust_store), (ClientAuth::None, None));
    assert_eq!(tls.key_store.format, StoreFormat::Jks);
}

/// A certificate without a subject is nobody's, and not the super user's.
#[test]
fn a_super_user_without_a_name_is_none() {
    let (config, _) = load("X509AuthenticationProvider.superUser=\n").expect("accepted");
    assert_eq!(config.x509_super_user, None);
}

#[test]
fn what_is_missing_or_not_there_is_said_with_what_to_do() {
    let secure = "secureClientPort=2281\n";
    let with_stores = |text: &str| format!("{secure}{STORES}{text}");
    for (text, part) in [
        (secure.to_owned(), "ssl.keyStore.location is not set"),
        (
            "client.portUnification=true".to_owned(),
            "client.portUnification is set but",
        ),
        (
            format!("{secure}ssl.keyStore.location=/k.pem"),
            "set ssl.clientAuth=none",
        ),
        (
            format!("{secure}ssl.keyStore.location=/k.bcfks"),
            "keytool -importkeystore",
        ),
        (
            format!("{secure}ssl.keyStore.location=/k"),
            "set ssl.keyStore.type to PEM",
        ),
        (
            with_stores("ssl.keyStore.type=X"),
            "X is none of PEM, PKCS12 and JKS",
        ),
        (
            with_stores("ssl.clientAuth=maybe"),
            "none of none, want and need",
        ),
        (
            with_stores("ssl.enabledProtocols=TLSv1,SSLv3"),
            "leaves nothing",
        ),
        (with_stores("ssl.protocol=TLSv9"), "TLSv9 is no version"),
        (with_stores("ssl.crl=true"), "ssl.crl=true is not supported"),
        (
            with_stores("ssl.ocsp=true"),
            "ssl.ocsp=true is not supported",
        ),
        (
            with_stores("ssl.context.supplier.class=a.B"),
            "names a Java class",
        ),
        (
            with_stores("ssl.x509.clientCertIdType=SAN"),
            "only the subject",
        ),
        (
            with_stores("ssl.authProvider=other"),
            "No auth provider configured for the SSL authentication scheme 'other'.",
        ),
        (
            with_stores("ssl.authProvider=o\nauthProvider.o=a.B"),
            "a.B is not there",
        ),
        (
            "enforce.auth.enabled=true\nenforce.auth.schemes=x509".to_owned(),
            "no authentication provider for the scheme x509",
        ),
    ] {
        let said = refusal(&text);
        assert!(said.contains(part), "{text}: {said}");
    }
}

#[test]
fn zookeepers_own_provider_makes_the_scheme_known() {
    let provider = "authProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider";
    let (config, remarks) = load(provider).expect("accepted");
    assert!(config.x509_enabled && config.tls.is_none());
    assert_eq!(remarks, []);
    let enforced =
        format!("secureClientPort=1\n{STORES}enforce.auth.enabled=true\nenforce.auth.schemes=x509");
    let (config, _) = load(&enforced).expect("accepted");
    assert_eq!(config.enforce_auth_schemes, ["x509"]);
}
