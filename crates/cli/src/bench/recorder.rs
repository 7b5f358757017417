//! What the connections of a thread find, and processor time before and after.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::Result;
use hdrhistogram::Histogram;

use super::args::BenchArgs;
use super::process;
use super::report::{Latency, Report, ServerUse};

/// Longest latency the histograms hold, in nanoseconds.
const LONGEST_NS: u64 = 120_000_000_000;

/// What all connections of a thread have found.
pub struct Recorder {
    pub read: Histogram<u64>,
    pub write: Histogram<u64>,
    pub errors: BTreeMap<String, u64>,
    pub last_reply: Option<Instant>,
}

impl Recorder {
    pub fn new() -> Recorder {
        Recorder {
            read: new_histogram(),
            write: new_histogram(),
            errors: BTreeMap::new(),
            last_reply: None,
        }
    }

    pub fn error(&mut self, why: String) {
        *self.errors.entry(why).or_default() += 1;
    }

    pub fn merge(&mut self, other: &Recorder) -> Result<()> {
        self.read.add(&other.read)?;
        self.write.add(&other.write)?;
        for (why, count) in &other.errors {
            *self.errors.entry(why.clone()).or_default() += count;
        }
        self.last_reply = self.last_reply.max(other.last_reply);
        Ok(())
    }
}

/// A histogram of nanoseconds with three significant digits.
pub fn new_histogram() -> Histogram<u64> {
    let mut histogram =
        Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("the bounds are constants that fit");
    histogram.auto(true);
    histogram
}

pub fn lock(recorder: &Mutex<Recorder>) -> std::sync::MutexGuard<'_, Recorder> {
    recorder
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Processor time and memory at one moment; the servers' together.
pub struct Usage {
    client_cpu: f64,
    server: Option<(f64, u64)>,
}

impl Usage {
    pub fn now(args: &BenchArgs) -> Result<Usage> {
        let mut server = (0.0, 0);
        for &pid in &args.server_pid {
            server.0 += process::cpu_seconds(Some(pid))?;
            server.1 += process::resident_bytes(Some(pid))?;
        }
        Ok(Usage {
            client_cpu: process::cpu_seconds(None)?,
            server: (!args.server_pid.is_empty()).then_some(server),
        })
    }
}

impl Usage {
    /// This moment's, but for the processor time between two earlier ones and with the memory of the later of them.
    pub fn without(&self, from: &Usage, to: &Usage) -> Usage {
        let server = self.server.zip(from.server).zip(to.server);
        Usage {
            client_cpu: self.client_cpu - (to.client_cpu - from.client_cpu),
            server: server.map(|((end, from), to)| (end.0 - (to.0 - from.0), to.1)),
        }
    }
}

pub fn report(
    args: &BenchArgs,
    recorder: &Recorder,
    seconds: f64,
    each_second: Vec<u64>,
    before: &Usage,
    after: &Usage,
) -> Report {
    let operations = recorder.read.len() + recorder.write.len();
    let latency = [("read", &recorder.read), ("write", &recorder.write)]
        .into_iter()
        .filter_map(|(name, histogram)| Some((name, Latency::of(histogram)?)));
    let server = before.server.zip(after.server).map(|(before, after)| {
        let cpu_seconds = after.0 - before.0;
        ServerUse {
            cpu_seconds,
            cpu_us_per_operation: cpu_seconds * 1e6 / operations.max(1) as f64,
            resident_bytes_at_start: before.1,
            resident_bytes_at_end: after.1,
        }
    });
    Report {
        version: env!("CARGO_PKG_VERSION"),
        settings: args.clone(),
        connections: args.connections(),
        seconds,
        operations,
        operations_per_second: operations as f64 / seconds.max(f64::MIN_POSITIVE),
        errors: recorder.errors.clone(),
        latency: latency.collect(),
        each_second,
        client_cpu_seconds: after.client_cpu - before.client_cpu,
        server,
        closed_per_second: None,
        survival: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_between_is_left_out() {
        let usage = |client_cpu, cpu, resident| Usage {
            client_cpu,
            server: Some((cpu, resident)),
        };
        let (open, idle, end) = (
            usage(2.0, 8.0, 10),
            usage(5.0, 9.0, 20),
            usage(6.0, 12.0, 5),
        );
        let found = end.without(&open, &idle);
        assert_eq!((found.client_cpu, found.server), (3.0, Some((11.0, 20))));
    }
}
