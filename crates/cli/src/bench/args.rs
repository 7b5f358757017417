//! The command line of `quenda bench`.

use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use quenda_client::Tls;
use serde::Serialize;

use crate::connection::TlsArgs;

/// What to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// getData of a random znode
    Get,
    /// exists of a random znode
    Exists,
    /// getChildren2 of a random folder of 100 children
    Children,
    /// setData of a random znode
    Set,
    /// create of new znodes
    Create,
    /// create of new sequential znodes
    Sequential,
    /// create of a znode and its delete, by turns; each counts as one request
    CreateDelete,
    /// getData and setData, see --read-ratio
    Mixed,
    /// transactions of --batch setData each; a transaction counts as one request
    Multi,
    /// transactions of a check of one znode and a setData of another; a transaction counts as one request
    CheckSet,
    /// one change, --connections watchers: time to the first, middle and last event
    Watch,
    /// open --connections sessions, keep them idle for --duration, and close them; processor time is that of opening and closing
    Sessions,
    /// as sessions, but each goes on at another of --hosts when its connection breaks; counts what became of them
    Survive,
}

/// Measure a server: throughput, latency, processor time.
#[derive(Debug, Clone, Args, Serialize)]
pub struct BenchArgs {
    /// What to send
    #[arg(value_enum)]
    pub workload: Workload,

    /// Servers, host:port separated by commas; connections are spread over them
    #[arg(long, value_delimiter = ',', default_value = "127.0.0.1:2181")]
    pub hosts: Vec<String>,

    /// Number of connections, each with a session of its own [default: 8; watch, sessions, survive: 1000]
    #[arg(long)]
    pub connections: Option<usize>,

    /// Requests that each connection keeps in flight
    #[arg(long, default_value_t = 64)]
    pub depth: usize,

    /// Bytes of data of a znode
    #[arg(long, default_value_t = 1024)]
    pub size: usize,

    /// Znodes that requests are spread over
    #[arg(long, default_value_t = 1000)]
    pub znodes: usize,

    /// Part of reads in the mixed workload, 0 to 1
    #[arg(long, default_value_t = 0.7)]
    pub read_ratio: f64,

    /// setData in each transaction of the multi workload
    #[arg(long, default_value_t = 10)]
    pub batch: usize,

    /// Seconds to measure
    #[arg(long, default_value_t = 10.0)]
    pub duration: f64,

    /// Seconds of load before measuring begins
    #[arg(long, default_value_t = 2.0)]
    pub warmup: f64,

    /// End after this many requests, if that comes before --duration; leaves out the warm-up
    #[arg(long)]
    pub requests: Option<u64>,

    /// Threads of the generator
    #[arg(long, default_value_t = 1)]
    pub threads: usize,

    /// Wanted session timeout in seconds
    #[arg(long = "session-timeout", default_value_t = 30.0)]
    pub session_timeout_s: f64,

    /// Part of the sessions that own an ephemeral in the survive workload, 0 to 1
    #[arg(long, default_value_t = 0.5)]
    pub ephemerals: f64,

    /// Each attempt to go on elsewhere waits a random part of this many seconds, as ZooKeeper's client does
    #[arg(long = "reconnect-spread", default_value_t = 1.0)]
    pub reconnect_spread_s: f64,

    /// Znode to work below; it must not exist [default: /quenda-bench-<session id>]
    #[arg(long)]
    pub root: Option<String>,

    /// Leave the znodes in place
    #[arg(long)]
    pub keep: bool,

    /// Process ids of servers on this machine, separated by commas, to report their processor time and memory
    #[arg(long, value_delimiter = ',')]
    pub server_pid: Vec<u32>,

    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,

    /// TLS
    #[command(flatten)]
    #[serde(skip)]
    pub tls: TlsArgs,

    /// The same, with its files read
    #[arg(skip)]
    #[serde(skip)]
    pub ready_tls: Option<Tls>,
}

impl BenchArgs {
    /// Refuses what no run can make sense of.
    pub fn check(&self) -> Result<()> {
        if self.hosts.iter().any(|host| !host.contains(':')) {
            bail!("--hosts: each entry is host:port");
        }
        if !(0.0..=1.0).contains(&self.read_ratio) {
            bail!("--read-ratio is between 0 and 1");
        }
        if !(0.0..=1.0).contains(&self.ephemerals) {
            bail!("--ephemerals is between 0 and 1");
        }
        let least_one = [
            ("--connections", self.connections()),
            ("--depth", self.depth),
            ("--znodes", self.znodes),
            ("--batch", self.batch),
            ("--threads", self.threads),
        ];
        if let Some((name, _)) = least_one.iter().find(|(_, value)| *value == 0) {
            bail!("{name} is at least 1");
        }
        let seconds = [
            ("--duration", self.duration),
            ("--warmup", self.warmup),
            ("--session-timeout", self.session_timeout_s),
            ("--reconnect-spread", self.reconnect_spread_s),
        ];
        if let Some((name, _)) = seconds.iter().find(|(_, s)| !(0.0..=1e6).contains(s)) {
            bail!("{name} is a number of seconds from 0 to a million");
        }
        if self
            .root
            .as_ref()
            .is_some_and(|root| !root.starts_with('/'))
        {
            bail!("--root is an absolute path");
        }
        Ok(())
    }

    pub fn connections(&self) -> usize {
        self.connections.unwrap_or(match self.workload {
            Workload::Watch | Workload::Sessions | Workload::Survive => 1000,
            _ => 8,
        })
    }

    pub fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.duration)
    }

    pub fn warmup(&self) -> Duration {
        match self.requests {
            Some(_) => Duration::ZERO,
            None => Duration::from_secs_f64(self.warmup),
        }
    }

    pub fn session_timeout(&self) -> Duration {
        Duration::from_secs_f64(self.session_timeout_s)
    }

    /// The server of the connection with that number.
    pub fn host(&self, connection: usize) -> &str {
        &self.hosts[connection % self.hosts.len()]
    }
}
