//! The task that keeps a session: looks for a server, makes each new connection what the last one was, serves the
//! requests, and goes on elsewhere when the connection breaks.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use quenda_proto::connect::PASSWORD_LEN;
use quenda_proto::records::{AuthPacket, ReplyHeader};
use quenda_proto::{Decode, Encode, ErrorCode, Op, Reader};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::{debug, warn};

use crate::client::Reply;
use crate::driver::{Link, Observer, Submission, Waiting};
use crate::handle::Shared;
use crate::{
    ConnectOptions, ConnectionState, Error, Event, Session, SessionEvent, SessionOptions,
    SessionState, Wire, sasl, word,
};

/// Wait behind the first round over the servers that found none; doubles with each further one.
const ROUND_PAUSE_MIN: Duration = Duration::from_millis(100);
/// Longest wait between two rounds.
const ROUND_PAUSE_MAX: Duration = Duration::from_secs(2);
/// A connection that has lived so long counts as a good one.
const STABLE: Duration = Duration::from_secs(1);
/// Wait before the first look for a server that takes writes; doubles with each further one.
const LOOK_PAUSE_MIN: Duration = Duration::from_millis(100);
/// Longest wait between two such looks.
const LOOK_PAUSE_MAX: Duration = Duration::from_secs(10);
/// How long a server may take to tell whether it takes writes.
const LOOK_PATIENCE: Duration = Duration::from_secs(1);

pub(crate) struct Roamer {
    options: SessionOptions,
    submissions: mpsc::UnboundedReceiver<Submission>,
    record: Record,
    /// Taken from the handles while there is no connection.
    queue: VecDeque<Submission>,
    /// The server to try next.
    next: usize,
    /// Attempts since the last good connection.
    failures: usize,
    /// What to resume; `None` before the first connection to a server that takes writes.
    session: Option<Session>,
}

/// What is known of the session, kept while its requests are served.
struct Record {
    shared: Arc<Shared>,
    events: mpsc::UnboundedSender<SessionEvent>,
    /// Highest zxid seen.
    zxid: i64,
    /// Identities that were asked to be proved, in order.
    auth: Vec<Bytes>,
    /// Why the server has refused an identity.
    refused: Option<String>,
}

/// Why a connection is not served any more.
enum Ending {
    /// It broke: go on elsewhere.
    Lost(Error),
    /// A server that takes writes was found, by its number.
    Better(usize),
    /// It is over.
    Final(SessionState, Error),
}

impl Roamer {
    pub fn new(
        options: SessionOptions,
        submissions: mpsc::UnboundedReceiver<Submission>,
        events: mpsc::UnboundedSender<SessionEvent>,
        shared: Arc<Shared>,
    ) -> Self {
        let auth = options.auth.iter();
        let auth = auth
            .map(|(scheme, auth)| auth_record(scheme, auth))
            .collect();
        Roamer {
            options,
            submissions,
            record: Record {
                shared,
                events,
                zxid: 0,
                auth,
                refused: None,
            },
            queue: VecDeque::new(),
            next: 0,
            failures: 0,
            session: None,
        }
    }

    /// Runs until the session has ended.
    pub async fn run(mut self) {
        let (state, error) = loop {
            let ending = match self.find().await {
                Ok(wire) => self.serve(wire).await,
                Err(ending) => ending,
            };
            match ending {
                Ending::Final(state, error) => break (state, error),
                Ending::Better(server) => self.next = server,
                Ending::Lost(error) => debug!(%error, "connection lost"),
            }
        };
        self.end(state, &error).await;
    }

    async fn end(mut self, state: SessionState, error: &Error) {
        let last = match state {
            SessionState::Expired => ConnectionState::Expired,
            SessionState::AuthFailed => ConnectionState::AuthFailed,
            _ => ConnectionState::Closed,
        };
        self.record.finished(last, state, error);
        self.submissions.close();
        self.fail_queue(error);
        while let Some(submission) = self.submissions.recv().await {
            drop(submission.done.send(Err(error.clone())));
        }
    }

    /// A connection with the session on it.
    async fn find(&mut self) -> Result<Wire, Ending> {
        loop {
            self.pause().await?;
            let host = self.host();
            match self
                .attended(attempt(host.clone(), self.options.clone(), self.resume()))
                .await?
            {
                Ok(wire) => {
                    *self.record.shared.server.lock() = Some(host);
                    return Ok(wire);
                }
                Err(Error::SessionExpired(id)) => {
                    return Err(Ending::Final(
                        SessionState::Expired,
                        Error::SessionExpired(id),
                    ));
                }
                Err(Error::AuthFailed(why)) => {
                    return Err(Ending::Final(
                        SessionState::AuthFailed,
                        Error::AuthFailed(why),
                    ));
                }
                Err(error) => {
                    debug!(%error, "no connection");
                    self.failed(error);
                }
            }
        }
    }

    fn host(&self) -> String {
        self.options.connect.hosts()[self.next].clone()
    }

    fn resume(&self) -> (Option<Session>, i64) {
        (self.session, self.record.zxid)
    }

    /// Another server's turn. After a round without success those who wait learn of it.
    fn failed(&mut self, error: Error) {
        let hosts = self.options.connect.hosts().len();
        self.failures += 1;
        self.next = (self.next + 1) % hosts;
        if self.failures.is_multiple_of(hosts) {
            self.take_submissions();
            self.fail_queue(&Error::ConnectionLost(error.to_string()));
        }
        *self.record.shared.failure.lock() = Some(error);
    }

    /// Waits between two rounds.
    async fn pause(&mut self) -> Result<(), Ending> {
        let hosts = self.options.connect.hosts().len();
        if self.failures == 0 || !self.failures.is_multiple_of(hosts) {
            return Ok(());
        }
        let doublings = u32::try_from(self.failures / hosts - 1).unwrap_or(u32::MAX);
        let longest = ROUND_PAUSE_MIN.saturating_mul(2_u32.saturating_pow(doublings));
        let pause = spread(longest.min(ROUND_PAUSE_MAX));
        self.attended(tokio::time::sleep(pause)).await
    }

    /// Works while the handles are listened to: they may close the session, or all be gone.
    async fn attended<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Ending> {
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return Ok(done),
                submission = self.submissions.recv() => match submission {
                    None => return Err(Ending::Final(SessionState::Closed, Error::Closed)),
                    Some(submission) if submission.op == Op::CloseSession => {
                        drop(submission.done.send(Err(Error::ConnectionLost(
                            "closed while not connected: the session ends by its timeout".to_owned(),
                        ))));
                        return Err(Ending::Final(SessionState::Closed, Error::Closed));
                    }
                    Some(submission) => self.queue.push_back(submission),
                },
            }
        }
    }

    fn take_submissions(&mut self) {
        while let Ok(submission) = self.submissions.try_recv() {
            self.queue.push_back(submission);
        }
    }

    fn fail_queue(&mut self, error: &Error) {
        for submission in self.queue.drain(..) {
            let waiting = Waiting {
                xid: 0,
                op: submission.op,
                record: submission.record,
                local: submission.local,
                done: Some(submission.done),
            };
            self.record.fail(waiting, error);
        }
    }

    /// Serves a connection to its end.
    async fn serve(&mut self, wire: Wire) -> Ending {
        let read_only = wire.is_read_only();
        *self.record.shared.session.lock() = wire.session();
        if !read_only {
            self.session = Some(wire.session());
        }
        let mut link = Link::new(wire);
        self.record.introduce(&mut link);
        self.record
            .connected(read_only, self.options.sasl.is_some());
        for submission in self.queue.drain(..) {
            self.record.remember(&submission);
            link.send(submission);
        }
        let since = Instant::now();
        let mut ending = self.exchange(&mut link, read_only).await;
        if link.closing && matches!(ending, Ending::Lost(_)) {
            ending = Ending::Final(SessionState::Closed, Error::Closed);
        }
        if let Some(why) = self.record.refused.take() {
            ending = Ending::Final(SessionState::AuthFailed, Error::AuthFailed(why));
        }
        self.disconnected(&mut link, &ending, since.elapsed() >= STABLE);
        ending
    }

    async fn exchange(&mut self, link: &mut Link, read_only: bool) -> Ending {
        let look = look_for_better(&self.options, self.next, read_only);
        tokio::select! {
            served = link.serve(&mut self.submissions, &mut self.record) => match served {
                Ok(()) => Ending::Final(SessionState::Closed, Error::Closed),
                Err(error) => Ending::Lost(error),
            },
            server = look => Ending::Better(server),
        }
    }

    fn disconnected(&mut self, link: &mut Link, ending: &Ending, stable: bool) {
        let error = match ending {
            Ending::Lost(error @ Error::ConnectionLost(_)) => error.clone(),
            Ending::Lost(error) => Error::ConnectionLost(error.to_string()),
            Ending::Better(_) => {
                Error::ConnectionLost("going on at a server that takes writes".to_owned())
            }
            Ending::Final(_, error) => error.clone(),
        };
        for waiting in link.waiting.drain(..) {
            self.record.fail(waiting, &error);
        }
        if matches!(ending, Ending::Final(..)) {
            return;
        }
        if stable || matches!(ending, Ending::Better(_)) {
            self.failures = 0;
            self.next = (self.next + 1) % self.options.connect.hosts().len();
        } else {
            self.failed(error);
        }
        let state = &self.record.shared.state;
        state.send_replace(ConnectionState::Connecting);
        self.record.tell(SessionState::Disconnected);
    }
}

impl Record {
    fn tell(&self, state: SessionState) {
        self.deliver(SessionEvent::State(state));
    }

    fn deliver(&self, event: SessionEvent) {
        // Nobody reads events once the receiver is dropped; that is allowed.
        drop(self.events.send(event));
    }

    /// Takes note of the end, and tells of it once.
    fn finished(&self, last: ConnectionState, state: SessionState, error: &Error) {
        if *self.shared.state.borrow() == last {
            return;
        }
        *self.shared.end.lock() = error.clone();
        self.shared.state.send_replace(last);
        self.tell(state);
    }

    fn connected(&self, read_only: bool, by_sasl: bool) {
        let (state, word) = match read_only {
            true => (
                ConnectionState::ConnectedReadOnly,
                SessionState::ConnectedReadOnly,
            ),
            false => (ConnectionState::Connected, SessionState::SyncConnected),
        };
        self.shared.state.send_replace(state);
        self.tell(word);
        if by_sasl {
            self.tell(SessionState::SaslAuthenticated);
        }
    }

    /// What every connection begins with: the identities, then the watches.
    fn introduce(&self, link: &mut Link) {
        for auth in &self.auth {
            link.push_own(Op::Auth, auth.clone());
        }
        if let Some(watches) = &self.shared.watches {
            for request in watches.lock().requests(self.zxid) {
                link.push_own(Op::SetWatches2, encoded(&request));
            }
        }
    }

    /// Takes note of an identity that this client has begun to prove.
    fn remember(&mut self, submission: &Submission) {
        if submission.op == Op::Auth && !self.auth.contains(&submission.record) {
            self.auth.push(submission.record.clone());
        }
    }

    /// Ends a request that has no reply.
    fn fail(&self, waiting: Waiting, error: &Error) {
        let result = match waiting.local {
            true => {
                self.forget(&waiting.record);
                Ok(Reply {
                    zxid: 0,
                    body: Bytes::new(),
                })
            }
            false => Err(error.clone()),
        };
        waiting.end(result);
    }

    /// Takes note of watches that were removed.
    fn forget(&self, record: &Bytes) {
        let Some(watches) = &self.shared.watches else {
            return;
        };
        let gone = watches.lock().removed(record);
        for (which, path) in gone {
            self.deliver(SessionEvent::Removed(which, self.shared.relative(path)));
        }
    }
}

impl Observer for Record {
    fn event(&mut self, event: Event) {
        self.zxid = self.zxid.max(event.zxid);
        if let Some(watches) = &self.shared.watches {
            watches.lock().fired(event.kind, &event.path);
        }
        let path = self.shared.relative(event.path);
        self.deliver(SessionEvent::Watch(Event { path, ..event }));
    }

    fn reply(
        &mut self,
        waiting: &Waiting,
        header: ReplyHeader,
        result: Result<Reply, Error>,
    ) -> Result<Reply, Error> {
        self.zxid = self.zxid.max(header.zxid);
        let refusals = [
            ErrorCode::AuthFailed.code(),
            ErrorCode::SessionClosedRequireSaslAuth.code(),
        ];
        match (waiting.op, &result) {
            (_, Err(error)) if error.code().is_some_and(|code| refusals.contains(&code)) => {
                let why = refusal(waiting, error);
                self.refused = Some(why.clone());
                let error = Error::AuthFailed(why);
                // Before the waiter hears of it: who asks then for the cause finds it, the connection closed or not.
                self.finished(
                    ConnectionState::AuthFailed,
                    SessionState::AuthFailed,
                    &error,
                );
                return Err(error);
            }
            (Op::RemoveWatches, Ok(_)) => self.forget(&waiting.record),
            (Op::SetWatches2, Err(error)) if waiting.done.is_none() => {
                warn!(%error, "the watches were not set again");
            }
            (op, result) => {
                if let Some(watches) = &self.shared.watches {
                    watches.lock().answered(op, &waiting.record, result);
                }
            }
        }
        result
    }

    fn sent(&mut self, submission: &Submission) {
        self.remember(submission);
    }
}

fn refusal(waiting: &Waiting, error: &Error) -> String {
    let scheme = AuthPacket::decode(&mut Reader::new(&waiting.record))
        .ok()
        .and_then(|packet| packet.scheme);
    match scheme.filter(|_| waiting.op == Op::Auth) {
        Some(scheme) => format!("the server does not take the identity of scheme {scheme}"),
        None => format!("the server demands that clients prove who they are ({error})"),
    }
}

pub(crate) fn auth_record(scheme: &str, auth: &[u8]) -> Bytes {
    encoded(&AuthPacket {
        kind: 0,
        scheme: Some(scheme.into()),
        auth: Some(auth),
    })
}

fn encoded(record: &impl Encode) -> Bytes {
    let mut out = BytesMut::new();
    record.encode(&mut out);
    out.freeze()
}

/// One connection with one server.
async fn attempt(
    host: String,
    options: SessionOptions,
    (session, zxid): (Option<Session>, i64),
) -> Result<Wire, Error> {
    let patience = options.patience();
    let connect = ConnectOptions {
        session_timeout: options.session_timeout,
        connect_timeout: patience,
        resume: session,
        last_zxid_seen: zxid,
        read_only: Some(options.read_only),
        max_frame: options.max_frame,
        tls: options.tls,
    };
    let mut wire = Wire::connect(&host, &connect).await?;
    if let Some(login) = &options.sasl {
        let login = tokio::time::timeout(patience, sasl::login(&mut wire, login));
        login.await.map_err(|_| Error::HandshakeTimeout {
            address: host,
            after: patience,
        })??;
    }
    Ok(wire)
}

/// Comes to an end when a server that takes writes was found; never if this one does.
async fn look_for_better(options: &SessionOptions, here: usize, read_only: bool) -> usize {
    let hosts = options.connect.hosts();
    if !read_only {
        return std::future::pending().await;
    }
    let mut pause = LOOK_PAUSE_MIN;
    loop {
        tokio::time::sleep(spread(pause)).await;
        pause = (pause * 2).min(LOOK_PAUSE_MAX);
        for step in 1..=hosts.len() {
            let server = (here + step) % hosts.len();
            let (host, tls) = (hosts[server].clone(), options.tls.clone());
            let ask = move || word::ask(&host, "isro", tls.as_ref(), LOOK_PATIENCE);
            let answer = tokio::task::spawn_blocking(ask).await;
            if answer.is_ok_and(|answer| answer.is_ok_and(|text| text.trim() == "rw")) {
                return server;
            }
        }
    }
}

/// From half of it to all of it, so that many clients do not come at once.
fn spread(pause: Duration) -> Duration {
    let random = RandomState::new().build_hasher().finish();
    pause / 2 + pause.mul_f64((random % 1024) as f64 / 2048.0)
}

/// What a session is before its first connection.
pub(crate) fn no_session() -> Session {
    Session {
        id: 0,
        password: [0; PASSWORD_LEN],
        timeout: Duration::ZERO,
    }
}
