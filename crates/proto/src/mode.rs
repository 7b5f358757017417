//! Create modes.

/// What the flags of a create ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum CreateMode {
    /// Stays until deleted.
    Persistent = 0,
    /// Lives as long as its session.
    Ephemeral = 1,
    /// Persistent, with a sequence suffix.
    PersistentSequential = 2,
    /// Ephemeral, with a sequence suffix.
    EphemeralSequential = 3,
    /// Removed by the server some time after its last child.
    Container = 4,
    /// Removed by the server when unchanged and childless for its time to live.
    PersistentTtl = 5,
    /// The same, with a sequence suffix.
    PersistentSequentialTtl = 6,
}

/// Longest time to live in milliseconds, inclusive.
pub const TTL_MAX_MS: i64 = (1 << 40) - 1;

impl CreateMode {
    /// From the flags on the wire.
    pub const fn from_flags(flags: i32) -> Option<CreateMode> {
        match flags {
            0 => Some(CreateMode::Persistent),
            1 => Some(CreateMode::Ephemeral),
            2 => Some(CreateMode::PersistentSequential),
            3 => Some(CreateMode::EphemeralSequential),
            4 => Some(CreateMode::Container),
            5 => Some(CreateMode::PersistentTtl),
            6 => Some(CreateMode::PersistentSequentialTtl),
            _ => None,
        }
    }

    /// Whether the name gets a sequence suffix.
    pub const fn is_sequential(self) -> bool {
        matches!(
            self,
            CreateMode::PersistentSequential
                | CreateMode::EphemeralSequential
                | CreateMode::PersistentSequentialTtl
        )
    }

    /// Whether the znode belongs to the session.
    pub const fn is_ephemeral(self) -> bool {
        matches!(
            self,
            CreateMode::Ephemeral | CreateMode::EphemeralSequential
        )
    }

    /// Whether the znode has a time to live.
    pub const fn is_ttl(self) -> bool {
        matches!(
            self,
            CreateMode::PersistentTtl | CreateMode::PersistentSequentialTtl
        )
    }
}
