//! Files that grow only as long as the disk has room for the rest of the server.

use std::io::{self, Write};
use std::sync::Arc;

use crate::shared::Shared;

/// A writer that fails when the disk is nearly full.
pub(super) struct WithRoom<W> {
    shared: Arc<Shared>,
    out: W,
}

impl<W: Write> WithRoom<W> {
    pub(super) fn new(shared: &Arc<Shared>, out: W) -> WithRoom<W> {
        WithRoom {
            shared: Arc::clone(shared),
            out,
        }
    }
}

impl<W: Write> Write for WithRoom<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.shared.is_disk_full() {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => self.out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
