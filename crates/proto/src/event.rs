//! Watch events and the kinds of watches that can be asked about.

use bytes::{BufMut, BytesMut};

use crate::XID_EVENT;
use crate::jute::{put_string, string_len};

/// What happened to a znode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum EventType {
    /// It was created.
    NodeCreated = 1,
    /// It was deleted.
    NodeDeleted = 2,
    /// Its data was replaced.
    NodeDataChanged = 3,
    /// A child was created or deleted.
    NodeChildrenChanged = 4,
}

impl EventType {
    /// From the number on the wire.
    pub const fn from_code(code: i32) -> Option<EventType> {
        match code {
            1 => Some(EventType::NodeCreated),
            2 => Some(EventType::NodeDeleted),
            3 => Some(EventType::NodeDataChanged),
            4 => Some(EventType::NodeChildrenChanged),
            _ => None,
        }
    }
}

/// The only connection state that a server sends: SyncConnected.
pub const SYNC_CONNECTED: i32 = 3;

/// Kinds of watches in checkWatches and removeWatches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatcherType {
    /// One-shot child watches.
    Children,
    /// One-shot data and exists watches.
    Data,
    /// Every kind.
    Any,
    /// Persistent watches.
    Persistent,
    /// Persistent recursive watches.
    PersistentRecursive,
}

impl WatcherType {
    /// From the number on the wire.
    pub const fn from_code(code: i32) -> Option<WatcherType> {
        match code {
            1 => Some(WatcherType::Children),
            2 => Some(WatcherType::Data),
            3 => Some(WatcherType::Any),
            4 => Some(WatcherType::Persistent),
            5 => Some(WatcherType::PersistentRecursive),
            _ => None,
        }
    }

    /// Number on the wire.
    pub const fn code(self) -> i32 {
        match self {
            WatcherType::Children => 1,
            WatcherType::Data => 2,
            WatcherType::Any => 3,
            WatcherType::Persistent => 4,
            WatcherType::PersistentRecursive => 5,
        }
    }
}

/// Mode of addWatch: persistent.
pub const ADD_WATCH_PERSISTENT: i32 = 0;
/// Mode of addWatch: persistent and recursive.
pub const ADD_WATCH_PERSISTENT_RECURSIVE: i32 = 1;

/// Appends a whole event frame, length included. `zxid` is that of the change, −1 for the events that
/// setWatches makes.
pub fn put_event(out: &mut BytesMut, kind: EventType, path: &str, zxid: i64) {
    let length = 16 + 8 + 4 + string_len(path);
    out.reserve(4 + length);
    out.put_i32(length as i32);
    out.put_i32(XID_EVENT);
    out.put_i64(zxid);
    out.put_i32(0);
    out.put_i32(kind as i32);
    out.put_i32(SYNC_CONNECTED);
    put_string(out, path);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lead_back_to_events() {
        for code in 1..=4 {
            let kind = EventType::from_code(code).expect("an event");
            assert_eq!(kind as i32, code);
        }
        assert_eq!(EventType::from_code(0), None);
        assert_eq!(EventType::from_code(5), None);
    }
}
