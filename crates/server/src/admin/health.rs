//! Answers for probes and load balancers. They wait for no lock that clients hold, and for no disk.

use super::Admin;
use super::json::{Fields, Json, field};
use crate::ensemble_view::Trouble;
use crate::served::Served;

/// An answer: 200 or 503, and why.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Health {
    pub(super) good: bool,
    pub(super) fields: Fields,
}

/// `/health/live`: the process answers. A member without a quorum or with a bad disk does: to start it again would not
/// help.
pub(super) fn live() -> Health {
    Health {
        good: true,
        fields: vec![field("status", "alive"), field("reason", Json::Null)],
    }
}

/// `/health/ready`: this member serves clients.
pub(super) fn ready(admin: &Admin) -> Health {
    let reason = trouble(admin).or_else(|| {
        let is_spared = admin.shared.served() == Served::NobodyAsLeader;
        is_spared.then(|| "this member leads and serves no clients (leaderServes=no)".to_owned())
    });
    told("ready", "not ready", reason)
}

/// `/health/leader`: this member is well, and orders the writes.
pub(super) fn leader(admin: &Admin) -> Health {
    let reason = trouble(admin).or_else(|| {
        let view = admin.shared.ensemble.read();
        match (view.leads_since_ms, view.leader) {
            (Some(_), _) => None,
            (None, Some(leader)) => Some(format!("member {leader} leads")),
            (None, None) => Some("there is no leader".to_owned()),
        }
    });
    told("leader", "not the leader", reason)
}

fn told(good: &str, bad: &str, reason: Option<String>) -> Health {
    Health {
        good: reason.is_none(),
        fields: vec![
            field("status", if reason.is_none() { good } else { bad }),
            field("reason", reason),
        ],
    }
}

/// Why the member is not what it is meant to be.
fn trouble(admin: &Admin) -> Option<String> {
    let view = admin.shared.ensemble.read();
    let reason = match (view.trouble, admin.shared.served()) {
        (Some(Trouble::Removed), _) => "this member was taken out of the ensemble",
        (Some(Trouble::Alarmed), _) => {
            "this member's state differs from that of the others; see its log"
        }
        _ if view.disk_hangs => "the disk does not answer",
        _ if view.rolled_back => "this member's data is older than what it has confirmed",
        _ if admin.shared.is_log_failing() => "the log cannot be written",
        (None, Served::All | Served::NobodyAsLeader) => return None,
        (None, Served::Readers) => "there is no quorum; only reads are served",
        (None, Served::Nobody) if view.membership.voters.is_empty() => {
            "this member is starting, or waits for the others"
        }
        (None, Served::Nobody) => "there is no quorum",
    };
    Some(reason.to_owned())
}
