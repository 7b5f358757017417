//! Sessions that only their member knows (`localSessionsEnabled`): no entry of the log opens, resumes or ends
//! them.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

use crate::limits::LOCAL_PAUSE_MS;
use crate::world::ConnectionId;

/// The local sessions of a member, as one connection uses them.
pub trait LocalSessions {
    /// A new session begins on this connection.
    fn open(&self, session: i64, timeout_ms: i32, connection: ConnectionId, now_ms: u64);
    /// A client wants to go on with a session on this connection. `None` if the member has no such session.
    fn resume(
        &self,
        session: i64,
        timeout_ms: i32,
        connection: ConnectionId,
        now_ms: u64,
    ) -> Option<Takeover>;
    /// The session ends, or becomes one of the cluster. False if this connection is not the session's own.
    fn end(&self, session: i64, connection: ConnectionId) -> bool;
    /// The session has no connection any more. It was last heard at `heard_ms`; `unsettled` as in
    /// [`Takeover`].
    fn left(&self, session: i64, connection: ConnectionId, heard_ms: u64, unsettled: bool);
}

/// What a connection that goes on with a session takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Takeover {
    /// The connection that the session had. It has to be closed before what the new one proposes is handed
    /// to the log.
    pub before: Option<ConnectionId>,
    /// Something of an earlier connection may still be on its way through the log.
    pub unsettled: bool,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    timeout_ms: u64,
    /// Not before this it is looked at whether the session is silent.
    deadline_ms: u64,
    connection: Option<ConnectionId>,
    unsettled: bool,
}

/// One local session, for operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalSession {
    /// Its id.
    pub session: i64,
    /// Its timeout in milliseconds.
    pub timeout_ms: u64,
    /// When it ends unless it is heard, by monotonic time; with a connection, not before that.
    pub deadline_ms: u64,
    /// The connection that it has.
    pub connection: Option<ConnectionId>,
}

/// All local sessions of a member.
#[derive(Debug, Default)]
pub struct LocalSessionTable {
    sessions: HashMap<i64, Entry>,
    /// (deadline, session), the next first. Holds exactly the sessions in `sessions`.
    deadlines: BTreeSet<(u64, i64)>,
    /// When it was last asked who is due.
    asked_ms: Option<u64>,
}

impl LocalSessionTable {
    fn put(&mut self, session: i64, entry: Entry) {
        self.remove(session);
        self.deadlines.insert((entry.deadline_ms, session));
        self.sessions.insert(session, entry);
    }

    fn remove(&mut self, session: i64) -> Option<Entry> {
        let entry = self.sessions.remove(&session)?;
        self.deadlines.remove(&(entry.deadline_ms, session));
        Some(entry)
    }

    /// As [`LocalSessions::open`].
    pub fn open(&mut self, session: i64, timeout_ms: i32, connection: ConnectionId, now_ms: u64) {
        let timeout_ms = u64::from(timeout_ms.unsigned_abs());
        let entry = Entry {
            timeout_ms,
            deadline_ms: now_ms + timeout_ms,
            connection: Some(connection),
            unsettled: false,
        };
        self.put(session, entry);
    }

    /// As [`LocalSessions::resume`].
    pub fn resume(
        &mut self,
        session: i64,
        timeout_ms: i32,
        connection: ConnectionId,
        now_ms: u64,
    ) -> Option<Takeover> {
        let entry = self.remove(session)?;
        self.open(session, timeout_ms, connection, now_ms);
        Some(Takeover {
            before: entry.connection,
            unsettled: entry.unsettled,
        })
    }

    /// As [`LocalSessions::end`].
    pub fn end(&mut self, session: i64, connection: ConnectionId) -> bool {
        let is_own = self
            .sessions
            .get(&session)
            .is_some_and(|entry| entry.connection == Some(connection));
        is_own && self.remove(session).is_some()
    }

    /// As [`LocalSessions::left`].
    pub fn left(&mut self, session: i64, connection: ConnectionId, heard_ms: u64, unsettled: bool) {
        let Some(entry) = self.sessions.get(&session).copied() else {
            return;
        };
        if entry.connection == Some(connection) {
            let deadline_ms = entry.deadline_ms.max(heard_ms + entry.timeout_ms);
            let entry = Entry {
                deadline_ms,
                connection: None,
                unsettled,
                ..entry
            };
            self.put(session, entry);
        }
    }

    /// Sessions that may have been silent for their timeout, with their connections: for each it has to be
    /// said with [`Self::judge`] when it was heard. To be called often; after a pause, in which the member
    /// heard nobody or served nobody, every session has its whole timeout again.
    pub fn due(&mut self, now_ms: u64) -> Vec<(i64, Option<ConnectionId>)> {
        let asked_ms = self.asked_ms.replace(now_ms).unwrap_or(now_ms);
        if now_ms.saturating_sub(asked_ms) > LOCAL_PAUSE_MS {
            self.refresh(now_ms);
        }
        let due = self.deadlines.iter();
        due.take_while(|(deadline_ms, _)| *deadline_ms <= now_ms)
            .filter_map(|(_, session)| Some((*session, self.sessions.get(session)?.connection)))
            .collect()
    }

    fn refresh(&mut self, now_ms: u64) {
        self.deadlines.clear();
        for (session, entry) in &mut self.sessions {
            entry.deadline_ms = entry.deadline_ms.max(now_ms + entry.timeout_ms);
            self.deadlines.insert((entry.deadline_ms, *session));
        }
    }

    /// A session that is due has this connection, if any, and was last heard by it at `heard_ms`. True if it
    /// is over.
    pub fn judge(
        &mut self,
        session: i64,
        connection: Option<ConnectionId>,
        heard_ms: u64,
        now_ms: u64,
    ) -> bool {
        let Some(entry) = self.sessions.get(&session).copied() else {
            return false;
        };
        if entry.connection != connection || entry.deadline_ms > now_ms {
            return false;
        }
        let deadline_ms = heard_ms + entry.timeout_ms;
        if connection.is_some() && deadline_ms > now_ms {
            let entry = Entry {
                deadline_ms,
                ..entry
            };
            self.put(session, entry);
            return false;
        }
        self.remove(session).is_some()
    }

    /// Forgets all of them: another state has taken the place of the one that their clients know.
    pub fn clear(&mut self) {
        self.sessions.clear();
        self.deadlines.clear();
    }

    /// Number of sessions.
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// All of them, the next to be looked at first.
    pub fn iter(&self) -> impl Iterator<Item = LocalSession> + '_ {
        self.deadlines.iter().filter_map(|(_, session)| {
            let entry = self.sessions.get(session)?;
            Some(LocalSession {
                session: *session,
                timeout_ms: entry.timeout_ms,
                deadline_ms: entry.deadline_ms,
                connection: entry.connection,
            })
        })
    }
}

/// For a member on one thread.
impl LocalSessions for RefCell<LocalSessionTable> {
    fn open(&self, session: i64, timeout_ms: i32, connection: ConnectionId, now_ms: u64) {
        self.borrow_mut()
            .open(session, timeout_ms, connection, now_ms);
    }

    fn resume(
        &self,
        session: i64,
        timeout_ms: i32,
        connection: ConnectionId,
        now_ms: u64,
    ) -> Option<Takeover> {
        self.borrow_mut()
            .resume(session, timeout_ms, connection, now_ms)
    }

    fn end(&self, session: i64, connection: ConnectionId) -> bool {
        self.borrow_mut().end(session, connection)
    }

    fn left(&self, session: i64, connection: ConnectionId, heard_ms: u64, unsettled: bool) {
        self.borrow_mut()
            .left(session, connection, heard_ms, unsettled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ConnectionId = ConnectionId(1);
    const B: ConnectionId = ConnectionId(2);

    fn ids(due: Vec<(i64, Option<ConnectionId>)>) -> Vec<i64> {
        due.into_iter().map(|(session, _)| session).collect()
    }

    /// Asks as often as a member does.
    fn until(table: &mut LocalSessionTable, from_ms: u64, to_ms: u64) {
        for now_ms in (from_ms..=to_ms).step_by(100) {
            table.due(now_ms);
        }
    }

    #[test]
    fn silence_ends_a_session_and_a_sign_of_life_saves_it() {
        let mut table = LocalSessionTable::default();
        table.open(7, 4000, A, 0);
        until(&mut table, 0, 3900);
        assert_eq!(table.due(3999), []);
        assert_eq!(table.due(4000), [(7, Some(A))]);
        assert!(!table.judge(7, Some(A), 3000, 4000));
        until(&mut table, 4100, 6900);
        assert_eq!(ids(table.due(7000)), [7]);
        // It has another connection since it was looked at.
        assert!(!table.judge(7, Some(B), 0, 7000));
        assert!(table.judge(7, Some(A), 3000, 7000));
        assert!(table.is_empty() && table.due(9000).is_empty());
        assert!(!table.judge(7, Some(A), 0, 9000));
    }

    #[test]
    fn a_session_without_a_connection_waits_for_its_client() {
        let mut table = LocalSessionTable::default();
        table.open(7, 4000, A, 0);
        table.left(7, A, 1000, true);
        // Of a connection that it no longer has.
        table.left(7, B, 4000, false);
        assert_eq!(table.due(4999), []);
        let takeover = table.resume(7, 5000, B, 4999);
        let expected = Takeover {
            before: None,
            unsettled: true,
        };
        assert_eq!(takeover, Some(expected));
        let takeover = table.resume(7, 5000, A, 5000);
        let expected = Takeover {
            before: Some(B),
            unsettled: false,
        };
        assert_eq!(takeover, Some(expected));
        assert!(!table.end(7, B));
        assert!(table.end(7, A) && !table.end(7, A));
        assert_eq!(table.resume(7, 5000, A, 5000), None);
        table.open(8, 4000, A, 5000);
        table.left(8, A, 5000, false);
        until(&mut table, 5000, 9000);
        assert!(table.judge(8, None, 0, 9000));
    }

    #[test]
    fn while_the_member_serves_nobody_no_time_passes() {
        let mut table = LocalSessionTable::default();
        table.open(7, 4000, A, 0);
        assert_eq!(table.due(100), []);
        assert_eq!(table.due(60_000), []);
        until(&mut table, 60_100, 63_900);
        assert_eq!(ids(table.due(64_000)), [7]);
        let shown: Vec<_> = table.iter().collect();
        assert_eq!((shown.len(), shown[0].deadline_ms), (1, 64_000));
        table.clear();
        assert_eq!((table.len(), table.iter().count()), (0, 0));
    }
}
