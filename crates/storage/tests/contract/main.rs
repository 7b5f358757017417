//! What every store promises, and what only the one on disk can show.

mod common;
mod crashes;
mod every_store;
mod images;
mod images_on_disk;
mod offline;
mod on_disk;
mod random;
mod with_raft;
