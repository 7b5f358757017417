//! The ports for Prometheus.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE as TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use tracing::{error, info};

use crate::config::MetricsSettings;
use crate::http::{HttpListener, HttpServer, HttpSetup, HttpTls};
use crate::shared::Shared;
use crate::tls::{Tls, TlsError};

/// How long a scraper's connection may be without a request: longer than any sensible interval between two.
const IDLE: Duration = Duration::from_secs(90);

/// The ports that were opened.
#[derive(Debug, Default)]
pub struct MetricsPorts {
    /// The one without TLS.
    pub plain: Option<HttpListener>,
    /// The one with TLS.
    pub secure: Option<HttpListener>,
}

/// What TLS on the port for it needs, if there is one.
///
/// # Errors
/// The files are not usable.
pub fn load_tls(settings: &MetricsSettings) -> Result<Option<Tls>, TlsError> {
    settings.tls().map(Tls::load).transpose()
}

/// Begins to answer on them.
///
/// # Errors
/// The system gives no thread.
pub fn start(
    ports: MetricsPorts,
    shared: &Arc<Shared>,
    tls: Option<Tls>,
) -> io::Result<Vec<HttpServer>> {
    let tls = tls.map_or(HttpTls::None, |tls| HttpTls::Forced(Arc::new(tls)));
    let plain = ports
        .plain
        .map(|port| ("quenda-metrics", port, HttpTls::None));
    let secure = ports.secure.map(|port| ("quenda-metrics-tls", port, tls));
    let ports = plain.into_iter().chain(secure);
    ports
        .map(|(name, listener, tls)| answer_on(name, listener, tls, shared))
        .collect()
}

fn answer_on(
    name: &'static str,
    listener: HttpListener,
    tls: HttpTls,
    shared: &Arc<Shared>,
) -> io::Result<HttpServer> {
    let port = listener.port()?;
    let way = match tls {
        HttpTls::None => "http",
        HttpTls::Forced(_) | HttpTls::Unified(_) => "https",
    };
    let shared = Arc::clone(shared);
    let router = Router::new()
        .route("/metrics", get(move || answer(Arc::clone(&shared))))
        .fallback(async || (StatusCode::NOT_FOUND, "nothing is here; see /metrics\n"));
    let server = HttpServer::start(HttpSetup {
        name,
        listener,
        router,
        idle: IDLE,
        tls,
    })?;
    info!(port, way, "metrics for Prometheus at /metrics");
    Ok(server)
}

/// The answer to `GET /metrics`.
pub async fn answer(shared: Arc<Shared>) -> axum::response::Response {
    let made = tokio::task::spawn_blocking(move || super::prometheus_text(&shared)).await;
    match made {
        Ok(text) => ([(TYPE, super::CONTENT_TYPE)], text).into_response(),
        Err(error) => {
            error!(%error, "the metrics could not be made");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
