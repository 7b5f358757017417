//! What the log holds: requests plus stamped facts, never a verdict.
//!
//! One entry of the raft log is a *batch*: a version byte, the leader's wall time, and commands one
//! behind the other, each with its length. Members encode their commands themselves; the leader only
//! joins them and stamps the time.

mod codec;

use quenda_proto::connect::PASSWORD_LEN;

pub use codec::{Batch, decode_first, first_origin, is_reconfig, set_reconfig_facts, start_batch};

use crate::identity::Identity;

/// Version of the batch layout that is written.
pub const BATCH_VERSION: u8 = 2;
/// Oldest version of the batch layout that is read: there, [`Command::Found`] never has a configuration.
pub const BATCH_VERSION_MIN: u8 = 1;
/// Bytes in front of the first command of a batch.
pub const BATCH_HEADER_LEN: usize = 9;

/// Where the answer to a command is awaited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Origin {
    /// Member that took the request, 0 for none.
    pub member: u64,
    /// Connection on that member, unique over its restarts; 0 when nobody waits.
    pub connection: u64,
}

/// Facts that every command of an entry shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Raft term of the entry; gives the epoch of the zxid.
    pub term: u64,
    /// Wall time of the leader when it appended the entry, milliseconds since 1970.
    pub time_ms: i64,
}

/// One replicated change of the tree or of the sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command<'a> {
    /// A write of a session.
    Request(Request<'a>),
    /// Open a session. The id was chosen by the origin.
    OpenSession {
        /// Who waits.
        origin: Origin,
        /// The new session's id.
        session: i64,
        /// Negotiated timeout in milliseconds.
        timeout_ms: i32,
    },
    /// Resume a session on a new connection; takes no zxid.
    ResumeSession {
        /// Who waits.
        origin: Origin,
        /// The session's id.
        session: i64,
        /// Negotiated timeout in milliseconds.
        timeout_ms: i32,
        /// What the client presented; checked at apply.
        password: [u8; PASSWORD_LEN],
    },
    /// End a session that was silent for its whole timeout.
    ExpireSession {
        /// The session's id.
        session: i64,
        /// Its generation when it was found silent: a resume that comes first in the log saves it.
        generation: u64,
    },
    /// Remove a container or TTL znode if it still qualifies.
    Reap {
        /// Path of the znode.
        path: &'a str,
        /// How long a container that never had a child may live, in milliseconds; 0 for ever.
        never_used_ms: i64,
    },
    /// First entry of a cluster: its identity and the secret that keys session passwords. Ignored when
    /// the cluster has one already.
    Found {
        /// Random id of the cluster.
        cluster: u64,
        /// Random secret.
        secret: [u8; 32],
        /// The members, as [`Ensemble::lines`](crate::ensemble::Ensemble::lines) writes them; empty for
        /// a member that stays alone.
        config: &'a str,
    },
    /// Change the members. Has its own tag because the leader adds what only it knows.
    Reconfig {
        /// The reconfig request of a session.
        request: Request<'a>,
        /// Stamped by the leader, see [`set_reconfig_facts`].
        facts: ReconfigFacts,
    },
    /// A majority is lost for ever, and an operator lets this member go on without it: another cluster
    /// id, so that the lost members are not taken back, and zxids that they cannot have used.
    Recover {
        /// Random id of the cluster that goes on.
        cluster: u64,
        /// The members that are left, as in [`Command::Found`].
        config: &'a str,
    },
    /// Keep a piece of a snapshot that is to be restored.
    AddPiece {
        /// Who waits.
        origin: Origin,
        /// Random number of the restore.
        restore: u64,
        /// Number of the piece, from 0; they come in order.
        number: u32,
        /// The piece.
        bytes: &'a [u8],
    },
    /// Forget the pieces of a restore that is not to be.
    DropPieces {
        /// Who waits.
        origin: Origin,
        /// The restore.
        restore: u64,
    },
    /// Put the snapshot that the pieces make up in the place of the state.
    Restore {
        /// Who waits.
        origin: Origin,
        /// The restore. Once it is done it is not done again.
        restore: u64,
        /// Number, bytes and checksum of the pieces, see [`PieceSum`](crate::PieceSum).
        sum: (u32, u64, u64),
    },
}

/// What the leader knows about a reconfiguration when it puts it into the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReconfigFacts {
    /// Another one is not finished.
    pub in_progress: bool,
    /// A majority of the voters that are asked for is connected and holds the leader's log.
    pub quorum_synced: bool,
}

/// A write as its client sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request<'a> {
    /// Who waits.
    pub origin: Origin,
    /// Session of the connection.
    pub session: i64,
    /// Generation of the session's connection; an older one has moved. Of a local session, see
    /// [`Tree::local_generation`](crate::Tree::local_generation).
    pub generation: u64,
    /// The session is one that only its member knows: the state cannot tell whether it exists, and no
    /// ephemeral znode is created for it.
    pub local: bool,
    /// Switches of the member that took the request.
    pub switches: Switches,
    /// What the connection had proved when the request was read.
    pub identities: Vec<Identity>,
    /// Operation code; always one of kind write.
    pub op: i32,
    /// The request record, undecoded.
    pub body: &'a [u8],
}

/// Configuration of the origin that the verdict depends on, stamped so that all members agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Switches {
    /// Permissions are not checked (`skipACL`).
    pub skip_acl: bool,
    /// Hard quotas are enforced (`enforceQuota`).
    pub enforce_quota: bool,
    /// The members may be changed (`reconfigEnabled`).
    pub reconfig_enabled: bool,
    /// An ensemble may not shrink to one voter: a single member is not an ensemble
    /// (`standaloneEnabled`).
    pub standalone_enabled: bool,
    /// Access lists may name subjects of certificates (the scheme `x509`).
    pub x509: bool,
    /// Access lists may name identities of SASL users (the scheme `sasl`).
    pub sasl: bool,
    /// Access lists may not name digests: there is no scheme `digest` (`DigestAuthenticationProvider.enabled`).
    pub without_digest: bool,
    /// Znodes with a time to live are not created (`extendedTypesEnabled=false`).
    pub without_ttl: bool,
}

/// A log entry that does not hold what it should. Only a damaged store or a newer member can cause it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// The layout is of another version.
    #[error("log entry of layout {0}, this version reads up to {BATCH_VERSION}")]
    Version(u8),
    /// The bytes end inside a command.
    #[error("log entry ends inside a command")]
    Truncated,
    /// A tag or text is not valid.
    #[error("log entry holds an unknown command")]
    Unknown,
}
