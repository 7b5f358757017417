//! Administration over HTTP: the commands of ZooKeeper's AdminServer with its fields, and more.
//!
//! - [`routes`] takes requests apart; [`command`] lists the commands; [`auth`] tells who may do what.
//! - The answers are JSON ([`json`]) from the same sources as the four-letter words: [`figures`] about the server,
//!   [`clients`] about sessions, connections and watches, [`ensemble`] about the members.
//! - [`health`] is for probes and load balancers, [`transfer`] moves the leadership, [`shedding`] sends clients elsewhere.
//!
//! All of it runs in a thread of its own ([`crate::http`]), so that it answers while clients keep the server busy.

mod auth;
mod backups;
mod clients;
mod command;
mod ensemble;
mod figures;
mod health;
mod held_body;
mod json;
mod limiter;
mod query;
mod routes;
mod shedding;
mod transfer;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tracing::info;

use limiter::Limiter;

use crate::config::{AdminSettings, TlsSettings};
use crate::http::{HttpListener, HttpServer, HttpSetup, HttpTls};
use crate::limits::ADMIN_LISTINGS_MAX;
use crate::metrics::{Counter, Figures, Page};
use crate::shared::Shared;
use crate::tls::{Tls, TlsError};

/// What the answers are made from.
#[derive(Debug)]
struct Admin {
    shared: Arc<Shared>,
    /// Turns of the answers that are as long as there are connections, sessions, znodes or watches.
    listings: Arc<Semaphore>,
    snapshots: Limiter,
    restores: Limiter,
}

/// What the commands count.
#[derive(Debug, Default)]
pub struct AdminFigures {
    /// Snapshots that were asked for too often.
    pub snapshots_limited: Counter,
    /// Restores that were asked for too often.
    pub restores_limited: Counter,
    /// Requests in the clear on a port that takes TLS as well.
    pub insecure: Counter,
}

impl Figures for AdminFigures {
    fn tell(&self, page: &mut dyn Page) {
        page.counter("snapshot_rate_limited_count", &self.snapshots_limited);
        page.counter("restore_rate_limited_count", &self.restores_limited);
        page.counter("insecure_admin_count", &self.insecure);
    }
}

impl Admin {
    fn settings(&self) -> &AdminSettings {
        &self.shared.config.admin
    }
}

/// Begins to answer on a port that was opened before.
///
/// # Errors
/// The files for TLS are not usable, or the system gives no thread.
pub fn start(
    shared: &Arc<Shared>,
    listener: HttpListener,
    tls: Option<Tls>,
) -> io::Result<HttpServer> {
    let settings = &shared.config.admin;
    let port = listener.port()?;
    let admin = Arc::new(Admin {
        shared: Arc::clone(shared),
        listings: Arc::new(Semaphore::new(ADMIN_LISTINGS_MAX)),
        snapshots: Limiter::new(Duration::from_millis(settings.interval_ms)),
        restores: Limiter::new(Duration::from_millis(settings.interval_ms)),
    });
    let setup = HttpSetup {
        name: "quenda-admin",
        listener,
        router: routes::router(admin),
        idle: Duration::from_millis(settings.idle_ms),
        tls: match tls.map(Arc::new) {
            None => HttpTls::None,
            Some(tls) if tls.settings.unified => HttpTls::Unified(tls),
            Some(tls) => HttpTls::Forced(tls),
        },
    };
    let scheme = match settings.tls {
        Some(TlsSettings { unified: false, .. }) => "https",
        Some(_) | None => "http",
    };
    let server = HttpServer::start(setup)?;
    let address = settings.address.as_deref().unwrap_or("*");
    let path = &settings.command_url;
    info!("administration at {scheme}://{address}:{port}{path}");
    Ok(server)
}

/// What TLS on the port needs, if it speaks it.
///
/// # Errors
/// The files are not usable.
pub fn load_tls(settings: &AdminSettings) -> Result<Option<Tls>, TlsError> {
    settings.tls.as_ref().map(Tls::load).transpose()
}
