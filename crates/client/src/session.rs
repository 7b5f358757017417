//! A session that outlives its connections: how it is asked for and what it tells.

use std::fmt;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::{ConnectString, Event, Tls};

/// How to open a session that goes on at another server when its connection breaks.
#[derive(Clone)]
pub struct SessionOptions {
    /// The servers, and the root of the paths.
    pub connect: ConnectString,
    /// Wanted session timeout; the server clamps it. Default 30 s.
    pub session_timeout: Duration,
    /// Bound of connecting and handshake with one server. Default 10 s, or the session timeout divided by the number of
    /// servers if that is less, though at least a second.
    pub connect_timeout: Option<Duration>,
    /// Whether a read-only server will do until another is found. Default no.
    pub read_only: bool,
    /// TLS, if it is to be spoken.
    pub tls: Option<Tls>,
    /// Identities to prove on every connection: scheme and what it wants.
    pub auth: Vec<(String, Vec<u8>)>,
    /// Login by SASL on every connection, before anything else.
    pub sasl: Option<SaslLogin>,
    /// Largest reply accepted, in bytes. Default 256 MiB.
    pub max_frame: usize,
}

impl SessionOptions {
    /// The defaults.
    pub fn new(connect: ConnectString) -> Self {
        SessionOptions {
            connect,
            session_timeout: Duration::from_secs(30),
            connect_timeout: None,
            read_only: false,
            tls: None,
            auth: Vec::new(),
            sasl: None,
            max_frame: crate::ConnectOptions::default().max_frame,
        }
    }

    pub(crate) fn patience(&self) -> Duration {
        let hosts = u32::try_from(self.connect.hosts().len()).unwrap_or(u32::MAX);
        let share = (self.session_timeout / hosts).max(Duration::from_secs(1));
        self.connect_timeout
            .unwrap_or_else(|| share.min(Duration::from_secs(10)))
    }
}

/// Without the secrets.
impl fmt::Debug for SessionOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionOptions")
            .field("connect", &self.connect)
            .field("session_timeout", &self.session_timeout)
            .field("read_only", &self.read_only)
            .field("tls", &self.tls.is_some())
            .finish_non_exhaustive()
    }
}

/// A user who logs in by DIGEST-MD5.
#[derive(Clone)]
pub struct SaslLogin {
    /// Name.
    pub user: String,
    /// Password.
    pub password: String,
}

/// Without the password.
impl fmt::Debug for SaslLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SaslLogin")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// Where the connection of a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionState {
    /// A server is looked for.
    Connecting,
    /// Requests are served.
    Connected,
    /// Reads are served: this server has no quorum.
    ConnectedReadOnly,
    /// The session has ended on the server. This is for good.
    Expired,
    /// An identity was not taken. This is for good.
    AuthFailed,
    /// This client has closed the session. This is for good.
    Closed,
}

impl ConnectionState {
    /// Whether requests are served.
    pub fn is_connected(self) -> bool {
        matches!(
            self,
            ConnectionState::Connected | ConnectionState::ConnectedReadOnly
        )
    }

    /// Whether nothing comes any more.
    pub fn is_final(self) -> bool {
        matches!(
            self,
            ConnectionState::Expired | ConnectionState::AuthFailed | ConnectionState::Closed
        )
    }
}

/// What happened to the connection of a session, by the protocol's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionState {
    /// Connected, for the first time or again.
    SyncConnected,
    /// Connected to a server without a quorum.
    ConnectedReadOnly,
    /// The connection is gone; another one is looked for.
    Disconnected,
    /// The login by SASL was taken.
    SaslAuthenticated,
    /// An identity was not taken; the session is of no use any more.
    AuthFailed,
    /// The session has ended on the server.
    Expired,
    /// This client has closed the session.
    Closed,
}

/// Which watches of a path this client has removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WatchRemoved {
    /// Those for its data or existence.
    Data,
    /// Those for its children.
    Child,
    /// Those that stay.
    Persistent,
}

/// What a session tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionEvent {
    /// The connection has changed.
    State(SessionState),
    /// A watch has fired.
    Watch(Event),
    /// Watches were removed by this client.
    Removed(WatchRemoved, String),
}

/// All that a session tells, in order. Not bounded: read it, or drop it.
#[derive(Debug)]
pub struct SessionEvents {
    pub(crate) receiver: mpsc::UnboundedReceiver<SessionEvent>,
}

impl SessionEvents {
    /// The next event; `None` when the session has ended.
    pub async fn next(&mut self) -> Option<SessionEvent> {
        self.receiver.recv().await
    }

    /// An event that has already arrived.
    pub fn try_next(&mut self) -> Option<SessionEvent> {
        self.receiver.try_recv().ok()
    }
}
