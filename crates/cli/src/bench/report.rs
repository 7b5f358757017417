//! What a run found, as JSON and in words.

use std::collections::BTreeMap;
use std::fmt::Write;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::args::BenchArgs;
use super::survive::Survival;

/// Latencies in microseconds.
#[derive(Debug, Clone, Serialize)]
pub struct Latency {
    pub count: u64,
    pub mean_us: f64,
    pub p50_us: f64,
    pub p90_us: f64,
    pub p99_us: f64,
    pub p99_9_us: f64,
    pub max_us: f64,
}

impl Latency {
    /// From a histogram of nanoseconds; `None` when it is empty.
    pub fn of(histogram: &Histogram<u64>) -> Option<Latency> {
        let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1000.0;
        (!histogram.is_empty()).then(|| Latency {
            count: histogram.len(),
            mean_us: histogram.mean() / 1000.0,
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p99_9_us: at(0.999),
            max_us: histogram.max() as f64 / 1000.0,
        })
    }
}

/// Processor time and memory of the servers, together, over the measured time.
#[derive(Debug, Clone, Serialize)]
pub struct ServerUse {
    pub cpu_seconds: f64,
    pub cpu_us_per_operation: f64,
    pub resident_bytes_at_start: u64,
    pub resident_bytes_at_end: u64,
}

/// The result of one run.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    pub version: &'static str,
    pub settings: BenchArgs,
    pub connections: usize,
    /// Measured time.
    pub seconds: f64,
    /// Requests answered without an error in that time.
    pub operations: u64,
    pub operations_per_second: f64,
    /// Number of failures by reason, over the whole run.
    pub errors: BTreeMap<String, u64>,
    /// Latency by name.
    pub latency: BTreeMap<&'static str, Latency>,
    /// Requests answered in each second, warm-up included.
    pub each_second: Vec<u64>,
    pub client_cpu_seconds: f64,
    pub server: Option<ServerUse>,
    /// Of the sessions workload: sessions closed a second, all of them asked for at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed_per_second: Option<f64>,
    /// Of the survive workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub survival: Option<Survival>,
}

impl Report {
    pub fn errors_in_words(&self) -> String {
        if self.errors.is_empty() {
            return "no errors".to_owned();
        }
        counts_in_words(&self.errors)
    }

    pub fn in_words(&self) -> String {
        let mut text = String::new();
        self.write_words(&mut text)
            .expect("a String takes all that is written to it");
        text
    }

    fn write_words(&self, text: &mut String) -> std::fmt::Result {
        let args = &self.settings;
        writeln!(
            text,
            "{:?}: {:.0} a second ({} in {:.2} s, {} connections, depth {}, {} bytes)",
            args.workload,
            self.operations_per_second,
            self.operations,
            self.seconds,
            self.connections,
            args.depth,
            args.size,
        )?;
        writeln!(
            text,
            "{:12}{:>12}{:>12}{:>12}{:>12}{:>12}",
            "µs", "p50", "p90", "p99", "p99.9", "max"
        )?;
        for (name, l) in &self.latency {
            writeln!(
                text,
                "{name:12}{:12.1}{:12.1}{:12.1}{:12.1}{:12.1}",
                l.p50_us, l.p90_us, l.p99_us, l.p99_9_us, l.max_us
            )?;
        }
        if let Some(server) = &self.server {
            writeln!(
                text,
                "server: {:.2} s of processor time, {:.2} µs an operation, {:.1} MiB resident",
                server.cpu_seconds,
                server.cpu_us_per_operation,
                server.resident_bytes_at_end as f64 / 1_048_576.0
            )?;
        }
        if let Some(closed) = self.closed_per_second {
            writeln!(text, "closed: {closed:.0} a second")?;
        }
        if let Some(survival) = &self.survival {
            write_survival(text, survival, &self.each_second)?;
        }
        writeln!(
            text,
            "client: {:.2} s of processor time",
            self.client_cpu_seconds
        )?;
        writeln!(text, "{}", self.errors_in_words())
    }
}

fn counts_in_words(counts: &BTreeMap<String, u64>) -> String {
    let each = counts.iter().map(|(why, n)| format!("{n} × {why}"));
    each.collect::<Vec<_>>().join("; ")
}

fn write_survival(text: &mut String, found: &Survival, moves: &[u64]) -> std::fmt::Result {
    writeln!(
        text,
        "sessions: {} opened, {} alive at the end, {} expired, {} without their ephemeral, {} without a connection",
        found.opened, found.alive, found.expired, found.without_ephemeral, found.without_connection
    )?;
    let most = moves.iter().max().copied().unwrap_or_default();
    writeln!(text, "moves: {}, at most {most} a second", found.moves)?;
    for (what, counts) in [("breaks", &found.breaks), ("refusals", &found.refusals)] {
        if !counts.is_empty() {
            writeln!(text, "{what}: {}", counts_in_words(counts))?;
        }
    }
    Ok(())
}
