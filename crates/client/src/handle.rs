//! What the handles of a session and the task that serves it know together.

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::watch_book::WatchBook;
use crate::{ConnectionState, Error, Session, Tls};

/// Owned by the task, read by the handles.
#[derive(Debug)]
pub(crate) struct Shared {
    /// As the server granted it last.
    pub session: Mutex<Session>,
    /// Where the connection stands.
    pub state: watch::Sender<ConnectionState>,
    /// The server that is connected, or was connected last.
    pub server: Mutex<Option<String>>,
    /// The last failure to connect.
    pub failure: Mutex<Option<Error>>,
    /// What requests get once the task has ended.
    pub end: Mutex<Error>,
    /// The watches to be set again; `None` if nobody does it.
    pub watches: Option<Mutex<WatchBook>>,
    /// Root of the paths of this client; empty for that of the server.
    pub chroot: String,
    /// The servers of the ensemble that this client knows of.
    pub hosts: Vec<String>,
    /// TLS, if it is spoken.
    pub tls: Option<Tls>,
}

impl Shared {
    pub fn new(session: Session, state: ConnectionState) -> Self {
        Shared {
            session: Mutex::new(session),
            state: watch::Sender::new(state),
            server: Mutex::new(None),
            failure: Mutex::new(None),
            end: Mutex::new(Error::Closed),
            watches: None,
            chroot: String::new(),
            hosts: Vec::new(),
            tls: None,
        }
    }

    /// A path of the server as this client names it. One outside the root stays as it is.
    pub fn relative(&self, path: String) -> String {
        if self.chroot.is_empty() {
            return path;
        }
        match path.strip_prefix(&self.chroot) {
            Some("") => "/".to_owned(),
            Some(rest) if rest.starts_with('/') => rest.to_owned(),
            Some(_) | None => path,
        }
    }

    /// A path of this client as the server names it.
    pub fn absolute<'a>(&self, path: &'a str) -> std::borrow::Cow<'a, str> {
        match (self.chroot.as_str(), path) {
            ("", _) => path.into(),
            (root, "/") => root.to_owned().into(),
            // What is no path is refused by the server with its own words.
            (root, _) => format!("{root}{path}").into(),
        }
    }
}
