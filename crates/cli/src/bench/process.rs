//! Processor time and memory of a process, from /proc.

use anyhow::{Context, Result};

/// Ticks a second of the times in /proc/<pid>/stat; fixed by the kernel's interface to programs.
const TICKS_PER_SECOND: f64 = 100.0;

/// User and system time that a process has used, in seconds. `None` is this process.
pub fn cpu_seconds(pid: Option<u32>) -> Result<f64> {
    let path = path(pid, "stat");
    let stat = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    ticks(&stat)
        .map(|ticks| ticks as f64 / TICKS_PER_SECOND)
        .with_context(|| format!("{path} has an unknown form"))
}

/// Resident memory of a process in bytes.
pub fn resident_bytes(pid: Option<u32>) -> Result<u64> {
    let path = path(pid, "status");
    let status = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok())
        .map(|kilobytes| kilobytes * 1024)
        .with_context(|| format!("{path} has no VmRSS"))
}

fn path(pid: Option<u32>, file: &str) -> String {
    match pid {
        Some(pid) => format!("/proc/{pid}/{file}"),
        None => format!("/proc/self/{file}"),
    }
}

/// The program's name may hold spaces and parentheses, so the fields count from the last one.
fn ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_behind_any_program_name() {
        let stat = "7 (a) (b c) S 1 7 7 0 -1 4194560 1 2 3 4 250 50 0 0 20 0 1 0 5 6 7";
        assert_eq!(ticks(stat), Some(300));
        assert_eq!(ticks("nonsense"), None);
    }
}
