//! Metrics: where Prometheus may fetch them, and under which names.

use super::keys;
use super::remark::{ConfigError, Remark};
use super::resolve::Reader;
use super::tls::{self, ClientAuth, TlsSettings};

/// ZooKeeper's providers: nothing but `mntr`.
const DEFAULT: &str = "org.apache.zookeeper.metrics.impl.DefaultMetricsProvider";
/// Nothing at all.
const NULL: &str = "org.apache.zookeeper.metrics.impl.NullMetricsProvider";
/// An HTTP endpoint.
const PROMETHEUS: &str = "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider";

/// Not used on a port that speaks TLS alone.
const DETECTION_MS: u64 = 5000;

/// Settings of the metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricsSettings {
    /// The endpoint for Prometheus; `None` if there is none of its own. `metricsProvider.className`.
    pub endpoint: Option<MetricsEndpoint>,
    /// Whether figures of the process are told. `metricsProvider.exportJvmInfo`.
    pub process: bool,
    /// Whether some of them also have the names of a Java process. `quenda.metrics.jvmNames`.
    pub jvm_names: bool,
    /// Whether counters of ZooKeeper also have the names of its version 3.10. `quenda.metrics.totalNames`.
    pub total_names: bool,
    /// Whether `mntr` has the form that it has in ZooKeeper with the Prometheus provider.
    /// `quenda.metrics.prometheusMntr`.
    pub prometheus_mntr: bool,
}

/// Where Prometheus may fetch the metrics: at least one of the ports is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricsEndpoint {
    /// Address to listen on. `metricsProvider.httpHost`.
    pub address: String,
    /// Port without TLS; 0 lets the system choose. `metricsProvider.httpPort`.
    pub port: Option<u16>,
    /// Port with TLS alone; 0 lets the system choose. `metricsProvider.httpsPort`.
    pub secure_port: Option<u16>,
    /// TLS, there with `secure_port`. `metricsProvider.ssl.*`.
    pub tls: Option<TlsSettings>,
}

impl MetricsSettings {
    /// TLS, if there is any.
    pub fn tls(&self) -> Option<&TlsSettings> {
        self.endpoint.as_ref()?.tls.as_ref()
    }
}

/// Reads the settings.
///
/// # Errors
/// A provider that is not one of ZooKeeper's own, a port that is none.
pub(super) fn resolve(reader: &mut Reader<'_>) -> Result<MetricsSettings, ConfigError> {
    let class = reader.settings.get_or_default("metricsProvider.className");
    let endpoint = match class {
        DEFAULT => None,
        NULL => {
            let text = "metricsProvider.className: mntr and /metrics have the metrics all the same; they cost nothing";
            reader.remarks.push(Remark::info(text));
            None
        }
        PROMETHEUS => Some(endpoint(reader)?),
        other => {
            return Err(ConfigError::invalid(format!(
                "metrics provider class was not found: metricsProvider.className={other} names a Java class. Leave it \
                 out for mntr alone, or set it to {PROMETHEUS}"
            )));
        }
    };
    Ok(MetricsSettings {
        endpoint,
        process: reader.is_true("metricsProvider.exportJvmInfo"),
        jvm_names: reader.is_true("quenda.metrics.jvmNames"),
        total_names: reader.is_true("quenda.metrics.totalNames"),
        prometheus_mntr: reader.is_true("quenda.metrics.prometheusMntr"),
    })
}

/// What the keys of its TLS begin with.
const TLS: &str = "metricsProvider.ssl";

const PORT: &str = "metricsProvider.httpPort";
const SECURE_PORT: &str = "metricsProvider.httpsPort";

/// Whoever asks for the port with TLS gets the one without only if he asks for that, too.
fn endpoint(reader: &mut Reader<'_>) -> Result<MetricsEndpoint, ConfigError> {
    let secure_port = reader.client_port(SECURE_PORT)?;
    let default = keys::find(PORT).map_or("", |key| key.default);
    let port = match (reader.client_port(PORT)?, secure_port) {
        (None, None) => default.parse().ok(),
        (given, _) => given,
    };
    if port.is_some_and(|port| port != 0) && port == secure_port {
        return Err(ConfigError::invalid(format!(
            "{PORT} and {SECURE_PORT} are the same: give each a port of its own"
        )));
    }
    Ok(MetricsEndpoint {
        address: reader
            .settings
            .get_or_default("metricsProvider.httpHost")
            .to_owned(),
        port,
        secure_port,
        tls: match secure_port {
            Some(_) => Some(tls_settings(reader)?),
            None => None,
        },
    })
}

fn tls_settings(reader: &mut Reader<'_>) -> Result<TlsSettings, ConfigError> {
    let missing = |store: &str, purpose: &str| {
        ConfigError::invalid(format!(
            "{SECURE_PORT} is set but {TLS}.{store}.location is not set: give the file with {purpose}"
        ))
    };
    let key_store = tls::store(reader, TLS, "keyStore")?
        .ok_or_else(|| missing("keyStore", "the server's certificate and key"))?;
    tls::warn_if_open(reader, &key_store);
    let trust_store = tls::store(reader, TLS, "trustStore")?;
    let client_auth = match trust_store.is_some() {
        _ if reader.is_true("metricsProvider.ssl.need.client.auth") => ClientAuth::Need,
        true if reader.is_true("metricsProvider.ssl.want.client.auth") => ClientAuth::Want,
        true | false => ClientAuth::None,
    };
    if client_auth == ClientAuth::Need && trust_store.is_none() {
        return Err(missing(
            "trustStore",
            "the certificates that may sign those of scrapers, or set metricsProvider.ssl.need.client.auth=false",
        ));
    }
    Ok(TlsSettings {
        port: None,
        address: None,
        unified: false,
        key_store,
        trust_store: trust_store.filter(|_| client_auth != ClientAuth::None),
        client_auth,
        protocols: tls::protocols(reader, TLS)?,
        cipher_suites: tls::list(
            reader
                .settings
                .get_or_default("metricsProvider.ssl.ciphersuites"),
        ),
        verify_client_host: false,
        detection_ms: DETECTION_MS,
        reload: true,
        handshakes_max: 0,
        drop_while_not_serving: false,
        dialing: None,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::config::tests::Case;

    /// What holds when the configuration says nothing of metrics.
    pub(in crate::config) fn plain() -> MetricsSettings {
        MetricsSettings {
            endpoint: None,
            process: true,
            jvm_names: false,
            total_names: false,
            prometheus_mntr: false,
        }
    }

    fn with(class: &str, more: &str) -> Case {
        Case::with(&format!("metricsProvider.className={class}\n{more}"))
    }

    #[test]
    fn metrics_are_fetched_where_the_provider_for_prometheus_is_named() {
        let endpoint = |case: Case| case.config().metrics.endpoint.expect("an endpoint");
        let plain_at = |address: &str, port| MetricsEndpoint {
            address: address.to_owned(),
            port: Some(port),
            secure_port: None,
            tls: None,
        };
        assert_eq!(endpoint(with(PROMETHEUS, "")), plain_at("0.0.0.0", 7000));
        let place = "metricsProvider.httpHost=127.0.0.1\nmetricsProvider.httpPort=0\n";
        assert_eq!(endpoint(with(PROMETHEUS, place)), plain_at("127.0.0.1", 0));
        assert_eq!(
            with(DEFAULT, "metricsProvider.httpPort=7\n")
                .config()
                .metrics,
            plain()
        );
        let nothing = with(NULL, "");
        assert_eq!(nothing.config().metrics, plain());
        let says = |remark: &Remark| remark.text.contains("metricsProvider.className");
        assert!(nothing.remarks().iter().any(says));
    }

    #[test]
    fn a_port_with_tls_stands_alone_unless_the_other_is_asked_for() {
        let tls = "metricsProvider.httpsPort=7443\nmetricsProvider.ssl.keyStore.location=/k.p12\n\
                   metricsProvider.ssl.trustStore.location=/t.pem\n";
        let endpoint = |more: &str| {
            let case = with(PROMETHEUS, &format!("{tls}{more}"));
            let endpoint = case.config().metrics.endpoint.expect("an endpoint");
            let of_tls = endpoint.tls.expect("TLS");
            (endpoint.port, endpoint.secure_port, of_tls)
        };
        let (port, secure_port, alone) = endpoint("");
        assert_eq!((port, secure_port), (None, Some(7443)));
        assert_eq!(alone.client_auth, ClientAuth::Need);
        assert!(alone.reload && alone.trust_store.is_some() && alone.protocols.len() == 2);
        assert_eq!(endpoint("metricsProvider.httpPort=7000\n").0, Some(7000));
        let auth = |more: &str| endpoint(more).2.client_auth;
        let wanted = "metricsProvider.ssl.need.client.auth=false\n";
        assert_eq!(auth(wanted), ClientAuth::Want);
        let unwanted = format!("{wanted}metricsProvider.ssl.want.client.auth=false\n");
        assert_eq!(auth(&unwanted), ClientAuth::None);
        let one =
            "metricsProvider.ssl.enabledProtocols=TLSv1.3\nmetricsProvider.ssl.ciphersuites=A,B\n";
        let (_, _, chosen) = endpoint(one);
        assert_eq!((chosen.protocols.len(), chosen.cipher_suites.len()), (1, 2));
    }

    #[test]
    fn a_port_with_tls_needs_its_files() {
        let key_store = "metricsProvider.ssl.keyStore.location=/k.p12\n";
        for (more, part) in [
            ("", "metricsProvider.ssl.keyStore.location is not set"),
            (
                key_store,
                "metricsProvider.ssl.trustStore.location is not set",
            ),
            ("metricsProvider.httpPort=7443\n", "are the same"),
            (
                "metricsProvider.ssl.keyStore.location=/k\n",
                "set metricsProvider.ssl.keyStore.type",
            ),
        ] {
            let text = format!("metricsProvider.httpsPort=7443\n{more}");
            let refusal = with(PROMETHEUS, &text).refusal();
            assert!(refusal.contains(part), "{refusal}");
        }
        let without = format!(
            "metricsProvider.httpsPort=7443\n{key_store}metricsProvider.ssl.need.client.auth=false\n"
        );
        let endpoint = with(PROMETHEUS, &without).config().metrics.endpoint;
        let tls = endpoint.expect("an endpoint").tls.expect("TLS");
        assert_eq!((tls.client_auth, tls.trust_store), (ClientAuth::None, None));
    }

    #[test]
    fn names_can_be_chosen() {
        let keys = "metricsProvider.exportJvmInfo=false\nquenda.metrics.jvmNames=true\n\
                    quenda.metrics.totalNames=true\nquenda.metrics.prometheusMntr=true\n";
        let chosen = Case::with(keys).config().metrics;
        let all = (chosen.jvm_names, chosen.total_names, chosen.prometheus_mntr);
        assert_eq!((chosen.process, all), (false, (true, true, true)));
    }

    #[test]
    fn another_class_and_what_is_no_port_stop_the_start() {
        let refusal = with("com.example.Own", "").refusal();
        assert!(
            refusal.starts_with("metrics provider class was not found"),
            "{refusal}"
        );
        let refusal = with(PROMETHEUS, "metricsProvider.httpPort=x\n").refusal();
        assert_eq!(refusal, "metricsProvider.httpPort: x is not a port");
    }
}
