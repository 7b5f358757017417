//! Administration over HTTP: the keys `admin.*`, and what there is to see of the configuration there.

use std::path::Path;

use super::file;
use super::keys::{self, Place};
use super::remark::ConfigError;
use super::resolve::Reader;
use super::tls::{self, ClientAuth, TlsSettings};

/// What the keys of its TLS begin with. ZooKeeper takes the stores of the members for it.
const TLS: &str = "ssl.quorum";

/// What is shown instead of a secret.
const HIDDEN: &str = "***";

/// The greatest number that Java's `int` holds.
const GREATEST: i64 = i32::MAX as i64;

/// Settings of administration over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminSettings {
    /// Its port, 0 to let the system choose; `None` if it is turned off. `admin.serverPort`, `admin.enableServer`.
    pub port: Option<u16>,
    /// Whether one of these two keys is given: who has not asked for the port can do without it.
    pub demanded: bool,
    /// Address or host name to listen on; all addresses if `None`. `admin.serverAddress`.
    pub address: Option<String>,
    /// The path in front of the commands, with a slash at its begin and none at its end. `admin.commandURL`.
    pub command_url: String,
    /// How long a connection may be without a request, ms. `admin.idleTimeout`.
    pub idle_ms: u64,
    /// TLS, if there is any; `unified` tells whether the port takes both. `admin.forceHttps`, `admin.portUnification`.
    pub tls: Option<TlsSettings>,
    /// Least time between two snapshots, and between two restores, ms. `admin.rateLimiterIntervalInMS`.
    pub interval_ms: u64,
    /// Whether snapshots are given. `admin.snapshot.enabled`.
    pub snapshot: bool,
    /// Whether a snapshot may be put in place of the data. `admin.restore.enabled`.
    pub restore: bool,
    /// Whether a proxy tells who the caller is. `IPAuthenticationProvider.usexforwardedfor`.
    pub behind_proxy: bool,
    /// The file of the configuration as it stands, secrets hidden; empty without a file.
    pub initial_configuration: String,
    /// Every setting by the name of the property that ZooKeeper makes of it, secrets hidden, in order.
    pub properties: Vec<(String, String)>,
}

/// Reads the settings.
///
/// # Errors
/// TLS without what it needs.
pub(super) fn resolve(reader: &mut Reader<'_>) -> Result<AdminSettings, ConfigError> {
    let given = |key| reader.settings.get(key).is_some();
    let demanded = given("admin.serverPort") || given("admin.enableServer");
    // As ZooKeeper 3.9 reads it: anything but this word turns it on.
    let enabled = reader.settings.get("admin.enableServer") != Some("false");
    let port: u16 = reader.loose("admin.serverPort", 0, i64::from(u16::MAX))?;
    let address = reader.settings.get_or_default("admin.serverAddress");
    let address = Some(address.to_owned()).filter(|address| !address.is_empty());
    let forced = reader.is_true("admin.forceHttps");
    let unified = reader.is_true("admin.portUnification");
    Ok(AdminSettings {
        port: enabled.then_some(port),
        demanded,
        address,
        command_url: path(reader.settings.get_or_default("admin.commandURL")),
        idle_ms: reader.loose("admin.idleTimeout", 1, GREATEST)?,
        tls: match enabled && (forced || unified) {
            true => Some(tls_settings(reader, forced)?),
            false => None,
        },
        interval_ms: reader.loose("admin.rateLimiterIntervalInMS", 0, GREATEST)?,
        snapshot: reader.is_true("admin.snapshot.enabled"),
        restore: reader.is_true("admin.restore.enabled"),
        behind_proxy: reader.is_true("IPAuthenticationProvider.usexforwardedfor"),
        initial_configuration: String::new(),
        properties: properties(reader),
    })
}

fn path(given: &str) -> String {
    format!("/{}", given.trim_matches('/'))
}

fn tls_settings(reader: &mut Reader<'_>, forced: bool) -> Result<TlsSettings, ConfigError> {
    let asked = match forced {
        true => "admin.forceHttps",
        false => "admin.portUnification",
    };
    let missing = |store: &str, purpose: &str| {
        ConfigError::invalid(format!(
            "{asked} is set but {TLS}.{store}.location is not set: give the file with {purpose}"
        ))
    };
    let key_store = tls::store(reader, TLS, "keyStore")?
        .ok_or_else(|| missing("keyStore", "the server's certificate and key"))?;
    let client_auth = match reader.is_true("admin.needClientAuth") {
        true => ClientAuth::Need,
        false => ClientAuth::None,
    };
    let trust_store = match client_auth {
        ClientAuth::None => None,
        ClientAuth::Need | ClientAuth::Want => Some(
            tls::store(reader, TLS, "trustStore")?.ok_or_else(|| {
                missing(
                    "trustStore",
                    "the certificates that may sign those of callers, or leave admin.needClientAuth away",
                )
            })?,
        ),
    };
    Ok(TlsSettings {
        port: None,
        address: None,
        unified: !forced,
        key_store,
        trust_store,
        client_auth,
        protocols: tls::protocols(reader, TLS)?,
        cipher_suites: tls::list(
            reader
                .settings
                .get_or_default(&format!("{TLS}.ciphersuites")),
        ),
        verify_client_host: false,
        detection_ms: reader.loose(
            &format!("{TLS}.handshakeDetectionTimeoutMillis"),
            1,
            GREATEST,
        )?,
        reload: reader.strict_bool("sslQuorumReloadCertFiles")?,
        handshakes_max: 0,
        drop_while_not_serving: false,
        dialing: None,
    })
}

/// The settings as system properties of ZooKeeper; what it reads in the file alone is none.
fn properties(reader: &Reader<'_>) -> Vec<(String, String)> {
    let mut properties: Vec<(String, String)> = reader
        .settings
        .all_given()
        .filter_map(|(name, value)| {
            let property = match keys::find(name).map(|key| key.place) {
                Some(Place::File) => return None,
                Some(Place::Bare) => name.to_owned(),
                Some(Place::Property) | None => format!("zookeeper.{name}"),
            };
            let value = match is_secret(name) {
                true => HIDDEN,
                false => value,
            };
            Some((property, value.to_owned()))
        })
        .collect();
    properties.sort_unstable();
    properties
}

/// Whether the value of a key must not be shown.
fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    ["password", "passwd", "secret", "digest"]
        .iter()
        .any(|end| key.ends_with(end))
}

/// The file's text with secrets hidden.
///
/// # Errors
/// It cannot be read.
pub(super) fn initial_configuration(path: &Path) -> Result<String, ConfigError> {
    let bytes = file::read(path).map_err(|source| ConfigError::unreadable(path, source))?;
    // As the file is read: every byte is a character.
    let text: String = bytes.iter().copied().map(char::from).collect();
    Ok(without_secrets(&text))
}

fn without_secrets(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut lines = text.split_inclusive('\n');
    while let Some(line) = lines.next() {
        if !is_secret(key_of(line)) {
            shown.push_str(line);
            // Lines that go on with this one are of this key, whatever they begin with.
            let mut last = line;
            while goes_on(last) {
                let Some(next) = lines.next() else {
                    break;
                };
                shown.push_str(next);
                last = next;
            }
            continue;
        }
        shown.push_str(key_of(line));
        shown.push('=');
        shown.push_str(HIDDEN);
        let mut last = line;
        while goes_on(last) {
            last = lines.next().unwrap_or_default();
        }
        if last.ends_with('\n') {
            shown.push('\n');
        }
    }
    shown
}

/// The key of a line; empty for a comment.
fn key_of(line: &str) -> &str {
    let line = line.trim_start();
    if line.starts_with(['#', '!']) {
        return "";
    }
    let end = line.find(|character: char| character.is_whitespace() || "=:".contains(character));
    &line[..end.unwrap_or(line.len())]
}

/// Whether the next line goes on with this one.
fn goes_on(line: &str) -> bool {
    let line = line.trim_end_matches(['\n', '\r']);
    let is_comment = line.trim_start().starts_with(['#', '!']);
    let backslashes = line.len() - line.trim_end_matches('\\').len();
    !is_comment && backslashes % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::super::tests::Case;
    use super::*;

    fn admin(text: &str) -> AdminSettings {
        Case::with(text).config().admin
    }

    #[test]
    fn it_is_there_as_in_zookeeper_unless_it_is_turned_off() {
        let settings = admin("");
        assert_eq!((settings.port, settings.demanded), (Some(8080), false));
        assert_eq!(settings.address.as_deref(), Some("0.0.0.0"));
        assert_eq!(settings.command_url, "/commands");
        assert_eq!((settings.idle_ms, settings.interval_ms), (30_000, 300_000));
        assert!(settings.snapshot && settings.restore && !settings.behind_proxy);
        assert_eq!(settings.tls, None);
        assert_eq!(admin("admin.enableServer=false").port, None);
        let odd = admin("admin.enableServer=no");
        assert_eq!((odd.port, odd.demanded), (Some(8080), true));
        assert!(admin("admin.serverPort=8080").demanded);
        assert_eq!(admin("admin.serverPort=99999").port, Some(8080));
        let off = admin("admin.enableServer=false\nadmin.forceHttps=true");
        assert_eq!(off.tls, None, "what is off needs no files");
    }

    #[test]
    fn its_tls_has_the_stores_of_the_members() {
        let settings = admin(
            "admin.forceHttps=true\nadmin.needClientAuth=true\nssl.quorum.keyStore.location=/k.p12\n\
             ssl.quorum.keyStore.password=p\nssl.quorum.trustStore.location=/t.pem\n\
             ssl.quorum.enabledProtocols=TLSv1.3\nsslQuorumReloadCertFiles=true",
        );
        let tls = settings.tls.expect("TLS");
        assert_eq!(tls.key_store.path, Path::new("/k.p12"));
        assert_eq!(tls.client_auth, ClientAuth::Need);
        assert!(tls.trust_store.is_some() && tls.reload && !tls.unified);
        let unified = admin("admin.portUnification=true\nssl.quorum.keyStore.location=/k.pem");
        let tls = unified.tls.expect("TLS");
        assert!(tls.unified && tls.client_auth == ClientAuth::None && tls.trust_store.is_none());
        for (text, part) in [
            (
                "admin.forceHttps=true",
                "admin.forceHttps is set but ssl.quorum.keyStore.location",
            ),
            (
                "admin.portUnification=true\nadmin.needClientAuth=true\nssl.quorum.keyStore.location=/k.pem",
                "admin.portUnification is set but ssl.quorum.trustStore.location",
            ),
            (
                "admin.forceHttps=true\nssl.quorum.keyStore.location=/k",
                "set ssl.quorum.keyStore.type",
            ),
        ] {
            let refusal = Case::with(text).refusal();
            assert!(refusal.contains(part), "{refusal}");
        }
    }

    #[test]
    fn settings_are_shown_as_properties_without_secrets() {
        let settings = admin(
            "admin.serverPort=1\nssl.keyStore.password=geheim\njute.maxbuffer=4096\nfrobnicate=7\n\
             DigestAuthenticationProvider.superDigest=super:geheim",
        );
        let shown = [
            ("jute.maxbuffer", "4096"),
            ("zookeeper.DigestAuthenticationProvider.superDigest", "***"),
            ("zookeeper.admin.serverPort", "1"),
            ("zookeeper.frobnicate", "7"),
            ("zookeeper.ssl.keyStore.password", "***"),
        ];
        let shown = shown.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(settings.properties, shown);
        assert!(!settings.initial_configuration.contains("geheim"));
    }

    #[test]
    fn secrets_of_the_file_are_hidden() {
        let text = "tickTime=2000\n# ssl.keyStore.password=old\n ssl.keyStore.password : geheim\n\
                    a=b\\\nssl.trustStore.password=is the value of a\n\
                    DigestAuthenticationProvider.superDigest=super:\\\n  more\nclientPort=1\n\
                    ssl.keyStore.passwordPath=/p";
        let shown = "tickTime=2000\n# ssl.keyStore.password=old\nssl.keyStore.password=***\n\
                     a=b\\\nssl.trustStore.password=is the value of a\n\
                     DigestAuthenticationProvider.superDigest=***\nclientPort=1\n\
                     ssl.keyStore.passwordPath=/p";
        assert_eq!(without_secrets(text), shown);
        assert_eq!(without_secrets(""), "");
    }

    #[test]
    fn commands_have_a_path_of_their_own() {
        for (given, expected) in [
            ("/commands", "/commands"),
            ("ops/", "/ops"),
            ("/a/b/", "/a/b"),
        ] {
            assert_eq!(path(given), expected);
        }
    }
}
