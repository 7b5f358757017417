//! Where log lines go: to standard error, by a thread of its own.
//!
//! Standard error may be a pipe that nobody empties or a terminal that is held. Whoever logs must not wait
//! for it: that would stop the server. Lines that find the queue full are dropped and counted.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// Lines that wait to be written. A line is some hundred bytes, at most a few kilobytes.
const LINES_MAX: usize = 4096;

/// How long the end of the process waits for the lines that were logged before it.
const FLUSH_PATIENCE: Duration = Duration::from_millis(500);

enum Message {
    Line(Vec<u8>),
    Flush(SyncSender<()>),
}

/// A way to the thread that writes.
#[derive(Clone)]
pub struct LogSink {
    queue: SyncSender<Message>,
    dropped: Arc<AtomicU64>,
}

impl LogSink {
    /// Starts the thread; it writes to `out`.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(out: impl Write + Send + 'static) -> io::Result<LogSink> {
        let (queue, lines) = sync_channel(LINES_MAX);
        let dropped = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&dropped);
        std::thread::Builder::new()
            .name("quenda-logging".to_string())
            .spawn(move || run(out, &lines, &count))?;
        Ok(LogSink { queue, dropped })
    }

    /// Waits until what was logged is written, but not for long.
    pub fn flush(&self) {
        let (sender, done) = sync_channel(1);
        if self.queue.try_send(Message::Flush(sender)).is_ok() {
            // A reader that takes nothing gets nothing.
            let _ = done.recv_timeout(FLUSH_PATIENCE);
        }
    }
}

fn run(mut out: impl Write, lines: &Receiver<Message>, dropped: &AtomicU64) {
    for message in lines {
        // A line that cannot be written (a closed pipe, a full disk) is lost: a message about it would go
        // the same way.
        let _ = match message {
            Message::Line(line) => out.write_all(&line),
            Message::Flush(done) => {
                let flushed = out.flush();
                let _ = done.send(());
                flushed
            }
        };
        let lost = dropped.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let report =
                format!("{lost} log lines were lost: they came faster than they were taken\n");
            let _ = out.write_all(report.as_bytes());
        }
    }
}

impl<'a> MakeWriter<'a> for LogSink {
    type Writer = LogSink;

    fn make_writer(&'a self) -> LogSink {
        self.clone()
    }
}

/// Each call takes one whole line, as the formatter gives it.
impl Write for LogSink {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.queue.try_send(Message::Line(line.to_vec())).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    /// Writes to a channel, one message a write, after a token was given.
    struct Gated {
        gate: Receiver<()>,
        written: std::sync::mpsc::Sender<Vec<u8>>,
    }

    impl Write for Gated {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.gate.recv().map_err(io::Error::other)?;
            self.written
                .send(bytes.to_vec())
                .map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn who_logs_never_waits_and_lost_lines_are_counted() {
        let (token, gate) = channel();
        let (written, lines) = channel();
        let mut sink = LogSink::start(Gated { gate, written }).expect("a thread");
        let sent = LINES_MAX + 100;
        for number in 0..sent {
            let line = format!("line {number}\n");
            sink.write_all(line.as_bytes()).expect("never fails");
        }
        // Nobody took a line so far. From now on somebody does.
        for _ in 0..sent * 2 {
            token.send(()).expect("the thread lives");
        }
        let mut whole = 0;
        let report = loop {
            let line = String::from_utf8(lines.recv().expect("a line")).expect("text");
            if line.starts_with("line ") {
                whole += 1;
            } else {
                break line;
            }
        };
        let count = report.split(' ').next().expect("a word");
        let lost: usize = count.parse().expect("the number of lost lines");
        assert!(
            lost > 0 && whole + lost <= sent,
            "{whole} written, {lost} lost of {sent}"
        );
        sink.flush();
    }
}
