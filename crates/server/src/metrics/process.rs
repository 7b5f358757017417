//! The process as the operating system sees it, under the names that Prometheus' clients give.

use std::fs;

use super::counter::Counts;
use super::page::{Figures, Page, own};
use crate::clock::wall_ms;
use crate::config::MetricsSettings;
use crate::system::{max_files, open_files};

/// Parts of a second in which the system counts processor time, everywhere on Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// The process; what it uses is asked when it is told.
#[derive(Debug)]
pub(super) struct Process {
    /// When it began, in ms since 1970.
    started_ms: i64,
}

impl Default for Process {
    fn default() -> Self {
        Process {
            started_ms: wall_ms(),
        }
    }
}

/// Processor time.
struct Seconds(f64);

impl Counts for Seconds {
    fn total(&self) -> u64 {
        self.0 as u64
    }

    fn recent(&self) -> u64 {
        self.total()
    }

    fn reset(&self) {}

    fn precise(&self) -> f64 {
        self.0
    }
}

/// The process with the names that the configuration asks for.
pub(super) struct Named<'a> {
    process: &'a Process,
    settings: &'a MetricsSettings,
}

impl Process {
    pub(super) fn under<'a>(&'a self, settings: &'a MetricsSettings) -> Named<'a> {
        Named {
            process: self,
            settings,
        }
    }
}

impl Figures for Named<'_> {
    fn tell(&self, page: &mut dyn Page) {
        if !self.settings.process {
            return;
        }
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let known = |value: i64| (value >= 0).then_some(value as f64);
        let gauges = [
            (
                "process_resident_memory_bytes",
                "Memory in use.",
                kibibytes(&status, "VmRSS:"),
            ),
            (
                "process_virtual_memory_bytes",
                "Address space in use.",
                kibibytes(&status, "VmSize:"),
            ),
            (
                "process_threads",
                "Threads of the process.",
                field(&status, "Threads:"),
            ),
            (
                "process_open_fds",
                "Open file descriptors.",
                known(open_files()),
            ),
            (
                "process_max_fds",
                "Bound of open file descriptors.",
                known(max_files()),
            ),
            (
                "process_start_time_seconds",
                "Start of the server, in seconds since 1970.",
                Some(self.process.started_ms as f64 / 1000.0),
            ),
        ];
        for (name, help, value) in gauges {
            if let Some(value) = value {
                page.own_gauge(own(name, help), &[], value);
            }
        }
        if let Some(ticks) = cpu_ticks(&stat) {
            let figure = own("process_cpu_seconds_total", "Processor time used.");
            page.own_counter(figure, &[], &Seconds(ticks / TICKS_PER_SECOND));
        }
        if self.settings.jvm_names {
            tell_as_jvm(&status, page);
        }
    }
}

/// What old dashboards ask a Java process for, where there is something true to say.
fn tell_as_jvm(status: &str, page: &mut dyn Page) {
    let memory = [("area", "heap")];
    let used = kibibytes(status, "VmRSS:").unwrap_or(0.0);
    page.own_gauge(
        own(
            "jvm_memory_bytes_used",
            "Memory in use: that of the whole process, there is no heap of Java.",
        ),
        &memory,
        used,
    );
    page.own_gauge(
        own(
            "jvm_memory_bytes_max",
            "Memory that the process may use: that of its control group or of the machine.",
        ),
        &memory,
        memory_limit().unwrap_or(-1.0),
    );
    let threads = field(status, "Threads:").unwrap_or(0.0);
    page.own_gauge(own("jvm_threads_current", "Threads."), &[], threads);
}

fn memory_limit() -> Option<f64> {
    let group = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let group = group.and_then(|text| text.trim().parse().ok());
    let machine = fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.and_then(|text| kibibytes(&text, "MemTotal:"));
    match (group, machine) {
        (Some(group), Some(machine)) => Some(f64::min(group, machine)),
        (group, machine) => group.or(machine),
    }
}

fn field(status: &str, name: &str) -> Option<f64> {
    let values = status.lines().find_map(|line| line.strip_prefix(name))?;
    values.split_whitespace().next()?.parse().ok()
}

fn kibibytes(status: &str, name: &str) -> Option<f64> {
    field(status, name).map(|value| value * 1024.0)
}

/// User and system time. The name in front may hold blanks and parentheses.
fn cpu_ticks(stat: &str) -> Option<f64> {
    let (_, behind) = stat.rsplit_once(')')?;
    let mut fields = behind.split_whitespace().skip(11);
    let (user, system): (f64, f64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_texts_are_read() {
        let status = "Name:\tquenda\nVmSize:\t  2048 kB\nVmRSS:\t    12 kB\nThreads:\t7\n";
        assert_eq!(kibibytes(status, "VmRSS:"), Some(12_288.0));
        assert_eq!(field(status, "Threads:"), Some(7.0));
        assert_eq!(field(status, "VmSwap:"), None);
        let stat = "12 (a) b) S 1 12 12 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 7 0 100 2097152 3";
        assert_eq!(cpu_ticks(stat), Some(300.0));
    }
}
