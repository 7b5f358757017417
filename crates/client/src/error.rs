//! What can go wrong, in words that say what to do about it.

use std::sync::Arc;
use std::time::Duration;

use quenda_proto::frame::FrameError;
use quenda_proto::{DecodeError, ErrorCode, Op};

/// Why a connection or a request failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The address cannot be resolved or connected to.
    #[error("cannot connect to {address}: {reason}")]
    Connect {
        /// Address as it was given.
        address: String,
        /// What the system says.
        reason: Arc<std::io::Error>,
    },
    /// The server did not finish the handshake in time.
    #[error("{address} did not answer the handshake within {after:?}")]
    HandshakeTimeout {
        /// Address as it was given.
        address: String,
        /// [`ConnectOptions::connect_timeout`](crate::ConnectOptions::connect_timeout).
        after: Duration,
    },
    /// The server closed the connection instead of answering the handshake.
    #[error(
        "{address} closed the connection during the handshake: it is not serving, leads and leaves clients to \
         others, has seen less than this client, {}", last_cause(*.tls)
    )]
    HandshakeClosed {
        /// Address as it was given.
        address: String,
        /// Whether it was spoken to by TLS.
        tls: bool,
    },
    /// The connection broke during the handshake.
    #[error("{address}: the connection broke during the handshake: {reason}")]
    HandshakeBroken {
        /// Address as it was given.
        address: String,
        /// What the system says.
        reason: String,
    },
    /// TLS was not agreed on.
    #[error("{address}: TLS failed: {reason}")]
    Tls {
        /// Address as it was given.
        address: String,
        /// Why, and what to do.
        reason: String,
    },
    /// The server's port is for TLS, which this client was not told to speak.
    #[error("{address} speaks TLS: connect with it (--tls), or name the server's port without it")]
    SpeaksTls {
        /// Address as it was given.
        address: String,
    },
    /// No server could be had in time.
    #[error("not connected{}: {reason}", within(*.after))]
    NotConnected {
        /// How long.
        after: Duration,
        /// The last failure.
        reason: String,
    },
    /// The server does not take the identity that this client wants to prove. The session is of no use any more.
    #[error("authentication failed: {0}")]
    AuthFailed(String),
    /// The session to resume is unknown, expired, or its password is wrong.
    #[error("session 0x{0:x} has expired")]
    SessionExpired(i64),
    /// The connection is gone. Whether requests without a reply took effect is unknown.
    #[error("connection lost: {0}")]
    ConnectionLost(String),
    /// The session was closed by this client.
    #[error("the session is closed")]
    Closed,
    /// The server answered with an error code; the numbers are those of the protocol.
    #[error("{} failed: {}", .op.name(), code_name(*.code))]
    Server {
        /// What was asked.
        op: Op,
        /// Code of the reply's header.
        code: i32,
    },
    /// The stream cannot be cut into frames.
    #[error("the server sent something that is no frame: {0}")]
    Frame(FrameError),
    /// A frame does not decode.
    #[error("the server sent a record that does not decode: {0}")]
    Decode(DecodeError),
    /// A reply that belongs to no request, or not to the oldest one.
    #[error("the server answered request {found} where {expected:?} was due")]
    UnexpectedReply {
        /// xid of the oldest request without a reply.
        expected: Option<i32>,
        /// xid of the reply.
        found: i32,
    },
    /// Reading or writing the socket failed.
    #[error("socket: {0}")]
    Io(Arc<std::io::Error>),
}

impl Error {
    /// Code of the server's reply, if that is what failed.
    pub fn code(&self) -> Option<i32> {
        match self {
            Error::Server { code, .. } => Some(*code),
            _ => None,
        }
    }
}

// The messages above tell the cause already; naming it as a source too would print it twice.

impl From<FrameError> for Error {
    fn from(error: FrameError) -> Self {
        Error::Frame(error)
    }
}

impl From<DecodeError> for Error {
    fn from(error: DecodeError) -> Self {
        Error::Decode(error)
    }
}

impl From<std::io::Error> for Error {
    fn from(source: std::io::Error) -> Self {
        Error::Io(Arc::new(source))
    }
}

/// A wait that was none is not worth a word.
fn within(after: Duration) -> String {
    match after.is_zero() {
        true => String::new(),
        false => format!(" within {after:?}"),
    }
}

fn last_cause(tls: bool) -> &'static str {
    match tls {
        true => "or has reached its limit of connections",
        false => "has reached its limit of connections, or speaks TLS only",
    }
}

/// Name and number of a code; numbers that are in no table stay numbers.
pub fn code_name(code: i32) -> String {
    match ErrorCode::from_code(code) {
        Some(known) => known.to_string(),
        None => format!("error {code}"),
    }
}
