//! Cells that every thread has its own of, or shares with few.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// How many cells there are of each kind. More threads than that share.
const SHARDS: usize = 8;

/// A value of its own in lines of cache of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Padded<T>(T);

/// One value for each thread, but for threads beyond [`SHARDS`].
#[derive(Debug)]
pub(super) struct Shards<T>(Box<[Padded<T>]>);

static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static SHARD: usize = THREADS.fetch_add(1, Relaxed) % SHARDS;
}

impl<T> Shards<T> {
    pub(super) fn new(mut make: impl FnMut() -> T) -> Shards<T> {
        Shards((0..SHARDS).map(|_| Padded(make())).collect())
    }

    /// The one of this thread.
    pub(super) fn own(&self) -> &T {
        // A thread that ends has none any more; what it still counts must not be lost.
        let shard = SHARD.try_with(|shard| *shard).unwrap_or(0);
        &self.0[shard].0
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|padded| &padded.0)
    }
}
