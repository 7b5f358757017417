//! The client connections of this member: by id, by session, by address.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use quenda_frontend::{CloseReason, Connection, ConnectionId};
use tokio::sync::Notify;

use crate::limits::STORE_FILES;
use crate::load::Waiting;
use crate::shared::Shared;

/// One connection as the rest of the server reaches it.
#[derive(Debug)]
pub struct Handle {
    /// Its id.
    pub id: ConnectionId,
    /// Address of the client.
    pub peer: SocketAddr,
    /// The port by which the client came.
    pub door: Door,
    /// The protocol's state machine. Lock order: tree, then this, then the watch table.
    pub connection: Mutex<Connection>,
    /// Wakes the connection's task: there is output, or a pause has ended.
    pub wake: Notify,
    /// Set while the task is to be woken at the end of the current batch of applied entries.
    pub marked: AtomicBool,
    /// This connection's part of what waits.
    pub waiting: Waiting,
    /// This connection's part of the [`crate::output_budget::OutputBudget`].
    pub unsent: AtomicUsize,
}

impl Handle {
    /// Closes the connection for a reason from outside.
    pub fn close(&self, reason: CloseReason) {
        self.connection.lock().close(reason);
        self.wake.notify_one();
    }
}

/// Why a new connection is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AdmissionError {
    /// `maxClientCnxns` of this address are open.
    #[error("too many connections from this address (maxClientCnxns is {0})")]
    Address(u32),
    /// `maxCnxns` are open.
    #[error("too many connections (maxCnxns is {0})")]
    Total(u32),
    /// More would take the descriptors that the store needs.
    #[error("too many connections (the limit of open files leaves room for {0})")]
    Files(u32),
}

/// The ports that connections are counted apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// The client port.
    Client,
    /// The client port with TLS.
    Secure,
}

/// A connection that was counted; the count ends with it.
#[derive(Debug)]
pub struct Admitted {
    shared: Arc<Shared>,
    door: Door,
    address: IpAddr,
}

impl Admitted {
    /// Counts a new connection, or refuses it.
    ///
    /// # Errors
    /// A bound is reached.
    pub fn new(
        shared: &Arc<Shared>,
        door: Door,
        address: IpAddr,
    ) -> Result<Admitted, AdmissionError> {
        let config = &shared.config;
        let (of_address, total) = (config.max_client_cnxns, config.max_cnxns);
        shared.registry.admit(door, address, of_address, total)?;
        Ok(Admitted {
            shared: Arc::clone(shared),
            door,
            address,
        })
    }
}

impl Admitted {
    /// The port by which the client came.
    pub fn door(&self) -> Door {
        self.door
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.shared.registry.dismiss(self.door, self.address);
    }
}

const SHARDS: usize = 16;

/// All open connections.
#[derive(Debug)]
pub struct Registry {
    by_id: [Mutex<HashMap<u64, Arc<Handle>>>; SHARDS],
    by_session: Mutex<HashMap<i64, ConnectionId>>,
    by_address: Mutex<[Addresses; 2]>,
    /// Most connections that the limit of open files has room for.
    files_max: u32,
}

#[derive(Debug, Default)]
struct Addresses {
    total: u32,
    of: HashMap<IpAddr, u32>,
}

fn total(doors: &[Addresses; 2]) -> u32 {
    doors.iter().map(|addresses| addresses.total).sum()
}

/// Connections that leave the store enough of `limit` descriptors.
fn connections_for(limit: Option<u64>) -> u32 {
    let room = limit.map_or(u64::MAX, |limit| limit - STORE_FILES.min(limit / 2));
    u32::try_from(room).unwrap_or(u32::MAX)
}

impl Registry {
    /// No connections; `files` is the limit of open files, if there is one.
    pub fn new(files: Option<u64>) -> Registry {
        Registry {
            by_id: Default::default(),
            by_session: Mutex::default(),
            by_address: Mutex::default(),
            files_max: connections_for(files),
        }
    }

    /// Counts a new connection, or refuses it. 0 is no bound.
    fn admit(
        &self,
        door: Door,
        address: IpAddr,
        max_of_address: u32,
        max_total: u32,
    ) -> Result<(), AdmissionError> {
        let mut doors = self.by_address.lock();
        if total(&doors) >= self.files_max {
            return Err(AdmissionError::Files(self.files_max));
        }
        let addresses = &mut doors[door as usize];
        if max_total != 0 && addresses.total >= max_total {
            return Err(AdmissionError::Total(max_total));
        }
        let count = addresses.of.entry(address).or_insert(0);
        if max_of_address != 0 && *count >= max_of_address {
            return Err(AdmissionError::Address(max_of_address));
        }
        *count += 1;
        addresses.total += 1;
        Ok(())
    }

    /// How many connections there may be; `max_total` is the configuration's bound, 0 for none.
    pub fn max(&self, max_total: u32) -> u32 {
        match max_total {
            0 => self.files_max,
            max_total => self.files_max.min(max_total),
        }
    }

    /// A connection that was admitted is gone.
    fn dismiss(&self, door: Door, address: IpAddr) {
        let mut doors = self.by_address.lock();
        let addresses = &mut doors[door as usize];
        addresses.total -= 1;
        if let Some(count) = addresses.of.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                addresses.of.remove(&address);
            }
        }
    }

    fn shard(&self, id: ConnectionId) -> &Mutex<HashMap<u64, Arc<Handle>>> {
        &self.by_id[id.0 as usize % SHARDS]
    }

    /// Makes a connection reachable.
    pub fn insert(&self, handle: Arc<Handle>) {
        self.shard(handle.id).lock().insert(handle.id.0, handle);
    }

    /// The connection with this id, while it is open.
    pub fn get(&self, id: ConnectionId) -> Option<Arc<Handle>> {
        self.shard(id).lock().get(&id.0).cloned()
    }

    /// A connection is closed; its session, if it still is the session's, has none now.
    pub fn remove(&self, id: ConnectionId, session: Option<i64>) {
        self.shard(id).lock().remove(&id.0);
        if let Some(session) = session {
            let mut sessions = self.by_session.lock();
            if sessions.get(&session) == Some(&id) {
                sessions.remove(&session);
            }
        }
    }

    /// A session is now served by this connection; gives the one that served it before.
    pub fn bind(&self, session: i64, id: ConnectionId) -> Option<Arc<Handle>> {
        let before = self.by_session.lock().insert(session, id)?;
        (before != id).then(|| self.get(before)).flatten()
    }

    /// A session has ended; gives the connection that served it.
    pub fn unbind(&self, session: i64) -> Option<Arc<Handle>> {
        let id = self.by_session.lock().remove(&session)?;
        self.get(id)
    }

    /// The connection that serves this session here.
    pub fn of_session(&self, session: i64) -> Option<Arc<Handle>> {
        let id = *self.by_session.lock().get(&session)?;
        self.get(id)
    }

    /// Every open connection.
    pub fn all(&self) -> Vec<Arc<Handle>> {
        let mut all = Vec::new();
        for shard in &self.by_id {
            all.extend(shard.lock().values().cloned());
        }
        all
    }

    /// Number of open sockets.
    pub fn len(&self) -> usize {
        total(&self.by_address.lock()) as usize
    }
}

impl Handle {
    /// Whether the task was not marked for a wake-up yet; marks it.
    pub fn mark(&self) -> bool {
        !self.marked.swap(true, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_counted_and_bounded() {
        let registry = Registry::new(None);
        let address: IpAddr = [127, 0, 0, 1].into();
        assert_eq!(registry.admit(Door::Client, address, 2, 0), Ok(()));
        assert_eq!(registry.admit(Door::Client, address, 2, 0), Ok(()));
        assert_eq!(
            registry.admit(Door::Client, address, 2, 0),
            Err(AdmissionError::Address(2))
        );
        assert_eq!(
            registry.admit(Door::Client, [127, 0, 0, 2].into(), 2, 2),
            Err(AdmissionError::Total(2))
        );
        registry.dismiss(Door::Client, address);
        assert_eq!(registry.admit(Door::Client, address, 2, 0), Ok(()));
        assert_eq!(registry.len(), 2);
    }

    #[test]
    fn the_ports_are_counted_apart_but_share_the_descriptors() {
        let registry = Registry::new(Some(6));
        let address: IpAddr = [127, 0, 0, 1].into();
        let admit = |door| registry.admit(door, address, 1, 0);
        assert_eq!(admit(Door::Client), Ok(()));
        assert_eq!(admit(Door::Secure), Ok(()));
        assert_eq!(admit(Door::Secure), Err(AdmissionError::Address(1)));
        let other = registry.admit(Door::Client, [127, 0, 0, 2].into(), 1, 1);
        assert_eq!(other, Err(AdmissionError::Total(1)));
        let third = registry.admit(Door::Secure, [127, 0, 0, 2].into(), 1, 0);
        assert_eq!((third, registry.len()), (Ok(()), 3));
        assert_eq!(admit(Door::Client), Err(AdmissionError::Files(3)));
    }

    #[test]
    fn the_store_keeps_its_descriptors() {
        let room = |limit| connections_for(Some(limit));
        assert_eq!((room(200), room(1024), room(65_536)), (100, 512, 64_512));
        assert_eq!(connections_for(None), u32::MAX);
        let registry = Registry::new(Some(4));
        let address: IpAddr = [127, 0, 0, 1].into();
        assert_eq!(registry.admit(Door::Client, address, 0, 0), Ok(()));
        assert_eq!(registry.admit(Door::Client, address, 0, 0), Ok(()));
        assert_eq!(
            registry.admit(Door::Client, address, 0, 0),
            Err(AdmissionError::Files(2))
        );
        registry.dismiss(Door::Client, address);
        assert_eq!(registry.admit(Door::Client, address, 0, 0), Ok(()));
    }
}
