//! What requests say about members, by a table: nothing is parsed but the lists.

use std::collections::BTreeMap;

use quenda_proto::ErrorCode;
use quenda_proto::records::ReconfigRequest;

/// What stands behind `server.N=` in the configuration.
pub type Servers = BTreeMap<u64, &'static str>;

/// A member that a request can name: its text, and what becomes of it.
pub struct Line {
    pub text: &'static str,
    /// As it stands in the configuration, or why a request that names it fails.
    pub server: Result<(u64, &'static str), ErrorCode>,
    /// Whether it names a client address.
    pub client: bool,
    /// Addresses that no other member may have.
    pub addresses: &'static [&'static str],
}

const fn line(
    text: &'static str,
    id: u64,
    canonical: &'static str,
    addresses: &'static [&'static str],
) -> Line {
    Line {
        text,
        server: Ok((id, canonical)),
        client: true,
        addresses,
    }
}

const fn wrong(text: &'static str, code: ErrorCode) -> Line {
    Line {
        text,
        server: Err(code),
        client: true,
        addresses: &[],
    }
}

pub const LINES: [Line; 13] = [
    line(
        "server.1=a:1:2;3",
        1,
        "a:1:2:participant;0.0.0.0:3",
        &["a:1", "a:2"],
    ),
    line(
        "server.2=b:1:2:participant;3",
        2,
        "b:1:2:participant;0.0.0.0:3",
        &["b:1", "b:2"],
    ),
    line(
        "server.3=c:1:2;c:3",
        3,
        "c:1:2:participant;c:3",
        &["c:1", "c:2", "c:3"],
    ),
    line(
        "server.3=c:3:1:observer;8",
        3,
        "c:3:1:observer;0.0.0.0:8",
        &["c:3", "c:1"],
    ),
    line(
        "server.4=c:3:4:participant;5",
        4,
        "c:3:4:participant;0.0.0.0:5",
        &["c:3", "c:4"],
    ),
    line(
        "server.4=127.0.0.1:1:2;3",
        4,
        "127.0.0.1:1:2:participant;0.0.0.0:3",
        &[],
    ),
    line(
        "server.5=localhost:1:2;3",
        5,
        "localhost:1:2:participant;0.0.0.0:3",
        &[],
    ),
    line(
        "server.128=d:1:2:observer;3",
        128,
        "d:1:2:observer;0.0.0.0:3",
        &["d:1", "d:2"],
    ),
    Line {
        text: "server.6=e:1:2",
        server: Ok((6, "e:1:2:participant")),
        client: false,
        addresses: &["e:1", "e:2"],
    },
    wrong("server.x=a:1:2;3", ErrorCode::MarshallingError),
    wrong("server.7=a:1:2:voter;3", ErrorCode::BadArguments),
    wrong("server.7=a:1:70000;3", ErrorCode::MarshallingError),
    wrong("server.7=a:1:1;3", ErrorCode::BadArguments),
];

fn find(text: &str) -> &'static Line {
    LINES
        .iter()
        .find(|line| line.text == text)
        .expect("a line of the table")
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', '\n'])
        .map(str::trim)
        .filter(|part| !part.is_empty())
}

/// The members that a configuration names.
pub fn whole(text: &str) -> Result<Servers, ErrorCode> {
    parts(text).map(|part| find(part).server).collect()
}

pub fn amended(mut servers: Servers, request: &ReconfigRequest<'_>) -> Result<Servers, ErrorCode> {
    for part in parts(request.leaving_servers.as_deref().unwrap_or_default()) {
        let id = part.parse().map_err(|_| ErrorCode::MarshallingError)?;
        servers.remove(&id);
    }
    for part in parts(request.joining_servers.as_deref().unwrap_or_default()) {
        let line = find(part);
        let (id, canonical) = line.server?;
        let is_taken = |(other, server): (&u64, &&'static str)| {
            let theirs = LINES
                .iter()
                .find(|line| line.server == Ok((*other, *server)))
                .expect("a line of the table");
            *other != id
                && theirs
                    .addresses
                    .iter()
                    .any(|mine| line.addresses.contains(mine))
        };
        if !line.client || servers.iter().any(is_taken) {
            return Err(ErrorCode::BadArguments);
        }
        servers.insert(id, canonical);
    }
    Ok(servers)
}
