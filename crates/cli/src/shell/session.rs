//! The session that commands work in.

use quenda_client::Client;

/// One session with the servers of a connect string.
#[derive(Debug, Clone)]
pub struct Session {
    client: Client,
    servers: String,
}

impl Session {
    /// A session over a client that was opened with `servers`.
    pub fn new(client: Client, servers: &str) -> Self {
        Session {
            client,
            servers: servers.to_owned(),
        }
    }

    /// What requests are made with. Paths are those that the user types; a chroot of the connect string is put
    /// in front by the client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The connect string, as it was given.
    pub fn servers(&self) -> &str {
        &self.servers
    }
}
