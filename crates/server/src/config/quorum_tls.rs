//! TLS between members: from the keys `sslQuorum`, `portUnification` and `ssl.quorum.*` to typed settings.
//!
//! Administration over HTTP takes its stores from `ssl.quorum.*` as well, see [`super::admin`].

use super::remark::{ConfigError, Remark};
use super::resolve::Reader;
use super::tls::{self, ClientAuth, Dialing, TlsSettings};

/// What the keys begin with.
const QUORUM: &str = "ssl.quorum";

/// Reads the settings. A member that runs alone speaks to nobody, with or without TLS.
///
/// # Errors
/// TLS without what it needs.
pub(super) fn resolve(
    reader: &mut Reader<'_>,
    has_others: bool,
) -> Result<Option<TlsSettings>, ConfigError> {
    let dials = reader.strict_bool("sslQuorum")?;
    let unified = reader.strict_bool("portUnification")?;
    let reload = reader.strict_bool("sslQuorumReloadCertFiles")?;
    if !has_others || !(dials || unified) {
        return Ok(None);
    }
    let client_auth = tls::client_auth(reader, QUORUM)?;
    let Some(key_store) = tls::store(reader, QUORUM, "keyStore")? else {
        return match dials {
            true => Err(missing(
                "keyStore",
                dials,
                "give the file with this member's certificate and key",
            )),
            // As in ZooKeeper, which starts so and speaks without TLS.
            false => {
                reader.remarks.push(Remark::warn(
                    "portUnification is set but ssl.quorum.keyStore.location is not set: members that speak TLS \
                     cannot connect. Give the file with this member's certificate and key before another member is \
                     started with sslQuorum=true",
                ));
                Ok(None)
            }
        };
    };
    tls::warn_if_open(reader, &key_store);
    let trust_store = tls::store(reader, QUORUM, "trustStore")?;
    if trust_store.is_none() && (dials || client_auth != ClientAuth::None) {
        let purpose = match dials {
            true => "give the file with the certificates that may sign those of members",
            false => {
                "give the file with the certificates that may sign those of members, or set ssl.quorum.clientAuth=none"
            }
        };
        return Err(missing("trustStore", dials, purpose));
    }
    let verify_host = reader.is_true(&key("hostnameVerification"));
    let detection_ms = reader.loose(
        &key("handshakeDetectionTimeoutMillis"),
        1,
        i64::from(i32::MAX),
    )?;
    Ok(Some(TlsSettings {
        port: None,
        address: None,
        unified,
        key_store,
        trust_store,
        client_auth,
        protocols: tls::protocols(reader, QUORUM)?,
        cipher_suites: tls::list(reader.settings.get_or_default(&key("ciphersuites"))),
        verify_client_host: verify_host && verifies_client_host(reader),
        detection_ms,
        reload,
        // The quorum port has a bound of its own.
        handshakes_max: 0,
        drop_while_not_serving: false,
        dialing: dials.then_some(Dialing { verify_host }),
    }))
}

fn key(suffix: &str) -> String {
    format!("{QUORUM}.{suffix}")
}

/// Where nobody says it, ZooKeeper's FIPS mode decides, which is on by default and looks at no name of who connects.
fn verifies_client_host(reader: &Reader<'_>) -> bool {
    let own = key("clientHostnameVerification");
    match reader.settings.get(&own) {
        Some(_) => reader.is_true(&own),
        None => !reader.is_true("fips-mode"),
    }
}

fn missing(store: &str, dials: bool, purpose: &str) -> ConfigError {
    let asked = match dials {
        true => "sslQuorum",
        false => "portUnification",
    };
    ConfigError::invalid(format!(
        "{asked} is set but {QUORUM}.{store}.location is not set: {purpose}"
    ))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::*;

    const LINES: &str = "server.1=127.0.0.1:2888:3888\nserver.2=127.0.0.1:2889:3889\n\
                         server.3=127.0.0.1:2890:3890\ninitLimit=5\nsyncLimit=2\n";
    const STORES: &str =
        "ssl.quorum.keyStore.location=/k.p12\nssl.quorum.trustStore.location=/t.pem\n";

    fn load(text: &str) -> Result<(ServerConfig, Vec<Remark>), ConfigError> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("zoo.cfg");
        std::fs::write(folder.path().join("myid"), "1\n").expect("written");
        let base = format!("dataDir={}\nclientPort=2181\n", folder.path().display());
        std::fs::write(&path, base + text).expect("written");
        let (environment, overrides) = (Environment::default(), Overrides::default());
        ServerConfig::load(Some(&path), &environment, &overrides)
    }

    fn settings(text: &str) -> Option<TlsSettings> {
        let loaded = load(&format!("{LINES}{text}"));
        loaded
            .unwrap_or_else(|error| panic!("{error}"))
            .0
            .quorum_tls
    }

    #[test]
    fn the_defaults_are_those_of_zookeeper() {
        let tls = settings(&format!("sslQuorum=true\n{STORES}")).expect("TLS");
        assert!(!tls.unified && !tls.reload && !tls.verify_client_host);
        assert_eq!(tls.dialing, Some(Dialing { verify_host: true }));
        assert_eq!(tls.client_auth, ClientAuth::Need);
        assert_eq!(tls.key_store.path, Path::new("/k.p12"));
        assert_eq!(tls.prefix(), "ssl.quorum");
        assert_eq!((tls.detection_ms, tls.protocols.len()), (5000, 2));
        assert_eq!(settings(STORES), None);
        assert_eq!(settings("sslQuorum=false\nportUnification=false"), None);
    }

    #[test]
    fn every_key_arrives() {
        let tls = settings(&format!(
            "sslQuorum=true\nportUnification=true\nsslQuorumReloadCertFiles=true\n{STORES}\
             ssl.quorum.clientAuth=want\nssl.quorum.hostnameVerification=false\n\
             ssl.quorum.enabledProtocols=TLSv1.3\nssl.quorum.ciphersuites=TLS_AES_128_GCM_SHA256\n\
             ssl.quorum.handshakeDetectionTimeoutMillis=70\nssl.quorum.keyStore.passwordPath=/p"
        ));
        let tls = tls.expect("TLS");
        assert!(tls.unified && tls.reload && !tls.verify_client_host);
        assert_eq!(tls.dialing, Some(Dialing { verify_host: false }));
        assert_eq!(tls.client_auth, ClientAuth::Want);
        assert_eq!(tls.protocols, [Protocol::Tls13]);
        assert_eq!(tls.cipher_suites, ["TLS_AES_128_GCM_SHA256"]);
        assert_eq!(tls.detection_ms, 70);
        assert_eq!(tls.key_store.password, Password::File("/p".into()));
        let accepting = settings(&format!("portUnification=true\n{STORES}")).expect("TLS");
        assert!(accepting.unified && accepting.dialing.is_none());
    }

    #[test]
    fn names_of_those_who_connect_count_outside_fips_mode_or_where_it_is_said() {
        for (text, expected) in [
            ("", false),
            ("fips-mode=false", true),
            ("ssl.quorum.clientHostnameVerification=true", true),
            (
                "fips-mode=false\nssl.quorum.clientHostnameVerification=false",
                false,
            ),
            (
                "fips-mode=false\nssl.quorum.hostnameVerification=false",
                false,
            ),
        ] {
            let tls = settings(&format!("sslQuorum=true\n{STORES}{text}")).expect("TLS");
            assert_eq!(tls.verify_client_host, expected, "{text}");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let key = "ssl.quorum.keyStore.location=/k.pem";
        for (text, part) in [
            (
                "sslQuorum=true",
                "sslQuorum is set but ssl.quorum.keyStore.location",
            ),
            (
                &format!("sslQuorum=true\n{key}"),
                "sslQuorum is set but ssl.quorum.trustStore.location",
            ),
            (
                &format!("sslQuorum=true\nssl.quorum.clientAuth=none\n{key}"),
                "sslQuorum is set but ssl.quorum.trustStore.location",
            ),
            (
                &format!("portUnification=true\n{key}"),
                "portUnification is set but ssl.quorum.trustStore.location",
            ),
            (
                &format!("sslQuorum=true\nssl.quorum.clientAuth=never\n{STORES}"),
                "ssl.quorum.clientAuth: never is none of",
            ),
            (
                &format!("sslQuorum=true\nssl.quorum.protocol=SSLv9\n{STORES}"),
                "ssl.quorum.protocol: SSLv9",
            ),
            ("sslQuorum=yes", "Invalid option yes for sslQuorum"),
        ] {
            let refusal = load(&format!("{LINES}{text}"))
                .expect_err("accepted")
                .to_string();
            assert!(refusal.contains(part), "{refusal}");
        }
        settings(&format!(
            "portUnification=true\nssl.quorum.clientAuth=none\n{key}"
        ))
        .expect("TLS");
    }

    #[test]
    fn who_runs_alone_needs_no_files() {
        let (config, _) = load("sslQuorum=true\nportUnification=true").expect("accepted");
        assert_eq!(config.quorum_tls, None);
    }

    #[test]
    fn both_without_files_is_without() {
        let (config, remarks) = load(&format!("{LINES}portUnification=true")).expect("accepted");
        assert_eq!(config.quorum_tls, None);
        let warned = |remark: &Remark| {
            remark
                .text
                .contains("ssl.quorum.keyStore.location is not set")
        };
        assert!(remarks.iter().any(warned), "{remarks:?}");
    }
}
