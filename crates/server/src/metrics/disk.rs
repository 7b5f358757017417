//! Room on the disk, as it was when it was looked at last: asking may hang with the disk.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use quenda_storage::Space;

use super::page::{Figures, Page, own};
use crate::config::ServerConfig;
use crate::system::size_of_tree;

/// Bytes on and of the disk; 0 before the first look.
#[derive(Debug, Default)]
pub struct DiskFigures {
    free: AtomicU64,
    total: AtomicU64,
    reserve: AtomicU64,
    data: AtomicU64,
    log: AtomicU64,
}

impl DiskFigures {
    /// The file system with the least room has so much.
    pub fn space(&self, space: &Space) {
        self.free.store(space.free_bytes, Relaxed);
        self.total.store(space.total_bytes, Relaxed);
        self.reserve.store(space.growth_reserve(), Relaxed);
    }

    /// Adds up the files of the store. Reads the disk.
    pub(super) fn measure(&self, config: &ServerConfig) {
        self.data.store(size_of_tree(&config.data_dir), Relaxed);
        if let Some(log) = &config.data_log_dir {
            self.log.store(size_of_tree(log), Relaxed);
        }
    }
}

impl Figures for DiskFigures {
    fn tell(&self, page: &mut dyn Page) {
        let files = own(
            "quenda_disk_used_bytes",
            "Bytes of all files in a directory of this member; log only if it is apart from the data.",
        );
        page.own_gauge(
            files,
            &[("directory", "data")],
            self.data.load(Relaxed) as f64,
        );
        let log = self.log.load(Relaxed);
        if log > 0 {
            page.own_gauge(files, &[("directory", "log")], log as f64);
        }
        for (name, help, value) in [
            (
                "quenda_disk_free_bytes",
                "Bytes free on the file system of the store, of the fuller one if there are two.",
                &self.free,
            ),
            (
                "quenda_disk_size_bytes",
                "Size of the file system of the store, of the fuller one if there are two.",
                &self.total,
            ),
            (
                "quenda_disk_reserve_bytes",
                "Free bytes below which growth is refused.",
                &self.reserve,
            ),
        ] {
            page.own_gauge(own(name, help), &[], value.load(Relaxed) as f64);
        }
    }
}
