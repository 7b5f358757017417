//! The commands by their names.

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    ConnectionStatReset,
    Configuration,
    Connections,
    Hash,
    Dirs,
    Dump,
    Environment,
    GetTraceMask,
    InitialConfiguration,
    IsReadOnly,
    LastSnapshot,
    Leader,
    Monitor,
    ObserverConnectionStatReset,
    Observers,
    Restore,
    Ruok,
    ServerStats,
    SetTraceMask,
    ShedConnections,
    Snapshot,
    StatReset,
    Stats,
    SystemProperties,
    Top,
    TransferLeadership,
    VotingView,
    Watches,
    WatchesByPath,
    WatchSummary,
    ZabState,
}

/// A command's names, the first one being the proper one.
pub(super) const COMMANDS: &[(Command, &[&str])] = &[
    (Command::Configuration, &["configuration", "conf", "config"]),
    (
        Command::ConnectionStatReset,
        &["connection_stat_reset", "crst"],
    ),
    (Command::Connections, &["connections", "cons"]),
    (Command::Dirs, &["dirs"]),
    (Command::Dump, &["dump"]),
    (Command::Environment, &["environment", "env", "envi"]),
    (Command::GetTraceMask, &["get_trace_mask", "gtmk"]),
    (Command::Hash, &["hash"]),
    (
        Command::InitialConfiguration,
        &["initial_configuration", "icfg"],
    ),
    (Command::IsReadOnly, &["is_read_only", "isro"]),
    (Command::LastSnapshot, &["last_snapshot", "lsnp"]),
    (Command::Leader, &["leader", "lead"]),
    (Command::Monitor, &["monitor", "mntr"]),
    (
        Command::ObserverConnectionStatReset,
        &["observer_connection_stat_reset", "orst"],
    ),
    (Command::Observers, &["observers", "obsr"]),
    (Command::Restore, &["restore", "rest"]),
    (Command::Ruok, &["ruok"]),
    (Command::ServerStats, &["server_stats", "srvr"]),
    (Command::SetTraceMask, &["set_trace_mask", "stmk"]),
    (Command::ShedConnections, &["shed_connections", "shed"]),
    (Command::Snapshot, &["snapshot", "snap"]),
    (Command::StatReset, &["stat_reset", "srst"]),
    (Command::Stats, &["stats", "stat"]),
    (Command::SystemProperties, &["system_properties", "sysp"]),
    (Command::Top, &["top"]),
    (Command::TransferLeadership, &["transfer_leadership"]),
    (Command::VotingView, &["voting_view"]),
    (Command::WatchSummary, &["watch_summary", "wchs"]),
    (Command::Watches, &["watches", "wchc"]),
    (Command::WatchesByPath, &["watches_by_path", "wchp"]),
    (Command::ZabState, &["zabstate"]),
];

impl Command {
    /// The command of a name.
    pub(super) fn find(name: &str) -> Option<Command> {
        let mut all = COMMANDS.iter();
        all.find(|(_, names)| names.contains(&name))
            .map(|(command, _)| *command)
    }

    /// Its proper name.
    pub(super) fn name(self) -> &'static str {
        let mut all = COMMANDS.iter();
        all.find(|(command, _)| *command == self)
            .map_or("", |(_, names)| names[0])
    }

    /// Whether it has an answer while the member does not serve.
    pub(super) fn is_always_answered(self) -> bool {
        matches!(
            self,
            Command::Environment
                | Command::GetTraceMask
                | Command::SetTraceMask
                | Command::SystemProperties
                | Command::Top
                | Command::ZabState
        )
    }

    /// Whether only who may do everything with the root may use it.
    pub(super) fn is_guarded(self) -> bool {
        self.is_posted() || self == Command::Snapshot
    }

    /// Whether it is asked for by POST.
    pub(super) fn is_posted(self) -> bool {
        matches!(
            self,
            Command::Restore | Command::ShedConnections | Command::TransferLeadership
        )
    }

    /// Whether the answer is as long as there are connections, sessions, ephemeral znodes or watches.
    pub(super) fn is_listing(self) -> bool {
        matches!(
            self,
            Command::Connections
                | Command::Stats
                | Command::Dump
                | Command::Watches
                | Command::WatchesByPath
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_the_proper_ones_in_order() {
        let names: Vec<&str> = COMMANDS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        let unique: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(unique.len(), names.len());
        let proper: Vec<&str> = COMMANDS.iter().map(|(_, names)| names[0]).collect();
        assert!(proper.is_sorted(), "{proper:?}");
        for (command, names) in COMMANDS {
            for name in *names {
                assert_eq!(Command::find(name), Some(*command));
            }
            assert_eq!(command.name(), names[0]);
        }
        assert_eq!(Command::find("RUOK"), None);
    }
}
