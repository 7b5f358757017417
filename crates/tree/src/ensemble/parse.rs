//! Reading the lines, with ZooKeeper's sentences for what is wrong with them.

use super::{ANY_HOST, Ensemble, PeerAddress, Server};

/// What is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnsembleError {
    /// The N of `server.N` or of a list of ids.
    #[error("serverid {0} is not a number")]
    Id(String),
    /// The parts are too few or too many.
    #[error(
        "{0} does not have the form server_config or server_config;client_config where server_config is the pipe \
         separated list of host:port:port or host:port:port:type and client_config is port or host:port"
    )]
    Form(String),
    /// A host is missing, or a port is no number.
    #[error("Address unresolved: {0}")]
    Address(String),
    /// A port above 65535.
    #[error("port out of range:{0}")]
    PortRange(String),
    /// Both peer ports are the same.
    #[error(
        "Client and election port must be different! Please update the configuration file on server.{0}"
    )]
    SamePorts(u64),
    /// Neither participant nor observer.
    #[error("Unrecognised peertype: {0}")]
    PeerType(String),
    /// The addresses of one member disagree.
    #[error("Multiple addresses should have the same role on server.{0}")]
    MixedRoles(u64),
    /// A host that a request gives is none.
    #[error("{0} is no host name")]
    Host(String),
    /// Neither a member nor the version.
    #[error("Unrecognised parameter: {0}")]
    Parameter(String),
    /// The version is no hexadecimal number.
    #[error("version {0} is not a hexadecimal number")]
    Version(String),
    /// An entry of a list of members to join is not of the form `server.N=…`.
    #[error("Wrong format of server string")]
    Entry,
    /// A member that joins names no client address.
    #[error("Wrong format of server string - each server should have 3 ports specified")]
    NoClientPort,
    /// Two members have the same address.
    #[error("{address} of server.{id} conflicts {address} of server.{other}")]
    Conflict {
        /// Host and port.
        address: String,
        /// The member that joins.
        id: u64,
        /// The member that has the address.
        other: u64,
    },
}

impl Server {
    /// Reads what stands behind `server.` and behind `=`:
    /// `addr[|addr…][;[host:]port][;[host:]port]`, where `addr` is
    /// `host:quorumPort:electionPort[:participant|:observer]`. Blanks around the parts are dropped.
    ///
    /// # Errors
    /// What is wrong.
    pub fn parse(id: &str, value: &str) -> Result<Server, EnsembleError> {
        let number = parse_id(id)?;
        let value = value.trim();
        let mut parts = value.split(';').map(str::trim);
        let peers = parts.next().unwrap_or_default();
        let client = parts.next().unwrap_or_default();
        let secure_client = parts.next().unwrap_or_default();
        if parts.next().is_some() {
            return Err(EnsembleError::Form(value.to_owned()));
        }
        let mut addresses = Vec::new();
        let mut role = None;
        for text in peers.split('|') {
            let (address, named) = peer_address(number, text, value)?;
            addresses.push(address);
            if named.is_some() && role.is_some_and(|role| Some(role) != named) {
                return Err(EnsembleError::MixedRoles(number));
            }
            role = role.or(named);
        }
        Ok(Server {
            id: number,
            addresses,
            observer: role.unwrap_or(false),
            client: client_address(client, value)?,
            secure_client: client_address(secure_client, value)?,
        })
    }
}

pub(super) fn parse_id(text: &str) -> Result<u64, EnsembleError> {
    text.parse().map_err(|_| EnsembleError::Id(text.to_owned()))
}

/// Reads one `host:port:port[:type]`; the second part is whether it is named an observer, if a type is
/// named.
fn peer_address(
    id: u64,
    text: &str,
    whole: &str,
) -> Result<(PeerAddress, Option<bool>), EnsembleError> {
    let parts = split_outside_brackets(text);
    let (host, quorum, election, kind) = match parts.as_slice() {
        [host, quorum, election] => (host, quorum, election, None),
        [host, quorum, election, kind] => (host, quorum, election, Some(*kind)),
        _ => return Err(EnsembleError::Form(whole.to_owned())),
    };
    let address = PeerAddress {
        host: host_name(host, quorum)?,
        quorum_port: port(host, quorum)?,
        election_port: port(host, election)?,
    };
    if address.quorum_port == address.election_port {
        return Err(EnsembleError::SamePorts(id));
    }
    Ok((address, kind.map(is_observer).transpose()?))
}

fn is_observer(kind: &str) -> Result<bool, EnsembleError> {
    match kind.to_ascii_lowercase().as_str() {
        "participant" => Ok(false),
        "observer" => Ok(true),
        _ => Err(EnsembleError::PeerType(kind.to_owned())),
    }
}

/// Reads `[host:]port`; nothing from nothing.
fn client_address(text: &str, whole: &str) -> Result<Option<(String, u16)>, EnsembleError> {
    if text.is_empty() {
        return Ok(None);
    }
    let parts = split_outside_brackets(text);
    let (host, number) = match parts.as_slice() {
        [number] => (ANY_HOST, *number),
        [host, number] => (*host, *number),
        _ => return Err(EnsembleError::Form(whole.to_owned())),
    };
    Ok(Some((host_name(host, number)?, port(host, number)?)))
}

/// A host without its brackets. What would break the text of a configuration is refused.
fn host_name(text: &str, port: &str) -> Result<String, EnsembleError> {
    let host = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(text);
    let is_plain = |sign: char| !sign.is_whitespace() && !sign.is_control();
    let is_host = !host.is_empty()
        && host.chars().all(is_plain)
        && !host.contains(['[', ']', '=', ';', '|', ',', '/', '#', '!']);
    match is_host {
        true => Ok(host.to_owned()),
        false => Err(EnsembleError::Address(format!("{text}:{port}"))),
    }
}

fn port(host: &str, text: &str) -> Result<u16, EnsembleError> {
    let number: i64 = text
        .parse()
        .map_err(|_| EnsembleError::Address(format!("{host}:{text}")))?;
    u16::try_from(number).map_err(|_| EnsembleError::PortRange(text.to_owned()))
}

/// Cuts at colons, but not inside the brackets of an IPv6 address. Empty parts at the end do not count.
fn split_outside_brackets(text: &str) -> Vec<&str> {
    let mut inside = false;
    text.trim_end_matches(':')
        .split(|sign: char| {
            inside = (inside || sign == '[') && sign != ']';
            sign == ':' && !inside
        })
        .map(str::trim)
        .collect()
}

impl Ensemble {
    /// Reads a configuration: `server.N=…` lines and perhaps `version=…`, which is 0 otherwise. Of two
    /// lines for the same member the later one counts. Empty lines and comments are left out.
    ///
    /// # Errors
    /// What is wrong.
    pub fn parse(text: &str) -> Result<Ensemble, EnsembleError> {
        let mut ensemble = Ensemble::default();
        for line in text.split('\n').map(str::trim) {
            if line.is_empty() || line.starts_with(['#', '!']) {
                continue;
            }
            let (key, value) = property(line);
            if let Some(id) = key.strip_prefix("server.") {
                let server = Server::parse(id, value)?;
                ensemble.servers.insert(server.id, server);
            } else if key == "version" {
                ensemble.version = i64::from_str_radix(value, 16)
                    .map_err(|_| EnsembleError::Version(value.to_owned()))?;
            } else {
                return Err(EnsembleError::Parameter(key.to_owned()));
            }
        }
        Ok(ensemble)
    }
}

/// Key and value: the key ends at the first `=`, `:` or blank.
fn property(line: &str) -> (&str, &str) {
    let is_blank = |sign: char| sign.is_whitespace();
    let end = line
        .find(|sign| sign == '=' || sign == ':' || is_blank(sign))
        .unwrap_or(line.len());
    let (key, rest) = line.split_at(end);
    let rest = rest.trim_start();
    let value = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (key, value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(value: &str) -> Server {
        Server::parse("1", value).expect(value)
    }

    fn client(value: &str) -> Option<(String, u16)> {
        server(value).client
    }

    fn at(host: &str, port: u16) -> Option<(String, u16)> {
        Some((host.to_owned(), port))
    }

    #[test]
    fn the_forms_of_a_line_are_read() {
        assert_eq!(client("zoo1:2888:3888"), None);
        assert_eq!(client("localhost:2888:3888;2181"), at(ANY_HOST, 2181));
        assert_eq!(
            client("h:1:2:participant;10.0.0.1:2181  "),
            at("10.0.0.1", 2181)
        );
        assert_eq!(
            client("[::1]:1:2;[2001:db8::1]:2181"),
            at("2001:db8::1", 2181)
        );
        assert_eq!(client("a:1:2|b:3:4;5"), at(ANY_HOST, 5));
        assert!(server("h:1:2:OBSERVER").observer);
        let secure = server("h:1:2;;2281");
        assert_eq!(
            (secure.client, secure.secure_client),
            (None, at(ANY_HOST, 2281))
        );
    }

    #[test]
    fn the_canonical_text_is_zookeepers() {
        for (line, text) in [
            ("zoo1:2888:3888", "zoo1:2888:3888:participant"),
            (
                "zoo1:2888:3888;2181",
                "zoo1:2888:3888:participant;0.0.0.0:2181",
            ),
            ("[::1]:1:2:observer;[::]:5", "[::1]:1:2:observer;[::]:5"),
            ("b:3:4|a:1:2;5", "a:1:2|b:3:4:participant;0.0.0.0:5"),
            ("h:1:2;;h:7", "h:1:2:participant;;h:7"),
            ("h:1:2;6;7", "h:1:2:participant;0.0.0.0:6;0.0.0.0:7"),
        ] {
            assert_eq!(server(line).to_string(), text);
            assert_eq!(server(text).to_string(), text, "it reads its own text");
        }
    }

    #[test]
    fn a_wrong_line_is_refused_in_zookeepers_words() {
        let refusal = |id, value| Server::parse(id, value).expect_err(value).to_string();
        assert_eq!(refusal("x", "h:1:2"), "serverid x is not a number");
        for value in [
            "h:1",
            "h:1:2:participant:3",
            "h:1:2;a:b:c",
            "h:1:2;3;4;5",
            "",
        ] {
            assert!(
                refusal("1", value)
                    .starts_with(&format!("{value} does not have the form server_config")),
                "{value}"
            );
        }
        assert_eq!(
            refusal("3", "h:1:1"),
            "Client and election port must be different! Please update the configuration file on server.3"
        );
        assert_eq!(refusal("1", "h:1:2:voter"), "Unrecognised peertype: voter");
        assert_eq!(refusal("1", "h:1:seven"), "Address unresolved: h:seven");
        assert_eq!(refusal("1", ":1:2"), "Address unresolved: :1");
        assert_eq!(refusal("1", "h:1:70000"), "port out of range:70000");
        assert_eq!(refusal("1", "a\nb:1:2"), "Address unresolved: a\nb:1");
        assert!(refusal("1", "a:1:2:observer|b:1:2:participant").contains("same role"));
    }

    #[test]
    fn a_configuration_is_read_and_written() {
        let text =
            "server.1=a:1:2:participant;0.0.0.0:3\nserver.12=b:1:2:observer\nversion=1a00000000";
        let ensemble = Ensemble::parse(text).expect("a configuration");
        assert_eq!(ensemble.version, 0x1a_0000_0000);
        assert_eq!(ensemble.text(), text);
        assert_eq!(
            ensemble
                .voters()
                .map(|server| server.id)
                .collect::<Vec<_>>(),
            [1]
        );
        assert_eq!(
            ensemble
                .observers()
                .map(|server| server.id)
                .collect::<Vec<_>>(),
            [12]
        );
        let loose =
            "# comment\n\nserver.12 : b:1:2:observer\n server.1 = x:7:8\nserver.1=a:1:2;3\n";
        let read = Ensemble::parse(loose).expect("a configuration");
        assert_eq!((read.version, read.lines()), (0, ensemble.lines()));
        let refusal = |text| Ensemble::parse(text).expect_err(text).to_string();
        assert_eq!(
            refusal("clientPort=1"),
            "Unrecognised parameter: clientPort"
        );
        assert_eq!(
            refusal("version=x"),
            "version x is not a hexadecimal number"
        );
    }
}
