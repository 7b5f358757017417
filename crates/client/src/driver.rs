//! The task that owns a connection: sends what handles ask for, matches replies, delivers events.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use quenda_proto::event::EventType;
use quenda_proto::records::{ReplyHeader, WatcherEvent};
use quenda_proto::{Decode, DecodeError, Op, Reader, XID_AUTH, XID_EVENT, XID_PING};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tracing::debug;

use crate::client::Reply;
use crate::{Error, Wire};

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
    pub done: oneshot::Sender<Result<Reply, Error>>,
}

struct Waiting {
    xid: i32,
    op: Op,
    done: oneshot::Sender<Result<Reply, Error>>,
}

pub(crate) struct Driver {
    wire: Wire,
    submissions: mpsc::UnboundedReceiver<Submission>,
    events: mpsc::UnboundedSender<Event>,
    waiting: VecDeque<Waiting>,
    next_xid: i32,
    last_heard: Instant,
    closing: bool,
}

impl Driver {
    pub fn new(
        wire: Wire,
        submissions: mpsc::UnboundedReceiver<Submission>,
        events: mpsc::UnboundedSender<Event>,
    ) -> Self {
        Driver {
            wire,
            submissions,
            events,
            waiting: VecDeque::new(),
            next_xid: 1,
            last_heard: Instant::now(),
            closing: false,
        }
    }

    /// Runs until the connection ends, then tells everyone who waits.
    pub async fn run(mut self) {
        let error = match self.serve().await {
            Ok(()) => Error::Closed,
            Err(_) if self.closing => Error::Closed,
            Err(error) => error,
        };
        debug!(session = self.wire.session().id, %error, "connection ended");
        self.submissions.close();
        for waiting in self.waiting.drain(..) {
            // The waiter may have lost interest.
            drop(waiting.done.send(Err(error.clone())));
        }
        while let Some(submission) = self.submissions.recv().await {
            drop(submission.done.send(Err(error.clone())));
        }
    }

    async fn serve(&mut self) -> Result<(), Error> {
        let timeout = self.wire.session().timeout;
        let mut pings = tokio::time::interval(timeout / 3);
        pings.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            tokio::select! {
                count = self.submissions.recv_many(&mut batch, BATCH) => {
                    if count == 0 {
                        return Ok(());
                    }
                    for submission in batch.drain(..) {
                        self.send(submission);
                    }
                }
                result = self.wire.exchange() => {
                    result?;
                    self.receive()?;
                }
                _ = pings.tick() => self.keep_alive(timeout)?,
            }
        }
    }

    fn send(&mut self, submission: Submission) {
        let Submission { op, record, done } = submission;
        let xid = match op {
            Op::Auth => XID_AUTH,
            _ => self.take_xid(),
        };
        self.closing |= op == Op::CloseSession;
        self.wire.push_raw(xid, op, &record);
        self.waiting.push_back(Waiting { xid, op, done });
    }

    /// Positive xids only: the others have meanings of their own.
    fn take_xid(&mut self) -> i32 {
        let xid = self.next_xid;
        self.next_xid = self.next_xid.checked_add(1).unwrap_or(1);
        xid
    }

    fn receive(&mut self) -> Result<(), Error> {
        self.last_heard = Instant::now();
        let Driver {
            wire,
            events,
            waiting,
            ..
        } = self;
        wire.drain(|header, body| match header.xid {
            XID_PING => Ok(()),
            XID_EVENT => deliver(events, header, body),
            _ => complete(waiting, header, body),
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

fn deliver(
    events: &mpsc::UnboundedSender<Event>,
    header: ReplyHeader,
    body: &[u8],
) -> Result<(), Error> {
    let record = WatcherEvent::decode(&mut Reader::new(body))?;
    let kind = EventType::from_code(record.kind).ok_or(DecodeError::Malformed)?;
    let event = Event {
        kind,
        path: record.path.unwrap_or_default().into_owned(),
        zxid: header.zxid,
    };
    // Nobody reads events once the receiver is dropped; that is allowed.
    drop(events.send(event));
    Ok(())
}

fn complete(
    waiting: &mut VecDeque<Waiting>,
    header: ReplyHeader,
    body: &[u8],
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
    // The waiter may have lost interest.
    drop(found.done.send(result));
    Ok(())
}
