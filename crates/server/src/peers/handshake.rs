//! The first words on a connection: both sides say who they are, both sides check.
//!
//! ```text
//! hello   "QUENDAHI" version:u16 length:u16  channel:u8 from:u64 to:u64 about
//! answer  "QUENDAOK" version:u16 length:u16  verdict:u8 id:u64 about
//! about   cluster:u64 state:u8 servers:u64 incarnation:u64
//! ```
//!
//! Magic, version and length stay where they are in every version, so that members of different versions can
//! tell each other what is wrong.

use bytes::{Buf, BufMut, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::identity::{About, Identity};

/// Version of the protocol between members.
pub(super) const VERSION: u16 = 1;

const HELLO_MAGIC: &[u8; 8] = b"QUENDAHI";
const ANSWER_MAGIC: &[u8; 8] = b"QUENDAOK";
const PREAMBLE: usize = 12;
const HELLO_BYTES: usize = 17 + About::BYTES;
const ANSWER_BYTES: usize = 9 + About::BYTES;
/// What records of TLS begin with.
const TLS_ALERT: u8 = 21;
const TLS_HANDSHAKE: u8 = 22;
const TLS_MAJOR: u8 = 3;
/// No version's handshake is longer.
const BODY_MAX: usize = 1024;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channel {
    /// Frames of the members.
    Messages,
    /// The files of an image.
    Image,
}

/// The dialer's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) channel: Channel,
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) about: About,
}

/// What the acceptor makes of a hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Accepted,
    OtherVersion,
    OtherMember,
    OtherCluster,
    OtherServers,
    OwnId,
    OlderProcess,
    TooMany,
    OtherName,
}

impl Verdict {
    const ALL: [Verdict; 9] = [
        Verdict::Accepted,
        Verdict::OtherVersion,
        Verdict::OtherMember,
        Verdict::OtherCluster,
        Verdict::OtherServers,
        Verdict::OwnId,
        Verdict::OlderProcess,
        Verdict::TooMany,
        Verdict::OtherName,
    ];

    const fn code(self) -> u8 {
        self as u8
    }

    fn from_code(code: u8) -> Option<Verdict> {
        Verdict::ALL.get(usize::from(code)).copied()
    }
}

/// The acceptor's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) verdict: Verdict,
    pub(super) id: u64,
    pub(super) about: About,
}

/// Why a handshake came to nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum HandshakeError {
    #[error("this is not a member's connection")]
    Foreign,
    #[error("it speaks version {0} of the protocol between members, this member speaks {VERSION}")]
    Version(u16),
    /// It speaks TLS, and nobody here does.
    #[error("it speaks TLS, and this member does not")]
    Tls,
    #[error("the handshake is malformed")]
    Malformed,
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl Hello {
    pub(super) fn encode(&self) -> BytesMut {
        let mut out = BytesMut::with_capacity(PREAMBLE + HELLO_BYTES);
        put_preamble(&mut out, HELLO_MAGIC, HELLO_BYTES);
        out.put_u8(match self.channel {
            Channel::Messages => 0,
            Channel::Image => 1,
        });
        out.put_u64(self.from);
        out.put_u64(self.to);
        self.about.put(&mut out);
        out
    }

    /// Reads a hello.
    ///
    /// # Errors
    /// See [`HandshakeError`].
    pub(super) async fn read(
        stream: &mut (impl AsyncRead + Unpin),
    ) -> Result<Hello, HandshakeError> {
        let body = read_body(stream, HELLO_MAGIC).await?;
        Hello::decode(&body).ok_or(HandshakeError::Malformed)
    }

    fn decode(mut body: &[u8]) -> Option<Hello> {
        if body.len() < HELLO_BYTES {
            return None;
        }
        let channel = match body.get_u8() {
            0 => Channel::Messages,
            1 => Channel::Image,
            _ => return None,
        };
        Some(Hello {
            channel,
            from: body.get_u64(),
            to: body.get_u64(),
            about: About::get(&mut body)?,
        })
    }

    /// What `identity` says to this hello.
    pub(super) fn judge(&self, identity: &Identity) -> Verdict {
        if self.from == identity.id() {
            return Verdict::OwnId;
        }
        if self.to != identity.id() {
            return Verdict::OtherMember;
        }
        judge_about(&identity.about(), &self.about)
    }

    /// Why this hello is refused, for the acceptor's log.
    pub(super) fn explain(&self, verdict: Verdict, own: &About) -> String {
        match verdict {
            Verdict::Accepted => "accepted".to_owned(),
            Verdict::OtherVersion => "it speaks another version of the protocol".to_owned(),
            Verdict::OtherMember => format!(
                "it looks for member {} at this address; its server lines differ from ours",
                self.to
            ),
            Verdict::OtherCluster => {
                other_cluster(self.about.facts.cluster, own.facts.cluster)
            }
            Verdict::OtherServers => {
                "its configured servers differ from ours, and no cluster is founded yet".to_owned()
            }
            Verdict::OwnId => own_id(self.about.incarnation == own.incarnation),
            Verdict::OlderProcess => {
                "a process that was started later is already connected as that member; check for two servers \
                 with one myid"
                    .to_owned()
            }
            Verdict::TooMany => "too many members are connected".to_owned(),
            Verdict::OtherName => format!(
                "its certificate names neither the host of the server line of member {} nor its address: have one \
                 signed with that in subjectAltName, or set ssl.quorum.hostnameVerification=false here",
                self.from
            ),
        }
    }
}

impl Answer {
    pub(super) fn encode(&self) -> BytesMut {
        let mut out = BytesMut::with_capacity(PREAMBLE + ANSWER_BYTES);
        put_preamble(&mut out, ANSWER_MAGIC, ANSWER_BYTES);
        out.put_u8(self.verdict.code());
        out.put_u64(self.id);
        self.about.put(&mut out);
        out
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// See [`HandshakeError`].
    pub(super) async fn read(
        stream: &mut (impl AsyncRead + Unpin),
    ) -> Result<Answer, HandshakeError> {
        let body = read_body(stream, ANSWER_MAGIC).await?;
        Answer::decode(&body).ok_or(HandshakeError::Malformed)
    }

    fn decode(mut body: &[u8]) -> Option<Answer> {
        if body.len() < ANSWER_BYTES {
            return None;
        }
        Some(Answer {
            verdict: Verdict::from_code(body.get_u8())?,
            id: body.get_u64(),
            about: About::get(&mut body)?,
        })
    }

    /// The dialer's own check: the acceptor's word alone is not enough.
    pub(super) fn judge(&self, identity: &Identity, wanted: u64) -> Verdict {
        if self.verdict != Verdict::Accepted {
            return self.verdict;
        }
        if self.id != wanted {
            return Verdict::OtherMember;
        }
        judge_about(&identity.about(), &self.about)
    }

    /// Why the connection came to nothing, for the dialer's log.
    pub(super) fn explain(&self, verdict: Verdict, own: &About) -> String {
        match verdict {
            Verdict::Accepted => "accepted".to_owned(),
            Verdict::OtherVersion => "it speaks another version of the protocol".to_owned(),
            Verdict::OtherMember => format!(
                "the server at this address is member {}; its server lines or ours are wrong",
                self.id
            ),
            Verdict::OtherCluster => {
                other_cluster(self.about.facts.cluster, own.facts.cluster)
            }
            Verdict::OtherServers => {
                "its configured servers differ from ours, and no cluster is founded yet".to_owned()
            }
            Verdict::OwnId => own_id(self.about.incarnation == own.incarnation),
            Verdict::OlderProcess => {
                "it is connected to a process of this member that was started later; check for two servers with \
                 one myid"
                    .to_owned()
            }
            Verdict::TooMany => "it is connected to too many members".to_owned(),
            Verdict::OtherName => {
                "the certificate of this member names neither the host of its server line there nor its address: have \
                 one signed with that in subjectAltName"
                    .to_owned()
            }
        }
    }
}

fn judge_about(own: &About, other: &About) -> Verdict {
    if !own.facts.may_talk_to(other.facts) {
        return Verdict::OtherCluster;
    }
    let is_founding = own.facts.is_before_cluster() && other.facts.is_before_cluster();
    if is_founding && own.servers != other.servers {
        return Verdict::OtherServers;
    }
    Verdict::Accepted
}

/// What is said of a peer with this member's id, which may be this very process.
fn own_id(is_itself: bool) -> String {
    let text = if is_itself {
        "the address in its server line leads to this member itself"
    } else {
        "it has this member's own id; check myid on both servers"
    };
    text.to_owned()
}

/// What is said of two members of different clusters.
pub(super) fn other_cluster(theirs: u64, ours: u64) -> String {
    format!("it belongs to another cluster: theirs is {theirs:016x}, ours {ours:016x}")
}

fn put_preamble(out: &mut BytesMut, magic: &[u8; 8], length: usize) {
    out.put_slice(magic);
    out.put_u16(VERSION);
    // Both lengths are constants below BODY_MAX.
    out.put_u16(length as u16);
}

async fn read_body(
    stream: &mut (impl AsyncRead + Unpin),
    magic: &[u8; 8],
) -> Result<Vec<u8>, HandshakeError> {
    let mut preamble = [0; PREAMBLE];
    // An alert of TLS is shorter than what is expected.
    stream.read_exact(&mut preamble[..2]).await?;
    if matches!(preamble, [TLS_ALERT | TLS_HANDSHAKE, TLS_MAJOR, ..]) {
        return Err(HandshakeError::Tls);
    }
    stream.read_exact(&mut preamble[2..]).await?;
    if &preamble[..8] != magic {
        return Err(HandshakeError::Foreign);
    }
    let version = u16::from_be_bytes([preamble[8], preamble[9]]);
    if version != VERSION {
        return Err(HandshakeError::Version(version));
    }
    let length = usize::from(u16::from_be_bytes([preamble[10], preamble[11]]));
    if length > BODY_MAX {
        return Err(HandshakeError::Malformed);
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(body)
}

#[cfg(test)]
mod tests {
    use quenda_node::PeerState;

    use super::super::identity::Facts;
    use super::*;

    fn about(cluster: u64, state: PeerState, servers: u64) -> About {
        About {
            facts: Facts { cluster, state },
            servers,
            incarnation: 7,
        }
    }

    fn hello(from: u64, to: u64, about: About) -> Hello {
        Hello {
            channel: Channel::Messages,
            from,
            to,
            about,
        }
    }

    fn member(cluster: u64, state: PeerState) -> Identity {
        Identity::new(1, 7, 5, Facts { cluster, state })
    }

    #[tokio::test]
    async fn what_is_written_is_read() {
        let said = Hello {
            channel: Channel::Image,
            ..hello(3, 1, about(9, PeerState::Joining, 5))
        };
        let bytes = said.encode();
        assert_eq!(Hello::read(&mut &bytes[..]).await.expect("a hello"), said);
        for verdict in Verdict::ALL {
            let said = Answer {
                verdict,
                id: 4,
                about: about(1, PeerState::Founding, 2),
            };
            let bytes = said.encode();
            let read = Answer::read(&mut &bytes[..]).await.expect("an answer");
            assert_eq!(read, said);
            for end in 0..bytes.len() {
                assert!(Answer::read(&mut &bytes[..end]).await.is_err());
            }
        }
    }

    #[tokio::test]
    async fn strangers_are_told_from_members() {
        let mut bytes = hello(3, 1, about(9, PeerState::Member, 5)).encode();
        bytes[9] = 2;
        let other = Hello::read(&mut &bytes[..]).await;
        assert!(matches!(other, Err(HandshakeError::Version(2))));
        let garbage = Hello::read(&mut &b"GET / HTTP/1.1\r\n\r\n"[..]).await;
        assert!(matches!(garbage, Err(HandshakeError::Foreign)));
        bytes[9] = 1;
        bytes[10] = 0xff;
        let long = Hello::read(&mut &bytes[..]).await;
        assert!(matches!(long, Err(HandshakeError::Malformed)));
    }

    #[test]
    fn only_those_who_belong_together_talk() {
        let own = member(9, PeerState::Member);
        let to_us = |from, to, about| hello(from, to, about).judge(&own);
        let same = about(9, PeerState::Member, 6);
        assert_eq!(to_us(3, 1, same), Verdict::Accepted);
        assert_eq!(to_us(3, 2, same), Verdict::OtherMember);
        assert_eq!(to_us(1, 1, same), Verdict::OwnId);
        let fresh = about(0, PeerState::Fresh, 6);
        assert_eq!(to_us(3, 1, fresh), Verdict::Accepted);
        let other = about(8, PeerState::Member, 5);
        assert_eq!(to_us(3, 1, other), Verdict::OtherCluster);
    }

    #[test]
    fn founders_agree_on_the_servers() {
        let own = member(0, PeerState::Fresh);
        let to_us = |state, servers| hello(2, 1, about(0, state, servers)).judge(&own);
        assert_eq!(to_us(PeerState::Founding, 5), Verdict::Accepted);
        assert_eq!(to_us(PeerState::Fresh, 6), Verdict::OtherServers);
        assert_eq!(to_us(PeerState::Joining, 6), Verdict::Accepted);
    }

    #[test]
    fn the_dialer_checks_too() {
        let own = member(9, PeerState::Member);
        let answer = |id, cluster| Answer {
            verdict: Verdict::Accepted,
            id,
            about: about(cluster, PeerState::Member, 5),
        };
        assert_eq!(answer(2, 9).judge(&own, 2), Verdict::Accepted);
        assert_eq!(answer(3, 9).judge(&own, 2), Verdict::OtherMember);
        assert_eq!(answer(2, 8).judge(&own, 2), Verdict::OtherCluster);
    }
}
