//! The C library's allocator, which RocksDB takes its memory from.

/// Keeps it from holding on to what RocksDB has freed: blocks from this size on come from the kernel each for itself
/// and go back there. Left alone, the allocator raises the size with every such block that is freed, and memtables end
/// up between smaller blocks that stay. Figures: docs/adr/0028-memory-that-goes-back.md. To be called before there are
/// threads.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn give_back_large_blocks() {
    use std::ffi::c_int;

    const M_MMAP_THRESHOLD: c_int = -3;
    const LARGE_BYTES: c_int = 128 << 10;

    #[allow(unsafe_code)]
    unsafe extern "C" {
        // Takes two numbers, touches no memory of ours, may be called at any time.
        safe fn mallopt(parameter: c_int, value: c_int) -> c_int;
    }

    // What it answers says whether it did; without it the server only needs more memory.
    mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
}

/// There is nothing to be said to another one.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back_large_blocks() {}
