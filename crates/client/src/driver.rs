//! The task that owns a connection: sends what handles ask for, matches replies, delivers events.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quenda_proto::event::EventType;
use quenda_proto::records::{ReplyHeader, WatcherEvent};
use quenda_proto::{
    Decode, DecodeError, Op, Reader, XID_AUTH, XID_EVENT, XID_PING, XID_SET_WATCHES,
};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tracing::debug;

use crate::client::Reply;
use crate::handle::Shared;
use crate::{ConnectionState, Error, Wire};

/// Requests taken from the handles in one go.
const BATCH: usize = 256;

/// A watch event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub kind: EventType,
    /// Path of the znode that changed; for children the parent's.
    pub path: String,
    /// zxid of the change, −1 if the server does not tell it.
    pub zxid: i64,
}

/// The watch events of one connection, in order. Not bounded: a program that leaves watches has to
/// read; one that does not drops the receiver.
#[derive(Debug)]
pub struct Events {
    pub(crate) receiver: mpsc::UnboundedReceiver<Event>,
}

impl Events {
    /// The next event; `None` when the connection has ended.
    pub async fn next(&mut self) -> Option<Event> {
        self.receiver.recv().await
    }

    /// An event that has already arrived.
    pub fn try_next(&mut self) -> Option<Event> {
        self.receiver.try_recv().ok()
    }
}

/// A request on its way to the task: everything behind the xid.
#[derive(Debug)]
pub(crate) struct Submission {
    pub op: Op,
    pub record: Bytes,
    /// Whether watches are to be removed here even if the server cannot be told.
    pub local: bool,
    pub done: oneshot::Sender<Result<Reply, Error>>,
}

/// A request without its reply. Those that the task makes itself have nobody who waits.
pub(crate) struct Waiting {
    pub xid: i32,
    pub op: Op,
    pub record: Bytes,
    pub local: bool,
    pub done: Option<oneshot::Sender<Result<Reply, Error>>>,
}

impl Waiting {
    pub fn end(self, result: Result<Reply, Error>) {
        if let Some(done) = self.done {
            // The waiter may have lost interest.
            drop(done.send(result));
        }
    }
}

/// What learns of replies and events as they come.
pub(crate) trait Observer {
    /// A request that goes out.
    fn sent(&mut self, _: &Submission) {}
    /// A watch event.
    fn event(&mut self, event: Event);
    /// A reply; what comes back is what the waiter gets.
    fn reply(
        &mut self,
        waiting: &Waiting,
        header: ReplyHeader,
        result: Result<Reply, Error>,
    ) -> Result<Reply, Error>;
}

/// One connection and the requests without a reply on it.
pub(crate) struct Link {
    pub wire: Wire,
    pub waiting: VecDeque<Waiting>,
    /// Whether this client has asked for the end of the session.
    pub closing: bool,
    next_xid: i32,
    last_heard: Instant,
}

impl Link {
    pub fn new(wire: Wire) -> Self {
        Link {
            wire,
            waiting: VecDeque::new(),
            closing: false,
            next_xid: 1,
            last_heard: Instant::now(),
        }
    }

    /// Serves until the connection fails, or the last handle is gone. May be dropped and called again.
    pub async fn serve(
        &mut self,
        submissions: &mut mpsc::UnboundedReceiver<Submission>,
        observer: &mut impl Observer,
    ) -> Result<(), Error> {
        let timeout = self.wire.session().timeout;
        let mut pings = tokio::time::interval(timeout / 3);
        pings.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            tokio::select! {
                count = submissions.recv_many(&mut batch, BATCH) => {
                    if count == 0 {
                        return Ok(());
                    }
                    for submission in batch.drain(..) {
                        observer.sent(&submission);
                        self.send(submission);
                    }
                }
                result = self.wire.exchange() => {
                    // What came before the end counts.
                    self.receive(observer)?;
                    result?;
                }
                _ = pings.tick() => self.keep_alive(timeout)?,
            }
        }
    }

    pub fn send(&mut self, submission: Submission) {
        let Submission {
            op,
            record,
            local,
            done,
        } = submission;
        self.push(op, record, local, Some(done));
    }

    /// Sends a request of the task's own.
    pub fn push_own(&mut self, op: Op, record: Bytes) {
        self.push(op, record, false, None);
    }

    fn push(
        &mut self,
        op: Op,
        record: Bytes,
        local: bool,
        done: Option<oneshot::Sender<Result<Reply, Error>>>,
    ) {
        let xid = match op {
            Op::Auth => XID_AUTH,
            Op::SetWatches2 if done.is_none() => XID_SET_WATCHES,
            _ => self.take_xid(),
        };
        self.closing |= op == Op::CloseSession;
        self.wire.push_raw(xid, op, &record);
        self.waiting.push_back(Waiting {
            xid,
            op,
            record,
            local,
            done,
        });
    }

    /// Positive xids only: the others have meanings of their own.
    fn take_xid(&mut self) -> i32 {
        let xid = self.next_xid;
        self.next_xid = self.next_xid.checked_add(1).unwrap_or(1);
        xid
    }

    fn receive(&mut self, observer: &mut impl Observer) -> Result<(), Error> {
        self.last_heard = Instant::now();
        let Link { wire, waiting, .. } = self;
        wire.drain(|header, body| match header.xid {
            XID_PING => Ok(()),
            XID_EVENT => {
                observer.event(decode_event(header, body)?);
                Ok(())
            }
            _ => complete(waiting, header, body, observer),
        })
    }

    fn keep_alive(&mut self, timeout: Duration) -> Result<(), Error> {
        let silence = self.last_heard.elapsed();
        if silence > timeout * 2 / 3 {
            return Err(Error::ConnectionLost(format!(
                "nothing heard from the server for {silence:?}"
            )));
        }
        self.wire.push_bare(XID_PING, Op::Ping);
        Ok(())
    }
}

/// Serves one connection, and ends with it.
pub(crate) struct Driver {
    link: Link,
    submissions: mpsc::UnboundedReceiver<Submission>,
    events: ToEvents,
    shared: Arc<Shared>,
}

struct ToEvents(mpsc::UnboundedSender<Event>);

impl Observer for ToEvents {
    fn event(&mut self, event: Event) {
        // Nobody reads events once the receiver is dropped; that is allowed.
        drop(self.0.send(event));
    }

    fn reply(
        &mut self,
        _: &Waiting,
        _: ReplyHeader,
        result: Result<Reply, Error>,
    ) -> Result<Reply, Error> {
        result
    }
}

impl Driver {
    pub fn new(
        wire: Wire,
        submissions: mpsc::UnboundedReceiver<Submission>,
        events: mpsc::UnboundedSender<Event>,
        shared: Arc<Shared>,
    ) -> Self {
        Driver {
            link: Link::new(wire),
            submissions,
            events: ToEvents(events),
            shared,
        }
    }

    /// Runs until the connection ends, then tells everyone who waits.
    pub async fn run(mut self) {
        let served = self.link.serve(&mut self.submissions, &mut self.events);
        let error = match served.await {
            Ok(()) => Error::Closed,
            Err(_) if self.link.closing => Error::Closed,
            Err(error) => error,
        };
        debug!(session = self.link.wire.session().id, %error, "connection ended");
        *self.shared.end.lock() = error.clone();
        self.shared.state.send_replace(ConnectionState::Closed);
        self.submissions.close();
        for waiting in self.link.waiting.drain(..) {
            waiting.end(Err(error.clone()));
        }
        while let Some(submission) = self.submissions.recv().await {
            drop(submission.done.send(Err(error.clone())));
        }
    }
}

fn decode_event(header: ReplyHeader, body: &[u8]) -> Result<Event, Error> {
    let record = WatcherEvent::decode(&mut Reader::new(body))?;
    Ok(Event {
        kind: EventType::from_code(record.kind).ok_or(DecodeError::Malformed)?,
        path: record.path.unwrap_or_default().into_owned(),
        zxid: header.zxid,
    })
}

fn complete(
    waiting: &mut VecDeque<Waiting>,
    header: ReplyHeader,
    body: &[u8],
    observer: &mut impl Observer,
) -> Result<(), Error> {
    // Replies come in the order of requests; only those to auth may overtake.
    let position = match header.xid {
        XID_AUTH => waiting.iter().position(|w| w.xid == XID_AUTH),
        xid => waiting.front().filter(|w| w.xid == xid).map(|_| 0),
    };
    let Some(found) = position.and_then(|index| waiting.remove(index)) else {
        return Err(Error::UnexpectedReply {
            expected: waiting.front().map(|w| w.xid),
            found: header.xid,
        });
    };
    let result = if header.err == 0 {
        Ok(Reply {
            zxid: header.zxid,
            body: Bytes::copy_from_slice(body),
        })
    } else {
        Err(Error::Server {
            op: found.op,
            code: header.err,
        })
    };
    let result = observer.reply(&found, header, result);
    found.end(result);
    Ok(())
}
