//! The seal at the end of every write in the log: bytes that nobody outside this process knows.
//!
//! A log file overwrites the blocks of an older one. Behind its end come remains of that, at any offset, and
//! clients choose most of their bytes: what they sent could be made to look like a write of the present life of
//! the file, with the right number and a checksum that fits. The seal cannot be made up.

use std::sync::OnceLock;

use rocksdb::{DB, WriteBatch, WriteOptions};

/// Bytes of a seal.
pub(super) const LEN: usize = 16;

/// What one process writes at the end of each of its writes.
pub(super) type Seal = [u8; LEN];

/// Writes a batch with this process's seal at its end. It is in the log alone, and in no table.
pub(super) fn write(
    db: &DB,
    mut batch: WriteBatch,
    options: &WriteOptions,
) -> Result<(), rocksdb::Error> {
    batch.put_log_data(own());
    db.write_opt(batch, options)
}

fn own() -> Seal {
    static OWN: OnceLock<Seal> = OnceLock::new();
    *OWN.get_or_init(|| {
        let mut seal = [0; LEN];
        // The system has had entropy for a long time when a server opens its store.
        getrandom::fill(&mut seal).expect("the system gives random bytes");
        seal
    })
}
