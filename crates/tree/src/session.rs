//! Sessions and their passwords.

use std::collections::{BTreeMap, BTreeSet};

use hmac::{Hmac, Mac};
use quenda_proto::connect::PASSWORD_LEN;
use sha2::Sha256;

use crate::node::NodeId;

/// One session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Negotiated timeout in milliseconds.
    pub timeout_ms: i32,
    /// Counts the connections that the session has had; requests of an earlier one are refused.
    pub generation: u64,
    /// Came from a ZooKeeper, whose password for it is taken as well.
    pub(crate) imported: bool,
    pub(crate) ephemerals: BTreeSet<NodeId>,
    /// Length of their paths together.
    pub(crate) path_bytes: usize,
}

impl Session {
    pub(crate) fn new(timeout_ms: i32, generation: u64) -> Session {
        Session {
            timeout_ms,
            generation,
            imported: false,
            ephemerals: BTreeSet::new(),
            path_bytes: 0,
        }
    }

    /// Number of ephemeral znodes that the session owns.
    pub fn ephemeral_count(&self) -> usize {
        self.ephemerals.len()
    }
}

/// All sessions.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    pub(crate) by_id: BTreeMap<i64, Session>,
    /// Rows to write or delete in the next checkpoint.
    pub(crate) changed: BTreeSet<i64>,
    pub(crate) newest: NewestSessions,
}

/// The newest session that each member ever opened. It outlives the session, so that no id is used
/// twice whatever a member's clock does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NewestSessions(BTreeMap<u64, i64>);

impl NewestSessions {
    /// A session was opened. What was there before, if that changed.
    pub(crate) fn opened(&mut self, id: i64) -> Option<Option<i64>> {
        let before = self.of(member_of(id));
        let is_newer = before.is_none_or(|before| (id as u64) > before as u64);
        is_newer.then(|| self.0.insert(member_of(id), id))
    }

    pub(crate) fn of(&self, member: u64) -> Option<i64> {
        self.0.get(&member).copied()
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = i64> {
        self.0.values().copied()
    }
}

/// The member that opened a session: the high byte of its id.
fn member_of(id: i64) -> u64 {
    id as u64 >> 56
}

/// The identity of a cluster and the secret of its passwords.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Cluster {
    pub(crate) id: u64,
    pub(crate) secret: [u8; 32],
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cluster({:#x})", self.id)
    }
}

fn mac(secret: &[u8; 32], purpose: &[u8], session: i64) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("any key length will do");
    mac.update(purpose);
    mac.update(&session.to_be_bytes());
    mac
}

/// Whose passwords. A session of one kind cannot be resumed as one of the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Sessions of the cluster, and those that may become such.
    Replicated,
    /// Sessions that one member keeps for itself while it has no quorum.
    Local,
}

impl Scope {
    fn purpose(self) -> &'static [u8] {
        match self {
            Scope::Replicated => b"session password",
            Scope::Local => b"local session password",
        }
    }
}

/// The password of a session: a keyed hash of its id, so that nothing has to be stored.
pub(crate) fn password(secret: &[u8; 32], scope: Scope, session: i64) -> [u8; PASSWORD_LEN] {
    let mut password = [0; PASSWORD_LEN];
    let full = mac(secret, scope.purpose(), session)
        .finalize()
        .into_bytes();
    password.copy_from_slice(&full[..PASSWORD_LEN]);
    password
}

/// Compares in constant time.
pub(crate) fn is_password(
    secret: &[u8; 32],
    scope: Scope,
    session: i64,
    presented: &[u8; PASSWORD_LEN],
) -> bool {
    mac(secret, scope.purpose(), session)
        .verify_truncated_left(presented)
        .is_ok()
}

/// The password that ZooKeeper gives a session: what Java's `Random` yields from its id. Everybody who knows
/// the id can compute it.
pub(crate) fn zookeeper_password(session: i64) -> [u8; PASSWORD_LEN] {
    const SECRET: u64 = 0xB341_5C00;
    const MULTIPLIER: u64 = 0x5_DEEC_E66D;
    const MASK: u64 = (1 << 48) - 1;
    let mut state = (session as u64 ^ SECRET ^ MULTIPLIER) & MASK;
    let mut password = [0; PASSWORD_LEN];
    for part in password.chunks_exact_mut(4) {
        state = state.wrapping_mul(MULTIPLIER).wrapping_add(0xB) & MASK;
        part.copy_from_slice(&((state >> 16) as u32).to_le_bytes());
    }
    password
}

/// Seed of the hash tables, unknown to clients.
pub(crate) fn table_seed(secret: &[u8; 32]) -> u64 {
    let full = mac(secret, b"table seed", 0).finalize().into_bytes();
    full[..8]
        .iter()
        .fold(0, |seed, byte| seed << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a ZooKeeper gave it.
    #[test]
    fn the_password_of_a_zookeeper() {
        let password = zookeeper_password(0x0100_0029_2946_0000);
        let expected = 0x5884_e071_059b_3451_f64a_49bd_5637_f875_u128;
        assert_eq!(password, expected.to_be_bytes());
    }

    #[test]
    fn only_the_right_password_of_the_right_session_is_taken() {
        let secret = [7; 32];
        let good = password(&secret, Scope::Replicated, 5);
        let check = |secret: &[u8; 32], session, presented: &[u8; PASSWORD_LEN]| {
            is_password(secret, Scope::Replicated, session, presented)
        };
        assert!(check(&secret, 5, &good));
        assert!(!check(&secret, 6, &good));
        assert!(!check(&[8; 32], 5, &good));
        let mut bad = good;
        bad[15] ^= 1;
        assert!(!check(&secret, 5, &bad));
        assert!(!check(&secret, 5, &[0; PASSWORD_LEN]));
        let local = password(&secret, Scope::Local, 5);
        assert!(!check(&secret, 5, &local));
        assert!(is_password(&secret, Scope::Local, 5, &local));
        assert!(!is_password(&secret, Scope::Local, 5, &good));
    }
}
