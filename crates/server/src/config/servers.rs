//! The `server.N` lines: who the members are.

/// What a `server.N` line says that matters to a cluster of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServerLine {
    /// The member's id.
    pub(super) id: u64,
    /// Whether the member has no vote.
    pub(super) observer: bool,
    /// The address for clients, host and port, if the line gives one.
    pub(super) client: Option<(String, u16)>,
}

/// The host that a line without one stands for.
pub(super) const ANY: &str = "0.0.0.0";

/// Reads `server.ID = addr[|addr…][;[host:]port][;[host:]port]`, where `addr` is
/// `host:quorumPort:electionPort[:participant|:observer]`.
///
/// # Errors
/// What is wrong with the line, as a sentence.
pub(super) fn parse(id: &str, value: &str) -> Result<ServerLine, String> {
    let id = id
        .parse::<u64>()
        .map_err(|_| format!("serverid {id} is not a number"))?;
    let mut parts = value.split(';').map(str::trim);
    let mut observer = None;
    for address in parts.next().unwrap_or_default().split('|') {
        let is_observer = member_address(id, address)?;
        if observer
            .replace(is_observer)
            .is_some_and(|before| before != is_observer)
        {
            return Err(format!(
                "server.{id}: all addresses must be of one type, participant or observer"
            ));
        }
    }
    let client = parts
        .next()
        .filter(|text| !text.is_empty())
        .map(|text| client_address(id, text))
        .transpose()?;
    Ok(ServerLine {
        id,
        observer: observer.unwrap_or(false),
        client,
    })
}

/// Checks one `host:quorumPort:electionPort[:type]`; the answer is whether it is an observer's.
fn member_address(id: u64, address: &str) -> Result<bool, String> {
    let parts = split_outside_brackets(address);
    let (quorum, election, kind) = match parts.as_slice() {
        [_, quorum, election] => (quorum, election, "participant"),
        [_, quorum, election, kind] => (quorum, election, *kind),
        _ => {
            return Err(format!(
                "{address} does not have the form server_config or server_config;client_config where server_config \
                 is the pipe separated list of host:port:port or host:port:port:type and client_config is port or \
                 host:port"
            ));
        }
    };
    if port(id, quorum)? == port(id, election)? {
        return Err(format!(
            "Client and election port must be different! Please update the configuration file on server.{id}"
        ));
    }
    match kind.to_ascii_lowercase().as_str() {
        "participant" => Ok(false),
        "observer" => Ok(true),
        _ => Err(format!("Unrecognised peertype: {kind}")),
    }
}

/// Reads `[host:]port`.
fn client_address(id: u64, text: &str) -> Result<(String, u16), String> {
    match split_outside_brackets(text).as_slice() {
        [number] => Ok((ANY.to_owned(), port(id, number)?)),
        [host, number] => Ok((host.trim_matches(['[', ']']).to_owned(), port(id, number)?)),
        _ => Err(format!(
            "server.{id}: the client address {text} is not of the form [host:]port"
        )),
    }
}

fn port(id: u64, text: &str) -> Result<u16, String> {
    text.parse()
        .map_err(|_| format!("server.{id}: {text} is not a port"))
}

/// Cuts at colons, but not inside the brackets of an IPv6 address.
fn split_outside_brackets(text: &str) -> Vec<&str> {
    let mut inside = false;
    text.split(|sign: char| {
        inside = (inside || sign == '[') && sign != ']';
        sign == ':' && !inside
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client_of(value: &str) -> Option<(String, u16)> {
        parse("1", value).expect(value).client
    }

    #[test]
    fn the_forms_of_a_line_are_read() {
        assert_eq!(client_of("zoo1:2888:3888"), None);
        assert_eq!(
            client_of("localhost:2888:3888;2181"),
            Some((ANY.to_owned(), 2181))
        );
        assert_eq!(
            client_of("h:1:2:participant;10.0.0.1:2181  "),
            Some(("10.0.0.1".to_owned(), 2181))
        );
        assert_eq!(
            client_of("[::1]:1:2;[2001:db8::1]:2181"),
            Some(("2001:db8::1".to_owned(), 2181))
        );
        assert_eq!(
            client_of("h:1:2;;2281"),
            None,
            "only a secure client address"
        );
        assert_eq!(client_of("a:1:2|b:3:4;5"), Some((ANY.to_owned(), 5)));
        assert!(parse("7", "h:1:2:OBSERVER").expect("an observer").observer);
        assert_eq!(parse("7", "h:1:2").map(|line| line.id), Ok(7));
    }

    #[test]
    fn a_wrong_line_is_refused_in_zookeepers_words() {
        let refusal = |id, value| parse(id, value).expect_err(value);
        assert_eq!(refusal("x", "h:1:2"), "serverid x is not a number");
        assert!(refusal("1", "h:1").contains("does not have the form server_config"));
        assert!(
            refusal("1", "h:1:2:participant:3").contains("does not have the form server_config")
        );
        assert_eq!(
            refusal("3", "h:1:1"),
            "Client and election port must be different! Please update the configuration file on server.3"
        );
        assert_eq!(refusal("1", "h:1:2:voter"), "Unrecognised peertype: voter");
        assert_eq!(refusal("1", "h:1:seven"), "server.1: seven is not a port");
        assert!(refusal("1", "a:1:2:observer|b:1:2").contains("one type"));
        assert!(refusal("1", "h:1:2;a:b:c").contains("[host:]port"));
    }
}
