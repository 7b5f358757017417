//! The promises about sessions: who is heard does not expire, who is silent does.
//!
//! Precisely: let the leader of term *t* append the end of a session at time *p*, and let that leader have
//! taken over at time *l*. Then *p − l* is at least the session's timeout. And for every moment *h ≥ l* at
//! which a member heard the session, with that member and the leader undisturbed (both run, no fault
//! touches their links, disks or clocks) from *h* until [`CONTACT`] later and *p* behind that, *p − h* is
//! at least the timeout too. Clocks may drift by [`DRIFT_MAX_PPM`], and a tick is [`SLACK`].

use std::collections::{BTreeMap, VecDeque};

use crate::clock::DRIFT_MAX_PPM;
use crate::schedule::{MS, Micros};

/// Time in which a member in contact with the leader tells it about sessions that it heard.
pub const CONTACT: Micros = 400 * MS;

/// Time that ticks and rounding may take.
const SLACK: Micros = 120 * MS;

/// Times of life that are kept for each session.
const KEPT: usize = 200;

#[derive(Debug, Default)]
struct Watched {
    timeout_ms: u64,
    generation: u64,
    /// When its newest opening or resume was put into the log.
    resumed: Micros,
    /// When it was heard, and by which member.
    heard: VecDeque<(Micros, u64)>,
    /// Since when its client deliberately says nothing.
    silent_since: Option<Micros>,
    /// A client knows of it.
    adopted: bool,
    /// One member alone knew it, and it was not resumed through the log since.
    local: bool,
    ended: bool,
}

/// All sessions of a run.
#[derive(Debug, Default)]
pub struct SessionChecks {
    sessions: BTreeMap<i64, Watched>,
    /// Times in which a member was not in order, the last one perhaps without end.
    disturbed: BTreeMap<u64, Vec<(Micros, Micros)>>,
    /// Who appended an entry, and when.
    appended: BTreeMap<(u64, u64), (Micros, u64)>,
    /// When the leader of a term took over.
    took_over: BTreeMap<u64, (Micros, u64)>,
    /// No session of a client that speaks may expire at all.
    pub gentle: bool,
}

impl SessionChecks {
    /// A member has become leader of a term; true if that is news.
    pub fn leads(&mut self, term: u64, member: u64, now: Micros) -> Result<bool, String> {
        match self.took_over.get(&term) {
            None => {
                self.took_over.insert(term, (now, member));
                Ok(true)
            }
            Some((_, before)) if *before != member => Err(format!(
                "members {before} and {member} both lead term {term}"
            )),
            Some(_) => Ok(false),
        }
    }

    /// The leader of a term has appended an entry.
    pub fn appended(&mut self, member: u64, index: u64, term: u64, now: Micros) {
        if let Some((_, leader)) = self.took_over.get(&term)
            && *leader == member
        {
            self.appended.entry((index, term)).or_insert((now, member));
        }
    }

    /// A member is out of order from now on, until [`SessionChecks::calm`].
    pub fn disturb(&mut self, member: u64, now: Micros) {
        let list = self.disturbed.entry(member).or_default();
        if list.last().is_none_or(|(_, until)| *until != Micros::MAX) {
            list.push((now, Micros::MAX));
        }
    }

    /// A member is in order again.
    pub fn calm(&mut self, member: u64, now: Micros) {
        if let Some((_, until)) = self.disturbed.entry(member).or_default().last_mut() {
            *until = (*until).min(now);
        }
    }

    fn is_calm(&self, member: u64, from: Micros, until: Micros) -> bool {
        let list = self.disturbed.get(&member);
        !list.is_some_and(|list| {
            list.iter()
                .any(|(start, end)| *start <= until && *end >= from)
        })
    }

    /// A restore has taken a session away in the entry that opened it: no state shows that it was there.
    pub fn swept(&mut self, session: i64) {
        self.sessions.entry(session).or_default().ended = true;
    }

    /// The log gives a session this timeout, as of an entry.
    pub fn opened(&mut self, session: i64, timeout_ms: i32, generation: u64, entry: (u64, u64)) {
        let at = self.appended.get(&entry).map_or(0, |(at, _)| *at);
        let watched = self.sessions.entry(session).or_default();
        watched.timeout_ms = u64::from(timeout_ms.unsigned_abs());
        if watched.generation != generation {
            (watched.generation, watched.resumed) = (generation, at);
            watched.local &= generation == 1;
        }
    }

    /// A client was given the session; `is_new` when it did not ask for one that it knew.
    pub fn adopted(&mut self, session: i64, is_new: bool) -> Result<(), String> {
        let watched = self.sessions.entry(session).or_default();
        if is_new && watched.adopted {
            return Err(format!("session {session:#x} was given to two clients"));
        }
        watched.adopted = true;
        Ok(())
    }

    /// A member heard the session.
    pub fn heard(&mut self, session: i64, member: u64, now: Micros) {
        let watched = self.sessions.entry(session).or_default();
        if watched.heard.len() == KEPT {
            watched.heard.pop_front();
        }
        watched.heard.push_back((now, member));
    }

    /// A session is known to one member alone. Whoever asks another one, or the same after a restart, is told
    /// that it is gone, also while it is being made one of the cluster.
    pub fn local(&mut self, session: i64) {
        self.sessions.entry(session).or_default().local = true;
    }

    /// Whether it is, or was, such a session.
    pub fn is_local(&self, session: i64) -> bool {
        self.sessions
            .get(&session)
            .is_some_and(|watched| watched.local)
    }

    /// A member has ended a session that only it knew.
    pub fn expired_locally(&self, session: i64, member: u64, now: Micros) -> Result<(), String> {
        let Some(watched) = self.sessions.get(&session) else {
            return Ok(());
        };
        let last = watched.heard.iter().rev().find(|(_, by)| *by == member);
        // The least timeout that a client can get.
        let least = 1_500 * MS;
        let least = least - least * DRIFT_MAX_PPM as u64 / 1_000_000 - SLACK;
        match last {
            Some((heard, _)) if now < heard + least => Err(format!(
                "local session {session:#x} was ended by member {member} {} ms after it was heard",
                (now - heard) / MS
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// The client of a session will never speak again.
    pub fn silent(&mut self, session: i64, now: Micros) {
        let watched = self.sessions.entry(session).or_default();
        watched.silent_since = Some(now);
    }

    /// The log has ended a session.
    pub fn ended(
        &mut self,
        session: i64,
        expired: bool,
        entry: (u64, u64),
        now: Micros,
    ) -> Result<(), String> {
        if let Some(watched) = self.sessions.get_mut(&session) {
            watched.ended = true;
        }
        match expired {
            true => self.check_expiry(session, entry, now),
            false => Ok(()),
        }
    }

    /// Another state has taken the place of the one before: these are the sessions.
    pub fn restored(&mut self, is_there: impl Fn(i64) -> bool) {
        for (session, watched) in &mut self.sessions {
            watched.ended = !is_there(*session);
        }
    }

    fn check_expiry(&self, session: i64, entry: (u64, u64), now: Micros) -> Result<(), String> {
        let Some(watched) = self.sessions.get(&session) else {
            return Ok(());
        };
        if self.gentle && watched.adopted && watched.silent_since.is_none() {
            return Err(format!(
                "session {session:#x} expired although nothing was wrong for long"
            ));
        }
        let Some((appended, leader)) = self.appended.get(&entry).copied() else {
            return Ok(());
        };
        let timeout = watched.timeout_ms * MS;
        let least = timeout - timeout * DRIFT_MAX_PPM as u64 / 1_000_000;
        let least = least.saturating_sub(SLACK);
        let took_over = self.took_over.get(&entry.1).map_or(0, |(at, _)| *at);
        if appended < took_over + least {
            return Err(format!(
                "session {session:#x} (timeout {} ms) was ended {} ms after member {leader} took over",
                watched.timeout_ms,
                (appended - took_over) / MS
            ));
        }
        if appended < watched.resumed + least {
            return Err(format!(
                "session {session:#x} (timeout {} ms) was ended {} ms after it was resumed",
                watched.timeout_ms,
                (appended.saturating_sub(watched.resumed)) / MS
            ));
        }
        for (heard, member) in watched.heard.iter().rev().copied() {
            let told = heard + CONTACT;
            let counts = heard >= took_over
                && told <= appended
                && self.is_calm(member, heard, told)
                && self.is_calm(leader, heard, told);
            if counts && appended < heard + least {
                return Err(format!(
                    "session {session:#x} (timeout {} ms) was ended at {} ms by member {leader} (applied {}), but member {member} heard it at {} ms",
                    watched.timeout_ms,
                    appended / MS,
                    now / MS,
                    heard / MS
                ));
            }
        }
        Ok(())
    }

    /// A client was told that its session is gone.
    pub fn told_gone(&self, session: i64) -> Result<(), String> {
        match self.sessions.get(&session) {
            Some(watched) if !watched.ended && !watched.local => Err(format!(
                "a client was told that session {session:#x} is gone, but it is not"
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// Sessions that were silent for longer than their timeout and `grace` and still are not ended.
    pub fn overdue(&self, now: Micros, grace: Micros) -> Vec<i64> {
        let overdue = self.sessions.iter().filter(|(_, watched)| {
            let since = watched.silent_since;
            !watched.ended
                && watched.timeout_ms > 0
                && since.is_some_and(|since| since + watched.timeout_ms * MS + grace < now)
        });
        overdue.map(|(session, _)| *session).collect()
    }
}
