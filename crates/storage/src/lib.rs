//! What a member keeps on disk: the replicated log, raft's own state, and the newest checkpoint of the
//! tree.
//!
//! The log is the durability: [`Store::append`] returns when its batches are on disk. A checkpoint is
//! written beside it in one piece with the index it belongs to, without a sync of its own; it becomes
//! durable with the next append or [`Store::sync`], and only then may the log be cut below it.
//! `docs/storage-format.md` describes the bytes.
//!
//! [`RocksStore`] is the real one. [`MemoryStore`] forgets everything with the process, [`FaultyStore`]
//! fails and crashes on command; both serve tests and the simulator. One contract test covers all three.

mod checkpoint;
mod content;
mod error;
mod faulty;
mod format;
mod image;
pub mod limits;
mod memory;
mod rocks;
mod simulated;
mod space;
mod store;

pub use checkpoint::{Checkpoint, RowBatch};
pub use error::{OpenError, StoreError};
pub use faulty::{Fault, FaultyStore};
pub use image::{ImageInfo, ImageReceiver};
pub use memory::MemoryStore;
pub use rocks::{OpenOptions, RocksStore, StoreLook};
pub use space::{Space, SpaceLevel};
pub use store::{Reopened, RowLook, RowVisitor, Store, load_tree};
