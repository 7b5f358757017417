//! The ZooKeeper client protocol: records, operations, error codes, paths and frames.
//!
//! Level 0 of the design: pure functions over bytes. The records come from `jute-schema/`.

pub mod acl;
pub mod connect;
pub mod digest_md5;
pub mod error;
pub mod event;
pub mod frame;
pub mod jute;
pub mod mode;
pub mod multi;
pub mod op;
pub mod path;
pub mod records;

pub use error::ErrorCode;
pub use jute::{Decode, DecodeError, Encode, Reader};
pub use op::Op;

/// xid of a watch event.
pub const XID_EVENT: i32 = -1;
/// xid of the reply to a ping, whatever the request carried.
pub const XID_PING: i32 = -2;
/// xid that most clients give to auth packets.
pub const XID_AUTH: i32 = -4;
/// xid that most clients give to setWatches.
pub const XID_SET_WATCHES: i32 = -8;
