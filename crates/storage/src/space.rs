use std::io;
use std::path::Path;

use crate::limits::{GROWTH_RESERVE_BYTES, GROWTH_RESERVE_FRACTION};

/// How much room a file system has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Bytes that this process may still use.
    pub free_bytes: u64,
    /// Size of the file system.
    pub total_bytes: u64,
}

/// What may be accepted with the room that is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpaceLevel {
    /// Deletes and session upkeep; nothing that makes the state grow.
    Reserved,
    /// Everything.
    Ample,
}

impl Space {
    /// Asks the file system that holds `path`.
    ///
    /// # Errors
    /// The system's own.
    pub fn of(path: &Path) -> io::Result<Space> {
        let stat = rustix::fs::statvfs(path)?;
        Ok(Space {
            free_bytes: stat.f_bavail.saturating_mul(stat.f_frsize),
            total_bytes: stat.f_blocks.saturating_mul(stat.f_frsize),
        })
    }

    /// Bytes below which growth is refused.
    pub fn growth_reserve(&self) -> u64 {
        GROWTH_RESERVE_BYTES.min(self.total_bytes / GROWTH_RESERVE_FRACTION)
    }

    /// What may be accepted.
    pub fn level(&self) -> SpaceLevel {
        if self.free_bytes >= self.growth_reserve() {
            SpaceLevel::Ample
        } else {
            SpaceLevel::Reserved
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn level(free_mib: u64, total_mib: u64) -> SpaceLevel {
        let space = Space {
            free_bytes: free_mib * MIB,
            total_bytes: total_mib * MIB,
        };
        space.level()
    }

    #[test]
    fn large_disks_keep_a_fixed_reserve_and_small_ones_a_part() {
        assert_eq!(level(128, 1 << 20), SpaceLevel::Ample);
        assert_eq!(level(127, 1 << 20), SpaceLevel::Reserved);
        assert_eq!(level(16, 64), SpaceLevel::Ample);
        assert_eq!(level(15, 64), SpaceLevel::Reserved);
        assert!(SpaceLevel::Reserved < SpaceLevel::Ample);
    }

    #[test]
    fn asks_the_file_system() {
        let space = Space::of(Path::new("/")).unwrap();
        assert!(space.total_bytes > 0 && space.free_bytes <= space.total_bytes);
        assert!(Space::of(Path::new("/no/such/path")).is_err());
    }
}
