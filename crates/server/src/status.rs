//! What a member tells about itself: the answer to the four-letter word `qsta`, in JSON.
//!
//! Numbers that may exceed 53 bits are text, so that any reader of JSON keeps them whole: zxids and digests
//! in hexadecimal with `0x`, the cluster's id too.

use serde::{Deserialize, Serialize};

/// One member's state at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberStatus {
    /// Version of the program.
    pub version: String,
    /// The member's id.
    pub member: u64,
    /// Id of the cluster; none before the member belongs to one.
    pub cluster: Option<String>,
    /// The member's part.
    pub role: Role,
    /// Who is served.
    pub service: Service,
    /// Term of the log.
    pub term: u64,
    /// The leader of that term, if known.
    pub leader: Option<u64>,
    /// The last applied zxid.
    pub zxid: String,
    /// Digest of everything applied. Members with the same `log.applied` have the same one.
    pub digest: String,
    /// Where the member stands in the log.
    pub log: Log,
    /// Sessions of the cluster, as far as applied.
    pub sessions: u64,
    /// Clients connected with this member.
    pub connections: u64,
    /// Their requests that are not answered.
    pub outstanding: u64,
    /// Znodes, the root counted once.
    pub znodes: u64,
    /// Time since the process started, ms.
    pub uptime_ms: u64,
    /// What is wrong with the disk.
    pub disk: Disk,
    /// The members that the log counts.
    pub membership: Membership,
    /// The other members as this one sees them.
    pub peers: Vec<Peer>,
    /// Version of the replicated configuration, in hexadecimal without `0x`; none for a member that runs alone.
    pub config_version: Option<String>,
    /// The members that it names.
    pub servers: Vec<ConfiguredServer>,
}

/// A member as the replicated configuration names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfiguredServer {
    /// The member's id.
    pub id: u64,
    /// Its `server.N` line.
    pub line: String,
    /// Whether it has no vote.
    pub observer: bool,
    /// Where clients reach it, `host:port`, if the line says it; a line that names all addresses means the host for
    /// members.
    pub client: Option<String>,
}

/// A member's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Runs alone.
    Standalone,
    /// Orders the writes.
    Leader,
    /// Votes and follows.
    Follower,
    /// Follows without a vote.
    Observer,
    /// Is meant to vote and does not yet: it is being fed.
    Joining,
    /// Looks for a leader.
    Candidate,
    /// Waits for others to found the ensemble with, or to be taken in.
    Waiting,
    /// Was taken out of the ensemble.
    Removed,
}

/// Who is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    /// All clients.
    Serving,
    /// Clients that ask for no more than reading.
    ReadOnly,
    /// Nobody: there is no quorum, or the member has just started.
    NoQuorum,
    /// Nobody, as it is configured: the member leads, and leaves clients to the others. It is well.
    LeadsOnly,
    /// Nobody: the member was taken out of the ensemble.
    Removed,
    /// Nobody: the member's state differs from that of the others.
    Alarmed,
}

/// Indices of log entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Log {
    /// The newest one.
    pub last: u64,
    /// The newest one on this member's disk.
    pub persisted: u64,
    /// The newest one known to be committed.
    pub committed: u64,
    /// The newest one in the tree.
    pub applied: u64,
}

/// What is wrong with the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// Growth is refused for lack of room.
    pub full: bool,
    /// The log cannot be written at present.
    pub failing: bool,
    /// It does not answer: the log stands still.
    pub hanging: bool,
    /// It holds less than the member has confirmed to others: an old copy, or a disk that lost what it had synced.
    pub rolled_back: bool,
}

/// Ids of members.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    /// Those that vote.
    pub voters: Vec<u64>,
    /// Those that vote until the present change is through.
    pub outgoing_voters: Vec<u64>,
    /// Those that do not vote.
    pub learners: Vec<u64>,
}

/// Another member as this one sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// The member.
    pub id: u64,
    /// Whether it votes.
    pub voter: bool,
    /// Newest entry on its disk; only a leader knows.
    pub matched: Option<u64>,
    /// Newest entry in its tree, as it said last.
    pub applied: u64,
    /// Its last applied zxid, as it said last.
    pub zxid: String,
    /// Time since it was heard, ms; none if it never was.
    pub heard_ms_ago: Option<u64>,
    /// The snapshot that it fetches, by the index of its last log entry.
    pub fetching: Option<u64>,
}

impl MemberStatus {
    /// One line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("names and numbers always have a form in JSON")
    }
}

/// How zxids, digests and ids of clusters are written.
pub fn hex(number: u64) -> String {
    format!("{number:#x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_is_one_line_that_can_be_read_back() {
        let status = MemberStatus {
            version: "0.1.0".to_owned(),
            member: 2,
            cluster: Some(hex(u64::MAX)),
            role: Role::Leader,
            service: Service::NoQuorum,
            term: 7,
            leader: None,
            zxid: hex(0x1_0000_0001),
            digest: hex(0),
            log: Log::default(),
            sessions: 1,
            connections: 2,
            outstanding: 3,
            znodes: 4,
            uptime_ms: 5,
            disk: Disk::default(),
            membership: Membership::default(),
            peers: vec![Peer {
                id: 3,
                voter: true,
                matched: None,
                applied: 8,
                zxid: hex(7),
                heard_ms_ago: Some(6),
                fetching: Some(9),
            }],
            config_version: Some("100000000".to_owned()),
            servers: vec![ConfiguredServer {
                id: 3,
                line: "server.3=h:1:2:observer".to_owned(),
                observer: true,
                client: None,
            }],
        };
        let text = status.to_json();
        assert!(!text.contains('\n'));
        for part in [
            r#""cluster":"0xffffffffffffffff""#,
            r#""role":"leader""#,
            r#""service":"no-quorum""#,
            r#""zxid":"0x100000001""#,
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let read: MemberStatus = serde_json::from_str(&text).expect("it is JSON");
        assert_eq!(read, status);
    }
}
