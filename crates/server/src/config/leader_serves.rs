//! Whether the leader of an ensemble serves clients.

use quenda_tree::ensemble::Server;

use super::ServerConfig;
use super::remark::Remark;
use super::resolve::Reader;

/// Reads `leaderServes`. As in ZooKeeper only `no` says no.
pub(super) fn resolve(reader: &mut Reader<'_>, ensemble: &[Server]) -> bool {
    let serves = reader.settings.get_or_default("leaderServes") != "no";
    if serves {
        return true;
    }
    if ensemble.is_empty() {
        let text = "leaderServes=no has no effect on a member that runs alone: it serves clients";
        reader.remarks.push(Remark::info(text));
    } else if ensemble.len() == 1 {
        reader.remarks.push(Remark::warn(
            "leaderServes=no in an ensemble of one member: nobody serves clients until there are more members",
        ));
    }
    false
}

impl ServerConfig {
    /// Whether this member serves no clients while it leads.
    pub fn spares_leader(&self) -> bool {
        !self.leader_serves && !self.ensemble.is_empty()
    }
}
