use bytes::Bytes;
use prost::Message as _;
use raft::eraftpb::{self, MessageType};

use crate::consensus::SnapshotImage;
use crate::error::StepError;

/// One message between two members: an opaque payload and where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The sender.
    pub from: u64,
    /// The receiver.
    pub to: u64,
    /// The snapshot that the message announces, if it announces one. The sender reports what became of
    /// it with [`crate::Consensus::report_snapshot`]; until then the receiver gets nothing else.
    pub snapshot_index: Option<u64>,
    /// Raft's own encoding, for [`crate::Consensus::step`] of the receiver.
    pub payload: Bytes,
}

impl Message {
    pub(crate) fn from_raft(message: &eraftpb::Message) -> Message {
        let snapshot = message.snapshot.as_ref();
        Message {
            from: message.from,
            to: message.to,
            snapshot_index: snapshot
                .and_then(|snapshot| snapshot.metadata.as_ref())
                .map(|metadata| metadata.index)
                .filter(|index| *index > 0),
            payload: Bytes::from(message.encode_to_vec()),
        }
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
pub(crate) fn is_between_members(message: &eraftpb::Message) -> bool {
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
fn is_continuous(message: &eraftpb::Message) -> bool {
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

pub(crate) fn decode(payload: &[u8]) -> Result<eraftpb::Message, StepError> {
    eraftpb::Message::decode(payload).map_err(|error| StepError::Undecodable(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: i32, entries: &[(u64, u64)]) -> eraftpb::Message {
        let entry = |(index, term): &(u64, u64)| eraftpb::Entry {
            index: *index,
            term: *term,
            ..eraftpb::Entry::default()
        };
        eraftpb::Message {
            msg_type: kind,
            term: 3,
            index: 7,
            log_term: 2,
            entries: entries.iter().map(entry).collect(),
            ..eraftpb::Message::default()
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
        let behind = |index| eraftpb::Message {
            index,
            log_term: 0,
            ..message(append, &[])
        };
        assert!(is_between_members(&behind(0)), "the very beginning");
        assert!(!is_between_members(&behind(7)), "no entry is of term 0");
    }
}
