//! Who holds a lock and who waits, by the names of its znodes: the layouts of the libraries that people use.

use std::cmp::Ordering;

use super::sequence::sequence;

/// What one contender wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Want {
    /// To be alone.
    Exclusive,
    /// To be with others of the same kind only.
    Shared,
    /// One of several leases. Who has the znode has the lease.
    Lease,
}

/// A name that belongs to a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contender {
    /// Name of the znode.
    pub name: String,
    /// Its place in the queue.
    pub sequence: i64,
    /// What it wants.
    pub want: Want,
    /// Whose layout it is.
    pub layout: Layout,
}

/// Whose layout, and of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layout {
    /// kazoo's Lock, Election, and both sides of its ReadLock and WriteLock.
    KazooLock,
    /// kazoo's Semaphore: the leases.
    KazooSemaphore,
    /// kazoo's Semaphore: those who want one.
    KazooSemaphoreQueue,
    /// Curator's InterProcessMutex and LeaderSelector; Go's Lock.
    CuratorMutex,
    /// Curator's InterProcessReadWriteLock.
    CuratorReadWriteLock,
    /// Curator's LeaderLatch.
    CuratorLeaderLatch,
    /// Curator's InterProcessSemaphoreV2 and InterProcessSemaphoreMutex: the leases.
    CuratorSemaphore,
    /// The same: those who want one.
    CuratorSemaphoreQueue,
    /// The recipe of ZooKeeper's documentation: `lock-N`, `guid-lock-N`, `read-N`, `write-N`; its WriteLock `x-session-N`.
    RecipeLock,
    /// Leader elections of the recipe: `n_N`, with the session in front at Solr's.
    RecipeElection,
    /// One ephemeral znode of a known name: who has made it has the lock.
    Plain,
    /// Sequential ephemeral znodes of an unknown library, in order.
    Unknown,
}

impl Layout {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Layout::KazooLock => "kazoo lock",
            Layout::KazooSemaphore => "kazoo semaphore",
            Layout::KazooSemaphoreQueue => "kazoo semaphore, queue for a lease",
            Layout::CuratorMutex => "Curator mutex",
            Layout::CuratorReadWriteLock => "Curator read-write lock",
            Layout::CuratorLeaderLatch => "Curator leader latch",
            Layout::CuratorSemaphore => "Curator semaphore",
            Layout::CuratorSemaphoreQueue => "Curator semaphore, queue for a lease",
            Layout::RecipeLock => "lock",
            Layout::RecipeElection => "election",
            Layout::Plain => "ephemeral znode",
            Layout::Unknown => "ephemeral sequence",
        }
    }

    /// Whether its znodes are sure to be a lock's even if they are not ephemeral.
    pub fn is_certain(self) -> bool {
        !matches!(
            self,
            Layout::RecipeLock | Layout::RecipeElection | Layout::Plain | Layout::Unknown
        )
    }
}

/// Names that single ephemeral znodes have which are locks.
const PLAIN_NAMES: &[&str] = &[
    "lock",
    "leader",
    "master",
    "controller",
    "active",
    "primary",
];

/// The locks that some children of a znode are; others among them are none. `unknown` asks for sequences of unknown libraries
/// too.
pub fn recognise(parent: &str, children: &[String], unknown: bool) -> Vec<Contender> {
    let parent_name = parent.rsplit('/').next().unwrap_or_default();
    let semaphore = !children.is_empty() && children.iter().all(|name| is_hex(name, 32));
    let mut contenders: Vec<Contender> = children
        .iter()
        .filter_map(|name| {
            if semaphore {
                return Some(lease(name, Layout::KazooSemaphore));
            }
            contender(name, unknown).or_else(|| plain(name))
        })
        .collect();
    for contender in &mut contenders {
        match contender.layout {
            Layout::KazooLock if parent_name.ends_with("-__lock__") => {
                contender.layout = Layout::KazooSemaphoreQueue;
            }
            Layout::CuratorMutex if parent_name == "locks" => {
                contender.layout = Layout::CuratorSemaphoreQueue;
            }
            _ => {}
        }
    }
    contenders
}

fn lease(name: &str, layout: Layout) -> Contender {
    Contender {
        name: name.to_owned(),
        sequence: sequence(name).map_or(0, |(_, number)| number),
        want: Want::Lease,
        layout,
    }
}

fn plain(name: &str) -> Option<Contender> {
    let lower = name.to_ascii_lowercase();
    let known = PLAIN_NAMES.iter().any(|word| lower.contains(word));
    known.then(|| Contender {
        name: name.to_owned(),
        sequence: 0,
        want: Want::Exclusive,
        layout: Layout::Plain,
    })
}

fn contender(name: &str, unknown: bool) -> Option<Contender> {
    let (place, number) = sequence(name)?;
    let prefix = &name[..place];
    let (layout, want) =
        kind(prefix).or_else(|| unknown.then_some((Layout::Unknown, Want::Exclusive)))?;
    Some(Contender {
        name: name.to_owned(),
        sequence: number,
        want,
        layout,
    })
}

/// By what stands in front of the number.
fn kind(prefix: &str) -> Option<(Layout, Want)> {
    use Want::{Exclusive, Lease, Shared};
    let ends = |end: &str| prefix.ends_with(end);
    let kind = if ends("__rlock__") {
        (Layout::KazooLock, Shared)
    } else if ends("__lock__") {
        (Layout::KazooLock, Exclusive)
    } else if ends("__READ__") {
        (Layout::CuratorReadWriteLock, Shared)
    } else if ends("__WRIT__") {
        (Layout::CuratorReadWriteLock, Exclusive)
    } else if prefix.starts_with("_c_") && ends("-lock-") {
        (Layout::CuratorMutex, Exclusive)
    } else if ends("latch-") {
        (Layout::CuratorLeaderLatch, Exclusive)
    } else if ends("lease-") {
        (Layout::CuratorSemaphore, Lease)
    } else if ends("read-") || ends("READ-") {
        (Layout::RecipeLock, Shared)
    } else if ["lock-", "LOCK-", "lock_", "write-", "WRITE-"]
        .iter()
        .any(|end| ends(end))
        || is_write_lock(prefix)
    {
        (Layout::RecipeLock, Exclusive)
    } else if prefix == "n_" || ends("-n_") || ends("_n_") {
        (Layout::RecipeElection, Exclusive)
    } else {
        return None;
    };
    Some(kind)
}

/// `x-SESSION-`, as the WriteLock of ZooKeeper's recipes has it.
fn is_write_lock(prefix: &str) -> bool {
    let session = prefix
        .strip_prefix("x-")
        .and_then(|rest| rest.strip_suffix('-'));
    session.is_some_and(|session| {
        !session.is_empty()
            && session
                .bytes()
                .all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
    })
}

fn is_hex(name: &str, length: usize) -> bool {
    name.len() == length && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// In the order in which they come to hold the lock. Curator gives the reader that its writer becomes the same number.
pub fn order(one: &Contender, other: &Contender) -> Ordering {
    one.sequence
        .cmp(&other.sequence)
        .then_with(|| (one.want == Want::Shared).cmp(&(other.want == Want::Shared)))
        .then_with(|| one.name.cmp(&other.name))
}

/// How many of those in order hold the lock. `owners` are their sessions.
pub fn holders(contenders: &[(Contender, i64)]) -> Vec<bool> {
    let queue = contenders.iter().any(|(contender, _)| {
        matches!(
            contender.layout,
            Layout::KazooSemaphoreQueue | Layout::CuratorSemaphoreQueue
        )
    });
    // Whether all so far share it, and who holds it alone if not.
    let mut shared = true;
    let mut alone = None;
    contenders
        .iter()
        .enumerate()
        .map(|(place, (contender, owner))| match contender.want {
            _ if queue => false,
            Want::Lease => true,
            Want::Exclusive => {
                shared = false;
                let first = place == 0;
                if first {
                    alone = Some(*owner);
                }
                first
            }
            // Curator's writer may read.
            Want::Shared => {
                let writes = contender.layout == Layout::CuratorReadWriteLock
                    && place == 1
                    && alone == Some(*owner);
                shared || writes
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "7ef6b3a2-0f10-4c6e-9d2b-0a4a1b2c3d4e";
    const HEX: &str = "7ef6b3a20f104c6e9d2b0a4a1b2c3d4e";

    fn recognised(parent: &str, names: &[&str]) -> Vec<(Layout, Want, i64)> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let found = recognise(parent, &names, false);
        found
            .iter()
            .map(|one| (one.layout, one.want, one.sequence))
            .collect()
    }

    fn one(parent: &str, name: &str) -> (Layout, Want, i64) {
        let found = recognised(parent, &[name]);
        assert_eq!(found.len(), 1, "{name}");
        found[0]
    }

    #[test]
    fn layouts_are_told_by_names() {
        use Want::{Exclusive, Lease, Shared};
        let cases = [
            (
                format!("{HEX}__lock__0000000003"),
                Layout::KazooLock,
                Exclusive,
            ),
            (
                format!("{HEX}__rlock__0000000003"),
                Layout::KazooLock,
                Shared,
            ),
            (
                format!("_c_{UUID}-lock-0000000003"),
                Layout::CuratorMutex,
                Exclusive,
            ),
            (
                format!("_c_{HEX}-lock-0000000003"),
                Layout::CuratorMutex,
                Exclusive,
            ),
            (
                format!("_c_{UUID}-latch-0000000003"),
                Layout::CuratorLeaderLatch,
                Exclusive,
            ),
            (
                format!("_c_{UUID}-lease-0000000003"),
                Layout::CuratorSemaphore,
                Lease,
            ),
            (
                format!("_c_{UUID}-__READ__0000000003"),
                Layout::CuratorReadWriteLock,
                Shared,
            ),
            (
                format!("_c_{UUID}-__WRIT__0000000003"),
                Layout::CuratorReadWriteLock,
                Exclusive,
            ),
            ("lock-0000000003".to_owned(), Layout::RecipeLock, Exclusive),
            ("read-0000000003".to_owned(), Layout::RecipeLock, Shared),
            ("write-0000000003".to_owned(), Layout::RecipeLock, Exclusive),
            (
                "x-72057594037927936-0000000003".to_owned(),
                Layout::RecipeLock,
                Exclusive,
            ),
            ("n_0000000003".to_owned(), Layout::RecipeElection, Exclusive),
            (
                "72057-core_node2-n_0000000003".to_owned(),
                Layout::RecipeElection,
                Exclusive,
            ),
        ];
        for (name, layout, want) in cases {
            assert_eq!(one("/app/lock", &name), (layout, want, 3), "{name}");
        }
        assert_eq!(one("/brokers", "controller").0, Layout::Plain);
        assert_eq!(one("/pool", HEX).0, Layout::KazooSemaphore);
        let queue = format!("{HEX}__lock__0000000003");
        assert_eq!(one("/pool-__lock__", &queue).0, Layout::KazooSemaphoreQueue);
        let queue = format!("_c_{UUID}-lock-0000000003");
        assert_eq!(one("/pool/locks", &queue).0, Layout::CuratorSemaphoreQueue);
        for name in [
            "0000000003",
            "server-0000000003",
            "workers",
            "task-12",
            HEX.split_at(31).0,
        ] {
            assert_eq!(recognised("/app", &[name]), [], "{name}");
        }
        let all = recognise("/app", &["server-0000000003".to_owned()], true);
        assert_eq!(all[0].layout, Layout::Unknown);
    }

    fn held(names: &[(&str, i64)]) -> Vec<bool> {
        let contenders: Vec<_> = names
            .iter()
            .map(|(name, owner)| (contender(name, false).expect("a contender"), *owner))
            .collect();
        holders(&contenders)
    }

    #[test]
    fn the_first_holds_it_and_readers_share() {
        assert_eq!(
            held(&[("lock-0000000001", 1), ("lock-0000000002", 2)]),
            [true, false]
        );
        let readers = [
            ("read-0000000001", 1),
            ("read-0000000002", 2),
            ("write-0000000003", 3),
            ("read-0000000004", 4),
        ];
        assert_eq!(held(&readers), [true, true, false, false]);
        let writer = [("write-0000000001", 1), ("read-0000000002", 2)];
        assert_eq!(held(&writer), [true, false]);
        let downgrade = [
            ("__WRIT__0000000001", 1),
            ("__READ__0000000002", 1),
            ("__READ__0000000003", 2),
        ];
        assert_eq!(held(&downgrade), [true, true, false]);
        let twins = ["a-__READ__0000000001", "b-__WRIT__0000000001"];
        let mut twins = twins.map(|name| contender(name, false).expect("a contender"));
        twins.sort_by(order);
        assert_eq!(twins[0].want, Want::Exclusive);
        assert_eq!(
            held(&[("lease-0000000001", 1), ("lease-0000000009", 2)]),
            [true, true]
        );
    }
}
