//! Metrics: where Prometheus may fetch them, and under which names.

use super::remark::{ConfigError, Remark};
use super::resolve::Reader;

/// ZooKeeper's providers: nothing but `mntr`.
const DEFAULT: &str = "org.apache.zookeeper.metrics.impl.DefaultMetricsProvider";
/// Nothing at all.
const NULL: &str = "org.apache.zookeeper.metrics.impl.NullMetricsProvider";
/// An HTTP endpoint.
const PROMETHEUS: &str = "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider";

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

/// Where Prometheus may fetch the metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricsEndpoint {
    /// Address to listen on. `metricsProvider.httpHost`.
    pub address: String,
    /// Port; 0 lets the system choose. `metricsProvider.httpPort`.
    pub port: u16,
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

fn endpoint(reader: &Reader<'_>) -> Result<MetricsEndpoint, ConfigError> {
    const PORT: &str = "metricsProvider.httpPort";
    let text = reader.settings.get_or_default(PORT);
    let port = text
        .parse()
        .map_err(|_| ConfigError::invalid(format!("{PORT}: {text} is not a port")))?;
    let address = reader.settings.get_or_default("metricsProvider.httpHost");
    Ok(MetricsEndpoint {
        address: address.to_owned(),
        port,
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
        let (address, port) = ("0.0.0.0".to_owned(), 7000);
        assert_eq!(
            endpoint(with(PROMETHEUS, "")),
            MetricsEndpoint { address, port }
        );
        let (address, port) = ("127.0.0.1".to_owned(), 0);
        let place = "metricsProvider.httpHost=127.0.0.1\nmetricsProvider.httpPort=0\n";
        assert_eq!(
            endpoint(with(PROMETHEUS, place)),
            MetricsEndpoint { address, port }
        );
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
