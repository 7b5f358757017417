//! What the answers mean.

use std::collections::BTreeMap;

use quenda_server::status::{Disk, MemberStatus, Role, Service};

use super::{Health, Report, Row};

/// Entries by which a member may lag before it is worth a sentence: the answers are not of one moment.
const LAG_TOLERATED: u64 = 1000;

/// Sentences and how bad they are.
#[derive(Default)]
struct Findings {
    worst: Option<Health>,
    sentences: Vec<String>,
}

impl Findings {
    fn add(&mut self, health: Health, sentence: String) {
        self.worst = self.worst.max(Some(health));
        self.sentences.push(sentence);
    }
}

/// Puts the report together.
pub(super) fn judge(mut rows: Vec<Row>) -> Report {
    let leader = leader(&rows).cloned();
    let followed = followed(&rows);
    let cluster = match &leader {
        Some(leader) => leader.cluster.clone(),
        None => most_common_cluster(&rows),
    };
    for row in &mut rows {
        row.lag = lag(row.status.as_ref(), leader.as_ref());
    }
    let mut findings = Findings::default();
    lead(&rows, leader.as_ref(), followed, &mut findings);
    for row in &rows {
        look_at(row, cluster.as_ref(), &mut findings);
    }
    if let Some(leader) = &leader {
        look_for_servers(&rows, leader, &mut findings);
        count_voters(&rows, leader, &mut findings);
    }
    compare_digests(&rows, &mut findings);
    Report {
        health: findings.worst.unwrap_or(Health::Healthy),
        problems: findings.sentences,
        cluster,
        leader: leader.map(|leader| leader.member).or(followed),
        members: rows,
    }
}

fn statuses(rows: &[Row]) -> impl Iterator<Item = &MemberStatus> {
    rows.iter().filter_map(|row| row.status.as_ref())
}

fn claims_to_lead(status: &MemberStatus) -> bool {
    matches!(status.role, Role::Leader | Role::Standalone)
        && matches!(status.service, Service::Serving | Service::LeadsOnly)
}

/// Of those that say they lead, the one of the newest term.
fn leader(rows: &[Row]) -> Option<&MemberStatus> {
    let leaders = statuses(rows).filter(|status| claims_to_lead(status));
    leaders.max_by_key(|status| status.term)
}

/// Whom a member that serves follows, if that one does not answer itself: its address may not be known here.
fn followed(rows: &[Row]) -> Option<u64> {
    let serving = statuses(rows).filter(|status| status.service == Service::Serving);
    let leader = serving.max_by_key(|status| status.term)?.leader?;
    let answers = statuses(rows).any(|status| status.member == leader);
    (!answers).then_some(leader)
}

fn most_common_cluster(rows: &[Row]) -> Option<String> {
    let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
    for cluster in statuses(rows).filter_map(|status| status.cluster.as_ref()) {
        *counts.entry(cluster).or_default() += 1;
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    most.map(|(cluster, _)| cluster.clone())
}

fn lag(status: Option<&MemberStatus>, leader: Option<&MemberStatus>) -> Option<u64> {
    let (status, leader) = (status?, leader?);
    let same = status.cluster == leader.cluster;
    same.then(|| leader.log.committed.saturating_sub(status.log.applied))
}

fn lead(
    rows: &[Row],
    leader: Option<&MemberStatus>,
    followed: Option<u64>,
    findings: &mut Findings,
) {
    if statuses(rows).next().is_none() {
        return findings.add(Health::Down, "no member answers".to_owned());
    }
    let Some(leader) = leader else {
        if let Some(followed) = followed {
            let sentence =
                format!("member {followed} leads, as its followers say, but gives no answer here");
            return findings.add(Health::Degraded, sentence);
        }
        let sentence =
            "nobody leads: writes are not served until a majority of the voters is connected";
        return findings.add(Health::Down, sentence.to_owned());
    };
    for other in statuses(rows).filter(|status| claims_to_lead(status)) {
        if other.member != leader.member && other.cluster == leader.cluster {
            let text = format!(
                "member {} believes to lead in term {}, but member {} leads in term {}",
                other.member, other.term, leader.member, leader.term
            );
            findings.add(Health::Degraded, text);
        }
    }
}

fn look_at(row: &Row, cluster: Option<&String>, findings: &mut Findings) {
    let name = name(row);
    let mut add = |sentence: String| findings.add(Health::Degraded, format!("{name} {sentence}"));
    if let Some(error) = &row.error {
        return add(format!("cannot be reached: {error}"));
    }
    let Some(status) = &row.status else {
        return;
    };
    if let Some(own) = status.cluster.as_ref().filter(|own| Some(*own) != cluster) {
        return add(format!("belongs to another cluster, {own}"));
    }
    if let Some(sentence) = disk_trouble(&status.disk) {
        return add(sentence.to_owned());
    }
    match status.role {
        Role::Waiting => add(
            "is in no ensemble yet: it waits for others to found one with, or for reconfig to add it"
                .to_owned(),
        ),
        Role::Joining => add("does not vote yet: it is catching up".to_owned()),
        Role::Candidate => add("looks for a leader".to_owned()),
        // Its service says it.
        Role::Removed => {}
        Role::Standalone | Role::Leader | Role::Follower | Role::Observer => {}
    }
    match status.service {
        Service::Serving | Service::LeadsOnly => {}
        // It has nothing to serve.
        Service::NoQuorum if status.role == Role::Waiting => {}
        Service::ReadOnly => add("has no quorum and serves reads alone".to_owned()),
        Service::NoQuorum => add("does not serve clients".to_owned()),
        Service::Removed => add("was taken out of the ensemble; stop it".to_owned()),
        Service::Alarmed => add(
            "has a state that differs from the others' and does not serve: stop it, empty its data directory, start it"
                .to_owned(),
        ),
    }
    if let Some(lag) = row.lag.filter(|lag| *lag > LAG_TOLERATED) {
        add(format!("lags by {lag} log entries"));
    }
    if status.disk.full {
        add("has a disk that is nearly full: writes that need room are refused".to_owned());
    }
    if status.disk.failing {
        add("cannot write to its disk".to_owned());
    }
}

/// What the disk does to the whole member: the rest follows from it.
fn disk_trouble(disk: &Disk) -> Option<&'static str> {
    if disk.rolled_back {
        Some(
            "has data older than what it has confirmed, as of an old copy, and cannot go on: stop it, empty its data directory, start it",
        )
    } else if disk.hanging && disk.failing {
        Some("cannot write to its disk: it serves nobody until it can")
    } else if disk.hanging {
        Some("has a disk that does not answer: it serves nobody until it does")
    } else {
        None
    }
}

/// A leader that leaves clients to others needs one that serves them.
fn look_for_servers(rows: &[Row], leader: &MemberStatus, findings: &mut Findings) {
    let serves = |status: &MemberStatus| {
        status.service == Service::Serving && status.cluster == leader.cluster
    };
    if leader.service != Service::LeadsOnly || statuses(rows).any(serves) {
        return;
    }
    // One that does not answer here may serve all the same.
    let health = match rows.iter().any(|row| row.status.is_none()) {
        true => Health::Degraded,
        false => Health::Down,
    };
    let sentence = format!(
        "no member that answers serves clients: member {} leads and leaves them to others (leaderServes=no)",
        leader.member
    );
    findings.add(health, sentence);
}

/// Who is a participant by the configuration, but does not vote yet by the leader's log: to stop another one
/// meanwhile may cost the quorum.
fn count_voters(rows: &[Row], leader: &MemberStatus, findings: &mut Findings) {
    let participants = leader.servers.iter().filter(|server| !server.observer);
    for server in participants.filter(|server| !leader.membership.voters.contains(&server.id)) {
        let said =
            statuses(rows).any(|status| status.member == server.id && status.role == Role::Joining);
        if !said {
            let sentence = format!("member {} does not vote yet", server.id);
            findings.add(Health::Degraded, sentence);
        }
    }
}

/// How a sentence calls a member.
fn name(row: &Row) -> String {
    match (row.id, &row.address) {
        (Some(id), Some(address)) => format!("member {id} ({address})"),
        (Some(id), None) => format!("member {id}"),
        (None, Some(address)) => address.clone(),
        (None, None) => "a member".to_owned(),
    }
}

/// Members that have applied the same entries must be equal.
fn compare_digests(rows: &[Row], findings: &mut Findings) {
    let mut first: BTreeMap<(&Option<String>, u64), &MemberStatus> = BTreeMap::new();
    for status in statuses(rows).filter(|status| status.cluster.is_some()) {
        let other = *first
            .entry((&status.cluster, status.log.applied))
            .or_insert(status);
        if other.digest != status.digest {
            let text = format!(
                "members {} and {} differ at log entry {}: {} and {}",
                other.member, status.member, status.log.applied, other.digest, status.digest
            );
            findings.add(Health::Degraded, text);
        }
    }
}
