//! `group.N` and `weight.N`: hierarchical quorums, as far as they come to a plain majority.

use std::collections::BTreeMap;

use quenda_tree::ensemble::Server;

use super::remark::{ConfigError, Remark};
use super::resolve::Reader;

/// Sets of voters that are looked at one by one: those of so many servers at most.
const VOTERS_MAX: usize = 16;

/// Groups of servers and what each of their votes weighs.
#[derive(Debug, Default)]
struct Hierarchy {
    /// Server → group.
    groups: BTreeMap<u64, i64>,
    /// Server → weight, where a line gives one.
    weights: BTreeMap<u64, i64>,
}

/// Reads the lines. Without any, the majority counts.
///
/// # Errors
/// A line is wrong, a server that votes is in no group or in two, or there would be other quorums than the majorities.
pub(super) fn resolve(reader: &mut Reader<'_>, servers: &[Server]) -> Result<(), ConfigError> {
    let hierarchy = Hierarchy::read(reader)?;
    if hierarchy.is_empty() {
        return Ok(());
    }
    let voters = servers.iter().filter(|server| !server.observer);
    let voters: Vec<u64> = voters.map(|server| server.id).collect();
    hierarchy.demand_all(&voters)?;
    if let Some(odd) = hierarchy.odd_one(&voters) {
        return Err(ConfigError::invalid(format!(
            "group.N and weight.N: hierarchical quorums are not there, more than half of the servers that vote is a quorum; by \
             these lines {odd}. Take the lines away if a plain majority will do"
        )));
    }
    reader.remarks.push(Remark::info(
        "the lines group.N and weight.N come to what counts without them: a majority of the servers that vote",
    ));
    Ok(())
}

impl Hierarchy {
    fn read(reader: &Reader<'_>) -> Result<Hierarchy, ConfigError> {
        let mut hierarchy = Hierarchy::default();
        for (rest, value) in reader.settings.family("group") {
            let group = number("group", rest, after_dot(rest))?;
            for server in value.split(':') {
                let server = number("group", rest, server)?.unsigned_abs();
                if hierarchy.groups.insert(server, group).is_some() {
                    return Err(ConfigError::invalid(format!(
                        "Server {server}is in multiple groups"
                    )));
                }
            }
        }
        for (rest, value) in reader.settings.family("weight") {
            let server = number("weight", rest, after_dot(rest))?.unsigned_abs();
            let weight = number("weight", rest, value)?;
            hierarchy.weights.insert(server, weight);
        }
        Ok(hierarchy)
    }

    fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.weights.is_empty()
    }

    /// Every server that votes is in a group, and nobody else is.
    fn demand_all(&self, voters: &[u64]) -> Result<(), ConfigError> {
        if let Some(alone) = voters.iter().find(|voter| !self.groups.contains_key(voter)) {
            return Err(ConfigError::invalid(format!(
                "Server {alone}is not in a group"
            )));
        }
        match self.groups.keys().find(|server| !voters.contains(server)) {
            Some(other) if !voters.is_empty() => Err(ConfigError::invalid(format!(
                "a group line names server {other}, which is no server that votes"
            ))),
            _ => Ok(()),
        }
    }

    fn weight(&self, server: u64) -> i64 {
        self.weights.get(&server).copied().unwrap_or(1)
    }

    /// What tells these quorums from the majorities, in words; `None` if nothing does.
    fn odd_one(&self, voters: &[u64]) -> Option<String> {
        if voters.len() > VOTERS_MAX {
            let first = |server: &u64| (self.groups.get(server), self.weight(*server));
            let alike = voters.iter().all(|voter| first(voter) == first(&voters[0]));
            let is_plain = alike && self.weight(voters[0]) > 0;
            return (!is_plain).then(|| "there are others".to_owned());
        }
        let sets = 0..1_u32 << voters.len();
        let members = |set: u32| -> Vec<u64> {
            let present = voters.iter().enumerate();
            let present = present.filter(|(place, _)| set & 1 << place != 0);
            present.map(|(_, voter)| *voter).collect()
        };
        sets.map(members).find_map(|set| {
            let is_majority = set.len() * 2 > voters.len();
            match (self.is_quorum(&set), is_majority) {
                (true, false) => Some(format!("{set:?} would be one too")),
                (false, true) => Some(format!("{set:?} would be none")),
                _ => None,
            }
        })
    }

    /// As ZooKeeper counts: more than half of the groups that weigh anything, each by more than half of its weight.
    fn is_quorum(&self, set: &[u64]) -> bool {
        let mut groups: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
        for (server, group) in &self.groups {
            let (present, whole) = groups.entry(*group).or_default();
            let weight = self.weight(*server);
            *whole = whole.saturating_add(weight);
            if set.contains(server) {
                *present = present.saturating_add(weight);
            }
        }
        groups.retain(|_, (_, whole)| *whole != 0);
        let reached = groups
            .values()
            .filter(|(present, whole)| *present > *whole / 2)
            .count();
        reached > groups.len() / 2
    }
}

/// `group.1` and `groups.of.mine.1` are alike to ZooKeeper: what follows the first dot counts.
fn after_dot(rest: &str) -> &str {
    rest.split_once('.').map_or("", |(_, number)| number)
}

fn number(family: &str, rest: &str, text: &str) -> Result<i64, ConfigError> {
    let number = text.parse().ok();
    number.ok_or_else(|| {
        ConfigError::invalid(format!(
            "{family}{rest}: {text:?} is not a number; the lines are group.N=1:2:3, of the ids of servers, and weight.N=1"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    type Groups<'a> = &'a [&'a [u64]];
    type Weights<'a> = &'a [(u64, i64)];

    fn odd_one(groups: Groups<'_>, weights: Weights<'_>) -> Option<String> {
        let mut hierarchy = Hierarchy::default();
        for (group, servers) in groups.iter().enumerate() {
            let servers = servers.iter().map(|server| (*server, group as i64));
            hierarchy.groups.extend(servers);
        }
        hierarchy.weights.extend(weights.iter().copied());
        let voters: Vec<u64> = hierarchy.groups.keys().copied().collect();
        hierarchy.odd_one(&voters)
    }

    #[test]
    fn groups_and_weights_that_come_to_a_majority_are_known() {
        let equal: Vec<(u64, i64)> = (1..=5).map(|server| (server, 7)).collect();
        let plain: [(Groups<'_>, Weights<'_>); 6] = [
            (&[&[1, 2, 3]], &[]),
            (&[&[1, 2, 3, 4, 5]], &equal),
            (&[&[1, 2, 3, 4]], &[]),
            (&[&[1], &[2], &[3]], &[]),
            (&[&[1, 2, 3]], &[(1, 3), (2, 2), (3, 2)]),
            (&[&[1]], &[]),
        ];
        for (groups, weights) in plain {
            assert_eq!(odd_one(groups, weights), None, "{groups:?} {weights:?}");
        }
        let many: Vec<u64> = (1..=20).collect();
        assert_eq!(odd_one(&[&many], &[]), None);
    }

    #[test]
    fn others_are_told_by_an_example() {
        let others: [(Groups<'_>, Weights<'_>, &str); 5] = [
            (&[&[1, 2, 3]], &[(1, 3)], "[1] would be one too"),
            (&[&[1, 2, 3]], &[(3, 0)], "[1, 3] would be none"),
            (
                &[&[1, 2, 3], &[4, 5, 6], &[7, 8, 9]],
                &[],
                "[1, 2, 4, 5] would be one too",
            ),
            (&[&[1, 2], &[3]], &[], "[1, 2] would be none"),
            (
                &[&[1, 2, 3]],
                &[(1, 0), (2, 0), (3, 0)],
                "[1, 2] would be none",
            ),
        ];
        for (groups, weights, odd) in others {
            assert_eq!(odd_one(groups, weights).as_deref(), Some(odd), "{groups:?}");
        }
        let many: Vec<u64> = (1..=20).collect();
        assert!(odd_one(&[&many[..10], &many[10..]], &[]).is_some());
        assert!(odd_one(&[&many], &[(7, 2)]).is_some());
    }
}
