//! What a server says of its load, as lines for people.

use quenda_server::load::{Hot, Load, LoadReport};

use super::output::terminal_height;
use super::{Paint, words};

/// Lines of a report that are no rows of tables.
const FRAME: usize = 12;
/// Tables whose number of rows is limited.
const TABLES: usize = 5;
/// Columns of figures in front of a name.
const FIGURES: usize = 60;

/// By what rows are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// Number of requests.
    Requests,
    /// Bytes in both directions.
    Bytes,
    /// Mean latency.
    Latency,
}

impl Key {
    /// By its name.
    pub fn parse(text: &str) -> Option<Key> {
        match text {
            "requests" => Some(Key::Requests),
            "bytes" => Some(Key::Bytes),
            "latency" => Some(Key::Latency),
            _ => None,
        }
    }

    fn of(self, load: &Load) -> f64 {
        match self {
            Key::Requests => load.requests as f64,
            Key::Bytes => (load.bytes_in + load.bytes_out) as f64,
            Key::Latency => load.latency_mean_ms,
        }
    }
}

/// Room for a report.
#[derive(Debug)]
pub struct Screen {
    rows: usize,
    width: usize,
}

impl Screen {
    /// Room for each of some reports; on a terminal of so many columns the rows become so few that they all fit.
    pub fn new(reports: usize, rows: usize, terminal: Option<usize>) -> Screen {
        let Some(width) = terminal else {
            return Screen {
                rows,
                width: usize::MAX,
            };
        };
        let lines = terminal_height() / reports.max(1);
        let fitting = (lines.saturating_sub(FRAME) / TABLES).max(2);
        Screen {
            rows: rows.min(fitting),
            width,
        }
    }

    fn cut(&self, line: String) -> String {
        match line.char_indices().nth(self.width) {
            Some((end, _)) => line[..end].to_owned(),
            None => line,
        }
    }
}

/// A report.
pub fn lines(server: &str, report: &LoadReport, key: Key, screen: &Screen) -> Vec<(Paint, String)> {
    let mut page = Page {
        lines: Vec::new(),
        seconds: (report.window_ms as f64 / 1000.0).max(1.0),
        key,
        screen,
    };
    page.head(server, report);
    let clients = report.clients.iter();
    page.table("client", clients.map(|row| (row.name.clone(), &row.load)));
    let sessions = report.sessions.iter();
    page.table(
        "session",
        sessions.map(|row| (format!("{} {}", row.session, row.client), &row.load)),
    );
    let prefixes = report.prefixes.iter();
    page.table("below", prefixes.map(|row| (row.name.clone(), &row.load)));
    let operations = report.operations.iter();
    page.table(
        "operation",
        operations.map(|row| (row.name.clone(), &row.load)),
    );
    page.hot(&report.hot);
    page.remarks(report);
    let lines = page.lines.into_iter();
    lines
        .map(|(paint, line)| (paint, screen.cut(line)))
        .collect()
}

struct Page<'a> {
    lines: Vec<(Paint, String)>,
    seconds: f64,
    key: Key,
    screen: &'a Screen,
}

impl Page<'_> {
    fn push(&mut self, paint: Paint, line: String) {
        self.lines.push((paint, line));
    }

    fn head(&mut self, server: &str, report: &LoadReport) {
        let totals = &report.totals;
        let load = &totals.load;
        self.push(
            Paint::Strong,
            format!(
                "{server}  member {}  last {:.0} s  {} connections, {} requests under way",
                report.member, self.seconds, totals.connections, totals.outstanding
            ),
        );
        self.push(
            Paint::Data,
            format!(
                "{:.1} requests/s  {}/s in  {}/s out  {:.1} events/s  latency {:.2} ms, longest {} ms",
                self.rate(load.requests),
                self.amount(load.bytes_in),
                self.amount(load.bytes_out),
                self.rate(totals.events),
                load.latency_mean_ms,
                load.latency_max_ms
            ),
        );
        if report.sampled != "1/1" {
            self.push(
                Paint::Dim,
                format!(
                    "paths: one request of {} was looked at",
                    report.sampled.trim_start_matches("1/")
                ),
            );
        }
    }

    fn rate(&self, count: u64) -> f64 {
        count as f64 / self.seconds
    }

    fn amount(&self, bytes: u64) -> String {
        words::bytes(self.rate(bytes) as u64)
    }

    fn table<'a>(&mut self, name: &str, rows: impl Iterator<Item = (String, &'a Load)>) {
        let mut rows: Vec<(String, &Load)> = rows.filter(|(_, load)| load.requests > 0).collect();
        if rows.is_empty() {
            return;
        }
        rows.sort_by(|(_, one), (_, other)| self.key.of(other).total_cmp(&self.key.of(one)));
        let more = rows.len().saturating_sub(self.screen.rows);
        rows.truncate(self.screen.rows);
        self.push(
            Paint::Strong,
            format!(
                "{:>12}{:>14}{:>14}{:>10}{:>8}  {name}{}",
                "requests/s",
                "in/s",
                "out/s",
                "mean ms",
                "max",
                match more {
                    0 => String::new(),
                    more => format!(" (and {more} more)"),
                }
            ),
        );
        for (name, load) in rows {
            let figures = format!(
                "{:>12.1}{:>14}{:>14}{:>10.2}{:>8}",
                self.rate(load.requests),
                self.amount(load.bytes_in),
                self.amount(load.bytes_out),
                load.latency_mean_ms,
                load.latency_max_ms,
            );
            self.push(Paint::Data, format!("{figures:FIGURES$}{name}"));
        }
    }

    fn hot(&mut self, hot: &Hot) {
        let rows = self.screen.rows;
        let mut lines = Vec::new();
        for (verb, znodes) in [("read", &hot.read), ("written", &hot.written)] {
            for row in znodes.iter().take(rows) {
                let who = row.client.as_deref().unwrap_or("?");
                let rate = self.rate(row.requests);
                lines.push(format!("{rate:>12.1}  {verb:8}{}  last by {who}", row.path));
            }
        }
        for row in hot.watched.iter().take(rows) {
            lines.push(format!("{:>12}  {:8}{}", row.watchers, "watched", row.path));
        }
        if lines.is_empty() {
            return;
        }
        self.push(
            Paint::Strong,
            format!("{:>12}  hot znodes (watched: by how many)", "per second"),
        );
        for line in lines {
            self.push(Paint::Data, line);
        }
    }

    /// What an operator should look at.
    fn remarks(&mut self, report: &LoadReport) {
        let rows = self.screen.rows;
        for misuse in report.misuse.iter().take(rows) {
            let line = format!(
                "! {} at {}: {}, where {} is much; by {}, {} ago",
                misuse.kind.name(),
                misuse.path,
                misuse.value,
                misuse.limit,
                misuse.client.as_deref().unwrap_or("?"),
                ago(misuse.ms_ago)
            );
            self.push(Paint::Bad, line);
        }
        for herd in report.herds.iter().take(rows) {
            let line = format!(
                "! herd: a change of {} woke {} watchers, {} ago",
                herd.path,
                herd.watchers,
                ago(herd.ms_ago)
            );
            self.push(Paint::Bad, line);
        }
        for slow in report.slow.iter().take(rows) {
            let line = format!(
                "! slow: {} {} took {} ms ({} waiting, {} being committed); by {}, {} ago",
                slow.operation,
                slow.path,
                slow.total_ms,
                slow.queue_ms,
                slow.commit_ms,
                slow.client,
                ago(slow.ms_ago)
            );
            self.push(Paint::Bad, line);
        }
    }
}

fn ago(millis: u64) -> String {
    words::age(i64::try_from(millis).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> LoadReport {
        let load = |requests: u64, bytes: u64, mean: f64| {
            format!(
                "\"requests\":{requests},\"bytes_in\":{bytes},\"bytes_out\":0,\"latency_mean_ms\":{mean},\
                 \"latency_max_ms\":9,\"latency\":[]"
            )
        };
        let row = |name: &str, load: String| {
            format!("{{\"name\":\"{name}\",{load},\"missed_at_most\":0}}")
        };
        let text = format!(
            "{{\"member\":2,\"time_ms\":0,\"window_ms\":60000,\"totals\":{{{},\"events\":60,\"event_bytes\":0,\
             \"outstanding\":4,\"connections\":3}},\"sampled\":\"1/8\",\"latency_bounds_ms\":[],\"table_max\":9,\
             \"clients\":[{},{},{}],\"sessions\":[],\"prefixes\":[],\"operations\":[],\
             \"hot\":{{\"read\":[],\"written\":[{{\"path\":\"/q\",\"requests\":600,\"bytes\":0,\"session\":null,\
             \"client\":\"10.0.0.9:1\",\"missed_at_most\":0}}],\"watched\":[]}},\"misuse\":[],\
             \"herds\":[{{\"path\":\"/h\",\"watchers\":700,\"ms_ago\":3000}}],\"slow\":[],\
             \"counts\":{},\"thresholds\":{}}}",
            load(6000, 120_000, 0.5),
            row("10.0.0.1", load(3000, 60, 0.1)),
            row("10.0.0.2", load(600, 1 << 30, 0.2)),
            row("10.0.0.3", load(60, 60, 8.0)),
            serde_json::to_string(&quenda_server::load::Counts::default()).expect("numbers"),
            serde_json::to_string(&quenda_server::load::Thresholds::default()).expect("numbers"),
        );
        serde_json::from_str(&text).expect("a report")
    }

    fn shown(key: Key, rows: usize) -> Vec<String> {
        let screen = Screen {
            rows,
            width: usize::MAX,
        };
        let lines = lines("h:1", &report(), key, &screen).into_iter();
        lines.map(|(_, line)| line).collect()
    }

    #[test]
    fn a_report_is_a_page() {
        let page = shown(Key::Requests, 5);
        assert_eq!(
            page[0],
            "h:1  member 2  last 60 s  3 connections, 4 requests under way"
        );
        assert!(
            page[1].starts_with("100.0 requests/s  2.0 KiB/s in"),
            "{}",
            page[1]
        );
        assert_eq!(page[2], "paths: one request of 8 was looked at");
        assert!(page[3].ends_with("  client"), "{}", page[3]);
        assert!(
            page[4].starts_with("        50.0           1 B"),
            "{}",
            page[4]
        );
        assert!(page[4].ends_with("10.0.0.1"), "{}", page[4]);
        assert!(
            page.contains(&"        10.0  written /q  last by 10.0.0.9:1".to_owned()),
            "{page:?}"
        );
        assert_eq!(
            page.last().expect("lines"),
            "! herd: a change of /h woke 700 watchers, 3s ago"
        );
    }

    #[test]
    fn keys_decide_who_is_first_and_rows_how_many() {
        let first = |key| {
            let page = shown(key, 1);
            assert!(page[3].ends_with("client (and 2 more)"), "{}", page[3]);
            page[4].rsplit(' ').next().expect("a name").to_owned()
        };
        assert_eq!(first(Key::Requests), "10.0.0.1");
        assert_eq!(first(Key::Bytes), "10.0.0.2");
        assert_eq!(first(Key::Latency), "10.0.0.3");
    }

    #[test]
    fn lines_fit_the_terminal() {
        let screen = Screen { rows: 5, width: 10 };
        for (_, line) in lines("h:1", &report(), Key::Requests, &screen) {
            assert!(line.chars().count() <= 10, "{line}");
        }
    }
}
