//! Whom a member serves, and why nobody where that is by choice.

use quenda_frontend::ServiceMode;

/// Whom the member serves at its client ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// All clients.
    All,
    /// Those that ask for no more than reading: there is no quorum.
    Readers,
    /// Nobody: there is no quorum, or the member has no part in it.
    Nobody,
    /// Nobody, as it leads, and `leaderServes=no` leaves the clients to the other members. Whoever does not come through
    /// a client port finds a member that is well.
    NobodyAsLeader,
}

impl Served {
    /// Whom a member serves that has a quorum.
    pub fn with_quorum(leads: bool, spares_leader: bool) -> Served {
        if leads && spares_leader {
            Served::NobodyAsLeader
        } else {
            Served::All
        }
    }

    /// What its clients see of it.
    pub fn mode(self) -> ServiceMode {
        match self {
            Served::All => ServiceMode::Serving,
            Served::Readers => ServiceMode::ReadOnly,
            Served::Nobody | Served::NobodyAsLeader => ServiceMode::NotServing,
        }
    }

    /// Whether the member takes part in a quorum.
    pub fn has_quorum(self) -> bool {
        matches!(self, Served::All | Served::NobodyAsLeader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_leader_that_is_spared_serves_nobody_beside_a_quorum() {
        assert_eq!(Served::with_quorum(false, false), Served::All);
        assert_eq!(Served::with_quorum(true, false), Served::All);
        assert_eq!(Served::with_quorum(false, true), Served::All);
        let spared = Served::with_quorum(true, true);
        assert_eq!(spared, Served::NobodyAsLeader);
        assert_eq!(spared.mode(), ServiceMode::NotServing);
        assert!(
            spared.has_quorum() && !Served::Nobody.has_quorum() && !Served::Readers.has_quorum()
        );
    }
}
