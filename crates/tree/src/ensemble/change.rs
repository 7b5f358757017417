//! What a reconfig request makes of an ensemble.

use core::net::IpAddr;

use quenda_proto::ErrorCode;
use quenda_proto::records::ReconfigRequest;

use super::parse::parse_id;
use super::{Ensemble, EnsembleError, Server, is_member_id};

impl EnsembleError {
    /// What a client is told: what ZooKeeper fails to read as a number it does not answer as a wrong
    /// argument.
    pub fn code(&self) -> ErrorCode {
        match self {
            EnsembleError::Id(_) | EnsembleError::PortRange(_) | EnsembleError::Version(_) => {
                ErrorCode::MarshallingError
            }
            EnsembleError::Form(_)
            | EnsembleError::Host(_)
            | EnsembleError::Address(_)
            | EnsembleError::SamePorts(_)
            | EnsembleError::PeerType(_)
            | EnsembleError::MixedRoles(_)
            | EnsembleError::Parameter(_)
            | EnsembleError::Entry
            | EnsembleError::NoClientPort
            | EnsembleError::Conflict { .. } => ErrorCode::BadArguments,
        }
    }
}

impl Ensemble {
    /// The ensemble that a request asks for, with the version of this one.
    ///
    /// # Errors
    /// What is wrong with the request's texts.
    pub fn changed(&self, request: &ReconfigRequest<'_>) -> Result<Ensemble, EnsembleError> {
        let mut next = match &request.new_members {
            // Separated by commas or line ends.
            Some(text) => Ensemble::parse(&text.replace(',', "\n"))?,
            None => self.amended(
                request.joining_servers.as_deref(),
                request.leaving_servers.as_deref(),
            )?,
        };
        next.version = self.version;
        self.check_hosts(&next)?;
        Ok(next)
    }

    /// Refuses hosts that nobody can look up, but for those that are members already.
    fn check_hosts(&self, next: &Ensemble) -> Result<(), EnsembleError> {
        let news = next
            .servers()
            .filter(|server| self.server(server.id) != Some(server));
        match news.filter_map(Server::impossible_host).next() {
            Some(host) => Err(EnsembleError::Host(host.to_owned())),
            None => Ok(()),
        }
    }

    fn amended(
        &self,
        joining: Option<&str>,
        leaving: Option<&str>,
    ) -> Result<Ensemble, EnsembleError> {
        let mut next = self.clone();
        for id in list(leaving, ',') {
            next.servers.remove(&parse_id(id)?);
        }
        for entry in list(joining, ',') {
            let server = joiner(entry)?;
            next.servers.remove(&server.id);
            next.check_addresses(&server)?;
            next.servers.insert(server.id, server);
        }
        Ok(next)
    }

    /// Refuses a member with an address of another. Loopback and wildcard addresses mean another machine
    /// for each member, so they never meet.
    fn check_addresses(&self, server: &Server) -> Result<(), EnsembleError> {
        let mine = server.endpoints();
        for other in self.servers() {
            let theirs = other.endpoints();
            if let Some(address) = mine.iter().find(|address| theirs.contains(address)) {
                return Err(EnsembleError::Conflict {
                    address: format!("{}:{}", address.0, address.1),
                    id: server.id,
                    other: other.id,
                });
            }
        }
        Ok(())
    }

    /// Whether all members have ids that a member can have.
    pub(crate) fn has_member_ids(&self) -> bool {
        self.servers().all(|server| is_member_id(server.id))
    }
}

impl Server {
    /// Hosts and ports that tell this member from others.
    fn endpoints(&self) -> Vec<(String, u16)> {
        let peers = self.addresses.iter().flat_map(|address| {
            [address.quorum_port, address.election_port].map(|port| (address.host.as_str(), port))
        });
        let clients = [&self.client, &self.secure_client];
        let clients = clients.into_iter().flatten();
        peers
            .chain(clients.map(|(host, port)| (host.as_str(), *port)))
            .filter(|(host, _)| is_distinct(host))
            .map(|(host, port)| (host.to_ascii_lowercase(), port))
            .collect()
    }
}

fn is_distinct(host: &str) -> bool {
    match host.parse::<IpAddr>() {
        Ok(address) => !address.is_loopback() && !address.is_unspecified(),
        Err(_) => !host.eq_ignore_ascii_case("localhost"),
    }
}

/// One `server.N=…`.
fn joiner(entry: &str) -> Result<Server, EnsembleError> {
    let parts: Vec<&str> = list(Some(entry), '=').collect();
    let [key, value] = parts.as_slice() else {
        return Err(EnsembleError::Entry);
    };
    let id = key.rsplit('.').next().unwrap_or_default();
    let server = Server::parse(id, value)?;
    match server.client.is_some() {
        true => Ok(server),
        false => Err(EnsembleError::NoClientPort),
    }
}

/// The parts of a list that are not blank.
fn list(text: Option<&str>, separator: char) -> impl Iterator<Item = &str> {
    text.unwrap_or_default()
        .split(separator)
        .map(str::trim)
        .filter(|part| !part.is_empty())
}
