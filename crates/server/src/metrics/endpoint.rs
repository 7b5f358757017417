//! The port for Prometheus.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE as TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use tracing::{error, info};

use crate::config::MetricsEndpoint;
use crate::http::{HttpListener, HttpServer, HttpSetup, HttpTls};
use crate::shared::Shared;

/// How long a scraper's connection may be without a request: longer than any sensible interval between two.
const IDLE: Duration = Duration::from_secs(90);

/// Opens the port.
///
/// # Errors
/// It cannot be had.
pub fn open(endpoint: &MetricsEndpoint) -> io::Result<HttpListener> {
    HttpListener::bind(Some(&endpoint.address), endpoint.port)
}

/// Begins to answer on it.
///
/// # Errors
/// The system gives no thread.
pub fn start(listener: HttpListener, shared: &Arc<Shared>) -> io::Result<HttpServer> {
    let port = listener.port()?;
    let shared = Arc::clone(shared);
    let router = Router::new().route("/metrics", get(move || answer(Arc::clone(&shared))));
    let server = HttpServer::start(HttpSetup {
        name: "quenda-metrics",
        listener,
        router,
        idle: IDLE,
        tls: HttpTls::None,
    })?;
    info!(port, "metrics for Prometheus at /metrics");
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
