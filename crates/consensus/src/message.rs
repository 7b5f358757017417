use bytes::Bytes;
use prost::Message as _;
use raft::eraftpb;

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

pub(crate) fn decode(payload: &[u8]) -> Result<eraftpb::Message, StepError> {
    eraftpb::Message::decode(payload).map_err(|error| StepError::Undecodable(error.to_string()))
}
