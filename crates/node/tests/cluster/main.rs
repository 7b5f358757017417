//! Whole clusters in one thread: messages, disks and time move only when a test says so.

mod agreement;
mod disks;
mod elections;
mod exchange;
mod harness;
mod host;
mod membership;
mod sessions;
mod snapshots;
mod writes;
