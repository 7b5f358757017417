//! The handle of a session.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use quenda_proto::{Decode, Encode, Op, Reader};
use tokio::sync::{mpsc, oneshot};

use crate::driver::{Driver, Submission};
use crate::{ConnectOptions, Error, Events, Session, Wire};

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

/// One session on one connection. Clones share it.
///
/// Requests are sent in the order of the calls of one task. Nothing bounds their number but the
/// caller. Dropping the last clone closes the connection and leaves the session to its timeout;
/// [`Client::close`] ends both.
#[derive(Debug, Clone)]
pub struct Client {
    submissions: mpsc::UnboundedSender<Submission>,
    session: Session,
}

impl Client {
    /// Connects to `address` (`host:port`), opens or resumes a session and starts the task that
    /// serves it on the current tokio runtime.
    pub async fn connect(
        address: &str,
        options: &ConnectOptions,
    ) -> Result<(Client, Events), Error> {
        let wire = Wire::connect(address, options).await?;
        let session = wire.session();
        let (submissions, submitted) = mpsc::unbounded_channel();
        let (delivered, receiver) = mpsc::unbounded_channel();
        tokio::spawn(Driver::new(wire, submitted, delivered).run());
        let client = Client {
            submissions,
            session,
        };
        Ok((client, Events { receiver }))
    }

    /// Id, password and timeout, for a resume elsewhere.
    pub fn session(&self) -> Session {
        self.session
    }

    /// Sends a request of any operation. It is on its way when this returns.
    pub fn submit<T: Encode>(&self, op: Op, record: &T) -> Pending {
        let mut out = BytesMut::new();
        record.encode(&mut out);
        self.submit_raw(op, out.freeze())
    }

    /// Sends a request whose record is already encoded.
    pub fn submit_raw(&self, op: Op, record: Bytes) -> Pending {
        let (done, receiver) = oneshot::channel();
        // When the task is gone the sender is dropped here, and the future says so.
        drop(self.submissions.send(Submission { op, record, done }));
        Pending { receiver }
    }

    /// Ends the session; its ephemeral znodes are gone when this returns.
    pub async fn close(self) -> Result<(), Error> {
        self.submit_raw(Op::CloseSession, Bytes::new())
            .await
            .map(|_| ())
    }
}
