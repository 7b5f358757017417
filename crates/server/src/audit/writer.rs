//! The thread that writes the audit log, and the queue in front of it.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};
use tracing::{error, info, warn};

use super::file::AuditFile;
use super::record::Record;
use super::text;
use crate::config::{AuditFormat, AuditSettings};
use crate::limits::{AUDIT_QUEUE_BYTES, AUDIT_RETRY, AUDIT_STOP_PATIENCE, AUDIT_WRITE_BYTES};

/// Records that wait to be written.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<Waiting>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    records: VecDeque<Record>,
    bytes: usize,
    /// Records that were dropped and of which the log does not tell yet.
    untold: u64,
    stop: bool,
    ended: bool,
}

impl Queue {
    /// Never waits: with a full queue the record is dropped and counted.
    pub(super) fn push(&self, record: Record) {
        let bytes = record.bytes();
        let mut state = self.state.lock();
        if state.bytes + bytes > AUDIT_QUEUE_BYTES {
            state.untold += 1;
            return;
        }
        let idle = state.records.is_empty();
        state.bytes += bytes;
        state.records.push_back(record);
        drop(state);
        if idle {
            self.wake.notify_one();
        }
    }

    /// The next records and how many were lost before them; `None` at the end.
    fn take(&self) -> Option<(VecDeque<Record>, u64)> {
        let mut state = self.state.lock();
        while state.records.is_empty() && state.untold == 0 {
            if state.stop {
                return None;
            }
            self.wake.wait(&mut state);
        }
        state.bytes = 0;
        let lost = std::mem::take(&mut state.untold);
        Some((std::mem::take(&mut state.records), lost))
    }

    /// Waits before the next attempt; false when the server stops meanwhile.
    fn wait_to_retry(&self) -> bool {
        let until = Instant::now() + AUDIT_RETRY;
        let mut state = self.state.lock();
        // A record that comes wakes too: it changes nothing.
        while !state.stop && !self.wake.wait_until(&mut state, until).timed_out() {}
        !state.stop
    }
}

/// The thread.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Arc<Queue>,
    thread: JoinHandle<()>,
}

impl Writer {
    pub(super) fn start(
        settings: &AuditSettings,
        queue: Arc<Queue>,
        user: Arc<str>,
    ) -> io::Result<Writer> {
        let file = AuditFile::open(settings)?;
        let format = settings.format;
        let path = settings.path.display().to_string();
        let theirs = Arc::clone(&queue);
        let thread = crate::thread::spawn("quenda-audit", move || {
            let mut desk = Desk {
                file,
                format,
                path,
                user,
                failing: false,
            };
            desk.run(&theirs);
            theirs.state.lock().ended = true;
            theirs.wake.notify_all();
        })?;
        Ok(Writer { queue, thread })
    }

    /// What waits is written first, unless the disk does not take it.
    pub(super) fn stop(self) {
        let until = Instant::now() + AUDIT_STOP_PATIENCE;
        let mut state = self.queue.state.lock();
        state.stop = true;
        self.queue.wake.notify_all();
        while !state.ended {
            if self.queue.wake.wait_until(&mut state, until).timed_out() {
                warn!(
                    records = state.records.len(),
                    "the audit log takes nothing: the server ends without its last records"
                );
                return;
            }
        }
        drop(state);
        if self.thread.join().is_err() {
            error!("the writer of the audit log had panicked");
        }
    }
}

struct Desk {
    file: AuditFile,
    format: AuditFormat,
    path: String,
    user: Arc<str>,
    failing: bool,
}

impl Desk {
    fn run(&mut self, queue: &Queue) {
        while let Some((records, lost)) = queue.take() {
            let mut lines = Vec::new();
            for record in &records {
                text::append(&mut lines, record, self.format);
                if lines.len() >= AUDIT_WRITE_BYTES {
                    if !self.write(queue, &lines) {
                        return;
                    }
                    lines.clear();
                }
            }
            // They came when the queue was full, so behind all that were in it.
            if lost > 0 {
                warn!(
                    lost,
                    path = self.path,
                    "the audit log has lost records: they came faster than the disk took them"
                );
                text::append(&mut lines, &Record::of_loss(&self.user, lost), self.format);
            }
            if !lines.is_empty() && !self.write(queue, &lines) {
                return;
            }
        }
    }

    /// Writes lines, however often it takes; false when the server stops before the disk takes them.
    fn write(&mut self, queue: &Queue, lines: &[u8]) -> bool {
        loop {
            match self.file.append(lines) {
                Ok(()) => {
                    if std::mem::take(&mut self.failing) {
                        info!(path = self.path, "the audit log can be written again");
                    }
                    return true;
                }
                Err(error) if !self.failing => {
                    self.failing = true;
                    error!(%error, path = self.path, "the audit log cannot be written: records are kept up to a bound, then lost; the service goes on");
                }
                Err(_) => {}
            }
            if !queue.wait_to_retry() {
                return false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn record() -> Record {
        Record::of_server(&"me".into(), "serverStart", "success")
    }

    #[test]
    fn what_the_queue_cannot_hold_is_counted_and_told() {
        let queue = Queue::default();
        let fits = AUDIT_QUEUE_BYTES / record().bytes();
        for _ in 0..fits + 3 {
            queue.push(record());
        }
        let (records, lost) = queue.take().expect("there are some");
        assert_eq!((records.len(), lost), (fits, 3));
        queue.push(record());
        assert_eq!(
            queue.take().map(|(records, lost)| (records.len(), lost)),
            Some((1, 0))
        );
    }

    #[test]
    fn a_file_that_cannot_be_written_gets_everything_once_it_can() {
        let folder = tempfile::tempdir().expect("a directory");
        let place = folder.path().join("logs");
        std::fs::create_dir(&place).expect("is made");
        let settings = AuditSettings {
            path: place.join("audit.log"),
            format: AuditFormat::Text,
            bytes_max: 0,
            kept: 0,
        };
        let queue = Arc::new(Queue::default());
        let writer = Writer::start(&settings, Arc::clone(&queue), "me".into()).expect("starts");
        // Without its directory the file cannot be made anew.
        std::fs::remove_dir_all(&place).expect("goes");
        queue.push(record());
        std::thread::sleep(Duration::from_millis(20));
        queue.push(record());
        std::fs::create_dir(&place).expect("is made");
        let until = Instant::now() + Duration::from_secs(20);
        let lines = loop {
            let text = std::fs::read_to_string(&settings.path).unwrap_or_default();
            if text.lines().count() == 2 || Instant::now() > until {
                break text.lines().count();
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        assert_eq!(lines, 2);
        writer.stop();
    }
}
