//! The audit log: a line for every attempt of a client to change something, and for every ephemeral znode that goes with
//! its session.
//!
//! Whoever applies entries only makes [`Record`]s; a thread of its own turns them into lines and writes them. It never
//! makes the core wait: what a disk does not take is kept up to a bound, then dropped, counted, and told of in the log
//! itself (decision 0015).

mod file;
mod record;
mod text;
mod writer;

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use quenda_node::Settled;
use quenda_tree::SessionEffect;
use quenda_tree::command::decode_first;
use tracing::warn;

use crate::clock::wall_ms;
use crate::config::AuditSettings;
use crate::four_letter::Environment;

use record::Record;
use writer::Writer;

/// Writes that a server did not start. Nothing is made for it but the file: a wrong configuration may name any directory.
pub fn record_refused_start(settings: &AuditSettings) {
    match Audit::start(settings) {
        Ok(audit) => {
            audit.server_failed();
            audit.stop();
        }
        Err(error) => {
            warn!(%error, path = %settings.path.display(), "the audit log does not tell of this start");
        }
    }
}

/// The audit log of a server.
#[derive(Debug)]
pub struct Audit {
    writer: Mutex<Option<Writer>>,
    queue: Arc<writer::Queue>,
    /// Who runs the process.
    user: Arc<str>,
    /// When this process began, by the wall clock: what the log repeats from before is no news.
    started_ms: i64,
}

impl Audit {
    /// Opens the file and starts the thread.
    ///
    /// # Errors
    /// The file cannot be opened, or the system gives no thread.
    pub fn start(settings: &AuditSettings) -> io::Result<Audit> {
        let user: Arc<str> = Environment::of_this_process().user_name.into();
        let queue = Arc::new(writer::Queue::default());
        let writer = Writer::start(settings, Arc::clone(&queue), Arc::clone(&user))?;
        Ok(Audit {
            writer: Mutex::new(Some(writer)),
            queue,
            user,
            started_ms: wall_ms(),
        })
    }

    /// The server serves.
    pub fn server_started(&self) {
        self.queue
            .push(Record::of_server(&self.user, "serverStart", "success"));
    }

    /// The server did not come to serve.
    pub fn server_failed(&self) {
        self.queue
            .push(Record::of_server(&self.user, "serverStart", "failure"));
    }

    /// The server was told to stop.
    pub fn server_stops(&self) {
        self.queue
            .push(Record::of_server(&self.user, "serverStop", "invoked"));
    }

    /// A command was applied. `is_live`: a client of this run of the process asked for it.
    pub fn settled(&self, settled: &Settled<'_>, is_live: bool) {
        let time_ms = wall_ms();
        if is_live {
            for record in record::of_request(time_ms, settled) {
                self.queue.push(record);
            }
        }
        if let SessionEffect::Closed { session } = settled.applied.session
            && settled.stamp.time_ms >= self.started_ms
        {
            for path in record::removed(settled.changes) {
                self.queue
                    .push(Record::of_ephemeral(time_ms, &self.user, session, path));
            }
        }
    }

    /// Encoded commands of clients that were refused before they got into the log.
    pub fn refused(&self, mut commands: &[u8]) {
        let time_ms = wall_ms();
        while let Some(Ok(command)) = decode_first(&mut commands) {
            if let Some(record) = record::of_refused(time_ms, &command) {
                self.queue.push(record);
            }
        }
    }

    /// Writes what waits, but does not wait for long, and ends the thread.
    pub fn stop(&self) {
        if let Some(writer) = self.writer.lock().take() {
            writer.stop();
        }
    }
}
