//! Why a server did not start, or had to stop; and what to do about it.

use std::io;
use std::path::PathBuf;

use quenda_consensus::ConfigError as RaftConfigError;
use quenda_frontend::MemberOutOfRange;
use quenda_node::EntryError;
use quenda_storage::{OpenError, StoreError};

use crate::core::CoreError;
use crate::sasl::SourceError;
use crate::tls::TlsError;

/// Why a server did not start, or had to stop.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The store could not be opened.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The checkpoint could not be read.
    #[error("the store cannot be read: {0}. Restore it from a backup, or empty the directory")]
    Load(StoreError),
    /// The client port could not be had.
    #[error("cannot listen on {address}: {cause}{}", remedy(.cause))]
    Listen {
        /// What was asked for.
        address: String,
        /// Why not.
        cause: io::Error,
    },
    /// The port for administration, which the configuration asks for, could not be had.
    #[error("administration over HTTP cannot listen on {address}: {cause}{}", admin_remedy(.cause))]
    Admin {
        /// What was asked for.
        address: String,
        /// Why not.
        cause: io::Error,
    },
    /// The port for the other members could not be had.
    #[error("cannot listen on {address} for the other members: {cause}{}", remedy(.cause))]
    ListenQuorum {
        /// What was asked for.
        address: String,
        /// Why not.
        cause: io::Error,
    },
    /// There is no TLS from the files that the configuration names.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The store is that of an ensemble's member, but the configuration names no members.
    #[error(
        "the store in {} belongs to an ensemble with {members} members, but the configuration has no server \
         lines, so this member cannot reach the others. Give it the lines of its ensemble (server.N, \
         --server); if the others are lost for good, see `quenda recover`", directory.display()
    )]
    Members {
        /// The data directory.
        directory: PathBuf,
        /// How many members there are.
        members: usize,
    },
    /// The ids of local sessions cannot be reserved.
    #[error(
        "the ids of local sessions (localSessionsEnabled) cannot be reserved in {}: {cause}. The file \
         local-session-ids there has to be readable and writable; without it, an id may be given out again", directory.display()
    )]
    LocalSessions {
        /// The data directory.
        directory: PathBuf,
        /// Why not.
        cause: io::Error,
    },
    /// The member's number cannot be used.
    #[error("myid: {0}")]
    Member(#[from] MemberOutOfRange),
    /// Raft does not take the configuration.
    #[error(transparent)]
    Raft(#[from] RaftConfigError),
    /// A committed entry cannot be read.
    #[error("{0}; the store is damaged or was written by a newer version")]
    Entry(#[from] EntryError),
    /// The store has lost what it had confirmed, while the server ran.
    #[error(transparent)]
    Lost(StoreError),
    /// The disk did not answer while the server stopped. Its threads wait there still, so the process can
    /// only be aborted.
    #[error("the disk does not answer; the server ends without it. Nothing acknowledged is lost")]
    Stuck,
    /// The audit log cannot be opened.
    #[error(
        "the audit log {} cannot be opened: {cause}. Give it another place with quenda.audit.file, or set \
         audit.enable=false", path.display()
    )]
    Audit {
        /// The file.
        path: PathBuf,
        /// Why not.
        cause: io::Error,
    },
    /// The file of SASL users was usable when the configuration was read, and is not any more.
    #[error("SASL users: {0}")]
    Users(#[from] SourceError),
    /// The system refused a thread, a signal handler or entropy.
    #[error("the system refused a resource: {0}")]
    System(#[from] io::Error),
}

impl From<CoreError> for ServeError {
    fn from(error: CoreError) -> ServeError {
        match error {
            CoreError::Entry(error) => ServeError::Entry(error),
            CoreError::Store(error) => ServeError::Lost(error),
        }
    }
}

/// What to do about a port that cannot be had.
fn remedy(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::AddrInUse => {
            ". Another process listens there: stop it, or choose another port (clientPort, --client-port; secureClientPort, --secure-client-port; metricsProvider.httpPort, metricsProvider.httpsPort; the quorum port is the first one in the own server line)"
        }
        io::ErrorKind::AddrNotAvailable => {
            ". It is no address of this machine (clientPortAddress, --client-address)"
        }
        io::ErrorKind::PermissionDenied => {
            ". Ports below 1024 need privileges: choose a higher one"
        }
        _ => "",
    }
}

/// What to do about a port for administration that cannot be had.
pub(crate) fn admin_remedy(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::AddrInUse => {
            ". Another process listens there: stop it, choose another port (admin.serverPort), or do without (admin.enableServer=false)"
        }
        io::ErrorKind::AddrNotAvailable => {
            ". It is no address of this machine (admin.serverAddress)"
        }
        io::ErrorKind::PermissionDenied => {
            ". Ports below 1024 need privileges: choose a higher one (admin.serverPort)"
        }
        _ => "",
    }
}
