//! The handle of a session.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use quenda_proto::{Decode, Encode, Op, Reader};
use tokio::sync::{mpsc, oneshot};

use crate::driver::{Driver, Submission};
use crate::handle::Shared;
use crate::roamer::{Roamer, no_session};
use crate::word::{self, WordError};
use crate::{
    ConnectOptions, ConnectionState, Error, Events, Session, SessionEvents, SessionOptions, Wire,
};

/// A successful reply.
#[derive(Debug, Clone)]
pub struct Reply {
    /// zxid of the write, or the last one applied where a read was answered.
    pub zxid: i64,
    /// The response record.
    pub body: Bytes,
}

impl Reply {
    /// Decodes the response record.
    pub fn record<'a, T: Decode<'a>>(&'a self) -> Result<T, Error> {
        Ok(T::decode(&mut Reader::new(&self.body))?)
    }
}

/// A request that is on its way, whether or not this is awaited.
#[derive(Debug)]
pub struct Pending {
    receiver: oneshot::Receiver<Result<Reply, Error>>,
}

impl Future for Pending {
    type Output = Result<Reply, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.receiver)
            .poll(context)
            .map(|answer| answer.unwrap_or(Err(Error::Closed)))
    }
}

/// One session. Clones share it.
///
/// Requests are sent in the order of the calls of one task. Nothing bounds their number but the
/// caller. Dropping the last clone closes the connection and leaves the session to its timeout;
/// [`Client::close`] ends both.
#[derive(Debug, Clone)]
pub struct Client {
    submissions: mpsc::UnboundedSender<Submission>,
    pub(crate) shared: Arc<Shared>,
}

impl Client {
    /// Connects to `address` (`host:port`), opens or resumes a session and starts the task that
    /// serves it on the current tokio runtime. The handle ends with the connection.
    pub async fn connect(
        address: &str,
        options: &ConnectOptions,
    ) -> Result<(Client, Events), Error> {
        let wire = Wire::connect(address, options).await?;
        let state = match wire.is_read_only() {
            true => ConnectionState::ConnectedReadOnly,
            false => ConnectionState::Connected,
        };
        let mut shared = Shared::new(wire.session(), state);
        shared.hosts = vec![address.to_owned()];
        shared.tls = options.tls.clone();
        let shared = Arc::new(shared);
        *shared.server.lock() = Some(address.to_owned());
        let (submissions, submitted) = mpsc::unbounded_channel();
        let (delivered, receiver) = mpsc::unbounded_channel();
        tokio::spawn(Driver::new(wire, submitted, delivered, Arc::clone(&shared)).run());
        Ok((
            Client {
                submissions,
                shared,
            },
            Events { receiver },
        ))
    }

    /// Starts the task that opens a session at one of several servers, on the current tokio runtime, and keeps it: when
    /// the connection breaks it goes on at the next server, proves the identities again and sets the watches again.
    ///
    /// Requests wait for the first connection. They fail with [`Error::ConnectionLost`] when the connection breaks under
    /// them, or when no server of the list could be had; nothing is sent twice.
    pub fn open(options: SessionOptions) -> (Client, SessionEvents) {
        let mut shared = Shared::new(no_session(), ConnectionState::Connecting);
        shared.watches = Some(parking_lot::Mutex::default());
        shared.chroot = options.connect.chroot().to_owned();
        shared.hosts = options.connect.hosts().to_vec();
        shared.tls = options.tls.clone();
        let shared = Arc::new(shared);
        let (submissions, submitted) = mpsc::unbounded_channel();
        let (delivered, receiver) = mpsc::unbounded_channel();
        tokio::spawn(Roamer::new(options, submitted, delivered, Arc::clone(&shared)).run());
        (
            Client {
                submissions,
                shared,
            },
            SessionEvents { receiver },
        )
    }

    /// Id, password and timeout, for a resume elsewhere. The id is 0 before the first connection.
    pub fn session(&self) -> Session {
        *self.shared.session.lock()
    }

    /// Where the connection stands.
    pub fn state(&self) -> ConnectionState {
        *self.shared.state.borrow()
    }

    /// The server (`host:port`) that is connected, or was last.
    pub fn server(&self) -> Option<String> {
        self.shared.server.lock().clone()
    }

    /// The servers that this client may go to.
    pub fn servers(&self) -> &[String] {
        &self.shared.hosts
    }

    /// Asks a server (`host:port`) a four-letter word, in the way in which this client is connected.
    ///
    /// # Errors
    /// There is no answer in time.
    pub async fn ask_word(
        &self,
        server: &str,
        word: &'static str,
        patience: Duration,
    ) -> Result<String, WordError> {
        let (server, tls) = (server.to_owned(), self.shared.tls.clone());
        let asking =
            tokio::task::spawn_blocking(move || word::ask(&server, word, tls.as_ref(), patience));
        asking.await.map_err(std::io::Error::other)?
    }

    /// Waits for a connection.
    ///
    /// # Errors
    /// There is none in time, or the session has ended.
    pub async fn wait_connected(&self, patience: Duration) -> Result<ConnectionState, Error> {
        let mut states = self.shared.state.subscribe();
        let settled = states.wait_for(|state| state.is_connected() || state.is_final());
        match tokio::time::timeout(patience, settled).await {
            Ok(Ok(state)) if state.is_connected() => Ok(*state),
            Ok(Ok(_) | Err(_)) => Err(self.shared.end.lock().clone()),
            Err(_) => {
                let failure = self.shared.failure.lock().clone();
                Err(Error::NotConnected {
                    after: patience,
                    reason: failure
                        .map_or_else(|| "no answer".to_owned(), |error| error.to_string()),
                })
            }
        }
    }

    /// Sends a request of any operation. It is on its way when this returns. Its paths are those of the server, whatever
    /// the root is.
    pub fn submit<T: Encode>(&self, op: Op, record: &T) -> Pending {
        let mut out = BytesMut::new();
        record.encode(&mut out);
        self.submit_raw(op, out.freeze())
    }

    /// Sends a request whose record is already encoded. Its paths are those of the server, whatever the root is.
    pub fn submit_raw(&self, op: Op, record: Bytes) -> Pending {
        self.hand_over(op, record, false)
    }

    pub(crate) fn hand_over(&self, op: Op, record: Bytes, local: bool) -> Pending {
        let (done, receiver) = oneshot::channel();
        let submission = Submission {
            op,
            record,
            local,
            done,
        };
        if let Err(mpsc::error::SendError(submission)) = self.submissions.send(submission) {
            let end = self.shared.end.lock().clone();
            drop(submission.done.send(Err(end)));
        }
        Pending { receiver }
    }

    /// Ends the session; its ephemeral znodes are gone when this returns.
    pub async fn close(self) -> Result<(), Error> {
        self.submit_raw(Op::CloseSession, Bytes::new())
            .await
            .map(|_| ())
    }
}
