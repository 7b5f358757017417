//! How commands that are clients reach servers: TLS and identities, by flags or by the properties file of zkCli.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use quenda_client::{ConnectString, SaslLogin, SessionOptions, Tls, TlsOptions};
use quenda_server::config::properties::{self, Pair};
use quenda_server::config::{Password, Secret, StoreFormat, StoreSettings};
use quenda_server::stores;

/// Where systems keep the certificates that everybody trusts.
const SYSTEM_TRUST: &str = "/etc/ssl/certs/ca-certificates.crt";
/// Java's property for a JAAS file.
const JAAS_FILE: &str = "java.security.auth.login.config";
/// Section of a JAAS file that a client reads.
const CLIENT_SECTION: &str = "Client";

/// TLS.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "TLS")]
pub struct TlsArgs {
    /// Speak TLS; the options below imply it
    #[arg(long)]
    pub tls: bool,
    /// Certificates that may sign the server's, or are its own: PEM, PKCS12 or JKS [default: those of the system]
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// File with the password of a --ca in PKCS12 or JKS
    #[arg(long, value_name = "FILE", requires = "ca")]
    pub ca_password_file: Option<PathBuf>,
    /// Certificate of this client in PEM, the ones that signed it behind; or a PEM, PKCS12 or JKS file with the key in it
    #[arg(long, value_name = "FILE")]
    pub cert: Option<PathBuf>,
    /// Key of this client in PEM, if it is not in --cert
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// File with the password of an encrypted key or store
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key_password_file: Option<PathBuf>,
    /// Take a trusted certificate whatever host it names
    #[arg(long)]
    pub no_hostname_check: bool,
    /// Take every certificate: nobody knows who listens
    #[arg(long)]
    pub insecure: bool,
    /// Properties file as zkCli takes it: zookeeper.client.secure, zookeeper.ssl.keyStore.*, zookeeper.ssl.trustStore.*,
    /// zookeeper.ssl.hostnameVerification; the options above win
    #[arg(long, value_name = "FILE")]
    pub client_configuration: Option<PathBuf>,
    /// What zkCli is given in variables; the file wins.
    #[arg(skip)]
    pub java: JavaProperties,
}

/// TLS and identities.
#[derive(Debug, Clone, Default, Args)]
pub struct ConnectionArgs {
    /// TLS.
    #[command(flatten)]
    pub tls: TlsArgs,
    /// Identity to prove on every connection, such as digest:user:password; may be given several times. Others on this
    /// machine see it: prefer --auth-file
    #[arg(long, value_name = "SCHEME:TEXT", help_heading = "Identity")]
    pub auth: Vec<String>,
    /// File with such identities, one a line
    #[arg(long, value_name = "FILE", help_heading = "Identity")]
    pub auth_file: Option<PathBuf>,
    /// Log in by SASL (DIGEST-MD5) as the section Client of this JAAS file says
    #[arg(long, value_name = "FILE", help_heading = "Identity")]
    pub jaas: Option<PathBuf>,
    /// Log in by SASL (DIGEST-MD5) as this user
    #[arg(
        long,
        value_name = "USER",
        help_heading = "Identity",
        requires = "sasl_password_file",
        conflicts_with = "jaas"
    )]
    pub sasl_user: Option<String>,
    /// File with that user's password
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Identity",
        requires = "sasl_user"
    )]
    pub sasl_password_file: Option<PathBuf>,
}

impl TlsArgs {
    /// TLS, if it is asked for.
    ///
    /// # Errors
    /// A file does not hold what it should.
    pub fn tls(&self) -> Result<Option<Tls>> {
        let properties = self.properties()?;
        let secure = properties.is("client.secure", false);
        let asked = self.tls
            || self.insecure
            || self.no_hostname_check
            || self.ca.is_some()
            || self.cert.is_some();
        if !asked && !secure {
            return Ok(None);
        }
        let any_host_name =
            self.no_hostname_check || !properties.is("ssl.hostnameVerification", true);
        let trusted = match self.insecure {
            true => Vec::new(),
            false => self.trusted(&properties)?,
        };
        let options = TlsOptions {
            trusted,
            key: self.key(&properties)?,
            any_host_name,
            insecure: self.insecure,
        };
        Ok(Some(Tls::new(options)?))
    }

    fn trusted(
        &self,
        properties: &Properties,
    ) -> Result<Vec<rustls::pki_types::CertificateDer<'static>>> {
        let store = match &self.ca {
            Some(path) => stores::recognise(path, password_in(self.ca_password_file.as_deref()))?,
            None => match properties.store("trustStore")? {
                Some(store) => store,
                None => system_trust()?,
            },
        };
        Ok(stores::trusted(&store)?)
    }

    fn key(&self, properties: &Properties) -> Result<Option<rustls::sign::CertifiedKey>> {
        let password = password_in(self.key_password_file.as_deref());
        Ok(match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => Some(stores::key_pair(cert, key, &password)?),
            (Some(cert), None) => Some(stores::key(&stores::recognise(cert, password)?)?),
            (None, _) => match properties.store("keyStore")? {
                Some(store) => Some(stores::key(&store)?),
                None => None,
            },
        })
    }

    fn properties(&self) -> Result<Properties> {
        match &self.client_configuration {
            Some(path) => {
                let mut all = self.java.0.clone();
                all.0.extend(Properties::read(path)?.0);
                Ok(all)
            }
            None => Ok(self.java.0.clone()),
        }
    }
}

impl ConnectionArgs {
    /// How to open a session with the servers of a connect string.
    ///
    /// # Errors
    /// The connect string or a file is not what it should be.
    pub fn session_options(
        &self,
        connect: &str,
        session_timeout: Duration,
        read_only: bool,
    ) -> Result<SessionOptions> {
        let connect: ConnectString = connect.parse()?;
        Ok(SessionOptions {
            session_timeout,
            read_only,
            tls: self.tls.tls()?,
            auth: self.identities()?,
            sasl: self.login()?,
            ..SessionOptions::new(connect)
        })
    }

    /// The identities to prove: scheme and text of each.
    ///
    /// # Errors
    /// One has no scheme, or their file cannot be read.
    pub fn identities(&self) -> Result<Vec<(String, Vec<u8>)>> {
        let mut texts = self.auth.clone();
        if let Some(path) = &self.auth_file {
            let lines = text_of(path)?;
            let lines = lines.lines().map(str::trim);
            texts.extend(
                lines
                    .filter(|line| !line.is_empty() && !line.starts_with('#'))
                    .map(str::to_owned),
            );
        }
        texts
            .iter()
            .map(|text| {
                let (scheme, auth) = text
                    .split_once(':')
                    .filter(|(scheme, _)| !scheme.is_empty())
                    .ok_or_else(|| {
                        anyhow!("--auth: wanted scheme:text, such as digest:user:password")
                    })?;
                Ok((scheme.to_owned(), auth.as_bytes().to_vec()))
            })
            .collect()
    }

    fn login(&self) -> Result<Option<SaslLogin>> {
        let properties = self.tls.properties()?;
        let (user, password) = match (&self.jaas, &self.sasl_user, &self.sasl_password_file) {
            (Some(path), _, _) => {
                let section = properties.get("sasl.clientconfig");
                stores::login(path, section.unwrap_or(CLIENT_SECTION))?
            }
            (None, Some(user), Some(path)) => {
                let text = text_of(path)?;
                (user.clone(), text.trim_end_matches(['\r', '\n']).to_owned())
            }
            _ => return properties.login(),
        };
        Ok(Some(SaslLogin { user, password }))
    }
}

fn text_of(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn password_in(file: Option<&Path>) -> Password {
    match file {
        Some(path) => Password::File(path.to_owned()),
        None => Password::Given(Secret::default()),
    }
}

fn system_trust() -> Result<StoreSettings> {
    let path = std::env::var_os("SSL_CERT_FILE").map_or(SYSTEM_TRUST.into(), PathBuf::from);
    if !path.is_file() {
        bail!(
            "whom to trust is not known: name the certificate of your authority, or that of the server, with --ca (there \
             is no {})",
            path.display()
        );
    }
    Ok(stores::recognise(&path, password_in(None))?)
}

/// The properties of Java's client, without `zookeeper.` in front.
#[derive(Debug, Clone, Default)]
struct Properties(BTreeMap<String, String>);

/// System properties of Java's client, as the scripts around zkCli hand them over.
#[derive(Debug, Clone, Default)]
pub struct JavaProperties(Properties);

impl JavaProperties {
    /// From the variables that zkCli.sh gives to Java: CLIENT_JVMFLAGS, and JVMFLAGS, which wins.
    pub fn of_the_environment() -> Self {
        let variables = ["CLIENT_JVMFLAGS", "JVMFLAGS"];
        let flags = variables.map(|name| std::env::var(name).unwrap_or_default());
        JavaProperties::of_flags(&flags.join(" "))
    }

    /// The `-Dname=value` among the flags.
    fn of_flags(flags: &str) -> Self {
        let definitions = flags.split_whitespace().filter_map(|flag| {
            let (name, value) = flag.strip_prefix("-D")?.split_once('=')?;
            let name = name.strip_prefix("zookeeper.").unwrap_or(name);
            Some((name.to_owned(), value.to_owned()))
        });
        JavaProperties(Properties(definitions.collect()))
    }
}

impl Properties {
    fn read(path: &Path) -> Result<Properties> {
        let bytes =
            std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let pairs = properties::parse(&bytes).with_context(|| path.display().to_string())?;
        let pairs = pairs.into_iter().filter_map(|Pair { key, value, .. }| {
            let name = key.strip_prefix("zookeeper.")?.to_owned();
            Some((name, value.trim().to_owned()))
        });
        Ok(Properties(pairs.collect()))
    }

    /// The login of the JAAS file that Java is given. Without a section for clients there is none, as in Java.
    fn login(&self) -> Result<Option<SaslLogin>> {
        let Some(path) = self.get(JAAS_FILE).filter(|_| self.is("sasl.client", true)) else {
            return Ok(None);
        };
        let section = self.get("sasl.clientconfig").unwrap_or(CLIENT_SECTION);
        match stores::login(Path::new(path), section) {
            Ok((user, password)) => Ok(Some(SaslLogin { user, password })),
            Err(stores::LoginError::NoLogin { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn get(&self, name: &str) -> Option<&str> {
        let value = self.0.get(name).map(String::as_str);
        value.filter(|value| !value.is_empty())
    }

    fn is(&self, name: &str, default: bool) -> bool {
        self.get(name)
            .map_or(default, |value| value.eq_ignore_ascii_case("true"))
    }

    fn store(&self, name: &str) -> Result<Option<StoreSettings>> {
        let part = |part: &str| self.get(&format!("ssl.{name}.{part}"));
        let Some(path) = part("location") else {
            return Ok(None);
        };
        let password = match part("passwordPath") {
            Some(file) => Password::File(file.into()),
            None => Password::Given(Secret(part("password").unwrap_or_default().to_owned())),
        };
        let mut store = stores::recognise(Path::new(path), password)?;
        match part("type").map(str::to_ascii_uppercase).as_deref() {
            None => {}
            Some("PEM") => store.format = StoreFormat::Pem,
            Some("PKCS12" | "P12") => store.format = StoreFormat::Pkcs12,
            Some("JKS") => store.format = StoreFormat::Jks,
            Some(other) => bail!(
                "zookeeper.ssl.{name}.type: {other} is none of PEM, PKCS12 and JKS; copy the store: keytool \
                 -importkeystore -srckeystore {path} -srcstoretype {other} -destkeystore store.p12 -deststoretype PKCS12"
            ),
        }
        Ok(Some(store))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        connection: ConnectionArgs,
    }

    fn options(words: &[&str]) -> Result<SessionOptions> {
        let words = ["program"].iter().chain(words);
        let program = Program::try_parse_from(words).expect("legal options");
        program
            .connection
            .session_options("h:1/x", Duration::from_secs(5), false)
    }

    fn golden(name: &str) -> String {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/src/tls/golden");
        folder.join(name).display().to_string()
    }

    #[test]
    fn without_options_there_is_no_tls() {
        let options = options(&[]).expect("options");
        assert!(options.tls.is_none() && options.sasl.is_none() && options.auth.is_empty());
    }

    #[test]
    fn identities_come_from_the_line_and_from_files() {
        let folder = std::env::temp_dir().join(format!("quenda-auth-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).expect("written");
            path.display().to_string()
        };
        let auth = file("auth", "# mine\ndigest:ann:a:b\n\n");
        let password = file("password", "secret\n");
        let options = options(&[
            "--auth=digest:bob:x",
            "--auth-file",
            &auth,
            "--sasl-user=bob",
            "--sasl-password-file",
            &password,
        ]);
        let options = options.expect("options");
        let digest = |text: &str| ("digest".to_owned(), text.as_bytes().to_vec());
        assert_eq!(options.auth, [digest("bob:x"), digest("ann:a:b")]);
        assert_eq!(options.sasl.expect("a login").password, "secret");
        std::fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn tls_is_built_from_files() {
        let (ca, cert, key) = (golden("ca.pem"), golden("client.pem"), golden("client.key"));
        let options = options(&["--ca", &ca, "--cert", &cert, "--key", &key]);
        assert!(options.expect("options").tls.is_some());
    }

    #[test]
    fn the_properties_of_javas_client_do_as_well() {
        let path = std::env::temp_dir().join(format!("quenda-client-{}", std::process::id()));
        let text = format!(
            "zookeeper.client.secure=true\nzookeeper.ssl.keyStore.location={}\nzookeeper.ssl.keyStore.password=secret\n\
             zookeeper.ssl.trustStore.location={}\nzookeeper.ssl.trustStore.password=secret\n",
            golden("keystore.p12"),
            golden("truststore.jks")
        );
        std::fs::write(&path, text).expect("written");
        let file = path.display().to_string();
        let found = options(&["--client-configuration", &file]);
        assert!(found.expect("options").tls.is_some());
        std::fs::remove_file(&path).expect("removed");
    }

    #[test]
    fn flags_of_java_do_as_well_and_the_file_wins() {
        let folder = std::env::temp_dir().join(format!("quenda-java-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let jaas = folder.join("jaas.conf");
        let section = "Client { org.apache.zookeeper.server.auth.DigestLoginModule required \
                       username=\"ann\" password=\"x\"; };";
        std::fs::write(&jaas, section).expect("written");
        let flags = format!(
            "-Xmx256m -Dzookeeper.client.secure=true -Dzookeeper.ssl.trustStore.location={} \
             -Djava.security.auth.login.config={}",
            golden("ca.pem"),
            jaas.display()
        );
        let mut connection = ConnectionArgs::default();
        connection.tls.java = JavaProperties::of_flags(&flags);
        let open = |connection: &ConnectionArgs| {
            connection.session_options("h:1", Duration::from_secs(5), false)
        };
        let options = open(&connection).expect("options");
        assert!(options.tls.is_some());
        assert_eq!(options.sasl.expect("a login").user, "ann");
        let file = folder.join("client.properties");
        std::fs::write(
            &file,
            "zookeeper.client.secure=false\nzookeeper.sasl.client=false\n",
        )
        .expect("written");
        connection.tls.client_configuration = Some(file);
        let options = open(&connection).expect("options");
        assert!(options.tls.is_none() && options.sasl.is_none());
        std::fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = options(&["--ca", "/nowhere/ca.pem"]).expect_err("no file");
        assert!(error.to_string().contains("/nowhere/ca.pem"), "{error}");
        let error = options(&["--auth", "bob"]).expect_err("no identity");
        assert!(error.to_string().contains("--auth"), "{error}");
    }
}
