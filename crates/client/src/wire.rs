//! One connection after its handshake: a socket and two buffers, driven by the caller.

use std::time::Duration;

use bytes::{Buf, BytesMut};
use quenda_proto::connect::{Handshake, PASSWORD_LEN};
use quenda_proto::frame::{self, OpenFrame};
use quenda_proto::records::{ConnectRequest, ConnectResponse, ReplyHeader, RequestHeader};
use quenda_proto::{Decode, Encode, Op, Reader};
use tokio::io::Interest;

use crate::socket::Socket;
use crate::{Error, Tls, tls};

/// How a server that speaks only TLS begins its answer to what is none.
const TLS_ALERT: [u8; 2] = [0x15, 3];

/// Room that is made for the first read from the socket, in bytes; thousands of idle connections stay small.
const READ_CHUNK_MIN: usize = 2 * 1024;
/// Room that is made for a read once replies have filled what was there, in bytes.
const READ_CHUNK_MAX: usize = 128 * 1024;

/// What is said of a connection that the server ends.
const CLOSED: &str = "the server closed the connection";

/// A session as the server granted it: all that is needed to resume it elsewhere.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Session {
    /// Its id.
    pub id: i64,
    /// Its password; who holds it can act as this session.
    pub password: [u8; PASSWORD_LEN],
    /// Negotiated timeout: silence that long ends the session.
    pub timeout: Duration,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("id", &format_args!("0x{:x}", self.id))
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// How to connect.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// Wanted session timeout; the server clamps it. Default 30 s.
    pub session_timeout: Duration,
    /// Bound of connecting and handshake together. Default 10 s.
    pub connect_timeout: Duration,
    /// Session to resume; `None` opens a new one.
    pub resume: Option<Session>,
    /// Highest zxid this client has seen: a server that is behind it refuses. Default 0.
    pub last_zxid_seen: i64,
    /// Whether a read-only server will do. `None` leaves the byte out, as clients before 3.4 do.
    pub read_only: Option<bool>,
    /// Largest reply accepted, in bytes. Servers bound requests, not replies. Default 256 MiB.
    pub max_frame: usize,
    /// TLS, if it is to be spoken. Default none.
    pub tls: Option<Tls>,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        ConnectOptions {
            session_timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(10),
            resume: None,
            last_zxid_seen: 0,
            read_only: Some(false),
            max_frame: 256 * 1024 * 1024,
            tls: None,
        }
    }
}

/// An established connection. Requests are appended to the output buffer, [`Wire::exchange`] moves
/// bytes, replies are read in place.
#[derive(Debug)]
pub struct Wire {
    socket: Socket,
    out: BytesMut,
    input: BytesMut,
    read_chunk: usize,
    session: Session,
    read_only: bool,
    max_frame: usize,
}

impl Wire {
    /// Connects to `address` (`host:port`) and opens or resumes a session.
    pub async fn connect(address: &str, options: &ConnectOptions) -> Result<Wire, Error> {
        let limit = options.connect_timeout;
        match tokio::time::timeout(limit, Wire::handshake(address, options)).await {
            Ok(result) => result,
            Err(_) => Err(Error::HandshakeTimeout {
                address: address.to_owned(),
                after: limit,
            }),
        }
    }

    async fn handshake(address: &str, options: &ConnectOptions) -> Result<Wire, Error> {
        let socket = Socket::connect(address, options.tls.as_ref()).await?;
        let mut wire = Wire {
            socket,
            out: BytesMut::new(),
            input: BytesMut::new(),
            read_chunk: READ_CHUNK_MIN,
            session: Session {
                id: 0,
                password: [0; PASSWORD_LEN],
                timeout: Duration::ZERO,
            },
            read_only: false,
            max_frame: options.max_frame,
        };
        wire.push_connect(options);
        loop {
            let result = wire.exchange().await;
            if !wire.socket.is_tls() && wire.input.starts_with(&TLS_ALERT) {
                return Err(Error::SpeaksTls {
                    address: address.to_owned(),
                });
            }
            result.map_err(|error| handshake_error(error, address, options.tls.is_some()))?;
            if wire.take_connect_response(options)? {
                return Ok(wire);
            }
        }
    }

    fn push_connect(&mut self, options: &ConnectOptions) {
        let (id, password) = options
            .resume
            .map_or((0, [0; PASSWORD_LEN]), |s| (s.id, s.password));
        let millis = i32::try_from(options.session_timeout.as_millis()).unwrap_or(i32::MAX);
        let frame = OpenFrame::start(&mut self.out);
        let handshake = Handshake {
            request: ConnectRequest {
                protocol_version: 0,
                last_zxid_seen: options.last_zxid_seen,
                time_out: millis,
                session_id: id,
                passwd: Some(&password),
            },
            read_only: options.read_only,
        };
        handshake.encode(&mut self.out);
        frame.finish(&mut self.out);
    }

    /// Whether the response was complete.
    fn take_connect_response(&mut self, options: &ConnectOptions) -> Result<bool, Error> {
        let Some((payload, _)) = frame::split(&self.input, self.max_frame)? else {
            return Ok(false);
        };
        let mut reader = Reader::new(payload);
        let response = ConnectResponse::decode(&mut reader)?;
        let read_only = reader.rest().first().is_some_and(|byte| *byte != 0);
        if response.session_id == 0 || response.time_out <= 0 {
            return Err(Error::SessionExpired(
                options.resume.map_or(0, |session| session.id),
            ));
        }
        let password = response
            .passwd
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or(quenda_proto::DecodeError::Malformed)?;
        self.session = Session {
            id: response.session_id,
            password,
            timeout: Duration::from_millis(response.time_out.unsigned_abs().into()),
        };
        let consumed = 4 + payload.len();
        self.input.advance(consumed);
        self.read_only = read_only;
        Ok(true)
    }

    /// Whether the server has no quorum and takes no writes.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// The session of this connection.
    pub fn session(&self) -> Session {
        self.session
    }

    /// Bytes that wait to be sent; whole frames may be appended.
    pub fn output(&mut self) -> &mut BytesMut {
        &mut self.out
    }

    /// Appends a request.
    pub fn push<T: Encode>(&mut self, xid: i32, op: Op, record: &T) {
        let frame = self.push_header(xid, op);
        record.encode(&mut self.out);
        frame.finish(&mut self.out);
    }

    /// Appends a request that has no record: ping, closeSession, whoAmI.
    pub fn push_bare(&mut self, xid: i32, op: Op) {
        self.push_header(xid, op).finish(&mut self.out);
    }

    /// Appends a request whose record is already encoded.
    pub fn push_raw(&mut self, xid: i32, op: Op, record: &[u8]) {
        let frame = self.push_header(xid, op);
        self.out.extend_from_slice(record);
        frame.finish(&mut self.out);
    }

    fn push_header(&mut self, xid: i32, op: Op) -> OpenFrame {
        let frame = OpenFrame::start(&mut self.out);
        let header = RequestHeader {
            xid,
            kind: op.code(),
        };
        header.encode(&mut self.out);
        frame
    }

    /// Writes what the socket takes of the output, without waiting.
    pub fn flush_now(&mut self) -> Result<(), Error> {
        self.flush().map(|_| ())
    }

    fn flush(&mut self) -> Result<bool, Error> {
        self.socket
            .flush(&mut self.out)
            .map_err(|error| lost(&error))
    }

    /// Waits until the socket can move bytes in a direction that is wanted, and moves them: sends the
    /// output, reads what has arrived. Nothing is lost when the future is dropped.
    ///
    /// # Errors
    /// [`Error::ConnectionLost`] when the peer has closed or the socket fails.
    pub async fn exchange(&mut self) -> Result<(), Error> {
        let interest = match self.flush()? {
            false => Interest::READABLE,
            true => Interest::READABLE | Interest::WRITABLE,
        };
        let ready = self.socket.ready(interest).await?;
        if ready.is_writable() {
            self.flush_now()?;
        }
        if ready.is_readable() {
            self.read_now()?;
        }
        Ok(())
    }

    fn read_now(&mut self) -> Result<(), Error> {
        self.input.reserve(self.read_chunk);
        let room = self.input.capacity() - self.input.len();
        match self.socket.try_read_buf(&mut self.input) {
            Ok(0) => Err(Error::ConnectionLost(CLOSED.to_owned())),
            Ok(count) => {
                if count == room {
                    self.read_chunk = (self.read_chunk * 2).min(READ_CHUNK_MAX);
                }
                Ok(())
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(lost(&error)),
        }
    }

    /// Hands every complete frame that has arrived to `each`: its header and what follows. Stops at
    /// the first error, its own or the closure's.
    pub fn drain<E: From<Error>>(
        &mut self,
        mut each: impl FnMut(ReplyHeader, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut consumed = 0;
        let result = loop {
            match frame::split(&self.input[consumed..], self.max_frame) {
                Ok(Some((payload, _))) => {
                    consumed += 4 + payload.len();
                    let mut reader = Reader::new(payload);
                    let outcome = match ReplyHeader::decode(&mut reader) {
                        Ok(header) => each(header, reader.rest()),
                        Err(error) => Err(Error::from(error).into()),
                    };
                    if outcome.is_err() {
                        break outcome;
                    }
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(Error::from(error).into()),
            }
        };
        self.input.advance(consumed);
        result
    }
}

fn lost(error: &std::io::Error) -> Error {
    Error::ConnectionLost(tls::reason(error))
}

fn handshake_error(error: Error, address: &str, tls: bool) -> Error {
    match error {
        Error::ConnectionLost(reason) if reason == CLOSED => Error::HandshakeClosed {
            address: address.to_owned(),
            tls,
        },
        Error::ConnectionLost(reason) => Error::HandshakeBroken {
            address: address.to_owned(),
            reason,
        },
        other => other,
    }
}
