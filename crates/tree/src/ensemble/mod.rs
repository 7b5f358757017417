//! Who the members are: the text that operators write and `/zookeeper/config` holds.

mod change;
mod parse;

use std::collections::BTreeMap;
use std::fmt::{self, Display, Write};

pub use parse::EnsembleError;

/// The members of an ensemble.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ensemble {
    /// zxid of the transaction that made this configuration.
    pub version: i64,
    /// By id.
    servers: BTreeMap<u64, Server>,
}

/// One member, as its `server.N` line says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// The member's id.
    pub id: u64,
    /// Where other members reach it; at least one.
    pub addresses: Vec<PeerAddress>,
    /// Whether it has no vote.
    pub observer: bool,
    /// Host and port for clients, if the line gives them.
    pub client: Option<(String, u16)>,
    /// Host and port for clients that speak TLS, if the line gives them.
    pub secure_client: Option<(String, u16)>,
}

/// Where other members reach a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerAddress {
    /// Name or address, without brackets.
    pub host: String,
    /// Port of the traffic between members.
    pub quorum_port: u16,
    /// Second port of ZooKeeper's lines, always another than the first.
    pub election_port: u16,
}

/// The host that a client address without one stands for.
pub const ANY_HOST: &str = "0.0.0.0";

/// Whether a member can have this id: it is the high byte of the ids of its sessions, whose values 0, 0x80
/// and 0xFF have other meanings.
pub fn is_member_id(id: u64) -> bool {
    matches!(id, 1..=0x7F | 0x81..=0xFE)
}

/// Longest name of a host, in bytes.
const HOST_MAX: usize = 255;

/// Whether a text can be the name of a host or an address. Names of containers have underscores, IPv6 addresses may name
/// their network behind a percent sign.
fn is_host(text: &str) -> bool {
    let is_address = text.contains(':');
    let fits = |byte: u8| match byte {
        b'.' | b'-' | b'_' | b':' => true,
        b'%' => is_address,
        other => other.is_ascii_alphanumeric(),
    };
    let is_named = text.bytes().any(|byte| byte.is_ascii_alphanumeric())
        && !text.starts_with(['.', '-'])
        && !text.contains("..");
    (1..=HOST_MAX).contains(&text.len()) && text.bytes().all(fits) && (is_address || is_named)
}

impl Ensemble {
    /// The members with these ids; of two with the same id the later one counts.
    pub fn new(version: i64, servers: impl IntoIterator<Item = Server>) -> Ensemble {
        let servers = servers
            .into_iter()
            .map(|server| (server.id, server))
            .collect();
        Ensemble { version, servers }
    }

    /// The same members at another version.
    #[must_use]
    pub fn with_version(self, version: i64) -> Ensemble {
        Ensemble { version, ..self }
    }

    /// All members, by id.
    pub fn servers(&self) -> impl ExactSizeIterator<Item = &Server> {
        self.servers.values()
    }

    /// The members that vote, by id.
    pub fn voters(&self) -> impl Iterator<Item = &Server> {
        self.servers().filter(|server| !server.observer)
    }

    /// The members that do not, by id.
    pub fn observers(&self) -> impl Iterator<Item = &Server> {
        self.servers().filter(|server| server.observer)
    }

    /// The member with this id.
    pub fn server(&self, id: u64) -> Option<&Server> {
        self.servers.get(&id)
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        self.servers.len()
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// One `server.N=…` line a member, each with its line end: what a configuration file holds.
    pub fn lines(&self) -> String {
        let mut text = String::new();
        for server in self.servers() {
            // Writing to a String does not fail.
            let _ = writeln!(text, "{}", server.line());
        }
        text
    }

    /// The lines and a last one with the version: the data of `/zookeeper/config`.
    pub fn text(&self) -> String {
        format!("{}version={:x}", self.lines(), self.version)
    }
}

impl Server {
    /// A host of the line that no system can look up, if there is one.
    pub fn impossible_host(&self) -> Option<&str> {
        let peers = self.addresses.iter().map(|address| &address.host);
        let clients = [&self.client, &self.secure_client];
        let clients = clients.into_iter().flatten().map(|(host, _)| host);
        let mut hosts = peers.chain(clients).map(String::as_str);
        hosts.find(|host| !is_host(host))
    }

    /// The whole line, `server.N=` in front.
    pub fn line(&self) -> String {
        format!("server.{}={self}", self.id)
    }
}

/// What stands behind `server.N=`, in ZooKeeper's canonical form.
impl Display for Server {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut addresses: Vec<&PeerAddress> = self.addresses.iter().collect();
        addresses.sort_by(|a, b| a.host.cmp(&b.host));
        for (index, address) in addresses.into_iter().enumerate() {
            if index > 0 {
                out.write_char('|')?;
            }
            let (quorum, election) = (address.quorum_port, address.election_port);
            write!(out, "{}:{quorum}:{election}", Host(&address.host))?;
        }
        out.write_str(match self.observer {
            true => ":observer",
            false => ":participant",
        })?;
        if let Some((host, port)) = &self.client {
            write!(out, ";{}:{port}", Host(host))?;
        }
        if let Some((host, port)) = &self.secure_client {
            if self.client.is_none() {
                out.write_char(';')?;
            }
            write!(out, ";{}:{port}", Host(host))?;
        }
        Ok(())
    }
}

/// A host in front of a port: IPv6 addresses in brackets.
struct Host<'a>(&'a str);

impl Display for Host<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.contains(':') {
            true => write!(out, "[{}]", self.0),
            false => out.write_str(self.0),
        }
    }
}
