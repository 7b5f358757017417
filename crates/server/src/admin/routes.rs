//! From a request to its answer.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use axum::http::{Method, Response, StatusCode};
use axum::response::IntoResponse;
use parking_lot::Mutex;
use tokio::time::timeout;
use tracing::info;

use super::command::{COMMANDS, Command};
use super::health::{self, Health};
use super::held_body::held;
use super::json::{Fields, Json, field};
use super::query::{self, Query};
use super::{Admin, auth, backups, clients, ensemble, figures, shedding, transfer};
use crate::calm::Calm;
use crate::config::AdminSettings;
use crate::four_letter::{NOT_SERVING, Source};
use crate::http::{Caller, read_body};
use crate::limits::{ADMIN_BODY_BYTES, ADMIN_LISTING_PATIENCE, HTTP_HEAD_PATIENCE};
use crate::metrics;
use crate::node_source::NodeSource;
use crate::served::Served;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// How often guarded commands were refused.
static REFUSED: Mutex<Calm> = Mutex::new(Calm::new());

/// All that is answered.
pub(super) fn router(admin: Arc<Admin>) -> Router {
    // The commands lie where the configuration says, which may be below any of the other paths.
    Router::new().fallback(answer).with_state(admin)
}

async fn answer(
    State(admin): State<Arc<Admin>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Response<Body> {
    if admin.settings().tls.is_some() && !caller.secure {
        admin.shared.admin.insecure.add(1);
    }
    let path = request.uri().path().to_owned();
    match command_name(&admin, &path) {
        Some("" | "/") => index(&admin, request.method()),
        Some(name) => match query::decode(&name.as_bytes()[1..]) {
            Some(name) => run(&admin, &caller, &name, request).await,
            None => StatusCode::BAD_REQUEST.into_response(),
        },
        None => other(&admin, &path, request.method()).await,
    }
}

/// What stands behind the path of the commands, with the slash.
fn command_name<'a>(admin: &Admin, path: &'a str) -> Option<&'a str> {
    let url = admin.settings().command_url.as_str();
    let rest = path.strip_prefix(url.trim_end_matches('/'))?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

/// What is no command.
async fn other(admin: &Arc<Admin>, path: &str, method: &Method) -> Response<Body> {
    let known = [
        "/health/live",
        "/health/ready",
        "/health/leader",
        "/metrics",
        "/status",
    ];
    if !known.contains(&path) {
        return nothing_here(admin.settings(), &known);
    }
    if !matches!(*method, Method::GET | Method::HEAD) {
        return wrong_method("GET, HEAD");
    }
    match path {
        "/health/live" => healthy(health::live()),
        "/health/ready" => healthy(health::ready(admin)),
        "/health/leader" => healthy(health::leader(admin)),
        "/metrics" => {
            let admin = Arc::clone(admin);
            let text = blocking(move || metrics::prometheus_text(&admin.shared)).await;
            text.map_or_else(failed, |text| {
                ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response()
            })
        }
        _ => {
            let admin = Arc::clone(admin);
            blocking(move || NodeSource::new(&admin.shared).status())
                .await
                .map_or_else(failed, |text| with_json(200, text.into()))
        }
    }
}

fn nothing_here(settings: &AdminSettings, known: &[&str]) -> Response<Body> {
    let text = format!(
        "nothing is here; see {}, {}\n",
        settings.command_url,
        known.join(", ")
    );
    (StatusCode::NOT_FOUND, text).into_response()
}

fn healthy(health: Health) -> Response<Body> {
    let status = if health.good { 200 } else { 503 };
    with_json(status, Json::Map(health.fields).pretty().into())
}

fn index(admin: &Admin, method: &Method) -> Response<Body> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return wrong_method("GET, HEAD");
    }
    let url = &admin.settings().command_url;
    let lines = COMMANDS
        .iter()
        .map(|(_, names)| names[0])
        .map(|name| format!("<a href=\"{url}/{name}\">{name}</a>\n<br/>\n"));
    let mut response = Response::new(lines.collect::<String>().into());
    let html = HeaderValue::from_static("text/html;charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, html);
    response
}

/// Runs a command by the name as it was given.
async fn run(admin: &Arc<Admin>, caller: &Caller, name: &str, request: Request) -> Response<Body> {
    let is_post = match *request.method() {
        Method::GET | Method::HEAD => false,
        Method::POST => true,
        Method::OPTIONS => {
            let allow = HeaderValue::from_static("GET, HEAD, POST, OPTIONS");
            return (StatusCode::OK, [(ALLOW, allow)]).into_response();
        }
        _ => return wrong_method("GET, HEAD, POST, OPTIONS"),
    };
    let Some(command) = Command::find(name) else {
        return complaint(200, name, &format!("Unknown command: {name}"));
    };
    if !command.is_always_answered() && admin.shared.served() == Served::Nobody {
        return complaint(200, name, NOT_SERVING);
    }
    if command.is_guarded() {
        if let Err(refusal) = auth::demand_all(&admin.shared, caller, request.headers()) {
            let (peer, command) = (caller.peer, command.name());
            if let Some(count) = REFUSED.lock().turn(Instant::now()) {
                info!(count, %peer, command, %refusal, "guarded commands refused");
            }
            return complaint(refusal.status(), name, &refusal.to_string());
        }
        info!(peer = %caller.peer, command = command.name(), "a guarded command");
    }
    if is_post != command.is_posted() {
        let method = if is_post { "GET" } else { "POST" };
        let text = format!("the command {} is for {method}", command.name());
        let mut response = complaint(405, name, &text);
        let allow = HeaderValue::from_static(method);
        response.headers_mut().insert(ALLOW, allow);
        return response;
    }
    let query = Query::parse(request.uri().query().unwrap_or_default());
    match command {
        Command::TransferLeadership => match transfer::transfer(admin, query.get("to")).await {
            Ok(fields) => told(200, command, fields, None),
            Err(error) => complaint(error.status(), command.name(), &error.to_string()),
        },
        Command::ShedConnections => shed(admin, request.into_body()).await,
        Command::Restore => backups::restore(admin, request.into_body()).await,
        // What would be made for it takes long, and nobody would get it.
        Command::Snapshot if *request.method() == Method::HEAD => wrong_method("GET"),
        Command::Snapshot => backups::take(admin, &query).await,
        command => tell(admin, command, query).await,
    }
}

async fn shed(admin: &Arc<Admin>, body: Body) -> Response<Body> {
    let name = Command::ShedConnections.name();
    let body = match read_body(body, ADMIN_BODY_BYTES, HTTP_HEAD_PATIENCE).await {
        Ok(body) => body,
        Err(error) => return complaint(400, name, &error.to_string()),
    };
    let admin = Arc::clone(admin);
    match blocking(move || shedding::shed(&admin, &body)).await {
        Some(Ok(fields)) => told(200, Command::ShedConnections, fields, None),
        Some(Err(error)) => complaint(400, name, &error),
        None => failed(),
    }
}

/// Answers a command that looks at the server.
async fn tell(admin: &Arc<Admin>, command: Command, query: Query) -> Response<Body> {
    let turn = match command.is_listing() {
        false => None,
        true => {
            let turns = Arc::clone(&admin.listings).acquire_owned();
            match timeout(ADMIN_LISTING_PATIENCE, turns).await {
                Ok(Ok(turn)) => Some(turn),
                Ok(Err(_)) | Err(_) => {
                    let text = "too many long answers are under way; try again";
                    return complaint(503, command.name(), text);
                }
            }
        }
    };
    let theirs = Arc::clone(admin);
    let fields = blocking(move || fields(&theirs, command, &query)).await;
    match fields {
        Some(fields) => told(200, command, fields, turn),
        None => failed(),
    }
}

fn fields(admin: &Admin, command: Command, query: &Query) -> Fields {
    let source = NodeSource::new(&admin.shared);
    match command {
        Command::Configuration => figures::configuration(&source),
        Command::ConnectionStatReset => {
            source.reset_connection_figures();
            Fields::new()
        }
        Command::Connections => clients::connections(&source),
        Command::Dirs => figures::dirs(&source),
        Command::Dump => clients::dump(admin, &source),
        Command::Environment => figures::environment(admin),
        Command::GetTraceMask => vec![field("tracemask", admin.shared.words.trace_mask())],
        Command::SetTraceMask => set_trace_mask(admin, query.get("traceMask")),
        Command::Hash => figures::hash(&source),
        Command::InitialConfiguration => figures::initial_configuration(admin),
        Command::IsReadOnly => figures::is_read_only(&source),
        Command::LastSnapshot => figures::last_snapshot(admin),
        Command::Leader => ensemble::leader(admin),
        Command::Monitor => figures::monitor(admin, &source),
        Command::Observers => ensemble::observers(admin),
        Command::ServerStats => figures::server_stats(admin, &source),
        Command::Stats => {
            let mut fields = figures::server_stats(admin, &source);
            fields.extend(clients::brief_connections(&source));
            fields
        }
        Command::StatReset => {
            source.reset_server_figures();
            Fields::new()
        }
        Command::SystemProperties => figures::system_properties(admin),
        Command::Top => figures::top(admin),
        Command::VotingView => ensemble::voting_view(admin),
        Command::WatchSummary => clients::watch_summary(&source),
        Command::Watches => clients::watches(&source),
        Command::WatchesByPath => clients::watches_by_path(&source),
        Command::ZabState => ensemble::zab_state(admin, &source),
        Command::ObserverConnectionStatReset => {
            if let Some(peers) = admin.shared.peers() {
                peers.reset_figures();
            }
            Fields::new()
        }
        Command::Restore
        | Command::Ruok
        | Command::ShedConnections
        | Command::Snapshot
        | Command::TransferLeadership => Fields::new(),
    }
}

fn set_trace_mask(admin: &Admin, mask: Option<&str>) -> Fields {
    const USAGE: &str = "setTraceMask requires long traceMask argument";
    let error = match mask {
        None => USAGE.to_owned(),
        Some(text) => match text.parse() {
            Ok(mask) => {
                admin.shared.words.set_trace_mask(mask);
                return vec![field("tracemask", mask)];
            }
            Err(_) => format!("{USAGE}, got {text}"),
        },
    };
    vec![field("error", error)]
}

/// An answer with the command's proper name behind its fields, and the error, if it has not set one itself.
pub(super) fn told(
    status: u16,
    command: Command,
    mut fields: Fields,
    turn: Option<tokio::sync::OwnedSemaphorePermit>,
) -> Response<Body> {
    let has_error = fields.iter().any(|(name, _)| name == "error");
    fields.push(field("command", command.name()));
    if !has_error {
        fields.push(field("error", Json::Null));
    }
    let text = Json::Map(fields).pretty();
    match turn {
        Some(turn) => with_json(status, held(text, turn)),
        None => with_json(status, text.into()),
    }
}

/// An answer that is nothing but an error.
pub(super) fn complaint(status: u16, name: &str, error: &str) -> Response<Body> {
    let fields = vec![field("command", name), field("error", error)];
    with_json(status, Json::Map(fields).pretty().into())
}

fn with_json(status: u16, body: Body) -> Response<Body> {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    let never = HeaderValue::from_static("no-store");
    response.headers_mut().insert(CACHE_CONTROL, never);
    response
}

fn wrong_method(allowed: &'static str) -> Response<Body> {
    let allow = HeaderValue::from_static(allowed);
    (StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, allow)]).into_response()
}

/// Does what takes a lock or walks over much, aside; `None` if it panicked, which its thread has reported.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}

fn failed() -> Response<Body> {
    StatusCode::INTERNAL_SERVER_ERROR.into_response()
}
