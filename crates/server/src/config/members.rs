//! Who the members are and which of them this one is: `server.N` lines, `myid` and what depends on them.

use std::path::Path;

use quenda_tree::ensemble::Server;

use super::remark::{ConfigError, Remark};
use super::resolve::Reader;
use super::{file, hierarchy};

/// ZooKeeper's words, and what to do.
pub(super) const NO_ID: &str = "myid file is missing: write N of this member's server.N line into the file myid in dataDir, or give --my-id N";

/// Letters of a wrong host name that are shown.
const SHOWN_HOST: usize = 64;

/// What the settings say about members.
pub(super) struct Members {
    /// See [`super::ServerConfig::my_id`].
    pub(super) my_id: u64,
    /// This member's line, if it has one; a member that runs alone may have one too.
    pub(super) own: Option<Server>,
    /// See [`super::ServerConfig::ensemble`].
    pub(super) ensemble: Vec<Server>,
    /// See [`super::ServerConfig::observer`].
    pub(super) observer: bool,
    /// See [`super::ServerConfig::quorum_listen`].
    pub(super) quorum_listen: Vec<(Option<String>, u16)>,
    /// See [`super::ServerConfig::init_limit`].
    pub(super) init_limit: u32,
    /// See [`super::ServerConfig::sync_limit`].
    pub(super) sync_limit: u32,
}

/// Reads the lines and `myid`. `given` is the id from the command line.
///
/// # Errors
/// Lines that make no ensemble, an id that is missing or wrong, limits that are missing.
pub(super) fn resolve(
    reader: &mut Reader<'_>,
    given: Option<u64>,
    data_dir: &Path,
) -> Result<Members, ConfigError> {
    demand_algorithm(reader)?;
    let servers = servers(reader)?;
    hierarchy::resolve(reader, &servers)?;
    let of_the_key = peer_type(reader)?;
    let distributed = is_distributed(reader, &servers)?;
    let fallback = match servers.as_slice() {
        [only] if !distributed => only.id,
        _ => 1,
    };
    let id = match given {
        Some(id) => Some(id),
        None => read_my_id(&data_dir.join("myid"))?,
    };
    if !distributed {
        let my_id = checked(id.unwrap_or(fallback))?;
        return Ok(Members {
            my_id,
            own: servers.into_iter().find(|server| server.id == my_id),
            ensemble: Vec::new(),
            observer: false,
            quorum_listen: Vec::new(),
            init_limit: 0,
            sync_limit: 0,
        });
    }
    let (init_limit, sync_limit) = (limit(reader, "initLimit")?, limit(reader, "syncLimit")?);
    let my_id = checked(id.ok_or(ConfigError::invalid(NO_ID))?)?;
    let own = servers.iter().find(|server| server.id == my_id).cloned();
    let own = own.ok_or_else(|| {
        ConfigError::invalid(format!(
            "My id {my_id} not in the peer list: no line is for server.{my_id}"
        ))
    })?;
    remark_peer_type(reader, of_the_key, own.observer);
    Ok(Members {
        my_id,
        observer: own.observer,
        quorum_listen: quorum_listen(&own, reader.strict_bool("quorumListenOnAllIPs")?),
        own: Some(own),
        ensemble: servers,
        init_limit,
        sync_limit,
    })
}

/// The lines, by rising id.
pub(super) fn servers(reader: &mut Reader<'_>) -> Result<Vec<Server>, ConfigError> {
    let lines = reader.settings.family("server.");
    let servers = lines.map(|(id, value)| {
        Server::parse(id, value).map_err(|error| ConfigError::invalid(error.to_string()))
    });
    let mut servers = servers.collect::<Result<Vec<_>, _>>()?;
    servers.sort_by_key(|server| server.id);
    if let Some(pair) = servers.windows(2).find(|pair| pair[0].id == pair[1].id) {
        return Err(ConfigError::invalid(format!(
            "server.{} stands twice",
            pair[0].id
        )));
    }
    for server in &servers {
        checked(server.id)?;
        remark_host(reader, server);
    }
    if !reader.strict_bool("multiAddress.enabled")?
        && let Some(server) = servers.iter().find(|server| server.addresses.len() > 1)
    {
        return Err(ConfigError::invalid(format!(
            "Multiple address feature is disabled, but multiple addresses were specified for sid {}",
            server.id
        )));
    }
    Ok(servers)
}

/// Without one of several members an ensemble works, so this is no reason not to start.
fn remark_host(reader: &mut Reader<'_>, server: &Server) {
    if let Some(host) = server.impossible_host() {
        let shown: String = host.chars().take(SHOWN_HOST).collect();
        reader.remarks.push(Remark::warn(format!(
            "server.{}: {shown} cannot be the name of a host: nobody reaches the member by it",
            server.id
        )));
    }
}

pub(super) fn demand_algorithm(reader: &Reader<'_>) -> Result<(), ConfigError> {
    match reader.strict("electionAlg")? {
        3 => Ok(()),
        _ => Err(ConfigError::invalid(
            "Invalid electionAlg value. Only 3 is supported.",
        )),
    }
}

/// Whether the lines make an ensemble. A single voter is one only if `standaloneEnabled` says so; else it runs alone.
pub(super) fn is_distributed(
    reader: &mut Reader<'_>,
    servers: &[Server],
) -> Result<bool, ConfigError> {
    let standalone_enabled = reader.strict_bool("standaloneEnabled")?;
    let voters = servers.iter().filter(|server| !server.observer).count();
    let observers = servers.len() - voters;
    let refusal = match (voters, standalone_enabled) {
        (0, false) => Some("standaloneEnabled = false then number of participants should be >0"),
        (0, true) if observers > 0 => {
            Some("Observers w/o participants is an invalid configuration")
        }
        (1, true) if observers > 0 => Some("Observers w/o quorum is an invalid configuration"),
        _ => None,
    };
    if let Some(text) = refusal {
        return Err(ConfigError::invalid(text));
    }
    let distributed = !standalone_enabled || voters > 1;
    if distributed && voters <= 2 {
        reader.remarks.push(Remark::warn(
            "No server failure will be tolerated. You need at least 3 servers.",
        ));
    } else if distributed && voters % 2 == 0 {
        reader.remarks.push(Remark::warn(
            "Non-optimal configuration, consider an odd number of servers.",
        ));
    }
    Ok(distributed)
}

/// A limit in ticks, without which an ensemble does not start.
pub(super) fn limit(reader: &Reader<'_>, name: &str) -> Result<u32, ConfigError> {
    if reader.settings.get(name).is_none() {
        return Err(ConfigError::invalid(format!("{name} is not set")));
    }
    match reader.strict_count(name)? {
        0 => Err(ConfigError::invalid(format!("{name} is not set"))),
        ticks => Ok(ticks),
    }
}

/// Whether `peerType` says observer; `None` if it is not set.
fn peer_type(reader: &Reader<'_>) -> Result<Option<bool>, ConfigError> {
    let Some(text) = reader.settings.get("peerType") else {
        return Ok(None);
    };
    match text.to_ascii_lowercase().as_str() {
        "participant" => Ok(Some(false)),
        "observer" => Ok(Some(true)),
        _ => Err(ConfigError::invalid(format!(
            "Unrecognised peertype: {text}"
        ))),
    }
}

fn remark_peer_type(reader: &mut Reader<'_>, of_the_key: Option<bool>, of_the_line: bool) {
    let name = |observer| if observer { "OBSERVER" } else { "PARTICIPANT" };
    if let Some(of_the_key) = of_the_key.filter(|of_the_key| *of_the_key != of_the_line) {
        reader.remarks.push(Remark::warn(format!(
            "Peer type from servers list ({}) doesn't match peerType ({}). Defaulting to servers list.",
            name(of_the_line),
            name(of_the_key)
        )));
    }
}

/// Where the member of this line listens for the others: on its hosts, or on all addresses (`None`).
pub(crate) fn quorum_listen(own: &Server, on_all: bool) -> Vec<(Option<String>, u16)> {
    let addresses = own.addresses.iter();
    let mut listen: Vec<_> = addresses
        .map(|address| {
            let host = (!on_all && !is_wildcard(&address.host)).then(|| address.host.clone());
            (host, address.quorum_port)
        })
        .collect();
    listen.sort();
    listen.dedup();
    listen
}

/// Whether an address stands for all of them.
pub(crate) fn is_wildcard(address: &str) -> bool {
    matches!(address, "0.0.0.0" | "::" | "[::]" | "*")
}

/// The id is the first byte of session ids: 0, and what marks containers and TTL znodes, cannot be one.
fn checked(id: u64) -> Result<u64, ConfigError> {
    if matches!(id, 1..=0x7f | 0x81..=0xfe) {
        return Ok(id);
    }
    Err(ConfigError::invalid(format!(
        "serverid {id} cannot number sessions: use 1 to 127 or 129 to 254"
    )))
}

/// The id in a `myid` file, `None` if there is no file. Only the first line counts, and it must be a bare number.
pub(super) fn read_my_id(path: &Path) -> Result<Option<u64>, ConfigError> {
    let text = match file::read(path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(ConfigError::unreadable(path, error)),
    };
    let line = text.lines().next().unwrap_or_default();
    line.parse()
        .map(Some)
        .map_err(|_| ConfigError::invalid(format!("serverid {line} is not a number")))
}
