//! Every bound of this crate: unit, default, and what happens when it is reached.

use quenda_proto::frame::MAX_FRAME_DEFAULT;

/// Longer than that between two looks at who of the local sessions is silent, in milliseconds: the member heard
/// or served nobody meanwhile, and every session gets its whole timeout.
pub(crate) const LOCAL_PAUSE_MS: u64 = 1_000;

/// Bounds of one connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Longest inbound frame in bytes, inclusive (`jute.maxbuffer`). A longer one closes the connection
    /// before any of it is stored. Default 1 048 575.
    pub frame_max: usize,
    /// Requests that wait for an answer. At the bound nothing more is read from the socket until some
    /// are answered. Default 1 000.
    pub pending_max: usize,
    /// Bytes of the frames of such requests. At the bound nothing more is read from the socket until
    /// some are answered; one frame may exceed it. Default 1 MiB.
    pub pending_bytes_max: usize,
    /// Bytes of the replies to reads that wait behind a write in flight, estimated when they are read. At
    /// the bound nothing more is read from the socket until some are answered; one reply may exceed it.
    /// Default 16 MiB.
    pub pending_reply_bytes_max: usize,
    /// Bytes of output that the socket has not taken. At the bound no further read is served, unless one
    /// of the session's own writes is in flight behind it. Default 1 MiB.
    pub output_pause: usize,
    /// Bytes of output that the socket has not taken. Above the bound the connection is closed and its
    /// output dropped: the client does not read its events. Default 64 MiB.
    pub output_max: usize,
    /// Znode paths that one connection watches. At the bound a request for another watch is answered
    /// with SystemError. Default 1 048 576.
    pub watched_paths_max: usize,
    /// Identities of one connection, the address included. At the bound auth packets are answered with
    /// AuthFailed and the connection is closed. Default 64.
    pub identities_max: usize,
    /// Bytes of all identities of one connection, because each write carries them into the log. At the
    /// bound as for `identities_max`. Default 16 KiB.
    pub identity_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            frame_max: MAX_FRAME_DEFAULT,
            pending_max: 1_000,
            pending_bytes_max: 1 << 20,
            pending_reply_bytes_max: 16 << 20,
            output_pause: 1 << 20,
            output_max: 64 << 20,
            watched_paths_max: 1 << 20,
            identities_max: 64,
            identity_bytes_max: 16 << 10,
        }
    }
}
