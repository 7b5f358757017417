//! Answering HTTP requests on a port.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::{HeaderValue, STRICT_TRANSPORT_SECURITY};
use axum::http::{Method, Request, Response, StatusCode};
use axum::response::IntoResponse;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

use super::HttpListener;
use super::connections::{Connections, Phase};
use super::patient::Patient;
use crate::calm::Calm;
use crate::limits::{
    HTTP_BLOCKING_THREADS, HTTP_CONNECTIONS_MAX, HTTP_HEAD_BYTES, HTTP_HEAD_PATIENCE,
    HTTP_STOP_PATIENCE,
};
use crate::tls::{self, Accepted, Tls};

/// What an HTTP server is made of.
#[derive(Debug)]
pub struct HttpSetup {
    /// Name of the thread and of the server in the log.
    pub name: &'static str,
    /// Its port.
    pub listener: HttpListener,
    /// Its answers. Those that take a lock or look at a disk belong on `tokio::task::spawn_blocking`.
    pub router: Router,
    /// How long a connection may be without a request, a client without taking anything of an answer.
    pub idle: Duration,
    /// Whether it speaks TLS.
    pub tls: HttpTls,
}

/// Whether an HTTP server speaks TLS.
#[derive(Debug, Clone)]
pub enum HttpTls {
    /// It does not.
    None,
    /// It speaks nothing else.
    Forced(Arc<Tls>),
    /// It takes both, by the first byte.
    Unified(Arc<Tls>),
}

/// Who sent a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The address.
    pub peer: SocketAddr,
    /// Subject of the certificate that the caller has proved, if there is one.
    pub subject: Option<String>,
    /// Whether the connection is one by TLS.
    pub secure: bool,
}

/// A server that answers until it is dropped.
#[derive(Debug)]
pub struct HttpServer {
    stop: CancellationToken,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl HttpServer {
    /// Begins to answer.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(setup: HttpSetup) -> io::Result<HttpServer> {
        let stop = CancellationToken::new();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(HTTP_BLOCKING_THREADS)
            .thread_name(setup.name)
            .build()?;
        let listener = {
            let _context = runtime.enter();
            TcpListener::from_std(setup.listener.socket)?
        };
        let acceptor = Acceptor {
            name: setup.name,
            connections: Arc::new(Connections::new(HTTP_CONNECTIONS_MAX)),
            router: setup.router,
            idle: setup.idle,
            tls: setup.tls,
            stop: stop.clone(),
            tasks: TaskTracker::new(),
        };
        let thread = std::thread::Builder::new().name(setup.name.to_owned());
        let thread = thread.spawn(move || {
            runtime.block_on(acceptor.run(listener));
            // Not to wait for an answer that still looks at a disk.
            runtime.shutdown_background();
        })?;
        Ok(HttpServer {
            stop,
            thread: Some(thread),
        })
    }
}

/// Lets answers that were begun come to their end, for a while, and closes the port.
impl Drop for HttpServer {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            warn!("a thread of an HTTP server had panicked");
        }
    }
}

struct Acceptor {
    name: &'static str,
    connections: Arc<Connections>,
    router: Router,
    idle: Duration,
    tls: HttpTls,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Acceptor {
    async fn run(self, listener: TcpListener) {
        if let HttpTls::Forced(tls) | HttpTls::Unified(tls) = &self.tls
            && tls.settings.reload
        {
            tokio::spawn(tls::watch(self.name, Arc::clone(tls), self.stop.clone()));
        }
        let mut failed = Calm::new();
        loop {
            let accepted = tokio::select! {
                () = self.stop.cancelled() => break,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((socket, peer)) => self.admit(socket, peer),
                Err(error) => {
                    if let Some(count) = failed.turn(Instant::now()) {
                        warn!(count, %error, server = self.name, "connections could not be accepted");
                    }
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
        drop(listener);
        self.tasks.close();
        if tokio::time::timeout(HTTP_STOP_PATIENCE, self.tasks.wait())
            .await
            .is_err()
        {
            debug!(server = self.name, "some answers were cut off by the stop");
        }
    }

    fn admit(&self, socket: TcpStream, peer: SocketAddr) {
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        let (number, end) = self.connections.admit(peer.ip());
        if let Err(error) = socket.set_nodelay(true) {
            debug!(%peer, %error, "no TCP_NODELAY");
        }
        let place = Arc::new(Place {
            number,
            connections: Arc::clone(&self.connections),
        });
        let stop = self.stop.clone();
        let (router, idle, tls) = (self.router.clone(), self.idle, self.tls.clone());
        self.tasks.spawn(async move {
            let serving = greet(socket, peer, tls, router, idle, &place, stop);
            tokio::select! {
                () = end.cancelled() => debug!(%peer, "a connection gives way to others"),
                () = serving => {}
            }
        });
    }
}

/// A connection's place among those that are open.
#[derive(Debug)]
struct Place {
    number: u64,
    connections: Arc<Connections>,
}

impl Place {
    fn enter(&self, phase: Phase) {
        self.connections.enter(self.number, phase);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.dismiss(self.number);
    }
}

/// Finds out whether the caller speaks TLS, and answers its requests.
async fn greet(
    socket: TcpStream,
    peer: SocketAddr,
    tls: HttpTls,
    router: Router,
    idle: Duration,
    place: &Arc<Place>,
    stop: CancellationToken,
) {
    let (tls, may_be_plain) = match &tls {
        HttpTls::None => {
            let caller = Caller {
                peer,
                subject: None,
                secure: false,
            };
            return answer(socket, caller, router, idle, place, stop).await;
        }
        HttpTls::Forced(tls) => (tls, false),
        HttpTls::Unified(tls) => (tls, true),
    };
    let accepting = tls::accept(socket, peer.ip(), tls, may_be_plain, HTTP_HEAD_PATIENCE);
    let accepted = tokio::select! {
        () = stop.cancelled() => return,
        accepted = accepting => accepted,
    };
    let caller = |subject, secure| Caller {
        peer,
        subject,
        secure,
    };
    match accepted {
        Ok(Accepted::Plain(socket)) => {
            answer(socket, caller(None, false), router, idle, place, stop).await;
        }
        Ok(Accepted::Secure { stream, subject }) => {
            answer(*stream, caller(subject, true), router, idle, place, stop).await;
        }
        Err(refusal) => debug!(%peer, "no TLS: {refusal}"),
    }
}

/// Answers the requests of one connection.
async fn answer(
    socket: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    caller: Caller,
    router: Router,
    idle: Duration,
    place: &Arc<Place>,
    stop: CancellationToken,
) {
    let peer = caller.peer;
    let routes = TowerToHyperService::new(router);
    let service = service_fn(|mut request: Request<Incoming>| {
        let secure = caller.secure;
        let refused = is_refused(request.method());
        request.extensions_mut().insert(caller.clone());
        let answering = (!refused).then(|| routes.call(request));
        async move {
            // Not before: the next request is taken from the socket while the answer to the last one waits there.
            place.enter(Phase::Answering);
            let response = match answering {
                Some(answering) => answering.await?,
                None => StatusCode::FORBIDDEN.into_response(),
            };
            place.enter(Phase::Sending);
            let mut response = response.map(|body| tracked(body, place));
            if secure {
                let policy = HeaderValue::from_static("max-age=86400; includeSubDomains");
                let headers = response.headers_mut();
                headers.insert(STRICT_TRANSPORT_SECURITY, policy);
            }
            Ok::<Response<Body>, Infallible>(response)
        }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(idle.min(HTTP_HEAD_PATIENCE))
        .max_buf_size(HTTP_HEAD_BYTES)
        .half_close(true)
        .serve_connection(TokioIo::new(Patient::new(socket, idle)), service);
    tokio::pin!(serving);
    let outcome = tokio::select! {
        outcome = serving.as_mut() => outcome,
        () = stop.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = outcome {
        debug!(%peer, %error, "an HTTP connection ended");
    }
}

/// An answer on its way to the caller.
struct Tracked {
    body: Body,
    place: Arc<Place>,
}

fn tracked(body: Body, place: &Arc<Place>) -> Body {
    Body::new(Tracked {
        body,
        place: Arc::clone(place),
    })
}

impl Drop for Tracked {
    fn drop(&mut self) {
        self.place.enter(Phase::Waiting);
    }
}

impl HttpBody for Tracked {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Whether no route gets to see a method: an echo of the request's headers is of use to attackers alone.
fn is_refused(method: &Method) -> bool {
    method == Method::TRACE
}
