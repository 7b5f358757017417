use bytes::{Bytes, BytesMut};
use prost::Message as _;
use raft::eraftpb::MessageType;

use crate::consensus::SnapshotImage;
use crate::error::StepError;
use crate::wire::WireMessage;

/// One message between two members: an opaque payload and where it goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The sender.
    pub from: u64,
    /// The receiver.
    pub to: u64,
    /// The snapshot that the message announces, if it announces one. The sender reports what became of
    /// it with [`crate::Consensus::report_snapshot`]; until then the receiver gets nothing else.
    pub snapshot_index: Option<u64>,
    wire: WireMessage,
}

impl Message {
    pub(crate) fn new(wire: WireMessage) -> Message {
        let snapshot = wire.snapshot.as_ref();
        Message {
            from: wire.from,
            to: wire.to,
            snapshot_index: snapshot
                .and_then(|snapshot| snapshot.metadata.as_ref())
                .map(|metadata| metadata.index)
                .filter(|index| *index > 0),
            wire,
        }
    }

    /// Length of [`Message::encode`].
    pub fn encoded_len(&self) -> usize {
        self.wire.encoded_len()
    }

    /// Appends raft's own encoding, for [`crate::Consensus::step`] of the receiver. Commands are copied here, and
    /// nowhere before.
    pub fn encode(&self, out: &mut BytesMut) {
        out.reserve(self.encoded_len());
        self.wire.encode_raw(out);
    }

    /// The same by itself.
    pub fn payload(&self) -> Bytes {
        let mut out = BytesMut::new();
        self.encode(&mut out);
        out.freeze()
    }
}

/// The snapshot that a message announces; `None` if it announces none.
///
/// # Errors
/// The bytes are no raft message.
pub fn announced_snapshot(payload: &[u8]) -> Result<Option<SnapshotImage>, StepError> {
    let message = decode(payload)?;
    let snapshot = message.snapshot.as_ref();
    Ok(snapshot
        .map(SnapshotImage::from_raft)
        .filter(|image| image.index > 0))
}

/// Whether members send each other such messages. Raft gives up the whole process over some of the others.
pub(crate) fn is_between_members(message: &WireMessage) -> bool {
    let Some(kind) = MessageType::from_i32(message.msg_type) else {
        return false;
    };
    match kind {
        MessageType::MsgAppend => is_continuous(message),
        // Their answers carry the same term.
        MessageType::MsgRequestVote | MessageType::MsgRequestPreVote => message.term > 0,
        MessageType::MsgAppendResponse
        | MessageType::MsgRequestVoteResponse
        | MessageType::MsgRequestPreVoteResponse
        | MessageType::MsgSnapshot
        | MessageType::MsgHeartbeat
        | MessageType::MsgHeartbeatResponse
        | MessageType::MsgTimeoutNow => true,
        MessageType::MsgReadIndex | MessageType::MsgReadIndexResp => message.entries.len() == 1,
        // Requests travel on the host's own channel: a proposal forwarded by raft tells nobody its index.
        // The rest is what a member tells its own raft.
        MessageType::MsgPropose
        | MessageType::MsgHup
        | MessageType::MsgBeat
        | MessageType::MsgUnreachable
        | MessageType::MsgSnapStatus
        | MessageType::MsgCheckQuorum
        | MessageType::MsgTransferLeader => false,
    }
}

/// Whether the entries follow each other and what they are appended to, in index and in term. Behind the end of
/// its log raft takes term 0 for the right one.
fn is_continuous(message: &WireMessage) -> bool {
    let (mut index, mut term) = (message.index, message.log_term);
    if index > 0 && term == 0 {
        return false;
    }
    message.entries.iter().all(|entry| {
        let follows = entry.index == index.wrapping_add(1) && entry.term >= term;
        (index, term) = (entry.index, entry.term);
        follows && term <= message.term
    })
}

pub(crate) fn decode(payload: &[u8]) -> Result<WireMessage, StepError> {
    WireMessage::decode(payload).map_err(|error| StepError::Undecodable(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::WireEntry;

    fn message(kind: i32, entries: &[(u64, u64)]) -> WireMessage {
        let entry = |(index, term): &(u64, u64)| WireEntry {
            index: *index,
            term: *term,
            ..WireEntry::default()
        };
        WireMessage {
            msg_type: kind,
            term: 3,
            index: 7,
            log_term: 2,
            entries: entries.iter().map(entry).collect(),
            ..WireMessage::default()
        }
    }

    #[test]
    fn what_members_do_not_send_each_other_is_told_apart() {
        let is_taken = |kind, entries: &[_]| is_between_members(&message(kind, entries));
        let count = |entries: &[_]| (0..100).filter(|kind| is_taken(*kind, entries)).count();
        assert_eq!(count(&[]), 10);
        assert_eq!(count(&[(8, 2)]), 12);
        assert!(!is_taken(-1, &[]));
        assert!(!is_taken(MessageType::MsgTransferLeader as i32, &[]));
        assert!(!is_taken(MessageType::MsgReadIndex as i32, &[]));
        for kind in [MessageType::MsgRequestVote, MessageType::MsgRequestPreVote] {
            let mut request = message(kind as i32, &[]);
            assert!(is_between_members(&request));
            request.term = 0;
            assert!(!is_between_members(&request), "an election in no term");
        }
    }

    #[test]
    fn appended_entries_follow_each_other() {
        let append = MessageType::MsgAppend as i32;
        let is_taken = |entries: &[_]| is_between_members(&message(append, entries));
        assert!(is_taken(&[(8, 2), (9, 2), (10, 3)]));
        assert!(!is_taken(&[(9, 2)]), "a gap in front");
        assert!(!is_taken(&[(8, 2), (10, 2)]), "a gap");
        assert!(!is_taken(&[(8, 1)]), "a term that goes back");
        assert!(!is_taken(&[(8, 4)]), "a term to come");
        let behind = |index| WireMessage {
            index,
            log_term: 0,
            ..message(append, &[])
        };
        assert!(is_between_members(&behind(0)), "the very beginning");
        assert!(!is_between_members(&behind(7)), "no entry is of term 0");
    }
}
