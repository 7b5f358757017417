//! The session that commands work in.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use quenda_client::{Client, ConnectionState, SessionEvent};
use tokio::sync::broadcast;

/// Events that a slow follower may be behind.
const EVENTS_KEPT: usize = 4096;

/// One session with the servers of a connect string.
#[derive(Debug, Clone)]
pub struct Session {
    client: Client,
    servers: String,
    events: broadcast::Sender<SessionEvent>,
    mutes: Arc<AtomicUsize>,
}

/// While it lives, events of the session are not printed.
#[derive(Debug)]
pub struct Muted(Arc<AtomicUsize>);

impl Drop for Muted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Session {
    /// A session over a client that was opened with `servers`.
    pub fn new(client: Client, servers: &str) -> Self {
        Session {
            client,
            servers: servers.to_owned(),
            events: broadcast::Sender::new(EVENTS_KEPT),
            mutes: Arc::default(),
        }
    }

    /// What requests are made with. Paths are those that the user types; a chroot of the connect string is put
    /// in front by the client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The connect string, as it was given.
    pub fn servers(&self) -> &str {
        &self.servers
    }

    /// Events from now on, for a command that follows something.
    pub fn watch_events(&self) -> broadcast::Receiver<SessionEvent> {
        self.events.subscribe()
    }

    /// Keeps events from being printed, for a command that shows them itself.
    pub fn mute_events(&self) -> Muted {
        self.mutes.fetch_add(1, Ordering::Relaxed);
        Muted(Arc::clone(&self.mutes))
    }

    /// Whether somebody shows events itself.
    pub fn is_muted(&self) -> bool {
        self.mutes.load(Ordering::Relaxed) > 0
    }

    /// Hands an event to the commands that follow.
    pub fn tell(&self, event: &SessionEvent) {
        // Nobody need follow.
        drop(self.events.send(event.clone()));
    }

    /// Whether requests can be made, now or once a server is found.
    pub fn is_alive(&self) -> bool {
        !self.client.state().is_final()
    }

    /// State of the connection in zkCli's words.
    pub fn state_name(&self) -> &'static str {
        match self.client.state() {
            ConnectionState::Connecting => "CONNECTING",
            ConnectionState::Connected => "CONNECTED",
            ConnectionState::ConnectedReadOnly => "CONNECTEDREADONLY",
            ConnectionState::Expired | ConnectionState::Closed => "CLOSED",
            ConnectionState::AuthFailed => "AUTH_FAILED",
        }
    }
}
