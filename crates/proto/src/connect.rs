//! The handshake in its two forms: with and without the trailing read-only byte.

use bytes::BytesMut;

use crate::jute::{Decode, DecodeError, Encode, Reader};
use crate::records::{ConnectRequest, ConnectResponse};

/// Length of a session password in bytes.
pub const PASSWORD_LEN: usize = 16;

/// A decoded ConnectRequest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handshake<'a> {
    /// The fixed part.
    pub request: ConnectRequest<'a>,
    /// The optional last byte: whether the client accepts a read-only server. Clients before 3.4 omit it.
    pub read_only: Option<bool>,
}

impl<'a> Handshake<'a> {
    /// Decodes the first frame of a connection; further trailing bytes are ignored.
    pub fn decode(payload: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(payload);
        let request = ConnectRequest::decode(&mut reader)?;
        let read_only = match reader.rest() {
            [] => None,
            _ => Some(bool::decode(&mut reader)?),
        };
        Ok(Handshake { request, read_only })
    }

    /// Appends the payload (without its length) as a client sends it.
    pub fn encode(&self, out: &mut BytesMut) {
        self.request.encode(out);
        if let Some(read_only) = self.read_only {
            read_only.encode(out);
        }
    }
}

/// Appends the payload of a ConnectResponse; `read_only` is `None` for clients that did not send the byte.
pub fn encode_response(
    out: &mut BytesMut,
    session: i64,
    timeout_ms: i32,
    password: &[u8; PASSWORD_LEN],
    read_only: Option<bool>,
) {
    let response = ConnectResponse {
        protocol_version: 0,
        time_out: timeout_ms,
        session_id: session,
        passwd: Some(password),
    };
    response.encode(out);
    if let Some(read_only) = read_only {
        read_only.encode(out);
    }
}
