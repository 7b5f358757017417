//! What members tell each other: one frame is a tag and its fields, big-endian, every length checked.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use quenda_consensus::Message;

/// Why a frame was not taken. The member is as it was.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PeerFrameError {
    /// The frame ends inside a field, or goes on behind the last one.
    #[error("frame of a wrong length")]
    Length,
    /// No such kind of frame.
    #[error("frame of unknown kind {0}")]
    Kind(u8),
    /// A field holds what it cannot hold.
    #[error("frame with an invalid {0}")]
    Field(&'static str),
    /// A command that cannot be read, or of another member's client.
    #[error("forwarded commands that are not valid")]
    Commands,
    /// A message of raft that was not taken.
    #[error(transparent)]
    Raft(#[from] quenda_consensus::StepError),
}

/// Why a leader does not take forwarded commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Refusal {
    /// The member does not lead in the term that the sender believes in.
    NotLeading = 1,
    /// Commands in front of these are missing.
    Gap = 2,
    /// A later run of the sender is known: its clock went back between two starts.
    Outrun = 3,
}

/// Names a series of forwards: those of one era of one run of a member, to the leader of one term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Series {
    /// Term of the leader they are for.
    pub term: u64,
    /// Run of the sender: larger after every restart.
    pub incarnation: u64,
    /// Era of the sender.
    pub era: u64,
}

/// Where a member stands, as it tells the others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Standing {
    /// Newest applied entry.
    pub applied: u64,
    /// zxid of the newest transaction.
    pub zxid: i64,
    /// The snapshot that it fetches, 0 for none.
    pub fetching: u64,
    /// (index, digest) of entries that it has applied.
    pub samples: Vec<(u64, u64)>,
}

/// One frame between two members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A message of raft.
    Raft {
        /// Whether the sender takes the receiver for a learner. A member that has no membership yet only
        /// listens to those who know that it has no vote.
        to_learner: bool,
        /// Raft's encoding.
        payload: &'a [u8],
    },
    /// A snapshot that the receiver needs: it fetches the files and answers.
    SnapshotOffer {
        /// Raft's message that announces it.
        payload: &'a [u8],
    },
    /// What became of an offered snapshot.
    SnapshotResult {
        /// Newest entry in it.
        index: u64,
        /// Whether it is in place.
        installed: bool,
    },
    /// Commands for the leader's log.
    Forward {
        /// The series they belong to.
        series: Series,
        /// Position in the series, from 0.
        sequence: u64,
        /// Encoded commands.
        commands: &'a [u8],
    },
    /// The series is broken: nothing of it that comes from now on gets into the log.
    ForwardRefused {
        /// The series.
        series: Series,
        /// Why.
        reason: Refusal,
        /// The newest run of the receiver that the sender knows.
        incarnation: u64,
    },
    /// Sessions that the sender has heard since its last acknowledged report.
    Touched {
        /// Number of the report.
        number: u64,
        /// The sender's series of forwards.
        series: Series,
        /// How many forwards of that series it has sent.
        forwarded: u64,
        /// The sessions.
        sessions: Vec<i64>,
    },
    /// A report has arrived.
    TouchedAck {
        /// Its number.
        number: u64,
    },
    /// Where the sender stands.
    Status(Standing),
    /// The receiver is no member, as of this entry.
    NotMember {
        /// Newest entry that the sender has applied.
        index: u64,
    },
}

const RAFT: u8 = 1;
const SNAPSHOT_OFFER: u8 = 2;
const SNAPSHOT_RESULT: u8 = 3;
const FORWARD: u8 = 4;
const FORWARD_REFUSED: u8 = 5;
const TOUCHED: u8 = 6;
const TOUCHED_ACK: u8 = 7;
const STATUS: u8 = 8;
const NOT_MEMBER: u8 = 9;

/// Whether the bytes of a frame are commands for the leader's log.
pub fn is_forward(frame: &[u8]) -> bool {
    frame.first() == Some(&FORWARD)
}

/// The bytes of [`Frame::Raft`] with this message, whose commands are copied once.
pub fn encode_raft(to_learner: bool, message: &Message) -> Bytes {
    let mut out = BytesMut::with_capacity(2 + message.encoded_len());
    out.put_u8(RAFT);
    out.put_u8(u8::from(to_learner));
    message.encode(&mut out);
    out.freeze()
}

impl Frame<'_> {
    /// The frame's bytes.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(64 + self.variable_len());
        match self {
            Frame::Raft {
                to_learner,
                payload,
            } => {
                out.put_u8(RAFT);
                out.put_u8(u8::from(*to_learner));
                out.put_slice(payload);
            }
            Frame::SnapshotOffer { payload } => {
                out.put_u8(SNAPSHOT_OFFER);
                out.put_slice(payload);
            }
            Frame::SnapshotResult { index, installed } => {
                out.put_u8(SNAPSHOT_RESULT);
                out.put_u64(*index);
                out.put_u8(u8::from(*installed));
            }
            Frame::Forward {
                series,
                sequence,
                commands,
            } => {
                out.put_u8(FORWARD);
                series.encode(&mut out);
                out.put_u64(*sequence);
                out.put_slice(commands);
            }
            Frame::ForwardRefused {
                series,
                reason,
                incarnation,
            } => {
                out.put_u8(FORWARD_REFUSED);
                series.encode(&mut out);
                out.put_u8(*reason as u8);
                out.put_u64(*incarnation);
            }
            Frame::Touched {
                number,
                series,
                forwarded,
                sessions,
            } => {
                out.put_u8(TOUCHED);
                out.put_u64(*number);
                series.encode(&mut out);
                out.put_u64(*forwarded);
                for session in sessions {
                    out.put_i64(*session);
                }
            }
            Frame::TouchedAck { number } => {
                out.put_u8(TOUCHED_ACK);
                out.put_u64(*number);
            }
            Frame::Status(standing) => {
                out.put_u8(STATUS);
                standing.encode(&mut out);
            }
            Frame::NotMember { index } => {
                out.put_u8(NOT_MEMBER);
                out.put_u64(*index);
            }
        }
        out.freeze()
    }

    fn variable_len(&self) -> usize {
        match self {
            Frame::Raft { payload, .. } | Frame::SnapshotOffer { payload } => payload.len(),
            Frame::Forward { commands, .. } => commands.len(),
            Frame::Touched { sessions, .. } => 8 * sessions.len(),
            Frame::Status(standing) => 16 * standing.samples.len(),
            Frame::SnapshotResult { .. }
            | Frame::ForwardRefused { .. }
            | Frame::TouchedAck { .. }
            | Frame::NotMember { .. } => 0,
        }
    }

    /// Reads a frame.
    ///
    /// # Errors
    /// The bytes are no frame.
    pub fn decode(bytes: &[u8]) -> Result<Frame<'_>, PeerFrameError> {
        let mut cursor = Cursor(bytes);
        let frame = match cursor.u8()? {
            RAFT => Frame::Raft {
                to_learner: cursor.flag("learner mark")?,
                payload: cursor.rest(),
            },
            SNAPSHOT_OFFER => Frame::SnapshotOffer {
                payload: cursor.rest(),
            },
            SNAPSHOT_RESULT => Frame::SnapshotResult {
                index: cursor.u64()?,
                installed: cursor.flag("result")?,
            },
            FORWARD => Frame::Forward {
                series: cursor.series()?,
                sequence: cursor.u64()?,
                commands: cursor.rest(),
            },
            FORWARD_REFUSED => Frame::ForwardRefused {
                series: cursor.series()?,
                reason: match cursor.u8()? {
                    1 => Refusal::NotLeading,
                    2 => Refusal::Gap,
                    3 => Refusal::Outrun,
                    _ => return Err(PeerFrameError::Field("reason")),
                },
                incarnation: cursor.u64()?,
            },
            TOUCHED => Frame::Touched {
                number: cursor.u64()?,
                series: cursor.series()?,
                forwarded: cursor.u64()?,
                sessions: cursor.sessions()?,
            },
            TOUCHED_ACK => Frame::TouchedAck {
                number: cursor.u64()?,
            },
            STATUS => Frame::Status(cursor.standing()?),
            NOT_MEMBER => Frame::NotMember {
                index: cursor.u64()?,
            },
            kind => return Err(PeerFrameError::Kind(kind)),
        };
        match cursor.0.is_empty() {
            true => Ok(frame),
            false => Err(PeerFrameError::Length),
        }
    }
}

impl Series {
    fn encode(&self, out: &mut BytesMut) {
        out.put_u64(self.term);
        out.put_u64(self.incarnation);
        out.put_u64(self.era);
    }
}

impl Standing {
    fn encode(&self, out: &mut BytesMut) {
        out.put_u64(self.applied);
        out.put_i64(self.zxid);
        out.put_u64(self.fetching);
        for (index, digest) in &self.samples {
            out.put_u64(*index);
            out.put_u64(*digest);
        }
    }
}

struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn u8(&mut self) -> Result<u8, PeerFrameError> {
        self.0.try_get_u8().map_err(|_| PeerFrameError::Length)
    }

    fn u64(&mut self) -> Result<u64, PeerFrameError> {
        self.0.try_get_u64().map_err(|_| PeerFrameError::Length)
    }

    fn flag(&mut self, field: &'static str) -> Result<bool, PeerFrameError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(PeerFrameError::Field(field)),
        }
    }

    fn series(&mut self) -> Result<Series, PeerFrameError> {
        Ok(Series {
            term: self.u64()?,
            incarnation: self.u64()?,
            era: self.u64()?,
        })
    }

    fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    fn sessions(&mut self) -> Result<Vec<i64>, PeerFrameError> {
        let (sessions, rest) = self.rest().as_chunks::<8>();
        match rest.is_empty() {
            true => Ok(sessions.iter().map(|id| i64::from_be_bytes(*id)).collect()),
            false => Err(PeerFrameError::Length),
        }
    }

    fn standing(&mut self) -> Result<Standing, PeerFrameError> {
        let mut standing = Standing {
            applied: self.u64()?,
            zxid: self.u64()? as i64,
            fetching: self.u64()?,
            samples: Vec::new(),
        };
        while !self.0.is_empty() {
            standing.samples.push((self.u64()?, self.u64()?));
        }
        Ok(standing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERIES: Series = Series {
        term: 4,
        incarnation: 5,
        era: 6,
    };

    fn frames() -> Vec<Frame<'static>> {
        vec![
            Frame::Raft {
                to_learner: true,
                payload: b"raft",
            },
            Frame::SnapshotOffer { payload: b"offer" },
            Frame::SnapshotResult {
                index: 9,
                installed: true,
            },
            Frame::Forward {
                series: SERIES,
                sequence: 7,
                commands: b"commands",
            },
            Frame::ForwardRefused {
                series: SERIES,
                reason: Refusal::Gap,
                incarnation: 5,
            },
            Frame::Touched {
                number: 1,
                series: SERIES,
                forwarded: 2,
                sessions: vec![3, -4],
            },
            Frame::TouchedAck { number: 1 },
            Frame::Status(Standing {
                applied: 1,
                zxid: 2,
                fetching: 3,
                samples: vec![(4, 5), (6, 7)],
            }),
            Frame::NotMember { index: 3 },
        ]
    }

    #[test]
    fn frames_come_back_as_they_were() {
        for frame in frames() {
            assert_eq!(Frame::decode(&frame.encode()), Ok(frame));
        }
    }

    #[test]
    fn whatever_bytes_come_none_are_taken_for_more_than_they_are() {
        for frame in frames() {
            let bytes = frame.encode();
            for end in 0..bytes.len() {
                if let Ok(shorter) = Frame::decode(&bytes[..end]) {
                    assert_eq!(shorter.encode(), bytes[..end], "{frame:?} cut at {end}");
                }
            }
        }
        assert_eq!(Frame::decode(&[]), Err(PeerFrameError::Length));
        assert_eq!(Frame::decode(&[99]), Err(PeerFrameError::Kind(99)));
        assert_eq!(
            Frame::decode(&[TOUCHED_ACK, 0, 0, 0, 0, 0, 0, 0, 1, 0]),
            Err(PeerFrameError::Length)
        );
    }
}
