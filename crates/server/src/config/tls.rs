//! TLS on the client ports: from the keys `secureClientPort`, `client.portUnification` and `ssl.*` to typed settings.
//!
//! Files are only named here; [`crate::tls`] reads them.

use std::fmt;
use std::path::{Path, PathBuf};

use super::remark::{ConfigError, Remark};
use super::resolve::{Reader, warn_if_relative};
use super::sasl::is_open_to_all;

/// What ZooKeeper calls the provider of the x509 scheme.
pub(super) const X509_PROVIDER: &str =
    "org.apache.zookeeper.server.auth.X509AuthenticationProvider";

/// What the keys of the client ports begin with.
const CLIENT: &str = "ssl";

/// Settings of TLS on one listener, that for clients unless it is said otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSettings {
    /// Port on which clients speak TLS; 0 lets the system choose. `secureClientPort`.
    pub port: Option<u16>,
    /// Address or host name to listen on; all addresses if `None`. `secureClientPortAddress`.
    pub address: Option<String>,
    /// Whether the client port takes TLS as well. `client.portUnification`.
    pub unified: bool,
    /// The server's certificate and key. `ssl.keyStore.*`.
    pub key_store: StoreSettings,
    /// Who may sign the certificates of clients; there unless `client_auth` is `None`. `ssl.trustStore.*`.
    pub trust_store: Option<StoreSettings>,
    /// Whether clients show a certificate. `ssl.clientAuth`.
    pub client_auth: ClientAuth,
    /// Versions spoken, at least one. `ssl.enabledProtocols`, else `ssl.protocol`.
    pub protocols: Vec<Protocol>,
    /// Names of cipher suites in the order in which they are preferred; empty for all there are. `ssl.ciphersuites`.
    pub cipher_suites: Vec<String>,
    /// Whether a client's certificate must name the address that it comes from. `ssl.clientHostnameVerification`, unless
    /// `ssl.hostnameVerification` is false.
    pub verify_client_host: bool,
    /// How long a client of a port for both may keep silent before it is taken for one without TLS, ms.
    /// `ssl.handshakeDetectionTimeoutMillis`.
    pub detection_ms: u64,
    /// Whether the files are read again when they change. `client.certReload`.
    pub reload: bool,
    /// Handshakes that may be under way at one time; 0 for no bound. Those beyond are closed.
    /// `netty.server.outstandingHandshake.limit`.
    pub handshakes_max: u32,
    /// Whether connections are closed before their handshake while the member does not serve.
    /// `netty.server.earlyDropSecureConnectionHandshakes`.
    pub drop_while_not_serving: bool,
    /// How this server speaks TLS to servers that it dials itself; `None` if it dials nobody so. `sslQuorum`.
    pub dialing: Option<Dialing>,
}

/// How those are judged who are dialed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialing {
    /// Whether their certificate must name the host or the address that was dialed. `ssl.quorum.hostnameVerification`.
    pub verify_host: bool,
}

impl TlsSettings {
    /// What the keys of the configuration begin with that these settings come from.
    pub fn prefix(&self) -> &str {
        self.key_store
            .keys
            .strip_suffix(".keyStore")
            .unwrap_or(CLIENT)
    }
}

/// A file with keys or certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// The beginning of the keys of the configuration that it comes from; empty for a store that none names.
    pub keys: String,
    /// The file.
    pub path: PathBuf,
    /// Its format.
    pub format: StoreFormat,
    /// What opens it.
    pub password: Password,
}

/// Formats of stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreFormat {
    /// Texts between BEGIN and END lines.
    Pem,
    /// PKCS#12.
    Pkcs12,
    /// Java's own.
    Jks,
}

/// Where a password is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Password {
    /// In the configuration; empty if it says nothing.
    Given(Secret),
    /// In a file, which is read whenever the store is.
    File(PathBuf),
}

/// A text that is not shown.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(pub String);

/// Whether clients show a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuth {
    /// They are not asked.
    None,
    /// They are asked and may have none.
    Want,
    /// They must.
    Need,
}

/// Versions of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// TLS 1.2.
    Tls12,
    /// TLS 1.3.
    Tls13,
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_empty() { "nothing" } else { "***" })
    }
}

impl fmt::Display for StoreFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            StoreFormat::Pem => "PEM",
            StoreFormat::Pkcs12 => "PKCS12",
            StoreFormat::Jks => "JKS",
        })
    }
}

/// Reads the settings; `None` if no client port speaks TLS.
///
/// # Errors
/// A port without what it needs, and values that do not exist here.
pub(super) fn resolve(reader: &mut Reader<'_>) -> Result<Option<TlsSettings>, ConfigError> {
    let port = reader.client_port("secureClientPort")?;
    let address = reader.settings.get("secureClientPortAddress");
    let address = address.filter(|address| !address.is_empty());
    if address.is_some() && port.is_none() {
        return Err(ConfigError::invalid(
            "secureClientPortAddress is set but secureClientPort is not set",
        ));
    }
    let address = address.map(str::to_owned);
    let unified = reader.is_true("client.portUnification");
    if port.is_none() && !unified {
        return Ok(None);
    }
    demand_subject(reader)?;
    let client_auth = client_auth(reader, CLIENT)?;
    let key_store =
        store(reader, CLIENT, "keyStore")?.ok_or_else(|| missing("keyStore", unified))?;
    warn_if_open(reader, &key_store);
    let trust_store = store(reader, CLIENT, "trustStore")?;
    if trust_store.is_none() && client_auth != ClientAuth::None {
        return Err(missing("trustStore", unified));
    }
    Ok(Some(TlsSettings {
        port,
        address,
        unified,
        key_store,
        trust_store: trust_store.filter(|_| client_auth != ClientAuth::None),
        client_auth,
        protocols: protocols(reader, CLIENT)?,
        cipher_suites: list(reader.settings.get_or_default("ssl.ciphersuites")),
        verify_client_host: reader.is_true("ssl.hostnameVerification")
            && reader.is_true("ssl.clientHostnameVerification"),
        detection_ms: reader.loose(
            "ssl.handshakeDetectionTimeoutMillis",
            1,
            i64::from(i32::MAX),
        )?,
        reload: reader.is_true("client.certReload"),
        handshakes_max: bound(reader.strict("netty.server.outstandingHandshake.limit")?),
        drop_while_not_serving: reader.is_true("netty.server.earlyDropSecureConnectionHandshakes"),
        dialing: None,
    }))
}

/// Whether clients can prove a certificate: TLS is on, or the provider is asked for.
pub(super) fn provides_x509(reader: &Reader<'_>, tls: Option<&TlsSettings>) -> bool {
    let mut providers = reader.settings.family("authProvider.");
    tls.is_some() || providers.any(|(_, class)| class == X509_PROVIDER)
}

fn bound(value: i32) -> u32 {
    u32::try_from(value).unwrap_or(0)
}

fn missing(store: &str, unified: bool) -> ConfigError {
    let port = if unified {
        "client.portUnification"
    } else {
        "secureClientPort"
    };
    let purpose = if store == "keyStore" {
        "give the file with the server's certificate and key"
    } else {
        "give the file with the certificates that may sign those of clients, or set ssl.clientAuth=none"
    };
    ConfigError::invalid(format!(
        "{port} is set but ssl.{store}.location is not set: {purpose}"
    ))
}

/// Only the subject of a certificate says who its owner is, and only our own provider looks at it.
fn demand_subject(reader: &Reader<'_>) -> Result<(), ConfigError> {
    let scheme = reader.settings.get_or_default("ssl.authProvider");
    let class = reader.settings.get(&format!("authProvider.{scheme}"));
    match class {
        None if scheme == "x509" => {}
        Some(X509_PROVIDER) => {}
        None => {
            return Err(ConfigError::invalid(format!(
                "No auth provider configured for the SSL authentication scheme '{scheme}'."
            )));
        }
        Some(class) => {
            return Err(ConfigError::invalid(format!(
                "ssl.authProvider={scheme}: {class} is not there; the only provider for certificates is {X509_PROVIDER}"
            )));
        }
    }
    Ok(())
}

/// Warns of a private key that is no secret.
pub(super) fn warn_if_open(reader: &mut Reader<'_>, store: &StoreSettings) {
    if is_open_to_all(&store.path) {
        reader.remarks.push(Remark::warn(format!(
            "{}: every user of this machine may read the private key in {}; chmod o= it",
            store.keys,
            store.path.display()
        )));
    }
}

/// Whether those who connect show a certificate. `prefix` is what all keys of the listener begin with.
pub(super) fn client_auth(reader: &Reader<'_>, prefix: &str) -> Result<ClientAuth, ConfigError> {
    let key = format!("{prefix}.clientAuth");
    match &*reader.settings.get_or_default(&key).to_ascii_lowercase() {
        "none" => Ok(ClientAuth::None),
        "want" => Ok(ClientAuth::Want),
        "need" | "" => Ok(ClientAuth::Need),
        other => Err(ConfigError::invalid(format!(
            "{key}: {other} is none of none, want and need"
        ))),
    }
}

/// A store, if there is one. `prefix` is what all keys of its listener begin with.
pub(super) fn store(
    reader: &mut Reader<'_>,
    prefix: &str,
    name: &str,
) -> Result<Option<StoreSettings>, ConfigError> {
    let key = |suffix: &str| format!("{prefix}.{name}.{suffix}");
    let text = |suffix: &str| {
        let value = reader.settings.get(&key(suffix));
        value.filter(|value| !value.is_empty())
    };
    let Some(location) = text("location") else {
        return Ok(None);
    };
    let path = PathBuf::from(location);
    let password = match text("passwordPath") {
        Some(file) => Password::File(PathBuf::from(file)),
        None => Password::Given(Secret(text("password").unwrap_or_default().to_owned())),
    };
    let format = match text("type") {
        Some(given) => named_format(&key("type"), given)?,
        None => format_of_name(&key("type"), &path)?,
    };
    warn_if_relative(&path, reader.remarks);
    Ok(Some(StoreSettings {
        keys: format!("{prefix}.{name}"),
        path,
        format,
        password,
    }))
}

fn named_format(key: &str, given: &str) -> Result<StoreFormat, ConfigError> {
    match &*given.to_ascii_uppercase() {
        "PEM" => Ok(StoreFormat::Pem),
        "PKCS12" | "P12" => Ok(StoreFormat::Pkcs12),
        "JKS" => Ok(StoreFormat::Jks),
        "BCFKS" => Err(ConfigError::invalid(format!(
            "{key}=BCFKS is not supported: copy the store into a PKCS12 file with `keytool -importkeystore \
             -srckeystore FILE -srcstoretype BCFKS -destkeystore store.p12 -deststoretype PKCS12` (with the provider \
             that made it), and name that"
        ))),
        _ => Err(ConfigError::invalid(format!(
            "{key}: {given} is none of PEM, PKCS12 and JKS"
        ))),
    }
}

/// As ZooKeeper, which knows a format by the end of the file's name.
fn format_of_name(key: &str, path: &Path) -> Result<StoreFormat, ConfigError> {
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    match &*extension.to_ascii_lowercase() {
        "pem" => Ok(StoreFormat::Pem),
        "p12" | "pfx" => Ok(StoreFormat::Pkcs12),
        "jks" => Ok(StoreFormat::Jks),
        "bcfks" => named_format(key, "BCFKS"),
        _ => Err(ConfigError::invalid(format!(
            "the name of {} does not say its format by .pem, .p12 or .jks: set {key} to PEM, PKCS12 or JKS",
            path.display()
        ))),
    }
}

/// The versions to speak: those enabled, else what the protocol stands for, else both.
pub(super) fn protocols(
    reader: &mut Reader<'_>,
    prefix: &str,
) -> Result<Vec<Protocol>, ConfigError> {
    let enabled = format!("{prefix}.enabledProtocols");
    let of_all = format!("{prefix}.protocol");
    let (key, names) = match list(reader.settings.get_or_default(&enabled)) {
        names if !names.is_empty() => (enabled, names),
        _ => {
            let names = list(reader.settings.get_or_default(&of_all));
            (of_all.clone(), names)
        }
    };
    let mut protocols = Vec::new();
    for name in &names {
        match &*name.to_ascii_uppercase() {
            "TLSV1.2" => protocols.push(Protocol::Tls12),
            "TLSV1.3" => protocols.push(Protocol::Tls13),
            "TLS" | "SSL" | "DEFAULT" if key == of_all => {
                protocols.extend([Protocol::Tls12, Protocol::Tls13]);
            }
            "TLSV1.1" | "TLSV1" | "SSLV3" | "SSLV2HELLO" => {
                reader.remarks.push(Remark::warn(format!(
                    "{key}: {name} is broken and not spoken here, only TLSv1.2 and TLSv1.3"
                )));
            }
            _ => {
                return Err(ConfigError::invalid(format!(
                    "{key}: {name} is no version of TLS; use TLSv1.2 and TLSv1.3"
                )));
            }
        }
    }
    if protocols.is_empty() {
        return Err(ConfigError::invalid(format!(
            "{key} leaves nothing: TLSv1.2 and TLSv1.3 are spoken here"
        )));
    }
    Ok(protocols)
}

pub(super) fn list(text: &str) -> Vec<String> {
    let names = text.split(',').map(str::trim);
    names
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}
