//! The report as people read it.

use std::fmt::Write as _;

use quenda_server::status::Service;

use super::{Health, Report, Row};

const HEADINGS: [&str; 10] = [
    "member", "role", "service", "address", "zxid", "applied", "lag", "digest", "sessions",
    "clients",
];

/// A line for the ensemble, a line for each member, a line for each problem.
pub(super) fn text(report: &Report) -> String {
    let mut text = heading(report);
    let mut lines = vec![HEADINGS.map(str::to_owned)];
    lines.extend(report.members.iter().map(cells));
    let width = |column: usize| {
        lines
            .iter()
            .map(|cells| cells[column].chars().count())
            .max()
    };
    let widths: Vec<usize> = (0..HEADINGS.len())
        .map(|column| width(column).unwrap_or(0))
        .collect();
    for cells in &lines {
        let mut line = String::new();
        for (cell, &width) in cells.iter().zip(&widths) {
            append(&mut line, format_args!("{cell:<width$}  "));
        }
        append(&mut text, format_args!("{}\n", line.trim_end()));
    }
    for problem in &report.problems {
        append(&mut text, format_args!("! {problem}\n"));
    }
    append(&mut text, format_args!("{}\n", summary(report)));
    text
}

fn heading(report: &Report) -> String {
    let cluster = report.cluster.as_deref().unwrap_or("not known");
    let mut text = format!("cluster {cluster}");
    if let Some(leader) = leading(report) {
        append(
            &mut text,
            format_args!(", term {}, member {} leads", leader.term, leader.member),
        );
        if let Some(version) = &leader.config_version {
            append(&mut text, format_args!(", configuration {version}"));
        }
    }
    text + "\n"
}

fn leading(report: &Report) -> Option<&quenda_server::status::MemberStatus> {
    let statuses = report.members.iter().filter_map(|row| row.status.as_ref());
    statuses
        .into_iter()
        .find(|status| Some(status.member) == report.leader)
}

fn cells(row: &Row) -> [String; 10] {
    let id = row.id.map_or("?".to_owned(), |id| id.to_string());
    let address = row.address.clone().unwrap_or("?".to_owned());
    let Some(status) = &row.status else {
        let mut cells = [(); 10].map(|()| "-".to_owned());
        cells[0] = id;
        cells[2] = "unreachable".to_owned();
        cells[3] = address;
        return cells;
    };
    [
        id,
        word(&status.role),
        word(&status.service),
        address,
        status.zxid.clone(),
        status.log.applied.to_string(),
        row.lag.map_or("-".to_owned(), |lag| lag.to_string()),
        status.digest.clone(),
        status.sessions.to_string(),
        status.connections.to_string(),
    ]
}

/// The word that JSON has for a role or a service.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(_) | Err(_) => "?".to_owned(),
    }
}

fn summary(report: &Report) -> String {
    match report.health {
        Health::Healthy | Health::Degraded => {
            let word = if report.health == Health::Healthy {
                "healthy"
            } else {
                "degraded"
            };
            format!("{word}{}", tolerance(report))
        }
        Health::Down => "down".to_owned(),
    }
}

/// How many more voters may fail.
fn tolerance(report: &Report) -> String {
    let Some(leader) = leading(report).filter(|leader| !leader.membership.voters.is_empty()) else {
        return String::new();
    };
    let voters = &leader.membership.voters;
    let statuses = report.members.iter().filter_map(|row| row.status.as_ref());
    let here: Vec<_> = statuses
        .filter(|status| voters.contains(&status.member) && status.cluster == leader.cluster)
        .collect();
    // An alarmed one serves nobody, but it takes entries and votes.
    let takes_part = here
        .iter()
        .filter(|status| status.service != Service::NoQuorum);
    let spare = takes_part.count().saturating_sub(voters.len() / 2 + 1);
    let here = here.len();
    format!(
        ": {here} of {} voters answer, {spare} of them may fail",
        voters.len()
    )
}

fn append(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments)
        .expect("writing to a String does not fail");
}
