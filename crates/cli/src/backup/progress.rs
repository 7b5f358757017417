//! How far it is, on the terminal of the one who waits.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_millis(200);

/// Counts bytes; says so on standard error if that is a terminal.
pub(super) struct Progress {
    what: &'static str,
    total: Option<u64>,
    done: u64,
    shown: Option<Instant>,
}

impl Progress {
    pub(super) fn new(what: &'static str, total: Option<u64>) -> Progress {
        Progress {
            what,
            total,
            done: 0,
            shown: io::stderr().is_terminal().then(Instant::now),
        }
    }

    pub(super) fn add(&mut self, bytes: usize) {
        self.done += bytes as u64;
        if self.shown.is_some_and(|at| at.elapsed() >= INTERVAL) {
            self.shown = Some(Instant::now());
            self.show("");
        }
    }

    /// The last word on it; the bytes.
    pub(super) fn finish(self) -> u64 {
        if self.shown.is_some() {
            self.show("\n");
        }
        self.done
    }

    fn show(&self, end: &str) {
        let share = match self.total {
            Some(total) if total > 0 => format!(" ({} %)", self.done * 100 / total),
            _ => String::new(),
        };
        // It is worth nothing if nobody reads it.
        let _ = write!(
            io::stderr(),
            "\r{} {}{share}{end}",
            self.what,
            size(self.done)
        );
    }
}

/// Bytes for people.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..10_240 => format!("{bytes} bytes"),
        10_240..10_485_760 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}
