//! The sessions that only this member knows (`localSessionsEnabled`), and the ids that are kept for them.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use parking_lot::Mutex;
use quenda_frontend::{
    CloseReason, ConnectionId, LocalSession, LocalSessionTable, LocalSessions, SessionIds, Takeover,
};

use crate::registry::Registry;

/// Where a member notes up to where it may have given out ids of local sessions, in its data directory.
const FILE: &str = "local-session-ids";

/// The table behind its lock, which is held for one call at a time: when a session begins, ends, or changes its
/// connection. The order is tree, connection, this.
#[derive(Debug, Default)]
pub struct MemberSessions {
    table: Mutex<LocalSessionTable>,
}

impl MemberSessions {
    /// Ends the sessions that were silent for their timeout; gives their ids. To be called with every tick while
    /// the member has a quorum, whomever it serves.
    pub fn expire(&self, registry: &Registry, now_ms: u64) -> Vec<i64> {
        let due = self.table.lock().due(now_ms);
        let mut expired = Vec::new();
        for (session, id) in due {
            let handle = id.and_then(|id| registry.get(id));
            let heard_ms = handle.as_ref().map_or(0, |handle| {
                let connection = handle.connection.lock();
                // It may be left unread meanwhile.
                match connection.awaits_log() {
                    true => now_ms,
                    false => connection.last_touch_ms(),
                }
            });
            if !self.table.lock().judge(session, id, heard_ms, now_ms) {
                continue;
            }
            expired.push(session);
            if let Some(handle) = handle {
                handle.close(CloseReason::SessionExpired);
            }
        }
        expired
    }

    /// Another state has taken the place of the one that the clients know.
    pub fn clear(&self) {
        self.table.lock().clear();
    }

    /// Number of sessions.
    pub fn count(&self) -> usize {
        self.table.lock().len()
    }

    /// All of them.
    pub fn all(&self) -> Vec<LocalSession> {
        self.table.lock().iter().collect()
    }
}

impl LocalSessions for MemberSessions {
    fn open(&self, session: i64, timeout_ms: i32, connection: ConnectionId, now_ms: u64) {
        let mut table = self.table.lock();
        table.open(session, timeout_ms, connection, now_ms);
    }

    fn resume(
        &self,
        session: i64,
        timeout_ms: i32,
        connection: ConnectionId,
        now_ms: u64,
    ) -> Option<Takeover> {
        let mut table = self.table.lock();
        table.resume(session, timeout_ms, connection, now_ms)
    }

    fn end(&self, session: i64, connection: ConnectionId) -> bool {
        self.table.lock().end(session, connection)
    }

    fn left(&self, session: i64, connection: ConnectionId, heard_ms: u64, unsettled: bool) {
        let mut table = self.table.lock();
        table.left(session, connection, heard_ms, unsettled);
    }
}

/// Reserves the ids that this run gives to local sessions: the replicated state does not know them, so a clock that
/// goes back could make a later run give one out again. That member's client could then be taken for another's.
///
/// # Errors
/// The file cannot be read or written.
pub fn reserve_ids(directory: &Path, ids: &SessionIds) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let path = directory.join(FILE);
    let end = ids.begin_reservation(reserved_before(&path)?);
    let unfinished = directory.join(format!("{FILE}.tmp"));
    let mut file = File::create(&unfinished)?;
    writeln!(file, "{end:#x}")?;
    file.sync_all()?;
    fs::rename(&unfinished, &path)?;
    File::open(directory)?.sync_all()?;
    ids.reserve(end);
    Ok(())
}

fn reserved_before(path: &Path) -> io::Result<u64> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let number = text.trim().strip_prefix("0x");
    let number = number.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    // The high byte of an id is its member's.
    let number = number.filter(|number| number >> 56 == 0);
    number.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it holds no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_run_begins_behind_what_an_earlier_one_may_have_given_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let run = |time_ms| {
            let ids = SessionIds::new(2, time_ms).expect("a member");
            reserve_ids(&folder.path().join("data"), &ids).expect("ids");
            ids.next_reserved(None).expect("an id")
        };
        let first = run(1_000_000);
        let second = run(10);
        let third = run(20);
        assert!(first + (1 << 34) <= second && second < third);
    }

    #[test]
    fn a_file_with_something_else_is_not_taken_for_none() {
        let folder = tempfile::tempdir().expect("a folder");
        for text in ["rubbish", "", "0x", "0x100000000000000"] {
            fs::write(folder.path().join(FILE), text).expect("a file");
            let ids = SessionIds::new(2, 10).expect("a member");
            let error = reserve_ids(folder.path(), &ids).expect_err(text);
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
            assert_eq!(ids.next_reserved(None), None);
        }
    }
}
