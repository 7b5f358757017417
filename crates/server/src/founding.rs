//! What a member of an ensemble starts from when it has no store yet.
//!
//! Its directory may be empty because the ensemble is new, or because the disk was lost. In the second case
//! it has forgotten votes and entries that others count on, so it must not take part before it was fed. It
//! asks the others: whoever belongs to a cluster already proves that there is one to join. Only when a
//! majority of the voters, itself included, knows of none, they found one together.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use quenda_consensus::Recovered;
use quenda_node::PeerState;
use quenda_tree::ensemble::Server;
use tracing::{info, warn};

use crate::limits::{FOUNDING_GRACE, FOUNDING_REPORT};
use crate::neighbours::Neighbours;
use crate::shared::Shared;

/// What the others' answers mean.
#[derive(Debug, PartialEq, Eq)]
enum Finding {
    /// There is a cluster: `0` belongs to it.
    Join(u64),
    /// A majority of the voters knows of none. If true there is nothing to wait for: all voters are here, or another
    /// one has decided already.
    Found(bool),
    /// Too few have answered; that many voters are here.
    Wait(usize),
}

/// Ids of the voters and of the observers that a configuration names.
pub fn roles(servers: &[Server]) -> (Vec<u64>, Vec<u64>) {
    let ids = |observer| {
        let chosen = servers.iter().filter(|server| server.observer == observer);
        let ids: BTreeSet<u64> = chosen.map(|server| server.id).collect();
        ids.into_iter().collect()
    };
    (ids(false), ids(true))
}

fn judge(member: u64, voters: &[u64], seen: &[(u64, PeerState)]) -> Finding {
    let mut here = usize::from(voters.contains(&member));
    let decided = seen.iter().any(|(_, state)| *state == PeerState::Founding);
    for (peer, state) in seen {
        match state {
            PeerState::Member => return Finding::Join(*peer),
            PeerState::Fresh | PeerState::Founding => {
                here += usize::from(voters.contains(peer));
            }
            // It may have been a voter of a cluster that nobody else remembers here.
            PeerState::Joining => {}
        }
    }
    if here > voters.len() / 2 {
        Finding::Found(decided || here == voters.len())
    } else {
        Finding::Wait(here)
    }
}

/// Waits until it is clear what to start from; `None` when the server is told to stop first.
pub fn find_start(shared: &Shared, neighbours: &Neighbours) -> Option<Recovered> {
    const LOOK: Duration = Duration::from_millis(20);
    let (voters, observers) = roles(&shared.config.ensemble);
    neighbours.set_state(PeerState::Fresh);
    let mut report = Instant::now() + FOUNDING_REPORT;
    let grace = Instant::now() + FOUNDING_GRACE;
    loop {
        match judge(shared.member, &voters, &neighbours.seen()) {
            Finding::Join(peer) => {
                info!(
                    peer,
                    "the ensemble exists already: this member starts empty and is fed as soon as its configuration names it (reconfig)"
                );
                neighbours.set_state(PeerState::Joining);
                return Some(Recovered::joining());
            }
            Finding::Found(_) if !shared.config.storage.may_found => {
                if Instant::now() >= report {
                    report += FOUNDING_REPORT;
                    warn!(
                        "db.autocreate=false: this member is empty and founds no ensemble. Put an empty file named initialize \
                         into dataDir on a first start; else it waits for members that have data"
                    );
                }
            }
            Finding::Found(all) if all || Instant::now() >= grace => {
                info!(
                    ?voters,
                    ?observers,
                    "a majority of the voters is here: founding the ensemble"
                );
                neighbours.set_state(PeerState::Founding);
                return Some(Recovered::bootstrap(voters, observers));
            }
            Finding::Wait(here) if Instant::now() >= report => {
                report += FOUNDING_REPORT;
                warn!(
                    here,
                    voters = voters.len(),
                    "waiting for a majority of the voters to found the ensemble with"
                );
            }
            Finding::Found(_) | Finding::Wait(_) => {}
        }
        // Frames that come meanwhile are for a member that does not exist yet; their senders repeat them.
        if shared.inbox.take(Instant::now() + LOOK).stop {
            return None;
        }
        // An inbox that is full of frames does not wait.
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PeerState::{Founding, Fresh, Joining, Member};

    #[test]
    fn a_majority_that_knows_of_no_cluster_founds_one() {
        let voters = [1, 2, 3];
        assert_eq!(judge(1, &voters, &[]), Finding::Wait(1));
        assert_eq!(judge(1, &voters, &[(2, Fresh)]), Finding::Found(false));
        assert_eq!(judge(1, &voters, &[(2, Founding)]), Finding::Found(true));
        assert_eq!(judge(4, &voters, &[(2, Fresh)]), Finding::Wait(1));
        assert_eq!(
            judge(4, &voters, &[(2, Fresh), (3, Fresh)]),
            Finding::Found(false)
        );
        assert_eq!(
            judge(1, &voters, &[(2, Fresh), (3, Fresh)]),
            Finding::Found(true)
        );
        assert_eq!(judge(1, &[1, 2, 3, 4], &[(2, Fresh)]), Finding::Wait(2));
        assert_eq!(judge(1, &[1], &[]), Finding::Found(true));
    }

    #[test]
    fn one_member_of_a_cluster_is_enough_to_join_it() {
        let seen = [(2, Fresh), (3, Member)];
        assert_eq!(judge(1, &[1, 2, 3], &seen), Finding::Join(3));
    }

    #[test]
    fn a_member_that_waits_to_be_fed_does_not_count() {
        assert_eq!(judge(1, &[1, 2, 3], &[(2, Joining)]), Finding::Wait(1));
    }
}
