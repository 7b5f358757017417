//! Kinds of watches as a set of bits.

use quenda_proto::event::WatcherType;

/// The kinds of watch that one connection has on one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WatchKinds(u8);

impl WatchKinds {
    /// None.
    pub const NONE: WatchKinds = WatchKinds(0);
    /// One-shot, for creation, deletion and data.
    pub const DATA: WatchKinds = WatchKinds(1);
    /// The part of a persistent watch that sees creation, deletion and data.
    pub const DATA_PERSISTENT: WatchKinds = WatchKinds(2);
    /// Persistent, for creation, deletion and data of the znode and all its descendants.
    pub const RECURSIVE: WatchKinds = WatchKinds(4);
    /// One-shot, for children and deletion.
    pub const CHILD: WatchKinds = WatchKinds(8);
    /// The part of a persistent watch that sees children.
    pub const CHILD_PERSISTENT: WatchKinds = WatchKinds(16);
    /// A persistent watch.
    pub const PERSISTENT: WatchKinds = WatchKinds(2 | 16);
    /// All kinds that see creation, deletion and data.
    pub const ANY_DATA: WatchKinds = WatchKinds(1 | 2 | 4);
    /// All kinds that see children.
    pub const ANY_CHILD: WatchKinds = WatchKinds(8 | 16);
    /// All kinds.
    pub const ANY: WatchKinds = WatchKinds(31);

    /// What checkWatches and removeWatches mean by a watcher type.
    pub const fn of(watcher: WatcherType) -> WatchKinds {
        match watcher {
            WatcherType::Children => WatchKinds::CHILD,
            WatcherType::Data => WatchKinds::DATA,
            WatcherType::Any => WatchKinds::ANY,
            WatcherType::Persistent => WatchKinds::PERSISTENT,
            WatcherType::PersistentRecursive => WatchKinds::RECURSIVE,
        }
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether both sets share a kind.
    pub const fn intersects(self, other: WatchKinds) -> bool {
        self.0 & other.0 != 0
    }

    /// Kinds in either set.
    #[must_use]
    pub const fn with(self, other: WatchKinds) -> WatchKinds {
        WatchKinds(self.0 | other.0)
    }

    /// Kinds in this set that are not in the other.
    #[must_use]
    pub const fn without(self, other: WatchKinds) -> WatchKinds {
        WatchKinds(self.0 & !other.0)
    }
}
