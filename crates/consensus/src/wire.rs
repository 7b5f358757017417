//! A message as it travels: raft's own encoding, with the commands of its entries beside raft.
//!
//! Field for field `eraftpb.proto` of raft 0.7, so that either side may be raft itself. What is left out are fields
//! that raft has given up and does not read.

use bytes::Bytes;
use raft::eraftpb::{self, MessageType, Snapshot};

use crate::entry::{EntryKind, LogEntry};

/// `eraftpb::Message`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct WireMessage {
    #[prost(int32, tag = "1")]
    pub msg_type: i32,
    #[prost(uint64, tag = "2")]
    pub to: u64,
    #[prost(uint64, tag = "3")]
    pub from: u64,
    #[prost(uint64, tag = "4")]
    pub term: u64,
    #[prost(uint64, tag = "5")]
    pub log_term: u64,
    #[prost(uint64, tag = "6")]
    pub index: u64,
    #[prost(message, repeated, tag = "7")]
    pub entries: Vec<WireEntry>,
    #[prost(uint64, tag = "8")]
    pub commit: u64,
    #[prost(message, optional, tag = "9")]
    pub snapshot: Option<Snapshot>,
    #[prost(bool, tag = "10")]
    pub reject: bool,
    #[prost(uint64, tag = "11")]
    pub reject_hint: u64,
    #[prost(bytes = "bytes", tag = "12")]
    pub context: Bytes,
    #[prost(uint64, tag = "13")]
    pub request_snapshot: u64,
    #[prost(uint64, tag = "14")]
    pub deprecated_priority: u64,
    #[prost(uint64, tag = "15")]
    pub commit_term: u64,
    #[prost(int64, tag = "16")]
    pub priority: i64,
}

/// `eraftpb::Entry`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct WireEntry {
    #[prost(int32, tag = "1")]
    pub entry_type: i32,
    #[prost(uint64, tag = "2")]
    pub term: u64,
    #[prost(uint64, tag = "3")]
    pub index: u64,
    #[prost(bytes = "bytes", tag = "4")]
    pub data: Bytes,
}

impl WireMessage {
    /// Of a message of raft, whose entries `data` completes; `None` if it does not know one of them.
    pub(crate) fn from_raft(
        message: eraftpb::Message,
        data: impl Fn(&eraftpb::Entry) -> Option<Bytes>,
    ) -> Option<WireMessage> {
        let complete = |entry: eraftpb::Entry| {
            Some(WireEntry {
                entry_type: entry.entry_type,
                term: entry.term,
                index: entry.index,
                data: data(&entry)?,
            })
        };
        let entries: Option<Vec<_>> = message.entries.into_iter().map(complete).collect();
        Some(WireMessage {
            entries: entries?,
            msg_type: message.msg_type,
            to: message.to,
            from: message.from,
            term: message.term,
            log_term: message.log_term,
            index: message.index,
            commit: message.commit,
            snapshot: message.snapshot,
            reject: message.reject,
            reject_hint: message.reject_hint,
            context: message.context.into(),
            request_snapshot: message.request_snapshot,
            deprecated_priority: message.deprecated_priority,
            commit_term: message.commit_term,
            priority: message.priority,
        })
    }

    /// Raft's part of the message, and the entries whose commands stay beside raft.
    pub(crate) fn into_raft(self) -> (eraftpb::Message, Vec<LogEntry>) {
        let appends = self.msg_type == MessageType::MsgAppend as i32;
        let mut beside = Vec::new();
        let mut take = |entry: WireEntry| {
            if !appends || entry.entry_type != i32::from(EntryKind::Normal.code()) {
                return entry.whole();
            }
            let entry = LogEntry {
                index: entry.index,
                term: entry.term,
                kind: EntryKind::Normal,
                data: entry.data,
            };
            let stub = crate::window::to_raft(&entry);
            beside.push(entry);
            stub
        };
        let message = eraftpb::Message {
            entries: self.entries.into_iter().map(&mut take).collect(),
            msg_type: self.msg_type,
            to: self.to,
            from: self.from,
            term: self.term,
            log_term: self.log_term,
            index: self.index,
            commit: self.commit,
            snapshot: self.snapshot,
            reject: self.reject,
            reject_hint: self.reject_hint,
            context: self.context.into(),
            request_snapshot: self.request_snapshot,
            deprecated_priority: self.deprecated_priority,
            commit_term: self.commit_term,
            priority: self.priority,
        };
        (message, beside)
    }

    /// Cuts what follows the first `bytes` of commands off an append message, as a message of its own. At least one entry
    /// stays.
    pub(crate) fn split_off(&mut self, bytes: u64) -> Option<WireMessage> {
        let mut sum = 0;
        let fits = self.entries.iter().take_while(|entry| {
            sum += entry.data.len() as u64;
            sum <= bytes
        });
        let at = fits.count().max(1);
        if at >= self.entries.len() {
            return None;
        }
        let entries = self.entries.split_off(at);
        let (index, log_term) = self.entries.last().map(|last| (last.index, last.term))?;
        Some(WireMessage {
            entries,
            index,
            log_term,
            ..self.clone_head()
        })
    }

    fn clone_head(&self) -> WireMessage {
        WireMessage {
            msg_type: self.msg_type,
            to: self.to,
            from: self.from,
            term: self.term,
            commit: self.commit,
            commit_term: self.commit_term,
            ..WireMessage::default()
        }
    }
}

impl WireEntry {
    fn whole(self) -> eraftpb::Entry {
        eraftpb::Entry {
            entry_type: self.entry_type,
            term: self.term,
            index: self.index,
            data: self.data.into(),
            ..eraftpb::Entry::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use raft::eraftpb::{Entry, EntryType, SnapshotMetadata};

    use super::*;

    fn append(data: &[&[u8]]) -> eraftpb::Message {
        let entry = |(index, data): (u64, &&[u8])| Entry {
            term: 3,
            index,
            data: data.to_vec(),
            ..Entry::default()
        };
        eraftpb::Message {
            msg_type: MessageType::MsgAppend as i32,
            to: 1,
            from: 2,
            term: 3,
            log_term: 2,
            index: 5,
            commit: 4,
            commit_term: 2,
            entries: (6..).zip(data).map(entry).collect(),
            ..eraftpb::Message::default()
        }
    }

    /// With a value in every field that raft reads.
    fn full() -> eraftpb::Message {
        eraftpb::Message {
            snapshot: Some(Snapshot {
                data: vec![7],
                metadata: Some(SnapshotMetadata {
                    index: 8,
                    ..SnapshotMetadata::default()
                }),
            }),
            reject: true,
            reject_hint: 9,
            context: vec![10],
            request_snapshot: 11,
            deprecated_priority: 12,
            priority: -13,
            ..append(&[b"a", b""])
        }
    }

    fn own(entry: &Entry) -> Option<Bytes> {
        Some(entry.data.clone().into())
    }

    #[test]
    fn the_encoding_is_that_of_raft() {
        let wire = WireMessage::from_raft(full(), own).expect("complete");
        assert_eq!(wire.encode_to_vec(), full().encode_to_vec());
        let decoded = WireMessage::decode(&full().encode_to_vec()[..]);
        assert_eq!(decoded, Ok(wire));
    }

    #[test]
    fn commands_stay_beside_raft_and_come_back() {
        let change = Entry {
            entry_type: EntryType::EntryConfChangeV2 as i32,
            term: 3,
            index: 8,
            data: vec![1],
            ..Entry::default()
        };
        let mut message = append(&[b"command", b""]);
        message.entries.push(change.clone());
        let wire = WireMessage::from_raft(message.clone(), own).expect("complete");
        let (raft, beside) = wire.into_raft();
        assert!(raft.entries[0].data.is_empty());
        assert_eq!(raft.entries[2], change);
        assert_eq!(
            beside
                .iter()
                .map(|entry| (entry.index, &entry.data[..]))
                .collect::<Vec<_>>(),
            [(6, &b"command"[..]), (7, &b""[..])]
        );
        let find = |entry: &Entry| match entry.index {
            8 => own(entry),
            index => Some(beside[(index - 6) as usize].data.clone()),
        };
        let again = WireMessage::from_raft(raft.clone(), find).expect("complete");
        assert_eq!(again.encode_to_vec(), message.encode_to_vec());
        let unknown = WireMessage::from_raft(raft, |entry| (entry.index != 6).then(Bytes::new));
        assert_eq!(unknown, None);
    }

    #[test]
    fn reads_keep_what_identifies_them() {
        let read = eraftpb::Message {
            msg_type: MessageType::MsgReadIndex as i32,
            ..append(&[b"context"])
        };
        let wire = WireMessage::from_raft(read.clone(), own).expect("complete");
        assert_eq!(wire.into_raft(), (read, Vec::new()));
    }

    #[test]
    fn a_long_append_is_cut_between_entries() {
        let mut first = WireMessage::from_raft(append(&[b"aaaa", b"bb", b"ccccccc", b"d"]), own)
            .expect("complete");
        let mut second = first.split_off(6).expect("too long");
        let third = second.split_off(6).expect("too long");
        assert_eq!(first.clone().split_off(6), None);
        let (indices, places): (Vec<Vec<u64>>, Vec<(u64, u64)>) = [&first, &second, &third]
            .map(|part| {
                let indices = part.entries.iter().map(|entry| entry.index);
                (indices.collect(), (part.index, part.log_term))
            })
            .into_iter()
            .unzip();
        assert_eq!(indices, [vec![6, 7], vec![8], vec![9]]);
        assert_eq!(places, [(5, 2), (7, 3), (8, 3)]);
        assert_eq!(
            (third.term, third.commit, third.to, third.from),
            (3, 4, 1, 2)
        );
    }
}
